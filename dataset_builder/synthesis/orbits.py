"""A clip and what transforms make of it, at levels that can be compared."""

from __future__ import annotations

import math
import threading
from collections import OrderedDict
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass

import numpy as np

from ..data import DatasetError, Pcm16
from .sound import FULL_SCALE
from .transforms.base import ParameterRange, Samples, Transform, level

SHORTEST = 0.1
"""Seconds of a clip: less is not a sound that a model could hear anything in."""

_KEPT = 3
"""Orbits that are kept: a build asks for the clips of two or three at once."""


@dataclass(frozen=True)
class Copy:
    """One application of a transform.

    Attributes:
        transform: what is applied.
        parameter: in its unit.
        rng: makes the random numbers of this copy, the same each time, its parameter's among them.
    """

    transform: Transform
    parameter: float
    rng: Callable[[], np.random.Generator]


def base_length(source: Samples, sample_rate: int, duration: float, reach: float) -> int:
    """Samples of a clip out of longer sound: at most `duration` seconds, and `reach` times as many must be there.

    Raises:
        DatasetError: that is too short to be heard.
    """
    available = len(source) if reach == 1 else math.floor((len(source) - 2) / reach)
    length = min(round(duration * sample_rate), available)
    if length < SHORTEST * sample_rate:
        needed = f"it needs {SHORTEST * reach:g} s"
        raise DatasetError(f"lasts {len(source) / sample_rate:.3f} s; {needed}: leave it out")
    return length


def render_orbit(
    source: Samples, length: int, sample_rate: int, copies: Sequence[Copy], headroom: float
) -> list[Pcm16]:
    """The clip in the middle of some sound, then its copies, all under one gain.

    The gain is `headroom` decibels below 1, less only where a clip would pass full scale. What keeps its level has the
    root mean square of the clip.

    Args:
        source: float64 [samples], at least `length` of them.
        length: samples of each clip.
        sample_rate: Hz.
        copies: what is made of the clip, in this order.
        headroom: in decibels.

    Returns:
        1 + copies clips, each int16 [length].

    Raises:
        DatasetError: the clip is silent, or nothing is left of it.
    """
    base = _middle(source, length)
    own_level = level(base)
    if not own_level > 0:
        raise DatasetError("is silent in its middle, which is the clip: leave it out")
    clips = [base]
    for copy in copies:
        share = copy.transform.reading(copy.parameter)
        read = _middle(source, length if share == 1 else math.ceil(length * share) + 1)
        clip = copy.transform.apply(read, sample_rate, copy.parameter, copy.rng())[:length]
        if copy.transform.keeps_level:
            if not level(clip) > 0:
                raise DatasetError(f"{copy.transform.name} at {copy.parameter:g} leaves nothing of it: leave it out")
            clip = clip * (own_level / level(clip))
        clips.append(clip)
    peak = max(float(np.abs(clip).max()) for clip in clips)
    gain = min(10 ** (-headroom / 20), 1 / peak)
    return [np.rint(clip * (gain * FULL_SCALE)).astype(np.int16) for clip in clips]


def reach_of(transforms: Sequence[tuple[Transform, ParameterRange]]) -> float:
    """Most seconds of sound that a second of any copy is made from, at least 1."""
    return max([1.0, *(transform.reading(end) for transform, span in transforms for end in (span.low, span.high))])


def _middle(source: Samples, length: int) -> Samples:
    start = (len(source) - length) // 2
    return source[start : start + length]


class RecentOrbits:
    """Orbits by the number of their base, rendered once though clips are asked for one by one, by several threads."""

    def __init__(self, render: Callable[[int], list[Pcm16]]) -> None:
        """Nothing is rendered before it is asked for."""
        self._render = render
        self._orbits: OrderedDict[int, Future[list[Pcm16]]] = OrderedDict()
        self._lock = threading.Lock()

    def __getitem__(self, number: int) -> list[Pcm16]:
        """The clips of a base; another thread that renders them is waited for."""
        with self._lock:
            orbit = self._orbits.get(number)
            first = orbit is None
            if orbit is None:
                orbit = self._orbits[number] = Future()
                if len(self._orbits) > _KEPT:
                    self._orbits.popitem(last=False)
        if first:
            try:
                orbit.set_result(self._render(number))
            except BaseException as error:
                orbit.set_exception(error)
        return orbit.result()
