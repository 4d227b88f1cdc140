"""A room without early reflections."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from .base import Samples, Transform


@dataclass(frozen=True, kw_only=True)
class _Reverb(Transform):
    def apply(self, waveform: Samples, sample_rate: int, parameter: float, rng: np.random.Generator) -> Samples:
        """The clip and, as loud, itself through a tail of noise; what sounds on after the clip's end is cut."""
        from scipy.signal import fftconvolve

        return np.asarray(fftconvolve(waveform, impulse_response(sample_rate, parameter, rng))[: len(waveform)])


def impulse_response(sample_rate: int, seconds: float, rng: np.random.Generator) -> Samples:
    """A direct path of 1 and a tail of Gaussian noise that decays by 60 dB in `seconds`, with the same energy."""
    times = np.arange(1, max(round(seconds * sample_rate), 1) + 1) / sample_rate
    tail = rng.standard_normal(len(times)) * 10 ** (-3 * times / seconds)
    return np.concatenate([[1.0], tail / np.sqrt(np.sum(np.square(tail)))])


TRANSFORM = _Reverb(
    name="reverb",
    unit="s",
    meaning=(
        "the direct path and as much energy in a tail of Gaussian noise; the number is the time in which the tail "
        "decays by 60 dB (RT60), and it is cut at the clip's end"
    ),
    low=0.1,
    high=3,
)
