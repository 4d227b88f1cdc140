"""PESTO (Riou et al., 2023, arXiv 2309.02265), pitch learned from singing without labels, by transposing spectra.

    pip install --no-deps pesto-pitch==2.0.1

Package and weights: LGPL-3.0. Nothing of the package is imported or copied; its weights are read as tensors only. An
embedding is the mean of the last hidden layer over frames of a constant-Q spectrogram, one every 100 ms.
"""

from collections import defaultdict
from importlib.metadata import distribution
from typing import Any

import numpy as np
import torch
from torch import nn

BINS, HOP, WIDTH = 251, 1600, 4096
"""Frequencies of the spectrogram, 36 per octave; samples at 16 kHz between frames and in a frame."""


class UntrainedPesto:
    """The network with PyTorch's fresh weights: the twin with which `Pesto` is compared."""

    id, paradigm, licence, sample_rate = "untrained:pesto", "untrained", None, 16_000

    def __init__(self) -> None:
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(0)
            parts = [nn.LayerNorm((1, BINS - 32)), *(nn.Conv1d(n, 40, 39, padding=19) for n in (1, 40, 40))]
            parts += [nn.Conv1d(*channels, 1) for channels in ((40, 30), (30, 30), (30, 10), (10, 3))]
        self.network = nn.ModuleList(parts)
        frequencies, times = 27.5 * 2 ** ((np.arange(BINS)[:, None] - 1) / 36), np.arange(WIDTH) - WIDTH // 2
        # Kernels are 7 Hz wider than at a constant Q.
        lengths = np.ceil(16_000 / (frequencies * (2 ** (1 / 36) - 1) + 7))
        part = (times + (lengths + 1) // 2) / lengths
        windows = np.where((part >= 0) & (part < 1), np.sin(np.pi * part) ** 2, 0)
        kernels = windows / windows.sum(axis=1, keepdims=True) * np.sqrt(lengths)
        kernels = kernels * np.exp(2j * np.pi * frequencies / 16_000 * times)
        self.kernels = torch.tensor(np.concatenate([kernels.real, kernels.imag]).T, dtype=torch.float32)

    def embed(self, waveforms: np.ndarray, sample_rate: int) -> torch.Tensor:
        """Embed clips [n, samples], which are reflected at both ends, as [n, 657]: 3 channels, 219 frequencies."""
        frames = torch.tensor(np.pad(waveforms, ((0, 0), (WIDTH // 2, WIDTH // 2)), "reflect")).unfold(1, WIDTH, HOP)
        energy = (frames @ self.kernels).unflatten(2, (2, BINS)).square().sum(dim=2)
        decibels = 10 * energy.clamp(min=torch.finfo(torch.float32).eps ** 2).log10()
        return torch.stack([self._hidden(clip[:, None, 16:-16]).flatten(1).mean(dim=0) for clip in decibels])

    def _hidden(self, spectra: torch.Tensor) -> torch.Tensor:
        for index, layer in enumerate(self.network):
            output = nn.functional.leaky_relu(layer(spectra), 0.3) if index else layer(spectra)
            spectra = spectra + output if index in (2, 3) else output
        return spectra


class Pesto(UntrainedPesto):
    """The package's newer weights for MIR-1K."""

    id, paradigm, licence = "pesto", "self-supervised estimation of pitch", "LGPL-3.0"

    def __init__(self) -> None:
        super().__init__()
        path = distribution("pesto-pitch").locate_file("pesto/weights/mir-1k_g7.ckpt")
        # The file also holds settings of the package omegaconf.
        names = "base.Metadata", "base.ContainerMetadata", "dictconfig.DictConfig", "listconfig.ListConfig"
        settings = [(type("Setting", (), {}), f"omegaconf.{name}") for name in (*names, "nodes.AnyNode")]
        with torch.serialization.safe_globals([*settings, list, int, dict, Any, defaultdict]):
            state = torch.load(path, map_location="cpu", weights_only=True)["state_dict"]
        stored = [tensor for name, tensor in state.items() if name.startswith("encoder.") and "fc" not in name]
        for tensor, one in zip(self.network.state_dict().values(), stored, strict=True):
            tensor.copy_(one)

    def untrained(self) -> UntrainedPesto:
        """Its twin."""
        return UntrainedPesto()
