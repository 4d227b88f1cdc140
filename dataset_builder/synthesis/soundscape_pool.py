"""Isolated sounds by label: which are for training and which for test, what is measured of each, and draws of them."""

from __future__ import annotations

from collections import Counter, OrderedDict, defaultdict
from collections.abc import Collection, Mapping, Sequence
from functools import cached_property

import numpy as np

from audio_compositionality.support.files import sha256_of
from audio_compositionality.support.text import listed, shown

from ..annotations.base import label_text
from ..data import DatasetError
from ..questions.templates import spoken
from ..recordings.protocol import Recording, Recordings
from .pool import UnlabelledError, evenly, has_class, why_no_classes
from .soundscapes import SHORTEST_SOUND, Heard, at_rate, measured
from .transforms.base import Samples

SPLITS = ("train", "test")

_TEST_SHARE = 0.4
"""Of the files of a label, or of the groups that have several labels."""

_KEPT = 64
"""Recordings whose samples are kept."""


def splits_of_sounds(entries: Sequence[Recording]) -> list[str]:
    """The split of each recording: whole groups; labels of a single file are dealt to the splits in turn.

    Where a group has several labels, as a speaker has who says all words, groups are divided and not files of labels.
    """
    units = [entry.group or entry.sha256 for entry in entries]
    labels: dict[str, set[str]] = defaultdict(set)
    for entry, unit in zip(entries, units, strict=True):
        labels[unit].add(label_text(entry.label))
    are_shared = any(len(of_unit) > 1 for of_unit in labels.values())
    members: dict[str, set[str]] = defaultdict(set)
    for entry, unit in zip(entries, units, strict=True):
        members["" if are_shared else label_text(entry.label)].add(unit)
    splits: dict[str, str] = {}
    single = sorted((label for label, of_label in members.items() if len(of_label) == 1), key=_digest)
    for place, label in enumerate(single):
        splits[members[label].copy().pop()] = SPLITS[(place + 1) % 2]
    for of_label in members.values():
        ordered = sorted(of_label, key=_digest)
        test = max(1, round(_TEST_SHARE * len(ordered)))
        for place, unit in enumerate(ordered):
            splits.setdefault(unit, "test" if place < test else "train")
    return [splits[unit] for unit in units]


def _digest(text: str) -> str:
    return sha256_of(text.encode())


class SoundPool:
    """The recordings that have one label.

    Attributes:
        source: what they were opened from.
        sample_rate: of clips, in Hz.
        silence: decibels below the loudest frame of a recording; what is softer is silent.
    """

    def __init__(self, recordings: Recordings, sample_rate: int, silence: float) -> None:
        """Nothing is read."""
        self.source = recordings.source
        self.sample_rate = sample_rate
        self.silence = silence
        self._recordings = recordings
        self._heard: dict[int, Heard | None] = {}
        self._samples: OrderedDict[int, Samples] = OrderedDict()

    @cached_property
    def by_split(self) -> Mapping[str, Mapping[str, tuple[int, ...]]]:
        """Numbers of recordings by label, in each split; a label is in words, without underscores.

        Raises:
            UnlabelledError: no recording has a class.
            DatasetError: two labels read alike in a question.
        """
        entries = self._recordings.entries
        usable = [number for number, entry in enumerate(entries) if has_class(entry)]
        if not usable:
            raise UnlabelledError(why_no_classes(self.source, entries, "questions are asked"))
        self._check_labels([entries[number].label for number in usable])
        by_split: dict[str, dict[str, list[int]]] = {split: defaultdict(list) for split in SPLITS}
        for number, split in zip(usable, splits_of_sounds([entries[number] for number in usable]), strict=True):
            by_split[split][label_text(entries[number].label)].append(number)
        return {
            split: {label: tuple(of_label[label]) for label in sorted(of_label)} for split, of_label in by_split.items()
        }

    def _check_labels(self, labels: Sequence[str]) -> None:
        spellings: dict[str, str] = {}
        for label in labels:
            first = spellings.setdefault(spoken(label_text(label)), label)
            if first != label:
                raise DatasetError(
                    f"{self.source}: the labels {first!r} and {label!r} read alike in a question; write one way"
                )

    def check_enough(self, splits: Collection[str], count: int) -> None:
        """Refuse recordings of too few labels.

        Args:
            splits: that have to have so many.
            count: labels that are needed in each.

        Raises:
            DatasetError: says what there is and what is needed.
        """
        counts = {split: len(of_split) for split, of_split in self.by_split.items()}
        if all(counts[split] >= count for split in splits):
            return
        there = listed([f"{counts[split]} for {split}" for split in splits])
        labels = {label for of_split in self.by_split.values() for label in of_split}
        few = sorted(label for label in labels if sum(label in of_split for of_split in self.by_split.values()) < 2)
        alone = f"; of one file, or of one group, {'is' if len(few) == 1 else 'are'} {shown(few)}" if few else ""
        raise DatasetError(
            f"{self.source} has {len(labels)} labels, {there}{alone}. Questions need {count} labels in each: one is in "
            f"both where it has two files of different groups; {count} labels with two files each are enough, or "
            f"{2 * count} with one; --set train_groups=0 needs none for train"
        )

    def name(self, number: int) -> str:
        """The id of a recording."""
        return self._recordings.entries[number].id

    def draw_labels(
        self, split: str, count: int, use: Counter[str], rng: np.random.Generator
    ) -> tuple[str, ...] | None:
        """So many labels, those that were drawn least first; None where there are not so many that may meet.

        Labels of which one says more than the other, such as ``dog`` and ``dog barking``, do not meet.
        """
        labels: list[str] = []
        for label in evenly(list(self.by_split[split]), use, rng):
            if not any(_says_more(label, drawn) or _says_more(drawn, label) for drawn in labels):
                labels.append(label)
            if len(labels) == count:
                return tuple(labels)
        return ()

    def heard(self, number: int) -> Heard | None:
        """What is measured of a recording; None where less than `SHORTEST_SOUND` of it is heard."""
        if number not in self._heard:
            heard = measured(self.samples(number), self.sample_rate, self.silence)
            self._heard[number] = heard if len(heard.powers) >= round(SHORTEST_SOUND * 100) else None
        return self._heard[number]

    def samples(self, number: int) -> Samples:
        """A recording at the rate of clips."""
        if number not in self._samples:
            waveform, rate = self._recordings.waveform(number)
            samples = at_rate(waveform, rate, self.sample_rate)
            if not np.any(samples):
                raise DatasetError(f"{self.source}: recording {self.name(number)!r} is silent; leave it out")
            self._samples[number] = samples
            if len(self._samples) > _KEPT:
                self._samples.popitem(last=False)
        self._samples.move_to_end(number)
        return self._samples[number]


def _says_more(label: str, other: str) -> bool:
    """Whether a label has all words of another."""
    return set(spoken(other).casefold().split()) <= set(spoken(label).casefold().split())
