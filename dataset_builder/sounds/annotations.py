"""Events of a recording: their labels and times, and intervals of them in whole steps.

Intervals are counted in hundredths of a second: a label is active in the hundredths whose middle is in one of its
events. They are therefore whole numbers, merged, joined and cut exactly, and a frame-by-frame algorithm can reach the
same result.
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
"""An event with less confidence is absent."""


THRESHOLD = 0.5
"""An event with at least this confidence counts as present."""


SURE = 0.7
"""An event with more confidence is present beyond doubt; from `LEAST_CONFIDENCE` to here, its presence is uncertain."""


ROUNDING = 0.1
"""Seconds by which labels may end after their recording, and recordings before their labels."""


class AnnotationError(DatasetError):
    """Unusable labels; the message names file and line, the problem, and the rule."""


@dataclass(frozen=True)
class LabelledEvent:
    """A labelled event.

    Attributes:
        onset, offset: seconds from the beginning of the recording; onset < offset.
        label: label of the sound, as spelled in the labels.
        source: source of the sound, if labels distinguish sources with the same label.
        confidence: certainty, 0–1; None if the labels do not give it: certain.
    """

    onset: float
    offset: float
    label: str
    source: str | None = None
    confidence: float | None = None

    def __post_init__(self) -> None:
        if not 0 <= self.onset < self.offset < math.inf:
            raise AnnotationError(
                f"{self.label!r} lasts from {self.onset} to {self.offset} s; 0 ≤ onset < offset must hold"
            )
        if self.confidence is not None and not 0 <= self.confidence <= 1:
            raise AnnotationError(f"the confidence of {self.label!r} is {self.confidence}; it must be from 0 to 1")
        if not self.label:
            raise AnnotationError(f"the event from {self.onset} to {self.offset} s has no label")


@dataclass(frozen=True)
class Annotation:
    """A recording, or a part of one, and its events.

    Attributes:
        recording: its name, without folder and suffix.
        duration: seconds.
        events: by onset; for soft labels, including uncertain ones.
        resolution: resolution of the times in seconds; 0 if they are as exact as a listener.
        source_name: name of the data set or format.
        start: time in the recording at which this part begins, in seconds.
        group: recordings with the same group must be on one side of a split; empty if each is its own group.
        negative: whether it is only used for the absence of overlap, see `audiotime_negatives`.
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
            raise AnnotationError(f"{self.recording!r} lasts {self.duration} s; it must be more than 0")
        if not 0 <= self.resolution < math.inf:
            raise AnnotationError(f"the resolution of {self.recording!r} is {self.resolution} s; it must be 0 or more")
        for event in self.events:
            if event.offset > self.duration:
                raise AnnotationError(
                    f"{self.recording!r}: {event.label!r} lasts until {event.offset} s, after the end at "
                    f"{self.duration} s"
                )

    @property
    def labels(self) -> tuple[str, ...]:
        """Return all labels, in alphabetical order."""
        return tuple(sorted({event.label for event in self.events}))

    @property
    def key(self) -> tuple[str, float]:
        """Return recording and start, which identify the annotation."""
        return self.recording, self.start

    @property
    def split_group(self) -> str:
        """Return the group that has to stay on one side of a split."""
        return self.group or self.recording


def event_order(event: LabelledEvent) -> tuple[float, float, str, str]:
    """Return the sort key of events: onset, offset, label, source."""
    return event.onset, event.offset, event.label, event.source or ""


def joined_events(events: Iterable[LabelledEvent]) -> list[LabelledEvent]:
    """Return events, joined if they have the same label, source and confidence and touch or overlap."""
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
"""Steps per second."""

_UNITS = 1_000_000
"""Units per second, to which times are rounded before they are counted in steps."""

Interval = tuple[int, int]
"""First step, and the step after the last."""

Activity = tuple[Interval, ...]
"""Intervals that do not touch, in order."""

Relation = Literal["overlap", "apart", "ambiguous"]


@dataclass(frozen=True)
class Rules:
    """The rules for comparing labels at a given resolution, in steps.

    Attributes:
        merge_gap: longest silence of a label that does not split an event.
        guard: margin added on both sides of a sound that must be apart from another.
        min_overlap: shortest uninterrupted overlap of two sounds that counts.
        min_event: shortest total duration of a label in question.
        min_margin: least difference between the longest and the next.
        min_onset: earliest beginning in question.
    """

    merge_gap: int
    guard: int
    min_overlap: int
    min_event: int
    min_margin: int
    min_onset: int

    @classmethod
    def of(cls, annotation: Annotation) -> Rules:
        """Return the rules for an annotation's resolution."""
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
    """Return the first step whose middle is not before a time."""
    units = round(seconds * _UNITS)
    step = _UNITS // STEPS
    return -((step // 2 - units) // step)


def union(intervals: Iterable[Interval], gap: int = 0) -> Activity:
    """Return intervals, joined if they overlap, touch, or are at most `gap` steps apart; empty ones are left out."""
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
    """Return the intersection of two activities."""
    return union((max(a[0], b[0]), min(a[1], b[1])) for a in one for b in other)


def widened(activity: Activity, by: int) -> Activity:
    """Return an activity extended on both sides."""
    return union((start - by, stop + by) for start, stop in activity)


def total(activity: Activity) -> int:
    """Return the number of steps of an activity."""
    return sum(stop - start for start, stop in activity)


def longest(activity: Activity) -> int:
    """Return the steps of the longest interval; 0 if there is none."""
    return max((stop - start for start, stop in activity), default=0)


def activities(annotation: Annotation) -> dict[str, Activity]:
    """Return the activity of each label; silences of at most `Rules.merge_gap` are closed.

    If all events of a label are too short for a step, its activity is empty.
    """
    gap = Rules.of(annotation).merge_gap
    spans: dict[str, list[Interval]] = {label: [] for label in annotation.labels}
    for event in annotation.events:
        spans[event.label].append((steps_of(event.onset), steps_of(event.offset)))
    return {label: union(of_label, gap) for label, of_label in spans.items()}


def relation(one: Activity, other: Activity, rules: Rules) -> Relation:
    """Return the relation of two sounds; between overlapping and apart, it is ambiguous.

    They overlap if both are active for `Rules.min_overlap` without interruption. They are apart if, both widened by
    `Rules.guard`, they share no step.
    """
    if longest(intersection(one, other)) >= rules.min_overlap:
        return "overlap"
    if not intersection(widened(one, rules.guard), widened(other, rules.guard)):
        return "apart"
    return "ambiguous"


def relations(annotation: Annotation) -> dict[frozenset[str], Relation]:
    """Return the relation of each two labels."""
    rules, heard = Rules.of(annotation), activities(annotation)
    return {frozenset(pair): relation(heard[pair[0]], heard[pair[1]], rules) for pair in combinations(heard, 2)}


def together(heard: Iterable[Activity], least: int = 2) -> Activity:
    """Return the steps in which at least `least` of some activities coincide."""
    changes = sorted(change for activity in heard for start, stop in activity for change in ((start, 1), (stop, -1)))
    intervals: list[Interval] = []
    count = 0
    for (time, change), (following, _) in pairwise([*changes, (changes[-1][0] if changes else 0, 0)]):
        count += change
        if count >= least:
            intervals.append((time, following))
    return union(intervals)


def polyphony(annotation: Annotation) -> int:
    """Return the largest number of labels that are active at the same time."""
    heard = tuple(activities(annotation).values())
    return next((count for count in range(len(heard), 0, -1) if together(heard, count)), 0)


def overlap_seconds(annotation: Annotation) -> float:
    """Return the seconds in which two labels are active at the same time."""
    return total(together(activities(annotation).values())) / STEPS


def overlap_regions(heard: Mapping[str, Activity], rules: Rules) -> Activity | None:
    """Return when two or more labels overlap undisputedly; None if an overlap is disputed.

    Each region is long enough from its beginning: two labels begin to overlap there, and continue for
    `Rules.min_overlap`. Outside these regions, no two labels come closer than `Rules.guard` permits.
    """
    regions = together(heard.values())
    if any(not begins_plainly(region, heard, rules) for region in regions):
        return None
    near = together([widened(activity, rules.guard) for activity in heard.values()])
    return regions if len(near) == len(regions) else None


def begins_plainly(region: Interval, heard: Mapping[str, Activity], rules: Rules) -> bool:
    """Return whether two labels overlap from the beginning of a region, for long enough."""
    return any(
        start == region[0] and stop - start >= rules.min_overlap
        for one, other in combinations(heard.values(), 2)
        for start, stop in intersection(one, other)
    )


def first_overlap(heard: Mapping[str, Activity], rules: Rules) -> int | None:
    """Return the step at which two labels first overlap; None if there is no overlap, or it is disputed.

    It is disputed if the overlap is shorter than `Rules.min_overlap`, if it is before `Rules.min_onset`, or if two
    labels nearly met before.
    """
    regions = together(heard.values())
    if not regions or regions[0][0] < rules.min_onset or not begins_plainly(regions[0], heard, rules):
        return None
    near = together([widened(activity, rules.guard) for activity in heard.values()])
    return regions[0][0] if near[0][0] >= regions[0][0] - rules.guard else None


def readings(annotation: Annotation) -> tuple[Annotation, ...]:
    """Return the possible readings of soft labels, the plain one first; for certain labels, the annotation alone.

    The plain reading has the events with a confidence of at least `THRESHOLD`. Of the other readings, one has no
    uncertain event, one has all of them, and for each label one has only its uncertain events, and one has all others.
    A question with the same answer in all readings does not depend on uncertain events.
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
