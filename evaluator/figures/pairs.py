"""The figure of the paired tests between models; see `figures`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import CenteredNorm
from matplotlib.figure import Figure
from matplotlib.image import AxesImage
from matplotlib.lines import Line2D
from matplotlib.patches import Rectangle
from matplotlib.path import Path
from matplotlib.ticker import MaxNLocator
from numpy.typing import NDArray

from audio_compositionality.evaluator.compare.comparison import Comparison
from audio_compositionality.evaluator.compare.statistics import PairedTest

from .files import figure_style
from .kinds import FigureError, drawn_view, measure_name
from .layout import COLUMN, NAMES_WIDTH, PAGE, SMALLEST, short_labels, text_width

Integers = NDArray[np.int64]

LEVELS = (0.05, 0.01, 0.001)
"""Corrected p of at most this has a dot, two or three."""

DIVERGING = "PuOr"
"""Colours of differences, orange below zero and purple above: apart also to eyes that do not tell red from green."""

DIAGONAL = "#CCCCCC"
"""Where a model meets itself."""

LARGEST_CELL = 0.22
"""Inches; cells of many models are smaller."""

_LUMINANCE = (0.2126, 0.7152, 0.0722)  # weights of red, green and blue, ITU-R BT.709
_ABOVE, _BELOW = 0.16, 0.88  # inches of numbers above the map, and of what is below it


def significance_map(comparison: Comparison, measure: str) -> Figure:
    """Which models differ: the difference of their means, row less column, and dots for its corrected p.

    Paired tests on the same samples, corrected over all pairs, see `compare_pairs`: one dot for p ≤ 0.05, two for
    p ≤ 0.01, three for p ≤ 0.001, none where the models are not told apart. All is hatched where there are too few
    samples for a test.

    Args:
        comparison: what is drawn.
        measure: name of a measure that all results have by sample.

    Raises:
        FigureError: there is no such measure, or one model only.
    """
    view = drawn_view(comparison, measure)
    n, m = view.values.shape
    if m < 2:
        raise FigureError(f"there is one result of {comparison.info.title}: nothing to test it against")
    tests, means = view.tests, view.means[view.order]
    difference = means[:, None] - means
    with figure_style():
        names = [
            f"{name}  {number}"
            for number, name in enumerate(short_labels([view.labels[k] for k in view.order], NAMES_WIDTH), 1)
        ]
        written = max(map(text_width, names)) + 0.1
        cell = min(LARGEST_CELL, (PAGE - written - 0.06) / m)
        width, height = max(COLUMN, written + m * cell + 0.06), _ABOVE + m * cell + _BELOW
        left = (written + width - m * cell) / 2
        figure = Figure(figsize=(width, height))
        axes = figure.add_axes((left / width, _BELOW / height, m * cell / width, m * cell / height), facecolor=DIAGONAL)
        norm = CenteredNorm(halfrange=float(np.abs(difference).max()) or 1)
        masked = np.ma.masked_where(np.eye(m, dtype=bool), difference)
        image = axes.imshow(masked, cmap=DIVERGING, norm=norm, interpolation="none")
        _draw_dots(axes, image, difference, dots_of(tests, view.order), cell)
        note = f"paired tests, n = {n:,} {comparison.info.samples}, corrected over {len(tests):,} pair{'s' * (m > 2)}"
        if any(test.p_adjusted is None for test in tests):
            axes.add_patch(Rectangle((-0.5, -0.5), m, m, fill=False, hatch="//////", linewidth=0))
            note = f"hatched: too few samples for a test, n = {n:,} {comparison.info.samples}"
        axes.set_yticks(range(m), names)
        axes.set_xticks(range(m), [str(number) for number in range(1, m + 1)])
        axes.tick_params(length=0, labeltop=True, labelbottom=False)
        axes.spines[:].set_visible(False)
        _draw_scale(figure, norm, left, m * cell)
        figure.text(
            0.5, 0.42 / height, f"{measure_name(comparison, view.measure)}: row − column", ha="center", fontsize=7
        )
        figure.legend(
            [Line2D([], [], **_dot_style(number, LARGEST_CELL), color="black") for number in range(1, len(LEVELS) + 1)],
            [f"p ≤ {level:g}" for level in LEVELS],
            loc="lower center",
            bbox_to_anchor=(0.5, 0.2 / height),
            ncols=len(LEVELS),
            borderaxespad=0,
        )
        figure.text(0.5, 0.05 / height, note, ha="center", fontsize=SMALLEST)
    return figure


def _draw_scale(figure: Figure, norm: CenteredNorm, left: float, wide: float) -> None:
    """The scale of colours, as wide as the map, but not too narrow for its numbers; lengths in inches."""
    width, height = figure.get_size_inches()
    long = max(wide, 1.2)
    start = min(left, width - long - 0.1)
    axes = figure.add_axes((start / width, (_BELOW - 0.14) / height, long / width, 0.08 / height))
    scale = np.linspace(-norm.halfrange, norm.halfrange, 255)
    axes.imshow(scale[None], cmap=DIVERGING, norm=norm, aspect="auto", extent=(scale[0], scale[-1], 0, 1))
    axes.xaxis.set_major_locator(MaxNLocator(4, steps=[1, 2, 2.5, 5, 10]))
    axes.set_yticks([])


def dots_of(tests: Sequence[PairedTest], order: Sequence[int]) -> Integers:
    """How many of LEVELS each pair's corrected p is at most, [m, m], rows and columns in an order of the results."""
    dots = np.zeros((len(order), len(order)), np.int64)
    for test in tests:
        if test.p_adjusted is not None:
            count = sum(test.p_adjusted <= level for level in LEVELS)
            dots[test.first, test.second] = dots[test.second, test.first] = count
    return dots[np.ix_(order, order)]


def _draw_dots(axes: Axes, image: AxesImage, difference: NDArray[np.float64], dots: Integers, cell: float) -> None:
    dark = image.to_rgba(difference)[..., :3] @ _LUMINANCE < 0.4
    for number in range(1, len(LEVELS) + 1):
        for ground, colour in ((dark, "white"), (~dark, "black")):
            y, x = np.nonzero((dots == number) & ground)
            axes.plot(x, y, **_dot_style(number, cell), color=colour)


def _dot_style(count: int, cell: float) -> dict[str, Any]:
    """A marker of dots in a row, of which three fit into a cell of so many inches."""
    circle = Path.unit_circle()
    places = 0.36 * (np.arange(count) - (count - 1) / 2)
    dots = [Path(np.asarray(circle.vertices) * 0.14 + (place, 0), circle.codes) for place in places]
    # Two points that are not drawn: Matplotlib sizes a marker by its farthest point.
    ends = Path([(-0.5, 0), (0.5, 0)], [Path.MOVETO, Path.MOVETO])
    marker = Path.make_compound_path(ends, *dots)
    return {"linestyle": "", "marker": marker, "markersize": 0.75 * 72 * cell, "markeredgewidth": 0}
