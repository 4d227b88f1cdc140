"""A figure as an address in a page."""

from __future__ import annotations

from urllib.parse import unquote
from xml.etree import ElementTree

import numpy as np
from matplotlib.figure import Figure

from audio_compositionality.evaluator.figures.style import data_url, figure_style, figure_svg

HOSTILE = """<script>alert("1")</script> & 'one' "two"  # 50 % \N{MINUS SIGN}1 é --> ]]> {a|b}"""


def test_the_address_holds_the_file_and_ends_no_attribute():
    with figure_style():
        figure = Figure(figsize=(3, 2))
        axes = figure.add_subplot()
        axes.plot(*np.random.default_rng(0).normal(size=(2, 40)), ".", alpha=0.3, rasterized=True)
        axes.set_title(HOSTILE)
        svg = figure_svg(figure)
    address = data_url(svg)
    assert not set('"\t') & set(address)
    assert "<script" not in address
    begin, content = address.replace("&amp;", "&").split(",", 1)
    assert begin == "data:image/svg+xml;charset=utf-8"
    assert HOSTILE in "".join(ElementTree.fromstring(unquote(content).encode()).itertext())
    assert ElementTree.canonicalize(unquote(content)) == ElementTree.canonicalize(svg)
