"""The examples in docstrings say what comes out."""

from __future__ import annotations

import doctest
import importlib
import re

import pytest

from .test_house import OPTIONAL, ROOT, is_metric, modules

METRICS = {name: path for name, path in modules().items() if is_metric(path)}


@pytest.mark.parametrize("name", sorted(name for name in modules().keys() - METRICS if not name.endswith("__main__")))
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


def test_those_of_metrics_are_run_by_their_contract():
    contracts = "".join(path.read_text("utf-8") for path in (ROOT / "tests" / "metrics").glob("test_*.py"))
    names = re.findall(r"\(MetricContract\):\n    name = \"(\w+)\"", contracts)
    assert {path.stem for path in METRICS.values()} <= set(names)
