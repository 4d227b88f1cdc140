"""Questions on the command line: who answers them beside a model, and from data to a result."""

from __future__ import annotations

import json

import pytest

from audio_compositionality.cli.run import _names
from audio_compositionality.tasks.registry import load_task

OFFLINE = ["random", "first", "longest", "majority", "blind", "statistics", "present", "oracle", "cascade"]


def test_beside_questions_stand_models_that_answer_and_no_others():
    task = load_task("polybench")
    assert _names([], [task], [task]) == (OFFLINE, {})
    baselines, beside = _names(["oracle", "mine.py:Mine"], [task], [task])
    assert baselines == OFFLINE
    assert beside == {"mine.py:Mine": ["without-audio:mine.py:Mine"]}
    encoders, _ = _names([], None, [load_task("a_coat")])
    assert not set(encoders) & set(OFFLINE[1:])
    both, _ = _names([], [task, load_task("a_coat")], [task, load_task("a_coat")])
    assert {"downsample", "log-mel-statistics", *OFFLINE} <= set(both)


def test_models_say_what_they_give(run, capsys):
    assert run("models") == 0
    lines = capsys.readouterr().out.splitlines()
    assert any(line.split()[0] == "oracle" and "answers" in line for line in lines if line.split())
    assert any(line.split()[0] == "random" and "sound, text," in line for line in lines if line.split())


def test_an_encoder_cannot_answer(run, capsys, tmp_path):
    assert run("evaluate", "downsample", "--tasks", "polybench", "--out", tmp_path) == 2
    assert "it lacks answer" in capsys.readouterr().err


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
def test_answerers_that_need_no_training_on_sound_answer_the_preset(run, tmp_path, capsys):
    names = ["random", "first", "longest", "majority", "blind", "present", "oracle", "other-audio:first"]
    out = tmp_path / "results"
    assert run("evaluate", *names, "--tasks", "polybench", "--out", out, "--store", tmp_path / "store") == 0
    measures = {}
    for path in out.rglob("polybench.json"):
        result = json.loads(path.read_text())
        measures[result["model"]["id"]] = result["measures"]
    assert set(measures) == set(names)
    assert measures["oracle"]["accuracy"] == measures["oracle"]["groups_right"] == 1
    for name in ("first", "longest", "majority", "blind", "other-audio:first"):
        assert measures[name]["groups_right"] == 0
        assert measures[name]["accuracy"] <= measures[name]["without_listening"] + 0.1
    assert measures["present"]["counting"] == 1
    assert measures["present"]["classification"] < 0.6
    assert all(measures[name]["unparsed"] == 0 for name in names)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
def test_the_cascade_learns_from_the_scenes_and_hears_them(run, tmp_path):
    names = ["cascade", "noise-audio:cascade"]
    assert run("evaluate", *names, "--tasks", "polybench", "--out", tmp_path, "--store", tmp_path / "store") == 0
    heard, noise = (json.loads(next(tmp_path.glob(f"{n}/*/polybench.json")).read_text()) for n in ("cascade", "noise*"))
    for task in ("counting", "duration", "concurrency", "classification", "detection"):
        assert heard["measures"][task] >= 0.75, task
        chance, n = noise["measures"][f"chance_{task}"], 36
        assert noise["measures"][task] <= chance + 3 * (chance * (1 - chance) / n) ** 0.5, task
