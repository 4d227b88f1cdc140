"""Energy, onsets and span of a clip: a control of tasks that ask how often something is heard.

It tells the number of sounds that silence separates, and knows nothing else of them: a score that it reaches shows
detection of onsets at most.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ..base import FloatArray, WaveformEncoder
from .baselines import FLOOR, SAMPLE_RATE, card_of, listing_of

_FRAME = SAMPLE_RATE // 100
"""Samples of a frame, 10 ms."""

_BELOW = 1e-3
"""Power of the softest frame that sounds, of the loudest: -30 dB."""

_PAUSE = 5
"""Frames of silence that separate two sounds, at least."""


class EnergyOnsetsSpan(WaveformEncoder):
    """Three numbers of a clip: the logarithm of its mean power to base 10, the number of onsets, and the seconds from
    the first to the last.

    A frame of 10 ms sounds where its power is at most 30 dB below that of the loudest; an onset is a frame that sounds
    after 50 ms of silence or more, or at the start. Power is floored at 1e-10; silence has no onset.
    """

    card = card_of("energy-onsets-span", 3)

    def _run_model(self, features: FloatArray) -> FloatArray:
        return np.stack([self._numbers(clip.astype(np.float64)) for clip in features]).astype(np.float32)

    def _numbers(self, clip: NDArray[np.float64]) -> NDArray[np.float64]:
        energy = np.log10(max(float(np.mean(clip**2)), FLOOR))
        frames = np.pad(clip, (0, -len(clip) % _FRAME)).reshape(-1, _FRAME)
        powers = np.mean(frames**2, axis=1)
        sounding = np.flatnonzero(powers >= max(_BELOW * powers.max(), FLOOR))
        if not len(sounding):
            return np.array([energy, 0.0, 0.0])
        onsets = sounding[np.diff(sounding, prepend=-_PAUSE - 1) > _PAUSE]
        return np.array([energy, len(onsets), (onsets[-1] - onsets[0]) / 100])


MODELS = (
    listing_of(
        EnergyOnsetsSpan,
        "the energy of a clip, its number of onsets, and the time from the first to the last, nothing else",
        is_baseline=False,
    ),
)
