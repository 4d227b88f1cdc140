import sys
from types import SimpleNamespace

import pytest
from accelerate.utils import LoggerType

from audio_compositionality.training import log as logs
from audio_compositionality.training.log import EVALUATIONS, STEPS, RunLog, check_trackers, log_rows
from audio_compositionality.training.settings import TrainingError


def row(step):
    names = ("loss", "learning_rate", "scale", "gradient_norm", "seconds")
    return {"step": step, "stage": "hard", "stage_step": step, **dict.fromkeys(names, 0.1 * step)}


def test_a_log_that_is_opened_again_loses_what_is_behind_the_state(tmp_path):
    log = RunLog(tmp_path, (), 0, {})
    for step in (1, 2):
        log.step(row(step))
    log.evaluation(2, "hard", {"a,b": 0.5})
    state = log.tables
    log.step(row(3))
    log.evaluation(3, "hard", {"a": 0.25})
    log.close()
    assert {name: (tmp_path / name).read_bytes().decode() for name in state} == log.tables != state
    # A line that a kill has torn.
    with (tmp_path / STEPS).open("a") as stream:
        stream.write("4,ha")
    again = RunLog(tmp_path, (), 2, state)
    again.close()
    assert {name: (tmp_path / name).read_bytes().decode() for name in state} == again.tables == state
    steps = log_rows(state[STEPS])
    assert [int(one["step"]) for one in steps] == [1, 2]
    assert float(steps[1]["loss"]) == 0.2
    assert [(one["name"], one["value"]) for one in log_rows(state[EVALUATIONS])] == [("a,b", "0.5")]


def test_a_tracker_that_is_not_installed_is_named(monkeypatch):
    monkeypatch.setattr(logs, "get_available_trackers", lambda: [LoggerType.TENSORBOARD])
    check_trackers(["tensorboard"])
    with pytest.raises(TrainingError, match="log_to=trackio needs the package of that name, which is not installed"):
        check_trackers(["tensorboard", "trackio"])


def test_the_trackers_of_accelerate_get_every_step(monkeypatch, tmp_path):
    told = []
    run = SimpleNamespace(
        log=lambda values, step: told.append((step, values)), finish=lambda: told.append("end"), config={}
    )
    fake = SimpleNamespace(init=lambda **options: (told.append(options), run)[1])
    monkeypatch.setitem(sys.modules, "trackio", fake)
    out = tmp_path / "project" / "run"
    out.mkdir(parents=True)
    log = RunLog(out, ["trackio"], 0, {})
    log.step(row(1))
    log.evaluation(1, "hard", {"score": 0.5})
    log.close()
    assert told[0] == {"project": "project", "name": "run", "resume": "allow"}
    assert told[1] == (1, {f"train/{name}": 0.1 for name in ("loss", "learning_rate", "scale", "gradient_norm")})
    assert told[2:] == [(1, {"validation/score": 0.5}), "end"]
