"""The figure of scores against their controls; see `figures`."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import matplotlib
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import MaxNLocator
from numpy.typing import NDArray

from audio_compositionality.evaluator.compare.comparison import Comparison, Entry
from .figure_files import figure_style
from .figure_kinds import FigureError, Kind, distinct, ranked, score_name
from .figure_layout import (COLUMN, PAGE, Grid, Key, even_columns, in_points, label_places, limits, spans_decade, stretch, stretched_name)
from audio_compositionality.evaluator.compare.statistics import Interval

Floats = NDArray[np.float64]

CONTROLS: Mapping[str, Mapping[str, str]] = {
    "a_coat": {"null": "null", "adjusted": "adjusted", "centred": "centred", "top1": "top-1"},
    "a_tre": {
        "constant": "constant",
        "gain": "gain",
        "a_tre_centred": "centred",
        "ridge_r2": "ridge R²",
        "top1": "top-1",
    },
}
"""The controls that are drawn, and their labels; the matched null in place of the null where all results have it."""

COMPARABLE = ("null", "matched_null", "constant", "centred", "a_tre_centred")
"""Controls in the units of the score: where both are equal means something."""

FEW = 8
"""So many encoders are drawn in a column."""

MARKER = 3
"""Points (1/72 inch), the size of an encoder's marker."""

DIGIT_WIDTH, DIGIT_HEIGHT = 0.64, 0.73
"""Of a digit of DejaVu Sans, in units of its size."""

EQUAL: dict[str, Any] = {"color": "#888888", "linewidth": 0.7, "linestyle": "--", "zorder": 1}
CHANCE: dict[str, Any] = {"color": "#888888", "linewidth": 0.7, "linestyle": ":", "zorder": 1}
"""Lines that are no encoder's."""


def control_scatter(comparison: Comparison) -> Figure:
    """Scores against each control, an encoder a point, numbered from the highest mean score; a key is below.

    Of A-COAT the null (the matched null where all results have it), adjusted, centred and top-1; of A-TRE the constant
    predictor, gain, centred, ridge regression's R² and top-1. Where a control is in the units of the score, the dashed
    line is where both are equal; in top-1 the dotted line is chance. Vertical bars are 95 % intervals of the mean
    score. Axes of A-TRE and of its constant are stretched where that shows more, see `stretch`.

    Raises:
        FigureError: no result has any of the controls.
    """
    found = ranked(comparison, "score")
    controls = _known_controls(comparison.task, found.entries)
    if not controls:
        raise FigureError(f"the results of {comparison.task} have no controls")
    scores = found.values.mean(axis=0)
    name = score_name(comparison, "score")
    reach = np.array([*scores, *(end for interval in found.intervals if interval is not None for end in interval)])
    stretched = comparison.task == "a_tre" and spans_decade(reach)
    few = len(scores) <= FEW
    with figure_style():
        kinds = distinct(found.kinds)
        handles = [Line2D([], [], color=k.colour, marker=k.marker, linestyle="", markersize=MARKER) for k in kinds]
        handles += [Line2D([], [], **style) for style in (EQUAL, CHANCE)]
        legend_columns = 3 if few else len(handles)
        width = COLUMN if few else PAGE
        key = Key(found.labels, columns=1 if few else 3, width=width)
        grid = Grid(
            len(controls),
            columns=2 if few else even_columns(len(controls), 3),
            width=width,
            height=1.15 if few else 2.1,
            gap=0.1,
            above=0.06,
            under=0.36,
            foot=key.height + 0.05 + 0.14 * math.ceil(len(handles) / legend_columns),
        )
        figure, panels = grid.draw()
        for axes, (control, values) in zip(panels, controls.items(), strict=True):
            known = values[np.isfinite(values)]
            chance = [1 / entry.result.n for entry in found.entries] if control == "top1" else []
            axes.set(xlim=limits(np.append(known, chance)), ylim=limits(reach), xlabel=_label(comparison.task, control))
            axes.xaxis.set_major_locator(MaxNLocator(4 if few else 6, steps=[1, 2, 2.5, 5, 10]))
            if stretched:
                stretch(axes, "y", reach)
                if control == "constant" and spans_decade(known):
                    stretch(axes, "x", known)
            if control in COMPARABLE:
                line = np.linspace(*axes.get_xlim(), 100)
                axes.plot(line, line, **EQUAL)
            for at in sorted(set(chance)):
                axes.axvline(at, **CHANCE)
            _draw_points(axes, values, scores, found.intervals, found.kinds)
        grid.hide_inner(panels, x=False, y=True)
        grid.label(figure, stretched_name(name) if stretched else name)
        key.draw(figure)
        figure.legend(
            handles,
            [*(kind.name for kind in kinds), "score = control", "chance"],
            loc="lower center",
            ncols=legend_columns,
            bbox_to_anchor=(0.5, key.height / figure.get_figheight()),
            borderaxespad=0,
        )
    return figure


def _known_controls(task: str, entries: Sequence[Entry]) -> dict[str, Floats]:
    """Values [entries], NaN where there is none, of each control that is drawn and that any entry has."""

    def values(name: str) -> Floats:
        return np.array([np.nan if (v := e.result.controls.get(name)) is None else v for e in entries], np.float64)

    names = list(CONTROLS[task])
    if task == "a_coat" and np.isfinite(values("matched_null")).all():
        names[names.index("null")] = "matched_null"
    return {name: values(name) for name in names if np.isfinite(values(name)).any()}


def _label(task: str, control: str) -> str:
    return "matched null" if control == "matched_null" else CONTROLS[task][control]


def _draw_points(
    axes: Axes, values: Floats, scores: Floats, intervals: Sequence[Interval | None], kinds: Sequence[Kind]
) -> None:
    """Encoders with their intervals and numbers; a line joins the two where it would not be clear whose a number is."""
    known = np.flatnonzero(np.isfinite(values)).tolist()
    x, y = values[known], scores[known]
    ends = np.array([intervals[k] or (scores[k], scores[k]) for k in known])
    for k, at, middle, interval in zip(known, x, y, ends, strict=True):
        axes.plot((at, at), interval, color=kinds[k].colour, linewidth=0.6)
        axes.plot(at, middle, kinds[k].marker, color=kinds[k].colour, markersize=MARKER)
    size = matplotlib.rcParams["xtick.labelsize"]
    points = in_points(axes, x, y)
    reach = np.max([np.abs(in_points(axes, x, end) - points) for end in ends.T], axis=0)
    sizes = np.array([(DIGIT_WIDTH * size * len(str(k + 1)) + 1, DIGIT_HEIGHT * size + 1) for k in known])
    corners = in_points(axes, np.array(axes.get_xlim()), np.array(axes.get_ylim()))
    places, unclear = label_places(points, np.maximum(reach, MARKER / 2 + 0.5), sizes, corners)
    for k, point, place, joined in zip(known, points, places, unclear, strict=True):
        axes.annotate(
            str(k + 1),
            tuple(point),
            tuple(place),
            xycoords="figure points",
            textcoords="figure points",
            ha="center",
            va="center_baseline",
            fontsize=size,
            arrowprops={"arrowstyle": "-", "linewidth": 0.3, "shrinkA": 0, "shrinkB": 0} if joined else None,
        )
