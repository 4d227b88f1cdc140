"""Faster or slower, at the same pitch."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from .base import Samples, Transform
from .vocoder import check_vocoder, resynthesise


@dataclass(frozen=True, kw_only=True)
class _Stretch(Transform):
    def apply(self, waveform: Samples, sample_rate: int, parameter: float, rng: np.random.Generator) -> Samples:
        """The same sound in 1 / parameter of its time: 2 is twice as fast."""
        return resynthesise(waveform, sample_rate, rng, speed=parameter)

    def reading(self, parameter: float) -> float:
        """A clip twice as fast is made from twice as much sound, so that nothing is padded, repeated or cut."""
        return parameter

    def check_available(self) -> None:
        """Refuse to be used without python-stretch."""
        check_vocoder()


TRANSFORM = _Stretch(
    name="stretch",
    unit="",
    meaning=(
        "faster (above 1) or slower at the same pitch, by a vocoder (Signalsmith Stretch); so much of the recording is "
        "read that the clip keeps its length"
    ),
    low=0.5,
    high=2,
    scale="log",
    natural_only=True,
    alters=("rate",),
)
