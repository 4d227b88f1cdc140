"""Figures of samples: box plots, scores against diversity, the task's own, and one sample marked."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.cbook import boxplot_stats
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch
from matplotlib.ticker import MaxNLocator
from numpy.typing import NDArray

from audio_compositionality.evaluator.compare.comparison import Comparison
from audio_compositionality.evaluator.compare.diversity import fit_line
from audio_compositionality.evaluator.compare.statistics import MIN_SAMPLES, Interval
from audio_compositionality.support.text import nearest
from audio_compositionality.tasks.base import Drawing

from . import layout, style

Floats = NDArray[np.float64]

MOST_PANELS = 12
"""Most models in a task's own figure."""

NAMES_IN_COLUMN = 1.5
"""Inches for names at the left of box plots in a column; the plots have the other half."""

UNLIKE = 5
"""Panels have separate axes if the range of all values is this many times the range of one model."""


def score_boxes(comparison: Comparison, measure: str) -> Figure:
    """Return notched box plots of a measure by sample, a row per model, the highest mean first.

    A box spans the quartiles, its notch the 95 % interval of the median, median ± 1.57 IQR / √n (McGill, Tukey and
    Larsen 1978, "Variations of box plots"; none below MIN_SAMPLES); whiskers reach the farthest value within 1.5 IQR of
    the box. Below each box is the mean with its BCa interval. The axis is logarithmic if values crowd at 1, see
    `crowds_at_one`.

    Args:
        comparison: the comparison.
        measure: name of a measure that all results have by sample.

    Raises:
        FigureError: there is no such measure.
    """
    view = style.drawn_view(comparison, measure)
    values, looks = view.values[:, view.order], style.looks_of(comparison, view.order)
    rows = np.arange(values.shape[1], dtype=np.float64)
    with style.figure_style():
        names = layout.short_labels([view.labels[k] for k in view.order], layout.NAMES_WIDTH)
        width = layout.COLUMN if max(map(layout.text_width, names)) <= NAMES_IN_COLUMN else layout.PAGE
        figure = Figure(figsize=(width, 0.75 + 0.2 * len(rows)), layout="constrained")
        axes = figure.subplots()
        boxes = boxplot_stats(values)
        outliers = [box["fliers"] for box in boxes]
        drawn = axes.bxp(
            boxes,
            positions=rows - 0.1,
            widths=0.5,
            orientation="horizontal",
            shownotches=len(values) >= MIN_SAMPLES,
            patch_artist=True,
            showfliers=False,
            manage_ticks=False,
            capwidths=0.25,
        )
        for box, look in zip(drawn["boxes"], looks, strict=True):
            box.set(facecolor=look.fill, hatch=look.hatch)
        # One artist for all outliers: each rasterised artist is a separate image in an SVG file.
        at = np.repeat(rows - 0.1, [len(points) for points in outliers])
        axes.plot(np.concatenate(outliers), at, ".", color=style.CLOUD, markersize=1.5, rasterized=True)
        for row, place in zip(rows + 0.33, view.order, strict=True):
            mean = view.means[place]
            axes.plot(view.intervals[place] or (mean, mean), (row, row), color="black", linewidth=0.8)
            axes.plot(mean, row, "D", color="black", markersize=2)
        axes.set_yticks(rows, names)
        axes.set_ylim(len(rows) - 0.4, -0.6)
        axes.tick_params(axis="y", length=0)
        name = style.measure_name(comparison, view.measure)
        if style.crowds_at_one(view.measure, values):
            style.spread_at_one(axes, "x", values)
            name = style.name_at_one(name)
        axes.set_xlabel(name)
        axes.grid(axis="x")
        kinds = style.distinct(looks)
        mean_line = Line2D([], [], color="black", marker="D", markersize=2, linewidth=0.8)
        figure.legend(
            [*(Patch(facecolor=kind.fill, edgecolor="black", hatch=kind.hatch) for kind in kinds), mean_line],
            [*(kind.name for kind in kinds), f"mean, 95 % interval, n = {len(values):,}"],
            loc="outside lower center",
            ncols=2 if width == layout.COLUMN else 4,
        )
        # Keep the computed layout, which would otherwise be computed again each time the figure is saved.
        figure.draw_without_rendering()
        figure.set_layout_engine("none")
    return figure


def diversity_panels(comparison: Comparison, measure: str) -> Figure:
    """Return a measure by sample against diversity, a panel per model, with the least-squares line and its 95 % band.

    Diversity is the first of the task's `Samples.diversity`. Above each panel is the slope with its 95 % interval.
    Panels share a vertical axis unless the models' ranges are too different, see `UNLIKE`.

    Args:
        comparison: the comparison.
        measure: name of a measure that all results have by sample.

    Raises:
        FigureError: there is no such measure, or the samples' diversity is unknown.
    """
    view, samples = style.drawn_view(comparison, measure), comparison.samples
    if samples is None:
        raise style.FigureError(f"scores cannot be drawn against diversity: {comparison.missing}")
    if not samples.diversity:
        raise style.FigureError(f"{comparison.info.title} states no diversity of its {comparison.info.samples}")
    kind, x = next(iter(samples.diversity.items()))
    values = view.values[:, view.order]
    shared = bool(np.ptp(values) <= UNLIKE * np.ptp(values, axis=0).min())
    columns = layout.even_columns(values.shape[1], 5 if shared else 4)
    with style.figure_style():
        grid = layout.Grid(
            values.shape[1],
            columns,
            width=layout.COLUMN if columns <= 2 else layout.PAGE,
            height=0.95 if values.shape[1] <= 5 * columns else 0.75,
            gap=0.1 if shared else 0.38,
            above=3 * layout.LINE,
            under=0.06,
            foot=0.42,
        )
        figure, panels = grid.draw()
        names = layout.short_labels([view.labels[k] for k in view.order])
        for axes, name, y in zip(panels, names, values.T, strict=True):
            axes.set(xlim=layout.limits(x), ylim=layout.limits(values if shared else y))
            axes.yaxis.set_major_locator(MaxNLocator(4, steps=[1, 2, 5, 10]))
            # More transparent for more points: clouds of 64 and of 2,000 points are both visible.
            cloud: dict[str, Any] = {"markersize": 2, "markeredgewidth": 0, "alpha": min(0.8, 18 / math.sqrt(len(y)))}
            axes.plot(x, y, ".", color=style.CLOUD, rasterized=True, **cloud)
            fit = fit_line(x, y, clusters=comparison.clusters)
            slope = "no line: too few samples" if np.ptp(x) > 0 else "no line: diversity is equal"
            if fit is not None:
                at = np.linspace(x.min(), x.max(), 17)
                mean, low, high = fit.band(at)
                axes.fill_between(at, low, high, color=style.FIT, alpha=0.4, linewidth=0)
                axes.plot(at[[0, -1]], mean[[0, -1]], color=style.FIT, linewidth=0.7)
                slope = _with_interval(fit.slope, fit.slope_interval)
            _title(axes, f"{layout.title_lines(name, grid.panel_width)}\n{slope}")
        grid.hide_inner(panels, x=True, y=shared)
        grid.label(
            figure,
            style.measure_name(comparison, view.measure),
            f"diversity {samples.diversity_name}, {kind}",
            f"above: slope [95 % interval]; n = {len(values):,} {comparison.info.samples}",
        )
    return figure


def task_panels(comparison: Comparison, drawing: Drawing, labels: Sequence[str] | None = None) -> Figure:
    """Return a task's own figure, a panel per model; above each is the mean score with its interval.

    Args:
        comparison: the comparison.
        drawing: a drawing of the task.
        labels: labels of the results to draw; by default the first MOST_PANELS.

    Raises:
        FigureError: no result has the drawing's columns, or there is no such label.
    """
    places = {
        result.label: place
        for place, result in enumerate(comparison.results)
        if set(drawing.columns) <= set(result.samples.columns) and set(drawing.training) <= set(result.result.training)
    }
    if not places:
        names = (*drawing.columns, *drawing.training)
        raise style.FigureError(
            f"no result of {comparison.info.title} has the columns of this figure: {', '.join(names)}"
        )
    drawn = list(places)[:MOST_PANELS] if labels is None else list(labels)
    for label in drawn:
        if label not in places:
            raise style.FigureError(f"no result that can be drawn is called {label!r}; {nearest(label, places)}")
    columns = layout.even_columns(len(drawn), 4)
    width = layout.COLUMN if columns <= 2 else layout.PAGE
    with style.figure_style():
        sentences = [f"Above each panel: {comparison.info.title} [95 % interval]."]
        rest = [layout.short_label(label) for label in places if label not in drawn]
        without = [layout.short_label(label) for label in comparison.labels if label not in places]
        sentences += [f"Not drawn: {', '.join(rest)}."] if rest else []
        sentences += [f"Not drawn, since the result lacks the values: {', '.join(without)}."] if without else []
        notes = textwrap.wrap(" ".join(sentences), round(19 * width), break_on_hyphens=False)
        foot = 0.06 + len(notes) * layout.LINE
        axis = layout.LINE + 0.04 if drawing.x else 0.0
        grid = layout.Grid(
            len(drawn), columns, width, height=1.05, gap=0.25, above=3 * layout.LINE, under=0.18, foot=foot + 0.2 + axis
        )
        figure, panels = grid.draw()
        for axes, label, name in zip(panels, drawn, layout.short_labels(drawn), strict=True):
            result = comparison.results[places[label]]
            fitted = {name: np.asarray(result.result.training[name], np.float64) for name in drawing.training}
            # The two ends of the 95 % interval of some measures; NaN if there is none.
            intervals = {
                name: comparison.interval(places[label], comparison.info.measure(name)) for name in drawing.intervals
            }
            ends = {name: np.array(interval or (np.nan, np.nan)) for name, interval in intervals.items()}
            drawing.panel(axes, {**result.samples.columns, **fitted, **ends}, result.result.measures)
            value, view = result.value(comparison.info.score), comparison.views.get(comparison.info.score.name)
            interval = None if view is None else view.intervals[places[label]]
            score = "" if value is None else f"{value:z.3f}".replace("-", "−")
            score = score if value is None or interval is None else _with_interval(float(value), interval)
            _title(axes, f"{layout.title_lines(name, grid.panel_width)}\n{score}")
        handles, words = panels[0].get_legend_handles_labels()
        anchor = (0.5, foot / figure.get_figheight())
        grid.label(figure, drawing.y, drawing.x, under=foot + 0.2)
        figure.legend(handles, words, loc="lower center", ncols=4, bbox_to_anchor=anchor, borderaxespad=0)
        for line, note in enumerate(reversed(notes)):
            figure.text(
                0.1 / width, (0.05 + line * layout.LINE) / figure.get_figheight(), note, fontsize=layout.SMALLEST
            )
    return figure


def _title(axes: Axes, text: str) -> None:
    # Without a given height, every drawing searches for one, for a quarter of its time.
    axes.set_title(text, loc="left", y=1.0, linespacing=1.15)


def _with_interval(value: float, interval: Interval) -> str:
    """Return a value and its interval with three decimals, or four if three would hardly distinguish the ends."""
    decimals = 4 if 1e-5 < interval[1] - interval[0] < 2e-3 else 3
    first, low, high = (f"{number:z.{decimals}f}".replace("-", "−") for number in (value, *interval))
    return f"{first} [{low}, {high}]"


def sample_panels(comparison: Comparison, drawing: Drawing, sample: int, places: Sequence[int]) -> Figure:
    """Return a figure with a panel for each of some results, and one sample marked.

    Args:
        comparison: the comparison.
        drawing: a drawing of the task that can mark a sample.
        sample: index of the sample.
        places: indices of the results; results without the drawing's columns are left out.

    Raises:
        FigureError: the drawing marks no sample, or none of the results has its columns.
    """
    results = [comparison.results[place] for place in places]
    results = [result for result in results if set(drawing.columns) <= set(result.samples.columns)]
    if drawing.one is None or not results:
        raise style.FigureError(f"{drawing.name} cannot be drawn for one sample")
    columns = layout.even_columns(len(results), 4)
    width = layout.COLUMN if columns <= 2 else layout.PAGE
    with style.figure_style():
        grid = layout.Grid(
            len(results), columns, width, height=1.5, gap=0.25, above=2 * layout.LINE, under=0.18, foot=0.2
        )
        figure, panels = grid.draw()
        names = layout.short_labels([result.label for result in results])
        for axes, result, name in zip(panels, results, names, strict=True):
            drawing.one(axes, result.samples.columns, result.result.measures, sample)
            axes.set_title(layout.title_lines(name, grid.panel_width), loc="left", y=1.0)
        handles, words = panels[0].get_legend_handles_labels()
        figure.legend(handles, words, loc="lower center", ncols=4, bbox_to_anchor=(0.5, 0.0), borderaxespad=0)
    return figure
