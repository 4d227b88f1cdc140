"""The encoder of X-ARES as its checker states it; `tests/references/xares_suite.py` runs the real package."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from audio_compositionality.encoders.adapters import xares
from audio_compositionality.encoders.loading.registry import load_model
from audio_compositionality.encoders.model_encoder import ModelEncoder
from audio_compositionality.encoders.options import EncoderOptions

from ..contract import Saved, different_clips

THEIRS = """
import torch

class FramesEncoder(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.sampling_rate, self.output_dim, self.hop_size_in_ms = 16_000, 3, 10
        self.scale = torch.nn.Parameter(torch.tensor([1.0, 2.0, 3.0]))
        self.dropout = torch.nn.Dropout(0.5)

    def forward(self, audio):
        frames = audio.unfold(1, 160, 160)
        values = torch.stack([frames.mean(2), frames.amax(2), frames.amin(2)], dim=2)
        return self.dropout(values) * self.scale
"""


@pytest.fixture
def theirs(tmp_path: Path) -> str:
    (tmp_path / "frames_encoder.py").write_text(THEIRS)
    return f"xares:{tmp_path / 'frames_encoder.py'}:FramesEncoder"


def expected_frames(clips: np.ndarray) -> np.ndarray:
    frames = clips.reshape(len(clips), -1, 160)
    return np.stack([frames.mean(2), 2 * frames.max(2), 3 * frames.min(2)], axis=2)


def test_their_frames_are_pooled(theirs: str) -> None:
    clips = different_clips(16_000, 1)
    encoder = load_model(theirs, device="cpu")
    assert (encoder.card.id, encoder.card.sample_rate, encoder.card.output_dim) == ("xares:FramesEncoder", 16_000, 3)
    np.testing.assert_allclose(encoder.embed(clips, 16_000), expected_frames(clips).mean(1), atol=1e-6)
    loudest = load_model(theirs, device="cpu", options=EncoderOptions(pooling="max"))
    assert loudest.card.id == "xares:FramesEncoder@pooling=max"
    np.testing.assert_allclose(loudest.embed(clips, 16_000), expected_frames(clips).max(1), atol=1e-6)
    assert isinstance(encoder, ModelEncoder)
    frames, seconds = encoder.embed_frames(clips, 16_000)
    np.testing.assert_allclose(frames, expected_frames(clips), atol=1e-6)
    assert seconds == 0.01


def test_their_revision_follows_code_and_weights(theirs: str, tmp_path: Path) -> None:
    first = load_model(theirs)
    assert first.card.weights_sha256
    assert first.card.revision == load_model(theirs).card.revision
    (tmp_path / "frames_encoder.py").write_text(THEIRS.replace("1.0, 2.0, 3.0", "1.0, 2.0, 4.0"))
    changed = load_model(theirs)
    assert changed.card.weights_sha256 != first.card.weights_sha256
    assert changed.card.revision.partition("-weights-")[0] != first.card.revision.partition("-weights-")[0]


NO_MODULE = THEIRS.replace("torch.nn.Module", "object").replace("torch.nn.Parameter", "torch.as_tensor")


@pytest.mark.parametrize(
    ("text", "options", "message"),
    [
        (NO_MODULE, {}, "makes a FramesEncoder; an encoder of X-ARES must be a torch.nn.Module"),
        (THEIRS.replace("sampling_rate", "rate"), {}, "of 'FramesEncoder' has no sampling_rate, which X-ARES requires"),
        (THEIRS.replace("hop_size_in_ms", "hop"), {}, "has no hop_size_in_ms"),
        (THEIRS.replace("* self.scale", "[:, 0]"), {}, r"returned \(2, 3\), but must return \[2, frames, dim\]"),
        (THEIRS, {"layer": 0}, "returns one layer: it takes no --layer"),
        (THEIRS, {"pooling": "cls"}, "has no class token"),
    ],
)
def test_a_class_that_is_no_encoder(text: str, options: dict[str, Any], message: str, tmp_path: Path) -> None:
    (tmp_path / "wrong.py").write_text(text)
    with pytest.raises(ValueError, match=message):
        load_model(f"xares:{tmp_path / 'wrong.py'}:FramesEncoder", options=EncoderOptions(**options)).embed(
            np.zeros((2, 1_600)), 16_000
        )


def test_our_encoder_as_theirs(saved: Saved) -> None:
    class TinyEncoder(xares.XaresEncoder):
        model_name = str(saved("whisper"))

    model = TinyEncoder()
    assert isinstance(model, torch.nn.Module)
    # A frame of Whisper is 20 ms.
    assert (model.sampling_rate, model.output_dim, model.hop_size_in_ms) == (16_000, 32, pytest.approx(20))
    clips = different_clips(16_000, 2)
    frames = model(torch.from_numpy(clips))
    assert frames.shape == (3, 100, 32)
    assert frames.dtype == torch.float32
    ours = load_model(str(saved("whisper"))).embed(clips, 16_000)
    np.testing.assert_allclose(frames.mean(1).numpy(), ours, atol=1e-5)
    np.testing.assert_allclose(model(torch.from_numpy(clips[1]))[0].numpy(), frames[1].numpy(), atol=1e-5)


def test_our_encoder_without_frames_gives_windows_of_a_second() -> None:
    class DownsampleEncoder(xares.XaresEncoder):
        model_name = "downsample"

    model = DownsampleEncoder()
    assert (model.sampling_rate, model.output_dim, model.hop_size_in_ms) == (32_000, 768, pytest.approx(500))
    clip = np.random.default_rng(0).normal(0, 0.1, (1, 64_000)).astype(np.float32)
    frames = model(torch.from_numpy(clip))
    assert frames.shape == (1, 4, 768)
    # The second frame is about 0.75 s, so about the samples from 0.25 s to 1.25 s.
    expected = load_model("downsample").embed(clip[:, 8_000:40_000], 32_000)
    np.testing.assert_allclose(frames[:, 1].numpy(), expected, atol=1e-6)


def test_a_class_without_an_encoder() -> None:
    class EmptyEncoder(xares.XaresEncoder):
        pass

    with pytest.raises(ValueError, match="EmptyEncoder names no model: set model_name"):
        EmptyEncoder()
