"""Attacks: models without a weight that were once above every baseline, beside the baselines that now reach them."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest
import scipy.fft

from audio_compositionality.dataset_builder.rendered import RenderedData, rendered_preset
from audio_compositionality.encoders.base import Model, ModelCard
from audio_compositionality.encoders.loading.registry import load_model
from audio_compositionality.evaluator.compare.comparison import compare_results
from audio_compositionality.evaluator.compare.loading import descriptions_of
from audio_compositionality.evaluator.compare.task_verdicts import Standing, baseline_standing, task_verdicts
from audio_compositionality.evaluator.run.evaluate import evaluate, evaluate_models
from audio_compositionality.evaluator.run.options import RunOptions
from audio_compositionality.tasks.registry import load_task

RATE = 16_000


@cache
def mel():
    import librosa

    return librosa.filters.mel(sr=RATE, n_fft=1024, n_mels=64, fmin=40, fmax=7_800, htk=True, norm=None).T


def power_of(clip, hop):
    """Power in 64 mel bands of frames of 64 ms."""
    frames = np.lib.stride_tricks.sliding_window_view(clip.astype(np.float64), 1024)[::hop]
    return np.abs(np.fft.rfft(frames * np.hanning(1024))) ** 2 @ mel()


class Modulation(Model):
    """The modulation spectrum of 16 bands, of the whole 1."""

    card = ModelCard("modulation", "1", RATE, 16 * 40)

    def embed(self, waveforms, sample_rate):
        return np.stack([self.spectrum(clip) for clip in waveforms])

    def spectrum(self, clip):
        power = power_of(clip, 160).reshape(-1, 16, 4).sum(axis=2)
        decibels = 10 * np.log10(power + 1e-5 * power.max())
        taper = np.hanning(len(decibels))[:, None]
        depths = np.abs(np.fft.rfft((decibels - decibels.mean(axis=0)) * taper, 2048, axis=0))[:120]
        summed = depths.reshape(40, 3, 16).sum(axis=1)
        return (summed / summed.sum()).ravel().astype(np.float32)


class Cepstra(Model):
    """Frames of cepstra and the products of every two."""

    card = ModelCard("cepstra", "1", RATE, 24 + 78)

    def embed(self, waveforms, sample_rate):
        return self.embed_frames(waveforms, sample_rate)[0].mean(axis=1)

    def embed_frames(self, waveforms, sample_rate):
        return np.stack([self.frames(clip) for clip in waveforms]), 320 / RATE

    def frames(self, clip):
        decibels = 10 * np.log10(power_of(clip, 320) + 1e-7)
        raised = np.maximum(decibels, decibels.max() - 60)
        cepstra = scipy.fft.dct(raised - raised.mean(), axis=1)[:, :24] / 128
        means = np.stack([np.convolve(one, np.full(9, 1 / 9), "same") for one in cepstra.T], 1)
        first, second = np.triu_indices(12)
        return np.concatenate([means, means[:, first] * means[:, second] / 10], 1).astype(np.float32)


class Noise(Cepstra):
    """The twin: it hears nothing."""

    def __init__(self, model):
        self.card = ModelCard(f"untrained:{model.card.id}", "1", RATE, 16, paradigm="untrained")

    def frames(self, clip):
        seed = int(1e6 * np.abs(clip[::97]).sum()) % 2**31
        return np.random.default_rng(seed).normal(size=(len(clip) // 320, 16)).astype(np.float32)


def judged(model, task, folder, **changes):
    """The rows of the verdict on a model beside its twin and the baselines, by the baseline they are against."""
    data = RenderedData("made-up", rendered_preset("mini", recipes=[load_task(task).info.recipe], **changes).settings)
    plain = ("log-mel-statistics", "modulation-statistics", *(["rms"] if task == "rate_binding" else []))
    models = [model, Noise(model), *map(load_model, plain)]
    evaluate_models(models, data, [load_task(task)], RunOptions(out=folder, progress=False))
    (verdict,) = task_verdicts(compare_results([folder], data=data)[0])
    assert verdict.standing is not Standing.ABOVE
    return verdict.baselines


def against(rows, name):
    return baseline_standing([row for row in rows["description"] if row.reference == name])


@pytest.mark.slow
@pytest.mark.parametrize(
    ("model", "task", "changes"),
    [(Modulation(), "rate_binding", {"duration": 2.5}), (Cepstra(), "when_frames", {"seed": 9713})],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_what_time_tells_without_learning_is_a_baseline(model, task, changes, tmp_path):
    rows = judged(model, task, tmp_path, **changes)
    # It is above whatever else there is.
    assert baseline_standing(rows["twin"]) is baseline_standing(rows["trivial"]) is Standing.ABOVE
    assert against(rows, "log-mel-statistics") is Standing.ABOVE
    assert against(rows, "modulation-statistics") is not Standing.ABOVE


def answered(model, task, **changes):
    """The measures of an answerer in a task."""
    data = RenderedData("made-up", rendered_preset("mini", recipes=[task], **changes).settings)
    (result,) = evaluate(load_model(model), data, tasks=[task], options=RunOptions(progress=False))
    return result.measures


def test_spectra_alone_tell_in_what_two_clips_differ():
    """A third of the groups right, where chance is 1/256, by a comparison that knows no label."""
    measures = answered("spectrum-comparer", "two_clips", comparisons=9)
    assert (measures["accuracy_what_differs"], measures["groups_right"]) == (1, pytest.approx(1 / 3))
    assert measures["accuracy_which_has"] == measures["accuracy_which_order"] == 0.5
    assert descriptions_of(load_task("two_clips").info) == ["blind", "statistics", "spectrum-comparer"]


def test_nine_numbers_of_a_clip_tell_how_many_sounds_there_are():
    measures = answered("statistics", "count_instances_questions", ladders=20)
    assert measures["accuracy"] > 2 * measures["without_listening"]
    assert descriptions_of(load_task("count_instances_questions").info) == ["blind", "statistics"]
