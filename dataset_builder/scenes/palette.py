"""Sounds by what can be said of them: labels and words, which labels may meet, and which never do in training."""

from __future__ import annotations

import hashlib
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from functools import cached_property
from itertools import combinations
from types import MappingProxyType
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from ..data import DatasetError
from ..sounds.checks import classified
from ..sounds.entries import Sounds
from ..sounds.splits import by_split_and_name, split_of_sounds
from ..sounds.words import LOUDNESS, category_of, noun_of, spoken
from .captioned import Leaf
from .sources import random_generator

SHARES: Mapping[str, float] = MappingProxyType({"test": 0.4, "validation": 0.15, "train": 0.45})
"""Of the sounds of each label, in whole groups: those of test items, of validation, and of training rows."""

SUBSETS = ("seen", "novel")
"""Pairs of labels that meet in training, and others."""

NOVEL_SHARE = 6 / 28
"""Of the pairs of labels."""

SECOND_TONE = 0.25
"""Seconds that are heard of the second period of a loop, at least."""

ACTION = "action"
"""The attribute of a word that says how a sound is made: ``speaking``."""

Words = Mapping[str, str]
"""Words of a sound, by attribute."""

Drawn = TypeVar("Drawn")


class Palette:
    """Sounds by split, name and words; see `Sounds`.

    A sound's name is its label as it is said, or where `by_noun`, what its label says makes it: ``man`` of "man
    speaking", which is then a word of it as well, of the attribute `ACTION`.
    """

    def __init__(self, sounds: Sounds, *, by_noun: bool = False, different_kinds: bool = False) -> None:
        """Nothing is read.

        Args:
            sounds: with labels.
            by_noun: see `Palette`.
            different_kinds: whether labels that meet are of different kinds of sounds, see `category_of`.
        """
        self.sounds = sounds
        self.source = sounds.source
        self.entries = sounds.entries
        self.by_noun = by_noun
        self.different_kinds = different_kinds
        self._cells: dict[tuple[Any, ...], tuple[NDArray[np.intp], NDArray[np.float64]]] = {}
        self._said: dict[tuple[Any, ...], tuple[str, ...]] = {}

    @cached_property
    def by_split(self) -> Mapping[str, Mapping[str, tuple[int, ...]]]:
        """Numbers of sounds by name, in each split; without labels of a single sound or group.

        Raises:
            UnlabelledError: no sound has a class.
            DatasetError: fewer than two labels have two sounds.
        """
        labelled = classified(self.sounds, "scenes are mixed")
        groups: dict[str, set[str]] = defaultdict(set)
        for number in labelled:
            entry = self.entries[number]
            groups[spoken(entry.label)].add(entry.group or entry.sha256)
        usable = [number for number in labelled if len(groups[spoken(self.entries[number].label)]) > 1]
        labels = {spoken(self.entries[number].label) for number in usable}
        if len(labels) < 2:
            raise DatasetError(
                f"{self.source} has {len(labels)} labels of two recordings or more (of different groups); scenes need "
                "2: LABEL/file.wav"
            )
        splits = split_of_sounds([self.entries[number] for number in usable], SHARES)
        return by_split_and_name(zip(splits, map(self.name, usable), usable, strict=True), tuple(SHARES))

    def name(self, number: int) -> str:
        """What a sound is called."""
        label = self.entries[number].label
        return self.noun(spoken(label)) if self.by_noun else spoken(label)

    @staticmethod
    def noun(label: str) -> str:
        """What makes a sound of a label; the label itself where it does not say how."""
        who = noun_of(label)
        return label if who is None else who[0]

    def words(self, number: int) -> Words:
        """The words of a sound, by attribute, in the order in which they are read."""
        entry = self.entries[number]
        who = noun_of(entry.label) if self.by_noun else None
        return entry.words if who is None else {**entry.words, ACTION: who[1]}

    @cached_property
    def attributes(self) -> tuple[str, ...]:
        """The attributes that sounds have words of."""
        every = (number for of_split in self.by_split.values() for numbers in of_split.values() for number in numbers)
        return tuple(sorted({attribute for number in every for attribute in self.words(number)}))

    @cached_property
    def novel(self) -> frozenset[frozenset[str]]:
        """The pairs of nouns that never meet in training."""
        return novel_pairs(self.noun(name) for of_split in self.by_split.values() for name in of_split)

    def subset(self, names: Sequence[str]) -> str:
        """``seen`` if two names can meet in training, ``novel`` if they never do; empty if they are of one kind."""
        if not self.can_meet(names):
            return ""
        return SUBSETS[frozenset(map(self.noun, names)) in self.novel]

    def can_meet(self, names: Sequence[str]) -> bool:
        """Whether names may be in one clip."""
        kinds = set(map(category_of, names)) if self.different_kinds else set(names)
        return len(kinds) == len(names)

    def pairs(self, split: str) -> Mapping[str, list[tuple[str, str]]]:
        """Pairs of names that can meet by subset, of those that a split has; of validation without novel ones."""
        by_subset: dict[str, list[tuple[str, str]]] = {subset: [] for subset in subsets_of(split)}
        for pair in combinations(self.by_split[split], 2):
            subset = self.subset(pair)
            if subset in by_subset:
                by_subset[subset].append(pair)
        return {subset: pairs for subset, pairs in by_subset.items() if pairs}

    def can_train(self, names: Sequence[str]) -> bool:
        """Whether names may be in one clip for training."""
        return all(self.subset(pair) == "seen" for pair in combinations(names, 2))

    def draw_meeting(self, count: int, names: Sequence[str], rng: np.random.Generator) -> tuple[str, ...] | None:
        """So many of some names that can be in one clip for training; None after `FEW_DRAWS` that cannot."""
        for _ in range(FEW_DRAWS):
            drawn = tuple(names[place] for place in rng.permutation(len(names))[:count])
            if len(drawn) == count and self.can_train(drawn):
                return drawn
        return None

    def said(self, split: str, name: str, attribute: str) -> tuple[str, ...]:
        """The words of an attribute that sounds of a name have in a split."""
        key = (split, name, attribute)
        if key not in self._said:
            words = (self.words(number).get(attribute) for number in self.by_split[split][name])
            self._said[key] = tuple(sorted({word for word in words if word is not None}))
        return self._said[key]

    def draw_words(self, split: str, name: str, mentioned: Iterable[str], rng: np.random.Generator) -> dict[str, str]:
        """A word of each attribute that is mentioned, where sounds of a name have any."""
        options = {attribute: self.said(split, name, attribute) for attribute in mentioned}
        return {attribute: words[int(rng.integers(len(words)))] for attribute, words in options.items() if words}

    def numbers(self, split: str, name: str, words: Words, seconds: float | None = None) -> NDArray[np.intp]:
        """The sounds of a name that words are true of.

        One of which no level is said is of the louder half, so that nothing is masked that nobody calls quiet.

        Args:
            split: of the sounds.
            name: of the sounds.
            words: by attribute.
            seconds: that it lasts: a loop that is not heard twice in them is left out; by default none is.
        """
        key = (split, name, *sorted(words.items()))
        if key not in self._cells:
            fitting = [
                number
                for number in self.by_split[split].get(name, ())
                if words.items() <= self.words(number).items()
                and (not words.keys().isdisjoint(LOUDNESS) or self.entries[number].level >= self._middle_level)
            ]
            of_fitting = [self.entries[number].loop for number in fitting]
            self._cells[key] = np.array(fitting, np.intp), np.array(of_fitting, np.float64)
        numbers, loops = self._cells[key]
        return numbers if seconds is None else numbers[(loops == 0) | (loops + SECOND_TONE <= seconds)]

    @cached_property
    def _middle_level(self) -> float:
        levels = [entry.level for entry in self.entries]
        return (min(levels) + max(levels)) / 2

    def leaf(self, number: int, mentioned: Iterable[str]) -> Leaf:
        """What is said of a sound: its name, and its words of some attributes."""
        of_leaf = {*mentioned, ACTION}
        return Leaf(self.name(number), tuple(word for one, word in self.words(number).items() if one in of_leaf))

    def exchanged(self, split: str, first: int, second: int, exchanged: Sequence[str], words: Words) -> list[int]:
        """The sounds of the first one's name that have what the second has of some attributes, and all else as it.

        Args:
            split: of all.
            first, second: two sounds.
            exchanged: attributes.
            words: that are true of them.
        """
        one, other = self.entries[first].values, self.entries[second].values
        values = {attribute: (other if attribute in exchanged else one)[attribute] for attribute in one}
        key = (split, "exactly", self.name(first), *sorted(values.items()))
        if key not in self._cells:
            same = [n for n in self.by_split[split][self.name(first)] if self.entries[n].values == values]
            self._cells[key] = np.array(same, np.intp), np.zeros(0)
        kept = self._unexchanged(first, exchanged)
        serving = [
            number
            for number in self._cells[key][0].tolist()
            if words.items() <= self.words(number).items()
            and all(self._unexchanged(number, exchanged).get(name) == kept.get(name) for name in LOUDNESS)
        ]
        # Of sounds that differ in nothing else there may be none, but their level never tells them apart.
        return [number for number in serving if self._unexchanged(number, exchanged) == kept] or serving

    def _unexchanged(self, number: int, exchanged: Collection[str]) -> dict[str, str]:
        """The words of a sound but for some attributes."""
        return {attribute: word for attribute, word in self.words(number).items() if attribute not in exchanged}

    def distance(self, first: int, second: int, exchanged: Iterable[str]) -> float:
        """Values of an attribute that lie from one sound's to the other's, the most of some; 0 of sounds without."""
        one, other = self.entries[first].values, self.entries[second].values
        steps = [
            abs(self._ranks[name][one[name]] - self._ranks[name][other[name]]) for name in exchanged if name in one
        ]
        return float(max(steps, default=0))

    @cached_property
    def _ranks(self) -> Mapping[str, Mapping[float, int]]:
        values: dict[str, set[float]] = defaultdict(set)
        for entry in self.entries:
            for attribute, value in entry.values.items():
                values[attribute].add(value)
        return {name: {value: rank for rank, value in enumerate(sorted(every))} for name, every in values.items()}

    def of_entry(self, number: int) -> dict[str, Any]:
        """What a row says of a sound: what it is called, its words, the attributes that these are of, and its id."""
        words = self.words(number)
        return {
            "label": self.name(number),
            "attributes": list(words.values()),
            "dimensions": list(words),
            "entry": self.entries[number].id,
        }


def subsets_of(split: str) -> tuple[str, ...]:
    """The subsets that items of a split are of: what chooses among models in training has no pair that is novel."""
    return SUBSETS if split == "test" else SUBSETS[:1]


def novel_pairs(names: Iterable[str]) -> frozenset[frozenset[str]]:
    """The pairs of names that never meet in training: 6 of 28, among which each name is about equally often.

    They depend on the names alone: whatever seed a model was trained with, they are new to it.
    """
    every = sorted(set(names))
    pairs = sorted((frozenset(pair) for pair in combinations(every, 2)), key=_digest)
    count = round(len(pairs) * NOVEL_SHARE)
    uses: Counter[str] = Counter()
    novel: set[frozenset[str]] = set()
    most = 2 * count // max(len(every), 1)
    while len(novel) < count:
        for pair in pairs:
            if len(novel) < count and pair not in novel and all(uses[name] < most for name in pair):
                novel.add(pair)
                uses.update(pair)
        most += 1
    return frozenset(novel)


def _digest(pair: frozenset[str]) -> str:
    return hashlib.sha256(" | ".join(sorted(pair)).encode()).hexdigest()


def dealt(options: Sequence[Any], number: int, seed: int, stream: int, *place: int) -> Any:
    """What is dealt to an item if each option is dealt once before one is dealt again, in an order that is drawn.

    Args:
        options: to deal.
        number: of the item, from 0.
        seed, stream, place: of the random numbers, see `random_generator`.
    """
    turn, position = divmod(number, len(options))
    return options[int(random_generator(seed, stream, *place, turn).permutation(len(options))[position])]


MOST_DRAWS = 20_000
"""Of the sounds of an item; after as many that no item may have, there are none left, or hardly any."""

FEW_DRAWS = 50
"""After as many, an item may have sounds that one before has, where that is allowed."""


def draw_until(
    draw: Callable[[], Drawn | None],
    drawn: set[Any],
    scenes_of: Callable[[Drawn], Iterable[Any]],
    repeats: bool,
    most: int | None = None,
) -> Drawn | None:
    """What is drawn first that serves, and is of no scene that was drawn before.

    Args:
        draw: draws anew; None where that does not serve.
        drawn: scenes; those of what is drawn are added.
        scenes_of: the scenes of what is drawn.
        repeats: whether scenes may come again where others run out.
        most: draws; by default `MOST_DRAWS`.

    Returns:
        None where there is none left.
    """
    for attempt in range(MOST_DRAWS if most is None else most):
        one = draw()
        scenes = () if one is None else set(scenes_of(one))
        if one is not None and (drawn.isdisjoint(scenes) or (repeats and attempt >= FEW_DRAWS)):
            drawn.update(scenes)
            return one
    return None
