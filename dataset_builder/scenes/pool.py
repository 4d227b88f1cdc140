"""Sounds as sources of clips: draws by label and condition that use all evenly, and their placement in a clip.

A placed source lasts the whole clip, at one level, through its own filter, in exact 16 bits. It is a random window of
its recording, which is repeated without end with a pause in between: any window if a clip contains a whole repetition,
otherwise a window that contains the loudest part of the recording. So two sources from one recording never have the
same samples, and its loudest part is always present. A whole clip is a sound with its own length, level and rate.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import product
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from audio_compositionality.support.text import listed

from ..data import NUMBER, TEXT, DataColumn, DatasetError, Pcm16
from ..sounds.entries import Sounds, SoundsField, related
from ..sounds.splits import classified
from ..sounds.tones import HeardSpec
from .effects import Signal, root_mean_square
from .mixing import middle_of, resampled
from .sources import LONGEST_DURATION, random_generator

Item = TypeVar("Item")

Cell = Mapping[str, Sequence[int]]
"""Indices of recordings by their label."""

_MOST_PAIRS = 200
"""Pairs of conditions to try if groups rule out one after another."""

_ATTEMPTS = 5
"""Orders of labels to try with a pair."""


class SoundsSpec(HeardSpec):
    """Settings that all clips of any sounds have in common."""

    seed: int = Field(0, ge=0, le=2**63 - 1, description="Seed of every random choice.")
    domain: str = Field(
        "", description="Domain of the sounds in one word, for the rows, e.g. `words`; by default given by the data."
    )
    duration: float = Field(2.5, ge=0.25, le=LONGEST_DURATION, description="Seconds of a clip.")
    sample_rate: int = Field(
        16_000, ge=8_000, le=192_000, description="Sample rate of every clip in Hz; sounds are resampled to it."
    )
    sounds: SoundsField = Field(
        None, repr=False, description="Sounds of the clips; by default tones of the project's own voices."
    )

    @property
    def num_samples(self) -> int:
        """Return the number of samples of a clip."""
        return round(self.duration * self.sample_rate)


@dataclass(frozen=True)
class Use:
    """Counts of earlier draws.

    Attributes:
        labels: draws of each label in the counted role.
        recordings: draws of each recording, by index.
        conditions: draws of each condition, by name.
        pairs: draws of unordered pairs of conditions.
    """

    labels: Counter[str] = field(default_factory=Counter)
    recordings: Counter[int] = field(default_factory=Counter)
    conditions: Counter[str] = field(default_factory=Counter)
    pairs: Counter[frozenset[str]] = field(default_factory=Counter)


class SoundPool:
    """Sounds that have a class: a label that is not a number.

    Attributes:
        sounds: all sounds.
        source: what the data were opened from.
        entries: all entries, including entries without a class.
        by_label: indices of the recordings of each label, labels in alphabetical order.
        has_conditions: whether any recording has one.
        by_condition: the same within each condition, without recordings that have none; if no recording has a
            condition, all recordings under the empty name.
    """

    def __init__(self, sounds: Sounds) -> None:
        """Sort the sounds without reading any.

        Raises:
            UnlabelledError: no sound has a class.
        """
        self.sounds, self.source, self.entries = sounds, sounds.source, sounds.entries
        classes = [(self.entries[number].label, number) for number in classified(sounds, "scenes are mixed")]
        by_label: dict[str, list[int]] = defaultdict(list)
        by_condition: dict[str, dict[str, list[int]]] = defaultdict(lambda: defaultdict(list))
        for label, number in sorted(classes):
            by_label[label].append(number)
            by_condition[self.entries[number].condition][label].append(number)
        self.has_conditions = any(by_condition)
        if self.has_conditions:
            by_condition.pop("", None)
        self.by_label: Cell = dict(by_label)
        self.by_condition: dict[str, Cell] = {name: dict(by_condition[name]) for name in sorted(by_condition)}

    @property
    def labels(self) -> list[str]:
        """Return all labels, in alphabetical order."""
        return list(self.by_label)

    def group(self, number: int) -> str:
        """Return the group of a recording, or the recording itself if it has none."""
        entry = self.entries[number]
        return f"group {entry.group}" if entry.group else f"recording {number}"

    @cached_property
    def _shared(self) -> tuple[list[str], NDArray[np.float32]]:
        """Return the conditions, and the labels of each as a 0/1 matrix [conditions, labels]."""
        conditions, places = list(self.by_condition), {label: place for place, label in enumerate(self.labels)}
        table = np.zeros((len(conditions), len(places)), np.float32)
        for row, condition in zip(table, conditions, strict=True):
            row[[places[label] for label in self.by_condition[condition]]] = 1
        return conditions, table

    def pairs(self, least: int, use: Use, rng: np.random.Generator, *, unrelated: bool) -> Iterator[tuple[str, str]]:
        """Yield pairs of different conditions that share labels, least-drawn first; two empty ones without conditions.

        Args:
            least: least number of shared labels.
            use: counts of earlier draws.
            rng: breaks ties between equally often drawn pairs.
            unrelated: whether they must not be `related`.
        """
        if not self.has_conditions:
            yield ("", "")
            return
        conditions, table = self._shared
        serving = np.flatnonzero(table.sum(axis=1) >= least)
        for first in evenly([conditions[place] for place in serving], use.conditions, rng):
            counts = table[serving] @ table[conditions.index(first)]
            names = [conditions[place] for place in serving[counts >= least] if conditions[place] != first]
            by_use = evenly(names, use.conditions, rng)
            for second in sorted(by_use, key=lambda name: use.pairs[frozenset((first, name))]):
                if not (unrelated and related(first, second)):
                    yield (first, second)

    def best_pair(self, *, unrelated: bool) -> tuple[int, tuple[str, str] | None]:
        """Return the most labels that two different conditions share, and the two conditions; None without two."""
        conditions, table = self._shared
        best: tuple[int, tuple[str, str] | None] = (-1, None)
        for place, first in enumerate(conditions):
            counts = table[:place] @ table[place]
            better = np.flatnonzero(counts > best[0])
            for other in better[np.argsort(-counts[better], kind="stable")]:
                if not (unrelated and related(first, conditions[other])):
                    best = (int(counts[other]), (conditions[other], first))
                    break
        return best

    def draw_sides(
        self, count: int, use: Use, rng: np.random.Generator, *, unrelated: bool
    ) -> tuple[tuple[str, str], dict[str, tuple[int, int]]] | None:
        """Draw two recordings of each of `count` labels: one for each of two conditions, or from two groups.

        No group is on both sides. Least-drawn pairs of conditions come first, then labels, then recordings; `use`
        counts the draw.

        Returns:
            The conditions, empty if recordings have none, and the two recordings by label; None if no such recordings
                exist.
        """
        for number, conditions in enumerate(self.pairs(count, use, rng, unrelated=unrelated)):
            if number == _MOST_PAIRS:
                return None
            cells = [self.by_condition[name] for name in conditions]
            shared = [label for label in cells[0] if label in cells[1]]
            for _ in range(_ATTEMPTS):
                taken: tuple[set[str], set[str]] = (set(), set())
                drawn: dict[str, tuple[int, int]] = {}
                for label in evenly(shared, use.labels, rng):
                    first, second = (
                        [n for n in evenly(cell[label], use.recordings, rng) if self.group(n) not in of_other]
                        for cell, of_other in zip(cells, reversed(taken), strict=True)
                    )
                    for one, other in (*product(first[:1], second), *product(first, second[:1])):
                        if self.group(one) != self.group(other):
                            drawn[label] = (one, other)
                            taken[0].add(self.group(one))
                            taken[1].add(self.group(other))
                            break
                    if len(drawn) == count:
                        use.labels.update(drawn.keys())
                        use.recordings.update(number for pair in drawn.values() for number in pair)
                        use.conditions.update(conditions)
                        use.pairs[frozenset(conditions)] += 1
                        return conditions, drawn
        return None

    def draw_recordings(
        self, labels: Sequence[str], use: Use, rng: np.random.Generator, conditions: Sequence[str] = ()
    ) -> tuple[int, ...]:
        """Draw a recording of each label, least-drawn first; `use` counts them.

        Args:
            labels: labels of the recordings.
            use: counts of earlier draws.
            rng: breaks ties between equally often drawn recordings.
            conditions: condition of each recording; by default any.
        """
        cells = [self.by_condition[name] for name in conditions] or [self.by_label] * len(labels)
        drawn = tuple(least_drawn(cell[label], use.recordings, rng) for cell, label in zip(cells, labels, strict=True))
        use.recordings.update(drawn)
        return drawn

    def draw_labels(
        self, count: int, without: Sequence[str], use: Counter[str], rng: np.random.Generator
    ) -> tuple[str, ...]:
        """Draw `count` labels that are not excluded, least-drawn first; `use` counts them.

        Raises:
            DatasetError: there are too few.
        """
        allowed = [label for label in self.by_label if label not in without]
        if len(allowed) < count:
            raise DatasetError(
                f"{self.source} has {len(self.by_label)} labels; {count} are needed"
                f"{f' in addition to {listed(without)}' if without else ''}"
            )
        drawn = tuple(evenly(allowed, use, rng)[:count])
        use.update(drawn)
        return drawn

    def ids(self, numbers: Sequence[int]) -> list[str]:
        """Return the names of sounds."""
        return [self.entries[number].id for number in numbers]

    def labels_of(self, numbers: Sequence[int]) -> list[str]:
        """Return the labels of sounds."""
        return [self.entries[number].label for number in numbers]

    def why_no_sides(self, count: int, *, unrelated: bool) -> str:
        """Return why no two conditions or groups have `count` classes, and the nearest count that works.

        Args:
            count: number of classes.
            unrelated: see `pairs`.
        """
        if not self.has_conditions:
            single = [label for label in self.by_label if len(set(map(self.group, self.by_label[label]))) < 2]
            serving = len(self.by_label) - len(single)
            text = f"{self.source}: {count} classes need labels with two recordings each, of different groups; "
            if serving >= count:
                nearest = f"--set classes={max(2, count - 1)}"
                return f"{text}the groups of these recordings do not permit this: {nearest}, or other groups"
            names = f"{listed([repr(label) for label in single])} {'has' if len(single) == 1 else 'have'} only one"
            nearest = f": --set classes={serving}" if serving >= 2 else ""
            return f"{text}{serving} of {len(self.by_label)} have them, {names}{nearest}"
        best, pair = self.best_pair(unrelated=unrelated)
        if best >= count:
            return (
                f"{self.source}: {count} classes need recordings under two conditions, and no group under both; the "
                f"groups of these recordings do not permit this: --set classes={max(2, count - 1)}, or other groups"
            )
        if pair is not None:
            names = " and ".join(map(repr, pair))
            nearest = f": --set classes={best}" if best >= 2 else ""
            text = (
                f"{self.source} has no two {'unrelated ' if unrelated else ''}conditions that share {count} labels; "
                f"{names} share the most labels, {best}{nearest}"
            )
            return f"{text}; or omit conditions: LABEL/file" if best < 2 else text
        names = listed([repr(name) for name in self.by_condition])
        if unrelated and len(self.by_condition) > 1:
            return (
                f"{self.source} has {len(self.by_condition)} conditions, all related ({names}): the two sides of a "
                "block need two that have nothing in common, e.g. another engine; --set unrelated=false permits "
                "related ones"
            )
        return f"{self.source} has one condition ({names}); two are needed"


def evenly(items: Sequence[Item], use: Counter[Item], rng: np.random.Generator) -> list[Item]:
    """Return items by the number of draws, least-drawn first, ties in random order."""
    shuffled = [items[place] for place in rng.permutation(len(items))]
    return sorted(shuffled, key=lambda item: use[item])


def least_drawn(items: Sequence[Item], use: Counter[Item], rng: np.random.Generator) -> Item:
    """Return one of the least-drawn items, at random."""
    counts = [use[item] for item in items]
    least = min(counts)
    places = [place for place, count in enumerate(counts) if count == least]
    return items[places[int(rng.integers(len(places)))]]


PAUSES = (0.15, 0.45)
"""Shortest and longest pause between two repetitions, in seconds."""

KNOTS = 8
LOWEST, HIGHEST = 60.0, 8_000.0
"""Knots of the random filter, evenly spaced on the logarithm of frequency; lowest and highest in Hz."""

PLACED_COLUMNS = (
    DataColumn("eq_db", NUMBER, "standard deviation of the filters at their knots, in dB"),
    DataColumn("domain", TEXT, "domain of the recordings"),
)
"""The last columns of rows with placed sounds."""

SILENT = 1e-4
"""Root mean square of an excerpt, -80 dB; softer ones consist of their file's rounding."""

_NEAR = 0.99
"""Share of the loudest part's energy above which another part counts as loud. The first such part is used: the periods
of a tone are equal except for rounding, so this choice is the same on every machine."""

_TAIL = 0.1
"""Seconds of silence appended while a clip is filtered, so that its end does not wrap around to its beginning."""


class PlacedSpec(SoundsSpec):
    """Settings that clips have in common in which every source lasts the whole clip."""

    eq_db: float = Field(
        4.0,
        ge=0,
        le=20,
        description="Standard deviation in dB, at its knots, of the random smooth filter for each source.",
    )

    @property
    def placing(self) -> Mapping[str, Any]:
        """Return the values of the card's template ``placing.md``."""
        return {"pauses": PAUSES, "knots": KNOTS, "lowest": LOWEST, "highest": HIGHEST}

    @property
    def of_row(self) -> Mapping[str, Any]:
        """Return a row's values of `PLACED_COLUMNS`."""
        return {"eq_db": self.eq_db, "domain": self.domain_name}


class PlacedSounds(SoundPool):
    """Sounds that have a class, as sources of the clips of a spec.

    Attributes:
        spec: settings of the clips.
    """

    def __init__(self, spec: PlacedSpec, sounds: Sounds) -> None:
        """Sort the sounds without reading any."""
        super().__init__(sounds)
        self.spec = spec

    def placed(self, number: int, stream: int, *place: int) -> Signal:
        """Return a sound as a source that lasts a clip, float64 [samples], at a level of 1.

        Args:
            number: index of the sound.
            stream: random stream; see `random_generator`.
            place: identifies the source, which has its own random numbers.

        Raises:
            DatasetError: the sound is silent.
        """
        spec = self.spec
        waveform, rate = self.sounds.waveform(number)
        rng = random_generator(spec.seed, stream, *place)
        try:
            return place_recording(waveform, rate, spec.num_samples, spec.sample_rate, spec.eq_db, rng)
        except DatasetError as error:
            raise DatasetError(f"{self.source}: recording {self.entries[number].id!r} {error}") from error

    def together(self, numbers: Sequence[int], stream: int, *place: int) -> Signal:
        """Return several sounds together, at a level of 1; the n-th has the random numbers of `place` and n.

        Raises:
            DatasetError: a sound is silent, or they cancel each other.
        """
        clip = np.sum([self.placed(number, stream, *place, n) for n, number in enumerate(numbers)], axis=0)
        loudness = root_mean_square(clip)
        if not loudness > SILENT:
            raise DatasetError(f"{self.source}: {', '.join(self.ids(numbers))} cancel each other; leave one out")
        return np.asarray(clip / loudness, np.float64)


def place_recording(
    waveform: Signal, rate: int, length: int, sample_rate: int, eq_db: float, rng: np.random.Generator
) -> Signal:
    """Return a recording as a source of a clip: a window, a random smooth filter, a level of 1, a random polarity.

    Polarity is inaudible. Random polarity puts a linear encoder that distinguishes two instances of a class by their
    samples at chance: any common part of two waveforms, e.g. the offset of FM tones, has either sign equally often.

    Args:
        waveform: float64 [samples].
        rate: sample rate of the recording in Hz.
        length: samples of the clip.
        sample_rate: sample rate of the clip in Hz.
        eq_db: standard deviation of the filter's gain at a knot, in decibels.
        rng: draws pause, phase, filter and polarity: the same number of values for every recording.

    Returns:
        float64 [length] with a root mean square of 1.

    Raises:
        DatasetError: the recording is silent even at its loudest; the message completes a sentence that begins with its
            name.
    """
    pause, phase = float(rng.uniform(*PAUSES)), float(rng.random())
    gains = eq_db * rng.standard_normal(KNOTS)
    polarity = float(rng.choice((-1, 1)))
    clip = lay_out(resampled(waveform, rate, sample_rate), length, round(pause * sample_rate), phase)
    loudness = root_mean_square(clip)
    if not loudness > SILENT:
        heard = f"{-20 * math.log10(loudness):.0f} dB below full scale" if loudness > 0 else "no sound at all"
        raise DatasetError(f"is silent even at its loudest ({heard}); leave it out")
    clip = equalise(clip, sample_rate, gains)
    return clip * (polarity / root_mean_square(clip))


def lay_out(waveform: Signal, length: int, pause: int, phase: float) -> Signal:
    """Return a window of a recording that is repeated without end.

    Args:
        waveform: float64 [samples], at the clip's rate.
        length: samples of the window.
        pause: samples of silence between two repetitions.
        phase: position of the window among the possible ones, from 0 to 1. If a period is no longer than a window, all
            are possible; otherwise those that contain the whole loudest part, which is at most half a window long.

    Returns:
        float64 [length].
    """
    period = len(waveform) + pause
    if period <= length:
        start = int(phase * period)
    else:
        part = min(len(waveform), length // 2)
        energy = np.concatenate([[0.0], np.cumsum(np.square(waveform))])
        parts = energy[part:] - energy[: len(energy) - part]
        loudest = int(np.argmax(parts >= _NEAR * parts.max()))
        start = loudest + part - length + int(phase * (length - part + 1))
    repeated = np.concatenate([waveform, np.zeros(pause)])
    return repeated[(start + np.arange(length)) % period]


def equalise(clip: Signal, sample_rate: int, gains: Signal) -> Signal:
    """Return a clip after a zero-phase filter whose gain in decibels runs smoothly through knots.

    Args:
        clip: float64 [samples].
        sample_rate: Hz.
        gains: decibels at frequencies that are evenly spaced from `LOWEST` to `HIGHEST` on a logarithmic scale; between
            them half a cosine, beyond them the last value.
    """
    if not gains.any():
        return clip
    padded = len(clip) + round(_TAIL * sample_rate)
    frequencies = np.maximum(np.fft.rfftfreq(padded, 1 / sample_rate), LOWEST)
    place = (len(gains) - 1) * np.log(frequencies / LOWEST) / math.log(HIGHEST / LOWEST)
    place = np.minimum(place, len(gains) - 1)
    below = np.minimum(place.astype(np.int64), len(gains) - 2)
    share = 0.5 - 0.5 * np.cos(np.pi * (place - below))
    decibels = gains[below] + share * (gains[below + 1] - gains[below])
    spectrum = np.fft.rfft(clip, padded) * 10 ** (decibels / 20)
    return np.asarray(np.fft.irfft(spectrum, padded)[: len(clip)], np.float64)


def whole_clip(samples: Signal, length: int) -> Pcm16:
    """Return samples in 16 bits: the middle if longer than `length`; scaled down only if they exceed full scale."""
    if len(samples) > length:
        samples = middle_of(samples, length)
    peak = max(1.0, float(np.abs(samples).max()))
    # Samples that were 16-bit before do not change.
    return np.clip(np.rint(samples / peak * 2**15), -(2**15), 2**15 - 1).astype(np.int16)
