"""A level meter that poses as a model is not praised for the four axes: what it reads is said to be energy alone."""

from __future__ import annotations

import re
from dataclasses import replace

import numpy as np
import pytest

from audio_compositionality.dataset_builder.rendered import RenderedData, rendered_preset
from audio_compositionality.encoders.loading.registry import load_model
from audio_compositionality.evaluator.compare.comparison import compare_results
from audio_compositionality.evaluator.compare.conclusions import model_verdicts
from audio_compositionality.evaluator.compare.verdicts import VerdictAnswer, verdicts
from audio_compositionality.evaluator.report.page import write_report
from audio_compositionality.evaluator.run.evaluate import evaluate_models
from audio_compositionality.evaluator.run.options import RunOptions
from audio_compositionality.tasks.registry import load_task
from audio_compositionality.tasks.shapes.designs import METERS

from .cheats import Heard, RandomNetwork

pytestmark = pytest.mark.slow

RATE = "rate_over_timbre_unseen"


def meter(clip: np.ndarray) -> list[float]:
    """Levels of frames of 25 ms: their deciles, how much they change, and the level of all."""
    levels = 10 * np.log10((clip[: len(clip) // 8 * 8].reshape(-1, min(800, len(clip))) ** 2).mean(axis=1) + 1e-10)
    change = np.abs(np.diff(levels)).mean() if len(levels) > 1 else 0.0
    return [10 * np.log10(np.mean(clip**2) + 1e-10), change, levels.std(), *np.percentile(levels, range(10, 100, 10))]


@pytest.fixture(scope="module")
def data():
    changes = {"duration": 2.0, "rate_range": (1.0, 8.0), "stars": 5, "crossed_levels": (8, 3, 3, 2)}
    return RenderedData("made-up", rendered_preset("mini", recipes=["factors"], **changes).settings)


@pytest.fixture(scope="module")
def results(data, tmp_path_factory, one_thread):
    out = tmp_path_factory.mktemp("meters")
    models = [
        Heard("meter", meter),
        RandomNetwork("untrained:meter", 1, "untrained"),
        *(load_model(name) for name in ("log-mel-statistics", "random", *METERS)),
    ]
    tasks = [load_task("disentanglement"), load_task("informativeness")]
    evaluate_models(models, data, tasks, RunOptions(out=out, settings={"probes": ["ridge"]}, progress=False))
    return out


@pytest.fixture(scope="module")
def by_task(results, data):
    return {comparison.info.name: comparison for comparison in compare_results([results], data=data)}


def test_a_level_meter_reads_the_rate_from_timbres_never_heard(by_task):
    """What was a headline: the level meter is far above its twin and the log-mel statistics."""
    disentanglement = by_task["disentanglement"]
    reads = {result.label: result.value(disentanglement.info.measure(RATE)) for result in disentanglement.results}
    assert reads["level-statistics"] >= 0.85
    assert reads["meter"] >= 0.85
    assert reads["meter"] > max(reads["log-mel-statistics"], reads["untrained:meter"], reads["random"]) + 0.1


@pytest.mark.parametrize("name", ["disentanglement", "informativeness"])
def test_its_score_is_what_energy_alone_reaches(by_task, name):
    (verdict,) = verdicts(by_task[name])
    assert verdict.label == "meter"
    energy = verdict.questions[2]
    assert energy.words == "energy alone"
    assert energy.answer is VerdictAnswer.NO
    assert "(energy alone: level-statistics)" in energy.sentence
    assert {check.reference for check in energy.checks} == set(METERS)


def test_by_the_measure_of_the_headline_alone_nothing_but_energy_is_against_it(by_task):
    """Twin and log-mel statistics would have let it pass."""
    disentanglement = by_task["disentanglement"]
    info = replace(disentanglement.info, ranks_by=RATE, trusted={RATE: None})
    task = type("Task", (), {"info": info, "drawings": ()})()
    (verdict,) = verdicts(replace(disentanglement, task=task))
    twin, description, energy = verdict.questions
    assert (twin.answer, description.answer) == (VerdictAnswer.YES, VerdictAnswer.YES)
    assert energy.answer is VerdictAnswer.NO
    assert not verdict.is_evidence


def test_the_page_does_not_praise_it(results, data, by_task, tmp_path, monkeypatch):
    monkeypatch.setattr("audio_compositionality.evaluator.report.sections.described_figures", lambda _: ())
    (model,) = model_verdicts(list(by_task.values()))
    assert "energy alone" in model.conclusion
    assert model.conclusion.startswith("No evidence of learning")
    page = write_report([results], tmp_path / "r.html", data=data, progress=False).read_text("utf-8")
    (answer,) = re.findall(r'<section aria-labelledby="answer".*?</section>', page, re.DOTALL)
    text = re.sub(r"<[^>]+>", " ", answer)
    assert "energy alone" in text
    assert "Above all three" not in text
