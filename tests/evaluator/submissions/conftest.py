"""Submissions of a short encoder: of a task without a fit, and of one whose fit gives other numbers each time."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from submissions import ShortEncoder

from audio_compositionality.dataset_builder.build import build_dataset
from audio_compositionality.evaluator.run.evaluate import evaluate_models
from audio_compositionality.evaluator.run.options import RunOptions
from audio_compositionality.evaluator.submissions.making import make_submission
from audio_compositionality.tasks import registry

from .guess import Guess

TASKS = ("a_coat", "guess")


# Of a module, not of the session: the tests of other rooms are not to know the task.
@pytest.fixture(scope="module")
def guess() -> Iterator[Guess]:
    task = Guess()
    registry.register_task(task)
    yield task
    registry._TASKS._added.pop("guess", None)


@pytest.fixture(scope="module")
def evaluated(small_data, guess, tmp_path_factory) -> Path:
    """A folder with results of the short encoder, in ``results``, and what they were computed from, in ``store``."""
    folder = tmp_path_factory.mktemp("evaluated")
    options = RunOptions(out=folder / "results", store=folder / "store", device="cpu", progress=False)
    evaluate_models([ShortEncoder()], small_data, [registry.load_task(name) for name in TASKS], options)
    return folder


@pytest.fixture(scope="module")
def data(small_data, tmp_path_factory) -> Path:
    """The data as a built folder."""
    folder = tmp_path_factory.mktemp("data") / "small"
    build_dataset(small_data, folder, recipes=["a_coat"], workers=1, progress=False)
    return folder


@pytest.fixture(scope="module")
def make(evaluated, small_data):
    """`make(task, data=small, **changes)`: a submission of a local result."""

    def make(task="a_coat", data=small_data, **changes):
        options = {"store": evaluated / "store", "device": "cpu", "progress": False, **changes}
        return make_submission(evaluated / "results" / "org__short" / "1" / f"{task}.json", data, **options)

    return make


@pytest.fixture(scope="module")
def made(make):
    return {task: make(task) for task in TASKS}


@pytest.fixture
def files(made):
    return dict(made["a_coat"].files)
