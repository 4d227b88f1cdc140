"""White noise."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from .base import Samples, Transform, level


@dataclass(frozen=True, kw_only=True)
class _Noise(Transform):
    def apply(self, waveform: Samples, sample_rate: int, parameter: float, rng: np.random.Generator) -> Samples:
        """White Gaussian noise is added whose power is exactly `parameter` dB below that of the whole clip.

        It is drawn for every sample: a short piece that is repeated would be a tone.
        """
        noise = rng.standard_normal(len(waveform))
        return waveform + noise * (level(waveform) / level(noise) * 10 ** (-parameter / 20))


TRANSFORM = _Noise(
    name="noise",
    unit="dB",
    meaning="white Gaussian noise is added; the number is the signal-to-noise ratio over the whole clip",
    low=-10,
    high=40,
    keeps_level=False,
)
