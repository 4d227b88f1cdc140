"""No sentence of the report praises a score that its control explains: models that learnt nothing go the whole way."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from html import unescape

import numpy as np
import pytest

from audio_compositionality.dataset_builder.data import Data
from audio_compositionality.dataset_builder.rendered import RenderedData, rendered_preset
from audio_compositionality.encoders.base import Model, ModelCard
from audio_compositionality.encoders.loading.registry import load_model
from audio_compositionality.evaluator.compare.comparison import compare_results
from audio_compositionality.evaluator.compare.model_verdicts import OUTCOMES, task_phrase, verdicts_of
from audio_compositionality.evaluator.compare.task_verdicts import Standing, task_verdicts
from audio_compositionality.evaluator.report.page import write_report
from audio_compositionality.evaluator.run.evaluate import evaluate_models
from audio_compositionality.evaluator.run.options import RunOptions
from audio_compositionality.tasks.registry import load_task
from audio_compositionality.tasks.shapes.designs import METERS

PLAIN = ("log-mel-statistics", "modulation-statistics")
PRAISE = re.compile(r"\babove\b|\bbetter\b|\bbest\b|\bhigher than\b|\bhighest\b|\bahead\b", re.IGNORECASE)
"""Words that a text may use of a model only where it is above all that needs no learning."""

DENIALS = re.compile(
    r"\b0 of \d+ models are above all baselines|not shown to be above all|Only models above all baselines|"
    r"probe that validates best"
)
"""Where those words praise nobody."""

WIDTH = 64


class RandomNetwork(Model):
    """Two layers of convolutions over 64 bands of a log spectrogram, with fresh weights."""

    device = "cpu"

    def __init__(self, id: str, seed: int, paradigm: str | None = None) -> None:
        self.card = ModelCard(id, str(seed), 32_000, WIDTH, paradigm=paradigm)
        rng = np.random.default_rng(seed)
        self.layers = [rng.normal(0, (3 * WIDTH) ** -0.5, (3 * WIDTH, WIDTH)) for _ in range(2)]

    def embed(self, waveforms, sample_rate):
        frames = np.lib.stride_tricks.sliding_window_view(np.asarray(waveforms, np.float32), 1024, axis=1)[:, ::1024]
        power = np.abs(np.fft.rfft(frames * np.hanning(1024).astype(np.float32)))[..., 1:] ** 2
        hidden = np.log10(power.reshape(*power.shape[:2], WIDTH, -1).mean(axis=3) + 1e-6) + 6
        for weights in self.layers:
            wide = np.concatenate([hidden[:, :-2], hidden[:, 1:-1], hidden[:, 2:]], axis=2)
            hidden = np.maximum(wide @ weights, 0)
        return hidden.mean(axis=1).astype(np.float32)


class Told(Model):
    """What a function makes of the sources of a clip, which it looks up by the samples: it hears exactly that much."""

    device = "cpu"

    def __init__(self, id: str, data: Data, function: Callable[[list[dict[str, str]]], np.ndarray]) -> None:
        self.by_samples = {}
        for recipe in ("a_coat", "a_tre"):
            configuration = data.configuration(recipe)
            rows = {row["id"]: row["metadata"] for row in configuration.rows}
            for clip in configuration.clips():
                row, _, name = clip.id.rpartition("/")
                scene = rows[row]
                parts = [scene] if name == "audio" else [scene[part] for part in {"B": "AT", "D": "CT"}.get(name, name)]
                self.by_samples[clip.waveform.tobytes()] = function([source for part in parts for source in part])
        (width,) = {value.shape for value in self.by_samples.values()}
        self.card = ModelCard(id, "1", 32_000, *width)

    def embed(self, waveforms, sample_rate):
        return np.stack([self.by_samples[np.asarray(clip, np.float32).tobytes()] for clip in waveforms])


class Heard(Model):
    """What a function makes of the samples of a clip."""

    device = "cpu"

    def __init__(self, id: str, function: Callable[[np.ndarray], list[float]], **card) -> None:
        self.function = function
        self.card = replace(ModelCard(id, "1", 32_000, len(function(np.ones(8, np.float32)))), **card)

    def embed(self, waveforms, sample_rate):
        return np.array([self.function(np.asarray(clip, np.float64)) for clip in waveforms], np.float32)


def loudness(clip: np.ndarray) -> list[float]:
    """The level in dB, and how near it is to each of eight levels."""
    level = 10 * np.log10(np.mean(clip**2) + 1e-12)
    return [level, *np.exp(-(((level - np.linspace(-50, 0, 8)) / 6) ** 2))]


def meter(clip: np.ndarray) -> list[float]:
    """Levels of frames of 25 ms: their deciles, how much they change, and the level of all."""
    levels = 10 * np.log10((clip[: len(clip) // 8 * 8].reshape(-1, min(800, len(clip))) ** 2).mean(axis=1) + 1e-10)
    change = np.abs(np.diff(levels)).mean() if len(levels) > 1 else 0.0
    return [10 * np.log10(np.mean(clip**2) + 1e-10), change, levels.std(), *np.percentile(levels, range(10, 100, 10))]


def parts(sources: list[dict[str, str]]) -> np.ndarray:
    """The sum of a fixed vector for each label of each source: what an encoder of parts would give."""
    return np.sum([_vector(name, label) for source in sources for name, label in source.items()], axis=0)


def _vector(name: str, label: str) -> np.ndarray:
    seed = int.from_bytes(f"{name}{label}".encode()[-7:], "little")
    return np.random.default_rng(seed).normal(size=WIDTH).astype(np.float32)


@pytest.fixture(scope="module")
def data():
    changes = {"duration": 2.0, "rate_range": (1.0, 3.0), "quadruple_candidates": 4_000, "scene_candidates": 2_000}
    sizes = {"quadruples": 48, "train_scenes": 40, "validation_scenes": 6, "test_scenes": 30}
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
        *(load_model(name) for name in PLAIN),
    ]
    out = tmp_path_factory.mktemp("cheats")
    evaluate_models(models, data, None, RunOptions(out=out, settings={"seeds": [0], "max_steps": 20}, progress=False))
    return out


def praise(text):
    """What a text says in favour of models."""
    return PRAISE.findall(DENIALS.sub("", text))


def check_page(results, data, judged, folder):
    """The verdict on the page praises none of the models that are judged, whatever is open."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("audio_compositionality.evaluator.report.sections.described_figures", lambda _: ())
        page = write_report([results], folder / "r.html", data=data, progress=False).read_text("utf-8")
    (section,) = re.findall(r'<section aria-labelledby="answer".*?</section>', page, re.DOTALL)
    words = {name: " ".join(unescape(re.sub(r"<[^>]+>", " ", part)).split()) for name, part in (
        ("lead", re.search(r'<div class="lead.*?</div>', section, re.DOTALL)[0]),
        ("matrix", re.search(r'<table class="matrix.*?</table>', section, re.DOTALL)[0]),
        ("all", section),
    )}  # fmt: skip
    rest = words["all"]
    for model in judged:
        check_sentence(model)
        sentence = " ".join(model.sentence.split())
        assert sentence in rest
        words["lead"], rest = words["lead"].replace(sentence, ""), rest.replace(sentence, "")
    assert not praise(words["lead"])
    assert not praise(words["matrix"])
    assert "▲" not in words["matrix"]
    # Of one baseline it may say so: what is asked about all of them is not answered with "above".
    assert not re.search(r"Above [^?]*\? ▲|Above [^?]*\? above", rest)
    assert not re.search(
        r"above all|\bbetter\b|\bbest\b|higher than|\bhighest\b|\bahead\b", DENIALS.sub("", rest), re.I
    )
    return words["all"]


def check_sentence(model):
    """It begins with an outcome that is no praise; "better than" names only baselines that the model is above."""
    outcome, _, of_tasks = model.sentence.partition(". ")
    assert model.standing is not Standing.ABOVE
    assert outcome == OUTCOMES[model.standing].capitalize()
    assert not praise(outcome)
    better = re.compile(r"better than ([^;.]*)")
    assert not praise(better.sub("", of_tasks))
    for task in model.tasks:
        found = better.search(task_phrase(task))
        above = {
            row.reference if name == "description" else row.words
            for name, rows in task.baselines.items()
            for row in rows
            if row.decides and row.standing is Standing.ABOVE
        }
        assert not found or set(re.split(", | and ", found[1])) <= above


@pytest.mark.slow
def test_none_is_evidence_and_the_page_praises_none(results, data, tmp_path):
    """Though raw scores would have been praised, and fresh weights are above log-mel statistics and above energy."""
    comparisons = compare_results([results], data=data)
    judged = {model.label: model for model in verdicts_of(comparisons).models}
    assert set(judged) == {"fresh", "counts", "loudness", "constant"}, "only models are judged"
    coat = judged["fresh"].tasks[0].standings
    assert coat["twin"] is not Standing.ABOVE
    assert coat["description"] is coat["trivial"] is Standing.ABOVE
    for name in ("counts", "loudness", "constant"):
        twin, _, trivial, *_ = judged[name].lines
        assert (twin.standing, trivial.standing.answer) == (Standing.UNKNOWN, "no")
        assert all(task.standings["trivial"] is not Standing.ABOVE for task in judged[name].tasks)
    raw = dict(zip(comparisons[0].labels, comparisons[0].view("a_coat").means, strict=True))
    assert raw["loudness"] > raw["log-mel-statistics"] + 0.1
    assert "0 of 4 models are above all baselines" in check_page(results, data, judged.values(), tmp_path)


@pytest.mark.slow
def test_one_that_hears_the_parts_is_told_as_such(data, tmp_path, one_thread):
    """So that the verdict is no mere refusal."""
    task = [load_task("a_coat")]
    models = [
        Told("hears", data, parts),
        RandomNetwork("untrained:hears", 1, "untrained"),
        *(load_model(name) for name in PLAIN),
    ]
    evaluate_models(models, data, task, RunOptions(out=tmp_path, progress=False))
    (model,) = verdicts_of(compare_results([tmp_path], data=data)).models
    assert model.standing is Standing.ABOVE
    assert model.sentence.startswith("Above all baselines. A-COAT: better than its untrained twin, ")


# ----- a level meter is not praised for the four axes: energy alone reaches its scores


@pytest.fixture(scope="module")
def axes(tmp_path_factory, one_thread):
    """Data of factors, and a folder with the results of a level meter that poses as a model."""
    changes = {"duration": 2.0, "rate_range": (1.0, 8.0), "stars": 5, "crossed_levels": (8, 3, 3, 2)}
    data = RenderedData("made-up", rendered_preset("mini", recipes=["factors"], **changes).settings)
    out = tmp_path_factory.mktemp("meters")
    models = [
        Heard("meter", meter),
        RandomNetwork("untrained:meter", 1, "untrained"),
        *(load_model(name) for name in (*PLAIN, "random", *METERS)),
    ]
    tasks = [load_task("disentanglement"), load_task("informativeness")]
    evaluate_models(models, data, tasks, RunOptions(out=out, settings={"probes": ["ridge"]}, progress=False))
    return data, out


@pytest.mark.slow
def test_a_level_meter_that_reads_the_rate_from_unseen_timbres_is_said_to_be_energy_alone(axes, tmp_path):
    data, results = axes
    comparisons = compare_results([results], data=data)
    for comparison in comparisons:
        (verdict,) = task_verdicts(comparison)
        assert verdict.label == "meter"
        energy = verdict.baselines["trivial"]
        assert (energy[0].words, verdict.standings["trivial"].answer) == ("energy alone", "no")
        assert "(energy alone: level-statistics)" in " ".join(row.outcome for row in energy)
        assert {row.reference for row in energy} == set(METERS)

    (model,) = verdicts_of(comparisons).models
    assert "energy alone" in model.sentence
    assert "energy alone" in check_page(results, data, [model], tmp_path)
