import sys
from types import SimpleNamespace

import pytest

from audio_compositionality.training.log import (
    EVALUATIONS,
    STEPS,
    RunLog,
    TrainingProgress,
    check_programs,
    log_rows,
)
from audio_compositionality.training.settings import TrainingError

from .small_training import small_settings


def row(step):
    names = ("loss", "learning_rate", "scale", "gradient_norm", "seconds")
    return {"step": step, "stage": "hard", "stage_step": step, **dict.fromkeys(names, 0.1 * step)}


def test_a_log_that_is_opened_again_loses_what_is_behind_the_state(tmp_path):
    log = RunLog(tmp_path, small_settings(), 0, {})
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
    again = RunLog(tmp_path, small_settings(), 2, state)
    again.close()
    assert {name: (tmp_path / name).read_bytes().decode() for name in state} == again.tables == state
    steps = log_rows(state[STEPS])
    assert [int(one["step"]) for one in steps] == [1, 2]
    assert float(steps[1]["loss"]) == 0.2
    assert [(one["name"], one["value"]) for one in log_rows(state[EVALUATIONS])] == [("a,b", "0.5")]


def test_a_program_that_is_not_installed_is_named_with_its_extra(monkeypatch):
    monkeypatch.setitem(sys.modules, "trackio", None)
    with pytest.raises(TrainingError, match=r"pip install 'audio-compositionality\[trackio\]'"):
        check_programs(["trackio"])
    check_programs([])


def test_trackio_is_told_every_step(monkeypatch, tmp_path):
    told = []
    fake = SimpleNamespace(
        init=lambda **options: told.append(options),
        log=lambda values, step: told.append((step, values)),
        finish=lambda: told.append("end"),
    )
    monkeypatch.setitem(sys.modules, "trackio", fake)
    out = tmp_path / "project" / "run"
    out.mkdir(parents=True)
    log = RunLog(out, small_settings(log_to="trackio"), 0, {})
    log.step(row(1))
    log.evaluation(1, "hard", {"score": 0.5})
    log.close()
    assert told[0] == {"project": "project", "name": "run", "resume": "allow"}
    assert told[1][1]["train/loss"] == 0.1
    assert told[2:] == [(1, {"validation/score": 0.5}), "end"]


def test_tensorboard_has_every_step(tmp_path):
    pytest.importorskip("tensorboard")
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    log = RunLog(tmp_path, small_settings(log_to="tensorboard"), 0, {})
    for step in (1, 2):
        log.step(row(step))
    log.close()
    events = EventAccumulator(str(tmp_path / "tensorboard"))
    events.Reload()
    assert [event.value for event in events.Scalars("train/loss")] == pytest.approx([0.1, 0.2])


def test_the_bar_has_the_steps_the_loss_and_the_score(capsys, monkeypatch):
    monkeypatch.setattr("audio_compositionality.support.progress.LINE_SECONDS", 0)
    progress = TrainingProgress(small_settings(stages="contrastive:20,hard:20").stages, 5, shown=True)
    progress.made("contrastive", [2.0] * 15)
    progress.evaluated(0.5)
    progress.made("hard", [2.0] * 20)
    progress.close()
    first, *_, last = capsys.readouterr().err.splitlines()
    assert "5/40" in first
    assert last.startswith("hard: 100%")
    assert "40/40" in last
    assert "loss 2.000, score 0.500" in last
    progress = TrainingProgress(small_settings(stages="hard:20").stages, 0, shown=False)
    progress.made("hard", [1.0])
    assert capsys.readouterr().err == ""
