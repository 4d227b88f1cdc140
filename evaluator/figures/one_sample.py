"""A figure of the task's own with one sample marked."""

from __future__ import annotations

from collections.abc import Sequence

from matplotlib.figure import Figure

from audio_compositionality.evaluator.compare.comparison import Comparison
from audio_compositionality.tasks.base import Drawing

from .files import figure_style
from .kinds import FigureError
from .layout import COLUMN, LINE, PAGE, Grid, even_columns, short_labels, title_lines


def sample_panels(comparison: Comparison, drawing: Drawing, sample: int, places: Sequence[int]) -> Figure:
    """A panel for each of some results, with one sample marked.

    Args:
        comparison: what is drawn.
        drawing: one of the task's that can mark a sample.
        sample: its place.
        places: of the results; those without the columns that are drawn are left out.

    Raises:
        FigureError: the drawing marks no sample, or none of the results has its columns.
    """
    results = [comparison.results[place] for place in places]
    results = [result for result in results if set(drawing.columns) <= set(result.samples.columns)]
    if drawing.one is None or not results:
        raise FigureError(f"nothing of {drawing.name} can be drawn of one sample")
    columns = even_columns(len(results), 4)
    width = COLUMN if columns <= 2 else PAGE
    with figure_style():
        grid = Grid(len(results), columns, width, height=1.5, gap=0.25, above=2 * LINE, under=0.18, foot=0.2)
        figure, panels = grid.draw()
        names = short_labels([result.label for result in results])
        for axes, result, name in zip(panels, results, names, strict=True):
            drawing.one(axes, result.samples.columns, result.result.measures, sample)
            axes.set_title(title_lines(name, grid.panel_width), loc="left", y=1.0)
        handles, words = panels[0].get_legend_handles_labels()
        figure.legend(handles, words, loc="lower center", ncols=4, bbox_to_anchor=(0.5, 0.0), borderaxespad=0)
    return figure
