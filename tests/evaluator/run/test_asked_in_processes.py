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
SCORINGS = ("letters", "generate")


@pytest.fixture(scope="module")
def model(tmp_path_factory) -> str:
    folder = tmp_path_factory.mktemp("models") / "qwen2-audio"
    SAVERS["qwen2-audio"](folder)
    return str(folder)


@pytest.fixture(scope="module")
def start(model):
    """Function of the folder in which a process asks, and its arguments: the process."""

    def started(folder: Path, scorings: str, *arguments: str, launcher: list[str] | None = None):
        command = [*(launcher or [sys.executable]), str(SCRIPT), model, str(folder), scorings, *arguments]
        environment = {**os.environ, "OMP_NUM_THREADS": "1", "HF_HUB_OFFLINE": "1"}
        environment["AUDIO_COMPOSITIONALITY_CACHE"] = str(folder / "cache")
        return subprocess.Popen(command, env=environment, stderr=subprocess.PIPE, text=True, start_new_session=True)

    return started


@pytest.fixture(scope="module")
def alone(start, tmp_path_factory) -> Path:
    """Folder of what one process writes that is left alone, scored both ways."""
    folder = tmp_path_factory.mktemp("alone")
    finish(start(folder, ",".join(SCORINGS)))
    return folder


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
def test_two_processes_write_the_answers_and_the_result_of_one(start, alone, tmp_path):
    finish(start(tmp_path, ",".join(SCORINGS), launcher=TORCHRUN))
    for scoring in SCORINGS:
        one, both = alone / scoring, tmp_path / scoring
        assert asked(one) == asked(both) == QUESTIONS
        stored = answers(both)
        assert len(stored) == 7
        assert stored == answers(one)
        (single, beside), (shared, as_well) = result(one), result(both)
        assert beside == as_well
        changing = {"date", "seconds", "device"}
        assert shared.model_dump(exclude=changing) == single.model_dump(exclude=changing)
        assert (shared.device, single.device) == ("cpu and 1 more", "cpu")


@pytest.mark.slow
def test_a_process_that_is_killed_goes_on_behind_its_last_batch(start, alone, tmp_path):
    """Killed (SIGKILL) twice while it asks; in the end all is as if it had been left alone, and one batch at a time at
    most was asked for again."""
    killed, before = tmp_path / "generate", 0
    for _ in range(2):
        process = start(tmp_path, "generate", "0.3")
        until = time.monotonic() + 120
        while asked(killed) < before + 5 * BATCH:
            assert process.poll() is None, process.communicate()
            assert time.monotonic() < until
            time.sleep(0.01)
        os.killpg(process.pid, signal.SIGKILL)
        process.communicate()
        before = asked(killed)
        kept = answers(killed)
        assert any(name.endswith(".begun") for name in kept)
    assert before < QUESTIONS
    finish(start(tmp_path, "generate"))
    assert QUESTIONS <= asked(killed) <= QUESTIONS + 2 * BATCH
    assert answers(killed) == answers(alone / "generate")
    (single, beside), (resumed, as_well) = result(alone / "generate"), result(killed)
    assert (beside, single.measures) == (as_well, resumed.measures)
    facts = [json.loads(content)["facts"] for name, content in kept.items() if name.endswith(".json") and "of" in name]
    assert all({"finish_reason", "tokens"} == one.keys() for some in facts for one in some)
