"""Higher or lower, at the same speed."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from .base import Samples, Transform
from .vocoder import check_vocoder, resynthesise


@dataclass(frozen=True, kw_only=True)
class _Pitch(Transform):
    def apply(self, waveform: Samples, sample_rate: int, parameter: float, rng: np.random.Generator) -> Samples:
        """All frequencies times 2^(parameter / 12), formants among them."""
        return resynthesise(waveform, sample_rate, rng, semitones=parameter)

    def check_available(self) -> None:
        """Refuse to be used without python-stretch."""
        check_vocoder()


TRANSFORM = _Pitch(
    name="pitch",
    unit="semitones",
    meaning="all frequencies times one number, at the same speed, by a vocoder (Signalsmith Stretch)",
    low=-12,
    high=12,
    natural_only=True,
    alters=("pitch",),
)
