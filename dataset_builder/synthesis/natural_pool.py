"""Recordings as slices of scenes: which are for training, which labels never meet there, what is heard of each."""

from __future__ import annotations

import hashlib
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from ..data import DatasetError
from ..language.categories import category_of, spoken
from ..recordings.protocol import Recording, Recordings
from .instances import resampled
from .natural import trimmed
from .pool import UnlabelledError, has_class, why_no_classes
from .transforms.base import Samples, level

SPLITS = ("train", "validation", "test")

_TEST_SHARE, _VALIDATION_SHARE = 0.4, 0.1
"""Of the files of a label."""

_NOVEL_SHARE = 0.2
"""Of the pairs of labels."""

LONGEST_SLICE = 9.5
"""Seconds."""

SHORTEST_SLICE = 1.2
"""Seconds that a slice lasts in a clip; less is repeated. Without half a crossfade at each end, a second is left."""

SHORTEST_SOUND = 0.25
"""Seconds between the silence at both ends."""

_DRAWS, _QUIET = 5, 10.0
"""Windows of a long recording that are drawn, until one is not so many decibels below the whole."""

_STEP = 1_024
"""Samples over which the power of a recording is kept."""


@dataclass(frozen=True)
class Slice:
    """A part of a recording.

    Attributes:
        number: of the recording.
        start, stop: at its own rate, in samples.
        length: at the rate of clips, in samples.
    """

    number: int
    start: int
    stop: int
    length: int


@dataclass(frozen=True)
class _Sound:
    """What is known of a recording that was read once: rate, ends of what is not silent, power of steps."""

    rate: int
    start: int
    stop: int
    powers: NDArray[np.float32]


def splits_of_files(entries: Sequence[Recording]) -> list[str]:
    """The split of each recording: whole groups, by label where no group has several, else all together."""
    units = [entry.group or entry.sha256 for entry in entries]
    labels_of: dict[str, set[str]] = defaultdict(set)
    for entry, unit in zip(entries, units, strict=True):
        labels_of[unit].add(entry.label)
    # A speaker who says all words is on one side with all of them.
    are_shared = any(len(labels) > 1 for labels in labels_of.values())
    of_label: dict[str, set[str]] = defaultdict(set)
    for entry, unit in zip(entries, units, strict=True):
        of_label["" if are_shared else entry.label].add(unit)
    splits: dict[str, str] = {}
    for members in of_label.values():
        ordered = sorted(members, key=_digest)
        test = max(1, round(_TEST_SHARE * len(ordered)))
        validation = max(len(ordered) > 2, round(_VALIDATION_SHARE * len(ordered)))
        for place, unit in enumerate(ordered):
            splits[unit] = "test" if place < test else "validation" if place < test + validation else "train"
    return [splits[unit] for unit in units]


def is_novel(one: str, other: str) -> bool:
    """Whether two labels never meet in training: a fifth of all pairs, whatever labels there are."""
    return int(_digest(" | ".join(sorted((one, other))))[:8], 16) < _NOVEL_SHARE * 2**32


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


class SlicePool:
    """The recordings that have one label, as slices.

    Attributes:
        source: what they were opened from.
        sample_rate: of clips, in Hz.
    """

    def __init__(self, recordings: Recordings, sample_rate: int) -> None:
        """Nothing is read."""
        self.source = recordings.source
        self.sample_rate = sample_rate
        self._recordings = recordings
        self._sounds: dict[int, _Sound] = {}

    @cached_property
    def by_split(self) -> Mapping[str, Mapping[str, tuple[int, ...]]]:
        """Numbers of recordings by what their label is called, in each split; without labels of a single file.

        Raises:
            UnlabelledError: no recording has a class.
            DatasetError: fewer than two labels have two files.
        """
        entries = self._recordings.entries
        usable = [number for number, entry in enumerate(entries) if has_class(entry)]
        if not usable:
            raise UnlabelledError(why_no_classes(self.source, entries))
        counts: dict[str, set[str]] = defaultdict(set)
        for number in usable:
            counts[spoken(entries[number].label)].add(entries[number].group or entries[number].sha256)
        usable = [number for number in usable if len(counts[spoken(entries[number].label)]) > 1]
        labels = {spoken(entries[number].label) for number in usable}
        if len(labels) < 2:
            raise DatasetError(
                f"{self.source} has {len(labels)} labels of two recordings or more (of different groups); scenes need "
                "2: LABEL/file.wav"
            )
        by_split: dict[str, dict[str, list[int]]] = {split: defaultdict(list) for split in SPLITS}
        for number, split in zip(usable, splits_of_files([entries[number] for number in usable]), strict=True):
            by_split[split][spoken(entries[number].label)].append(number)
        return {
            split: {label: tuple(of_label[label]) for label in sorted(of_label)} for split, of_label in by_split.items()
        }

    def pairs(self, split: str, *, novel: bool) -> list[tuple[str, str]]:
        """Pairs of labels of different kinds that have files in a split, those that meet in training or the others."""
        every = combinations(self.by_split[split], 2)
        return [pair for pair in every if self.can_meet(pair) and is_novel(*pair) == novel]

    @staticmethod
    def can_meet(labels: Iterable[str]) -> bool:
        """Whether labels are all of different kinds of sounds."""
        kinds = [category_of(label) for label in labels]
        return len(set(kinds)) == len(kinds)

    def name(self, number: int) -> str:
        """The id of a recording."""
        return self._recordings.entries[number].id

    def draw(self, split: str, label: str, most: int, rng: np.random.Generator) -> Slice:
        """A slice of a recording of a label, at most so many samples at the rate of clips.

        Raises:
            DatasetError: no recording of it has anything to hear.
        """
        numbers = self.by_split[split][label]
        for place in rng.permutation(len(numbers)):
            part = self._slice(numbers[place], min(most, round(LONGEST_SLICE * self.sample_rate)), rng)
            if part is not None:
                return part
        raise DatasetError(
            f"{self.source}: no recording of {label!r} for {split} has {SHORTEST_SOUND:g} s between silences"
        )

    def _slice(self, number: int, most: int, rng: np.random.Generator) -> Slice | None:
        sound = self._sound(number)
        whole, longest = sound.stop - sound.start, int(most * sound.rate / self.sample_rate)
        if whole < SHORTEST_SOUND * sound.rate:
            return None
        starts = [sound.start]
        if whole > longest:
            starts = [sound.start + int(rng.integers(whole - longest + 1)) for _ in range(_DRAWS)]
        length = min(whole, longest)
        powers = [_power(sound.powers, start, start + length) for start in starts]
        enough = _power(sound.powers, sound.start, sound.stop) * 10 ** (-_QUIET / 10)
        loud = next((place for place, power in enumerate(powers) if power >= enough), int(np.argmax(powers)))
        start = starts[loud]
        return Slice(number, start, start + length, round(length * self.sample_rate / sound.rate))

    def _sound(self, number: int) -> _Sound:
        if number not in self._sounds:
            waveform, rate = self._recordings.waveform(number)
            start, stop = trimmed(waveform)
            steps = np.add.reduceat(waveform**2, np.arange(0, len(waveform), _STEP))
            self._sounds[number] = _Sound(rate, start, stop, steps.astype(np.float32))
        return self._sounds[number]

    def samples(self, part: Slice) -> Samples:
        """A slice at the rate of clips, float64 [length], at a root mean square of 1; repeated to `SHORTEST_SLICE`."""
        waveform, rate = self._recordings.waveform(part.number)
        samples = resampled(waveform[part.start : part.stop], rate, self.sample_rate)
        samples = np.pad(samples, (0, max(0, part.length - len(samples))))[: part.length]
        loud = level(samples)
        if not loud > 0:
            raise DatasetError(f"{self.source}: recording {self.name(part.number)!r} is silent where it is heard")
        return np.asarray(samples / loud, np.float64)


def _power(powers: NDArray[np.float32], start: int, stop: int) -> float:
    """Mean power of a part, to whole steps."""
    return float(powers[start // _STEP : max(-(-stop // _STEP), start // _STEP + 1)].mean())
