"""Events of a recording: their labels and times, and intervals of them in whole steps.

Intervals count in hundredths of a second: a label is active in the hundredths whose middle lies in one of its events.
So they are whole numbers, merged, joined and cut exactly, and a frame-by-frame algorithm can arrive at the same
result.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from itertools import combinations, pairwise
from typing import Literal

from ..data import DatasetError

LEAST_CONFIDENCE = 0.3
"""A less certain event is absent."""


THRESHOLD = 0.5
"""An event at least this certain counts as present."""


SURE = 0.7
"""A more certain event is present beyond doubt; from `LEAST_CONFIDENCE` to here its presence is uncertain."""


ROUNDING = 0.1
"""Seconds by which labels may end after their recording, and recordings before their labels."""


class AnnotationError(DatasetError):
    """Unusable labels: states file and line, the problem, and the rule."""


@dataclass(frozen=True)
class LabelledEvent:
    """A labelled event.

    Attributes:
        onset, offset: seconds from the beginning; onset < offset.
        label: of the sound, as the labels spell it.
        source: of the sound, where the labels distinguish sources of one label.
        confidence: certainty, 0–1; None where the labels do not state it: certain.
    """

    onset: float
    offset: float
    label: str
    source: str | None = None
    confidence: float | None = None

    def __post_init__(self) -> None:
        if not 0 <= self.onset < self.offset < math.inf:
            raise AnnotationError(
                f"{self.label!r} lasts from {self.onset} to {self.offset} s; expected is 0 ≤ onset < offset"
            )
        if self.confidence is not None and not 0 <= self.confidence <= 1:
            raise AnnotationError(f"the confidence of {self.label!r} is {self.confidence}; expected is 0 to 1")
        if not self.label:
            raise AnnotationError(f"the event from {self.onset} to {self.offset} s has no label")


@dataclass(frozen=True)
class Annotation:
    """A recording, or a part of one, and its events.

    Attributes:
        recording: its name, without folder and ending.
        duration: seconds.
        events: by onset; of soft labels also the uncertain ones.
        resolution: seconds, of the times in the labels; 0 where they are as exact as a listener.
        source_name: of the data set or the format.
        start: seconds of the recording at which this part begins.
        group: of recordings that must be on one side of a split; the recording where it is empty.
        negative: whether it stands only for the absence of overlap, see `audiotime_negatives`.
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
                    f"{self.recording!r}: {event.label!r} lasts until {event.offset} s, after the end at "
                    f"{self.duration} s"
                )

    @property
    def labels(self) -> tuple[str, ...]:
        """All labels, in alphabetical order."""
        return tuple(sorted({event.label for event in self.events}))

    @property
    def key(self) -> tuple[str, float]:
        """Recording and start, which identify the annotation."""
        return self.recording, self.start

    @property
    def split_group(self) -> str:
        """The group that has to stay on one side of a split."""
        return self.group or self.recording


def event_order(event: LabelledEvent) -> tuple[float, float, str, str]:
    """The sort key of events: onset, offset, label, source."""
    return event.onset, event.offset, event.label, event.source or ""


def joined_events(events: Iterable[LabelledEvent]) -> list[LabelledEvent]:
    """Events, with those of one label, source and confidence joined where they meet or overlap."""
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
"""Steps of a second."""

_UNITS = 1_000_000
"""Units of a second, to which times are rounded before they are counted in steps."""

Interval = tuple[int, int]
"""First step, and the step after the last."""

Activity = tuple[Interval, ...]
"""Intervals that do not touch, in order."""

Relation = Literal["overlap", "apart", "ambiguous"]


@dataclass(frozen=True)
class Rules:
    """The rules of comparison at a resolution of the labels, in steps.

    Attributes:
        merge_gap: longest silence of a label that splits no event.
        guard: margin added on both sides of a sound that has to be apart from another.
        min_overlap: shortest uninterrupted overlap of two sounds that counts as one.
        min_event: shortest total duration of a label that is asked about.
        min_margin: least excess of the longest over the next.
        min_onset: earliest beginning that is asked about.
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
    """The intersection of two activities."""
    return union((max(a[0], b[0]), min(a[1], b[1])) for a in one for b in other)


def widened(activity: Activity, by: int) -> Activity:
    """An activity extended on both sides."""
    return union((start - by, stop + by) for start, stop in activity)


def total(activity: Activity) -> int:
    """Steps of an activity."""
    return sum(stop - start for start, stop in activity)


def longest(activity: Activity) -> int:
    """Steps of the longest interval; 0 where there is none."""
    return max((stop - start for start, stop in activity), default=0)


def activities(annotation: Annotation) -> dict[str, Activity]:
    """The activity of each label; silences of at most `Rules.merge_gap` are closed.

    A label whose events are all too short for a step has an empty activity.
    """
    gap = Rules.of(annotation).merge_gap
    spans: dict[str, list[Interval]] = {label: [] for label in annotation.labels}
    for event in annotation.events:
        spans[event.label].append((steps_of(event.onset), steps_of(event.offset)))
    return {label: union(of_label, gap) for label, of_label in spans.items()}


def relation(one: Activity, other: Activity, rules: Rules) -> Relation:
    """The relation of two sounds; between overlapping and apart it is ambiguous.

    They overlap if both are active for `Rules.min_overlap` without interruption. They are apart if, both widened by
    `Rules.guard`, they have no step in common.
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
    """The steps in which at least `least` of some activities coincide."""
    changes = sorted(change for activity in heard for start, stop in activity for change in ((start, 1), (stop, -1)))
    intervals: list[Interval] = []
    count = 0
    for (time, change), (following, _) in pairwise([*changes, (changes[-1][0] if changes else 0, 0)]):
        count += change
        if count >= least:
            intervals.append((time, following))
    return union(intervals)


def polyphony(annotation: Annotation) -> int:
    """Most labels that are active at the same time."""
    heard = tuple(activities(annotation).values())
    return next((count for count in range(len(heard), 0, -1) if together(heard, count)), 0)


def overlap_seconds(annotation: Annotation) -> float:
    """Seconds in which two labels are active at the same time."""
    return total(together(activities(annotation).values())) / STEPS


def overlap_regions(heard: Mapping[str, Activity], rules: Rules) -> Activity | None:
    """The times of certain polyphony: two or more labels overlap undisputedly; None where an overlap is disputed.

    Each region is long enough from its beginning on: two labels begin to overlap there, and go on for
    `Rules.min_overlap`. No two labels come as close as `Rules.guard` allows outside these regions.
    """
    regions = together(heard.values())
    if any(not begins_plainly(region, heard, rules) for region in regions):
        return None
    near = together([widened(activity, rules.guard) for activity in heard.values()])
    return regions if len(near) == len(regions) else None


def begins_plainly(region: Interval, heard: Mapping[str, Activity], rules: Rules) -> bool:
    """Whether two labels overlap from the beginning of a region on, for long enough."""
    return any(
        start == region[0] and stop - start >= rules.min_overlap
        for one, other in combinations(heard.values(), 2)
        for start, stop in intersection(one, other)
    )


def first_overlap(heard: Mapping[str, Activity], rules: Rules) -> int | None:
    """The step at which two labels first overlap; None where there is none, or it is disputed.

    It is disputed if the overlap is shorter than `Rules.min_overlap`, if it lies before `Rules.min_onset`, or if two
    labels nearly met before.
    """
    regions = together(heard.values())
    if not regions or regions[0][0] < rules.min_onset or not begins_plainly(regions[0], heard, rules):
        return None
    near = together([widened(activity, rules.guard) for activity in heard.values()])
    return regions[0][0] if near[0][0] >= regions[0][0] - rules.guard else None


def readings(annotation: Annotation) -> tuple[Annotation, ...]:
    """The possible readings of soft labels, the plain one first; of certain labels, the annotation alone.

    The plain reading has the events that are certain to `THRESHOLD` or more. Of the others, one has no uncertain event,
    one has all of them, and for each label one has its uncertain events and no others, and one the others alone. A
    question with the same answer in all readings does not depend on uncertain events.
    """
    # Events that are not absent, with their certainty.
    events = [(event, 1.0 if event.confidence is None else event.confidence) for event in annotation.events]
    events = [(event, confidence) for event, confidence in events if confidence >= LEAST_CONFIDENCE]
    labels = sorted({event.label for event, confidence in events if confidence <= SURE})
    ways = [[event for event, confidence in events if confidence >= THRESHOLD]]
    if labels:
        ways += [[event for event, confidence in events if confidence > SURE], [event for event, _ in events]]
    for label in labels if len(labels) > 1 else ():
        ways.append([event for event, confidence in events if confidence > SURE or event.label == label])
        ways.append([event for event, confidence in events if confidence > SURE or event.label != label])
    return tuple(replace(annotation, events=tuple(way)) for way in ways)
