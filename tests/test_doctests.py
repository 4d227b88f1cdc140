"""The examples in docstrings say what comes out."""

from __future__ import annotations

import doctest
import importlib

import pytest

from .test_house import OPTIONAL, modules


@pytest.mark.parametrize("name", sorted(name for name in modules() if not name.endswith("__main__")))
def test_examples_are_right(name: str):
    try:
        module = importlib.import_module(name)
    except ModuleNotFoundError as error:
        if error.name in OPTIONAL:
            pytest.skip(f"{error.name} is not installed")
        raise
    flags = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
    assert doctest.testmod(module, optionflags=flags).failed == 0
