"""A narrow PaSST with two blocks; `tests/encoders/test_references.py` compares the whole model with the package."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np
import pytest
import torch

from audio_compositionality.encoders.loading.registry import load_model
from audio_compositionality.encoders.model_encoder import ModelEncoder
from audio_compositionality.encoders.options import EncoderOptions

from ..contract import PASST, different_clips, small_networks

RATE = 32_000
DIM = PASST["DIM"]


@pytest.fixture
def load() -> Iterator[Callable[..., ModelEncoder]]:
    """Function of options: a small model with fresh weights."""
    with small_networks():
        yield lambda **options: load_model("untrained:passt-s", device="cpu", options=EncoderOptions(**options))


def test_frames_and_tokens(load: Callable[..., ModelEncoder]) -> None:
    """Twelve bands of eleven moments, behind the class and the distillation token; a frame is of one moment."""
    clips = different_clips(RATE, 1.23)
    encoder = load()
    with torch.no_grad():
        (tokens,) = encoder._model(encoder.prepare(clips, RATE), (None,))
    assert tokens.shape == (3, 2 + 12 * 11, DIM)
    frames, frame_seconds = encoder.embed_frames(clips, RATE)
    expected = torch.stack([tokens[:, 2 + moment :: 11].mean(dim=1) for moment in range(11)], dim=1)
    np.testing.assert_allclose(frames, expected, atol=1e-5)
    assert frame_seconds == 0.1
    own, cls, mean = (load(pooling=pooling).embed(clips, RATE) for pooling in (None, "cls", "mean"))
    np.testing.assert_allclose(own, (tokens[:, 0] + tokens[:, 1]) / 2, atol=1e-5)
    np.testing.assert_array_equal(own, cls)
    np.testing.assert_allclose(mean, frames.mean(axis=1), atol=1e-6)


def test_a_layer_is_what_a_block_gives(load: Callable[..., ModelEncoder]) -> None:
    """Layer 0 is the input of the first; the model's own embedding is of its output only."""
    clips, encoder, states = different_clips(RATE, 0.5), load(), list[torch.Tensor]()
    blocks = encoder._model.blocks
    blocks[0].register_forward_pre_hook(lambda _, inputs: states.append(inputs[0]))
    for block in blocks:
        block.register_forward_hook(lambda _, inputs, output: states.append(output))
    encoder.embed(clips, RATE)
    for layer, state in enumerate(states):
        expected = state[:, 2:].unflatten(1, (12, -1)).mean(dim=(1, 2))
        np.testing.assert_allclose(load(layer=layer).embed(clips, RATE), expected, atol=1e-5)


def test_lengths(load: Callable[..., ModelEncoder]) -> None:
    encoder = load()
    assert encoder.embed_frames(np.zeros((1, 4801)), RATE)[0].shape == (1, 1, DIM)
    assert encoder.embed_frames(np.zeros((1, 320_000)), RATE)[0].shape == (1, 99, DIM)
    with pytest.raises(ValueError, match=r"clips of 4800 samples at 32000 Hz are shorter than one frame of.*\(4801"):
        encoder.embed(np.zeros((1, 4800)), RATE)
    with pytest.raises(ValueError, match=r"clips last 10\.5 s, but 'untrained:passt-s' takes at most 10 s"):
        encoder.embed(np.zeros((1, 336_000)), RATE)
