"""Figures as files: SVG and PNG that depend on nothing but the figure."""

from __future__ import annotations

import io
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import matplotlib.style
from matplotlib.figure import Figure

from audio_compositionality.support.files import write_whole

STYLE = "audio_compositionality.evaluator.figures.figures"
"""The one style of all figures: figures.mplstyle of this package, as Matplotlib wants it named."""

PRINT_DPI, SCREEN_DPI = 300, 110
"""Resolution of PNG files, and of what is rasterised in SVG, clouds of points: in files, and in pages (at the size that
it is drawn for, a page shows 96)."""

_METADATA = dict.fromkeys(("Creator", "Date", "Format", "Type"))


@contextmanager
def figure_style() -> Iterator[None]:
    """Matplotlib's defaults and over them the style of all figures, whatever the user has set.

    Nothing warns of characters that the font lacks: a PNG file shows a box, an SVG file the character.
    """
    with matplotlib.style.context(["default", STYLE]), warnings.catch_warnings():
        warnings.filterwarnings("ignore", r"Glyph \d+ .* missing from font", UserWarning)
        yield


def save_figure(figure: Figure, path: str | Path) -> tuple[Path, Path]:
    """Write a figure as SVG and as PNG. The same figure gives the same bytes.

    Args:
        figure: which one.
        path: of the files, without a suffix. Folders that are not there are made.

    Returns:
        paths of the SVG file and of the PNG file.
    """
    path = Path(path)
    svg, png = (path.with_name(f"{path.name}.{suffix}") for suffix in ("svg", "png"))
    write_whole(svg, figure_svg(figure, PRINT_DPI))
    write_whole(png, _drawn(figure, "png", PRINT_DPI, {"Software": None}))
    return svg, png


def figure_svg(figure: Figure, dpi: int = SCREEN_DPI) -> str:
    """A figure as an SVG file that refers to nothing outside itself. Text is text, in the reader's sans-serif font
    where he lacks ours.

    Args:
        figure: which one.
        dpi: of what is rasterised.
    """
    return _drawn(figure, "svg", dpi, _METADATA).decode("utf-8")


def _drawn(figure: Figure, form: str, dpi: int, metadata: dict[str, None]) -> bytes:
    file = io.BytesIO()
    with figure_style():
        figure.savefig(file, format=form, dpi=dpi, metadata=metadata)
    return file.getvalue()
