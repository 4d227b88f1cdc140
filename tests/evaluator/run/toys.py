"""Small models for tests of how models are run."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import torch

from audio_compositionality.encoders.base import Model, ModelCard
from audio_compositionality.encoders.model_encoder import Hidden, ModelEncoder
from audio_compositionality.encoders.options import EncoderOptions


class BandEnergies(Model):
    """Sixteen band energies, or with ``constant`` always the same vector; counts its calls."""

    device = "cpu"

    def __init__(self, constant: bool = False, **card: Any) -> None:
        self.card = replace(ModelCard("toy", "v1", 32_000, 16), **card)
        self.constant = constant
        self.calls = 0

    def embed(self, waveforms, sample_rate):
        self.calls += 1
        if self.constant:
            return np.ones((len(waveforms), 16), np.float32)
        power = np.abs(np.fft.rfft(waveforms)) ** 2
        return np.log1p(power[:, 1:].reshape(len(power), 16, -1).sum(axis=2)).astype(np.float32)


class Linear(ModelEncoder[torch.Tensor]):
    """A fixed random projection of the power spectrum, run by torch."""

    def __init__(self, options: EncoderOptions | None = None, **card: Any) -> None:
        options = options or EncoderOptions()
        described = ModelCard("linear", "v1", 32_000, 8, weights_sha256="0" * 64, front_end_version=3, options=options)
        super().__init__(replace(described, **card), num_layers=1, device=torch.device("cpu"))
        self._weights = torch.from_numpy(np.random.default_rng(0).normal(size=(256, 8)).astype(np.float32))

    def _extract_features(self, clips):
        spectrum = np.abs(np.fft.rfft(clips))[:, 1:].reshape(len(clips), 256, -1)
        return torch.from_numpy(np.log1p(spectrum.mean(axis=2)).astype(np.float32))

    def _encode(self, features):
        return Hidden((features @ self._weights)[:, None], frame_seconds=1.0)
