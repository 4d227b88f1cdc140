"""SVG files of figures made small for pages that hold many: what they show stays the same."""

from __future__ import annotations

import base64
import io
import re
from collections import Counter
from collections.abc import Iterator
from urllib.parse import quote
from xml.etree import ElementTree

import numpy as np
from PIL import Image

DECIMALS = 2
"""Of coordinates, in points: 0.01 points are a hundredth of a pixel of a screen."""

OPACITIES = 16
"""Levels that the opacity of a cloud of points is rounded to, which the eye does not tell apart: 4 bits a pixel."""

_SVG, _LINK = "http://www.w3.org/2000/svg", "http://www.w3.org/1999/xlink"
_HREF = f"{{{_LINK}}}href"
_COORDINATES = frozenset(("d", "x", "y", "x1", "x2", "y1", "y2", "cx", "cy", "width", "height", "transform"))
_NUMBER = re.compile(r"-?\d+\.\d+(?:e-?\d+)?")
_REFERENCE = re.compile(r"url\(#([^)]+)\)")
_PNG = "data:image/png;base64,"
_UNQUOTED = " !$&'()*+,/:;<=>?@[]^`{|}~"
"""What stands in a page's data URL as it is, besides letters, digits and "-._~"; not quotation marks, "#" and "%"."""


def compact_svg(svg: str) -> str:
    """An SVG file of Matplotlib's in about half its size: it looks the same.

    Coordinates are rounded to DECIMALS, styles that stand more than once are named once, ids that nothing refers to,
    groups that say nothing and space between elements are left out, and rasterised clouds have a palette.
    """
    root = ElementTree.fromstring(svg)
    _drop_ids(root)
    _unwrap_groups(root)
    for element in root.iter():
        _compact(element)
    _share_styles(root)
    for prefix, namespace in (("", _SVG), ("xlink", _LINK)):
        ElementTree.register_namespace(prefix, namespace)
    return ElementTree.tostring(root, encoding="unicode")


def data_url(svg: str) -> str:
    """An SVG file of `compact_svg` as an address, a quarter shorter than in base64.

    It is escaped for an attribute of a page between double quotation marks, of which it holds none.
    """
    # Inside of attributes ">" is escaped, so that this finds whole tags.
    address = quote(re.sub(r"<[^>]*>", _singly_quoted, svg), safe=_UNQUOTED)
    return f"data:image/svg+xml;charset=utf-8,{address.replace('&', '&amp;')}"


def _singly_quoted(tag: re.Match[str]) -> str:
    return tag[0].replace("'", "&apos;").replace('"', "'")


def _drop_ids(root: ElementTree.Element) -> None:
    """Leave out the ids that nothing refers to."""
    values = [value for element in root.iter() for value in element.attrib.values()]
    named = {name for value in values for name in _REFERENCE.findall(value)}
    named |= {element.attrib[_HREF].removeprefix("#") for element in root.iter() if _HREF in element.attrib}
    for element in root.iter():
        if element.get("id") not in named:
            element.attrib.pop("id", None)


def _unwrap_groups(element: ElementTree.Element) -> None:
    """Put the members of groups without attributes in their place."""
    members: list[ElementTree.Element] = []
    for child in element:
        _unwrap_groups(child)
        is_bare = child.tag == f"{{{_SVG}}}g" and not child.attrib
        members += list(child) if is_bare else [child]
    element[:] = members


def _compact(element: ElementTree.Element) -> None:
    """Shorten an element's attributes, and leave out the space around it."""
    element.tail = None
    if not (element.text or "").strip() and element.tag != f"{{{_SVG}}}text":
        element.text = None
    attributes = element.attrib
    # Text that is not turned.
    if attributes.get("transform", "").startswith("rotate(-0 "):
        del attributes["transform"]
    for name in _COORDINATES & attributes.keys():
        attributes[name] = " ".join(_NUMBER.sub(_rounded, attributes[name]).split())
    if attributes.get(_HREF, "").startswith(_PNG):
        attributes[_HREF] = _compact_png(attributes[_HREF])


def _rounded(number: re.Match[str]) -> str:
    text = f"{float(number[0]):.{DECIMALS}f}".rstrip("0").rstrip(".")
    return "0" if text == "-0" else text


def _compact_png(address: str) -> str:
    """A picture of a cloud of points with a palette, where that is smaller; other pictures have no soft edges."""
    raw = base64.b64decode(address.removeprefix(_PNG))
    with Image.open(io.BytesIO(raw)) as image:
        pixels = np.asarray(image.convert("RGBA"))
    opacity = pixels[..., 3]
    if ((opacity == 0) | (opacity == 255)).all():
        return address
    seen = np.unique(pixels[opacity > 0][:, :3], axis=0)
    file = io.BytesIO()
    if len(seen) == 1:
        levels = np.rint(opacity / 255 * (OPACITIES - 1)).astype(np.uint8)
        picture = Image.frombytes("P", levels.shape[::-1], levels.tobytes())
        picture.putpalette(seen[0].tolist() * OPACITIES)
        shades = np.rint(np.linspace(0, 255, OPACITIES)).astype(np.uint8).tobytes()
        picture.save(file, "PNG", optimize=True, bits=4, transparency=shades)
    else:
        Image.fromarray(pixels, "RGBA").quantize(64, Image.Quantize.FASTOCTREE).save(file, "PNG", optimize=True)
    smaller = min(raw, file.getvalue(), key=len)
    return _PNG + base64.b64encode(smaller).decode()


def _share_styles(root: ElementTree.Element) -> None:
    """Make classes of the styles that stand more than once."""
    counts = Counter(element.attrib["style"] for element in root.iter() if "style" in element.attrib)
    names = dict(zip((style for style, count in counts.most_common() if count > 1), _class_names(), strict=False))
    for element in root.iter():
        if (style := element.get("style")) in names:
            del element.attrib["style"]
            element.set("class", names[style])
    rules = "".join(f".{name}{{{style}}}" for style, name in names.items())
    sheet = root.find(f"{{{_SVG}}}defs/{{{_SVG}}}style")
    if sheet is None:
        sheet = ElementTree.Element(f"{{{_SVG}}}style")
        root.insert(0, sheet)
    sheet.text = (sheet.text or "") + rules


def _class_names() -> Iterator[str]:
    return (f"s{number:x}" for number in range(1_000_000))
