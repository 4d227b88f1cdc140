"""The pictures on the first screen: for each model a line with its score, its twin's and the baselines'."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from matplotlib.ticker import MaxNLocator

from audio_compositionality.encoders.loading.listing import named_models
from audio_compositionality.evaluator.compare.comparison import Comparison, View
from audio_compositionality.evaluator.compare.loading import ModelKind, descriptions_in
from audio_compositionality.evaluator.compare.rows import score_rows
from audio_compositionality.evaluator.compare.tables import score_words, view_title
from audio_compositionality.evaluator.compare.task_verdicts import twins_of
from audio_compositionality.evaluator.figures.layout import short_label
from audio_compositionality.support.text import number_text

MOST_LINES = 12
"""Most models in a picture, the highest first; tables have all."""

LONGEST_LINE_NAME = 26
"""Most characters of a name above its line, so that a score with its interval also fits on a phone."""

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
        low, high: ends of its interval in percent, cut at the left edge; equal to `x` without an interval.
        fixed: in words, why the construction of the task fixes this score; empty if it does not.
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
    """A model with its twin and the baselines.

    Attributes:
        name: of the model, shortened.
        text: its score.
        least: the trivial baseline computed from the model's own result, in percent of the width; None if its measure
            has none.
        least_text: that number; empty if there is none.
        zone: percent of the width up to the upper interval ends of the twin and the baselines, except scores fixed by
            construction; None if there are none.
        marks: the model's own mark is the last, so that it is drawn on top.
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
        chance: in percent of the width, if all results have the same null; else None.
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
        words: its description; empty if there is none.
    """

    kind: str
    shape: str
    name: str
    words: str


def named_baselines(comparisons: Sequence[Comparison]) -> tuple[NamedBaseline, ...]:
    """Return all baselines and the controls with a name of their own, acoustic and text baselines first."""
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
    """Return a picture for each recommended measure that is known by sample."""
    return [overview(comparison, view) for view in comparison.recommended]


def overview(comparison: Comparison, view: View) -> Overview:
    """Return the picture of one measure."""
    results, info, measure = comparison.results, comparison.info, view.measure
    scores = [row for k in range(len(results)) for row in score_rows(comparison, k, [measure])]
    of_kind = {kind: [k for k, result in enumerate(results) if result.kind is kind] for kind in ModelKind}
    trained, baselines = of_kind[ModelKind.TRAINED], of_kind[ModelKind.BASELINE]
    places = sorted(trained or range(len(scores)), key=lambda k: -float(view.means[k]))
    drawn = places[:MOST_LINES]
    # A null that all results share is chance; a trivial baseline is computed from each result's own numbers.
    nulls = {row.null for row in scores}
    chance = next(iter(nulls)) if measure.trivial is None and len(nulls) == 1 else None
    least = {k: None if measure.trivial is None else scores[k].least(measure, info) for k in drawn}
    ends = [row.interval[1] for row in scores if row.interval]
    # The lower end of a baseline's interval decides nothing, and may be far below all scores: it is cut at the edge.
    ends += [row.interval[0] for k, row in enumerate(scores) if row.interval and (k in places or k not in baselines)]
    shown = [0.0, *ends, *view.means.tolist(), *(value for value in (*least.values(), chance) if value is not None)]
    low, high = min(shown), max(shown)
    high = high if high > low else low + 1.0

    def at(value: float) -> float:
        return max(0.0, round(float(EDGE + (100 - 2 * EDGE) * (value - low) / (high - low)), 2))

    descriptions = descriptions_in(results, info)
    lines, words = [], []
    for place in drawn:
        kinds: dict[str, list[int]] = {}
        if results[place].kind is ModelKind.TRAINED:
            rest = [k for k in baselines if k not in descriptions]
            kinds = {"baseline": rest, "description": descriptions, "twin": twins_of(comparison, place)}
        marks = []
        for kind, members in (*kinds.items(), (_kind(comparison, place), [place])):
            for k in members:
                row = scores[k]
                mean = float(row.value or 0.0)
                text = score_words(mean, row.interval, measure.digits, 2)
                first, last = row.interval or (mean, mean)
                marks.append(Mark(kind, row.model, text, at(mean), at(first), at(last), row.fixed or ""))
        reached, bound = [mark.high for mark in marks[:-1] if not mark.fixed], least[place]
        line = OverviewLine(
            name=short_label(view.labels[place], LONGEST_LINE_NAME),
            text=marks[-1].text,
            least=None if bound is None else at(bound),
            least_text="" if bound is None else number_text(bound, measure.digits, minus="−"),
            zone=max(reached) if reached else None,
            marks=tuple(marks),
        )
        said = [f"{short_label(one.name)} {one.text}{f' ({one.fixed})' if one.fixed else ''}" for one in marks[::-1]]
        has_to_be = [] if bound is None else [f"has to be above {line.least_text}"]
        words.append(", ".join((*said[:1], *has_to_be, *said[1:])))
        lines.append(line)
    steps = np.asarray(MaxNLocator(5, steps=[1, 2, 2.5, 5, 10]).tick_values(low, high))
    title = view_title(comparison, measure.name)
    fixed = dict.fromkeys((mark.name, mark.fixed) for line in lines for mark in line.marks if mark.fixed)
    has_grey = any(line.zone is not None for line in lines)
    return Overview(
        title=title,
        meaning=measure.meaning,
        lines=tuple(lines),
        ticks=tuple((at(step), f"{step:.4g}".replace("-", "−")) for step in steps.tolist() if low <= step <= high),
        chance=None if chance is None else at(chance),
        left_out=len(places) - len(drawn),
        notes=tuple(f"{'The grey leaves out ' if has_grey else ''}{name} ({why})." for name, why in fixed),
        alternative=f"{title}. {'; '.join(words)}.{'' if chance is None else f' Chance: {number_text(chance)}.'}",
    )


def _kind(comparison: Comparison, place: int) -> str:
    kind = comparison.results[place].kind
    if kind is ModelKind.CONTROL:
        return "baseline"
    if kind is ModelKind.BASELINE:
        return "description" if place in descriptions_in(comparison.results, comparison.info) else "baseline"
    return "model" if kind is ModelKind.TRAINED else "twin"
