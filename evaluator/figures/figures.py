"""Figures of a comparison: Matplotlib figures for a paper's column or page, and for the report.

All of them are drawn in one style, figures.mplstyle, whatever the user has set, and without pyplot. Untrained networks
and baselines are told from other encoders by colour and by hatch or marker. `save_figure` writes a figure as SVG and
PNG, `figure_svg` gives it for a page.
"""

from __future__ import annotations

import difflib
import math
import textwrap
from collections.abc import Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.cbook import boxplot_stats
from matplotlib.collections import LineCollection
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch
from matplotlib.ticker import MaxNLocator
from numpy.typing import NDArray

from audio_compositionality.evaluator.compare.comparison import Comparison, Entry
from .figure_controls import control_scatter
from .figure_files import figure_style, figure_svg, save_figure
from .figure_kinds import CLOUD, FIT, FigureError, distinct, ranked, score_name
from .figure_layout import (COLUMN, LINE, NAMES_WIDTH, PAGE, SMALLEST, Grid, even_columns, limits, short_label, short_labels, spans_decade, stretch, stretched_name, text_width, title_lines)
from .figure_pairs import significance_map
from audio_compositionality.tasks.samples import TOTAL
from audio_compositionality.evaluator.compare.statistics import MIN_SAMPLES, Interval, fit_line
from audio_compositionality.evaluator.compare.table import SAMPLES

__all__ = [
    "FigureError",
    "control_scatter",
    "diversity_panels",
    "figure_svg",
    "save_figure",
    "score_boxes",
    "significance_map",
    "step_plane",
]

Floats = NDArray[np.float64]

FIRST_STEP: dict[str, Any] = {"color": "#0072B2", "marker": "o", "markersize": 2}
SECOND_STEP: dict[str, Any] = {"color": "#E69F00", "marker": "^", "markersize": 2}
ALL_STEPS = "#DDDDDD"
"""The steps B − A and D − C that are joined, and the colour of all."""

MOST_PLANES = 12
"""Encoders in one figure of steps."""

MOST_JOINED = 100
"""Quadruples whose steps are joined: more of them cover each other."""

NAMES_IN_COLUMN = 1.5
"""Inches for names beside box plots that leave them half of a column."""


def score_boxes(comparison: Comparison, measure: str = "score") -> Figure:
    """Notched box plots of the samples' scores, an encoder a row, the highest mean first.

    A box spans the quartiles, its notch the 95 % interval of the median, median ± 1.57 IQR / √n (McGill, Tukey and
    Larsen 1978, "Variations of box plots"; none below MIN_SAMPLES); whiskers reach the farthest score within 1.5 IQR of
    the box. Below each box is the mean with its BCa interval. The axis of A-TRE is stretched
    where that shows more, see `stretch`.

    Args:
        comparison: what is drawn.
        measure: ``score`` or ``centred``.

    Raises:
        FigureError: no such measure, or not all results have centred scores.
    """
    found = ranked(comparison, measure)
    n, m = found.values.shape
    rows = np.arange(m, dtype=np.float64)
    boxes = boxplot_stats(found.values)
    outliers = [box["fliers"] for box in boxes]
    with figure_style():
        names = short_labels(found.labels, NAMES_WIDTH)
        width = COLUMN if max(map(text_width, names)) <= NAMES_IN_COLUMN else PAGE
        figure = Figure(figsize=(width, 0.75 + 0.2 * m), layout="constrained")
        axes = figure.subplots()
        drawn = axes.bxp(
            boxes,
            positions=rows - 0.1,
            widths=0.5,
            orientation="horizontal",
            shownotches=n >= MIN_SAMPLES,
            patch_artist=True,
            showfliers=False,
            manage_ticks=False,
            capwidths=0.25,
        )
        for box, kind in zip(drawn["boxes"], found.kinds, strict=True):
            box.set(facecolor=kind.fill, hatch=kind.hatch)
        # One artist for all of them: each that is rasterised is an image of its own in an SVG file.
        at = np.repeat(rows - 0.1, [len(values) for values in outliers])
        axes.plot(np.concatenate(outliers), at, ".", color=CLOUD, markersize=1.5, rasterized=True)
        for row, mean, interval in zip(rows + 0.33, found.values.mean(axis=0), found.intervals, strict=True):
            axes.plot(interval or (mean, mean), (row, row), color="black", linewidth=0.8)
            axes.plot(mean, row, "D", color="black", markersize=2)
        axes.set_yticks(rows, names)
        axes.set_ylim(m - 0.4, -0.6)
        axes.tick_params(axis="y", length=0)
        name = score_name(comparison, measure)
        if stretched := comparison.task == "a_tre" and measure == "score" and spans_decade(found.values):
            stretch(axes, "x", found.values)
        axes.set_xlabel(stretched_name(name) if stretched else name)
        axes.grid(axis="x")
        kinds = distinct(found.kinds)
        mean_line = Line2D([], [], color="black", marker="D", markersize=2, linewidth=0.8)
        figure.legend(
            [*(Patch(facecolor=kind.fill, edgecolor="black", hatch=kind.hatch) for kind in kinds), mean_line],
            [*(kind.name for kind in kinds), f"mean, 95 % interval, n = {n:,}"],
            loc="outside lower center",
            ncols=2 if width == COLUMN else 4,
        )
        # Keep the layout that is found here: it would be found again each time that the figure is saved.
        figure.draw_without_rendering()
        figure.set_layout_engine("none")
    return figure


def diversity_panels(comparison: Comparison, measure: str = "score") -> Figure:
    """Scores against diversity, an encoder a panel, with the least-squares line and its 95 % band.

    Diversity is the entropy of the classes of a quadruple's (a scene's) sources, summed over attributes: H^quad (H) of
    arXiv 2603.13685, section 5. Above each panel is the slope with its 95 % interval. Panels of A-COAT have one
    vertical axis; those of A-TRE, whose scores may all be near 1 or near 0, have their own.

    Args:
        comparison: what is drawn.
        measure: ``score`` or ``centred``.

    Raises:
        FigureError: as `score_boxes`, or the data of the comparison are not known.
    """
    found = ranked(comparison, measure)
    if comparison.samples is None:
        raise FigureError(f"scores cannot be drawn against diversity: {comparison.missing}")
    x = comparison.samples.entropy[TOTAL]
    (n, m), shared = found.values.shape, comparison.task == "a_coat"
    at = np.linspace(x.min(), x.max(), 17)
    columns = even_columns(m, 5 if shared else 4)
    with figure_style():
        grid = Grid(
            m,
            columns,
            width=COLUMN if columns <= 2 else PAGE,
            height=0.95 if m <= 5 * columns else 0.75,
            gap=0.1 if shared else 0.38,
            above=3 * LINE,
            under=0.06,
            foot=0.42,
        )
        figure, panels = grid.draw()
        for axes, name, y in zip(panels, short_labels(found.labels), found.values.T, strict=True):
            axes.set(xlim=limits(x), ylim=limits(found.values if shared else y))
            axes.yaxis.set_major_locator(MaxNLocator(4, steps=[1, 2, 5, 10]))
            axes.plot(x, y, ".", color=CLOUD, markersize=2, markeredgewidth=0, alpha=_opacity(n), rasterized=True)
            fit = fit_line(x, y, clusters=comparison.clusters)
            slope = "no line: too few samples" if np.ptp(x) > 0 else "no line: diversity is equal"
            if fit is not None:
                slope = _with_interval(fit.slope, fit.slope_interval)
                mean, low, high = fit.band(at)
                axes.fill_between(at, low, high, color=FIT, alpha=0.4, linewidth=0)
                axes.plot(at[[0, -1]], mean[[0, -1]], color=FIT, linewidth=0.7)
            _title(axes, f"{title_lines(name, grid.panel_width)}\n{slope}")
        grid.hide_inner(panels, x=True, y=shared)
        grid.label(
            figure,
            score_name(comparison, measure),
            f"diversity: entropy of the {'quadruple' if shared else 'scene'}, summed over attributes",
            f"above: slope [95 % interval]; n = {n:,} {SAMPLES[comparison.task]}",
        )
    return figure


def step_plane(comparison: Comparison, labels: Sequence[str] | None = None) -> Figure:
    """The steps B − A and D − C on the first two principal axes of all steps, an encoder a panel.

    The two steps of a quadruple are joined by a line, of MOST_JOINED quadruples at even distances in the order of the
    data; all others are pale. The axes' shares of the steps' variance are beside them; the two axes of a panel have one
    scale, that of the embedding. Above each panel is the mean score with its interval.

    Args:
        comparison: of ``a_coat``.
        labels: of the entries that are drawn; default, the MOST_PLANES with the highest mean score.

    Raises:
        FigureError: of another task, no result states steps, or there is no such label.
    """
    if comparison.task != "a_coat":
        raise FigureError(f"{comparison.task} has no steps; they are of a_coat")
    places = {entry.label: place for place, entry in enumerate(comparison.entries)}
    known = {entry.label: entry.steps for entry in comparison.entries if entry.steps is not None}
    if not known:
        raise FigureError("no result of a_coat states its steps")
    chosen = list(known)[:MOST_PLANES] if labels is None else list(labels)
    for label in chosen:
        if label not in known:
            nearest = difflib.get_close_matches(label, known, 1, 0)[0]
            raise FigureError(f"no result with steps is called {label!r}; the nearest is {nearest!r}")
    n = len(comparison.ids)
    joined = np.unique(np.linspace(0, n - 1, MOST_JOINED).astype(np.int64))
    columns = even_columns(len(chosen), 4)
    width = COLUMN if columns <= 2 else PAGE
    with figure_style():
        notes = textwrap.wrap(_step_notes(comparison, chosen, len(joined)), round(19 * width), break_on_hyphens=False)
        foot = 0.06 + len(notes) * LINE
        grid = Grid(len(chosen), columns, width, height=1.05, gap=0.25, above=3 * LINE, under=0.18, foot=foot + 0.2)
        figure, panels = grid.draw()
        for axes, label, name in zip(panels, chosen, short_labels(chosen), strict=True):
            entry, interval = comparison.entries[places[label]], comparison.intervals[places[label]]
            steps = known[label].reshape(n, 2, 2)
            axes.plot(*steps.reshape(-1, 2).T, ".", color=ALL_STEPS, markersize=1.5, markeredgewidth=0, rasterized=True)
            axes.add_collection(LineCollection(list(steps[joined]), colors=CLOUD, linewidths=0.3, rasterized=True))
            for step, style in zip(steps[joined].transpose(1, 0, 2), (FIRST_STEP, SECOND_STEP), strict=True):
                axes.plot(*step.T, **style, linestyle="", markeredgewidth=0, rasterized=True)
            axes.set_aspect("equal", adjustable="datalim")
            axes.set(xticks=[], yticks=[], xlabel=_axis(entry, 1), ylabel=_axis(entry, 2))
            mean = float(entry.score.mean())
            score = f"{mean:z.3f}" if interval is None else _with_interval(mean, interval)
            _title(axes, f"{title_lines(name, grid.panel_width)}\n{score}")
        handles = [Line2D([], [], **style, linestyle="", markeredgewidth=0) for style in (FIRST_STEP, SECOND_STEP)]
        words = ["B − A", "D − C"]
        if len(joined) < n:
            handles.append(Line2D([], [], color=ALL_STEPS, marker=".", linestyle="", markeredgewidth=0))
            words.append("all steps")
        height = figure.get_figheight()
        figure.legend(handles, words, loc="lower center", ncols=3, bbox_to_anchor=(0.5, foot / height), borderaxespad=0)
        for line, note in enumerate(reversed(notes)):
            figure.text(0.1 / width, (0.05 + line * LINE) / height, note, fontsize=SMALLEST)
    return figure


def _step_notes(comparison: Comparison, chosen: Sequence[str], joined: int) -> str:
    """Which quadruples and encoders a figure of steps leaves out, and why."""
    n = len(comparison.ids)
    notes = ["Above each panel: A-COAT [95 % interval]."]
    if joined < n:
        notes.append(f"Joined are {joined} of the {n:,} quadruples, at even distances.")
    rest = [entry for entry in comparison.entries if entry.label not in chosen]
    without = [entry.label for entry in rest if entry.steps is None]
    others = [entry.label for entry in rest if entry.steps is not None]
    if others:
        notes.append(f"Not drawn for want of room: {', '.join(map(short_label, others))}.")
    if without:
        notes.append(f"Not drawn, no steps in the result: {', '.join(map(short_label, without))}.")
    return " ".join(notes)


def _axis(entry: Entry, number: int) -> str:
    share = entry.result.controls.get(f"step_variance_{number}")
    return f"axis {number}" if share is None else f"axis {number} ({100 * share:.0f} %)"


def _title(axes: Axes, text: str) -> None:
    # Where the height is not given, every drawing searches for one, for a quarter of its time.
    axes.set_title(text, loc="left", y=1.0, linespacing=1.15)


def _opacity(count: int) -> float:
    """Of a point among as many, so that clouds of 64 and of 2,000 are both seen."""
    return min(0.8, 18 / math.sqrt(count))


def _with_interval(value: float, interval: Interval) -> str:
    """A value and its interval: three decimals, or four where three would hardly tell its ends apart."""
    decimals = 4 if 1e-5 < interval[1] - interval[0] < 2e-3 else 3
    first, low, high = (f"{number:z.{decimals}f}".replace("-", "−") for number in (value, *interval))
    return f"{first} [{low}, {high}]"
