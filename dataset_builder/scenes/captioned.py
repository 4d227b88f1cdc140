"""Captioned scenes: expressions of events, their clips, and the palettes that events are drawn from.

A leaf of an expression is one kind of event; `Then` puts parts one after the other, `Together` at one time. ``x + y``
is x and then y, ``x * y`` is x and y at the same time, as in arXiv 2310.08753, section 3.4. An expression is both the
plan of a scene and the meaning of a caption; `truth` decides whether it is true of a clip. A palette has sounds by
label and words, the labels that may meet, and those that never do in training.
"""

from __future__ import annotations

import hashlib
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate, combinations, pairwise
from types import MappingProxyType
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from audio_compositionality.support.errors import InputError

from ..data import NUMBER, TEXT, DatasetError, Kind, Pcm16, Waveform
from ..sounds.annotations import STEPS
from ..sounds.entries import LOUDNESS, Sounds, category_of, noun_of, spoken
from ..sounds.splits import by_split_and_name, classified, split_of_sounds
from .mixing import Event, EventSounds, mix


class _Combining:
    """``+`` and ``*`` of expressions."""

    def __add__(self: Expression, other: Expression) -> Then:  # type: ignore[misc]
        return Then((*_operands(self, Then), *_operands(other, Then)))

    def __mul__(self: Expression, other: Expression) -> Together:  # type: ignore[misc]
        return Together((*_operands(self, Together), *_operands(other, Together)))


@dataclass(frozen=True)
class Leaf(_Combining):
    """One kind of event.

    Attributes:
        label: of the sound: the noun of a timbre (``bell``), or a label of recordings (``dog``).
        attributes: its words, in reading order; may be empty.
    """

    label: str
    attributes: tuple[str, ...] = ()


@dataclass(frozen=True)
class Then(_Combining):
    """Two or more parts, one after the other, none of which is a `Then` itself."""

    operands: tuple[Expression, ...]

    def __post_init__(self) -> None:
        _check(self, Then)


@dataclass(frozen=True)
class Together(_Combining):
    """Two or more parts at the same time, none of which is a `Together` itself; their order means nothing."""

    operands: tuple[Expression, ...]

    def __post_init__(self) -> None:
        _check(self, Together)


Expression = Leaf | Then | Together


def _operands(expression: Expression, kind: type[Then] | type[Together]) -> tuple[Expression, ...]:
    return expression.operands if isinstance(expression, kind) else (expression,)


def _check(expression: Then | Together, kind: type) -> None:
    name = kind.__name__
    if len(expression.operands) < 2:
        raise InputError(f"{name} has {len(expression.operands)} operands; it has two or more")
    if any(isinstance(operand, kind) for operand in expression.operands):
        raise InputError(f"an operand of {name} is a {name}; give its operands instead, or join them by an operator")


def joined(kind: type[Then] | type[Together], operands: Sequence[Expression]) -> Expression:
    """Parts joined to one expression without a `Then` directly within a `Then`; a single part is itself.

    Raises:
        InputError: there is none.
    """
    parts = tuple(part for operand in operands for part in _operands(operand, kind))
    return parts[0] if len(parts) == 1 else kind(parts)


def leaves(expression: Expression) -> tuple[Leaf, ...]:
    """The leaves, in reading order."""
    if isinstance(expression, Leaf):
        return (expression,)
    return tuple(leaf for operand in expression.operands for leaf in leaves(operand))


def canonical(expression: Expression) -> Expression:
    """The same expression with the operands of every `Together` sorted: equal for equivalent ones."""
    if isinstance(expression, Leaf):
        return expression
    operands = [canonical(operand) for operand in expression.operands]
    return Then(tuple(operands)) if isinstance(expression, Then) else Together(tuple(sorted(operands, key=repr)))


def formula(expression: Expression) -> str:
    """An expression with ``+``, ``*`` and parentheses, equal for equivalent ones."""
    return _formula(canonical(expression))


def _formula(expression: Expression) -> str:
    if isinstance(expression, Leaf):
        return " ".join((*expression.attributes, expression.label))
    texts = [_formula(part) if isinstance(part, Leaf) else f"({_formula(part)})" for part in expression.operands]
    return (" + " if isinstance(expression, Then) else " * ").join(texts)


def kept(expression: Expression, places: Collection[int]) -> Expression | None:
    """The rest of an expression of which only some leaves are kept.

    Args:
        expression: any.
        places: of the kept leaves, in the order of `leaves`.

    Returns:
        the expression; None where no leaf is left.
    """
    return _kept(expression, iter(range(len(leaves(expression)))), places)


def _kept(expression: Expression, numbers: Iterator[int], places: Collection[int]) -> Expression | None:
    if isinstance(expression, Leaf):
        return expression if next(numbers) in places else None
    operands = [_kept(operand, numbers, places) for operand in expression.operands]
    remaining = [operand for operand in operands if operand is not None]
    return joined(type(expression), remaining) if remaining else None


def time_line(
    expression: Expression, span: tuple[int, int], gap: int, shares: Callable[[int], Sequence[float]]
) -> list[tuple[int, int]]:
    """The time of each leaf where an expression fills a span: start and stop, in the order of `leaves`.

    A `Then` divides its span among its parts, a `Together` gives it to each.

    Args:
        expression: any.
        span: start and stop, in samples.
        gap: samples of silence between two parts of a `Then`.
        shares: positive numbers, in proportion to which so many parts divide the rest of their span.
    """
    if isinstance(expression, Leaf):
        return [span]
    start, stop = span
    spans = [span] * len(expression.operands)
    if isinstance(expression, Then):
        sizes = list(shares(len(spans)))
        sounding = stop - start - gap * (len(spans) - 1)
        cuts = [round(sounding * sum(sizes[:place]) / sum(sizes)) for place in range(len(spans) + 1)]
        spans = [
            (start + first + gap * place, start + last + gap * place)
            for place, (first, last) in enumerate(pairwise(cuts))
        ]
    of_parts = zip(expression.operands, spans, strict=True)
    return [leaf for part, its_span in of_parts for leaf in time_line(part, its_span, gap, shares)]


def parts(expression: Expression) -> tuple[Expression, ...]:
    """Every expression that is left after some but not all leaves are removed, the largest first.

    They are its sub-trees, its single leaves, and also ``x * z`` and ``y * z`` of ``(x + y) * z``.
    """
    count = len(leaves(expression))
    every = (
        kept(expression, places) for size in range(count - 1, 0, -1) for places in combinations(range(count), size)
    )
    return tuple(dict.fromkeys(part for part in every if part is not None))


def replaced(expression: Expression, new: Sequence[Leaf]) -> Expression:
    """The same tree over other leaves, as many as it has."""
    if len(new) != len(leaves(expression)):
        raise InputError(f"{len(new)} leaves for an expression of {len(leaves(expression))}")
    return _replaced(expression, iter(new))


def _replaced(expression: Expression, new: Iterator[Leaf]) -> Expression:
    if isinstance(expression, Leaf):
        return next(new)
    return type(expression)(tuple(_replaced(operand, new) for operand in expression.operands))


SILENCE = -60.0
"""Decibels below the loudest frame: softer ends of a sound are cut off."""

CROSSFADE = 0.1
"""As a share of the shortest sound of a row."""

SHORTEST = 1.2
"""Seconds of a sound; a shorter one is repeated. Without half a crossfade at each end, more than one second is left."""

LATEST_START = 0.5
"""Seconds within which simultaneous sounds begin, at different times."""

LEVEL = 0.1
"""Root mean square of a sound whose level is 0 dB, of full scale; less where a clip would pass full scale."""

PAIR_SHARES, MOST_RATIO = (0.4, 0.6), 1.15
"""Shares of two parts in the time of a sequence; of more parts, the ratio of the largest to the smallest."""

_WINDOWS, _QUIET = 5, 10.0
"""Draws of a part of a long sound, until one is not this many decibels softer than the whole."""


@dataclass(frozen=True)
class TimedClip:
    """A drawn clip, before the lengths of its sounds are known.

    Attributes:
        tree: of its sounds, each a leaf.
        entries: number of the sound of each leaf.
        spans: of each leaf, if all sounds filled their share of the clip: first sample and the one after the last.
    """

    tree: Expression
    entries: tuple[int, ...]
    spans: tuple[tuple[int, int], ...]


@dataclass(frozen=True)
class TimedRow:
    """The clips of a row on their time line.

    Attributes:
        clips: the events of each, in the order of its leaves.
        fade: samples of the rise and of the fall of each event.
    """

    clips: tuple[tuple[Event, ...], ...]
    fade: int

    def heard(self, event: Event) -> tuple[int, int]:
        """The first sample of an event that counts, and the one after the last: half of each crossfade."""
        return event.start + self.fade // 2, event.stop - self.fade // 2


def least_share(count: int) -> float:
    """The least share of one of `count` parts of a sequence."""
    return PAIR_SHARES[0] if count == 2 else 1 / (1 + (count - 1) * MOST_RATIO)


def draw_shares(count: int, rng: np.random.Generator) -> list[float]:
    """The shares of parts in the time of a sequence: two parts at 40 to 60 %, more of them more nearly equal."""
    if count == 2:
        cut = float(rng.uniform(*PAIR_SHARES))
        return [cut, 1 - cut]
    return [float(share) for share in rng.uniform(1, MOST_RATIO, count)]


def draw_spans(tree: Expression, length: int, gap: int, rng: np.random.Generator) -> tuple[tuple[int, int], ...]:
    """The span of each leaf of a tree if it fills its share of a clip of so many samples."""
    return tuple(time_line(tree, (0, length), gap, lambda count: draw_shares(count, rng)))


def is_overlay(tree: Expression) -> bool:
    """Whether all leaves are simultaneous."""
    return isinstance(tree, Together) and all(isinstance(part, Leaf) for part in tree.operands)


def timed(
    clips: Sequence[TimedClip], gap: int, late: Sequence[float], sounds: EventSounds, rng: np.random.Generator
) -> TimedRow:
    """The clips of a row, all equally long.

    Args:
        clips: of the row; a sound in several clips is the same part of it in each.
        gap: samples of silence between two consecutive loops.
        late: of each leaf of an overlay, the share of `LATEST_START` after which it begins.
        sounds: of the clips.
        rng: draws parts of long sounds.
    """
    shortest = round(SHORTEST * sounds.sample_rate)
    parts: dict[int, Event] = {}
    for clip in clips:
        for entry, (start, stop) in zip(clip.entries, clip.spans, strict=True):
            if entry not in parts:
                parts[entry] = _part(entry, stop - start, shortest, sounds, rng)
    is_looped = any(sounds.length(entry) is None for entry in parts)
    is_joined = any(not isinstance(clip.tree, Leaf) and not is_overlay(clip.tree) for clip in clips)
    fade = 0 if is_looped or not is_joined else 2 * round(CROSSFADE / 2 * min(part.length for part in parts.values()))
    joint = gap if is_looped else -fade
    sized = [_sized(clip.tree, iter([parts[entry].length for entry in clip.entries]), joint) for clip in clips]
    lasting = max(one.length for one in sized)
    rows = []
    for clip, one in zip(clips, sized, strict=True):
        spans = _fitted(one, 0, lasting, joint)
        events = [
            Event(entry, start, stop, offset=parts[entry].offset)
            for entry, (start, stop) in zip(clip.entries, spans, strict=True)
        ]
        if is_overlay(clip.tree):
            latest = max(0, min(round(LATEST_START * sounds.sample_rate), lasting - shortest))
            events = [
                Event(event.entry, int(share * latest), event.stop, offset=event.offset)
                for event, share in zip(events, late, strict=False)
            ]
        rows.append(tuple(events))
    return TimedRow(tuple(rows), fade)


def _part(entry: int, most: int, shortest: int, sounds: EventSounds, rng: np.random.Generator) -> Event:
    """A sound by itself: a loop fills its share; of a sound longer than its share, a part that is not too soft."""
    length = sounds.length(entry)
    if length is None:
        return Event(entry, 0, most)
    if length <= most:
        return Event(entry, 0, max(length, shortest))
    hop = sounds.sample_rate // STEPS
    windows = [
        Event(entry, 0, most, offset=hop * int(rng.integers((length - most) // hop + 1))) for _ in range(_WINDOWS)
    ]
    powers = [float(sounds.powers(window).mean()) for window in windows]
    enough = float(sounds.powers(Event(entry, 0, length)).mean()) * 10 ** (-_QUIET / 10)
    loud = (window for window, power in zip(windows, powers, strict=True) if power >= enough)
    return next(loud, windows[int(np.argmax(powers))])


@dataclass(frozen=True)
class _Sized:
    """A tree and its own length in samples: a `Together` is as long as the longest of its parts."""

    tree: Expression
    length: int
    parts: tuple[_Sized, ...] = ()


def _sized(tree: Expression, lengths: Iterator[int], joint: int) -> _Sized:
    """A tree with leaves of these lengths, and so many samples between two parts of a sequence."""
    if isinstance(tree, Leaf):
        return _Sized(tree, next(lengths))
    parts = tuple(_sized(part, lengths, joint) for part in tree.operands)
    every = [part.length for part in parts]
    return _Sized(tree, sum(every) + joint * (len(every) - 1) if isinstance(tree, Then) else max(every), parts)


def _fitted(sized: _Sized, start: int, length: int, joint: int) -> list[tuple[int, int]]:
    """The span of each leaf of a tree that is given its own length or a longer one: nothing is cut."""
    if not sized.parts:
        return [(start, start + length)]
    if not isinstance(sized.tree, Then):
        return [span for part in sized.parts for span in _fitted(part, start, length, joint)]
    sounding = length - joint * (len(sized.parts) - 1)
    ends = [0, *accumulate(part.length for part in sized.parts)]
    cuts = [round(sounding * end / ends[-1]) for end in ends]
    spans: list[tuple[int, int]] = []
    for place, part in enumerate(sized.parts):
        spans += _fitted(part, start + cuts[place] + joint * place, cuts[place + 1] - cuts[place], joint)
    return spans


def mixed(row: TimedRow, sounds: EventSounds, length: int) -> list[Pcm16]:
    """The clips of a row, int16 [length], under one gain, which is below 1 only where one would pass full scale."""
    rise = np.sin(np.pi / 2 * (np.arange(row.fade) + 0.5) / max(row.fade, 1)).astype(np.float32)

    def samples_of(event: Event) -> Waveform:
        samples = sounds.samples(event)
        if row.fade:
            samples[: row.fade] *= rise
            samples[len(samples) - row.fade :] *= rise[::-1]
        return samples

    return mix(row.clips, samples_of, length, most=LEVEL)


SHARES: Mapping[str, float] = MappingProxyType({"test": 0.4, "validation": 0.15, "train": 0.45})
"""Shares of the sounds of each label, in whole groups: for test items, validation items and training rows."""

SUBSETS = ("seen", "novel")
"""Pairs of labels that meet in training, and others."""

NOVEL_SHARE = 6 / 28
"""Share of the pairs of labels."""

SECOND_TONE = 0.25
"""Fewest audible seconds of the second period of a loop."""

ACTION = "action"
"""The attribute of a word for the action that makes a sound: ``speaking``."""

EVENT: Mapping[str, Kind] = {
    "label": TEXT,
    "attributes": [TEXT],
    "dimensions": [TEXT],
    "start": NUMBER,
    "stop": NUMBER,
    "entry": TEXT,
}
"""An event of a row: its true words, the attribute of each, start and stop in seconds, and the id of its sound."""

EVENTS_MEANING = (
    "`label`, `attributes` (all words that are true of it), `dimensions` (what these are words of), `start`, `stop` "
    "(seconds), `entry` (the id of its sound)"
)

Words = Mapping[str, str]
"""Words of a sound, by attribute."""

Drawn = TypeVar("Drawn")


class Palette:
    """Sounds by split, name and words; see `Sounds`.

    A sound's name is its label as it is spoken, or with `by_noun` the agent in the label: ``man`` of "man speaking";
    the action is then a word of the sound, of the attribute `ACTION`.
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
        """The name of a sound."""
        label = self.entries[number].label
        return self.noun(spoken(label)) if self.by_noun else spoken(label)

    @staticmethod
    def noun(label: str) -> str:
        """The agent of a label; the label itself where it names no action."""
        who = noun_of(label)
        return label if who is None else who[0]

    def words(self, number: int) -> Words:
        """The words of a sound, by attribute, in reading order."""
        entry = self.entries[number]
        who = noun_of(entry.label) if self.by_noun else None
        return entry.words if who is None else {**entry.words, ACTION: who[1]}

    @cached_property
    def attributes(self) -> tuple[str, ...]:
        """The attributes of which sounds have words."""
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
        """Pairs of names of a split that can meet, by subset; of the validation split, none that are novel."""
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
        """`count` of the names that may share a training clip; None after `FEW_DRAWS` draws without success."""
        for _ in range(FEW_DRAWS):
            drawn = tuple(names[place] for place in rng.permutation(len(names))[:count])
            if len(drawn) == count and self.can_train(drawn):
                return drawn
        return None

    def said(self, split: str, name: str, attribute: str) -> tuple[str, ...]:
        """The words of an attribute among the sounds of a name in a split."""
        key = (split, name, attribute)
        if key not in self._said:
            words = (self.words(number).get(attribute) for number in self.by_split[split][name])
            self._said[key] = tuple(sorted({word for word in words if word is not None}))
        return self._said[key]

    def draw_words(self, split: str, name: str, mentioned: Iterable[str], rng: np.random.Generator) -> dict[str, str]:
        """A word of each mentioned attribute, where sounds of a name have any."""
        options = {attribute: self.said(split, name, attribute) for attribute in mentioned}
        return {attribute: words[int(rng.integers(len(words)))] for attribute, words in options.items() if words}

    def numbers(self, split: str, name: str, words: Words, seconds: float | None = None) -> NDArray[np.intp]:
        """The sounds of a name for which words are true.

        A sound whose level is not mentioned is one of the louder half, so that nothing masks a sound not called quiet.

        Args:
            split: of the sounds.
            name: of the sounds.
            words: by attribute.
            seconds: of the event: a loop that is not repeated in them is left out; by default none is.
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
        """The description of a sound: its name, and its words of some attributes."""
        of_leaf = {*mentioned, ACTION}
        return Leaf(self.name(number), tuple(word for one, word in self.words(number).items() if one in of_leaf))

    def exchanged(self, split: str, first: int, second: int, exchanged: Sequence[str], words: Words) -> list[int]:
        """The sounds of the first one's name that have the second one's words of some attributes, and else its own.

        Args:
            split: of all.
            first, second: two sounds.
            exchanged: attributes.
            words: true of both.
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
        # There may be no sounds that differ in nothing else, but their level never tells them apart.
        return [number for number in serving if self._unexchanged(number, exchanged) == kept] or serving

    def _unexchanged(self, number: int, exchanged: Collection[str]) -> dict[str, str]:
        """The words of a sound without those of some attributes."""
        return {attribute: word for attribute, word in self.words(number).items() if attribute not in exchanged}

    def distance(self, first: int, second: int, exchanged: Iterable[str]) -> float:
        """Rank difference of two sounds' values, the largest over some attributes; 0 of sounds without values."""
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
        """A row's columns of a sound: its name, its words, their attributes, and its id."""
        words = self.words(number)
        return {
            "label": self.name(number),
            "attributes": list(words.values()),
            "dimensions": list(words),
            "entry": self.entries[number].id,
        }


def subsets_of(split: str) -> tuple[str, ...]:
    """The subsets of items of a split: the validation split, by which training selects models, has no novel pair."""
    return SUBSETS if split == "test" else SUBSETS[:1]


def novel_pairs(names: Iterable[str]) -> frozenset[frozenset[str]]:
    """The pairs of names that never meet in training: 6 of 28, among which each name is about equally frequent.

    They depend on the names alone: they are new to a model, whatever seed it was trained with.
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


MOST_DRAWS = 20_000
"""Draws of the sounds of an item; after so many refused ones, none or hardly any are left."""

FEW_DRAWS = 50
"""Refused draws after which an item may repeat the sounds of an earlier one, where that is allowed."""


def draw_until(
    draw: Callable[[], Drawn | None],
    drawn: set[Any],
    scenes_of: Callable[[Drawn], Iterable[Any]],
    repeats: bool,
    most: int | None = None,
) -> Drawn | None:
    """The first draw that succeeds with scenes that were not drawn before.

    Args:
        draw: draws anew; None where a draw fails.
        drawn: earlier scenes; the new ones are added.
        scenes_of: the scenes of a draw.
        repeats: whether scenes may come again where there are no others left.
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
