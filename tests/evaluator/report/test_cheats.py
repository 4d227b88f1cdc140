"""No sentence of the report praises a score that its control explains: models that learnt nothing go the whole way."""

from __future__ import annotations

import re

import numpy as np
import pytest

from audio_compositionality.dataset_builder.rendered import RenderedData, rendered_preset
from audio_compositionality.encoders.loading.registry import load_model
from audio_compositionality.evaluator.compare.comparison import compare_results
from audio_compositionality.evaluator.compare.conclusions import model_verdicts
from audio_compositionality.evaluator.compare.verdicts import VerdictAnswer
from audio_compositionality.evaluator.report.page import write_report
from audio_compositionality.evaluator.run.evaluate import evaluate_models
from audio_compositionality.evaluator.run.options import RunOptions
from audio_compositionality.tasks.registry import load_task

from .cheats import Heard, RandomNetwork, Told, loudness, parts

PRAISE = re.compile(r"above all|is higher than|scores higher|the highest|is ahead|\bbest\b|\bbetter\b")
"""Words that the first screen may use of a model only where it is above all that needs no learning."""


@pytest.fixture(scope="module")
def data():
    changes = {"duration": 2.0, "rate_range": (1.0, 3.0), "quadruple_candidates": 4_000, "scene_candidates": 2_000}
    sizes = {"quadruples": 48, "train_scenes": 80, "validation_scenes": 10, "test_scenes": 40}
    made = rendered_preset("mini", recipes=["a_coat", "a_tre"], **changes, **sizes)
    return RenderedData("made-up", made.settings)


@pytest.fixture(scope="module")
def results(data, tmp_path_factory, one_thread):
    """A folder with the results of models that learnt nothing, of a twin and a description of the sound."""
    models = [
        RandomNetwork("fresh", 0),
        RandomNetwork("untrained:fresh", 1, "untrained"),
        Told("counts", data, lambda sources: np.eye(10, dtype=np.float32)[len(sources)]),
        Heard("loudness", loudness),
        Heard("constant", lambda _: [1.0] * 8),
        load_model("log-mel-statistics"),
    ]
    out = tmp_path_factory.mktemp("cheats")
    evaluate_models(models, data, None, RunOptions(out=out, settings={"seeds": [0], "max_steps": 20}, progress=False))
    return out


@pytest.fixture(scope="module")
def judged(results, data):
    return {model.label: model for model in model_verdicts(compare_results([results], data=data))}


def test_only_models_are_judged(judged):
    assert set(judged) == {"fresh", "counts", "loudness", "constant"}


@pytest.mark.parametrize("name", ["fresh", "counts", "loudness", "constant"])
def test_none_is_evidence(judged, name):
    model = judged[name]
    assert not model.is_evidence
    assert model.conclusion.startswith(("No evidence of learning in these scores", "Not shown to have learnt anything"))
    assert not PRAISE.search(model.conclusion)


def test_fresh_weights_are_not_above_fresh_weights(judged):
    """Though the network is above the log-mel statistics in A-COAT, and above energy."""
    assert judged["fresh"].questions["twin"] is not VerdictAnswer.YES
    coat, _ = judged["fresh"].tasks
    assert coat.verdict.questions[1].answer is VerdictAnswer.YES
    assert coat.verdict.questions[2].answer is VerdictAnswer.YES


@pytest.mark.parametrize("name", ["counts", "loudness", "constant"])
def test_what_hears_only_how_much_is_not_above_energy(judged, name):
    model = judged[name]
    assert model.questions["floor"] is VerdictAnswer.NO
    assert model.questions["twin"] is VerdictAnswer.UNKNOWN
    assert all(task.verdict.questions[2].answer is not VerdictAnswer.YES for task in model.tasks)


def test_the_raw_scores_would_have_been_praised(results, data):
    """The control: by the scores that tasks are named for, loudness is above the log-mel statistics."""
    coat, _ = compare_results([results], data=data)
    raw = dict(zip(coat.labels, coat.view(coat.info.score.name).means, strict=True))
    assert raw["loudness"] > raw["log-mel-statistics"] + 0.1


def test_the_page_praises_none(results, data, tmp_path, monkeypatch):
    monkeypatch.setattr("audio_compositionality.evaluator.report.sections.described_figures", lambda _: ())
    page = write_report([results], tmp_path / "r.html", data=data, progress=False).read_text("utf-8")
    (answer,) = re.findall(r'<section aria-labelledby="answer".*?</section>', page, re.DOTALL)
    text = re.sub(r"<[^>]+>", " ", answer)
    assert "None of the 4 models is shown to be above what needs no learning" in text
    said = text.replace("Which is better, and can it be trusted?", "").replace("that one is better", "")
    assert not PRAISE.search(said)


@pytest.mark.slow
def test_one_that_hears_the_parts_is_told_as_such(data, tmp_path, one_thread):
    """So that the verdict is no mere refusal."""
    task = [load_task("a_coat")]
    models = [
        Told("hears", data, parts),
        RandomNetwork("untrained:hears", 1, "untrained"),
        load_model("log-mel-statistics"),
    ]
    evaluate_models(models, data, task, RunOptions(out=tmp_path, progress=False))
    (model,) = model_verdicts(compare_results([tmp_path], data=data))
    assert set(model.questions.values()) == {VerdictAnswer.YES}
    assert model.is_evidence
    assert model.conclusion.startswith("Above all three")
