"""Figures that benchmarks share: heat maps of several models beside each other, and scatter plots of two measures."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from ..base import Floats, TaskError
from .info import DrawnModel, Sheet

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.colors import Normalize
    from matplotlib.figure import Figure


COLOURS = "PuOr"
"""Orange below zero and purple above: distinct in red–green colour blindness too."""

MISSING = "#D9D9D9"
"""Colour of a cell without a number."""

CELL = 0.17
"""Inches, the height of a cell."""

_HEAT_GAP, _HEAT_RIGHT = 0.12, 0.06  # inches between two panels of a row, and beside the last
_LUMINANCE = (0.2126, 0.7152, 0.0722)  # weights of red, green and blue, ITU-R BT.709
_SCALE = 0.42  # inches of the scale of colours, with its numbers and its words


@dataclass(frozen=True)
class HeatPanel:
    """A panel of a heat map.

    Attributes:
        name: title above it.
        values: [rows, columns], NaN for missing ones; None for a panel that is left empty.
        note: text in an empty panel.
    """

    name: str
    values: Floats | None = None
    note: str = ""


def drawn_values(model: DrawnModel, cells: Sequence[Sequence[Sequence[tuple[str, str]]]]) -> Floats:
    """Numbers of a model, [rows, columns]: for each cell the mean of some measures, NaN where there is none.

    Args:
        model: the model.
        cells: rows of cells, each the task and the name of the measures whose mean it shows.
    """
    table = np.full((len(cells), max(map(len, cells), default=0)), np.nan)
    for row, line in enumerate(cells):
        for column, measures in enumerate(line):
            stated = [value for task, name in measures if (value := model.value(task, name)) is not None]
            if stated:
                table[row, column] = np.mean(stated)
    return table


def draw_heat_maps(
    panels: Sequence[Sequence[HeatPanel]],
    rows: Sequence[str],
    columns: Sequence[str],
    sheet: Sheet,
    *,
    groups: Sequence[int] = (),
    scale: str = "",
) -> Figure:
    """A figure of heat maps with a common scale from −1 to 1: colours saturate at its ends, numbers do not.

    Args:
        panels: rows of panels, of one length.
        rows, columns: headings of the rows and columns of all panels.
        sheet: to draw on.
        groups: rows before which there is a gap.
        scale: label below the scale of colours.
    """
    from matplotlib.colors import Normalize
    from matplotlib.figure import Figure

    across = len(panels[0])
    width = sheet.page if across > 1 else sheet.column
    left = max(map(sheet.text_width, rows)) + 0.12
    above = 2 * sheet.line + 0.08
    slant = 0.72 * max(map(sheet.text_width, columns)) + 0.12
    high = CELL * len(rows)
    whole = len(panels) * (above + high + slant) + _SCALE
    figure = Figure(figsize=(width, whole))
    wide = (width - left - _HEAT_RIGHT - (across - 1) * _HEAT_GAP) / across
    norm = Normalize(-1, 1)
    for down, line in enumerate(panels):
        bottom = whole - (down + 1) * (above + high + slant) + slant
        for place, panel in enumerate(line):
            corner = (left + place * (wide + _HEAT_GAP)) / width
            axes = figure.add_axes((corner, bottom / whole, wide / width, high / whole))
            _draw_cells(axes, panel, norm, len(rows), len(columns), groups)
            sheet.title(axes, panel.name, wide)
            axes.tick_params(length=0, pad=2)
            axes.set_yticks(range(len(rows)), rows if place == 0 else [""] * len(rows))
            headings = [""] * len(columns) if panel.values is None else columns
            axes.set_xticks(range(len(columns)), headings, rotation=45, ha="right", rotation_mode="anchor")
    _draw_scale(figure, norm, scale)
    return figure


def _draw_cells(axes: Axes, panel: HeatPanel, norm: Normalize, rows: int, columns: int, groups: Sequence[int]) -> None:
    axes.spines[:].set_visible(False)
    axes.set(xlim=(-0.5, columns - 0.5), ylim=(rows - 0.5, -0.5))
    if panel.values is None:
        axes.text(0.5, 0.5, panel.note, transform=axes.transAxes, ha="center", va="center", color="#555555")
        return
    import matplotlib

    axes.set_facecolor(MISSING)
    size = matplotlib.rcParams["xtick.labelsize"]
    shown = np.ma.masked_invalid(panel.values)
    image = axes.imshow(shown, cmap=COLOURS, norm=norm, interpolation="none", aspect="auto")
    dark = image.to_rgba(shown)[..., :3] @ _LUMINANCE < 0.4
    for (row, column), value in np.ndenumerate(panel.values):
        colour = "#555555" if np.isnan(value) else "white" if dark[row, column] else "black"
        axes.text(column, row, heat_map_text(value), ha="center", va="center_baseline", color=colour, fontsize=size)
    for edge in np.arange(0.5, columns - 1):
        axes.axvline(edge, color="white", linewidth=0.5)
    for edge in np.arange(0.5, rows - 1):
        axes.axhline(edge, color="white", linewidth=2.5 if edge + 0.5 in groups else 0.5)


def heat_map_text(value: float) -> str:
    """A number in as few characters as it needs; a dash for a missing one."""
    if np.isnan(value):
        return "–"
    return (f"{value:z.2f}" if abs(value) < 9.995 else f"{value:.0f}").replace("-", "−")


def _draw_scale(figure: Figure, norm: Normalize, words: str) -> None:
    import matplotlib

    width, height = figure.get_size_inches()
    axes = figure.add_axes(((width / 2 - 1) / width, 0.3 / height, 2 / width, 0.08 / height))
    values = np.linspace(-1, 1, 255)
    axes.imshow(values[None], cmap=COLOURS, norm=norm, aspect="auto", extent=(-1, 1, 0, 1))
    axes.set_yticks([])
    axes.set_xticks([-1, -0.5, 0, 0.5, 1], ["≤ −1", "−0.5", "0", "0.5", "1"])
    figure.text(0.5, 0.04 / height, words, ha="center", fontsize=matplotlib.rcParams["xtick.labelsize"])


MARKER = 4
"""Points (1/72 inch), the size of a model's marker."""

KIND_NAMES = {"trained": "model", "untrained": "untrained network", "baseline": "baseline", "control": "control"}
"""Names of the kinds of models, in the order of legends."""

JOINED: dict[str, Any] = {"color": "#999999", "linewidth": 0.8, "zorder": 1}
"""The line between a model and its untrained twin."""

FLOOR_DASH: dict[str, Any] = {"color": "#D55E00", "marker": "_", "markersize": 9, "markeredgewidth": 1.2, "zorder": 2}
"""The dash at a model's floor, given by its own numbers."""

_HIGH, _GAP, _LEFT, _RIGHT = 1.45, 0.12, 0.46, 0.06  # inches of panels, between and beside them


@dataclass(frozen=True)
class ScatterPanel:
    """A panel of a scatter plot.

    Attributes:
        name: title above it.
        x, y: task and name of the measures.
        chance: level of both, where lines are drawn; None for none.
        floor: task and name of the measure that replaces the chance level of `y` where it is larger, by a model's own
            numbers; None for none.
    """

    name: str
    x: tuple[str, str]
    y: tuple[str, str]
    chance: tuple[float | None, float | None] = (None, None)
    floor: tuple[str, str] | None = None

    def point(self, model: DrawnModel) -> tuple[float, float] | None:
        """The point of a model; None where it lacks a measure."""
        x, y = model.value(*self.x), model.value(*self.y)
        return None if x is None or y is None else (x, y)

    def raised(self, model: DrawnModel) -> float | None:
        """The floor of a model, where it is above the chance level."""
        value = None if self.floor is None else model.value(*self.floor)
        return value if value is not None and value > (self.chance[1] or 0.0) else None


def draw_twin_scatter(
    panels: Sequence[ScatterPanel], models: Sequence[DrawnModel], sheet: Sheet, x: str, y: str
) -> Figure:
    """A figure of panels with the same axes, with the models numbered, and a key of the numbers below.

    Args:
        panels: beside each other.
        models: all of them; one without a point in any panel is left out.
        sheet: to draw on.
        x, y: labels of the axes.

    Raises:
        TaskError: no model has a point.
    """
    from matplotlib.figure import Figure
    from matplotlib.ticker import MaxNLocator

    numbers: dict[int, int] = {}
    for place, model in enumerate(models):
        if any(panel.point(model) is not None for panel in panels):
            numbers[place] = len(numbers) + 1
    if not numbers:
        raise TaskError(f"no result has both {x} and {y}")
    width = sheet.page
    wide = (width - _LEFT - _RIGHT - (len(panels) - 1) * _GAP) / len(panels)
    key = sheet.key([models[place].label for place in numbers], width)
    foot = key.height + 0.2
    under, above = 0.42, sheet.line + 0.06
    whole = above + _HIGH + under + foot
    figure = Figure(figsize=(width, whole))
    limits = _limits(panels, models)
    (low, high), steps = limits[0], MaxNLocator(5, steps=[1, 2, 5, 10])
    # None at the lower end, where its number would meet the highest of the panel before.
    ticks = [tick for tick in steps.tick_values(low, high) if 0.1 * (high - low) < tick - low <= high - low]
    for column, panel in enumerate(panels):
        corner = (_LEFT + column * (wide + _GAP)) / width
        axes = figure.add_axes((corner, (foot + under) / whole, wide / width, _HIGH / whole))
        axes.set(xlim=limits[0], ylim=limits[1])
        sheet.title(axes, panel.name, wide)
        axes.tick_params(labelleft=column == 0)
        axes.set_xticks(ticks)
        axes.grid(visible=True)
        _draw_points(axes, panel, models, numbers, sheet)
    label: dict[str, Any] = {"ha": "center", "rotation_mode": "anchor", "fontsize": "medium"}
    figure.text(0.02 / width, (foot + under + _HIGH / 2) / whole, y, va="top", rotation=90, **label)
    figure.text((_LEFT + width - _RIGHT) / 2 / width, (foot + 0.1) / whole, x, va="bottom", **label)
    _draw_legend(figure, [models[place] for place in numbers], key.height)
    key.draw(figure)
    return figure


def _limits(
    panels: Sequence[ScatterPanel], models: Sequence[DrawnModel]
) -> tuple[tuple[float, float], tuple[float, float]]:
    """Limits of both axes, such that all panels show all points."""
    points = np.array([point for panel in panels for model in models if (point := panel.point(model)) is not None])
    margin = 0.08 * np.maximum(np.ptp(points, axis=0), 0.1)
    low, high = points.min(axis=0) - margin, points.max(axis=0) + margin
    return (float(low[0]), float(high[0])), (float(low[1]), float(high[1]))


def _draw_points(
    axes: Axes, panel: ScatterPanel, models: Sequence[DrawnModel], numbers: dict[int, int], sheet: Sheet
) -> None:
    points = {place: point for place in numbers if (point := panel.point(models[place])) is not None}
    for value, draw in zip(panel.chance, (axes.axvline, axes.axhline), strict=True):
        if value is not None:
            draw(value, color="#555555", linestyle="--", linewidth=0.8, zorder=0)
    for place, point in points.items():
        model = models[place]
        for twin in model.twins:
            if twin in points:
                axes.plot(*zip(point, points[twin], strict=True), **JOINED)
        axes.plot(*point, model.marker, color=model.colour, markersize=MARKER)
        floor = panel.raised(model)
        if floor is not None:
            axes.plot(point[0], floor, **FLOOR_DASH)
    if points:
        x, y = zip(*points.values(), strict=True)
        sheet.number(axes, x, y, [numbers[place] for place in points])


def _draw_legend(figure: Figure, models: Sequence[DrawnModel], above: float) -> None:
    from matplotlib.lines import Line2D

    looks = {model.kind: (model.colour, model.marker) for model in models}
    kinds = [kind for kind in KIND_NAMES if kind in looks]
    marks = [Line2D([], [], color=looks[k][0], marker=looks[k][1], linestyle="", markersize=MARKER) for k in kinds]
    figure.legend(
        [*marks, Line2D([], [], **JOINED)],
        [*(KIND_NAMES[kind] for kind in kinds), "a model and its untrained twin"],
        loc="lower center",
        ncols=len(kinds) + 1,
        bbox_to_anchor=(0.5, (above + 0.02) / figure.get_figheight()),
        borderaxespad=0,
    )
