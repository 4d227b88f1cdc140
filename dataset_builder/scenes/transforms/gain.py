"""Softer, by so many decibels."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from .base import Samples, Transform


@dataclass(frozen=True, kw_only=True)
class _Gain(Transform):
    def apply(self, waveform: Samples, sample_rate: int, parameter: float, rng: np.random.Generator) -> Samples:
        """Every sample times 10^(parameter / 20)."""
        return waveform * 10 ** (parameter / 20)


TRANSFORM = _Gain(
    name="gain",
    unit="dB",
    meaning="every sample times one number",
    low=-24,
    high=0,
    keeps_level=False,
    alters=("amplitude",),
)
