"""When a sound is heard, by free answers and by frames: models that have exactly one ability, through the tasks."""

from __future__ import annotations

import numpy as np
import pytest

from audio_compositionality.dataset_builder.open_data import open_data
from audio_compositionality.dataset_builder.recipes import load_recipe
from audio_compositionality.encoders.base import Model, ModelCard
from audio_compositionality.encoders.loading.registry import load_model
from audio_compositionality.evaluator.run.evaluate import evaluate, evaluate_models
from audio_compositionality.evaluator.run.options import RunOptions
from audio_compositionality.metrics.when import when
from audio_compositionality.tasks.answerers.text_only import UsualTimes
from audio_compositionality.tasks.base import Outputs, TaskError
from audio_compositionality.tasks.registry import load_task
from audio_compositionality.tasks.shapes.moments import best_runs

BINS = 80
OPTIONS = RunOptions(progress=False)


@pytest.fixture(scope="module")
def rows():
    recipe = load_recipe("when")
    return recipe.render(recipe.presets["mini"]).rows


def active(rows):
    """Which label is heard in which bin, to a tenth of a second, [rows, bins, labels]."""
    labels = sorted({event["label"] for row in rows for event in row["events"]})
    frames = np.zeros((len(rows), BINS, len(labels)))
    for clip, row in zip(frames, rows, strict=True):
        for event in row["events"]:
            clip[round(10 * event["onset"]) : round(10 * event["offset"]), labels.index(event["label"])] = 1
    return frames


def by_frames(rows, frames):
    outputs = Outputs(clips=frames.reshape(len(rows), -1).astype(np.float32))
    return load_task("when_frames").score(rows, outputs, {}, "cpu", False).measures


def test_frames_that_know_labels_are_right_to_their_bins(rows):
    # Both ends are off by half a bin at most, of sounds of 1.46 s in the mean.
    measures = by_frames(rows, active(rows))
    assert measures["iou"] > 0.9
    assert measures["hit"] == 1


def test_frames_that_do_not_know_labels_or_times_are_at_most_at_their_bars(rows):
    frames = active(rows)
    any_sound = by_frames(rows, frames.max(axis=2, keepdims=True))
    assert any_sound["iou_prior"] < any_sound["iou"] < any_sound["iou_label_blind"]
    how_many = by_frames(rows, frames.sum(axis=2, keepdims=True))
    assert how_many["iou"] < how_many["iou_label_blind"]
    when_blind = by_frames(rows, np.repeat(frames.mean(axis=1, keepdims=True), BINS, axis=1))
    assert when_blind["iou"] <= when_blind["iou_prior"]
    noise = by_frames(rows, np.random.default_rng(0).normal(size=(len(rows), BINS, 8)))
    assert noise["iou"] <= noise["iou_prior"]


def test_a_run_is_the_best_of_all():
    values = np.random.default_rng(0).normal(size=(20, 12))
    for row, (start, stop) in zip(values, (10 * best_runs(values)).round().astype(int), strict=True):
        best = max(row[a:b].sum() for a in range(12) for b in range(a + 1, 13))
        assert row[start:stop].sum() == pytest.approx(best)
    np.testing.assert_allclose(best_runs(np.full((1, 3), -1.0)), [[0, 0.1]])


def test_frames_need_three_folds(rows):
    with pytest.raises(TaskError, match="clips of 2 folds; 3 are needed"):
        load_task("when_frames").settings([row for row in rows if row["fold"] < 2], {})


def test_the_mean_of_single_answers_is_the_score(rows):
    task = load_task("when")
    answers = [f"{row['onset'] + 0.3:.2f} to {row['offset']:.2f} s" if k % 3 else "" for k, row in enumerate(rows)]
    score = task.score(rows, Outputs(answers=answers), {}, "cpu", False)
    assert score.columns["score"].tolist() == [task.score_of(row, a) for row, a in zip(rows, answers, strict=True)]
    assert (score.measures["unparsed"], score.ids) == (len(rows) / 3, tuple(row["id"] for row in rows))
    assert task.samples(rows).clusters.max() + 1 == len(rows) / 3


class Says(Model):
    """The same whatever it is asked."""

    card = ModelCard("says", "1", 16_000, None)

    def answer(self, clips, prompts):
        return ["From 2 to 4 s." for _ in prompts]


def test_who_chooses_among_options_is_left_out_of_free_answers(tmp_path):
    data, task = open_data("mini"), load_task("when")
    models = [load_model("first"), load_model("random"), Says()]
    with pytest.raises(TaskError, match="'first' needs questions with options, which the questions of when lack"):
        evaluate_models(models, data, [task], OPTIONS)
    with pytest.warns(UserWarning, match="left out: '(first|random)' needs questions with options"):
        results = evaluate_models(models, data, [task], OPTIONS, leave_out=True)
    assert [result.model.id for result in results] == ["says"]


def test_the_usual_interval_is_learnt_from_other_groups_and_stays_below_the_prior(rows):
    (result,) = evaluate(load_model("usual-times"), "mini", tasks=["when"], options=OPTIONS)
    assert 0.8 * result.measures["iou_prior"] < result.measures["iou"] <= result.measures["iou_prior"]
    answerer = UsualTimes()
    answerer.learn(rows, iter(()))
    said = answerer.answer([[None]] * len(rows), [""] * len(rows))
    columns = {name: [row[name] for row in rows] for name in ("onset", "offset", "duration")}
    assert when(said, **columns)["iou"] == pytest.approx(result.measures["iou_prior"], abs=1e-3)
