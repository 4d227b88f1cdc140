"""Answers by processes that share the questions, and by one that is killed: as those of one that is left alone."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from audio_compositionality.evaluator.results.result import Result, load_result

from ...encoders.language_models.tiny import SAVERS

SCRIPT = Path(__file__).parent / "asked.py"
TORCHRUN = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc_per_node", "2"]
QUESTIONS, BATCH = 83, 4


@pytest.fixture(scope="module")
def model(tmp_path_factory) -> str:
    folder = tmp_path_factory.mktemp("models") / "qwen2-audio"
    SAVERS["qwen2-audio"](folder)
    return str(folder)


@pytest.fixture
def start(cache, model, tmp_path):
    """Function of the folder in which a process asks, and its arguments: the process."""

    def started(name: str, scoring: str, *arguments: str, launcher: list[str] | None = None) -> subprocess.Popen[str]:
        (tmp_path / name).mkdir(exist_ok=True)
        command = [*(launcher or [sys.executable]), str(SCRIPT), model, str(tmp_path / name), scoring, *arguments]
        environment = {**os.environ, "OMP_NUM_THREADS": "1", "HF_HUB_OFFLINE": "1"}
        return subprocess.Popen(command, env=environment, stderr=subprocess.PIPE, text=True, start_new_session=True)

    return started


def finish(process: subprocess.Popen[str]) -> None:
    _, errors = process.communicate(timeout=240)
    assert process.returncode == 0, errors


def asked(folder: Path) -> int:
    log = folder / "log"
    return sum(map(int, log.read_text().split())) if log.exists() else 0


def answers(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in sorted((folder / "store").rglob("*")) if path.is_file()}


def result(folder: Path) -> tuple[Result, dict[str, bytes]]:
    (path,) = (folder / "out").rglob("polybench.json")
    return load_result(path)[0], {one.name: one.read_bytes() for one in path.parent.iterdir() if one != path}


@pytest.mark.slow
@pytest.mark.parametrize("scoring", ["letters", "generate"])
def test_two_processes_write_the_answers_and_the_result_of_one(start, tmp_path, scoring):
    finish(start("alone", scoring))
    finish(start("together", scoring, launcher=TORCHRUN))
    assert asked(tmp_path / "alone") == asked(tmp_path / "together") == QUESTIONS
    stored = answers(tmp_path / "together")
    assert len(stored) == 7
    assert stored == answers(tmp_path / "alone")
    (alone, beside), (together, as_well) = result(tmp_path / "alone"), result(tmp_path / "together")
    assert beside == as_well
    changing = {"date", "seconds", "device"}
    assert together.model_dump(exclude=changing) == alone.model_dump(exclude=changing)
    assert (together.device, alone.device) == ("cpu and 1 more", "cpu")


@pytest.mark.slow
def test_a_process_that_is_killed_goes_on_behind_its_last_batch(start, tmp_path):
    """Killed (SIGKILL) twice while it asks; in the end all is as if it had been left alone, and one batch at a time at
    most was asked for again."""
    finish(start("alone", "generate"))
    before = 0
    for _ in range(2):
        process = start("killed", "generate", "0.3")
        until = time.monotonic() + 120
        while asked(tmp_path / "killed") < before + 5 * BATCH:
            assert process.poll() is None, process.communicate()
            assert time.monotonic() < until
            time.sleep(0.01)
        os.killpg(process.pid, signal.SIGKILL)
        process.communicate()
        before = asked(tmp_path / "killed")
        kept = answers(tmp_path / "killed")
        assert any(name.endswith(".begun") for name in kept)
    assert before < QUESTIONS
    finish(start("killed", "generate"))
    assert QUESTIONS <= asked(tmp_path / "killed") <= QUESTIONS + 2 * BATCH
    assert answers(tmp_path / "killed") == answers(tmp_path / "alone")
    (alone, beside), (killed, as_well) = result(tmp_path / "alone"), result(tmp_path / "killed")
    assert (beside, alone.measures) == (as_well, killed.measures)
    facts = [json.loads(content)["facts"] for name, content in kept.items() if name.endswith(".json") and "of" in name]
    assert all({"finish_reason", "tokens"} == one.keys() for some in facts for one in some)
