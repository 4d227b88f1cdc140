"""The examples in docstrings say what comes out."""

from __future__ import annotations

import doctest
import importlib
import re

import pytest

from audio_compositionality.metrics import list_metrics

from .test_architecture import OPTIONAL, ROOT, modules


@pytest.mark.parametrize("name", sorted(name for name in modules() if not name.endswith("__main__")))
def test_examples_are_right(name: str):
    try:
        module = importlib.import_module(name)
    except ModuleNotFoundError as error:
        if error.name in OPTIONAL:
            pytest.skip(f"{error.name} is not installed")
        raise
    # To look for examples where there are none takes longer than most examples.
    if ">>>" in modules()[name].read_text("utf-8"):
        flags = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
        assert doctest.testmod(module, optionflags=flags).failed == 0


def test_every_metric_has_a_contract():
    contracts = "".join(path.read_text("utf-8") for path in (ROOT / "tests" / "metrics").glob("test_*.py"))
    names = re.findall(r"\(MetricContract\):\n    name = \"(\w+)\"", contracts)
    assert set(list_metrics()) <= set(names)
