"""musicnn (Pons and Serra, 2019, arXiv 1909.06654), trained to tag music: MagnaTagATune or the Million Song Dataset.

    pip install --no-deps musicnn==0.1.0

Package and weights: ISC. Neither the package nor TensorFlow is imported: the file of weights is a sequence of tensors
in the order of their names. The package's spectrograms have 16 bits, which loud sounds exceed; these have 32. An
embedding is the mean over windows of 187 frames (3 s); the last one is padded with silence.
"""

from importlib.metadata import distribution

import librosa
import numpy as np
import torch
from torch import nn

SHAPES = [(204, 7, 38), (204, 7, 67), (51, 128, 1), (51, 64, 1), (51, 32, 1), (64, 7, 561), (64, 7, 64), (64, 7, 64)]
"""Kernels over frames and frequencies or channels: five side by side, then three in a row."""


class UntrainedMusicnn:
    """The network with PyTorch's fresh weights: the twin with which `Musicnn` is compared."""

    id, paradigm, licence, sample_rate = "untrained:musicnn-mtt", "untrained", None, 16_000

    def __init__(self) -> None:
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(0)
            layers = [*(nn.Conv2d(1, outputs, size) for outputs, *size in SHAPES), nn.Linear(1506, 200)]
        norms = [nn.BatchNorm2d(channels, eps=0.001) for channels in (1, *(shape[0] for shape in SHAPES))]
        norms += [nn.BatchNorm1d(values, eps=0.001) for values in (1506, 200)]
        self.network = nn.ModuleList([nn.ModuleList(layers), nn.ModuleList(norms)]).eval()

    def embed(self, waveforms: np.ndarray, sample_rate: int) -> torch.Tensor:
        """Embed clips [n, samples] as [n, 200], the layer before the tags."""
        return torch.stack([self._layers(clip)[-1] for clip in waveforms])

    def embed_layers(self, waveforms: np.ndarray, sample_rate: int) -> list[torch.Tensor]:
        """Embed clips by each layer: the spectrogram, all five kernels, each of the three, their pool and the last."""
        return [torch.stack(layer) for layer in zip(*map(self._layers, waveforms), strict=True)]

    def _layers(self, clip: np.ndarray) -> list[torch.Tensor]:
        mel = librosa.feature.melspectrogram(y=clip, sr=16_000, hop_length=256, n_fft=512, n_mels=96)
        mel = np.log10(10_000 * np.pad(mel, ((0, 0), (0, -mel.shape[1] % 187))) + 1)
        (layers, norms), states = self.network, [torch.tensor(mel).unflatten(1, (-1, 187)).swapaxes(0, 1)]
        for index, (_, size, _) in enumerate(SHAPES):
            given = norms[0](states[0].mT[:, None]) if index < 5 else states[-1].mT[:, None]
            given = nn.functional.pad(given, (0, 0, (size - 1) // 2, size // 2))
            states.append(norms[index + 1](layers[index](given).relu()).amax(dim=3))
            if index == 4:
                states = [states[0], torch.cat(states[1:], dim=1)]
            if index > 5:
                states[-1] = states[-1] + states[-2]
        every = torch.cat(states[1:], dim=1)
        pool = torch.stack([every.amax(dim=2), every.mean(dim=2)], dim=2).flatten(1)
        last = norms[10](layers[8](norms[9](pool)).relu())
        return [*(state.mean(dim=(0, 2)) for state in states), pool.mean(dim=0), last.mean(dim=0)]


class Musicnn(UntrainedMusicnn):
    """Trained on MagnaTagATune."""

    id, paradigm, licence, folder = "musicnn-mtt", "tagging of music", "ISC", "MTT_musicnn"

    def __init__(self) -> None:
        super().__init__()
        path = distribution("musicnn").locate_file(f"musicnn/{self.folder}/.data-00000-of-00001")
        values = torch.from_numpy(np.fromfile(path, "<f4"))
        layers, norms = self.network
        tensors = []
        for norm in (norms[index] for index in (0, 1, 10, *range(2, 10))):
            tensors += [(norm.bias.data, 3), (norm.weight.data, 3), (norm.running_mean, 1), (norm.running_var, 1)]
        tensors.append((torch.empty(1), 2))
        for layer in layers:
            weight = layer.weight.data
            tensors += [(layer.bias.data, 3), (weight.permute(2, 3, 1, 0) if weight.ndim == 4 else weight.T, 3)]
        # Each trained tensor is followed by two of the same shape, which the optimizer kept.
        for tensor, copies in tensors:
            first, values = values[: tensor.numel()], values[copies * tensor.numel() :]
            tensor.copy_(first.view(tensor.shape))

    def untrained(self) -> UntrainedMusicnn:
        """Its twin."""
        return UntrainedMusicnn()


class MusicnnMsd(Musicnn):
    """Trained on the Million Song Dataset."""

    id, folder = "musicnn-msd", "MSD_musicnn"
