"""A loopback Hub for a test, the real clients pointed at it, and the proof that nothing leaves this machine."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from .clients import connect, forget, process_environment
from .guard import sitecustomize as guard
from .server import LoopbackHub

if TYPE_CHECKING:
    from audio_compositionality.dataset_builder.rendered import RenderedData

RunClient = Callable[..., str]
ActAs = Callable[[str], None]
StartClient = Callable[..., "subprocess.Popen[str]"]


@pytest.fixture
def hub(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[LoopbackHub]:
    """A Hub with the user `ada`, a member of the organisation `lab`, as whom the clients of this process act.

    A test fails after its end when something tried to reach another machine, when a client asked for an endpoint that
    this Hub lacks, when the Hub made a mistake, and when a fault that was ordered never came to pass.
    """
    hub = LoopbackHub(tmp_path / "hub")
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


@pytest.fixture
def run_client(start_client: StartClient) -> RunClient:
    """`run_client(code, *arguments, token=None)` -> what it printed; see `start_client`. It must end well."""

    def run(code: str, *arguments: str, token: str | None = None) -> str:
        process = start_client(code, *arguments, token=token)
        output, errors = process.communicate(timeout=300)
        assert process.returncode == 0, output + errors
        return output

    return run


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
