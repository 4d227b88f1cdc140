"""The examples in docstrings say what comes out."""

from __future__ import annotations

import doctest
import importlib
import re

import pytest

from audio_compositionality.metrics import list_metrics

from .test_architecture import OPTIONAL, ROOT, modules

EXAMPLE = re.compile(r"^ *>>> ", re.M)


@pytest.mark.parametrize(
    "name", sorted(name for name, path in modules().items() if EXAMPLE.search(path.read_text("utf-8")))
)
def test_examples_are_right(name: str):
    try:
        module = importlib.import_module(name)
    except ModuleNotFoundError as error:
        if error.name in OPTIONAL:
            pytest.skip(f"{error.name} is not installed")
        raise
    tested = doctest.testmod(module, optionflags=doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE)
    assert tested.attempted
    assert tested.failed == 0


def test_every_metric_has_a_contract():
    contracts = "".join(path.read_text("utf-8") for path in (ROOT / "tests" / "metrics").glob("test_*.py"))
    names = re.findall(r"\(MetricContract\):\n    name = \"(\w+)\"", contracts)
    assert set(list_metrics()) <= set(names)
