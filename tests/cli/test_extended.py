"""A benchmark of several kinds of model: each model is scored by what it can do, and told what it is left out of."""

from __future__ import annotations

import pytest

from audio_compositionality.evaluator.results.result import load_result

SMALL = [word for name in ("ladders=16", "items=16", "groups=5", "comparisons=3") for word in ("--set", name)]


def scored(out):
    return {(path.parents[1].name, path.stem): load_result(path)[0] for path in out.glob("*/*/*.json")}


@pytest.mark.slow
def test_each_model_is_scored_by_the_tasks_that_it_can_do(run, tmp_path, capsys, monkeypatch):
    monkeypatch.setenv("AUDIO_COMPOSITIONALITY_CACHE", str(tmp_path / "cache"))
    out = tmp_path / "results"
    models = ("compa-clap-tiny", "log-mel-statistics", "first", "usual-times")
    assert run("evaluate", *models, "--benchmark", "extended", *SMALL, "--out", out) == 0
    results = scored(out)
    assert {task for model, task in results if model == "log-mel-statistics"} == {"when_frames"}
    in_words = {"negation", "count_instances_text", "composed_retrieval"}
    assert {task for model, task in results if model == "compa-clap-tiny"} == in_words
    asked = {"negation_questions", "count_instances_questions", "two_clips"}
    assert {task for model, task in results if model == "first"} == asked
    assert {task for model, task in results if model == "usual-times"} == {"when"}
    # Habits alone are at chance, exactly.
    for task, chance in {"negation_questions": 1 / 2, "two_clips": 1 / 4}.items():
        assert results["first", task].measures["accuracy"] == pytest.approx(chance)
        assert results["first", task].measures["groups_right"] == 0
    told = capsys.readouterr().err
    assert "'first' is left out of" in told


def test_a_model_that_can_do_none_of_them_is_refused(refused, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    line = refused("evaluate", "log-mel-statistics", "--benchmark", "polybench")
    assert "'log-mel-statistics' can do none of them" in line
