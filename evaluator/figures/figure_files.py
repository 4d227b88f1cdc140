"""Figures as files: SVG and PNG that depend on nothing but the figure, and SVG small enough to stand in a page."""

from __future__ import annotations

import base64
import hashlib
import io
import re
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from xml.dom import minidom

import matplotlib.style
import numpy as np
from matplotlib.figure import Figure
from PIL import Image

STYLE = "audio_compositionality.evaluator.figures.figures"
"""The one style of all figures: figures.mplstyle of this package, as Matplotlib wants it named."""

PRINT_DPI, SCREEN_DPI = 300, 110
"""Resolution of PNG files, and of what is rasterised in SVG, clouds of points: in files, and in pages (at the size that
it is drawn for, a page shows 96)."""

_COLOURS = 32  # of a rasterised cloud of points: two hues, and their mixtures with each other and with nothing
_METADATA = dict.fromkeys(("Creator", "Date", "Format", "Type"))
_NUMBER = re.compile(r"-?\d+\.\d+")
_REFERENCE = re.compile(r"url\(#(\w+)\)")
_DATA = "data:image/png;base64,"


@contextmanager
def figure_style() -> Iterator[None]:
    """Matplotlib's defaults and over them the style of all figures, whatever the user has set.

    Nothing warns of characters that the font lacks: a PNG file shows a box, an SVG file the character.
    """
    with matplotlib.style.context(["default", STYLE]), warnings.catch_warnings():
        warnings.filterwarnings("ignore", r"Glyph \d+ .* missing from font", UserWarning)
        yield


def save_figure(figure: Figure, path: str | Path) -> tuple[Path, Path]:
    """Write a figure as SVG, as `figure_svg` gives it, and as PNG. The same figure gives the same bytes.

    Args:
        figure: of `figures`.
        path: of the files, without a suffix. Folders that are not there are made.

    Returns:
        paths of the SVG file and of the PNG file.
    """
    path = Path(path)
    svg, png = (path.with_name(f"{path.name}.{suffix}") for suffix in ("svg", "png"))
    path.parent.mkdir(parents=True, exist_ok=True)
    svg.write_text(f'<?xml version="1.0" encoding="utf-8"?>\n{figure_svg(figure, PRINT_DPI)}\n', "utf-8")
    with figure_style():
        figure.savefig(png, dpi=PRINT_DPI, metadata={"Software": None})
    return svg, png


def figure_svg(figure: Figure, dpi: int = SCREEN_DPI) -> str:
    """A figure as one SVG element, to stand in an HTML page.

    Text is text, in the reader's sans-serif font. The element refers to nothing outside itself and holds no style
    sheet; no other figure has its ids. Coordinates have two decimals, 0.01 pt.

    Args:
        figure: of `figures`.
        dpi: of what is rasterised.
    """
    file = io.BytesIO()
    with figure_style():
        figure.savefig(file, format="svg", dpi=dpi, metadata=_METADATA)
    root = minidom.parseString(file.getvalue()).documentElement
    assert root is not None
    prefix = "f" + hashlib.sha256(file.getvalue()).hexdigest()[:8]
    _tidy(root, set(_referred(root)), prefix)
    root.setAttribute("font-family", "sans-serif")
    # Matplotlib states these in a style sheet, which would apply to everything else on a page.
    root.setAttribute("stroke-linejoin", "round")
    root.setAttribute("stroke-linecap", "butt")
    return root.toxml()


def _referred(element: minidom.Element) -> Iterator[str]:
    """The ids that attributes below an element refer to."""
    for node in element.getElementsByTagName("*"):
        for name, value in node.attributes.items():
            if name == "xlink:href":
                yield value.removeprefix("#")
            else:
                yield from _REFERENCE.findall(value)


def _tidy(element: minidom.Element, used: set[str], prefix: str) -> None:
    """Drop what is below an element and neither seen nor referred to; shorten the rest."""
    for node in list(element.childNodes):
        if not isinstance(node, minidom.Element):
            if element.tagName != "text":
                element.removeChild(node)
        elif node.tagName in ("metadata", "style"):
            element.removeChild(node)
        else:
            for name, value in list(node.attributes.items()):
                _shorten(node, name, value, used, prefix)
            _tidy(node, used, prefix)
            says_nothing = node.tagName == "g" and not node.attributes.length
            if says_nothing or (node.tagName in ("defs", "g") and not node.childNodes):
                for child in list(node.childNodes):
                    element.insertBefore(child, node)
                element.removeChild(node)


def _shorten(node: minidom.Element, name: str, value: str, used: set[str], prefix: str) -> None:
    if name == "id":
        if value in used:
            node.setAttribute(name, prefix + value)
        else:
            node.removeAttribute(name)
    elif name == "xlink:href":
        node.setAttribute(name, f"#{prefix}{value[1:]}" if value.startswith("#") else _repacked(value))
    elif value.startswith("rotate(-0 "):
        node.removeAttribute(name)
    elif name == "style":
        style = re.sub(r"font-family: [^;]*;?", "", value).replace(": ", ":").replace("; ", ";")
        node.setAttribute(name, _REFERENCE.sub(rf"url(#{prefix}\1)", style))
    elif node.tagName != "image":
        short = _NUMBER.sub(lambda found: f"{float(found[0]):.2f}".rstrip("0").rstrip("."), value)
        node.setAttribute(name, _REFERENCE.sub(rf"url(#{prefix}\1)", " ".join(short.split())))


def _repacked(value: str) -> str:
    """A cloud of points with a palette instead of four bytes a pixel, as a data URL; a map of values unchanged."""
    data = base64.b64decode(value.removeprefix(_DATA))
    image = Image.open(io.BytesIO(data))
    if len(np.unique(np.asarray(image)[..., 3])) > 2:  # the edge of a point has shades of transparency
        file = io.BytesIO()
        image.quantize(_COLOURS, Image.Quantize.FASTOCTREE).save(file, "PNG", optimize=True)
        data = file.getvalue()
    return _DATA + base64.b64encode(data).decode("ascii")
