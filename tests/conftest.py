"""What tests of several rooms share: no network, no cache of the user, one thread, small data, real weights, a seed."""

from __future__ import annotations

import gc
import os
import secrets
import shutil
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import replace
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

# Libraries read these when they are imported. No test writes to the user's cache. One thread each: the workers of
# pytest-xdist share the cores, and sums are of the same order everywhere.
os.environ["HF_HOME"] = tempfile.mkdtemp(prefix="hub-cache-")
for _variable in ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS", "NUMBA_NUM_THREADS"):
    os.environ[_variable] = "1"
os.environ["TOKENIZERS_PARALLELISM"] = "false"

# Imports and the syntax trees of all tests make millions of objects that stay: looking through them again and again for
# garbage takes a third of the time of collection.
gc.disable()

import hypothesis

from .checkpoints import checkpoints_folder, make_checkpoints

if TYPE_CHECKING:
    from audio_compositionality.dataset_builder.rendered import RenderedData
    from audio_compositionality.tasks.base import Task

# How long an example takes says something about the machine, not about the code.
hypothesis.settings.register_profile("house", deadline=None, print_blob=True)
hypothesis.settings.load_profile("house")

_SEED = "AUDIO_COMPOSITIONALITY_FUZZ_SEED"

_CHECKPOINTS = checkpoints_folder()
"""Looked up before a test moves the cache."""


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("fuzz")
    group.addoption("--fuzz-cases", type=int, default=300, metavar="N", help="cases of each fuzzing test (300)")
    group.addoption("--fuzz-seed", type=int, metavar="SEED", help="draw the cases of an earlier run again")


def pytest_configure(config: pytest.Config) -> None:
    # Workers of pytest-xdist are started with the environment of the process that chose the seed.
    seed = config.getoption("--fuzz-seed")
    if seed is not None or _SEED not in os.environ:
        os.environ[_SEED] = str(secrets.randbelow(2**32) if seed is None else seed)


def pytest_collection_finish() -> None:
    # What is there now stays until the end; only objects of tests are looked through from here on.
    gc.freeze()
    gc.enable()


def pytest_report_header() -> str:
    return f"fuzzing: draw the same cases again with --fuzz-seed {os.environ[_SEED]}"


def pytest_unconfigure() -> None:
    shutil.rmtree(os.environ["HF_HOME"], ignore_errors=True)


@pytest.fixture(scope="session")
def fuzz_cases(request: pytest.FixtureRequest) -> int:
    """How many cases a fuzzing test draws."""
    return int(request.config.getoption("--fuzz-cases"))


@pytest.fixture
def fuzz_rng(request: pytest.FixtureRequest) -> np.random.Generator:
    """Draws other numbers in each run, the same for one seed, whichever other tests run."""
    return np.random.default_rng([int(os.environ[_SEED]), *request.node.name.encode()])


@pytest.fixture(autouse=True)
def offline(monkeypatch: pytest.MonkeyPatch) -> None:
    """No test reaches for the Hub, nor waits for it."""
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)


@pytest.fixture(autouse=True)
def cache(monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """No test writes to the user's cache, nor finds there what another has written."""
    folder = tmp_path_factory.mktemp("cache")
    monkeypatch.setenv("AUDIO_COMPOSITIONALITY_CACHE", str(folder))
    return folder


@pytest.fixture
def without_torchcodec(monkeypatch: pytest.MonkeyPatch) -> None:
    """`datasets` cannot decode sound, as in an installation without the extra `audio`."""
    monkeypatch.setattr("datasets.config.TORCHCODEC_AVAILABLE", False)
    monkeypatch.setitem(sys.modules, "torchcodec", None)


@pytest.fixture(scope="session")
def one_thread() -> Iterator[None]:
    """torch computes in one thread, however many cores there are."""
    import torch

    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


@pytest.fixture(scope="session")
def few_steps() -> dict[str, Any]:
    """Settings of tasks (`RunOptions.settings`) for tests to which it does not matter how well a model is fitted."""
    return {"seeds": [0], "max_steps": 10}


@pytest.fixture(scope="session")
def small_data() -> RenderedData:
    """Three classes of each attribute: 27 tones, 81 sources, a few rows of both recipes of scenes."""
    from audio_compositionality.dataset_builder.rendered import RenderedData, rendered_preset
    from audio_compositionality.dataset_builder.sounds.tones import default_voices

    data = rendered_preset(
        "mini",
        recipes=["a_coat", "a_tre"],
        num_classes=3,
        voices=default_voices()[:3],
        quadruple_candidates=500,
        quadruples=12,
        scene_candidates=2_000,
        train_scenes=40,
        validation_scenes=8,
        test_scenes=8,
    )
    return RenderedData("small", data.settings)


@pytest.fixture(scope="session")
def tiny_data(small_data: RenderedData) -> RenderedData:
    """As few rows as a data set can have and still fill two row groups."""
    from audio_compositionality.dataset_builder.rendered import RenderedData

    quadruples, scenes = (small_data.settings[recipe] for recipe in ("a_coat", "a_tre"))
    few_scenes = {"train_scenes": 20, "validation_scenes": 2, "test_scenes": 2}
    return RenderedData("tiny", {"a_coat": quadruples.changed(quadruples=2), "a_tre": scenes.changed(**few_scenes)})


@pytest.fixture
def toy_on_request(monkeypatch: pytest.MonkeyPatch) -> Task:
    """The task of `tests/examples/toy_task`, known with its recipe for the time of a test, and only scored if named."""
    from audio_compositionality.dataset_builder import recipes
    from audio_compositionality.tasks import registry

    monkeypatch.syspath_prepend(Path(__file__).parent / "examples" / "toy_task")
    toy_task, toy_recipe = import_module("toy_task"), import_module("toy_recipe")
    task: Task = toy_task.ToyTask()
    task.info = replace(task.info, on_request=True)
    monkeypatch.setattr(registry._TASKS, "_added", {**registry._TASKS._added, task.info.name: task})
    monkeypatch.setattr(
        recipes._registry, "_added", {**recipes._registry._added, toy_recipe.RECIPE.name: toy_recipe.RECIPE}
    )
    return task


@pytest.fixture(scope="session")
def checkpoints() -> Path:
    """The folder with real pretrained weights, for tests marked ``weights``; they are made when they are not there."""
    return make_checkpoints(_CHECKPOINTS)


CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)


@pytest.fixture(scope="module")
def chromium() -> Iterator[Any]:
    if CHROMIUM is None:
        pytest.skip("there is no Chromium on the path (Debian: apt-get install chromium)")
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        # Containers leave Chromium no sandbox; the page is our own.
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield browser
        browser.close()
