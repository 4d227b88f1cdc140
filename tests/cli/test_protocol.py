"""The protocol of the paper: which settings it becomes."""

from dataclasses import replace
from types import SimpleNamespace

import pytest

from audio_compositionality.dataset_builder import build, rendered
from audio_compositionality.encoders.base import ENCODER
from audio_compositionality.tasks.registry import load_task, scored_recipes

LOG_MEL = "log-mel-statistics"
POST_NORM = {"block": "post-norm"}


@pytest.fixture
def evaluated(monkeypatch):
    """What a command hands to the evaluator, which does nothing."""
    calls = []

    def evaluate_models(models, data, tasks, options, *, on_result=None, leave_out=False):
        calls.append((data.source, options.settings))
        return []

    monkeypatch.setattr("audio_compositionality.evaluator.run.evaluate.evaluate_models", evaluate_models)
    monkeypatch.setattr(
        "audio_compositionality.encoders.loading.registry.load_model",
        lambda name, *, device, options, seed: SimpleNamespace(name=name, abilities=ENCODER),
    )
    monkeypatch.setattr("audio_compositionality.cli.scoring.check_kinds", lambda *_: None)
    return calls


@pytest.mark.slow
def test_run_takes_the_preset_and_the_settings_of_the_protocol(evaluated, run, tmp_path, capsys):
    assert run("run", "--data", "paper-mini", "--out", tmp_path) == 0
    assert "on the preset paper-mini" in capsys.readouterr().out
    assert run("run", "--data", "paper-mini", "--tasks", "a_coat", "--out", tmp_path) == 0
    assert evaluated == [("paper-mini", {"seeds": [0], **POST_NORM}), ("paper-mini", {})]


@pytest.mark.parametrize("option", ["--data", "--preset"])
def test_a_preset_of_the_paper_has_the_settings_of_the_paper(evaluated, run, tmp_path, option):
    arguments = ("evaluate", LOG_MEL, option, "paper-mini", "--out", tmp_path)
    assert run(*arguments) == 0
    assert run(*arguments, "--seeds", 2) == 0
    assert run(*arguments, "--set", "block=pre-norm") == 0
    assert evaluated == [
        ("paper-mini", POST_NORM),
        ("paper-mini", {"seeds": "2", **POST_NORM}),
        ("paper-mini", {"block": "pre-norm"}),
    ]


def test_other_presets_have_them_where_they_are_asked_for(evaluated, run, tmp_path):
    arguments = ("evaluate", LOG_MEL, "--data", "mini", "--out", tmp_path)
    assert run(*arguments, "--set", "protocol=paper") == 0
    assert run(*arguments) == 0
    assert evaluated == [("mini", POST_NORM), ("mini", {})]


def test_evaluate_takes_the_settings_for_data_of_ones_own(evaluated, run, tmp_path, folder):
    assert run("evaluate", LOG_MEL, "--data", folder, "--set", "protocol=paper", "--out", tmp_path) == 0
    assert evaluated == [(str(folder), POST_NORM)]


def test_a_protocol_that_no_task_has_is_refused_by_name(evaluated, run, folder, tmp_path, capsys):
    for arguments in (["--data", folder], []):
        assert run("evaluate", LOG_MEL, *arguments, "--set", "protocol=papr", "--out", tmp_path) == 2
        assert "paper" in capsys.readouterr().err
    assert evaluated == []


def test_tasks_without_any_protocol_are_said_to_have_none(evaluated, run, tmp_path, capsys, monkeypatch):
    task = load_task("a_coat")
    bare = SimpleNamespace(info=replace(task.info, protocols={}))
    monkeypatch.setattr("audio_compositionality.tasks.registry.load_tasks", lambda names: [bare])
    assert run("evaluate", LOG_MEL, "--tasks", "a_coat", "--set", "protocol=paper", "--out", tmp_path) == 2
    assert capsys.readouterr().err.strip().endswith("none of the tasks has a protocol")


def test_build_writes_the_preset_of_the_protocol(run, tmp_path, monkeypatch):
    built = []
    monkeypatch.setattr(build, "build_dataset", lambda data, out, **_: built.append(data) or out)
    assert run("build", "--data", "paper-mini", "--out", tmp_path / "x") == 0
    (data,) = built
    preset = rendered.rendered_preset("paper-mini").settings
    assert data.settings == {recipe: preset[recipe] for recipe in preset if recipe in scored_recipes()}
    assert {data.settings[recipe].onset for recipe in ("a_coat", "a_tre")} == {"locked"}


def test_its_settings_are_not_those_of_a_submission(small_data):
    """The board has the project's own settings alone."""
    task = load_task("a_tre")
    rows = small_data.configuration("a_tre").rows
    assert task.settings(rows, task.info.protocols["paper"]) != task.settings(rows, {})
