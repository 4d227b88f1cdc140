"""Layout of figures: panels of fixed size, names that fit, keys of numbers."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import matplotlib
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.font_manager import FontProperties
from matplotlib.textpath import TextToPath
from numpy.typing import NDArray

from audio_compositionality.support.text import plain

Floats = NDArray[np.float64]

COLUMN, PAGE = 3.4, 7.1
"""Inches: width of a column and of a page's text in ICASSP's template."""

LONGEST_SHORT_NAME = 40
"""Most characters of a name in a figure."""

SMALLEST, LINE = 6.5, 0.115
"""Smallest readable text in print, in points; inches from one line of it to the next."""

NAMES_WIDTH = 2.4
"""Inches for names at the left of a figure; forty average characters need 2.1."""

LEAST_SPAN = 0.01
"""Least span of an axis: smaller variation looks constant."""

LEFT, RIGHT = 0.46, 0.06
"""Inches at the left of the panels, for the labels of the vertical axis, and at their right, for half a number."""


def short_label(label: str, limit: int = LONGEST_SHORT_NAME) -> str:
    """Return a name of at most `limit` characters on one line, shortened in its middle, which informs least in ids."""
    seen = plain(label)
    if len(seen) <= limit:
        return seen
    kept = limit - 1
    return f"{seen[: kept // 2]}…{seen[len(seen) - (kept + 1) // 2 :]}"


def short_labels(labels: Sequence[str], width: float = math.inf) -> list[str]:
    """Return names of at most LONGEST_SHORT_NAME characters and `width` inches; names that become equal are
    numbered."""
    short = [_fitted(label, width) for label in labels]
    shared = {label for label, count in Counter(short).items() if count > 1}
    numbers: Counter[str] = Counter()
    for place, label in enumerate(short):
        if label in shared:
            numbers[label] += 1
            number = f" #{numbers[label]}"
            short[place] = _fitted(labels[place], width, number)
    return short


def _fitted(label: str, width: float, end: str = "") -> str:
    """Return a name and its end, shortened to a width in inches."""
    for limit in range(LONGEST_SHORT_NAME - len(end), 1, -1):
        short = short_label(label, limit) + end
        if text_width(short) <= width:
            break
    return short


def title_lines(label: str, width: float) -> str:
    """Return a name on one or two lines of at most `width` inches, in the size of titles."""
    for limit in range(LONGEST_SHORT_NAME, 1, -1):
        lines = _two_lines(short_label(label, min(LONGEST_SHORT_NAME, 2 * limit)), limit)
        if max(map(text_width, lines)) <= width:
            break
    return "\n".join(lines)


def _two_lines(label: str, limit: int) -> list[str]:
    """Return a label of at most 2 · `limit` characters on one or two lines, broken after a separator if possible."""
    if len(label) <= limit:
        return [label]
    for separators in ("/:", "-_ ."):
        places = [k + 1 for k, character in enumerate(label[:limit]) if character in separators]
        if places and len(label) - places[-1] <= limit:
            return [label[: places[-1]], label[places[-1] :]]
    return [label[:limit], label[limit:]]


def text_width(text: str) -> float:
    """Return the width of a line in inches, in the size of titles and of the numbers of axes."""
    font = FontProperties(size=matplotlib.rcParams["axes.titlesize"])
    return TextToPath().get_text_width_height_descent(text, font, ismath=False)[0] / 72


@dataclass(frozen=True)
class Grid:
    """Panels in rows, all of one size. Lengths are in inches.

    Attributes:
        count: number of panels.
        columns: panels per row.
        width: of the figure.
        height: of a panel.
        gap: between two panels of a row.
        above: each panel, for its title.
        under: each panel, for the numbers of its horizontal axis and its label.
        foot: below all panels, for labels and notes common to them.
    """

    count: int
    columns: int
    width: float
    height: float
    gap: float
    above: float
    under: float
    foot: float

    @property
    def rows(self) -> int:
        """Return the number of rows."""
        return math.ceil(self.count / self.columns)

    @property
    def panel_width(self) -> float:
        """Return the width of each panel."""
        return (self.width - LEFT - RIGHT - (self.columns - 1) * self.gap) / self.columns

    def draw(self) -> tuple[Figure, list[Axes]]:
        """Return the figure and its panels, row by row."""
        whole = self.rows * (self.above + self.height + self.under) + self.foot
        figure = Figure(figsize=(self.width, whole))
        grid = figure.add_gridspec(
            self.rows,
            self.columns,
            left=LEFT / self.width,
            right=1 - RIGHT / self.width,
            top=1 - self.above / whole,
            bottom=(self.foot + self.under) / whole,
            wspace=self.gap / self.panel_width,
            hspace=(self.above + self.under) / self.height,
        )
        panels = [figure.add_subplot(grid[divmod(k, self.columns)]) for k in range(self.count)]
        return figure, panels

    def label(self, figure: Figure, y: str, x: str = "", note: str = "", under: float = 0.05 + LINE) -> None:
        """Label the axes that all panels share, and write a note below; `under` is the height of the x label in
        inches."""
        width, height = figure.get_size_inches()
        place: dict[str, Any] = {"ha": "center", "rotation_mode": "anchor"}
        centre = (LEFT + width - RIGHT) / 2 / width
        middle = (self.foot + self.under + height - self.above) / 2 / height
        figure.text(0.02 / width, middle, y, va="top", rotation=90, fontsize="medium", **place)
        figure.text(centre, under / height, x, va="bottom", fontsize="medium", **place)
        figure.text(centre, 0.04 / height, note, va="bottom", fontsize=SMALLEST, **place)

    def hide_inner(self, panels: Sequence[Axes], *, x: bool, y: bool) -> None:
        """Hide the axis numbers that a panel shares with the panel below (x) or to its left (y)."""
        for place, axes in enumerate(panels):
            axes.tick_params(
                labelbottom=not x or place + self.columns >= self.count,
                labelleft=not y or place % self.columns == 0,
            )


@dataclass(frozen=True)
class NumberKey:
    """Numbers from 1 and their names, at the foot of a figure.

    Attributes:
        labels: in the order of their numbers, which run down the columns.
        columns: names per line.
        width: of the figure, inches.
    """

    labels: Sequence[str]
    columns: int
    width: float

    @property
    def lines(self) -> int:
        """Return the number of lines of the key."""
        return math.ceil(len(self.labels) / self.columns)

    @property
    def height(self) -> float:
        """Return the height in inches."""
        return self.lines * LINE + 0.06

    def draw(self, figure: Figure) -> None:
        """Write the key."""
        height, each = figure.get_figheight(), (self.width - 0.1) / self.columns
        for place, name in enumerate(short_labels(self.labels, each - 0.25)):
            column, line = divmod(place, self.lines)
            x = 0.1 + column * each
            y = (0.04 + (self.lines - 1 - line) * LINE) / height
            figure.text((x + 0.14) / self.width, y, str(place + 1), ha="right", fontsize=SMALLEST)
            figure.text((x + 0.2) / self.width, y, name, fontsize=SMALLEST)


def even_columns(count: int, most: int) -> int:
    """Return the number of panels per row, at most `most`, that makes the last row as full as possible."""
    return math.ceil(count / math.ceil(count / most))


def limits(values: Floats) -> tuple[float, float]:
    """Return the limits of an axis that shows the values and spans at least LEAST_SPAN."""
    low, high = float(values.min()), float(values.max())
    margin = max(LEAST_SPAN - (high - low), 0.1 * (high - low)) / 2
    return low - margin, high + margin
