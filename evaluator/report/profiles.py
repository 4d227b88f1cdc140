"""Profiles of single models: score by kinds of samples beside chance and other references, shares and tallies."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from audio_compositionality.evaluator.compare.comparison import Comparison, View
from audio_compositionality.evaluator.compare.diversity import group_order
from audio_compositionality.evaluator.compare.loading import ComparedResult
from audio_compositionality.evaluator.compare.perception import perception_table
from audio_compositionality.evaluator.compare.statistics import Interval, mean_intervals
from audio_compositionality.evaluator.compare.tables import interval_text, null_name, score_words
from audio_compositionality.support.table import Cell, Column, Row, Table
from audio_compositionality.support.text import number_text
from audio_compositionality.tasks.base import Measure, Profile, Tally, TaskInfo

MOST_PROFILED = 16
"""Most models with a profile, the highest first; tables have all."""

CERTAINTY = 1.959963984540054
"""The .975 quantile of the normal distribution."""


@dataclass(frozen=True)
class Beside:
    """A score that needs no audio, in a bar.

    Attributes:
        name: in words.
        x: percent of the width.
        text: the number.
    """

    name: str
    x: float
    text: str


@dataclass(frozen=True)
class ProfileBar:
    """The mean score of a group of samples.

    Attributes:
        name: of the group.
        n: number of samples.
        x: percent of the width.
        low, high: ends of the interval, likewise; equal to `x` where there are too few samples.
        text: the score with its interval.
        beside: see `Beside`.
        is_above: whether the interval is above all of `beside`; None where there is no interval.
        printed: places of published values of the group on other data, percent of the width.
    """

    name: str
    n: int
    x: float
    low: float
    high: float
    text: str
    beside: tuple[Beside, ...]
    is_above: bool | None
    printed: tuple[float, ...] = ()


@dataclass(frozen=True)
class ProfilePart:
    """The bars of a grouping.

    Attributes:
        title: measure and grouping.
        bars: in the order of the groups.
        alternative: the content in words.
    """

    title: str
    bars: tuple[ProfileBar, ...]
    alternative: str


@dataclass(frozen=True)
class ProfileNumber:
    """A number of a model.

    Attributes:
        name: of the measure.
        text: its value, with its interval or as a share.
        beside: its references, in words; empty for a share.
        meaning: of the measure.
    """

    name: str
    text: str
    beside: str
    meaning: str


@dataclass(frozen=True)
class ModelProfile:
    """The profile of a model.

    Attributes:
        label: of the model.
        kind: of the model, in words; empty for one that is neither a baseline nor a control.
        numbers: its scores to trust and its shares.
        parts: its score by groups.
        tallies: its tables.
    """

    label: str
    kind: str
    numbers: tuple[ProfileNumber, ...]
    parts: tuple[ProfilePart, ...]
    tallies: tuple[Table, ...]


def model_profiles(comparison: Comparison) -> Iterator[ModelProfile]:
    """A profile for each of the highest results; none where the task defines no profile."""
    profile = comparison.info.profile
    if profile is None:
        return
    view = comparison.views.get(profile.measure)
    for place, result in enumerate(comparison.results[:MOST_PROFILED]):
        yield ModelProfile(
            label=result.label,
            kind="" if result.kind.value == "model" else result.kind.value,
            numbers=tuple(_numbers(comparison, place, result)),
            parts=() if view is None else tuple(_parts(comparison, view, place, profile.groupings)),
            tallies=(
                *(_tally_table(tally, comparison, place) for tally in _stated(profile, result)),
                *filter(None, (perception_table(comparison, place),)),
            ),
        )


def _numbers(comparison: Comparison, place: int, result: ComparedResult) -> Iterator[ProfileNumber]:
    info = comparison.info
    for measure in info.recommended:
        value = result.value(measure)
        if value is None:
            continue
        text = score_words(value, comparison.interval(place, measure), measure.digits)
        beside = ", ".join(f"{name} {null}" for name, null in _nulls(measure, result, info))
        yield ProfileNumber(measure.heading, text, beside, measure.meaning)
    assert info.profile is not None
    for name, whole in info.profile.shares:
        part, every = result.value(info.measure(name)), result.value(info.measure(whole))
        if part is not None and every:
            text = f"{part:,.0f} of {every:,.0f} {info.measure(whole).heading} ({part / every:.1%})"
            yield ProfileNumber(info.measure(name).heading, text, "", info.measure(name).meaning)


def _nulls(measure: Measure, result: ComparedResult, info: TaskInfo) -> Iterator[tuple[str, str]]:
    """The references of a measure: its null, and further ones that the task requires for trust in it."""
    stated = info.trusted.get(measure.name)
    for name in dict.fromkeys(filter(None, (measure.null, stated if isinstance(stated, str) else None))):
        null = info.measure(name)
        value = result.value(null)
        if value is not None:
            yield null_name(measure, null), number_text(value, null.digits, minus="−")


def _parts(comparison: Comparison, view: View, place: int, groupings: Sequence[str]) -> Iterator[ProfilePart]:
    samples = comparison.samples
    if samples is None:
        return
    for grouping in groupings:
        labels = samples.groups.get(grouping)
        if labels is None:
            continue
        names = list(dict.fromkeys(labels))
        if all(group_order(name)[0] < math.inf for name in names):
            names.sort(key=group_order)
        members = [np.flatnonzero(np.asarray(labels) == name) for name in names]
        bars = tuple(_bar(comparison, view, place, name, k) for name, k in zip(names, members, strict=True))
        title = f"{view.measure.heading[:1].upper()}{view.measure.heading[1:]} by {grouping}"
        words = "; ".join(
            f"{bar.name}, n = {bar.n:,}: {bar.text}, " + ", ".join(f"{one.name} {one.text}" for one in bar.beside)
            for bar in bars
        )
        yield ProfilePart(title, bars, f"{title}: {words}")


def _bar(comparison: Comparison, view: View, place: int, name: str, members: NDArray[np.int64]) -> ProfileBar:
    assert comparison.samples is not None
    printed = comparison.info.printed
    values = view.values[members, place]
    mean, interval = float(values.mean()), _interval(values, view.clusters[members], view.measure)
    beside = {words: reached(members) for words, reached in comparison.samples.without_listening.items()}
    low, high = interval or (mean, mean)
    digits = view.measure.digits
    first, last = view.measure.range

    def at(value: float) -> float:
        return round(100 * min(max((value - first) / (last - first), 0.0), 1.0), 2)

    return ProfileBar(
        name=name,
        n=len(members),
        x=at(mean),
        low=at(low),
        high=at(high),
        text=f"{number_text(mean, digits, minus='−')} {interval_text(interval, 2) or '(too few for an interval)'}",
        beside=tuple(Beside(words, at(value), number_text(value, digits)) for words, value in beside.items()),
        is_above=None if interval is None else low > max(beside.values(), default=-math.inf),
        # A group of all samples of a task is named like its measure.
        printed=() if printed is None else tuple(map(at, printed.of_measure(name))),
    )


def _interval(values: NDArray[np.float64], clusters: NDArray[np.int64], measure: Measure) -> Interval | None:
    """The 95 % interval of a mean, as in tables; where all scores are at the lowest or the highest possible value, the
    free end is Wilson's over clusters: resampling equal scores is uninformative."""
    interval = mean_intervals(values[:, None], clusters, bounds=measure.range)[0]
    if interval is None or np.ptp(values) > 0 or values[0] not in measure.range:
        return interval
    low, high = measure.range
    wide = CERTAINTY**2 / (len(np.unique(clusters)) + CERTAINTY**2) * (high - low)
    return (low, low + wide) if values[0] == low else (high - wide, high)


def _stated(profile: Profile, result: ComparedResult) -> Iterator[Tally]:
    """The result's tables, without rows that it does not state."""
    stated = result.result.measures
    for tally in profile.tallies:
        if tally.needs and stated.get(tally.needs) is None:
            continue
        rows = {
            heading: names
            for heading, names in tally.rows.items()
            if any(stated.get(name) is not None for name in names)
        }
        if rows:
            yield replace(tally, rows=rows)


def _tally_table(tally: Tally, comparison: Comparison, place: int) -> Table:
    info, result = comparison.info, comparison.results[place]
    first = [info.measure(name) for name in next(iter(tally.rows.values()))]
    headings = zip(tally.columns, first, strict=True)
    columns = (
        Column(tally.of_rows, numeric=False),
        *(Column(heading, digits=measure.digits or None) for heading, measure in headings),
    )
    rows = []
    for heading, names in tally.rows.items():
        measures = [info.measure(name) for name in names]
        values = [result.value(measure) for measure in measures]
        notes = [interval_text(_tally_interval(comparison, place, measure), 2) for measure in measures]
        if heading in tally.right:
            notes = [_share(values, k, tally.right[heading]) for k in range(len(values))]
        rows.append(Row((Cell(heading), *(Cell(value, note=note) for value, note in zip(values, notes, strict=True)))))
    return Table(tally.title, columns, tuple(rows))


def _tally_interval(comparison: Comparison, place: int, measure: Measure) -> Interval | None:
    """The 95 % interval of a mean over some of the samples, as for a bar of these; None for other measures."""
    result = comparison.results[place]
    column = result.column(measure)
    if column is None or measure.within is None:
        return None
    members = measure.places(result.samples.columns)
    return _interval(column[members], comparison.clusters[members], measure) if len(members) else None


def _share(counts: Sequence[float | None], place: int, right: int) -> str:
    """The share of a count in its row, and whether it counts right answers."""
    numbers = [count or 0.0 for count in counts]
    share = f"{numbers[place] / sum(numbers):.0%}" if sum(numbers) else ""
    return f"{share}, right" if share and place == right else share
