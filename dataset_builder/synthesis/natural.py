"""Recordings put together: trimmed slices, one after the other with a crossfade, or over each other equally loud.

After arXiv 2310.08753, section 3.3, whose release fades both ends without overlap, and cuts and tiles overlays.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from .transforms.base import Samples

SILENCE = -60.0
"""Decibels below the loudest frame: what is softer at both ends of a recording is cut off."""

CROSSFADE = 0.1
"""Of the shorter of two neighbours."""

LOUDNESS_RATE = 16_000
"""Hz that loudness is measured at."""

_FRAME, _HOP = 2_048, 1_024
_FLOOR = -80.0
"""Decibels: of what is softer, loudness is this."""


def trimmed(samples: Samples) -> tuple[int, int]:
    """First sample and the one after the last of what is not silent at the ends of a recording."""
    power = _frames(samples**2).mean(axis=1)
    loud = np.flatnonzero(power > power.max(initial=0) * 10 ** (SILENCE / 10))
    if not len(loud):
        return 0, 0
    return int(loud[0]) * _HOP, min(len(samples), int(loud[-1]) * _HOP + _FRAME)


def _frames(values: Samples) -> NDArray[np.float64]:
    """Half overlapping frames [frames, 2,048] of values that are padded with zeros to whole hops."""
    count = max(1, -(-max(len(values) - _FRAME, 0) // _HOP) + 1)
    padded = np.zeros((count - 1) * _HOP + _FRAME)
    padded[: len(values)] = values
    return np.lib.stride_tricks.sliding_window_view(padded, _FRAME)[::_HOP]


def fades_of(lengths: Sequence[int]) -> list[int]:
    """Samples in which each two neighbours overlap: a tenth of the shorter."""
    return [round(CROSSFADE * min(pair)) for pair in pairwise(lengths)]


def concatenated(parts: Sequence[Samples], fades: Sequence[int]) -> Samples:
    """Parts one after the other, each crossfaded with the next by half cosines: powers of both add up to 1.

    Args:
        parts: float64 [samples] each.
        fades: samples in which each two neighbours overlap.
    """
    starts = np.cumsum([0, *(len(part) - fade for part, fade in zip(parts, fades, strict=False))])
    total = np.zeros(int(starts[-1]) + len(parts[-1]))
    for place, (part, start) in enumerate(zip(parts, starts, strict=True)):
        faded = part.copy()
        if place:
            rise = _rise(fades[place - 1])
            faded[: len(rise)] *= rise
        if place < len(fades):
            rise = _rise(fades[place])
            faded[len(faded) - len(rise) :] *= rise[::-1]
        total[start : start + len(faded)] += faded
    return total


def _rise(length: int) -> Samples:
    """Gains [length] from 0 to 1 whose square and that of their reverse add up to 1."""
    rise: Samples = np.sin(np.pi / 2 * (np.arange(length) + 0.5) / max(length, 1))
    return rise


def looped(samples: Samples, length: int) -> Samples:
    """Samples repeated, each time with a crossfade into the next, to exactly so many; not less than there are."""
    period = len(samples)
    fade = round(CROSSFADE * period)
    count = 1 + max(0, -(-(length - period) // max(period - fade, 1)))
    return concatenated([samples] * count, [fade] * (count - 1))[:length]


def overlaid(parts: Sequence[Samples], rate: int) -> Samples:
    """Parts of one length over each other, two at a time as loud as each other (Tokozume et al., 2018, with r = 1/2).

    Of x and y, whose loudness is G_x and G_y dB: t = 1 / (1 + 10^((G_x - G_y) / 20)), and the sum of t x and (1 - t) y,
    divided by √(t² + (1 - t)²). A third is laid over both, with a third of the power of all.
    """
    total = parts[0]
    for count, part in enumerate(parts[1:], 1):
        ratio = 10 ** ((loudness(total, rate) - loudness(part, rate)) / 20)
        # With r the share of what was there before: of n equal sources the new one is 1 / (n + 1).
        share = count / (count + 1)
        weight = 1 / (1 + ratio * np.sqrt((1 - share) / share))
        total = (weight * total + (1 - weight) * part) / np.hypot(weight, 1 - weight)
    return total


def loudness(samples: Samples, rate: int) -> float:
    """The largest A-weighted power of a frame of 2,048 samples at 16 kHz, in decibels, not less than -80."""
    from .instances import resampled

    frames = _frames(resampled(samples, rate, LOUDNESS_RATE)) * np.hanning(_FRAME)
    power = np.abs(np.fft.rfft(frames, axis=1)) ** 2 / _FRAME**2
    return float(10 * np.log10(max(float((power @ _a_weights()).max()), 10 ** (_FLOOR / 10))))


@cache
def _a_weights() -> NDArray[np.float64]:
    """A-weighting of power (IEC 61672) at the frequencies of a frame, 1 at 1 kHz."""
    squared = np.fft.rfftfreq(_FRAME, 1 / LOUDNESS_RATE) ** 2
    low, first, second, high = (frequency**2 for frequency in (20.598997, 107.65265, 737.86223, 12194.217))
    amplitude = (
        high * squared**2 / ((squared + low) * np.sqrt((squared + first) * (squared + second)) * (squared + high))
    )
    weights: NDArray[np.float64] = (amplitude * 10 ** (2.0 / 20)) ** 2
    return weights
