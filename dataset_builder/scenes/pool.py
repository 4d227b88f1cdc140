"""Sounds by label and condition, and draws among them that use all as evenly as they can be."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from audio_compositionality.support.text import listed

from ..data import DatasetError
from ..sounds.checks import classified
from ..sounds.entries import Sounds, SoundsField, related
from ..sounds.tones import HeardSpec
from .sources import LONGEST_DURATION

Item = TypeVar("Item")

Cell = Mapping[str, Sequence[int]]
"""Numbers of recordings by their label."""

_MOST_PAIRS = 200
"""Pairs of conditions that are tried where groups forbid one after the other."""

_ATTEMPTS = 5
"""Orders of labels that are tried with a pair."""


class SoundsSpec(HeardSpec):
    """What specs of clips of any sounds have in common."""

    seed: int = Field(0, ge=0, le=2**63 - 1, description="Of every random choice.")
    domain: str = Field(
        "", description="What the sounds are, in a word, for the rows: `words`; by default what they are called."
    )
    duration: float = Field(2.5, ge=0.25, le=LONGEST_DURATION, description="Seconds of a clip.")
    sample_rate: int = Field(16_000, ge=8_000, le=192_000, description="Hz of every clip; sounds are brought to it.")
    sounds: SoundsField = Field(
        None, repr=False, description="That clips are made of; by default tones of the project's own voices."
    )

    @property
    def num_samples(self) -> int:
        """Samples of a clip."""
        return round(self.duration * self.sample_rate)


@dataclass(frozen=True)
class Use:
    """How often each thing has been drawn so far.

    Attributes:
        labels: in the role that counts.
        recordings: by number.
        conditions: by name.
        pairs: of conditions, in no order.
    """

    labels: Counter[str] = field(default_factory=Counter)
    recordings: Counter[int] = field(default_factory=Counter)
    conditions: Counter[str] = field(default_factory=Counter)
    pairs: Counter[frozenset[str]] = field(default_factory=Counter)


@dataclass(frozen=True)
class Sides:
    """One recording of each of some labels on two sides, no group on both.

    Attributes:
        conditions: of the two sides; empty where recordings have none.
        labels: of the pairs.
        first, second: numbers of the recordings of each side.
    """

    conditions: tuple[str, str]
    labels: tuple[str, ...]
    first: tuple[int, ...]
    second: tuple[int, ...]


class SoundPool:
    """Sounds that have a class: a label that is no number.

    Attributes:
        sounds: all of them.
        source: what they were opened from.
        entries: all of them, with those that have no class.
        by_label: numbers of the recordings of each label, labels in alphabetical order.
        has_conditions: whether any recording has one.
        by_condition: the same within each condition, without recordings that have none; all recordings under the empty
            name where none has one.
    """

    def __init__(self, sounds: Sounds) -> None:
        """Sort them; nothing is read.

        Raises:
            UnlabelledError: none has a class.
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
        """All labels, in alphabetical order."""
        return list(self.by_label)

    def group(self, number: int) -> str:
        """The group of a recording; its own where it is in none."""
        entry = self.entries[number]
        return f"group {entry.group}" if entry.group else f"recording {number}"

    def groups(self, label: str) -> int:
        """In how many groups the recordings of a label are."""
        return len({self.group(number) for number in self.by_label[label]})

    @cached_property
    def _shared(self) -> tuple[list[str], NDArray[np.float32]]:
        """The conditions, and which labels each has, [conditions, labels]."""
        conditions, places = list(self.by_condition), {label: place for place, label in enumerate(self.labels)}
        table = np.zeros((len(conditions), len(places)), np.float32)
        for row, condition in zip(table, conditions, strict=True):
            row[[places[label] for label in self.by_condition[condition]]] = 1
        return conditions, table

    def pairs(self, least: int, use: Use, rng: np.random.Generator, *, unrelated: bool) -> Iterator[tuple[str, str]]:
        """Two different conditions that share labels, those that were drawn least first; two empty ones without any.

        Args:
            least: how many labels they share at least.
            use: what was drawn before.
            rng: decides between those that were drawn equally often.
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
        """The most labels that two different conditions share, and which two; None where there are no two."""
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

    def draw_sides(self, count: int, use: Use, rng: np.random.Generator, *, unrelated: bool) -> Sides | None:
        """Recordings of so many labels under two conditions, or in two groups where there are no conditions.

        What was drawn least comes first: pairs of conditions, then labels, then recordings; `use` counts the draw.

        Returns:
            None where there are no such recordings.
        """
        for number, conditions in enumerate(self.pairs(count, use, rng, unrelated=unrelated)):
            if number == _MOST_PAIRS:
                return None
            first, second = (self.by_condition[name] for name in conditions)
            shared = [label for label in first if label in second]
            for _ in range(_ATTEMPTS):
                sides = self._sides(conditions, evenly(shared, use.labels, rng), count, use, rng)
                if sides is not None:
                    use.labels.update(sides.labels)
                    use.recordings.update((*sides.first, *sides.second))
                    use.conditions.update(conditions)
                    use.pairs[frozenset(conditions)] += 1
                    return sides
        return None

    def _sides(
        self, conditions: tuple[str, str], labels: Sequence[str], count: int, use: Use, rng: np.random.Generator
    ) -> Sides | None:
        """The first labels that allow it; None where they are fewer than wanted."""
        cells = [self.by_condition[name] for name in conditions]
        taken: tuple[set[str], set[str]] = (set(), set())
        pairs: dict[str, tuple[int, int]] = {}
        for label in labels:
            candidates = [
                [n for n in evenly(cell[label], use.recordings, rng) if self.group(n) not in taken[1 - side]]
                for side, cell in enumerate(cells)
            ]
            pair = self._two_groups(*candidates)
            if pair is not None:
                pairs[label] = pair
                for side, number in zip(taken, pair, strict=True):
                    side.add(self.group(number))
            if len(pairs) == count:
                first, second = zip(*pairs.values(), strict=True)
                return Sides(conditions, tuple(pairs), first, second)
        return None

    def _two_groups(self, first: Sequence[int], second: Sequence[int]) -> tuple[int, int] | None:
        """One of each that are of different groups, the first where they can be."""
        if not first or not second:
            return None
        other = next((n for n in second if self.group(n) != self.group(first[0])), None)
        if other is not None:
            return first[0], other
        # All of the second side are of one group.
        one = next((n for n in first if self.group(n) != self.group(second[0])), None)
        return None if one is None else (one, second[0])

    def draw_recordings(
        self, labels: Sequence[str], use: Use, rng: np.random.Generator, conditions: Sequence[str] = ()
    ) -> tuple[int, ...]:
        """A recording of each label, those that were drawn least first; `use` counts them.

        Args:
            labels: of the recordings.
            use: what was drawn before.
            rng: decides between those that were drawn equally often.
            conditions: of each; by default any.
        """
        cells = [self.by_condition[name] for name in conditions] or [self.by_label] * len(labels)
        drawn = tuple(least_drawn(cell[label], use.recordings, rng) for cell, label in zip(cells, labels, strict=True))
        use.recordings.update(drawn)
        return drawn

    def draw_labels(
        self, count: int, without: Sequence[str], use: Counter[str], rng: np.random.Generator
    ) -> tuple[str, ...]:
        """So many labels that are not among some, those that were drawn least first; `use` counts them.

        Raises:
            DatasetError: there are not as many.
        """
        allowed = [label for label in self.by_label if label not in without]
        if len(allowed) < count:
            raise DatasetError(
                f"{self.source} has {len(self.by_label)} labels; {count} are needed"
                f"{f' beside {listed(without)}' if without else ''}"
            )
        drawn = tuple(evenly(allowed, use, rng)[:count])
        use.update(drawn)
        return drawn

    def ids(self, numbers: Sequence[int]) -> list[str]:
        """The names of sounds."""
        return [self.entries[number].id for number in numbers]

    def labels_of(self, numbers: Sequence[int]) -> list[str]:
        """The labels of sounds."""
        return [self.entries[number].label for number in numbers]

    def why_no_sides(self, count: int, *, unrelated: bool) -> str:
        """Why there are no two conditions or groups with so many classes, and the nearest that works.

        Args:
            count: of the classes.
            unrelated: see `pairs`.
        """
        if not self.has_conditions:
            return self._too_few_groups(count)
        best, pair = self.best_pair(unrelated=unrelated)
        if best >= count:
            return (
                f"{self.source}: {count} classes need recordings under two conditions, and no group under both; the "
                f"groups of these recordings do not allow that: --set classes={max(2, count - 1)}, or other groups"
            )
        if pair is not None:
            names = " and ".join(map(repr, pair))
            nearest = f": --set classes={best}" if best >= 2 else ""
            text = (
                f"{self.source} has no two {'unrelated ' if unrelated else ''}conditions that share {count} labels; "
                f"{names} share most, {best}{nearest}"
            )
            return f"{text}; or leave conditions out: LABEL/file" if best < 2 else text
        names = listed([repr(name) for name in self.by_condition])
        if unrelated and len(self.by_condition) > 1:
            return (
                f"{self.source} has {len(self.by_condition)} conditions, all related ({names}): the two sides of a "
                "block need two that have nothing in common, such as another engine; --set unrelated=false allows "
                "related ones"
            )
        return f"{self.source} has one condition ({names}); two are needed"

    def _too_few_groups(self, count: int) -> str:
        single = [label for label in self.by_label if self.groups(label) < 2]
        serving = len(self.by_label) - len(single)
        text = f"{self.source}: {count} classes need labels with two recordings each, of different groups; "
        if serving >= count:
            nearest = f"--set classes={max(2, count - 1)}"
            return f"{text}the groups of these recordings do not allow that: {nearest}, or other groups"
        names = f"{listed([repr(label) for label in single])} {'has' if len(single) == 1 else 'have'} one only"
        nearest = f": --set classes={serving}" if serving >= 2 else ""
        return f"{text}{serving} of {len(self.by_label)} have them, {names}{nearest}"


def evenly(items: Sequence[Item], use: Counter[Item], rng: np.random.Generator) -> list[Item]:
    """Items in the order in which to draw them: those that were drawn least first, among them at random."""
    shuffled = [items[place] for place in rng.permutation(len(items))]
    return sorted(shuffled, key=lambda item: use[item])


def least_drawn(items: Sequence[Item], use: Counter[Item], rng: np.random.Generator) -> Item:
    """One of the items that were drawn least, at random."""
    counts = [use[item] for item in items]
    least = min(counts)
    places = [place for place, count in enumerate(counts) if count == least]
    return items[places[int(rng.integers(len(places)))]]
