"""Heat maps of several models beside each other: what is varied in rows, what is asked in columns, numbers in cells."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from .groups import DrawnModel, Sheet

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.colors import Normalize
    from matplotlib.figure import Figure

Floats = NDArray[np.float64]

COLOURS = "PuOr"
"""Orange below zero and purple above: apart also to eyes that do not tell red from green."""

MISSING = "#D9D9D9"
"""Of a cell without a number."""

CELL = 0.17
"""Inches, the height of a cell."""

_GAP, _RIGHT = 0.12, 0.06  # inches between two panels of a row, and beside the last
_LUMINANCE = (0.2126, 0.7152, 0.0722)  # weights of red, green and blue, ITU-R BT.709
_SCALE = 0.42  # inches of the scale of colours, with its numbers and its words


@dataclass(frozen=True)
class HeatPanel:
    """A panel of a heat map.

    Attributes:
        name: what stands above it.
        values: [rows, columns], NaN for what is missing; None for a panel that is left empty.
        note: what stands in an empty one.
    """

    name: str
    values: Floats | None = None
    note: str = ""


def values_of(model: DrawnModel, cells: Sequence[Sequence[Sequence[tuple[str, str]]]]) -> Floats:
    """Numbers of a model, [rows, columns]: of each cell the mean of some measures, NaN where there is none.

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
    """A figure of heat maps that share a scale of colours from −1 to 1, at which colours end and numbers do not.

    Args:
        panels: rows of panels, of one length.
        rows, columns: headings of the rows and columns of all panels.
        sheet: what it is drawn on.
        groups: rows before which there is a gap.
        scale: what stands below the scale of colours.
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
    wide = (width - left - _RIGHT - (across - 1) * _GAP) / across
    norm = Normalize(-1, 1)
    for down, line in enumerate(panels):
        bottom = whole - (down + 1) * (above + high + slant) + slant
        for place, panel in enumerate(line):
            corner = (left + place * (wide + _GAP)) / width
            axes = figure.add_axes((corner, bottom / whole, wide / width, high / whole))
            _draw_panel(axes, panel, norm, len(rows), len(columns), groups)
            sheet.title(axes, panel.name, wide)
            axes.tick_params(length=0, pad=2)
            axes.set_yticks(range(len(rows)), rows if place == 0 else [""] * len(rows))
            headings = [""] * len(columns) if panel.values is None else columns
            axes.set_xticks(range(len(columns)), headings, rotation=45, ha="right", rotation_mode="anchor")
    _draw_scale(figure, norm, scale)
    return figure


def _draw_panel(axes: Axes, panel: HeatPanel, norm: Normalize, rows: int, columns: int, groups: Sequence[int]) -> None:
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
        axes.text(column, row, cell_text(value), ha="center", va="center_baseline", color=colour, fontsize=size)
    for edge in np.arange(0.5, columns - 1):
        axes.axvline(edge, color="white", linewidth=0.5)
    for edge in np.arange(0.5, rows - 1):
        axes.axhline(edge, color="white", linewidth=2.5 if edge + 0.5 in groups else 0.5)


def cell_text(value: float) -> str:
    """A number on as little room as it needs; a dash for what is missing."""
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
