"""When an expression is true of a clip, from the clip's list of events alone (after arXiv 2310.08753, section 3.4).

Whoever has labels with times can use it: events of scenes, of mixed recordings, strong labels of people.
`is_true` is strict and `is_false` is strict as well: between them lies what listeners would dispute, such as "a dog,
then a man" of dog, man, dog. A caption has to be true, a hard negative false; what is neither is used for nothing.

Below the test stand rules that propose what else is true of a clip, and what is nearly true: the test decides.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations, pairwise, zip_longest
from typing import Any, Literal

import numpy as np

from audio_compositionality.support.errors import InputError

from ..scenes.captioned import Expression, Leaf, Then, Together, joined, leaves, parts, replaced
from ..sounds.entries import dimension_of
from .captions import CaptionWording, bag_of_words, caption, wordings

LEAST_SECONDS = 1.0
"""What is heard for less is not mentioned."""

LEAST_SHARE = 0.2
"""Of what is heard for less than this share of its length, nobody can tell what it is."""

TOLERANCE = 0.1
"""Seconds that one may still sound after the next has begun, and that are heard as no difference of two times."""

LEAST_OVERLAP = 0.5
"""Share of the shorter of two that sound at the same time."""

_ROUNDING = 1e-6
"""Seconds: times that are equal in samples may differ in floats."""

Interval = tuple[float, float]


@dataclass(frozen=True)
class HeardEvent:
    """Something that is heard in a clip.

    Attributes:
        label: as of `Leaf`.
        start: seconds from the beginning of the clip.
        stop: seconds, greater than start, and finite.
        attributes: all words that are true of it.
        dimensions: the attribute of each, where they say; see `dimensions`.
        length: seconds that it would last whole; None where nothing was cut off, or nobody knows.
    """

    label: str
    start: float
    stop: float
    attributes: tuple[str, ...] = ()
    length: float | None = None
    dimensions: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if not 0 <= self.start < self.stop < math.inf:
            text = f"{self.label!r} is heard from {self.start} to {self.stop} s"
            raise InputError(f"{text}; start is not negative and less than stop, and both are finite")

    @classmethod
    def of(cls, event: HeardEvent | Mapping[str, Any]) -> HeardEvent:
        """An event of a row: ``label``, ``start``, ``stop``, and, where there are any, ``attributes`` and so on.

        Raises:
            InputError: one of the first three is missing or empty, or the times are none; see `HeardEvent`.
        """
        if isinstance(event, HeardEvent):
            return event
        missing = [key for key in ("label", "start", "stop") if event.get(key) is None]
        if missing:
            raise InputError(f"an event has no {' and no '.join(missing)}; it has {', '.join(event) or 'nothing'}")
        attributes = tuple(event.get("attributes") or ())
        dimensions = tuple(event.get("dimensions") or ())
        return cls(event["label"], event["start"], event["stop"], attributes, event.get("length"), dimensions)

    def is_of(self, leaf: Leaf) -> bool:
        """Whether the leaf's label and all of its words are true of this event."""
        return self.label == leaf.label and set(leaf.attributes) <= set(self.attributes)

    def may_be(self, leaf: Leaf, dimension: Callable[[str], str] = dimension_of) -> bool:
        """Whether nothing that is known of this event contradicts the leaf; another word of the same attribute does."""
        if self.label != leaf.label:
            return False
        spoken_of = set(map(dimension, self.attributes))
        return not any(dimension(word) in spoken_of for word in set(leaf.attributes) - set(self.attributes))


def dimensions(events: Iterable[HeardEvent]) -> Callable[[str], str]:
    """What says of a word which attribute it is of: as events say it, else as the words for tones are."""
    stated = {word: name for event in events for word, name in zip(event.attributes, event.dimensions, strict=False)}
    return lambda word: stated.get(word) or dimension_of(word)


def is_true(expression: Expression, events: Iterable[HeardEvent | Mapping[str, Any]]) -> bool:
    """Whether an expression is true of a clip, for everybody.

    - Every leaf is heard: its events last `LEAST_SECONDS` together and `LEAST_SHARE` of their length, where that is
      known.
    - Of each `Then`, a part has ended for good before the next begins, but for `TOLERANCE`.
    - Of each `Together`, any two parts overlap in `LEAST_OVERLAP` of the shorter, and where one is a `Then` and the
      other is not, in that share of each part of the `Then`: what sounds throughout is heard with all of it.

    What a leaf's label and words fit is one thing, however often it begins.

    Args:
        expression: any; it may leave out what is heard.
        events: of the clip, as `HeardEvent` or as a row has them.
    """
    heard = [HeardEvent.of(event) for event in events]
    return all(_is_heard(leaf, heard) for leaf in leaves(expression)) and _holds(expression, heard)


def _is_heard(leaf: Leaf, events: Sequence[HeardEvent]) -> bool:
    fitting = [event for event in events if event.is_of(leaf)]
    seconds = _measure(_union((event.start, event.stop) for event in fitting))
    lengths = [event.length for event in fitting if event.length is not None]
    return seconds >= max(LEAST_SECONDS, *(LEAST_SHARE * length for length in lengths), 0) - _ROUNDING


def _holds(expression: Expression, events: Sequence[HeardEvent]) -> bool:
    if isinstance(expression, Leaf):
        return True
    if not all(_holds(operand, events) for operand in expression.operands):
        return False
    if isinstance(expression, Then):
        times = [_times(operand, events) for operand in expression.operands]
        return all(first[-1][1] <= second[0][0] + TOLERANCE + _ROUNDING for first, second in pairwise(times))
    return all(_overlay(first, second, events) for first, second in combinations(expression.operands, 2))


def _overlay(first: Expression, second: Expression, events: Sequence[HeardEvent]) -> bool:
    for sequence, throughout in ((first, second), (second, first)):
        if isinstance(sequence, Then) and not isinstance(throughout, Then):
            behind = _times(throughout, events)
            of_parts = (_times(part, events) for part in sequence.operands)
            return all(_shared(part, behind) >= LEAST_OVERLAP * _measure(part) - _ROUNDING for part in of_parts)
    one, other = _times(first, events), _times(second, events)
    return _shared(one, other) >= LEAST_OVERLAP * min(_measure(one), _measure(other)) - _ROUNDING


def _times(expression: Expression, events: Sequence[HeardEvent]) -> list[Interval]:
    """When any leaf is heard: intervals that do not meet, in order."""
    every = leaves(expression)
    return _union((event.start, event.stop) for event in events if any(event.is_of(leaf) for leaf in every))


def _union(intervals: Iterable[Interval]) -> list[Interval]:
    union: list[Interval] = []
    for start, stop in sorted(intervals):
        if union and start <= union[-1][1]:
            union[-1] = (union[-1][0], max(union[-1][1], stop))
        else:
            union.append((start, stop))
    return union


def _measure(intervals: Iterable[Interval]) -> float:
    return sum(stop - start for start, stop in intervals)


def _shared(one: Sequence[Interval], other: Sequence[Interval]) -> float:
    """Seconds that lie in both."""
    return sum(max(0.0, min(a[1], b[1]) - max(a[0], b[0])) for a in one for b in other)


def is_false(expression: Expression, events: Iterable[HeardEvent | Mapping[str, Any]]) -> bool:
    """Whether an expression is false of a clip, for everybody: however it is taken, nothing that is heard fits it.

    It is taken as kindly as can be: a leaf may be any one event that does not contradict it, or all of them; of a
    `Then`, a part may go on into the next, if it begins and ends earlier; for a `Together` any overlap of more than
    `TOLERANCE` will do.
    """
    heard = [HeardEvent.of(event) for event in events]
    return not _spans(expression, heard, dimensions(heard))


def _spans(expression: Expression, events: Sequence[HeardEvent], dimension: Callable[[str], str]) -> set[Interval]:
    """First start and last end of every way in which an expression may be true."""
    if isinstance(expression, Leaf):
        fitting = [(event.start, event.stop) for event in events if event.may_be(expression, dimension)]
        whole = [(min(start for start, _ in fitting), max(stop for _, stop in fitting))] if fitting else []
        return {*fitting, *whole}
    first, *rest = (_spans(operand, events, dimension) for operand in expression.operands)
    join = _after if isinstance(expression, Then) else _with
    for operand in rest:
        first = {span for one in first for other in operand if (span := join(one, other)) is not None}
    return first


def _after(first: Interval, second: Interval) -> Interval | None:
    later = all(one + TOLERANCE < other for one, other in zip(first, second, strict=True))
    return (first[0], second[1]) if later else None


def _with(first: Interval, second: Interval) -> Interval | None:
    start, stop = max(first[0], second[0]), min(first[1], second[1])
    return (min(first[0], second[0]), max(first[1], second[1])) if stop - start > TOLERANCE else None


Kind = Literal["order", "relation", "attribute", "absent"]

SAME_WORDS: tuple[Kind, ...] = ("order", "attribute")
"""Kinds whose text has the same words as the caption: nobody can tell them who does not hear how parts are joined."""

MOST_POSITIVES = 7
"""Of a clip (arXiv 2310.08753)."""

Events = Sequence[HeardEvent | Mapping[str, Any]]


@dataclass(frozen=True)
class Negative:
    """A text that is false of a clip.

    Attributes:
        text: the caption after one change.
        kind: what was changed. ``order``: two parts of a sequence exchanged; ``relation``: one after the other instead
            of at the same time, or the other way round; ``attribute``: a word or a noun exchanged between two leaves;
            ``absent``: one replaced by what is not heard.
        expression: what the text says.
    """

    text: str
    kind: Kind
    expression: Expression


def false_variants(
    expression: Expression, absent: Iterable[str] = (), dimension: Callable[[str], str] = dimension_of
) -> Iterator[tuple[Expression, Kind]]:
    """What an expression becomes by one change; whether that is false of a clip is not asked here.

    Args:
        expression: any.
        absent: labels that are not heard, for the kind ``absent``.
        dimension: the attribute that a word is of.
    """
    for variant in _reordered(expression):
        yield variant, "order"
    for variant in _related_otherwise(expression):
        yield variant, "relation"
    every = leaves(expression)
    for one, other in combinations(range(len(every)), 2):
        for first, second in _exchanged(every[one], every[other], dimension):
            new = [first if place == one else second if place == other else leaf for place, leaf in enumerate(every)]
            yield replaced(expression, new), "attribute"
    for label in absent:
        for place, leaf in enumerate(every):
            yield replaced(expression, [*every[:place], replace(leaf, label=label), *every[place + 1 :]]), "absent"


def _within(expression: Then | Together, vary: Any) -> Iterator[Expression]:
    """The variants of one operand at a time, in place."""
    for place, operand in enumerate(expression.operands):
        for variant in vary(operand):
            yield joined(type(expression), [*expression.operands[:place], variant, *expression.operands[place + 1 :]])


def _reordered(expression: Expression) -> Iterator[Expression]:
    if isinstance(expression, Leaf):
        return
    if isinstance(expression, Then):
        for one, other in combinations(range(len(expression.operands)), 2):
            operands = list(expression.operands)
            operands[one], operands[other] = operands[other], operands[one]
            yield Then(tuple(operands))
    yield from _within(expression, _reordered)


def _related_otherwise(expression: Expression) -> Iterator[Expression]:
    if isinstance(expression, Leaf):
        return
    yield joined(Together if isinstance(expression, Then) else Then, expression.operands)
    yield from _within(expression, _related_otherwise)


def _exchanged(one: Leaf, other: Leaf, dimension: Callable[[str], str]) -> Iterator[tuple[Leaf, Leaf]]:
    """Two leaves that have exchanged their nouns, or their words of one attribute that both have."""
    if one.label != other.label:
        yield replace(one, label=other.label), replace(other, label=one.label)
    for place, word in enumerate(one.attributes):
        for opposite, its_word in enumerate(other.attributes):
            if word != its_word and dimension(word) == dimension(its_word):
                yield _with_word(one, place, its_word), _with_word(other, opposite, word)


def _with_word(leaf: Leaf, place: int, word: str) -> Leaf:
    return replace(leaf, attributes=(*leaf.attributes[:place], word, *leaf.attributes[place + 1 :]))


def negatives(
    expression: Expression,
    wording: CaptionWording,
    events: Events,
    rng: np.random.Generator,
    *,
    most: int,
    absent: Iterable[str] = (),
    held_out: bool | None = None,
) -> list[Negative]:
    """False texts near a caption: each kind in turn, so that few are of as many kinds as there are.

    Those of `SAME_WORDS` have the wording and the words of the caption, the others any wording where it does not suit.

    Args:
        expression: what the caption says, and its ``wording``.
        wording: see `captions.wordings`.
        events: of the clip; each text is false of them by `truth.is_false`.
        rng: draws which are taken.
        most: how many at most.
        absent: labels that are not heard.
        held_out: of wordings, as `captions.wordings` has it.
    """
    text = caption(expression, wording)
    proposed: dict[Kind, dict[str, Negative]] = {"order": {}, "attribute": {}, "relation": {}, "absent": {}}
    heard = [HeardEvent.of(event) for event in events]
    for variant, kind in false_variants(expression, absent, dimensions(heard)):
        if not is_false(variant, heard):
            continue
        suits = wording in wordings(variant)
        of_variant = wording if suits else draw_wording(variant, rng, held_out=held_out)
        other = caption(variant, of_variant)
        if kind not in SAME_WORDS or bag_of_words(other) == bag_of_words(text):
            proposed[kind][other] = Negative(other, kind, variant)
    return _by_turns([list(of_kind.values()) for of_kind in proposed.values()], most, rng)


def _by_turns(lists: Sequence[Sequence[Negative]], most: int, rng: np.random.Generator) -> list[Negative]:
    """Of each list one after the other, each list in an order that is drawn, and no text twice."""
    drawn = [[of_kind[place] for place in rng.permutation(len(of_kind))] for of_kind in lists]
    turns = [of_kind[turn] for turn in range(max(map(len, drawn))) for of_kind in drawn if turn < len(of_kind)]
    return list({negative.text: negative for negative in turns}.values())[:most]


def draw_wording(expression: Expression, rng: np.random.Generator, *, held_out: bool | None = None) -> CaptionWording:
    """One of `captions.wordings`; of those with a sequence, as often one that names the first heard last as not."""
    return _in_drawn_order(expression, rng, held_out)[0]


def _in_drawn_order(expression: Expression, rng: np.random.Generator, held_out: bool | None) -> list[CaptionWording]:
    """All wordings, those that name the first heard first and those that name it last by turns."""
    suiting = wordings(expression, held_out=held_out)
    drawn = [suiting[place] for place in rng.permutation(len(suiting))]
    forward, reverse = (
        [one for one in drawn if (one.mention == "reverse") == is_reverse] for is_reverse in (False, True)
    )
    lists = (forward, reverse) if rng.random() < 0.5 else (reverse, forward)
    return [one for turn in zip_longest(*lists) for one in turn if one is not None]


def wholes(
    expression: Expression,
    rng: np.random.Generator,
    *,
    most: int,
    held_out: bool | None = None,
) -> list[tuple[Expression, CaptionWording, str]]:
    """Equivalent captions of an expression in different wordings, of a sequence half of them in reverse.

    Returns:
        of each what it says, in which what is heard together stands in an order that is drawn; its wording; its text.
    """
    texts = []
    for wording in _in_drawn_order(expression, rng, held_out)[:most]:
        said = _shuffled(expression, rng)
        texts.append((said, wording, caption(said, wording)))
    return texts


def _shuffled(expression: Expression, rng: np.random.Generator) -> Expression:
    if isinstance(expression, Leaf):
        return expression
    operands = [_shuffled(operand, rng) for operand in expression.operands]
    if isinstance(expression, Then):
        return Then(tuple(operands))
    return Together(tuple(operands[place] for place in rng.permutation(len(operands))))


def true_parts(
    expression: Expression,
    events: Events,
    rng: np.random.Generator,
    *,
    most: int = MOST_POSITIVES,
    held_out: bool | None = None,
) -> list[tuple[Expression, str]]:
    """Captions of parts of an expression, each true of the clip's events and in a wording that is drawn."""
    true = [part for part in parts(expression) if is_true(part, events)]
    drawn = []
    for place in sorted(rng.permutation(len(true))[:most]):
        wording = draw_wording(true[place], rng, held_out=held_out)
        drawn.append((true[place], caption(_shuffled(true[place], rng), wording)))
    return drawn
