from __future__ import annotations

import numpy as np
import pytest
import torch
from transformers import ASTFeatureExtractor

from audio_compositionality.encoders.families.audiomae import AudioMaeEncoder
from audio_compositionality.encoders.loading.registry import load_model
from audio_compositionality.encoders.options import DEFAULT_OPTIONS, EncoderOptions

from ..contract import different_clips, small_networks

pytestmark = pytest.mark.filterwarnings("ignore:At least one mel filter")


def load_two_blocks(options: EncoderOptions = DEFAULT_OPTIONS) -> AudioMaeEncoder:
    with small_networks():
        loaded = load_model("untrained:audiomae", device="cpu", options=options)
    assert isinstance(loaded, AudioMaeEncoder)
    return loaded


@pytest.fixture(scope="module")
def encoder() -> AudioMaeEncoder:
    return load_two_blocks()


def patches_by_hand(encoder: AudioMaeEncoder, clips: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Class token [n, dim] and patches [n, columns, bands, dim]; the extractor's defaults are AudioMAE's front end."""
    window = ASTFeatureExtractor()(list(clips), sampling_rate=16_000, return_tensors="pt")["input_values"]
    with torch.no_grad():
        hidden = encoder._model(window[:, None]).last_hidden_state.numpy()
    return hidden[:, 0], hidden[:, 1:].reshape(len(clips), 64, 8, -1)


@pytest.mark.parametrize(("seconds", "columns"), [(0.175, 1), (0.185, 2), (1.0, 7)])
def test_pools_the_patches_that_begin_within_the_clip(seconds: float, columns: int, encoder: AudioMaeEncoder) -> None:
    clips = different_clips(16_000, seconds)[:1]
    expected = patches_by_hand(encoder, clips)[1][:, :columns].mean(axis=2)
    frames, hop = encoder.embed_frames(clips, 16_000)
    np.testing.assert_allclose(frames, expected, atol=1e-4 * np.abs(expected).max())
    assert hop == pytest.approx(0.16)
    np.testing.assert_allclose(encoder.embed(clips, 16_000), frames.mean(axis=1), atol=1e-5)


def test_class_token_and_layers(encoder: AudioMaeEncoder) -> None:
    clips = different_clips(16_000, 0.5)[:2]

    def embed(layer: int | None) -> np.ndarray:
        return load_two_blocks(EncoderOptions(layer=layer, pooling="cls")).embed(clips, 16_000)

    token = patches_by_hand(encoder, clips)[0]
    np.testing.assert_allclose(embed(None), token, atol=1e-4 * np.abs(token).max())
    # What the first block takes is the same class token for every clip; the output is normalised, the last block's not.
    np.testing.assert_array_equal(*embed(0))
    last = torch.from_numpy(embed(2))
    with torch.no_grad():
        np.testing.assert_allclose(encoder._model.layernorm(last), token, atol=1e-4 * np.abs(token).max())
    assert float(np.abs(last.numpy() - token).max()) > 0.1


def test_lengths_that_do_not_fit_the_window_are_refused(encoder: AudioMaeEncoder) -> None:
    with pytest.raises(ValueError, match="shorter than one frame of 'untrained:audiomae'"):
        encoder.embed(np.zeros((1, 399)), 16_000)
    with pytest.raises(ValueError, match=r"clips last 11 s, but 'untrained:audiomae' takes at most 10.2649 s"):
        encoder.embed(np.zeros((1, 176_000)), 16_000)
    longest = 400 + 1_024 * 160 - 1
    assert encoder.prepare(np.zeros((1, longest)), 16_000).frames == 1_024
    with pytest.raises(ValueError, match=r"clips last 10.265 s, but 'untrained:audiomae' takes at most 10.2649 s"):
        encoder.prepare(np.zeros((1, longest + 1)), 16_000)
