"""The style of all figures, their files, and their data URLs in a page.

All figures are drawn in figures.mplstyle, independent of the user's settings and without pyplot, for a paper's column
or page and for the report. Untrained networks and baselines differ from models in colour and in hatch or marker.
"""

from __future__ import annotations

import io
import re
import warnings
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Literal
from urllib.parse import quote

import matplotlib.style
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from numpy.typing import NDArray

from audio_compositionality.evaluator.compare.comparison import Comparison, View
from audio_compositionality.evaluator.compare.loading import ModelKind
from audio_compositionality.evaluator.results.result import ResultError
from audio_compositionality.support.errors import AudioCompositionalityError
from audio_compositionality.support.files import write_whole
from audio_compositionality.tasks.base import Measure

STYLE = "audio_compositionality.evaluator.figures.figures"
"""Matplotlib's name for figures.mplstyle of this package."""

PRINT_DPI, SCREEN_DPI = 300, 110
"""Resolution of PNG files and of rasterised parts of SVG (clouds of points), in files and in pages. A page shows 96 dpi
at the nominal size."""

FORMS: dict[str, dict[str, None]] = {
    "pdf": dict.fromkeys(("Creator", "Producer", "CreationDate")),
    "svg": dict.fromkeys(("Creator", "Date", "Format", "Type")),
    "png": {"Software": None},
}
"""File formats, and the metadata left out of each, so that the same figure gives the same bytes."""


@contextmanager
def figure_style() -> Iterator[None]:
    """Draw in Matplotlib's defaults and the style of all figures, independent of the user's settings.

    Warnings about characters that the font lacks are hidden: a PNG file shows a box, an SVG file the character.
    """
    with matplotlib.style.context(["default", STYLE]), warnings.catch_warnings():
        warnings.filterwarnings("ignore", r"Glyph \d+ .* missing from font", UserWarning)
        yield


def save_figure(figure: Figure, path: str | Path) -> tuple[Path, Path]:
    """Write a figure as SVG and as PNG, and return both paths. The same figure gives the same bytes.

    Args:
        figure: the figure.
        path: of the files, without a suffix. Missing folders are created.
    """
    path = Path(path)
    svg, png = (path.with_name(f"{path.name}.{suffix}") for suffix in ("svg", "png"))
    write_whole(svg, figure_svg(figure, PRINT_DPI))
    write_whole(png, figure_bytes(figure, "png", PRINT_DPI))
    return svg, png


def figure_svg(figure: Figure, dpi: int = SCREEN_DPI) -> str:
    """Return a figure as SVG without external references; text stays text, in the reader's sans-serif font.

    Args:
        figure: the figure.
        dpi: of rasterised parts.
    """
    return figure_bytes(figure, "svg", dpi).decode("utf-8")


def figure_bytes(figure: Figure, form: str, dpi: int) -> bytes:
    """Return the bytes of a figure as a file in one of `FORMS`."""
    file = io.BytesIO()
    with figure_style():
        figure.savefig(file, format=form, dpi=dpi, metadata=FORMS[form])
    return file.getvalue()


Floats = NDArray[np.float64]


class FigureError(AudioCompositionalityError):
    """A figure that cannot be drawn from these results; the message says why."""


@dataclass(frozen=True)
class Described:
    """A figure that can be drawn.

    Attributes:
        name: of its files.
        draw: returns the figure; raises FigureError if it cannot be drawn.
        alternative: its content in words, for people who cannot see it.
        caption: its caption.
    """

    name: str
    draw: Callable[[], Figure]
    alternative: str
    caption: str


@dataclass(frozen=True)
class Look:
    """The look of models of one kind.

    Attributes:
        name: of the kind.
        colour: of points. Blue and orange: Okabe and Ito 2008, "Color universal design".
        fill: of boxes, half of the colour.
        hatch: of boxes.
        marker: of points.
    """

    name: str
    colour: str
    fill: str
    hatch: str
    marker: str


LOOKS = {
    kind: Look(kind.value, *look)
    for kind, look in (
        (ModelKind.TRAINED, ("#0072B2", "#80B9D9", "", "o")),
        (ModelKind.UNTRAINED, ("#E69F00", "#F3CF80", "//////", "^")),
        (ModelKind.BASELINE, ("#555555", "#DDDDDD", "xxxxxx", "s")),
        (ModelKind.CONTROL, ("#CC79A7", "#E6BCD3", "......", "D")),
    )
}
"""Looks in the order of legends."""

CLOUD, FIT = "#555555", "#D55E00"
"""Colours of clouds of points and of the lines fitted to them; the second is also by Okabe and Ito."""

TICKS = (-1.0, -0.5, 0.0, 0.5, 0.9, 0.99, 0.999, 0.9999)
"""Ticks of an axis that is logarithmic in the distance to 1."""

_NEAREST = 1e-4  # distance to 1 below which scores look the same on a logarithmic axis


def drawn_view(comparison: Comparison, measure: str) -> View:
    """Return the view of a measure.

    Raises:
        FigureError: the results do not all have the measure by sample.
    """
    try:
        return comparison.view(measure)
    except ResultError as error:
        raise FigureError(str(error)) from error


def looks_of(comparison: Comparison, order: Iterable[int]) -> list[Look]:
    """Return the looks of the results with the given indices."""
    return [LOOKS[comparison.results[place].kind] for place in order]


def distinct(looks: Iterable[Look]) -> list[Look]:
    """Return each look once, in the order of legends."""
    present = set(looks)
    return [look for look in LOOKS.values() if look in present]


def measure_name(comparison: Comparison, measure: Measure) -> str:
    """Return the label of the axis of a measure."""
    title = comparison.info.title
    return title if measure is comparison.info.score else f"{title}, {measure.heading}"


def crowds_at_one(measure: Measure, values: Floats) -> bool:
    """Whether the highest possible value is 1, and some values are ten times closer to it than others (0.99 and
    0.9)."""
    return measure.range[1] == 1 and bool(values.max() <= 1 and np.ptp(_closeness(values)) >= 1)


def spread_at_one(axes: Axes, which: Literal["x", "y"], values: Floats) -> None:
    """Make an axis logarithmic in the distance to 1, so that 0.99 and 0.999 differ visibly; see `crowds_at_one`."""
    low, high = float(_closeness(values).min()), float(_closeness(values).max())
    margin = 0.06 * (high - low)
    ends = _from_closeness(np.array([low - margin, high + margin]))
    getattr(axes, f"set_{which}scale")("function", functions=(_closeness, _from_closeness))
    getattr(axes, f"set_{which}lim")(*ends)
    inside = [tick for tick in TICKS if ends[0] <= tick <= ends[1]]
    getattr(axes, f"set_{which}ticks")(inside, [f"{tick:g}".replace("-", "−") for tick in inside])


def name_at_one(name: str) -> str:
    """Return the label of a logarithmic axis."""
    return f"{name} (log scale of the distance to 1)"


def _closeness(values: Floats) -> Floats:
    """Return how close values are to 1, in decades."""
    return -np.log10(np.maximum(1 + _NEAREST - np.asarray(values), _NEAREST / 2))


def _from_closeness(closeness: Floats) -> Floats:
    return 1 + _NEAREST - 10 ** -np.asarray(closeness)


_UNQUOTED = " !$&'()*+,/:;<=>?@[]^`{|}~"
"""Characters that stay unescaped in a page's data URL, besides letters, digits and "-._~"; not quotation marks, "#" and
"%"."""


def data_url(svg: str) -> str:
    """Return SVG from `figure_svg` as a data URL, a quarter shorter than in base64.

    It is escaped for an attribute in double quotation marks, and contains none.
    """
    # Within attributes ">" is escaped, so this matches complete tags.
    quoted = re.sub(r"<[^>]*>", lambda tag: tag[0].replace("'", "&apos;").replace('"', "'"), svg)
    address = quote(quoted, safe=_UNQUOTED)
    return f"data:image/svg+xml;charset=utf-8,{address.replace('&', '&amp;')}"
