"""Figures made small for a page: they look the same, whatever stands in them."""

from __future__ import annotations

import base64
import io
from urllib.parse import unquote
from xml.etree import ElementTree

import numpy as np
import pytest
from matplotlib.figure import Figure
from PIL import Image

from audio_compositionality.evaluator.figures.style import compact_svg, data_url, figure_style, figure_svg

SVG = "{http://www.w3.org/2000/svg}"
HREF = "{http://www.w3.org/1999/xlink}href"
HOSTILE = """<script>alert("1")</script> & 'one' "two"  # 50 % \N{MINUS SIGN}1 é --> ]]> {a|b}"""


def drawn(draw):
    with figure_style():
        figure = Figure(figsize=(3, 2))
        draw(figure.add_subplot())
        return figure_svg(figure)


def pictures(svg):
    """The pictures in an SVG file, as RGBA."""
    found = [element.get(HREF) for element in ElementTree.fromstring(svg).iter(f"{SVG}image")]
    raw = [base64.b64decode(address.removeprefix("data:image/png;base64,")) for address in found]
    return [np.asarray(Image.open(io.BytesIO(picture)).convert("RGBA")).astype(int) for picture in raw]


def texts(svg):
    return [element.text for element in ElementTree.fromstring(svg).iter(f"{SVG}text")]


@pytest.fixture(scope="module")
def cloud():
    rng = np.random.default_rng(0)

    def draw(axes):
        for colour in ("#0072b2", "#d55e00"):
            axes.plot(*rng.normal(size=(2, 400)), ".", color=colour, alpha=0.3, markersize=2, rasterized=True)
        axes.set_title(HOSTILE)

    return drawn(draw)


def test_is_smaller_and_says_the_same(cloud):
    compact = compact_svg(cloud)
    assert len(compact) < 0.7 * len(cloud)
    assert texts(compact) == texts(cloud)
    assert HOSTILE in texts(compact)


def test_references_and_styles_are_kept(cloud):
    """Every text has the size that it had: in its own style, or in that of its class."""
    before, after = ElementTree.fromstring(cloud), ElementTree.fromstring(compact_svg(cloud))
    ids = {element.get("id") for element in after.iter()} - {None}
    values = [value for element in after.iter() for name, value in element.attrib.items() if name != "id"]
    used = {value.removeprefix("#") for value in values if value.startswith("#") and len(value) != 7}
    used |= {value.split("#")[1].rstrip(")") for value in values if value.startswith("url(#")}
    assert ids == used != set()
    sheet = after.find(f".//{SVG}style").text
    rules = dict(rule.split("{") for rule in sheet.removeprefix("*").split("}") if rule.startswith("."))
    expected = [element.get("style") for element in before.iter(f"{SVG}text")]
    styles = [element.get("style") or rules[f".{element.get('class')}"] for element in after.iter(f"{SVG}text")]
    assert styles == expected


def test_coordinates_are_rounded_and_nothing_else():
    svg = drawn(lambda axes: axes.text(0.123456, 0.5, "0.123456"))
    root = ElementTree.fromstring(compact_svg(svg))
    assert "0.123456" in texts(compact_svg(svg))
    exact = [float(element.get("x")) for element in ElementTree.fromstring(svg).iter(f"{SVG}text")]
    assert [float(element.get("x")) for element in root.iter(f"{SVG}text")] == pytest.approx(exact, abs=0.006)


def test_clouds_look_the_same(cloud):
    before, after = pictures(cloud), pictures(compact_svg(cloud))
    assert before
    for one, other in zip(before, after, strict=True):
        on_white = [picture[..., :3] * (a := picture[..., 3:] / 255) + 255 * (1 - a) for picture in (one, other)]
        difference = np.abs(on_white[0] - on_white[1])
        assert difference.max() < 25
        assert difference.mean() < 1


def test_maps_keep_their_colours():
    values = np.ma.masked_where(np.eye(30, dtype=bool), np.random.default_rng(0).normal(size=(30, 30)))
    svg = drawn(lambda axes: axes.imshow(values, cmap="PuOr", interpolation="none"))
    for one, other in zip(pictures(svg), pictures(compact_svg(svg)), strict=True):
        assert (one == other).all()


def test_the_address_holds_the_file_and_ends_no_attribute(cloud):
    compact = compact_svg(cloud)
    address = data_url(compact)
    assert not set('"\n\t') & set(address)
    assert "<script" not in address
    begin, content = address.replace("&amp;", "&").split(",", 1)
    assert begin == "data:image/svg+xml;charset=utf-8"
    content = unquote(content)
    assert texts(content) == texts(compact)
    assert ElementTree.canonicalize(content) == ElementTree.canonicalize(compact)
