"""A loopback Hub for a test, the real clients pointed at it, and the proof that nothing leaves this machine."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from board_entries import SECRET
from submissions import ShortEncoder

from audio_compositionality.dataset_builder.open_data import open_data
from audio_compositionality.evaluator.run.evaluate import evaluate_models
from audio_compositionality.evaluator.run.options import RunOptions
from audio_compositionality.evaluator.submissions.making import make_submission
from audio_compositionality.hub.client import Hub
from audio_compositionality.hub.names import results_of
from audio_compositionality.leaderboard.board import Board
from audio_compositionality.leaderboard.pull_requests import CheckOutcome, Checks
from audio_compositionality.leaderboard.reading import BoardReader
from audio_compositionality.push_scripts.dataset import push_dataset
from audio_compositionality.push_scripts.submit import Submitted, submit_results
from audio_compositionality.tasks.registry import load_tasks

from .clients import connect, forget, process_environment
from .guard import sitecustomize as guard
from .server import LoopbackHub

if TYPE_CHECKING:
    from audio_compositionality.dataset_builder.data import Data
    from audio_compositionality.dataset_builder.rendered import RenderedData

    from .storage import Repository

DATASET = "lab/audio-compositionality"
RESULTS = "lab/audio-compositionality-results"
MODEL = "org/short"
TASKS = ("a_coat", "a_tre")

Files = Mapping[str, bytes]
ActAs = Callable[[str], None]
StartClient = Callable[..., "subprocess.Popen[str]"]
Submit = Callable[..., "Submitted"]


@pytest.fixture
def hub(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[LoopbackHub]:
    """A Hub with the user `ada`, a member of the organisation `lab`, as whom the clients of this process act.

    A test fails after its end when something tried to reach another machine, when a client asked for an endpoint that
    this Hub lacks, when the Hub made a mistake, and when a fault that was ordered never came to pass.
    """
    hub = LoopbackHub()
    hub.accounts.join("ada", "lab")
    connect(monkeypatch, hub.url, tmp_path / "home", hub.token("ada"))
    guard.arm()
    try:
        yield hub
        attempts = list(guard.attempts)
    finally:
        guard.disarm()
        forget()
        hub.close()
    assert not attempts
    assert not hub.unknown
    assert not hub.errors, hub.errors[0]
    assert not hub.faults.idle()


@pytest.fixture
def act_as(hub: LoopbackHub, monkeypatch: pytest.MonkeyPatch) -> ActAs:
    """`act_as(user)`: from here on the clients of this process have a token of another user."""
    return lambda user: monkeypatch.setenv("HF_TOKEN", hub.token(user))


RIGHTS = {
    "none": "no token is set; make one at",
    "wrong": "does not accept the token",
    "read": "the token of ada may only read.*role write",
    "fine-grained": "lacks the permission repo.write for lab",
    "stranger": "eve is not a member of lab: ask to become one, or give --org one of eve, club$",
    "guest": "guest is read in lab and needs the role write",
}
"""Kinds of tokens that do not suffice to push to `lab`, and what the error says of each."""


def use_rights(hub: LoopbackHub, kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """From here on the clients of this process have a token of a kind of `RIGHTS`."""
    hub.accounts.join("guest", "lab", "read")
    hub.accounts.join("eve", "club")
    hub.accounts.join("eve", "audience", "read")
    tokens = {
        "wrong": "hf_wrong",
        "read": hub.token("ada", "read"),
        "fine-grained": hub.token("ada", "fineGrained", ("repo.content.read",)),
        "stranger": hub.token("eve"),
        "guest": hub.token("guest"),
    }
    monkeypatch.delenv("HF_TOKEN")
    if kind in tokens:
        monkeypatch.setenv("HF_TOKEN", tokens[kind])


@pytest.fixture
def two_metrics(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two of the metrics: the others take the same way."""
    for module in ("spaces", "rehearsal"):
        monkeypatch.setattr(f"audio_compositionality.push_scripts.{module}.list_metrics", lambda: ["a_coat", "a_tre"])


@pytest.fixture
def waits(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The seconds that anything in this process has asked `time.sleep` for; it does not sleep."""
    asked: list[float] = []
    monkeypatch.setattr("time.sleep", asked.append)
    return asked


@pytest.fixture
def start_client(hub: LoopbackHub, tmp_path: Path) -> Iterator[StartClient]:
    """`start_client(code, *arguments, token=None)` -> a fresh Python that knows the Hub from its environment alone.

    A `subprocess.Popen` with pipes, to be waited for or killed. Caches and working directory are kept from call to
    call. Without a token it acts as `ada`.
    """
    (tmp_path / "work").mkdir()
    log = tmp_path / "attempts.txt"
    started: list[subprocess.Popen[str]] = []

    def start(code: str, *arguments: str, token: str | None = None) -> subprocess.Popen[str]:
        token = token or next(iter(hub.accounts.tokens))
        process = subprocess.Popen(
            [sys.executable, "-c", code, *arguments],
            cwd=tmp_path / "work",
            env=process_environment(hub.url, tmp_path / "process_home", log, token),
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        started.append(process)
        return process

    yield start
    for process in started:
        process.kill()
        process.communicate()
    assert not log.exists(), log.read_text()


@pytest.fixture(scope="session")
def built(tmp_path_factory: pytest.TempPathFactory, tiny_data: RenderedData) -> Path:
    """A data set as `audio-compositionality build` writes it. Not to be changed."""
    from audio_compositionality.dataset_builder.build import build_dataset

    return build_dataset(tiny_data, tmp_path_factory.mktemp("built") / "scenes", workers=1, progress=False)


@pytest.fixture
def wheel(monkeypatch: pytest.MonkeyPatch) -> bytes:
    """The content of the package's wheel, which is not built: that takes seconds."""
    content = b"a wheel"
    built = ("audio_compositionality-1.0-py3-none-any.whl", content)
    monkeypatch.setattr("audio_compositionality.push_scripts.spaces.build_wheel", lambda root: built)
    return content


@pytest.fixture(scope="session")
def built_data(built: Path) -> Data:
    """The built data, opened once: that takes a third of a second."""
    return open_data(built)


@pytest.fixture
def short_fits(monkeypatch: pytest.MonkeyPatch) -> None:
    """How well a model is fitted matters elsewhere; a submission has the default settings."""
    shorten(monkeypatch)


def shorten(patch: pytest.MonkeyPatch) -> None:
    """One fit of a few steps."""
    patch.setattr("audio_compositionality.tasks.shapes.fits.FEW_STEPS", 5)
    patch.setattr("audio_compositionality.tasks.shapes.fits.SEEDS", 1)


@pytest.fixture(scope="session")
def evaluated(built_data: Data, one_thread: None, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with `results` of both tasks on the built data, and their `store`. Not to be changed."""
    root = tmp_path_factory.mktemp("evaluated")
    options = RunOptions(out=root / "results", cache=root / "store", device="cpu", progress=False)
    with pytest.MonkeyPatch.context() as patch:
        shorten(patch)
        evaluate_models([ShortEncoder()], built_data, load_tasks(TASKS), options)
    return root


@pytest.fixture(scope="session")
def submitted(evaluated: Path, built_data: Data) -> dict[str, Files]:
    """By task the files of a good submission, as `submit` makes it."""
    place = evaluated / "results" / "org__short" / "1"
    how: dict[str, Any] = {"cache": evaluated / "store", "device": "cpu", "progress": False}
    with pytest.MonkeyPatch.context() as patch:
        shorten(patch)
        return {task: make_submission(place / f"{task}.json", built_data, **how).files for task in TASKS}


@pytest.fixture
def results(hub: LoopbackHub) -> Repository:
    """The repository of the results of a leaderboard."""
    return hub.repositories.create("dataset", RESULTS)


@pytest.fixture
def submit(evaluated: Path, built_data: Data, short_fits: None, monkeypatch: pytest.MonkeyPatch) -> Submit:
    """`submit(*tasks, **options)`: submits the results of tasks, or of all."""
    monkeypatch.setattr("audio_compositionality.push_scripts.submit.data_with", lambda *_: built_data)
    place, store = evaluated / "results", evaluated / "store"

    def submit(*tasks: str, **options: Any) -> Submitted:
        paths = [place / "org__short" / "1" / f"{task}.json" for task in tasks]
        how: dict[str, Any] = {"cache": store, "device": "cpu", "progress": False}
        return submit_results(paths or [place], "lab", **{**how, **options})

    return submit


def rounds(checks: Checks) -> list[CheckOutcome]:
    """What the last of the rounds finds that follow each other at once, as the Space makes them."""
    outcomes = checks.check_pull_requests()
    while checks.goes_on:
        outcomes = checks.check_pull_requests(again=False)
    return outcomes


def board() -> Board:
    """What a leaderboard shows that was just started."""
    return BoardReader(Hub(), results_of("lab"), SECRET)()


@pytest.fixture
def model(hub: LoopbackHub, built: Path) -> Repository:
    """The model's repository beside the data set, so that its page can show results on it."""
    push_dataset(built, "lab")
    return hub.repositories.create("model", MODEL)
