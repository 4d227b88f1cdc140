"""Two measures of several models against each other: a point a model, joined with its untrained twin by a line."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from .base import TaskError
from .groups import DrawnModel, Sheet

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

MARKER = 4
"""Points (1/72 inch), the size of a model's marker."""

KINDS = {"trained": "model", "untrained": "untrained network", "baseline": "baseline", "control": "control"}
"""What kinds of models are called, in the order of legends."""

JOINED: dict[str, Any] = {"color": "#999999", "linewidth": 0.8, "zorder": 1}
"""The line between a model and its untrained twin."""

FLOOR: dict[str, Any] = {"color": "#D55E00", "marker": "_", "markersize": 9, "markeredgewidth": 1.2, "zorder": 2}
"""The dash at what a model has to be above by its own numbers."""

_HIGH, _GAP, _LEFT, _RIGHT = 1.45, 0.12, 0.46, 0.06  # inches of panels, between and beside them


@dataclass(frozen=True)
class ScatterPanel:
    """A panel of a scatter plot.

    Attributes:
        name: what stands above it.
        x, y: task and name of the measures.
        chance: of both, where lines are drawn; None for none.
        floor: task and name of the measure that a model's own numbers put in the place of the chance of `y`, where it
            is larger; None for none.
    """

    name: str
    x: tuple[str, str]
    y: tuple[str, str]
    chance: tuple[float | None, float | None] = (None, None)
    floor: tuple[str, str] | None = None

    def point(self, model: DrawnModel) -> tuple[float, float] | None:
        """Where a model lies; None where it lacks a measure."""
        x, y = model.value(*self.x), model.value(*self.y)
        return None if x is None or y is None else (x, y)

    def raised(self, model: DrawnModel) -> float | None:
        """The floor of a model, where it is above chance."""
        value = None if self.floor is None else model.value(*self.floor)
        return value if value is not None and value > (self.chance[1] or 0.0) else None


def draw_twin_scatter(
    panels: Sequence[ScatterPanel], models: Sequence[DrawnModel], sheet: Sheet, x: str, y: str
) -> Figure:
    """A figure of panels with the same axes, with the models numbered, and a key of the numbers below.

    Args:
        panels: beside each other.
        models: all of them; one without a point in any panel is left out.
        sheet: what it is drawn on.
        x, y: what the axes are.

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
        _draw_panel(axes, panel, models, numbers, sheet)
    label: dict[str, Any] = {"ha": "center", "rotation_mode": "anchor", "fontsize": "medium"}
    figure.text(0.02 / width, (foot + under + _HIGH / 2) / whole, y, va="top", rotation=90, **label)
    figure.text((_LEFT + width - _RIGHT) / 2 / width, (foot + 0.1) / whole, x, va="bottom", **label)
    _draw_legend(figure, [models[place] for place in numbers], key.height)
    key.draw(figure)
    return figure


def _limits(
    panels: Sequence[ScatterPanel], models: Sequence[DrawnModel]
) -> tuple[tuple[float, float], tuple[float, float]]:
    """Of both axes, so that all panels show all points."""
    points = np.array([point for panel in panels for model in models if (point := panel.point(model)) is not None])
    margin = 0.08 * np.maximum(np.ptp(points, axis=0), 0.1)
    low, high = points.min(axis=0) - margin, points.max(axis=0) + margin
    return (float(low[0]), float(high[0])), (float(low[1]), float(high[1]))


def _draw_panel(
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
            axes.plot(point[0], floor, **FLOOR)
    if points:
        x, y = zip(*points.values(), strict=True)
        sheet.number(axes, x, y, [numbers[place] for place in points])


def _draw_legend(figure: Figure, models: Sequence[DrawnModel], above: float) -> None:
    from matplotlib.lines import Line2D

    looks = {model.kind: (model.colour, model.marker) for model in models}
    kinds = [kind for kind in KINDS if kind in looks]
    marks = [Line2D([], [], color=looks[k][0], marker=looks[k][1], linestyle="", markersize=MARKER) for k in kinds]
    figure.legend(
        [*marks, Line2D([], [], **JOINED)],
        [*(KINDS[kind] for kind in kinds), "a model and its untrained twin"],
        loc="lower center",
        ncols=len(kinds) + 1,
        bbox_to_anchor=(0.5, (above + 0.02) / figure.get_figheight()),
        borderaxespad=0,
    )
