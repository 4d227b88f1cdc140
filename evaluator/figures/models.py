"""Figures of models: scores against other measures, and the paired tests."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from matplotlib.colors import CenteredNorm
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Rectangle
from matplotlib.path import Path
from matplotlib.ticker import MaxNLocator
from numpy.typing import NDArray

from audio_compositionality.evaluator.compare.comparison import Comparison
from audio_compositionality.evaluator.compare.statistics import Interval, PairedTests
from audio_compositionality.evaluator.compare.tables import null_name
from audio_compositionality.tasks.base import Measure

from . import layout
from .style import (
    FigureError,
    crowds_at_one,
    distinct,
    drawn_view,
    figure_style,
    looks_of,
    measure_name,
    name_at_one,
    spread_at_one,
)

Floats = NDArray[np.float64]

FEW = 8
"""Most models for which a figure fits into a column."""

MARKER_SIZE = 8
"""Size of a model's mark with its number in it, in points (1/72 inch)."""

EQUAL: dict[str, Any] = {"color": "#888888", "linewidth": 0.7, "linestyle": "--", "zorder": 1}
CHANCE_LINE: dict[str, Any] = {"color": "#888888", "linewidth": 0.7, "linestyle": ":", "zorder": 1}
"""Style of lines that belong to no model."""


def control_scatter(comparison: Comparison) -> Figure:
    """Return a figure of the score against each other shown measure: a numbered point per model, and a key.

    The numbers are in the order of the comparison. The dashed line is where score and null are equal. The dotted line
    is a measure's chance, or another null common to all results. Vertical bars are 95 % intervals of the mean score.
    Axes are logarithmic if values crowd at 1, see `crowds_at_one`.

    Raises:
        FigureError: no result has the score, or any other shown measure.
    """
    info = comparison.info
    scores = _values(comparison, info.score)
    controls = [measure for measure in info.shown if measure is not info.score]
    values = {measure.name: _values(comparison, measure) for measure in controls}
    controls = [measure for measure in controls if np.isfinite(values[measure.name] + scores).any()]
    if not controls:
        raise FigureError(f"the results of {info.title} have no measure other than the score")
    view = comparison.views.get(info.score.name)
    intervals: list[Interval | None] = [None] * len(scores) if view is None else view.intervals
    stated = scores[np.isfinite(scores)]
    reach = np.array([*stated, *(end for interval in intervals if interval is not None for end in interval)])
    looks = looks_of(comparison, range(len(scores)))
    few = len(scores) <= FEW
    with figure_style():
        width = layout.COLUMN if few else layout.PAGE
        key = layout.NumberKey(comparison.labels, columns=1 if few else 3, width=width)
        grid = layout.Grid(
            len(controls),
            columns=2 if few else layout.even_columns(len(controls), 3),
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
            # The null of the measure, if all results share it.
            null, of_models = None, values[measure.name]
            if measure.null is not None and not info.measure(measure.null).shown:
                nulls = {result.result.measures.get(measure.null) for result in comparison.results}
                null = nulls.pop() if len(nulls) == 1 else None
            known = of_models[np.isfinite(of_models)]
            known = known if null is None else np.append(known, float(null))
            axes.set(xlim=layout.limits(known), ylim=layout.limits(reach), xlabel=measure.heading)
            axes.xaxis.set_major_locator(MaxNLocator(4 if few else 6, steps=[1, 2, 2.5, 5, 10]))
            is_null = measure.name == info.score.null
            if crowds_at_one(info.score, reach):
                spread_at_one(axes, "y", reach)
                if is_null and crowds_at_one(measure, known):
                    spread_at_one(axes, "x", known)
            if is_null:
                line = np.linspace(*axes.get_xlim(), 100)
                axes.plot(line, line, **EQUAL)
                lines[f"score = {measure.heading}"] = EQUAL
            if null is not None and measure.null is not None:
                axes.axvline(float(null), **CHANCE_LINE)
                lines[null_name(measure, info.measure(measure.null))] = CHANCE_LINE
            for place in np.flatnonzero(np.isfinite(of_models + scores)).tolist():
                look, x, y = looks[place], of_models[place], scores[place]
                axes.plot((x, x), intervals[place] or (y, y), color=look.colour, linewidth=0.6)
                # The number of a model is written into its mark.
                mark: dict[str, Any] = {"color": look.colour, "markerfacecolor": "white"}
                axes.plot(x, y, look.marker, markeredgewidth=0.6, markersize=1.4 * MARKER_SIZE, **mark)
                axes.annotate(str(place + 1), (x, y), ha="center", va="center_baseline", fontsize=layout.SMALLEST)
        grid.hide_inner(panels, x=False, y=True)
        name = measure_name(comparison, info.score)
        grid.label(figure, name_at_one(name) if crowds_at_one(info.score, reach) else name)
        key.draw(figure)
        marks: dict[str, Any] = {"linestyle": "", "markersize": 0.7 * MARKER_SIZE, "markerfacecolor": "white"}
        kinds = {kind.name: Line2D([], [], color=kind.colour, marker=kind.marker, **marks) for kind in distinct(looks)}
        kinds |= {words: Line2D([], [], **style) for words, style in lines.items()}
        anchor = (0.5, key.height / figure.get_figheight())
        where: dict[str, Any] = {"loc": "lower center", "bbox_to_anchor": anchor, "borderaxespad": 0}
        figure.legend(list(kinds.values()), list(kinds), ncols=3 if few else 5, **where)
    return figure


def _values(comparison: Comparison, measure: Measure) -> Floats:
    """Return a measure of each result, [results]; NaN for a result without it."""
    values = [result.value(measure) for result in comparison.results]
    return np.array([np.nan if value is None else float(value) for value in values], np.float64)


Integers = NDArray[np.int64]


# ----- The map of paired tests


P_LEVELS = (0.05, 0.01, 0.001)
"""Levels of the adjusted p: one dot for p up to the first, two for p up to the second, three up to the third."""

DIVERGING = "PuOr"
"""Colours of differences, orange below zero and purple above: distinct also in red-green blindness."""

DIAGONAL = "#CCCCCC"
"""Colour of the diagonal, a model against itself."""

LARGEST_CELL = 0.22
"""Largest size of a cell in inches; cells of many models are smaller."""

_LUMINANCE = (0.2126, 0.7152, 0.0722)  # weights of red, green and blue, ITU-R BT.709
_ABOVE, _BELOW = 0.16, 0.88  # inches of numbers above the map, and of scale and labels below it


def significance_map(comparison: Comparison, measure: str) -> Figure:
    """Return a map of differences between models: of their means, row − column, with dots for the adjusted p.

    Paired tests on the same samples, p values adjusted over all pairs, see `compare_pairs`: one dot for p ≤ 0.05, two
    for p ≤ 0.01, three for p ≤ 0.001, none where models do not differ significantly. The map is hatched if there are
    too few samples for a test.

    Args:
        comparison: the comparison.
        measure: name of a measure that all results have by sample.

    Raises:
        FigureError: there is no such measure, or only one model.
    """
    view = drawn_view(comparison, measure)
    n, m = view.values.shape
    if m < 2:
        raise FigureError(f"there is only one result of {comparison.info.title}; a paired test needs two")
    tests, means = view.tests, view.means[view.order]
    difference = means[:, None] - means
    with figure_style():
        names = [
            f"{name}  {number}"
            for number, name in enumerate(
                layout.short_labels([view.labels[k] for k in view.order], layout.NAMES_WIDTH), 1
            )
        ]
        written = max(map(layout.text_width, names)) + 0.1
        cell = min(LARGEST_CELL, (layout.PAGE - written - 0.06) / m)
        width, height = max(layout.COLUMN, written + m * cell + 0.06), _ABOVE + m * cell + _BELOW
        left = (written + width - m * cell) / 2
        figure = Figure(figsize=(width, height))
        axes = figure.add_axes((left / width, _BELOW / height, m * cell / width, m * cell / height), facecolor=DIAGONAL)
        norm = CenteredNorm(halfrange=float(np.abs(difference).max()) or 1)
        masked = np.ma.masked_where(np.eye(m, dtype=bool), difference)
        image = axes.imshow(masked, cmap=DIVERGING, norm=norm, interpolation="none")
        dots, dark = dots_of(tests, view.order), image.to_rgba(difference)[..., :3] @ _LUMINANCE < 0.4
        for number in range(1, len(P_LEVELS) + 1):
            for ground, colour in ((dark, "white"), (~dark, "black")):
                y, x = np.nonzero((dots == number) & ground)
                axes.plot(x, y, **_dot_style(number, cell), color=colour)
        note = f"paired tests, n = {n:,} {comparison.info.samples}, adjusted over {len(tests):,} pair{'s' * (m > 2)}"
        if tests.p is None:
            axes.add_patch(Rectangle((-0.5, -0.5), m, m, fill=False, hatch="//////", linewidth=0))
            note = f"hatched: too few samples for a test, n = {n:,} {comparison.info.samples}"
        axes.set_yticks(range(m), names)
        axes.set_xticks(range(m), [str(number) for number in range(1, m + 1)])
        axes.tick_params(length=0, labeltop=True, labelbottom=False)
        axes.spines[:].set_visible(False)
        # The scale of colours, as wide as the map, but not too narrow for its numbers.
        long = max(m * cell, 1.2)
        start = min(left, width - long - 0.1)
        bar = figure.add_axes((start / width, (_BELOW - 0.14) / height, long / width, 0.08 / height))
        scale = np.linspace(-norm.halfrange, norm.halfrange, 255)
        bar.imshow(scale[None], cmap=DIVERGING, norm=norm, aspect="auto", extent=(scale[0], scale[-1], 0, 1))
        bar.xaxis.set_major_locator(MaxNLocator(4, steps=[1, 2, 2.5, 5, 10]))
        bar.set_yticks([])
        figure.text(
            0.5, 0.42 / height, f"{measure_name(comparison, view.measure)}: row − column", ha="center", fontsize=7
        )
        figure.legend(
            [
                Line2D([], [], **_dot_style(number, LARGEST_CELL), color="black")
                for number in range(1, len(P_LEVELS) + 1)
            ],
            [f"p ≤ {level:g}" for level in P_LEVELS],
            loc="lower center",
            bbox_to_anchor=(0.5, 0.2 / height),
            ncols=len(P_LEVELS),
            borderaxespad=0,
        )
        figure.text(0.5, 0.05 / height, note, ha="center", fontsize=layout.SMALLEST)
    return figure


def dots_of(tests: PairedTests, order: Sequence[int]) -> Integers:
    """Return how many of P_LEVELS each pair's adjusted p reaches, [m, m], rows and columns in the given order."""
    dots = np.zeros((len(order), len(order)), np.int64)
    if tests.p_adjusted is not None:
        dots[tests.first, tests.second] = sum((tests.p_adjusted <= level).astype(np.int64) for level in P_LEVELS)
    return (dots + dots.T)[np.ix_(order, order)]


def _dot_style(count: int, cell: float) -> dict[str, Any]:
    """Return the style of a marker with `count` dots in a row; three fit into a cell of `cell` inches."""
    circle = Path.unit_circle()
    places = 0.36 * (np.arange(count) - (count - 1) / 2)
    dots = [Path(np.asarray(circle.vertices) * 0.14 + (place, 0), circle.codes) for place in places]
    # Two invisible points: Matplotlib sizes a marker by its farthest point.
    ends = Path([(-0.5, 0), (0.5, 0)], [Path.MOVETO, Path.MOVETO])
    marker = Path.make_compound_path(ends, *dots)
    return {"linestyle": "", "marker": marker, "markersize": 0.75 * 72 * cell, "markeredgewidth": 0}
