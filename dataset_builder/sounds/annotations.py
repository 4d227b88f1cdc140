"""What is heard in a recording from when to when: labelled events, and intervals of them in whole steps.

Intervals count in hundredths of a second: a sound is heard in the hundredths whose middle lies in one of its events. So
they are whole numbers, merged, joined and cut exactly, and an algorithm that goes from frame to frame can come to the
same result.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from itertools import combinations, pairwise
from typing import Literal

from ..data import DatasetError

LEAST_CONFIDENCE = 0.3
"""What is less certain is not heard."""


THRESHOLD = 0.5
"""What is at least as certain is taken to be heard."""


SURE = 0.7
"""What is more certain is heard beyond doubt; from `LEAST_CONFIDENCE` to here it is heard perhaps."""


ROUNDING = 0.1
"""Seconds by which labels may end after their recording, and recordings before their labels."""


class AnnotationError(DatasetError):
    """Labels that cannot be used: says in which file and line, what is wrong, and what is expected."""


@dataclass(frozen=True)
class LabelledEvent:
    """Something that somebody heard.

    Attributes:
        onset, offset: seconds from the beginning; onset < offset.
        label: what is heard, in the words of the labels.
        source: what makes the sound, where the labels tell sources of one label apart.
        confidence: how certain it is, 0–1; None where the labels do not say, which is certain.
    """

    onset: float
    offset: float
    label: str
    source: str | None = None
    confidence: float | None = None

    def __post_init__(self) -> None:
        if not 0 <= self.onset < self.offset < math.inf:
            raise AnnotationError(
                f"{self.label!r} is heard from {self.onset} to {self.offset} s; expected is 0 ≤ onset < offset"
            )
        if self.confidence is not None and not 0 <= self.confidence <= 1:
            raise AnnotationError(f"the confidence of {self.label!r} is {self.confidence}; expected is 0 to 1")
        if not self.label:
            raise AnnotationError(f"what is heard from {self.onset} to {self.offset} s has no label")


@dataclass(frozen=True)
class Annotation:
    """A recording, or a part of one, and what is heard in it.

    Attributes:
        recording: its name, without folder and ending.
        duration: seconds.
        events: by onset; of soft labels also those that are heard perhaps.
        resolution: seconds to which the labels tell times; 0 where they are as exact as a listener.
        source_name: of the data set or the format that it comes from.
        start: seconds of the recording at which this part begins.
        group: of recordings that must not stand on both sides of a split; the recording where it is empty.
        negative: whether it stands only for what does not overlap, see `audiotime_negatives`.
    """

    recording: str
    duration: float
    events: tuple[LabelledEvent, ...]
    resolution: float
    source_name: str
    start: float = 0.0
    group: str = ""
    negative: bool = False

    def __post_init__(self) -> None:
        if not 0 < self.duration < math.inf:
            raise AnnotationError(f"{self.recording!r} lasts {self.duration} s; expected is more than 0")
        if not 0 <= self.resolution < math.inf:
            raise AnnotationError(f"the resolution of {self.recording!r} is {self.resolution} s; expected is 0 or more")
        for event in self.events:
            if event.offset > self.duration:
                raise AnnotationError(
                    f"{self.recording!r}: {event.label!r} is heard until {event.offset} s, after the end at "
                    f"{self.duration} s"
                )

    @property
    def labels(self) -> tuple[str, ...]:
        """All labels, in alphabetical order."""
        return tuple(sorted({event.label for event in self.events}))

    @property
    def key(self) -> tuple[str, float]:
        """Recording and start: what tells it from all other annotations."""
        return self.recording, self.start

    @property
    def split_group(self) -> str:
        """What has to stay on one side of a split."""
        return self.group or self.recording


def event_order(event: LabelledEvent) -> tuple[float, float, str, str]:
    """What events are sorted by: onset, offset, label, source."""
    return event.onset, event.offset, event.label, event.source or ""


def joined_events(events: Iterable[LabelledEvent]) -> list[LabelledEvent]:
    """Events of which those of one label, source and confidence that meet or overlap are one."""
    alike: dict[tuple[str, str, float], list[LabelledEvent]] = defaultdict(list)
    for event in sorted(events, key=event_order):
        confidence = -1.0 if event.confidence is None else event.confidence
        run = alike[(event.label, event.source or "", confidence)]
        if run and event.onset <= run[-1].offset + 1e-6:
            last = run.pop()
            event = LabelledEvent(
                last.onset, max(last.offset, event.offset), event.label, event.source, event.confidence
            )
        run.append(event)
    return sorted((event for run in alike.values() for event in run), key=event_order)


STEPS = 100
"""Of a second."""

_UNITS = 1_000_000
"""Of a second, to which times are exact before they are counted in steps."""

Interval = tuple[int, int]
"""First step, and the step after the last."""

Activity = tuple[Interval, ...]
"""Intervals that do not touch, in order."""

Relation = Literal["overlap", "apart", "ambiguous"]


@dataclass(frozen=True)
class Rules:
    """What counts as what in labels that tell times to so many seconds, in steps.

    Attributes:
        merge_gap: a silence of a label that is no longer is none.
        guard: by which a sound is widened on both sides, to be apart from another.
        min_overlap: two sounds overlap if both are heard for as long without interruption.
        min_event: what is heard for less in total is not asked about.
        min_margin: by which the longest has to exceed the next.
        min_onset: before which nothing is said to begin.
    """

    merge_gap: int
    guard: int
    min_overlap: int
    min_event: int
    min_margin: int
    min_onset: int

    @classmethod
    def of(cls, annotation: Annotation) -> Rules:
        """The rules of an annotation's resolution."""
        resolution = steps_of(annotation.resolution)
        return cls(
            merge_gap=max(20, resolution),
            guard=max(10, resolution),
            min_overlap=max(50, resolution),
            min_event=max(25, resolution),
            min_margin=max(50, 2 * resolution),
            min_onset=max(50, resolution),
        )


def steps_of(seconds: float) -> int:
    """The first step whose middle is not before a time."""
    units = round(seconds * _UNITS)
    step = _UNITS // STEPS
    return -((step // 2 - units) // step)


def union(intervals: Iterable[Interval], gap: int = 0) -> Activity:
    """Intervals joined where they overlap, touch, or are no more than `gap` steps apart; empty ones are left out."""
    joined: list[Interval] = []
    for start, stop in sorted(intervals):
        if start >= stop:
            continue
        if joined and start - joined[-1][1] <= gap:
            joined[-1] = (joined[-1][0], max(joined[-1][1], stop))
        else:
            joined.append((start, stop))
    return tuple(joined)


def intersection(one: Activity, other: Activity) -> Activity:
    """Where both are heard."""
    return union((max(a[0], b[0]), min(a[1], b[1])) for a in one for b in other)


def widened(activity: Activity, by: int) -> Activity:
    """An activity that begins earlier and ends later."""
    return union((start - by, stop + by) for start, stop in activity)


def total(activity: Activity) -> int:
    """Steps in which something is heard."""
    return sum(stop - start for start, stop in activity)


def longest(activity: Activity) -> int:
    """Steps of the longest interval; 0 where there is none."""
    return max((stop - start for start, stop in activity), default=0)


def activities(annotation: Annotation) -> dict[str, Activity]:
    """For each label when it is heard; silences of at most `Rules.merge_gap` are none.

    A label whose events are too short for a step is heard never, and is here all the same.
    """
    gap = Rules.of(annotation).merge_gap
    return {label: union(_spans(annotation, label), gap) for label in annotation.labels}


def _spans(annotation: Annotation, label: str) -> list[Interval]:
    return [(steps_of(e.onset), steps_of(e.offset)) for e in annotation.events if e.label == label]


def relation(one: Activity, other: Activity, rules: Rules) -> Relation:
    """What two sounds are to each other; what is between overlapping and apart is ambiguous.

    They overlap if they are heard together for `Rules.min_overlap` without interruption. They are apart if, both
    widened by `Rules.guard`, they have no moment in common.
    """
    if longest(intersection(one, other)) >= rules.min_overlap:
        return "overlap"
    if not intersection(widened(one, rules.guard), widened(other, rules.guard)):
        return "apart"
    return "ambiguous"


def relations(annotation: Annotation) -> dict[frozenset[str], Relation]:
    """The relation of each two labels."""
    rules, heard = Rules.of(annotation), activities(annotation)
    return {frozenset(pair): relation(heard[pair[0]], heard[pair[1]], rules) for pair in combinations(heard, 2)}


def together(heard: Iterable[Activity], least: int = 2) -> Activity:
    """Where at least so many of some activities are heard at the same time."""
    changes = sorted(change for activity in heard for start, stop in activity for change in ((start, 1), (stop, -1)))
    intervals: list[Interval] = []
    count = 0
    for (time, change), (following, _) in pairwise([*changes, (changes[-1][0] if changes else 0, 0)]):
        count += change
        if count >= least:
            intervals.append((time, following))
    return union(intervals)


def polyphony(annotation: Annotation) -> int:
    """Most labels that are heard at the same time."""
    heard = tuple(activities(annotation).values())
    return next((count for count in range(len(heard), 0, -1) if together(heard, count)), 0)


def overlap_seconds(annotation: Annotation) -> float:
    """Seconds in which two labels are heard at the same time."""
    return total(together(activities(annotation).values())) / STEPS


def overlap_regions(heard: Mapping[str, Activity], rules: Rules) -> Activity | None:
    """Where two or more labels are heard at the same time, each of which everybody hears; None where that is disputed.

    Each lasts long enough from its beginning on: two labels begin to be heard together there, and go on for
    `Rules.min_overlap`. No two labels come as close as `Rules.guard` allows without being one of them.
    """
    regions = together(heard.values())
    if any(not begins_plainly(region, heard, rules) for region in regions):
        return None
    near = together([widened(activity, rules.guard) for activity in heard.values()])
    return regions if len(near) == len(regions) else None


def begins_plainly(region: Interval, heard: Mapping[str, Activity], rules: Rules) -> bool:
    """Whether two labels are heard together from the beginning of a region on, for long enough."""
    return any(
        start == region[0] and stop - start >= rules.min_overlap
        for one, other in combinations(heard.values(), 2)
        for start, stop in intersection(one, other)
    )


def first_overlap(heard: Mapping[str, Activity], rules: Rules) -> int | None:
    """The step at which two labels are first heard together; None where there is no such, or it is disputed.

    It is disputed if they are together for less than `Rules.min_overlap`, if it lies before `Rules.min_onset`, or if
    two labels nearly met before.
    """
    regions = together(heard.values())
    if not regions or regions[0][0] < rules.min_onset or not begins_plainly(regions[0], heard, rules):
        return None
    near = together([widened(activity, rules.guard) for activity in heard.values()])
    return regions[0][0] if near[0][0] >= regions[0][0] - rules.guard else None


def readings(annotation: Annotation) -> tuple[Annotation, ...]:
    """The ways in which soft labels can be taken, the plain one first; an annotation that is certain alone.

    The plain one has what is certain to `THRESHOLD` or more. Of the rest, one has nothing of what is heard perhaps, one
    has all, and for each label one has all of it and nothing of the rest, and the other way round: a question whose
    answer is the same in all of them does not depend on what is heard perhaps.
    """
    doubtful = sorted({event.label for event in annotation.events if _is_doubtful(event)})
    plain = _taken(annotation, lambda event: _confidence(event) >= THRESHOLD)
    if not doubtful:
        return (plain,)
    ways = [_taken(annotation, lambda event: not _is_doubtful(event)), _taken(annotation, lambda event: True)]
    if len(doubtful) > 1:
        for label in doubtful:
            ways.append(_taken(annotation, lambda event, label=label: not _is_doubtful(event) or event.label == label))
            ways.append(_taken(annotation, lambda event, label=label: not _is_doubtful(event) or event.label != label))
    return (plain, *ways)


def _confidence(event: LabelledEvent) -> float:
    return 1.0 if event.confidence is None else event.confidence


def _is_doubtful(event: LabelledEvent) -> bool:
    return LEAST_CONFIDENCE <= _confidence(event) <= SURE


def _taken(annotation: Annotation, keep: Callable[..., bool]) -> Annotation:
    events = tuple(e for e in annotation.events if _confidence(e) >= LEAST_CONFIDENCE and keep(e))
    return replace(annotation, events=events)
