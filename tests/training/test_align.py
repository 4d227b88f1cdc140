"""Encoders of sound alone that are aligned with text: trained, saved, opened, and refused where they are others."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
import torch

from audio_compositionality.encoders.base import ModelError
from audio_compositionality.encoders.loading.names import absolute_name
from audio_compositionality.encoders.loading.registry import load_model
from audio_compositionality.encoders.options import EncoderOptions
from audio_compositionality.training.data import open_training
from audio_compositionality.training.loop import Trainer
from audio_compositionality.training.model import open_towers
from audio_compositionality.training.settings import TrainingError, TrainingSettings
from audio_compositionality.training.towers.small_towers import frozen_features, open_aligned

CLIPS = np.random.default_rng(0).normal(0, 0.1, (3, 16_000)).astype(np.float32)
TEXTS = ["a low bell followed by a high pad", "a high pad followed by a low bell"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    towers = open_aligned("log-mel-statistics", seed=1)
    towers.measure_norm([torch.from_numpy(towers.frozen.model.embed(CLIPS, 32_000))])
    path = tmp_path_factory.mktemp("aligned") / "ours"
    towers.save(path)
    return path


def test_towers_are_of_unit_length_and_standard_on_what_was_measured(tmp_path):
    towers = open_aligned("log-mel-statistics", seed=1)
    embeddings = torch.from_numpy(towers.frozen.model.embed(CLIPS, 32_000))
    with pytest.raises(TrainingError, match="no clips to measure"):
        towers.measure_norm([])
    towers.measure_norm([embeddings[:2], embeddings[2:]])
    standard = (embeddings - towers.model.mean) / towers.model.deviation
    np.testing.assert_allclose(standard.mean(dim=0), 0, atol=1e-4)
    audio, text = towers.embed_audio(embeddings), towers.embed_text(towers.tokeniser(TEXTS))
    assert (audio.shape, text.shape) == (
        (3, towers.model.config.projection_dim),
        (2, towers.model.config.projection_dim),
    )
    for one in (audio, text):
        np.testing.assert_allclose(one.detach().norm(dim=-1), 1, atol=1e-5)
    assert towers.scale().item() == pytest.approx(1 / 0.07)
    towers.model.logit_scale.data.fill_(9.0)
    towers.limit_scale()
    assert towers.scale().item() == pytest.approx(100)
    assert {name.split(".")[1] for name, _ in towers.named_trained()} == {
        "text_model",
        "audio_projection",
        "logit_scale",
    }


def test_a_saved_folder_opens_as_what_was_trained(folder):
    model = load_model(str(folder))
    towers = open_aligned("log-mel-statistics", seed=1)
    towers.measure_norm([torch.from_numpy(towers.frozen.model.embed(CLIPS, 32_000))])
    expected = towers.embed_audio(torch.from_numpy(towers.frozen.model.embed(CLIPS, 32_000))).detach().numpy()
    texts = towers.embed_text(towers.tokeniser(TEXTS)).detach().numpy()
    np.testing.assert_allclose(towers.open_encoder().embed(CLIPS, 32_000), expected, atol=1e-6)
    np.testing.assert_allclose(model.embed(CLIPS, 32_000), expected, atol=1e-6)
    np.testing.assert_allclose(model.embed_text(TEXTS), texts, atol=1e-5)
    np.testing.assert_allclose(model.embed_text(TEXTS[::-1])[::-1], texts, atol=1e-6)
    assert model.card.id == "ours"
    assert "aligned with the frozen embeddings of log-mel-statistics" in model.card.paradigm
    assert model.card.revision.startswith("sha256-")
    twin, same = (load_model(f"untrained:{folder}", seed=7) for _ in range(2))
    assert twin.card.paradigm == "untrained"
    np.testing.assert_array_equal(twin.embed_text(TEXTS), same.embed_text(TEXTS))
    assert not np.allclose(twin.embed_text(TEXTS), texts, atol=1e-2)


def test_an_encoder_that_has_changed_is_refused(folder, tmp_path):
    for path in folder.iterdir():
        (tmp_path / path.name).write_bytes(path.read_bytes())
    config = json.loads((tmp_path / "config.json").read_text("utf-8"))
    (tmp_path / "config.json").write_text(json.dumps(config | {"encoder_revision": "v0"}), "utf-8")
    with pytest.raises(ModelError, match=r"with revision v0 of .*, but found v1"):
        load_model(str(tmp_path))
    with pytest.raises(ModelError, match="takes no layer or pooling: it was aligned with one"):
        load_model(str(folder), options=EncoderOptions(pooling="max"))
    with pytest.raises(ModelError, match="already aligned with text"):
        open_aligned(str(folder))
    with pytest.raises(TrainingError, match="a map and a text tower, which are both trained"):
        open_aligned("log-mel-statistics", train="last")


@pytest.mark.parametrize("front", ["", "untrained:", "reversed-audio:untrained:"])
def test_an_encoder_in_a_folder_is_named_by_its_whole_path(tmp_path, monkeypatch, front):
    open_towers("tiny").save(tmp_path / "models" / "mine")
    monkeypatch.chdir(tmp_path)
    # Such a name could be a Hub id too.
    encoder = open_aligned(f"{front}models/mine").model.config.encoder
    assert encoder == f"{front}{tmp_path.resolve() / 'models' / 'mine'}"
    assert absolute_name("whisper-tiny.en") == "whisper-tiny.en"
    assert absolute_name("whisper-tiny.en=models") == f"whisper-tiny.en={tmp_path.resolve() / 'models'}"


def test_any_encoder_is_trained_by_the_same_loop(tmp_path: Path, monkeypatch):
    monkeypatch.setenv("AUDIO_COMPOSITIONALITY_CACHE", str(tmp_path / "cache"))
    data = open_training("comp_a_train", train_rows=6, validation_rows=2, sample_rate=8_000)
    towers = open_aligned("log-mel-statistics")
    features = frozen_features(towers, data.train)
    assert features.values.shape == (8, towers.frozen.dim)
    settings = TrainingSettings(stages="contrastive:2,hard:1", data="scenes", batch_size=4)
    before = towers.model.audio_projection.weight.detach().clone()
    run = Trainer(towers, data.train, features, settings, tmp_path / "run").run()
    assert run.position.total == 3
    assert not torch.equal(before, towers.model.audio_projection.weight)
    assert np.isfinite(towers.open_encoder().embed_text(TEXTS)).all()
