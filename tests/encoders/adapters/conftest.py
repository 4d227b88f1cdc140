"""Files of users, written for a test."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

import pytest

Write = Callable[..., str]


@pytest.fixture
def write(tmp_path: Path) -> Write:
    """Function of a file's text, of the name of its class and of the file: writes it, and returns the model's name."""

    def write(text: str, name: str = "Mine", file: str = "mine.py") -> str:
        (tmp_path / file).write_text(text)
        return f"{tmp_path / file}:{name}"

    return write


@pytest.fixture
def module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Write:
    """Function of a text and a name: writes a module that can be imported by it, and returns the name."""
    monkeypatch.syspath_prepend(str(tmp_path))

    def module(text: str, name: str) -> str:
        (tmp_path / f"{name}.py").write_text(text)
        monkeypatch.delitem(sys.modules, name, raising=False)
        return name

    return module
