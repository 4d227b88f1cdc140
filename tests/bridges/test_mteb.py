"""What of the bridge to mteb runs without it; `tests/references/mteb_suite.py` runs the real package."""

from __future__ import annotations

import json
import sys
from types import SimpleNamespace

import pytest

from audio_compositionality.bridges.mteb import KEPT, _scores, descriptive_statistics, from_mteb, model, task, tasks
from audio_compositionality.dataset_builder.rendered import rendered_preset
from audio_compositionality.encoders.loading.registry import load_model
from audio_compositionality.evaluator.compare.compared import compare
from audio_compositionality.evaluator.results.result import ResultError
from audio_compositionality.evaluator.run.evaluate import evaluate_models
from audio_compositionality.evaluator.run.opened import open_task
from audio_compositionality.evaluator.run.options import RunOptions
from audio_compositionality.tasks.registry import load_task


@pytest.fixture(scope="module")
def data():
    return rendered_preset("mini", recipes=["a_coat"], quadruples=8, quadruple_candidates=500)


@pytest.fixture(scope="module")
def results(data):
    models = [load_model(name) for name in ("downsample", "log-mel-statistics")]
    return evaluate_models(models, data, [load_task("a_coat")], RunOptions(device="cpu", progress=False))


def scores_of(results):
    kept = [{"result": one.dumps(), "samples": one.samples.dumps()} for one in results]
    return {"scores": {"test": [{"main_score": 0.5, KEPT: json.dumps(kept)}]}}


@pytest.mark.slow
def test_results_of_mteb_come_back_as_ours(results, tmp_path):
    content = json.loads(json.dumps(scores_of(results)))
    read = from_mteb(content, tmp_path)
    assert read == results
    assert compare(read).verdicts.text == compare(results).verdicts.text
    assert from_mteb(json.loads(json.dumps(content))) == read
    assert len(list(tmp_path.rglob("a_coat.json"))) == 2
    # What evaluate returns holds task results; a control of two of them comes once.
    twice = SimpleNamespace(task_results=[SimpleNamespace(**content), SimpleNamespace(**content)])
    assert from_mteb(twice) == results


def test_results_that_are_not_ours_are_refused(results):
    with pytest.raises(ValueError, match="the scores of mteb lack 'audio_compositionality'"):
        from_mteb({"scores": {"test": [{"main_score": 0.5}]}})
    changed = scores_of(results)
    (scores,) = changed["scores"]["test"]
    scores[KEPT] = scores[KEPT].replace('\\"n\\": 8', '\\"n\\": 9')
    with pytest.raises(ResultError, match="its digest does not match its content"):
        from_mteb(changed)
    other = scores_of(results)
    other["scores"]["test"][0][KEPT] = json.dumps([
        {"result": results[0].dumps(), "samples": results[1].samples.dumps()}
    ])  # fmt: skip
    with pytest.raises(ResultError, match="its samples changed after it was written"):
        from_mteb(other)
    for no_results in (5, None, {"scores": 1}, {"scores": {"test": [{KEPT: "[" * 100_000}]}},
                       {"scores": {"test": [{KEPT: '[{"result": 1, "samples": []}]'}]}}):  # fmt: skip
        with pytest.raises(ResultError, match="these are no results of mteb, or damaged"):
            from_mteb(no_results)


def test_descriptive_statistics_count_clips(data):
    opened = open_task(load_task("a_coat"), data)
    statistics = descriptive_statistics(opened)
    audio = statistics["audio_statistics"]
    clips = list(opened.configuration.clips())
    assert statistics["num_samples"] == 8
    assert audio["sampling_rates"] == {clips[0].sample_rate: len(clips)}
    assert audio["total_duration_seconds"] == pytest.approx(sum(len(one.waveform) / one.sample_rate for one in clips))
    assert audio["unique_audios"] == len({one.waveform.tobytes() for one in clips})
    assert "text_statistics" not in statistics


@pytest.mark.slow
def test_a_model_of_a_file_has_its_twin_beside_it_and_an_object_has_none(data, tmp_path):
    (tmp_path / "mine.py").write_text(
        "import torch\n"
        "import audio_compositionality as ac\n\n"
        "def make():\n"
        "    torch.manual_seed(1)\n"
        "    return ac.wrap(torch.nn.Sequential(torch.nn.Unflatten(1, (-1, 100)), torch.nn.Linear(100, 4)), "
        "sample_rate=8_000, pooling='mean')\n"
    )
    name, opened = f"{tmp_path}/mine.py:make", open_task(load_task("a_coat"), data)
    by_name, as_object = (_scores(model(one), opened, data, 8) for one in (name, load_model(name).made))
    assert by_name["controls"].keys() - as_object["controls"].keys() == {"untrained:Sequential"}
    assert by_name["a_coat"] == as_object["a_coat"]


def test_tasks_that_ask_questions_are_refused():
    with pytest.raises(ValueError, match="'polybench' asks a language model, which mteb does not"):
        task("polybench")
    with pytest.raises(ValueError, match="all tasks of 'polybench' ask a language model"):
        tasks("polybench")


def test_without_mteb_the_message_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "mteb", None)
    with pytest.raises(ValueError, match="models of mteb need the package mteb: pip install"):
        task("a_coat")
