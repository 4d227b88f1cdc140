"""What the tests of commands share: the command line as a function, and a folder with a data set."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from audio_compositionality.cli.main import main

if TYPE_CHECKING:
    from audio_compositionality.dataset_builder.rendered import RenderedData

Run = Callable[..., int]


@pytest.fixture(autouse=True)
def _quick(one_thread: None) -> None:
    """Fits of a few samples are slower in several threads."""


@pytest.fixture
def run() -> Run:
    """The command line in this process: returns the exit status."""
    return lambda *arguments: main([str(argument) for argument in arguments])


@pytest.fixture(scope="module")
def folder(tiny_data: RenderedData, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A built data set of a few rows."""
    from audio_compositionality.dataset_builder.build import build_dataset

    return build_dataset(tiny_data, tmp_path_factory.mktemp("cli") / "data", progress=False)
