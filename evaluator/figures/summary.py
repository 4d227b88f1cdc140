"""The summary figure, for a column of a paper or a slide: models by tasks with verdicts, and the intervals."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch, Rectangle

from audio_compositionality.evaluator.compare.comparison import Comparison, compare_results
from audio_compositionality.evaluator.compare.loading import GivenResults
from audio_compositionality.evaluator.compare.model_verdicts import Verdicts, verdicts_of
from audio_compositionality.evaluator.compare.summary import SIGNS
from audio_compositionality.evaluator.compare.task_verdicts import Standing
from audio_compositionality.evaluator.report.matrix import Matrix, matrix_of
from audio_compositionality.support.files import write_whole
from audio_compositionality.support.text import nearest

from . import layout
from .catalogue import described_figures
from .style import FORMS, PRINT_DPI, FigureError, distinct, figure_bytes, figure_style, looks_of, measure_name

FILLS = {
    Standing.ABOVE: ("#2a788e", "white"),
    Standing.BELOW: ("#f3b79b", "#5c1a00"),
    Standing.NOT_SHOWN: ("#e3e7ec", "#3c444e"),
    Standing.UNKNOWN: ("white", "#545d68"),
    None: ("none", "#545d68"),
}
"""Colours of a cell and its text by the standing of the model, as in the report; None for models not judged."""

MOST_LEVEL = 3
"""Most tasks whose titles fit horizontally above their cells in a column of a paper."""

ROW = 0.17
"""Height of a row, inches."""


def summary_figure(verdicts: Verdicts) -> Figure:
    """Return the matrix of the report's first screen, models by tasks, and below it the 95 % intervals by task.

    The figure is as wide as a column of a paper, or as a page if there are many tasks.

    Args:
        verdicts: of the results, see `verdicts_of`.

    Raises:
        FigureError: there are no results.
    """
    matrix = matrix_of(verdicts)
    if not matrix.rows:
        raise FigureError("there are no results to draw")
    rows = [row.label for row in matrix.rows]
    bounded = [one for one in verdicts.comparisons if one.info.judge.name in one.views]
    is_wide = len(matrix.tasks) > MOST_LEVEL
    width = layout.PAGE if len(matrix.tasks) > 2 * MOST_LEVEL else layout.COLUMN
    head, foot, gap = (0.9 if is_wide else 0.34), 0.42, 0.46
    tall = len(rows) * ROW
    height = head + tall + sum(gap + len(one.labels) * ROW for one in bounded) + foot
    with figure_style():
        figure = Figure(figsize=(width, height))
        names = layout.short_labels(rows, layout.NAMES_WIDTH)
        left = max(map(layout.text_width, names)) + 0.12
        place = left / width, (width - left - 0.06) / width
        top = height - head - tall
        _draw_matrix(figure.add_axes((place[0], top / height, place[1], tall / height)), matrix, names, is_wide)
        for comparison in bounded:
            tall = len(comparison.labels) * ROW
            top -= gap + tall
            axes = figure.add_axes((place[0], (top + 0.16) / height, place[1], tall / height))
            _draw_intervals(axes, comparison, dict(zip(rows, names, strict=True)))
        looks = distinct(
            look for comparison in verdicts.comparisons for look in looks_of(comparison, range(len(comparison.results)))
        )
        marks = [Line2D([], [], color=look.colour, marker=look.marker, markersize=4, linestyle="") for look in looks]
        signs = [Patch(facecolor=FILLS[one][0], edgecolor="#d3d9e0", linewidth=0.5) for one in SIGNS]
        figure.legend(
            [*signs, *marks],
            [*(f"{sign} {standing.value}" for standing, sign in SIGNS.items()), *(look.name for look in looks)],
            loc="lower center",
            ncols=4,
            borderaxespad=0.3,
            columnspacing=1,
            handlelength=1,
        )
    return figure


def form_of(path: Path) -> str:
    """Return the file format of a figure from the ending of its name, one of `FORMS`.

    Raises:
        FigureError: its name has another ending.
    """
    form = path.suffix.removeprefix(".").lower()
    if form not in FORMS:
        raise FigureError(f"{path} must end in .pdf, .svg or .png")
    return form


def write_summary(verdicts: Verdicts, path: Path) -> None:
    """Write `summary_figure` to a file.

    Raises:
        FigureError: see `form_of` and `summary_figure`.
    """
    form = form_of(path)
    write_whole(path, figure_bytes(summary_figure(verdicts), form, PRINT_DPI))


def plot(
    results: GivenResults, figure: str = "summary", *, task: str | None = None, data: str | Path | None = None
) -> list[Axes]:
    """Return the axes of a figure of results; ``axes[0].figure`` is the figure, to show or to save.

    Args:
        results: folders of results, their JSON files, or the results of `evaluate`.
        figure: ``summary``, models by tasks with verdicts and intervals, or one of a task, such as
            ``score_boxes-adjusted``, ``significance_map-adjusted``, ``diversity_panels-adjusted`` or
            ``control_scatter``; the error for a wrong name lists the names of the task.
        task: the task of that figure; by default the first.
        data: the data of the results, unless these are of a preset.

    Raises:
        ResultError: see `load_results`.
        FigureError: there is no such figure, or it cannot be drawn from these results.
    """
    comparisons = compare_results(results, data=data)
    if figure == "summary":
        return summary_figure(verdicts_of(comparisons)).axes
    tasks = [comparison.info.name for comparison in comparisons]
    if task is not None and task not in tasks:
        raise FigureError(f"there is no result of {task!r}; {nearest(task, tasks)}")
    figures = {one.name: one for one in described_figures(comparisons[0 if task is None else tasks.index(task)])}
    if figure not in figures:
        raise FigureError(f"there is no figure {figure!r}; {nearest(figure, ['summary', *figures])}")
    return figures[figure].draw().axes


def _draw_matrix(axes: Axes, matrix: Matrix, names: Sequence[str], is_wide: bool) -> None:
    axes.set(xlim=(0, len(matrix.tasks)), ylim=(len(matrix.rows), 0))
    for y, row in enumerate(matrix.rows):
        for x, cell in enumerate(row.cells):
            fill, colour = FILLS[cell.standing]
            axes.add_patch(Rectangle((x + 0.02, y + 0.06), 0.96, 0.88, facecolor=fill, edgecolor="none"))
            text = f"{cell.sign} {cell.text}".strip()
            axes.text(x + 0.5, y + 0.5, text, ha="center", va="center_baseline", color=colour, fontsize="medium")
    axes.set_yticks([y + 0.5 for y in range(len(names))], names)
    titles = [f"{title},\n{heading}" if heading not in title else title for title, heading in matrix.tasks]
    upright: dict[str, Any] = {"rotation": 50, "ha": "left", "va": "bottom", "rotation_mode": "anchor"}
    axes.set_xticks([x + 0.5 for x in range(len(titles))], titles, **(upright if is_wide else {}))
    axes.tick_params(length=0, labeltop=True, labelbottom=False)
    axes.spines[:].set_visible(False)


def _draw_intervals(axes: Axes, comparison: Comparison, names: Mapping[str, str]) -> None:
    """Draw the mean of each model with the task and its 95 % interval, in the order of the matrix; `names` by label."""
    view, looks = comparison.view(comparison.info.judge.name), looks_of(comparison, range(len(comparison.results)))
    rows = [label for label in names if label in view.labels]
    for y, k in enumerate(map(view.labels.index, rows)):
        low, high = view.intervals[k] or (view.means[k], view.means[k])
        axes.plot((low, high), (y, y), color=looks[k].colour, linewidth=1)
        axes.plot(view.means[k], y, looks[k].marker, color=looks[k].colour, markersize=4)
    axes.set(ylim=(len(rows) - 0.5, -0.5))
    axes.set_yticks(range(len(rows)), [names[label] for label in rows])
    axes.tick_params(axis="y", length=0)
    axes.set_xlabel(measure_name(comparison, comparison.info.judge), labelpad=1)
    axes.grid(axis="x", linewidth=0.3)
