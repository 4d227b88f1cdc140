"""When an expression is true of a clip, from the clip's list of events alone (after arXiv 2310.08753, section 3.4).

Whoever has labels with times can use it: events of scenes, of mixed recordings, strong labels of people.
`is_true` is strict and `is_false` is strict as well: between them lies what listeners would dispute, such as "a dog,
then a man" of dog, man, dog. A caption has to be true, a hard negative false; what is neither is used for nothing.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations, pairwise
from typing import Any

from audio_compositionality.support.errors import InputError

from ..scenes.expressions import Expression, Leaf, Then, leaves
from ..sounds.words import dimension_of

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
class Event:
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
    def of(cls, event: Event | Mapping[str, Any]) -> Event:
        """An event of a row: ``label``, ``start``, ``stop``, and, where there are any, ``attributes`` and so on.

        Raises:
            InputError: one of the first three is missing or empty, or the times are none; see `Event`.
        """
        if isinstance(event, Event):
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


def dimensions(events: Iterable[Event]) -> Callable[[str], str]:
    """What says of a word which attribute it is of: as events say it, else as the words for tones are."""
    stated = {word: name for event in events for word, name in zip(event.attributes, event.dimensions, strict=False)}
    return lambda word: stated.get(word) or dimension_of(word)


def is_true(expression: Expression, events: Iterable[Event | Mapping[str, Any]]) -> bool:
    """Whether an expression is true of a clip, for everybody.

    - Every leaf is heard: its events last `LEAST_SECONDS` together and `LEAST_SHARE` of their length, where that is
      known.
    - Of each `Then`, a part has ended for good before the next begins, but for `TOLERANCE`.
    - Of each `Together`, any two parts overlap in `LEAST_OVERLAP` of the shorter, and where one is a `Then` and the
      other is not, in that share of each part of the `Then`: what sounds throughout is heard with all of it.

    What a leaf's label and words fit is one thing, however often it begins.

    Args:
        expression: any; it may leave out what is heard.
        events: of the clip, as `Event` or as a row has them.
    """
    heard = [Event.of(event) for event in events]
    return all(_is_heard(leaf, heard) for leaf in leaves(expression)) and _holds(expression, heard)


def _is_heard(leaf: Leaf, events: Sequence[Event]) -> bool:
    fitting = [event for event in events if event.is_of(leaf)]
    seconds = _measure(_union((event.start, event.stop) for event in fitting))
    lengths = [event.length for event in fitting if event.length is not None]
    return seconds >= max(LEAST_SECONDS, *(LEAST_SHARE * length for length in lengths), 0) - _ROUNDING


def _holds(expression: Expression, events: Sequence[Event]) -> bool:
    if isinstance(expression, Leaf):
        return True
    if not all(_holds(operand, events) for operand in expression.operands):
        return False
    if isinstance(expression, Then):
        times = [_times(operand, events) for operand in expression.operands]
        return all(first[-1][1] <= second[0][0] + TOLERANCE + _ROUNDING for first, second in pairwise(times))
    return all(_overlay(first, second, events) for first, second in combinations(expression.operands, 2))


def _overlay(first: Expression, second: Expression, events: Sequence[Event]) -> bool:
    for sequence, throughout in ((first, second), (second, first)):
        if isinstance(sequence, Then) and not isinstance(throughout, Then):
            behind = _times(throughout, events)
            of_parts = (_times(part, events) for part in sequence.operands)
            return all(_shared(part, behind) >= LEAST_OVERLAP * _measure(part) - _ROUNDING for part in of_parts)
    one, other = _times(first, events), _times(second, events)
    return _shared(one, other) >= LEAST_OVERLAP * min(_measure(one), _measure(other)) - _ROUNDING


def _times(expression: Expression, events: Sequence[Event]) -> list[Interval]:
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


def is_false(expression: Expression, events: Iterable[Event | Mapping[str, Any]]) -> bool:
    """Whether an expression is false of a clip, for everybody: however it is taken, nothing that is heard fits it.

    It is taken as kindly as can be: a leaf may be any one event that does not contradict it, or all of them; of a
    `Then`, a part may go on into the next, if it begins and ends earlier; for a `Together` any overlap of more than
    `TOLERANCE` will do.
    """
    heard = [Event.of(event) for event in events]
    return not _spans(expression, heard, dimensions(heard))


def _spans(expression: Expression, events: Sequence[Event], dimension: Callable[[str], str]) -> set[Interval]:
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
