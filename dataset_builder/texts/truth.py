"""Decide when an expression is true of a clip, from the clip's events alone (after arXiv 2310.08753, section 3.4).

Events may come from scenes, from mixed recordings, or from annotators' strong labels. Both `is_true` and `is_false` are
strict: between them are cases that listeners would dispute, e.g. "a dog, then a man" for dog, man, dog. A caption has
to be true and a hard negative false; an expression that is neither is not used.

The functions after the test propose further true expressions and nearly true ones; the test decides.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations, pairwise, product, zip_longest
from typing import Any, Literal

import numpy as np

from audio_compositionality.support.errors import InputError

from ..scenes.captioned import Expression, Leaf, Then, Together, joined, leaves, parts, replaced
from ..sounds.entries import dimension_of
from .captions import CaptionWording, bag_of_words, caption, wordings

LEAST_SECONDS = 1.0
"""Seconds; shorter sounds are not mentioned."""

LEAST_SHARE = 0.2
"""Least share of its length for which a sound must be present to be recognised."""

TOLERANCE = 0.1
"""Seconds of overlap that a sequence may have; also a difference of two times that is inaudible."""

LEAST_OVERLAP = 0.5
"""Least overlap of two simultaneous sounds, as a share of the shorter one."""

_ROUNDING = 1e-6
"""Seconds: times that are equal in samples may differ as floats."""

Interval = tuple[float, float]


@dataclass(frozen=True)
class HeardEvent:
    """A sound in a clip.

    Attributes:
        label: as in `Leaf`.
        start: seconds from the beginning of the clip.
        stop: seconds, greater than start, and finite.
        attributes: all words that are true of it.
        dimensions: the attribute of each word, if given; see `dimensions`.
        length: length of the uncut sound in seconds; None if nothing was cut off, or it is unknown.
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
            raise InputError(f"{text}; start must not be negative, stop must be greater, and both finite")

    @classmethod
    def of(cls, event: HeardEvent | Mapping[str, Any]) -> HeardEvent:
        """Return an event of a row: ``label``, ``start``, ``stop``, and, if given, ``attributes`` and others.

        Raises:
            InputError: one of the first three is missing or empty, or the times are invalid; see `HeardEvent`.
        """
        if isinstance(event, HeardEvent):
            return event
        missing = [key for key in ("label", "start", "stop") if event.get(key) is None]
        if missing:
            raise InputError(f"an event lacks {' and '.join(missing)}; it has {', '.join(event) or 'nothing'}")
        attributes = tuple(event.get("attributes") or ())
        dimensions = tuple(event.get("dimensions") or ())
        return cls(event["label"], event["start"], event["stop"], attributes, event.get("length"), dimensions)

    def is_of(self, leaf: Leaf) -> bool:
        """Return whether the leaf's label and all of its words are true of this event."""
        return self.label == leaf.label and set(leaf.attributes) <= set(self.attributes)

    def may_be(self, leaf: Leaf, dimension: Callable[[str], str] = dimension_of) -> bool:
        """Return whether no property of this event, such as another word of an attribute, contradicts the leaf."""
        if self.label != leaf.label:
            return False
        spoken_of = set(map(dimension, self.attributes))
        return not any(dimension(word) in spoken_of for word in set(leaf.attributes) - set(self.attributes))


def dimensions(events: Iterable[HeardEvent]) -> Callable[[str], str]:
    """Return a function from a word to its attribute, as the events give it, else as for words of tones."""
    stated = {word: name for event in events for word, name in zip(event.attributes, event.dimensions, strict=False)}
    return lambda word: stated.get(word) or dimension_of(word)


def is_true(expression: Expression, events: Iterable[HeardEvent | Mapping[str, Any]]) -> bool:
    """Return whether an expression is undisputedly true of a clip.

    - Every leaf is present: its events last at least `LEAST_SECONDS` in total and `LEAST_SHARE` of their length, if
      known.
    - In each `Then`, a part has ended for good before the next begins, except for `TOLERANCE`.
    - In each `Together`, any two parts overlap in `LEAST_OVERLAP` of the shorter one. If one is a `Then` and the other
      is not, in that share of each part of the `Then`: a sound throughout a sequence coincides with all of it.

    All events with a leaf's label and words count as one sound, however often it begins.

    Args:
        expression: any; it may omit sounds of the clip.
        events: events of the clip, as `HeardEvent` or as in a row.
    """
    heard = [HeardEvent.of(event) for event in events]
    for leaf in leaves(expression):
        lengths = [event.length for event in heard if event.is_of(leaf) and event.length is not None]
        least = max(LEAST_SECONDS, *(LEAST_SHARE * length for length in lengths), 0)
        if _measure(_times(leaf, heard)) < least - _ROUNDING:
            return False
    return _holds(expression, heard)


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
    """Return the times of any of the leaves: intervals that do not touch, in order."""
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
    """Return the seconds that lie in both."""
    return sum(max(0.0, min(a[1], b[1]) - max(a[0], b[0])) for a in one for b in other)


def is_false(expression: Expression, events: Iterable[HeardEvent | Mapping[str, Any]]) -> bool:
    """Return whether an expression is undisputedly false of a clip: the events fit it in no reading.

    It is read as generously as possible: a leaf may be any one event that does not contradict it, or all of them; a
    part of a `Then` may continue into the next part if it begins and ends earlier; for a `Together`, any overlap of
    more than `TOLERANCE` suffices.
    """
    heard = [HeardEvent.of(event) for event in events]
    return not _spans(expression, heard, dimensions(heard))


def _spans(expression: Expression, events: Sequence[HeardEvent], dimension: Callable[[str], str]) -> set[Interval]:
    """Return the first start and last end of every possible reading of an expression."""
    if isinstance(expression, Leaf):
        fitting = [(event.start, event.stop) for event in events if event.may_be(expression, dimension)]
        whole = [(min(start for start, _ in fitting), max(stop for _, stop in fitting))] if fitting else []
        return {*fitting, *whole}
    spans, *rest = (_spans(operand, events, dimension) for operand in expression.operands)
    for of_operand in rest:
        pairs = product(spans, of_operand)
        if isinstance(expression, Then):
            spans = {
                (one[0], other[1])
                for one, other in pairs
                if one[0] + TOLERANCE < other[0] and one[1] + TOLERANCE < other[1]
            }
        else:
            spans = {
                (min(one[0], other[0]), max(one[1], other[1]))
                for one, other in pairs
                if min(one[1], other[1]) - max(one[0], other[0]) > TOLERANCE
            }
    return spans


NegativeKind = Literal["order", "relation", "attribute", "absent"]

SAME_WORDS: tuple[NegativeKind, ...] = ("order", "attribute")
"""Kinds whose text has the same words as the caption, and differs from it only in how the parts are joined."""

MOST_POSITIVES = 7
"""Most equivalent captions of a clip (arXiv 2310.08753)."""

Events = Sequence[HeardEvent | Mapping[str, Any]]


@dataclass(frozen=True)
class Negative:
    """A text that is false of a clip.

    Attributes:
        text: the caption after one change.
        kind: the change. ``order``: two parts of a sequence exchanged; ``relation``: a sequence instead of simultaneous
            sounds, or vice versa; ``attribute``: a word or a noun exchanged between two leaves; ``absent``: a sound
            replaced by an absent one.
        expression: meaning of the text.
    """

    text: str
    kind: NegativeKind
    expression: Expression


def false_variants(
    expression: Expression, absent: Iterable[str] = (), dimension: Callable[[str], str] = dimension_of
) -> Iterator[tuple[Expression, NegativeKind]]:
    """Yield the variants of an expression after one change, whether false of a clip or not.

    Args:
        expression: any.
        absent: labels of absent sounds, for the kind ``absent``.
        dimension: returns the attribute of a word.
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
    """Yield the variants of one operand at a time, in place."""
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
    """Yield two leaves with their nouns exchanged, or their words for a common attribute."""
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
    """Return false texts close to a caption; kinds alternate, so that even a few texts have many kinds.

    Texts of the kinds in `SAME_WORDS` have the wording and the words of the caption; others may have another wording if
    the caption's does not suit.

    Args:
        expression: meaning of the caption.
        wording: wording of the caption, see `captions.wordings`.
        events: events of the clip; each text is false of them according to `truth.is_false`.
        rng: random generator.
        most: largest number of texts.
        absent: labels of absent sounds.
        held_out: as in `captions.wordings`.
    """
    text = caption(expression, wording)
    proposed: dict[NegativeKind, dict[str, Negative]] = {"order": {}, "attribute": {}, "relation": {}, "absent": {}}
    heard = [HeardEvent.of(event) for event in events]
    for variant, kind in false_variants(expression, absent, dimensions(heard)):
        if not is_false(variant, heard):
            continue
        suits = wording in wordings(variant)
        of_variant = wording if suits else draw_wording(variant, rng, held_out=held_out)
        other = caption(variant, of_variant)
        if kind not in SAME_WORDS or bag_of_words(other) == bag_of_words(text):
            proposed[kind][other] = Negative(other, kind, variant)
    # Each kind in random order, the kinds in turn, without repeated texts.
    lists = [list(of_kind.values()) for of_kind in proposed.values()]
    drawn = [[of_kind[place] for place in rng.permutation(len(of_kind))] for of_kind in lists]
    turns = [negative for turn in zip_longest(*drawn) for negative in turn if negative is not None]
    return list({negative.text: negative for negative in turns}.values())[:most]


def draw_wording(expression: Expression, rng: np.random.Generator, *, held_out: bool | None = None) -> CaptionWording:
    """Draw one of `captions.wordings`; forward and reverse mentions of sequences are equally likely."""
    return _in_drawn_order(expression, rng, held_out)[0]


def _in_drawn_order(expression: Expression, rng: np.random.Generator, held_out: bool | None) -> list[CaptionWording]:
    """Return all wordings in random order; forward and reverse mentions alternate."""
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
    """Return equivalent captions of an expression in different wordings; half of the wordings of a sequence are
    reverse.

    Returns:
        For each its expression, with simultaneous sounds in random order, its wording, and its text.
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
    """Return captions of parts of an expression, each true of the clip's events, in a random wording."""
    true = [part for part in parts(expression) if is_true(part, events)]
    drawn = []
    for place in sorted(rng.permutation(len(true))[:most]):
        wording = draw_wording(true[place], rng, held_out=held_out)
        drawn.append((true[place], caption(_shuffled(true[place], rng), wording)))
    return drawn
