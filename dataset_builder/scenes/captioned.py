"""Captioned scenes: expressions of events, their clips, and the palettes from which events are drawn.

A leaf of an expression is one kind of event; `Then` puts parts one after the other, `Together` at the same time. ``x +
y`` is x and then y, ``x * y`` is x and y at the same time, as in arXiv 2310.08753, section 3.4. An expression is both
the plan of a scene and the meaning of a caption; `truth` decides whether it is true of a clip. A palette contains
sounds by label and words, the labels that may occur together, and the labels that never do in training.
"""

from __future__ import annotations

import hashlib
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations, pairwise
from types import MappingProxyType
from typing import Any

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

    def __add__(self: Expression, other: Expression) -> Expression:  # type: ignore[misc]
        return joined(Then, (self, other))

    def __mul__(self: Expression, other: Expression) -> Expression:  # type: ignore[misc]
        return joined(Together, (self, other))


@dataclass(frozen=True)
class Leaf(_Combining):
    """One kind of event.

    Attributes:
        label: label of the sound: the noun of a timbre (``bell``), or a label of recordings (``dog``).
        attributes: words for its attributes, in reading order; may be empty.
    """

    label: str
    attributes: tuple[str, ...] = ()


@dataclass(frozen=True)
class _Joint(_Combining):
    """Two or more parts; none is a joint of the same kind."""

    operands: tuple[Expression, ...]

    def __post_init__(self) -> None:
        name = type(self).__name__
        if len(self.operands) < 2:
            raise InputError(f"{name} has {len(self.operands)} operands; it must have two or more")
        if any(type(operand) is type(self) for operand in self.operands):
            raise InputError(
                f"an operand of {name} is a {name}; give its operands instead, or join them by an operator"
            )


class Then(_Joint):
    """Two or more parts, one after the other; none is a `Then` itself."""


class Together(_Joint):
    """Two or more parts at the same time, in any order; none is a `Together` itself."""


Expression = Leaf | Then | Together


def joined(kind: type[Then] | type[Together], operands: Iterable[Expression]) -> Expression:
    """Join parts to one expression without a `Then` directly within a `Then`; a single part is returned unchanged.

    Raises:
        InputError: there are no parts.
    """
    parts: list[Expression] = []
    for operand in operands:
        parts += operand.operands if isinstance(operand, kind) else (operand,)
    return parts[0] if len(parts) == 1 else kind(tuple(parts))


def leaves(expression: Expression) -> tuple[Leaf, ...]:
    """Return the leaves, in reading order."""
    if isinstance(expression, Leaf):
        return (expression,)
    return tuple(leaf for operand in expression.operands for leaf in leaves(operand))


def canonical(expression: Expression) -> Expression:
    """Return the expression with the operands of every `Together` sorted: equal for equivalent expressions."""
    if isinstance(expression, Leaf):
        return expression
    operands = [canonical(operand) for operand in expression.operands]
    return Then(tuple(operands)) if isinstance(expression, Then) else Together(tuple(sorted(operands, key=repr)))


def formula(expression: Expression) -> str:
    """Return an expression with ``+``, ``*`` and parentheses, equal for equivalent expressions."""
    return _formula(canonical(expression))


def _formula(expression: Expression) -> str:
    if isinstance(expression, Leaf):
        return " ".join((*expression.attributes, expression.label))
    texts = [_formula(part) if isinstance(part, Leaf) else f"({_formula(part)})" for part in expression.operands]
    return (" + " if isinstance(expression, Then) else " * ").join(texts)


def time_line(
    expression: Expression, span: tuple[int, int], gap: int, shares: Callable[[Then], Sequence[float]]
) -> list[tuple[int, int]]:
    """Return the time of each leaf if an expression fills a span: start and stop, in the order of `leaves`.

    A `Then` divides its span among its parts, a `Together` gives it to each.

    Args:
        expression: any.
        span: start and stop, in samples.
        gap: samples of silence between two parts of a `Then`; negative if they overlap.
        shares: returns positive weights, by which the parts of a `Then` divide the rest of their span.
    """
    if isinstance(expression, Leaf):
        return [span]
    start, stop = span
    spans = [span] * len(expression.operands)
    if isinstance(expression, Then):
        sizes = list(shares(expression))
        sounding = stop - start - gap * (len(spans) - 1)
        cuts = [round(sounding * sum(sizes[:place]) / sum(sizes)) for place in range(len(spans) + 1)]
        spans = [
            (start + first + gap * place, start + last + gap * place)
            for place, (first, last) in enumerate(pairwise(cuts))
        ]
    of_parts = zip(expression.operands, spans, strict=True)
    return [leaf for part, its_span in of_parts for leaf in time_line(part, its_span, gap, shares)]


def parts(expression: Expression) -> tuple[Expression, ...]:
    """Return every expression that remains after removing some but not all leaves, the largest first.

    They are its subtrees, its single leaves, and also ``x * z`` and ``y * z`` of ``(x + y) * z``.
    """
    every = leaves(expression)
    found: dict[Expression, None] = {}
    for size in range(len(every) - 1, 0, -1):
        for places in combinations(range(len(every)), size):
            part = _rebuilt(expression, (leaf if n in places else None for n, leaf in enumerate(every)))
            if part is not None:
                found[part] = None
    return tuple(found)


def replaced(expression: Expression, new: Sequence[Leaf]) -> Expression:
    """Return the same tree over other leaves, as many as it has."""
    tree = _rebuilt(expression, iter(new)) if len(new) == len(leaves(expression)) else None
    if tree is None:
        raise InputError(f"{len(new)} leaves for an expression of {len(leaves(expression))}")
    return tree


def _rebuilt(expression: Expression, new: Iterator[Leaf | None]) -> Expression | None:
    """Return the tree over new leaves; leaves can be None; None if all are."""
    if isinstance(expression, Leaf):
        return next(new)
    operands = [_rebuilt(operand, new) for operand in expression.operands]
    remaining = [operand for operand in operands if operand is not None]
    return joined(type(expression), remaining) if remaining else None


SILENCE = -60.0
"""Decibels below the loudest frame: softer ends of a sound are cut off."""

CROSSFADE = 0.1
"""Length of a crossfade as a share of the shortest sound of a row."""

SHORTEST = 1.2
"""Seconds; a shorter sound is repeated. Without half a crossfade at each end, more than one second is left."""

LATEST_START = 0.5
"""Seconds within which simultaneous sounds begin, at different times."""

LEVEL = 0.1
"""Root mean square of a sound whose level is 0 dB, as a share of full scale; less if a clip would exceed it."""

PAIR_SHARES, MOST_RATIO = (0.4, 0.6), 1.15
"""Shares of two parts in the time of a sequence; for more parts, the ratio of the largest to the smallest."""

_WINDOWS, _QUIET = 5, 10.0
"""Draws of an excerpt of a long sound, until one is less than this many decibels softer than the whole."""


@dataclass(frozen=True)
class TimedClip:
    """A drawn clip, before the lengths of its sounds are known.

    Attributes:
        tree: the expression of its sounds, each a leaf.
        entries: index of the sound of each leaf.
        spans: first sample of each leaf and the one after the last, if all sounds filled their share of the clip.
    """

    tree: Expression
    entries: tuple[int, ...]
    spans: tuple[tuple[int, int], ...]


@dataclass(frozen=True)
class TimedRow:
    """The clips of a row on their time line.

    Attributes:
        clips: the events of each clip, in the order of its leaves.
        fade: samples of the fade-in and of the fade-out of each event.
    """

    clips: tuple[tuple[Event, ...], ...]
    fade: int

    def heard(self, event: Event) -> tuple[int, int]:
        """Return an event's first sample that counts and the one after the last, with half of each crossfade."""
        return event.start + self.fade // 2, event.stop - self.fade // 2


def least_share(count: int) -> float:
    """Return the least share of one of `count` parts of a sequence."""
    return PAIR_SHARES[0] if count == 2 else 1 / (1 + (count - 1) * MOST_RATIO)


def draw_shares(count: int, rng: np.random.Generator) -> list[float]:
    """Draw the shares of parts in the time of a sequence: two parts at 40 to 60 %, more parts more nearly equal."""
    if count == 2:
        cut = float(rng.uniform(*PAIR_SHARES))
        return [cut, 1 - cut]
    return [float(share) for share in rng.uniform(1, MOST_RATIO, count)]


def draw_spans(tree: Expression, length: int, gap: int, rng: np.random.Generator) -> tuple[tuple[int, int], ...]:
    """Draw the span of each leaf of a tree that fills a clip of `length` samples."""
    return tuple(time_line(tree, (0, length), gap, lambda then: draw_shares(len(then.operands), rng)))


def is_overlay(tree: Expression) -> bool:
    """Return whether all leaves are simultaneous."""
    return isinstance(tree, Together) and all(isinstance(part, Leaf) for part in tree.operands)


def timed(
    clips: Sequence[TimedClip], gap: int, late: Sequence[float], sounds: EventSounds, rng: np.random.Generator
) -> TimedRow:
    """Return the clips of a row, all equally long, with the times of their sounds.

    Args:
        clips: clips of the row; a sound in several clips is the same excerpt in each.
        gap: samples of silence between two consecutive loops.
        late: for each leaf of an overlay, the share of `LATEST_START` after which it begins.
        sounds: sounds of the clips.
        rng: draws excerpts of long sounds.
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
    lengths = {Leaf(str(entry)): part.length for entry, part in parts.items()}
    trees = [replaced(clip.tree, [Leaf(str(entry)) for entry in clip.entries]) for clip in clips]
    lasting = max(_own_length(tree, lengths, joint) for tree in trees)
    rows = []
    for clip, tree in zip(clips, trees, strict=True):
        # Each part of a sequence has its own length, or a longer one: nothing is cut.
        spans = time_line(
            tree, (0, lasting), joint, lambda then: [_own_length(part, lengths, joint) for part in then.operands]
        )
        starts = [start for start, _ in spans]
        if is_overlay(tree):
            latest = max(0, min(round(LATEST_START * sounds.sample_rate), lasting - shortest))
            starts = [int(share * latest) for share in late[: len(spans)]]
        rows.append(
            tuple(
                Event(entry, start, stop, offset=parts[entry].offset)
                for entry, start, (_, stop) in zip(clip.entries, starts, spans, strict=True)
            )
        )
    return TimedRow(tuple(rows), fade)


def _own_length(tree: Expression, lengths: Mapping[Leaf, int], joint: int) -> int:
    """Return the samples of a tree whose leaves have these lengths; a `Together` is as long as its longest part."""
    if isinstance(tree, Leaf):
        return lengths[tree]
    every = [_own_length(part, lengths, joint) for part in tree.operands]
    return sum(every) + joint * (len(every) - 1) if isinstance(tree, Then) else max(every)


def _part(entry: int, most: int, shortest: int, sounds: EventSounds, rng: np.random.Generator) -> Event:
    """Return a sound alone; a loop fills its share, and a longer sound is cut to an excerpt that is not too soft."""
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


def mixed(row: TimedRow, sounds: EventSounds, length: int) -> list[Pcm16]:
    """Return the clips of a row, int16 [length], with one gain, below 1 only if a clip would exceed full scale."""
    rise = np.sin(np.pi / 2 * (np.arange(row.fade) + 0.5) / max(row.fade, 1)).astype(np.float32)

    def samples_of(event: Event) -> Waveform:
        samples = sounds.samples(event)
        if row.fade:
            samples[: row.fade] *= rise
            samples[len(samples) - row.fade :] *= rise[::-1]
        return samples

    return mix(row.clips, samples_of, length, most=LEVEL)


SHARES: Mapping[str, float] = MappingProxyType({"test": 0.4, "validation": 0.15, "train": 0.45})
"""Shares of the sounds of each label, in whole groups, for test items, validation items and training rows."""

SUBSETS = ("seen", "novel")
"""Pairs of labels that occur together in training, and pairs that do not."""

NOVEL_SHARE = 6 / 28
"""Share of the pairs of labels that never occur together in training."""

SECOND_TONE = 0.25
"""Fewest audible seconds of the second period of a loop."""

ACTION = "action"
"""The attribute of words for the action that makes a sound: ``speaking``."""

EVENT: Mapping[str, Kind] = {
    "label": TEXT,
    "attributes": [TEXT],
    "dimensions": [TEXT],
    "start": NUMBER,
    "stop": NUMBER,
    "entry": TEXT,
}
"""An event of a row: words that are true of it, the attribute of each, start and stop in seconds, id of its sound."""

EVENTS_MEANING = (
    "`label`, `attributes` (all words that are true of it), `dimensions` (the attribute of each word), `start`, `stop` "
    "(seconds), `entry` (the id of its sound)"
)

Words = Mapping[str, str]
"""Words of a sound, by attribute."""


class Palette:
    """Sounds by split, name and words; see `Sounds`.

    A sound's name is its label as it is spoken, or with `by_noun` the agent in the label: ``man`` in "man speaking";
    the action is then a word of the sound, for the attribute `ACTION`.
    """

    def __init__(self, sounds: Sounds, *, by_noun: bool = False, different_kinds: bool = False) -> None:
        """Read nothing yet.

        Args:
            sounds: sounds with labels.
            by_noun: see `Palette`.
            different_kinds: whether labels in one clip must be different kinds of sounds, see `category_of`.
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
        """Return the indices of sounds by name, in each split; without labels of a single sound or group.

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
                f"{self.source} has {len(labels)} labels with two or more recordings (of different groups); "
                "scenes need "
                "2: LABEL/file.wav"
            )
        splits = split_of_sounds([self.entries[number] for number in usable], SHARES)
        return by_split_and_name(zip(splits, map(self.name, usable), usable, strict=True), tuple(SHARES))

    def name(self, number: int) -> str:
        """Return the name of a sound."""
        label = self.entries[number].label
        return self.noun(spoken(label)) if self.by_noun else spoken(label)

    @staticmethod
    def noun(label: str) -> str:
        """Return the agent of a label, or the label itself if it names no action."""
        who = noun_of(label)
        return label if who is None else who[0]

    def words(self, number: int) -> Words:
        """Return the words of a sound, by attribute, in reading order."""
        entry = self.entries[number]
        who = noun_of(entry.label) if self.by_noun else None
        return entry.words if who is None else {**entry.words, ACTION: who[1]}

    @cached_property
    def attributes(self) -> tuple[str, ...]:
        """Return the attributes for which sounds have words."""
        every = (number for of_split in self.by_split.values() for numbers in of_split.values() for number in numbers)
        return tuple(sorted({attribute for number in every for attribute in self.words(number)}))

    @cached_property
    def novel(self) -> frozenset[frozenset[str]]:
        """Return the pairs of nouns that never occur together in training."""
        return novel_pairs(self.noun(name) for of_split in self.by_split.values() for name in of_split)

    def subset(self, names: Sequence[str]) -> str:
        """Return ``seen`` if two names can occur together in training, else ``novel``; empty if of one kind."""
        if not self.can_meet(names):
            return ""
        return SUBSETS[frozenset(map(self.noun, names)) in self.novel]

    def can_meet(self, names: Sequence[str]) -> bool:
        """Return whether names may be in one clip."""
        kinds = set(map(category_of, names)) if self.different_kinds else set(names)
        return len(kinds) == len(names)

    def pairs(self, split: str) -> Mapping[str, list[tuple[str, str]]]:
        """Return a split's pairs of names that may occur together, by subset; for validation, no novel pairs."""
        by_subset: dict[str, list[tuple[str, str]]] = {subset: [] for subset in subsets_of(split)}
        for pair in combinations(self.by_split[split], 2):
            subset = self.subset(pair)
            if subset in by_subset:
                by_subset[subset].append(pair)
        return {subset: pairs for subset, pairs in by_subset.items() if pairs}

    def can_train(self, names: Sequence[str]) -> bool:
        """Return whether names may be in one training clip."""
        return all(self.subset(pair) == "seen" for pair in combinations(names, 2))

    def draw_meeting(self, count: int, names: Sequence[str], rng: np.random.Generator) -> tuple[str, ...] | None:
        """Draw `count` of the names that may share a training clip; None after `FEW_DRAWS` draws without success."""
        for _ in range(FEW_DRAWS):
            drawn = tuple(names[place] for place in rng.permutation(len(names))[:count])
            if len(drawn) == count and self.can_train(drawn):
                return drawn
        return None

    def said(self, split: str, name: str, attribute: str) -> tuple[str, ...]:
        """Return the words for an attribute that sounds of a name have in a split."""
        key = (split, name, attribute)
        if key not in self._said:
            words = (self.words(number).get(attribute) for number in self.by_split[split][name])
            self._said[key] = tuple(sorted({word for word in words if word is not None}))
        return self._said[key]

    def draw_words(self, split: str, name: str, mentioned: Iterable[str], rng: np.random.Generator) -> dict[str, str]:
        """Draw a word for each mentioned attribute for which sounds of a name have words."""
        options = {attribute: self.said(split, name, attribute) for attribute in mentioned}
        return {attribute: words[int(rng.integers(len(words)))] for attribute, words in options.items() if words}

    def numbers(self, split: str, name: str, words: Words, seconds: float | None = None) -> NDArray[np.intp]:
        """Return the indices of the sounds of a name for which words are true.

        If the words do not mention the level, only sounds of the louder half are returned, because other sounds must
        not mask a sound that is not called quiet.

        Args:
            split: split of the sounds.
            name: name of the sounds.
            words: by attribute.
            seconds: length of the event: loops that would not repeat within it are left out; by default none.
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
        """Return the description of a sound: its name, and its words for some attributes."""
        of_leaf = {*mentioned, ACTION}
        return Leaf(self.name(number), tuple(word for one, word in self.words(number).items() if one in of_leaf))

    def exchanged(self, split: str, first: int, second: int, exchanged: Sequence[str], words: Words) -> list[int]:
        """Return sounds like the first one, except that some attributes have the second one's words.

        Args:
            split: split of all sounds.
            first, second: two sounds.
            exchanged: attributes.
            words: words that are true of both.
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
        # There may be no sounds that differ in nothing else, but their level never distinguishes them.
        return [number for number in serving if self._unexchanged(number, exchanged) == kept] or serving

    def _unexchanged(self, number: int, exchanged: Collection[str]) -> dict[str, str]:
        """Return the words of a sound, except for some attributes."""
        return {attribute: word for attribute, word in self.words(number).items() if attribute not in exchanged}

    def distance(self, first: int, second: int, exchanged: Iterable[str]) -> float:
        """Return the difference in rank of two sounds' values, the largest over some attributes; 0 without values."""
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
        """Return a row's columns for a sound: its name, its words, their attributes, and its id."""
        words = self.words(number)
        return {
            "label": self.name(number),
            "attributes": list(words.values()),
            "dimensions": list(words),
            "entry": self.entries[number].id,
        }


def subsets_of(split: str) -> tuple[str, ...]:
    """Return the subsets of items of a split; the validation split, used for model selection, has no novel pair."""
    return SUBSETS if split == "test" else SUBSETS[:1]


def novel_pairs(names: Iterable[str]) -> frozenset[frozenset[str]]:
    """Return the pairs of names that never occur together in training: 6 of 28, with each name about equally frequent.

    They depend only on the names, so they are new to a model whatever seed it was trained with.
    """
    every = sorted(set(names))
    # Digests give an order that depends only on the names.
    pairs = sorted(
        map(frozenset, combinations(every, 2)),
        key=lambda pair: hashlib.sha256(" | ".join(sorted(pair)).encode()).hexdigest(),
    )
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


MOST_DRAWS = 20_000
"""Draws of the sounds of an item; after this many refused draws, hardly any are left."""

FEW_DRAWS = 50
"""Refused draws after which an item may repeat the sounds of an earlier one, if permitted."""
