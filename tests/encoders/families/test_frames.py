from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import transformers

from audio_compositionality.encoders.base import ClipError
from audio_compositionality.encoders.loading.registry import load_model
from audio_compositionality.encoders.options import EncoderOptions

FRAMES = {
    "wav2vec2": (8, 89, 89),
    "wav2vec2-masked": (8, 89, 89),
    "wav2vec2-adapter": (32, 23, 89),
    "hubert": (8, 89, 89),
    "wavlm": (8, 89, 89),
    "sew": (8, 88, 44),
    "sew-d": (8, 88, 44),
    "unispeech": (8, 89, 89),
    "unispeech-sat": (8, 89, 89),
    "data2vec-audio": (8, 89, 89),
    "wav2vec2-conformer": (8, 89, 89),
    "speech-to-text": (40, 18, 18),
    "w2v-bert": (20, 34, 34),
}
"""By family: milliseconds between frames, and frames of sound in 0.71 s, of the output and of the layers.

Convolutions with kernels (10, 3, 3) and strides (8, 4, 4) make 1419, 355 and 89 of 11,360 samples; strides of adapters
45 and 23. SEW has half of them, rounded down. Kaldi's 69 windows of 25 ms are halved twice by speech-to-text (35, 18),
and taken by pairs by w2v-BERT, where an odd one is padded.
"""

Saved = Callable[[str], Path]
Save = Callable[[str, Path], Path]
MakeClips = Callable[[int, float], np.ndarray]


def relative_error(actual: np.ndarray, expected: np.ndarray) -> float:
    return float(np.abs(actual - expected).max() / np.abs(expected).max())


def called_by_hand(folder: Path, clips: np.ndarray, rate: int = 16_000) -> transformers.utils.ModelOutput:
    """What transformers returns, called as its documentation does."""
    extractor = transformers.AutoFeatureExtractor.from_pretrained(folder)
    model = transformers.AutoModel.from_pretrained(folder).eval()
    if model.config.is_encoder_decoder:
        model = model.get_encoder()
    with torch.no_grad():
        inputs = extractor(list(clips), sampling_rate=rate, return_tensors="pt")
        return model(**inputs, output_hidden_states=True)


@pytest.mark.parametrize("family", list(FRAMES))
def test_the_mean_over_the_frames_of_sound(family: str, saved: Saved, make_clips: MakeClips) -> None:
    folder, clips = saved(family), make_clips(16_000, 0.71)
    milliseconds, count, _ = FRAMES[family]
    expected = called_by_hand(folder, clips).last_hidden_state[:, :count].numpy()
    encoder = load_model(str(folder))
    frames, seconds = encoder.embed_frames(clips, 16_000)
    assert frames.shape == expected.shape
    assert seconds == pytest.approx(milliseconds / 1000, rel=1e-12)
    assert relative_error(frames, expected) < 1e-5
    assert relative_error(encoder.embed(clips, 16_000), expected.mean(axis=1)) < 1e-5
    highest = load_model(str(folder), options=EncoderOptions(pooling="max"))
    assert highest.card.id == f"{family}@pooling=max"
    assert relative_error(highest.embed(clips, 16_000), expected.max(axis=1)) < 1e-5


@pytest.mark.parametrize("family", list(FRAMES))
def test_layers_are_those_of_transformers(family: str, saved: Saved, make_clips: MakeClips) -> None:
    folder, clips = saved(family), make_clips(16_000, 0.71)
    milliseconds, at_output, count = FRAMES[family]
    states = called_by_hand(folder, clips).hidden_states
    embeddings = []
    for layer, state in enumerate(states):
        encoder = load_model(str(folder), options=EncoderOptions(layer=layer))
        assert (encoder.num_layers, encoder.card.output_dim) == (2, 32)
        frames, seconds = encoder.embed_frames(clips, 16_000)
        assert frames.shape == (3, count, 32)
        assert seconds * count == pytest.approx(milliseconds * at_output / 1000, rel=0.05)
        embeddings.append(encoder.embed(clips, 16_000))
        assert relative_error(embeddings[-1], state[:, :count].mean(dim=1).numpy()) < 1e-5
    assert len(embeddings) == 3
    assert min(relative_error(embeddings[k], embeddings[k + 1]) for k in range(2)) > 1e-3


@pytest.mark.parametrize("family", [family for family in FRAMES if family != "wav2vec2-adapter"])
def test_the_last_layer_is_the_output_but_for_some(family: str, saved: Saved, make_clips: MakeClips) -> None:
    """Tiny models with a norm of all blocks' output, and those with upsampling."""
    clips = make_clips(16_000, 0.71)
    output = load_model(str(saved(family))).embed(clips, 16_000)
    last = load_model(str(saved(family)), options=EncoderOptions(layer=2)).embed(clips, 16_000)
    others = {"wav2vec2-masked", "hubert", "unispeech-sat", "wav2vec2-conformer", "sew", "sew-d"}
    assert (relative_error(last, output) > 1e-2) is (family in others)


def test_blocks_that_a_layer_does_not_need_are_not_run(saved: Saved) -> None:
    def blocks(layer: int | None) -> int:
        return len(load_model(str(saved("wav2vec2")), options=EncoderOptions(layer=layer))._model.encoder.layers)

    assert [blocks(layer) for layer in (None, 2, 1, 0)] == [2, 2, 2, 1]


def test_options_that_a_model_cannot_be_run_with(saved: Saved) -> None:
    with pytest.raises(ValueError, match="'wav2vec2' has the layers 0 to 2, but layer 3 is asked for"):
        load_model(str(saved("wav2vec2")), options=EncoderOptions(layer=3))
    with pytest.raises(ValueError, match="'wav2vec2' has no class token, so pooling can be mean or max, not cls"):
        load_model(str(saved("wav2vec2")), options=EncoderOptions(pooling="cls"))


@pytest.mark.slow
def test_frames_of_padding_are_zeros_or_masked_and_left_out(saved: Saved, make_clips: MakeClips) -> None:
    """The extractor of w2v-BERT pairs frames of 10 ms and pads an odd last one; SEW fills up an odd number by zeros."""
    clips = make_clips(16_000, 0.71)
    inputs = transformers.SeamlessM4TFeatureExtractor.from_pretrained(saved("w2v-bert"))(
        list(clips), sampling_rate=16_000, return_tensors="pt"
    )
    assert (inputs["attention_mask"] == 0).sum(1).tolist() == [1, 1, 1]
    hidden = called_by_hand(saved("w2v-bert"), clips).last_hidden_state.numpy()
    assert relative_error(load_model(str(saved("w2v-bert"))).embed(clips, 16_000), hidden.mean(axis=1)) > 1e-3
    of_sew = called_by_hand(saved("sew"), clips).last_hidden_state
    assert of_sew.shape[1] == 89
    assert not of_sew[:, 88].any()
    assert of_sew[:, 87].all()


@pytest.mark.parametrize("do_normalize", [True, False])
def test_the_normalisation_of_the_checkpoint_is_kept(
    do_normalize: bool, tmp_path: Path, save: Save, make_clips: MakeClips
) -> None:
    folder = save("wav2vec2-masked", tmp_path / "model")
    transformers.Wav2Vec2FeatureExtractor(do_normalize=do_normalize).save_pretrained(folder)
    encoder, clips = load_model(str(folder)), make_clips(16_000, 0.5)[:2]
    change = relative_error(encoder.embed(clips / 2 + 0.1, 16_000), encoder.embed(clips, 16_000))
    assert change < 1e-4 if do_normalize else change > 1e-2


@pytest.mark.parametrize("family", ["wav2vec2", "wav2vec2-masked", "hubert", "wavlm"])
def test_speech_models_equal_the_model_called_by_hand(family: str, saved: Saved, make_clips: MakeClips) -> None:
    folder = saved(family)
    clips = make_clips(16_000, 0.7)
    model = transformers.AutoModel.from_pretrained(folder).eval()
    with torch.no_grad():
        expected = [
            model(torch.from_numpy((clip - clip.mean()) / np.sqrt(clip.var() + 1e-7))[None])[0][0].mean(0).numpy()
            for clip in clips
        ]
    assert relative_error(load_model(str(folder)).embed(clips, 16_000), np.stack(expected)) < 1e-5


@pytest.mark.parametrize("seconds", [0.025, 0.13, 1.0, 2.05])
def test_ast_pools_the_patches_that_begin_within_the_clip(seconds: float, saved: Saved, make_clips: MakeClips) -> None:
    folder = saved("ast")
    clips = make_clips(16_000, seconds)
    inputs = transformers.ASTFeatureExtractor.from_pretrained(folder)(
        list(clips), sampling_rate=16_000, return_tensors="pt"
    )
    with torch.no_grad():
        hidden = transformers.ASTModel.from_pretrained(folder).eval()(**inputs)[0].numpy()
    # 32 bands in patches of 16 every 8: 3 rows. 204 frames in patches of 16 every 12: 16 columns.
    assert hidden.shape[1] == 2 + 3 * 16
    kept = [
        2 + row * 16 + column
        for row in range(3)
        for column in range(16)
        # The patch begins 12 frames of 10 ms a column into the spectrogram, whose frames last 25 ms.
        if column * 0.12 <= seconds - 0.025 + 1e-9
    ]
    assert relative_error(load_model(str(folder)).embed(clips, 16_000), hidden[:, kept].mean(axis=1)) < 1e-5


@pytest.mark.parametrize("family", ["clap", "clap-fusion"])
@pytest.mark.parametrize("seconds", [0.6, 2.0])
def test_clap_equals_the_model_called_by_hand(family: str, seconds: float, saved: Saved, make_clips: MakeClips) -> None:
    folder = saved(family)
    clips = make_clips(48_000, seconds)
    model = transformers.ClapModel.from_pretrained(folder).eval()
    extractor = transformers.ClapFeatureExtractor.from_pretrained(folder)
    mel = extractor(list(clips), sampling_rate=48_000, return_tensors="pt")["input_features"]
    with torch.no_grad():
        # No clip is longer than the window, so none takes the branch for feature fusion.
        hidden = model.audio_model(mel, is_longer=torch.zeros(3, 1, dtype=torch.bool)).pooler_output
        projected = model.audio_projection(hidden).numpy()
    expected = projected / np.linalg.norm(projected, axis=1, keepdims=True)
    assert relative_error(load_model(str(folder)).embed(clips, 48_000), expected) < 1e-5


@pytest.mark.parametrize("family", ["clap", "clap-fusion"])
def test_clap_takes_its_exact_window_from_32_khz(family: str, saved: Saved, make_clips: MakeClips) -> None:
    encoder = load_model(str(saved(family)))
    assert encoder.embed(make_clips(32_000, 2.0), 32_000).shape == (3, 24)


@pytest.mark.parametrize(("family", "seconds", "longest"), [("ast", 2.2, "2.06494 s"), ("whisper", 3.1, "3 s")])
def test_clips_longer_than_the_window_are_refused(
    family: str, seconds: float, longest: str, saved: Saved, make_clips: MakeClips
) -> None:
    encoder = load_model(str(saved(family)))
    with pytest.raises(ValueError, match=f"clips last {seconds} s, but '{family}' takes {longest} at most"):
        encoder.embed(make_clips(encoder.card.sample_rate, seconds), encoder.card.sample_rate)


@pytest.mark.parametrize("family", ["wav2vec2", "speech-to-text", "ast"])
def test_clips_shorter_than_a_frame_are_refused(family: str, saved: Saved) -> None:
    encoder = load_model(str(saved(family)))
    samples = 100 if family != "wav2vec2" else 40
    complaint = {"speech-to-text": "cannot take clips of"}.get(family, "are shorter than one frame of")
    with pytest.raises(ValueError, match=rf"'{family}'") as caught:
        encoder.embed(np.full((1, samples), 0.1), 16_000)
    assert complaint in str(caught.value)
    assert f"{samples} samples at 16000 Hz" in str(caught.value)


def test_a_clip_that_cannot_be_normalised_is_named(saved: Saved, make_clips: MakeClips) -> None:
    """Speech-to-text divides by the deviation of each band over time."""
    encoder, clips = load_model(str(saved("speech-to-text"))), make_clips(16_000, 0.5)
    clips[1] = 0
    with pytest.raises(ClipError, match=r"row 1: .*'speech-to-text' cannot normalise a clip of 8000 samples") as caught:
        encoder.embed(clips, 16_000)
    assert caught.value.row == 1
    with pytest.raises(ClipError, match=r"row 0: .*a clip of 400 samples at 16000 Hz: .* there is only one"):
        encoder.embed(make_clips(16_000, 0.025), 16_000)


def test_nan_weights_are_found_out(saved: Saved, make_clips: MakeClips) -> None:
    encoder = load_model(str(saved("wav2vec2")))
    with torch.no_grad():
        encoder._model.encoder.layer_norm.bias.fill_(float("nan"))
    with pytest.raises(ValueError, match="'wav2vec2' returned 32 of 32 values that are NaN"):
        encoder.embed(make_clips(16_000, 1.0), 16_000)


def test_models_that_cannot_be_embedded_with_say_why_and_how_to_wrap_them(tmp_path: Path) -> None:
    t = transformers

    def write(name: str, config: Any, extractor: Any) -> str:
        config.save_pretrained(tmp_path / name)
        extractor.save_pretrained(tmp_path / name)
        return f"untrained:{tmp_path / name}"

    def refused(encoder: str, message: str) -> None:
        with pytest.raises(ValueError, match=message) as caught:
            load_model(encoder)
        assert "`embed(waveforms, sample_rate)`" in str(caught.value)
        assert "pass path/to/file.py:ClassName" in str(caught.value)

    t.BertConfig().save_pretrained(tmp_path / "text")
    refused(str(tmp_path / "text"), r"'text' \(model type 'bert'\) has no feature extractor")

    image = write("image", t.ViTConfig(), t.WhisperFeatureExtractor())
    (tmp_path / "image" / "preprocessor_config.json").write_text('{"image_processor_type": "ViTImageProcessor"}')
    refused(image, r"'image' \(model type 'vit'\)")

    (tmp_path / "unknown").mkdir()
    (tmp_path / "unknown" / "config.json").write_text('{"model_type": "new-audio-model"}')
    refused(str(tmp_path / "unknown"), "cannot read the configuration of 'unknown'.*new-audio-model")

    several = write("several", t.VoxtralConfig(), t.WhisperFeatureExtractor())
    refused(several, r"'several' \(model type 'voxtral'\).* several parts \(audio_config, text_config\)")

    small = {"hidden_size": 32, "num_attention_heads": 4, "intermediate_size": 32, "num_hidden_layers": 1}
    vocoder = write("vocoder", t.UnivNetConfig(), t.UnivNetFeatureExtractor())
    refused(vocoder, "a UnivNetModel returns no last_hidden_state")
    subsampled = write("subsampled", t.LasrEncoderConfig(**small), t.LasrFeatureExtractor())
    refused(subsampled, "returns 22 frames for 98 steps of its input.* does not say how many of them are sound")
    inner = t.SpeechT5Config(
        hidden_size=32,
        encoder_layers=1,
        decoder_layers=1,
        encoder_attention_heads=4,
        decoder_attention_heads=4,
        vocab_size=9,
    )
    refused(
        write("inner", inner, t.SpeechT5FeatureExtractor()), "cannot run on what its SpeechT5FeatureExtractor makes"
    )


def test_a_front_end_of_another_family_is_refused(tmp_path: Path) -> None:
    transformers.Wav2Vec2Config(hidden_size=16, num_hidden_layers=1, num_attention_heads=2).save_pretrained(tmp_path)
    transformers.WhisperFeatureExtractor().save_pretrained(tmp_path)
    with pytest.raises(ValueError, match="the model takes 'input_values', but its WhisperFeatureExtractor makes"):
        load_model(f"untrained:{tmp_path}")


def test_padding_that_cannot_be_told_from_sound_is_refused(tmp_path: Path, saved: Saved) -> None:
    """An extractor that pads to a window without an attention mask, before a model of frames."""
    folder = tmp_path / "padded"
    config = transformers.Speech2TextConfig.from_pretrained(saved("speech-to-text"))
    config.save_pretrained(folder)
    transformers.WhisperFeatureExtractor(chunk_length=3).save_pretrained(folder)
    with pytest.raises(ValueError, match="pads every clip to one length and returns no attention mask"):
        load_model(f"untrained:{folder}")
