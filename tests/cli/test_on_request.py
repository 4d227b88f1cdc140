"""Tasks on request are left out where neither tasks nor a benchmark are named."""

import argparse
from types import SimpleNamespace

import pytest

from audio_compositionality.cli import scoring
from audio_compositionality.encoders.base import ENCODER

LOG_MEL = "log-mel-statistics"


def typed(*words):
    """The data and the tasks of what is typed."""
    parser = argparse.ArgumentParser()
    scoring.add_scoring(parser)
    options = parser.parse_args(words)
    request = scoring.read_request(options)
    return request.tasks, *request.open_data(options)


@pytest.fixture
def evaluated(monkeypatch):
    """The recipes of the data and the tasks that a command hands to the evaluator, which does nothing."""
    calls = []

    def evaluate_models(models, data, tasks, options, *, on_result=None, leave_out=False):
        calls.append((data.recipes, None if tasks is None else [task.info.name for task in tasks]))
        return []

    monkeypatch.setattr("audio_compositionality.evaluator.run.evaluate.evaluate_models", evaluate_models)
    monkeypatch.setattr(
        "audio_compositionality.encoders.loading.registry.load_model",
        lambda name, *, device, options, seed: SimpleNamespace(name=name, abilities=ENCODER),
    )
    monkeypatch.setattr("audio_compositionality.cli.scoring.check_kinds", lambda *_: None)
    return calls


@pytest.mark.parametrize("words", [("--tasks", "toy_pairs"), ("--benchmark", "toy")])
def test_the_data_are_those_of_the_tasks_that_are_named(toy_on_request, words):
    named, data, tasks = typed(*words)
    assert named == tasks == [toy_on_request]
    assert data.recipes == ("toy_pairs",)


def test_by_default_neither_the_task_nor_its_data_are_taken(toy_on_request):
    named, data, tasks = typed()
    assert named is None
    assert {"a_coat", "a_tre"} <= set(data.recipes)
    assert "toy_pairs" not in data.recipes
    assert [task.info.name for task in tasks] == ["a_coat", "a_tre"]


@pytest.mark.slow
def test_run_and_evaluate_score_it_where_it_is_named(toy_on_request, evaluated, run, tmp_path):
    for command in (("run",), ("evaluate", LOG_MEL)):
        assert run(*command, "--out", tmp_path) == 0
        assert run(*command, "--benchmark", "toy", "--out", tmp_path) == 0
    assert [tasks for _, tasks in evaluated] == [["a_coat", "a_tre"], ["toy_pairs"]] * 2


def test_embed_embeds_its_clips_where_it_is_named(toy_on_request, run, tmp_path, capsys):
    assert run("embed", LOG_MEL, "--tasks", "toy_pairs", "--out", tmp_path) == 0
    (line,) = capsys.readouterr().out.splitlines()
    assert "toy_pairs" in line


def test_tasks_says_which_are_scored_by_default(toy_on_request, run, capsys):
    assert run("tasks") == 0
    printed = capsys.readouterr().out
    assert "Octave-Similarity" in printed
    assert "on request" in printed
    assert "by default" in printed


def test_the_card_of_results_says_that_it_is_on_request(toy_on_request):
    from audio_compositionality.push_scripts.spaces import results_card

    lines = [line for line in results_card("lab").splitlines() if line.startswith("- **")]
    assert lines[-1] == f"- **Octave-Similarity** (`toy_pairs`, on request): {toy_on_request.info.question}"
    assert not any("on request" in line for line in lines if "(`a_coat`" in line or "(`a_tre`" in line)


def test_the_board_begins_with_a_task_that_is_scored_by_default(toy_on_request):
    from audio_compositionality.leaderboard.components import task_choices
    from audio_compositionality.tasks.registry import list_tasks

    choices = task_choices([task.info for task in list_tasks()])
    assert choices[0][1] == "a_coat"
    assert choices[-1][1] == "toy_pairs"
