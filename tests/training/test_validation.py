"""Scores of a model in training: which tasks, of what, by hand, and that clips are made once."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest

from audio_compositionality.dataset_builder.recipes import load_recipe
from audio_compositionality.encoders.base import ModelCard, WaveformEncoder
from audio_compositionality.encoders.loading.registry import load_model
from audio_compositionality.training.data import TrainingSplits, open_training
from audio_compositionality.training.model import open_towers
from audio_compositionality.training.running import _validation
from audio_compositionality.training.settings import TrainingError, TrainingSettings
from audio_compositionality.training.validation import (
    NEAR,
    Trial,
    caption_trials,
    nearer,
    open_validation,
    part_trials,
    score_trials,
)


@pytest.fixture(scope="module")
def data():
    return open_training("comp_a_train", train_rows=2, validation_rows=12, sample_rate=16_000)


@pytest.fixture(scope="module")
def validation(data):
    return open_validation(data, most=2)


class Constant(WaveformEncoder):
    """One vector for all clips, another for all texts; counts what it is given."""

    card = ModelCard("constant", "v1", 16_000, 2)

    def __init__(self) -> None:
        self.prepared = self.run = 0

    def _extract_features(self, clips):
        self.prepared += len(clips)
        return clips

    def _run_model(self, features):
        self.run += len(features)
        return np.ones((len(features), 2), np.float32)

    def embed_text(self, texts):
        return np.tile(np.array([[1, 0]], np.float32), (len(texts), 1))


def test_the_tasks_are_those_that_have_items_like_these_or_can_be_scored_on_rows(validation):
    assert [one.task.info.name for one in validation.items] == ["comp_a_attribute", "comp_a_order"]
    assert [one.task.info.name for one in validation.rows] == ["audio_text_retrieval"]
    assert all(row["split"] == "validation" for one in validation.items for row in one.rows)
    assert all(len(one.rows) == 2 for one in (*validation.items, *validation.rows))
    assert (len(validation.clips), validation.left_out) == (2, ())
    scores = validation(load_model("random"))
    assert scores["score"] == pytest.approx((scores["comp_a_order.group"] + scores["comp_a_attribute.group"]) / 2)


@pytest.mark.slow
def test_a_model_that_hears_and_reads_nothing_has_ties_and_clips_are_made_once(validation):
    encoder = Constant()
    scores = validation(encoder)
    made = encoder.prepared
    assert validation(encoder, 5) == scores
    assert (encoder.prepared, encoder.run) == (made, 2 * made)
    assert next(iter(scores)) == "score"
    assert all(isinstance(value, float) for value in scores.values())
    assert scores["score"] == scores["comp_a_order.group"] == 0
    assert (scores["comp_a_order.match"], scores["comp_a_order.ties"]) == (0.5, 1)
    assert scores["caption.same_words"] == 0
    assert scores["audio_text_retrieval.text_to_audio_r1"] <= 0.5


def test_data_without_items_like_theirs_are_scored_by_their_rows(data):
    class Stored:
        """Data that were read from a folder: nothing is known of how to make more of them."""

        def __init__(self, configuration):
            self.recipe, self.source = configuration.recipe, "folder"
            self.rows, self.clip_ids, self.clips = configuration.rows, configuration.clip_ids, configuration.clips

    from dataclasses import replace

    stored = Stored(data.train.configuration)
    splits = TrainingSplits(*(replace(one, configuration=stored) for one in (data.train, data.validation)))
    validation = open_validation(splits, most=4)
    assert validation.items == ()
    scores = validation(load_model("bag-of-words"))
    assert scores["score"] == scores["caption.same_words"] == 0
    with pytest.raises(TrainingError, match="folder has no validation data"):
        open_validation(TrainingSplits(splits.train, None))


def test_a_text_that_is_too_long_is_told_before_the_first_step(data, monkeypatch):
    towers = open_towers("tiny")
    made = SimpleNamespace(texts=["a bell", "bell " * 200])
    monkeypatch.setattr("audio_compositionality.training.validation.open_validation", lambda *_, **__: made)
    with pytest.raises(TrainingError, match="has 202 tokens; the text tower takes at most 77"):
        _validation(data, TrainingSettings(data="x"), towers, progress=False)


class TestNearTexts:
    def test_by_hand(self):
        np.testing.assert_array_equal(nearer([0.5, 0.5, 0.5], [0.4, 0.6, 0.3, 0.5 - 1e-9], [0, 1, 0, 2]), [1, 0, 0])

    def test_equals_a_double_loop(self):
        rng = np.random.default_rng(0)
        names = [f"text {number}" for number in range(12)]
        texts = {name: rng.normal(size=5) for name in names}
        clips = rng.normal(size=(4, 5))
        trials = [
            Trial("part" if number % 2 else "caption.order", number % 4, names[number], (names[-1], names[number - 1]))
            for number in range(9)
        ]
        scores = score_trials(trials, clips, texts)

        def cosine(clip, text):
            return clip @ text / np.linalg.norm(clip) / np.linalg.norm(text)

        for what in ("part", "caption.order"):
            right = [
                all(
                    cosine(clips[one.clip], texts[one.true]) > cosine(clips[one.clip], texts[false]) + NEAR
                    for false in one.false
                )
                for one in trials
                if one.what == what
            ]
            assert scores[what] == pytest.approx(np.mean(right))
        assert score_trials([], clips, texts) == {}

    def test_parts_are_those_of_two_events_of_a_clip_of_three(self):
        settings = load_recipe("comp_a_train").presets["mini"]
        settings = settings.changed(train_rows=24, validation_rows=1, three=0.9)
        rows = load_recipe("comp_a_train").render(settings).rows
        trials = [(row, list(part_trials(row, 0, np.random.default_rng(0)))) for row in rows]
        assert sum(bool(of_row) for _, of_row in trials) >= 15
        for row, of_row in trials:
            assert len(row["events"]) == 3 or not of_row
            for trial in of_row:
                named = [event["label"] for event in row["events"] if event["label"] in trial.true]
                assert len(named) >= 2
                assert trial.true not in trial.false
                assert 1 <= len(trial.false) <= 8

    def test_captions_stand_against_each_kind_and_against_the_same_words(self):
        row = {
            "captions": ["a, then b"],
            "negatives": [
                {"text": "b, then a", "kind": "order"},
                {"text": "a with b", "kind": "relation"},
                {"text": "of nobody knows what kind", "kind": ""},
            ],
        }
        trials = list(caption_trials(row, 3))
        assert [(trial.what, trial.clip, trial.false) for trial in trials] == [
            ("caption.order", 3, ("b, then a",)),
            ("caption.relation", 3, ("a with b",)),
            ("caption.same_words", 3, ("b, then a", "of nobody knows what kind")),
        ]
        assert list(part_trials({"captions": ["x"], "events": []}, 0, np.random.default_rng(0))) == []
