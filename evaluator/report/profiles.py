"""Profiles of single models: scores by kinds of samples with chance and other references, shares and tallies."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from audio_compositionality.evaluator.compare.comparison import Comparison, View
from audio_compositionality.evaluator.compare.diversity import group_order
from audio_compositionality.evaluator.compare.loading import ModelKind
from audio_compositionality.evaluator.compare.perception import perception_table
from audio_compositionality.evaluator.compare.statistics import Interval, mean_intervals
from audio_compositionality.evaluator.compare.tables import interval_text, null_name, score_words
from audio_compositionality.support.table import Cell, Column, Row, Table
from audio_compositionality.support.text import number_text
from audio_compositionality.tasks.base import Measure, Profile, Tally

MOST_PROFILED = 16
"""Most models with a profile, the highest first; the tables contain all."""

CERTAINTY = 1.959963984540054
"""The .975 quantile of the normal distribution."""


@dataclass(frozen=True)
class Reference:
    """A score that needs no audio, marked in a bar.

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
        low, high: ends of the interval in percent; equal to `x` if there are too few samples.
        text: the score with its interval.
        references: see `Reference`.
        is_above: whether the interval is above all of `references`; None if there is no interval.
        printed: published values of the group on other data, in percent of the width.
    """

    name: str
    n: int
    x: float
    low: float
    high: float
    text: str
    references: tuple[Reference, ...]
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
        references: the scores to compare it with, in words; empty for a share.
        meaning: of the measure.
    """

    name: str
    text: str
    references: str
    meaning: str


@dataclass(frozen=True)
class ModelProfile:
    """The profile of a model.

    Attributes:
        label: of the model.
        kind: of the model, in words; empty for one that is neither a baseline nor a control.
        numbers: its recommended scores and its shares.
        parts: its scores by groups of samples.
        tallies: tables of counts.
    """

    label: str
    kind: str
    numbers: tuple[ProfileNumber, ...]
    parts: tuple[ProfilePart, ...]
    tallies: tuple[Table, ...]


def model_profiles(comparison: Comparison) -> Iterator[ModelProfile]:
    """Yield a profile for each of the highest results; none if the task defines no profile."""
    info, profile = comparison.info, comparison.info.profile
    if profile is None:
        return
    for place, result in enumerate(comparison.results[:MOST_PROFILED]):
        numbers = []
        for measure in info.recommended:
            value = result.value(measure)
            if value is None:
                continue
            # The null, and a further reference that the task requires before it recommends the measure.
            trusted, references = info.trusted.get(measure.name), []
            for name in dict.fromkeys(filter(None, (measure.null, trusted if isinstance(trusted, str) else None))):
                null = info.measure(name)
                reached = result.value(null)
                if reached is not None:
                    references.append(f"{null_name(measure, null)} {number_text(reached, null.digits, minus='−')}")
            text = score_words(value, comparison.interval(place, measure), measure.digits)
            numbers.append(ProfileNumber(measure.heading, text, ", ".join(references), measure.meaning))
        for name, whole in profile.shares:
            part, every = result.value(info.measure(name)), result.value(info.measure(whole))
            if part is not None and every:
                text = f"{part:,.0f} of {every:,.0f} {info.measure(whole).heading} ({part / every:.1%})"
                numbers.append(ProfileNumber(info.measure(name).heading, text, "", info.measure(name).meaning))
        tallies = [
            tally for tally in profile.tallies if not (tally.needs and result.result.measures.get(tally.needs) is None)
        ]
        tables = [_tally_table(tally, comparison, place) for tally in tallies] + [perception_table(comparison, place)]
        yield ModelProfile(
            label=result.label,
            kind="" if result.kind is ModelKind.TRAINED else result.kind.value,
            numbers=tuple(numbers),
            parts=tuple(_parts(comparison, place, profile)),
            tallies=tuple(table for table in tables if table is not None),
        )


def _parts(comparison: Comparison, place: int, profile: Profile) -> Iterator[ProfilePart]:
    """Yield the scores of a model by groups of samples; none if the data are not opened."""
    view, samples = comparison.views.get(profile.measure), comparison.samples
    for grouping in profile.groupings:
        labels = None if samples is None else samples.groups.get(grouping)
        if view is None or labels is None:
            continue
        names = list(dict.fromkeys(labels))
        if all(group_order(name)[0] < math.inf for name in names):
            names.sort(key=group_order)
        members = [np.flatnonzero(np.asarray(labels) == name) for name in names]
        bars = tuple(_bar(comparison, view, place, name, k) for name, k in zip(names, members, strict=True))
        title = f"{view.measure.heading[:1].upper()}{view.measure.heading[1:]} by {grouping}"
        words = "; ".join(
            f"{bar.name}, n = {bar.n:,}: {bar.text}, " + ", ".join(f"{one.name} {one.text}" for one in bar.references)
            for bar in bars
        )
        yield ProfilePart(title, bars, f"{title}: {words}")


def _bar(comparison: Comparison, view: View, place: int, name: str, members: NDArray[np.int64]) -> ProfileBar:
    assert comparison.samples is not None
    printed = comparison.info.printed
    values = view.values[members, place]
    mean, interval = float(values.mean()), _interval(values, view.clusters[members], view.measure)
    others = {words: reached(members) for words, reached in comparison.samples.without_listening.items()}
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
        references=tuple(Reference(words, at(value), number_text(value, digits)) for words, value in others.items()),
        is_above=None if interval is None else low > max(others.values(), default=-math.inf),
        # A group of all samples of a task is named like its measure.
        printed=() if printed is None else tuple(map(at, printed.of_measure(name))),
    )


def _interval(values: NDArray[np.float64], clusters: NDArray[np.int64], measure: Measure) -> Interval | None:
    """Return the 95 % interval of a mean, as in tables; None for too few samples.

    If all scores equal the lowest or the highest possible value, resampling is uninformative, and Wilson's interval
    over clusters gives the other end.
    """
    interval = mean_intervals(values[:, None], clusters, bounds=measure.range)[0]
    if interval is None or np.ptp(values) > 0 or values[0] not in measure.range:
        return interval
    low, high = measure.range
    wide = CERTAINTY**2 / (len(np.unique(clusters)) + CERTAINTY**2) * (high - low)
    return (low, low + wide) if values[0] == low else (high - wide, high)


def _tally_table(tally: Tally, comparison: Comparison, place: int) -> Table | None:
    """Return a table of a result's counts, without rows that the result does not state; None if no row is left."""
    info, result = comparison.info, comparison.results[place]
    stated = result.result.measures
    named = {row: names for row, names in tally.rows.items() if any(stated.get(name) is not None for name in names)}
    if not named:
        return None
    first = [info.measure(name) for name in next(iter(named.values()))]
    headings = zip(tally.columns, first, strict=True)
    columns = (
        Column(tally.of_rows, numeric=False),
        *(Column(heading, digits=measure.digits or None) for heading, measure in headings),
    )
    rows = []
    for heading, names in named.items():
        measures = [info.measure(name) for name in names]
        values = [result.value(measure) for measure in measures]
        notes = []
        for k, measure in enumerate(measures):
            column = result.column(measure)
            interval = None
            if heading in tally.right:
                # The share of a count in its row, and whether it counts right answers.
                total = sum(count or 0.0 for count in values)
                share = f"{(values[k] or 0.0) / total:.0%}" if total else ""
                notes.append(f"{share}, right" if share and k == tally.right[heading] else share)
                continue
            if column is not None and measure.within is not None:
                # The measure is a mean over some of the samples; its interval is computed as for a bar.
                members = measure.places(result.samples.columns)
                if len(members):
                    interval = _interval(column[members], comparison.clusters[members], measure)
            notes.append(interval_text(interval, 2))
        rows.append(Row((Cell(heading), *(Cell(value, note=note) for value, note in zip(values, notes, strict=True)))))
    return Table(tally.title, columns, tuple(rows))
