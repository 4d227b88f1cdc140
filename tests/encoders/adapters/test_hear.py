"""The HEAR API as its paper states it, with a module of our own as "theirs"; `tests/references/hear_suite.py` runs the
real packages."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch

from audio_compositionality.encoders.adapters import hear
from audio_compositionality.encoders.loading.registry import load_model
from audio_compositionality.encoders.model_encoder import ModelEncoder
from audio_compositionality.encoders.options import EncoderOptions
from audio_compositionality.support.files import sha256_of_file

from ..contract import Saved, different_clips
from .conftest import Write

MODULE = """
import torch

class Model(torch.nn.Module):
    sample_rate, scene_embedding_size, timestamp_embedding_size = 16_000, 3, 4

    def __init__(self):
        super().__init__()
        self.matrix = torch.nn.Parameter(torch.eye(4)[:, :3].clone())
        self.dropout = torch.nn.Dropout(0.5)

def load_model(model_file_path=""):
    model = Model()
    if model_file_path:
        model.load_state_dict(torch.load(model_file_path, weights_only=True))
    return model

def get_timestamp_embeddings(audio, model):
    frames = audio.unfold(1, 160, 160)
    values = torch.stack([frames.mean(2), frames.amax(2), frames.amin(2), frames.std(2)], dim=2)
    return values, (torch.arange(frames.shape[1]) * 10.0).expand(len(audio), -1)

def get_scene_embeddings(audio, model):
    return model.dropout(get_timestamp_embeddings(audio, model)[0] @ model.matrix).mean(1)
"""


@pytest.fixture
def theirs(module: Write) -> str:
    """Name of a model of an importable HEAR module."""
    return f"hear:{module(MODULE, 'fake_hear_module')}"


def test_their_scene_embedding_is_our_embedding(theirs: str) -> None:
    encoder = load_model(theirs, device="cpu")
    assert (encoder.card.id, encoder.card.sample_rate, encoder.card.output_dim) == (theirs, 16_000, 3)
    clips = different_clips(16_000, 1)
    frames = clips.reshape(3, 100, 160)
    expected = np.stack([frames.mean(2), frames.max(2), frames.min(2)], axis=2).mean(1)
    np.testing.assert_allclose(encoder.embed(clips, 16_000), expected, atol=1e-6)
    assert encoder.embed(different_clips(44_100, 1), 44_100).shape == (3, 3)


def test_weights_are_passed_on_and_recorded(theirs: str, tmp_path: Path) -> None:
    path = tmp_path / "weights.pt"
    torch.save({"matrix": 2 * torch.eye(4)[:, :3]}, path)
    plain, doubled = load_model(theirs), load_model(f"{theirs}:{path}")
    clips = different_clips(16_000, 1)
    np.testing.assert_allclose(doubled.embed(clips, 16_000), 2 * plain.embed(clips, 16_000), rtol=1e-5)
    assert plain.card.revision != doubled.card.revision
    assert plain.card.revision.startswith("source-")
    assert plain.card.weights_sha256 != doubled.card.weights_sha256


def test_a_file_is_hashed_where_the_model_holds_no_weights(tmp_path: Path, module: Write) -> None:
    text = MODULE.replace("self.matrix = torch.nn.Parameter(torch.eye(4)[:, :3].clone())", "")
    text = text.replace("model.load_state_dict(torch.load(model_file_path, weights_only=True))", "pass")
    id = f"hear:{module(text, 'fake_hear_bare')}"
    (tmp_path / "w").write_bytes(b"weights")
    assert load_model(f"{id}:{tmp_path / 'w'}").card.weights_sha256 == sha256_of_file(tmp_path / "w")
    assert load_model(id).card.weights_sha256 is None


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("hear:no_such_module_x", "no module 'no_such_module_x' can be imported; install the package"),
        ("hear:", "no module '' can be imported"),
        ("hear:json", r"'json' has no load_model\(\); it is not a HEAR module"),
        ("hear:fake_hear_module:/no/such/file", "there is no file '/no/such/file' for load_model"),
    ],
)
@pytest.mark.usefixtures("theirs")
def test_what_is_no_hear_module(name: str, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        load_model(name)


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("return model\n", "return 3\n", "makes a int; an encoder of HEAR must be a torch.nn.Module; TensorFlow"),
        ("scene_embedding_size,", "scene_size,", "has no scene_embedding_size, which HEAR requires"),
        ("def get_scene", "def scene", r"has no get_scene_embeddings\(\)"),
        ("import torch\n", "import torch, no_such_dependency\n", "needs the package no_such_dependency; install it"),
    ],
)
def test_modules_that_lack_something(old: str, new: str, message: str, module: Write) -> None:
    with pytest.raises(ValueError, match=message):
        load_model(f"hear:{module(MODULE.replace(old, new), 'fake_hear_lacking')}")


def test_options_are_refused(module: str) -> None:
    with pytest.raises(ValueError, match="runs its module's code: it takes no layer"):
        load_model(f"hear:{module}", options=EncoderOptions(pooling="max"))


def test_our_scene_embedding_is_the_encoders_own(saved: Saved) -> None:
    model = hear.load_model(str(saved("whisper")))
    assert isinstance(model, torch.nn.Module)
    assert (model.sample_rate, model.scene_embedding_size, model.timestamp_embedding_size) == (16_000, 32, 32)
    clips = different_clips(16_000, 1)
    embeddings = hear.get_scene_embeddings(torch.from_numpy(clips), model)
    assert embeddings.dtype == torch.float32
    np.testing.assert_array_equal(embeddings.numpy(), load_model(str(saved("whisper"))).embed(clips, 16_000))


def test_a_rate_that_hear_does_not_provide_becomes_the_next_higher() -> None:
    model = hear.load_model("log-mel-statistics")
    assert (model.encoder.card.sample_rate, model.sample_rate) == (32_000, 44_100)
    clips = different_clips(44_100, 1)
    ours = load_model("log-mel-statistics").embed(clips, 44_100)
    np.testing.assert_array_equal(hear.get_scene_embeddings(torch.from_numpy(clips), model).numpy(), ours)


def test_timestamps_are_the_middles_of_frames(saved: Saved) -> None:
    model = hear.load_model(str(saved("whisper")))
    clips = different_clips(16_000, 1.5)
    embeddings, times = hear.get_timestamp_embeddings(torch.from_numpy(clips), model)
    assert embeddings.shape == (3, 75, 32)
    # A frame of Whisper is 20 ms.
    np.testing.assert_allclose(times[2].numpy(), 10 + 20 * np.arange(75), atol=1e-3)
    assert isinstance(model.encoder, ModelEncoder)
    np.testing.assert_array_equal(embeddings.numpy(), model.encoder.embed_frames(clips, 16_000)[0])


def test_without_frames_a_timestamp_is_the_second_around_it() -> None:
    model = hear.load_model("downsample")
    rate = model.sample_rate
    clip = np.random.default_rng(0).normal(0, 0.1, (2, 2 * rate)).astype(np.float32)
    embeddings, times = hear.get_timestamp_embeddings(torch.from_numpy(clip), model)
    assert embeddings.shape == (2, 40, 768)
    np.testing.assert_allclose(times[1].numpy(), 25 + 50 * np.arange(40), atol=1e-3)
    encoder = load_model("downsample")
    middle = round(0.825 * rate)
    window = clip[:, middle - rate // 2 : middle - rate // 2 + rate]
    np.testing.assert_allclose(embeddings[:, 16].numpy(), encoder.embed(window, rate), atol=1e-6)
    start = round(0.025 * rate)
    first = np.pad(clip[:, : start + rate // 2], ((0, 0), (rate // 2 - start, 0)))
    np.testing.assert_allclose(embeddings[:, 0].numpy(), encoder.embed(first, rate), atol=1e-6)


def test_the_model_path_must_be_an_encoder() -> None:
    with pytest.raises(ValueError, match="pass a model's name as its path, such as --model whisper-base"):
        hear.load_model()
    with pytest.raises(ValueError, match="did you mean 'whisper-base'"):
        hear.load_model("wisper-base")
