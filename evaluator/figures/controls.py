"""The figure of a score against the measures beside it."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import MaxNLocator
from numpy.typing import NDArray

from audio_compositionality.evaluator.compare.comparison import Comparison
from audio_compositionality.evaluator.compare.statistics import Interval
from audio_compositionality.evaluator.compare.tables import null_name
from audio_compositionality.tasks.base import Measure

from .files import figure_style
from .kinds import FigureError, Look, crowds_at_one, distinct, looks_of, measure_name, name_at_one, spread_at_one
from .layout import COLUMN, PAGE, Grid, Key, even_columns, in_points, limits, number_points

Floats = NDArray[np.float64]

FEW = 8
"""So many models are drawn in a column."""

MARKER = 3
"""Points (1/72 inch), the size of a model's marker."""

EQUAL: dict[str, Any] = {"color": "#888888", "linewidth": 0.7, "linestyle": "--", "zorder": 1}
CHANCE: dict[str, Any] = {"color": "#888888", "linewidth": 0.7, "linestyle": ":", "zorder": 1}
"""Lines that are no model's."""


def control_scatter(comparison: Comparison) -> Figure:
    """The score against each other shown measure, a model a point, numbered in the order of the comparison; a key is
    below.

    The dashed line is where the score is equal to its null. The dotted line is a measure's chance, or another null that
    is the same for all. Vertical bars are 95 % intervals
    of the mean score. Axes are spread where values crowd at 1, see `crowds_at_one`.

    Raises:
        FigureError: no result has the score, or any other shown measure.
    """
    info = comparison.info
    scores = _values(comparison, info.score)
    controls = [measure for measure in info.shown if measure is not info.score]
    values = {measure.name: _values(comparison, measure) for measure in controls}
    controls = [measure for measure in controls if np.isfinite(values[measure.name] + scores).any()]
    if not controls:
        raise FigureError(f"the results of {info.title} have no measure beside the score")
    view = comparison.views.get(info.score.name)
    intervals: list[Interval | None] = [None] * len(scores) if view is None else view.intervals
    stated = scores[np.isfinite(scores)]
    reach = np.array([*stated, *(end for interval in intervals if interval is not None for end in interval)])
    looks = looks_of(comparison, range(len(scores)))
    few = len(scores) <= FEW
    with figure_style():
        width = COLUMN if few else PAGE
        key = Key(comparison.labels, columns=1 if few else 3, width=width)
        grid = Grid(
            len(controls),
            columns=2 if few else even_columns(len(controls), 3),
            width=width,
            height=1.15 if few else 2.1,
            gap=0.1,
            above=0.06,
            under=0.36,
            foot=key.height + 0.05 + 0.14 * math.ceil((len(distinct(looks)) + 2) / (3 if few else 5)),
        )
        figure, panels = grid.draw()
        lines: dict[str, dict[str, Any]] = {}
        for axes, measure in zip(panels, controls, strict=True):
            lines |= _prepare(axes, comparison, measure, values[measure.name], reach, few)
            _draw_points(axes, values[measure.name], scores, intervals, looks)
        grid.hide_inner(panels, x=False, y=True)
        name = measure_name(comparison, info.score)
        grid.label(figure, name_at_one(name) if crowds_at_one(info.score, reach) else name)
        key.draw(figure)
        _draw_legend(figure, distinct(looks), lines, key.height, 3 if few else 5)
    return figure


def _values(comparison: Comparison, measure: Measure) -> Floats:
    """A measure of each result, [results]; NaN where there is none."""
    values = [result.value(measure) for result in comparison.results]
    return np.array([np.nan if value is None else float(value) for value in values], np.float64)


def _prepare(
    axes: Axes, comparison: Comparison, measure: Measure, values: Floats, reach: Floats, few: bool
) -> dict[str, dict[str, Any]]:
    """Scales, limits and lines of a panel; gives how its lines look, by what they are."""
    score = comparison.info.score
    stated = values[np.isfinite(values)]
    null = _common_null(comparison, measure)
    shown = stated if null is None else np.append(stated, null)
    axes.set(xlim=limits(shown), ylim=limits(reach), xlabel=measure.heading)
    axes.xaxis.set_major_locator(MaxNLocator(4 if few else 6, steps=[1, 2, 2.5, 5, 10]))
    is_null, lines = measure.name == score.null, {}
    if crowds_at_one(score, reach):
        spread_at_one(axes, "y", reach)
        if is_null and crowds_at_one(measure, shown):
            spread_at_one(axes, "x", shown)
    if is_null:
        line = np.linspace(*axes.get_xlim(), 100)
        axes.plot(line, line, **EQUAL)
        lines[f"score = {measure.heading}"] = EQUAL
    if null is not None:
        axes.axvline(null, **CHANCE)
        assert measure.null is not None
        lines[null_name(measure, comparison.info.measure(measure.null))] = CHANCE
    return lines


def _common_null(comparison: Comparison, measure: Measure) -> float | None:
    """The null of a measure, where all results have the same."""
    if measure.null is None or comparison.info.measure(measure.null).shown:
        return None
    nulls = {result.result.measures.get(measure.null) for result in comparison.results}
    value = nulls.pop() if len(nulls) == 1 else None
    return None if value is None else float(value)


def _draw_legend(
    figure: Figure, looks: Sequence[Look], lines: Mapping[str, dict[str, Any]], above: float, columns: int
) -> None:
    handles = [Line2D([], [], color=k.colour, marker=k.marker, linestyle="", markersize=MARKER) for k in looks]
    figure.legend(
        [*handles, *(Line2D([], [], **style) for style in lines.values())],
        [*(look.name for look in looks), *lines],
        loc="lower center",
        ncols=columns,
        bbox_to_anchor=(0.5, above / figure.get_figheight()),
        borderaxespad=0,
    )


def _draw_points(
    axes: Axes, values: Floats, scores: Floats, intervals: Sequence[Interval | None], looks: Sequence[Look]
) -> None:
    """Models with their intervals and numbers; a line joins the two where it would not be clear whose a number is."""
    places = np.flatnonzero(np.isfinite(values + scores)).tolist()
    x, y = values[places], scores[places]
    ends = np.array([intervals[k] or (scores[k], scores[k]) for k in places])
    for k, at, middle, interval in zip(places, x, y, ends, strict=True):
        axes.plot((at, at), interval, color=looks[k].colour, linewidth=0.6)
        axes.plot(at, middle, looks[k].marker, color=looks[k].colour, markersize=MARKER)
    points = in_points(axes, x, y)
    reach = np.max([np.abs(in_points(axes, x, end) - points) for end in ends.T], axis=0)
    number_points(axes, points, [k + 1 for k in places], np.maximum(reach, MARKER / 2 + 0.5))
