"""The picture on the first screen: each model, its untrained twin and the baselines on one line."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from matplotlib.ticker import MaxNLocator

from audio_compositionality.encoders.loading.listing import named_models
from audio_compositionality.evaluator.compare.comparison import Comparison, View
from audio_compositionality.evaluator.compare.frame import FrameRow, score_rows
from audio_compositionality.evaluator.compare.loading import ModelKind, descriptions_in
from audio_compositionality.evaluator.compare.tables import score_words, view_title
from audio_compositionality.evaluator.compare.task_verdicts import twins_of
from audio_compositionality.evaluator.figures.layout import short_label
from audio_compositionality.support.text import number_text

MOST_LINES = 12
"""Most models in a picture, the highest first; tables have all."""

LONGEST_LINE_NAME = 26
"""Most characters of a name above its line, to fit a phone beside a score with its interval."""

EDGE = 2.0
"""Percent of the width left free on either side."""

SHAPES = ("square", "diamond", "cross", "plus", "ring", "down", "right", "left", "glass")
"""Marks of baselines; the legend names each."""


@dataclass(frozen=True)
class Mark:
    """A point on a line.

    Attributes:
        kind: ``model``, ``twin``, ``description`` or ``baseline``.
        name: of the model.
        text: its score, in words.
        x: percent of the width.
        low, high: ends of its interval, likewise, cut at the left edge; equal to `x` where there is none.
        fixed: in words, why construction fixes its score; empty where it does not.
    """

    kind: str
    name: str
    text: str
    x: float
    low: float
    high: float
    fixed: str = ""


@dataclass(frozen=True)
class OverviewLine:
    """A model beside its references.

    Attributes:
        name: of the model, shortened.
        text: its score.
        least: percent, the number that the model has to be above by its own result, where its measure has a floor; else
            None.
        least_text: that number; empty where there is none.
        zone: percent of the width covered by the untrained twin and the baselines, with their intervals, except scores
            fixed by construction; None where there is no such result.
        marks: the model's own last, so that it lies on top.
    """

    name: str
    text: str
    least: float | None
    least_text: str
    zone: float | None
    marks: tuple[Mark, ...]


@dataclass(frozen=True)
class Overview:
    """The picture of one measure.

    Attributes:
        title: task and measure.
        meaning: of the measure.
        lines: one per model.
        ticks: of the axis: percent and number.
        chance: percent, where all results share the same null; None where they have none, or different ones.
        left_out: models without a line.
        notes: on scores that are fixed by construction, one per baseline.
        alternative: the content in words.
    """

    title: str
    meaning: str
    lines: tuple[OverviewLine, ...]
    ticks: tuple[tuple[float, str], ...]
    chance: float | None
    left_out: int
    notes: tuple[str, ...]
    alternative: str


@dataclass(frozen=True)
class NamedBaseline:
    """A baseline in the legend.

    Attributes:
        kind: the kind of its mark.
        shape: of its mark, one of `SHAPES`.
        name: of the baseline.
        words: its description; empty where there is none.
    """

    kind: str
    shape: str
    name: str
    words: str


def named_baselines(comparisons: Sequence[Comparison]) -> tuple[NamedBaseline, ...]:
    """All baselines and the controls with a name of their own, the descriptions of sound first."""
    entries: dict[str, tuple[str, str]] = {}
    for comparison in comparisons:
        for place, result in enumerate(comparison.results):
            listing = named_models().get(result.result.model.id)
            if result.kind is ModelKind.BASELINE or (result.kind is ModelKind.CONTROL and listing is not None):
                entries[result.label] = (_kind(comparison, place), "" if listing is None else listing.description)
    order = sorted(entries, key=lambda label: (entries[label][0] != "description", label))
    return tuple(
        NamedBaseline(entries[label][0], SHAPES[number % len(SHAPES)], label, entries[label][1])
        for number, label in enumerate(order)
    )


def overviews(comparison: Comparison) -> list[Overview]:
    """A picture for each measure to trust that is known by sample."""
    return [_overview(comparison, view) for view in comparison.recommended]


def _overview(comparison: Comparison, view: View) -> Overview:
    trained = [k for k, result in enumerate(comparison.results) if result.kind is ModelKind.TRAINED]
    scores = [row for k in range(len(comparison.results)) for row in score_rows(comparison, k, [view.measure])]
    baselines = {k for k, result in enumerate(comparison.results) if result.kind is ModelKind.BASELINE}
    places = sorted(trained or range(len(scores)), key=lambda k: -float(view.means[k]))
    ends = [row.interval[1] for row in scores if row.interval]
    # The lower end of a baseline's interval decides nothing, and may be far below all scores: it is cut at the edge.
    ends += [row.interval[0] for k, row in enumerate(scores) if row.interval and (k in places or k not in baselines)]
    chance = _chance(view, scores)
    at_least = [least for k in places[:MOST_LINES] if (least := _least(comparison, view, scores[k])) is not None]
    shown = [0.0, *ends, *view.means.tolist(), *at_least, *(() if chance is None else (chance,))]
    low, high = min(shown), max(shown)
    scale = _Scale(low, high if high > low else low + 1.0)
    lines = tuple(_line(comparison, view, scores, place, scale) for place in places[:MOST_LINES])
    steps = np.asarray(MaxNLocator(5, steps=[1, 2, 2.5, 5, 10]).tick_values(scale.low, scale.high))
    inside = [step for step in steps.tolist() if scale.low <= step <= scale.high]
    ticks = tuple((scale.at(step), f"{step:.4g}".replace("-", "−")) for step in inside)
    title = view_title(comparison, view.measure.name)
    words = "; ".join(_words(line) for line in lines)
    fixed = dict.fromkeys((mark.name, mark.fixed) for line in lines for mark in line.marks if mark.fixed)
    has_grey = any(line.zone is not None for line in lines)
    notes = tuple(f"{'The grey leaves out ' if has_grey else ''}{name} ({why})." for name, why in fixed)
    at_chance = None if chance is None else scale.at(chance)
    alternative = f"{title}. {words}.{'' if chance is None else f' Chance: {number_text(chance)}.'}"
    return Overview(title, view.measure.meaning, lines, ticks, at_chance, len(places) - len(lines), notes, alternative)


def _chance(view: View, scores: Sequence[FrameRow]) -> float | None:
    """The null of a measure, where all results share it; a measure with a floor has one per result."""
    nulls = {row.null for row in scores}
    return next(iter(nulls)) if view.measure.floor is None and len(nulls) == 1 else None


@dataclass(frozen=True)
class _Scale:
    low: float
    high: float

    def at(self, value: float) -> float:
        share = (value - self.low) / (self.high - self.low)
        return max(0.0, round(EDGE + (100 - 2 * EDGE) * share, 2))


def _line(comparison: Comparison, view: View, scores: Sequence[FrameRow], place: int, scale: _Scale) -> OverviewLine:
    is_trained = comparison.results[place].kind is ModelKind.TRAINED
    twins, descriptions = (
        (twins_of(comparison, place), descriptions_in(comparison.results, comparison.info)) if is_trained else ([], [])
    )
    rest = [
        k
        for k, result in enumerate(comparison.results)
        if is_trained and result.kind is ModelKind.BASELINE and k not in descriptions
    ]
    kinds = (("baseline", rest), ("description", descriptions), ("twin", twins), (_kind(comparison, place), [place]))
    marks = tuple(_mark(view, scores[k], kind, scale) for kind, members in kinds for k in members)
    reached = [mark.high for mark in marks[:-1] if not mark.fixed]
    least = _least(comparison, view, scores[place])
    return OverviewLine(
        name=short_label(view.labels[place], LONGEST_LINE_NAME),
        text=marks[-1].text,
        least=None if least is None else scale.at(least),
        least_text="" if least is None else number_text(least, view.measure.digits, minus="−"),
        zone=max(reached) if reached else None,
        marks=marks,
    )


def _least(comparison: Comparison, view: View, row: FrameRow) -> float | None:
    """The number that a result has to be above by its own statement; None where the measure has no floor."""
    return None if view.measure.floor is None else row.least(view.measure, comparison.info)


def _kind(comparison: Comparison, place: int) -> str:
    kind = comparison.results[place].kind
    if kind is ModelKind.CONTROL:
        return "baseline"
    if kind is ModelKind.BASELINE:
        return "description" if place in descriptions_in(comparison.results, comparison.info) else "baseline"
    return "model" if kind is ModelKind.TRAINED else "twin"


def _mark(view: View, row: FrameRow, kind: str, scale: _Scale) -> Mark:
    mean = float(row.value or 0.0)
    low, high = row.interval or (mean, mean)
    text = score_words(mean, row.interval, view.measure.digits, 2)
    return Mark(kind, row.model, text, scale.at(mean), scale.at(low), scale.at(high), row.fixed or "")


def _words(line: OverviewLine) -> str:
    names: Sequence[Mark] = line.marks[::-1]
    marks = [f"{short_label(mark.name)} {mark.text}{f' ({mark.fixed})' if mark.fixed else ''}" for mark in names]
    least = [f"has to be above {line.least_text}"] if line.least_text else []
    return ", ".join((*marks[:1], *least, *marks[1:]))
