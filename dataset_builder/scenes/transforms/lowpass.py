"""High frequencies taken away."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from .base import ParameterRange, Samples, Transform

ORDER = 4

HIGHEST_SHARE = 0.45
"""Of the sample rate, that a cutoff is at most: below half of it, where the filter would be none."""


@dataclass(frozen=True, kw_only=True)
class _LowPass(Transform):
    def apply(self, waveform: Samples, sample_rate: int, parameter: float, rng: np.random.Generator) -> Samples:
        """A Butterworth filter, 3 dB down at the cutoff, as second-order sections, from silence on."""
        from scipy.signal import butter, sosfilt

        return np.asarray(sosfilt(butter(ORDER, parameter, output="sos", fs=sample_rate), waveform))

    def limits(self, sample_rate: int, span: ParameterRange) -> ParameterRange:
        """Cutoffs of at most .45 of the rate: those of 16 kHz end at 7,200 Hz."""
        return replace(span, high=min(span.high, HIGHEST_SHARE * sample_rate))


TRANSFORM = _LowPass(
    name="lowpass",
    unit="Hz",
    meaning="a Butterworth low-pass of order 4; the number is its cutoff (−3 dB)",
    low=500,
    high=8_000,
    scale="log",
)
