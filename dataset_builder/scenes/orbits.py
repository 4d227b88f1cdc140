"""A clip and what transforms make of it, at levels that can be compared."""

from __future__ import annotations

import hashlib
import math
import threading
from collections import OrderedDict
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from functools import partial

import numpy as np
from numpy.typing import NDArray

from ..data import DatasetError, Pcm16
from .bases import QUARTERS, Base, TransformSpec, is_inverted
from .sources import random_generator
from .tone_bank import FULL_SCALE
from .transforms import ParameterRange, Samples, Transform, level

SHORTEST = 0.1
"""Seconds of a clip: less is not a sound that a model could hear anything in."""

FULL_UP_TO, HIGHEST = 6_500.0, 7_200.0
"""Hz: candidates have all of what is below the first, and nothing above the second, which is left by what brings clips
to 16 kHz, the lowest rate of any encoder here."""

_COPIES = 13
"""The random stream."""

_KEPT = 3
"""Orbits that are kept: a build asks for the clips of two or three at once."""


@dataclass(frozen=True)
class Copy:
    """One application of a transform.

    Attributes:
        transform: what is applied.
        parameter: in its unit.
        rng: makes the random numbers of this copy, the same each time, those that come after its parameter.
        number: of the copy among those by this transform, quarter by quarter.
        scaled: place of the parameter in its range, from 0 to 1.
    """

    transform: Transform
    parameter: float
    rng: Callable[[], np.random.Generator]
    number: int = 0
    scaled: float = 0.0


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
    base = middle_of(source, length)
    own_level = level(base)
    if not own_level > 0:
        raise DatasetError("is silent in its middle, which is the clip: leave it out")
    clips = [base]
    for copy in copies:
        share = copy.transform.reading(copy.parameter)
        read = middle_of(source, length if share == 1 else math.ceil(length * share) + 1)
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


def middle_of(source: Samples, length: int) -> Samples:
    """So many samples out of the middle of some sound."""
    start = (len(source) - length) // 2
    return source[start : start + length]


def render_candidates(clips: Sequence[Samples], sample_rate: int, base: Pcm16, *, inverted: bool) -> list[Pcm16]:
    """Clips [samples] of one length, all with exactly the root mean square of a base, int16 as it is.

    All have less, and the same, where one would pass full scale. See `with_energy` for what exactly means. Frequencies
    above `HIGHEST` are taken away first: clips that are equally loud at one rate would not be at a lower one.

    Raises:
        DatasetError: a clip is silent.
    """
    if not all(level(clip) > 0 for clip in clips):
        raise DatasetError("is to be compared with a clip that is silent: leave it out")
    clips = [_without_highest(clip, sample_rate) for clip in clips]
    loud = level(base.astype(np.float64))
    share = min([1.0, *(FULL_SCALE * level(clip) / float(np.abs(clip).max()) / loud for clip in clips)])
    energy = round(share**2 * int(np.square(base.astype(np.int64)).sum()) * (len(clips[0]) / len(base)))
    loud *= share
    exact = [with_energy(np.rint(clip * (loud / level(clip))).astype(np.int64), energy) for clip in clips]
    return [(-clip if inverted else clip).astype(np.int16) for clip in exact]


def _without_highest(clip: Samples, sample_rate: int) -> Samples:
    """A clip without what is above `HIGHEST`, by a raised cosine from `FULL_UP_TO` on; one of a low rate as it is."""
    frequencies = np.fft.rfftfreq(len(clip), 1 / sample_rate)
    share = np.clip((frequencies - FULL_UP_TO) / (HIGHEST - FULL_UP_TO), 0.0, 1.0)
    filtered: Samples = np.fft.irfft(np.fft.rfft(clip) * (1 + np.cos(np.pi * share)) / 2, len(clip))
    return filtered


def with_energy(samples: NDArray[np.int64], energy: int) -> NDArray[np.int64]:
    """Samples whose squares sum up to `energy`, each changed by 1 at most.

    Rounding to 16 bits leaves soft clips levels that differ by some 1e-5: enough for a level meter to tell clips apart.
    The loudest samples are changed first: towards 0 until there is not too much, then away from it until there is not
    too little. What is less than the step of any sample that is left is lacking: where none is near 0, a few units.

    >>> adjusted = with_energy(np.array([3, -5, 0, 1]), 47)
    >>> adjusted.tolist(), int((adjusted**2).sum())
    ([3, -6, 1, 1], 47)
    """
    adjusted = samples.copy()
    order = np.argsort(np.abs(samples), kind="stable")
    sizes = np.abs(samples)[order]
    missing, end = energy - int(np.square(samples).sum()), len(samples)
    while missing and end > 0:
        # A step away from 0 adds 2|s| + 1, and one towards 0 takes 2|s| − 1 away.
        fits = end if missing < 0 else int(np.searchsorted(sizes[:end], (missing - 1) // 2, "right"))
        if not fits:
            break
        end = fits - 1
        place = order[end]
        adjusted[place] += (1 if missing > 0 else -1) * (-1 if samples[place] < 0 else 1)
        missing -= int(adjusted[place]) ** 2 - int(samples[place]) ** 2
    return adjusted


def draw_copies(base: Base, spec: TransformSpec) -> Iterator[Copy]:
    """The copies of a base: of each transform in each quarter of its range, uniformly.

    The random numbers of one depend on nothing but the seed, its base, transform and number.
    """
    for transform, span in spec.spans:
        key = int(hashlib.sha256(transform.name.encode()).hexdigest()[:8], 16)
        for number in range(QUARTERS * spec.per_quarter):
            generator = partial(random_generator, spec.seed, _COPIES, base.key, key, number)
            scaled = (number // spec.per_quarter + generator().random()) / QUARTERS
            yield Copy(transform, span.value(scaled), partial(_after_parameter, generator), number, scaled)


def _after_parameter(generator: partial[np.random.Generator]) -> np.random.Generator:
    rng = generator()
    rng.random()
    return rng


@dataclass(frozen=True)
class Orbit:
    """A base, its copies and its candidates.

    Attributes:
        number: of the base.
        base: the clip as it is, with its candidates.
        copies: none where it has none.
    """

    number: int
    base: Base
    copies: tuple[Copy, ...]

    def render(self, spec: TransformSpec) -> list[Pcm16]:
        """Their clips, in the same order.

        Raises:
            DatasetError: one is silent, or too short: names the base.
        """
        rate, reach = spec.clip_rate, reach_of(spec.spans)

        def length_of(sound: Samples) -> int:
            return base_length(sound, rate, spec.duration, reach)

        try:
            sound = self.base.sound()
            orbit = render_orbit(sound, length_of(sound), rate, self.copies, spec.headroom)
            if not self.base.candidates:
                return orbit
            sounds = [candidate.sound() for _, candidate in self.base.candidates]
            # Of sounds of two lengths the shorter one is that of both, or it would tell them apart.
            length = min(map(length_of, sounds))
            clips = [middle_of(one, length) for one in sounds]
            return orbit + render_candidates(clips, rate, orbit[0], inverted=is_inverted(self.number))
        except DatasetError as error:
            raise DatasetError(f"{self.base.title} {error}") from error


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
