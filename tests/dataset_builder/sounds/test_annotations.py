"""Intervals, against sets of steps; relations and readings by hand."""

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from audio_compositionality.dataset_builder.sounds import annotations as times
from audio_compositionality.dataset_builder.sounds.annotations import Annotation, AnnotationError, LabelledEvent, Rules

spans = st.lists(st.tuples(st.integers(0, 60), st.integers(0, 12)).map(lambda pair: (pair[0], sum(pair))), max_size=8)


def steps(intervals):
    return {step for start, stop in intervals for step in range(start, stop)}


def is_plain(activity):
    return all(start < stop for start, stop in activity) and all(
        one[1] < other[0] for one, other in itertools.pairwise(activity)
    )


@given(spans, spans)
def test_union_intersection_and_total_are_those_of_sets(one, other):
    first, second = times.union(one), times.union(other)
    assert is_plain(first)
    assert steps(first) == steps(one)
    assert times.total(first) == len(steps(one))
    both = times.intersection(first, second)
    assert is_plain(both)
    assert steps(both) == steps(one) & steps(other)
    near = {step + move for step in steps(one) for move in range(-3, 4)}
    assert steps(times.widened(first, 3)) == near
    assert is_plain(times.widened(first, 3))
    assert times.longest(first) == max((stop - start for start, stop in first), default=0)


@given(spans, st.integers(0, 6))
def test_gaps_are_joined(intervals, gap):
    joined = steps(times.union(intervals, gap))
    heard = steps(intervals)
    for step in range(80):
        before = [s for s in heard if s <= step]
        after = [s for s in heard if s >= step]
        assert (step in joined) == bool(before and after and min(after) - max(before) - 1 <= gap)


@given(st.lists(spans, max_size=4), st.integers(1, 4))
def test_together_counts(several, least):
    heard = [times.union(intervals) for intervals in several]
    counted = {step for step in range(80) if sum(step in steps(activity) for activity in heard) >= least}
    assert steps(times.together(heard, least)) == counted
    assert is_plain(times.together(heard, least))


@given(st.integers(0, 10**8))
def test_a_step_is_heard_if_its_middle_is(microseconds):
    step = times.steps_of(microseconds / 1e6)
    assert (step - 1) * 10_000 + 5_000 < microseconds <= step * 10_000 + 5_000


def clip(*events, resolution=0.0, duration=10.0):
    return Annotation("r", duration, tuple(LabelledEvent(*event) for event in events), resolution, "x")


def test_polyphony_and_seconds():
    annotation = clip((0, 4, "a"), (2, 6, "b"), (3, 5, "c"), (8, 9, "a"))
    assert times.polyphony(annotation) == 3
    assert times.overlap_seconds(annotation) == 3.0
    assert (times.polyphony(clip()), times.overlap_seconds(clip())) == (0, 0.0)


@pytest.mark.parametrize(
    ("events", "onset", "regions"),
    [
        ([(0, 4, "a"), (2, 6, "b")], 200, 1),
        ([(0, 4, "a"), (0.4, 6, "b")], None, 1),
        # Together for less than half a second, before a plain overlap or alone.
        ([(0, 2, "a"), (1.6, 6, "b"), (4, 8, "c")], None, None),
        ([(0, 2, "a"), (1.6, 6, "b")], None, None),
        # Nearly together before.
        ([(0, 2, "a"), (2.15, 6, "b"), (4, 8, "c")], None, None),
        ([(0, 2, "a"), (2.2, 6, "b"), (4, 8, "c")], 400, 1),
        ([(0, 4, "a"), (1, 2, "b"), (3, 4, "c")], 100, 2),
        ([(0, 4, "a")], None, 0),
        # Two short overlaps without a pause are no long one.
        ([(0, 4, "a"), (1, 1.4, "b"), (1.4, 1.8, "c")], None, None),
    ],
)
def test_overlaps(events, onset, regions):
    annotation = clip(*events)
    heard, rules = times.activities(annotation), Rules.of(annotation)
    assert times.first_overlap(heard, rules) == onset
    counted = times.overlap_regions(heard, rules)
    assert (None if counted is None else len(counted)) == regions


def test_readings():
    def soft(label, *confidences):
        return [(n, n + 1, label, None, confidence) for n, confidence in enumerate(confidences)]

    def labels(annotation):
        return "".join(event.label for event in annotation.events)

    certain = clip(*soft("a", None, 1.0, 0.71), *soft("b", 0.29))
    assert [labels(way) for way in times.readings(certain)] == ["aaa"]
    doubtful = clip(*soft("a", 0.3, 0.5, 0.7, 0.9))
    assert [labels(way) for way in times.readings(doubtful)] == ["aaa", "a", "aaaa"]
    two = clip(*soft("a", 0.4), *soft("b", 0.6))
    assert [labels(way) for way in times.readings(two)] == ["b", "", "ab", "a", "b", "b", "a"]


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: LabelledEvent(1, 1, "a"), "0 ≤ onset < offset must hold"),
        (lambda: LabelledEvent(float("nan"), 1, "a"), "0 ≤ onset < offset must hold"),
        (lambda: LabelledEvent(0, 1, ""), "has no label"),
        (lambda: LabelledEvent(0, 1, "a", confidence=2), "must be from 0 to 1"),
        (lambda: clip(duration=0.0), "'r' lasts 0.0 s"),
        (lambda: clip(resolution=-1.0), "the resolution of 'r' is -1.0 s"),
        (lambda: clip((0, 11, "a")), "'r': 'a' lasts until 11 s, after the end at 10.0 s"),
    ],
)
def test_what_is_no_annotation(make, message):
    with pytest.raises(AnnotationError, match=message):
        make()
