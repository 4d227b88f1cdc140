from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch
import transformers

from audio_compositionality.encoders.front_ends.whisper import WhisperLogMel
from audio_compositionality.encoders.loading.registry import load_model
from audio_compositionality.encoders.options import EncoderOptions

MakeClips = Callable[[int, float], np.ndarray]


def by_hand(folder: Path, clips: np.ndarray) -> np.ndarray:
    """Whisper as its documentation calls it, and the mean over the frames of the clip."""
    inputs = transformers.WhisperFeatureExtractor.from_pretrained(folder)(
        list(clips), sampling_rate=16_000, return_tensors="pt", return_attention_mask=True
    )
    model = transformers.WhisperModel.from_pretrained(folder).eval()
    with torch.no_grad():
        hidden = model.encoder(inputs.input_features).last_hidden_state.numpy()
    frames = (inputs.attention_mask.sum(1) - 1) // 2 + 1
    return np.stack([row[:n].mean(axis=0) for row, n in zip(hidden, frames, strict=True)])


def relative_error(actual: np.ndarray, expected: np.ndarray) -> float:
    return float(np.abs(actual - expected).max() / np.abs(expected).max())


@pytest.mark.parametrize("samples", [1, 159, 160, 161, 200, 201, 4_321, 16_000, 47_599, 47_600, 47_840, 48_000])
def test_log_mel_is_that_of_transformers_to_the_bit(samples: int) -> None:
    extractor = transformers.WhisperFeatureExtractor(chunk_length=3)
    rng = np.random.default_rng(samples)
    clips = (rng.normal(size=(3, samples)) * [[0.3], [1e-3], [0.0]]).astype(np.float32)
    expected = extractor(list(clips), sampling_rate=16_000, return_tensors="pt").input_features
    # Equal on the machines it was tried on; another one may sum a shorter matrix in another order.
    torch.testing.assert_close(WhisperLogMel(extractor)(torch.from_numpy(clips)), expected, rtol=0, atol=1e-6)


@pytest.mark.parametrize("seconds", [0.01, 0.5, 1.0, 1.337, 3.0])
def test_equals_the_model_called_by_hand(seconds: float, saved: Callable[[str], Path], make_clips: MakeClips) -> None:
    folder = saved("whisper")
    clips = make_clips(16_000, seconds)
    assert relative_error(load_model(str(folder)).embed(clips, 16_000), by_hand(folder, clips)) < 1e-5


def test_frames_of_the_clip_are_a_third_of_the_window_for_10_seconds(saved: Callable[[str], Path]) -> None:
    assert load_model(str(saved("whisper"))).prepare(np.zeros((1, 16_000)), 16_000).frames == 50


def test_the_decoder_is_not_kept_and_attention_is_fused(saved: Callable[[str], Path]) -> None:
    model = load_model(str(saved("whisper")))._model
    assert isinstance(model, transformers.models.whisper.modeling_whisper.WhisperEncoder)
    assert model.config._attn_implementation == "sdpa"


def test_a_front_end_of_another_model_is_refused(tmp_path: Path, save: Callable[[str, Path], Path]) -> None:
    folder = save("whisper", tmp_path / "other")
    transformers.WhisperFeatureExtractor(feature_size=16, chunk_length=30).save_pretrained(folder)
    with pytest.raises(ValueError, match="makes 3000 frames, but the model takes 300"):
        load_model(str(folder))
    transformers.WhisperFeatureExtractor(feature_size=80, chunk_length=3).save_pretrained(folder)
    with pytest.raises(ValueError, match="makes 80 mel bands, but the model takes 16"):
        load_model(str(folder))
    transformers.Wav2Vec2FeatureExtractor().save_pretrained(folder)
    with pytest.raises(ValueError, match="comes with a Wav2Vec2FeatureExtractor"):
        load_model(str(folder))


@pytest.mark.weights
def test_real_weights(real_whisper: Path, make_clips: MakeClips) -> None:
    encoder = load_model(str(real_whisper))
    clips = make_clips(16_000, 10.0)
    assert encoder.prepare(clips, 16_000).frames == 500
    together = encoder.embed(clips, 16_000)
    assert relative_error(together, by_hand(real_whisper, clips)) < 1e-4
    alone = np.concatenate([encoder.embed(clip[None], 16_000) for clip in clips])
    assert relative_error(together, alone) < 1e-4

    untrained = load_model(f"untrained:{real_whisper}")
    assert untrained.card.id == f"untrained:{real_whisper.name}"
    assert untrained.card.output_dim == encoder.card.output_dim
    assert relative_error(untrained.embed(clips[:1], 16_000), together[:1]) > 0.1


def test_layers_and_pooling(saved: Callable[[str], Path], make_clips: MakeClips) -> None:
    folder, clips = saved("whisper"), make_clips(16_000, 1.0)
    inputs = transformers.WhisperFeatureExtractor.from_pretrained(folder)(
        list(clips), sampling_rate=16_000, return_tensors="pt"
    )
    model = transformers.WhisperModel.from_pretrained(folder).eval()
    with torch.no_grad():
        output = model.encoder(inputs.input_features, output_hidden_states=True)
    assert len(output.hidden_states) == 3
    for layer, hidden in enumerate(output.hidden_states):
        for pooling, expected in (("mean", hidden[:, :50].mean(1)), ("max", hidden[:, :50].amax(1))):
            encoder = load_model(str(folder), options=EncoderOptions(layer=layer, pooling=pooling))
            assert encoder.card.id == f"whisper@layer={layer}+pooling={pooling}"
            assert relative_error(encoder.embed(clips, 16_000), expected.numpy()) < 1e-5
    last = load_model(str(folder), options=EncoderOptions(layer=2)).embed(clips, 16_000)
    np.testing.assert_array_equal(last, load_model(str(folder)).embed(clips, 16_000))

    frames, seconds = load_model(str(folder)).embed_frames(clips, 16_000)
    assert seconds == 0.02
    assert relative_error(frames, output.last_hidden_state[:, :50].numpy()) < 1e-5

    with pytest.raises(ValueError, match="'whisper' has the layers 0 to 2, but layer 3 is asked for"):
        load_model(str(folder), options=EncoderOptions(layer=3))
    with pytest.raises(ValueError, match="'whisper' has no class token, so pooling can be mean or max, not cls"):
        load_model(str(folder), options=EncoderOptions(pooling="cls"))


def test_clips_of_different_lengths(saved: Callable[[str], Path], make_clips: MakeClips) -> None:
    encoder = load_model(str(saved("whisper")))
    clips = [clip[:length] for clip, length in zip(make_clips(16_000, 2.0), (16_000, 32_000, 16_000), strict=True)]
    alone = np.concatenate([encoder.embed(clip[None], 16_000) for clip in clips])
    np.testing.assert_allclose(encoder.embed(clips, 16_000), alone, rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("precision", ["bfloat16", "float16"])
def test_reduced_precision_is_near_float32_and_its_deviation_is_told(
    precision: str, saved: Callable[[str], Path], make_clips: MakeClips
) -> None:
    folder, clips = str(saved("whisper")), make_clips(16_000, 1.0)
    exact, reduced = load_model(folder), load_model(folder, options=EncoderOptions(precision=precision))
    assert reduced.card.id == f"whisper@{precision}"
    error = reduced.embed(clips, 16_000) - exact.embed(clips, 16_000)
    relative = np.linalg.norm(error, axis=1) / np.linalg.norm(exact.embed(clips, 16_000), axis=1)
    deviation = reduced.precision_deviation(clips, 16_000)
    assert 0 < relative.max() < 0.02
    assert deviation["relative_max"] == pytest.approx(relative.max(), rel=1e-3)
    assert deviation["relative_mean"] == pytest.approx(relative.mean(), rel=1e-3)
    assert 0 < deviation["spread_ratio"] < 1
    assert reduced.embed(clips, 16_000).dtype == np.float32
    assert exact.precision_deviation(clips, 16_000)["relative_max"] == 0
