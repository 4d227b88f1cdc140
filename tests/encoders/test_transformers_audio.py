from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch
import transformers

from audio_compositionality.encoders import load_encoder

FAMILIES = [
    "wav2vec2",
    "wav2vec2-masked",
    "hubert",
    "wavlm",
    "speech-to-text",
    "w2v-bert",
    "ast",
    "clap",
    "clap-fusion",
    "whisper",
]
RATES = {"clap": 48_000, "clap-fusion": 48_000}

Saved = Callable[[str], Path]
MakeClips = Callable[[int, float], np.ndarray]


def relative_error(actual: np.ndarray, expected: np.ndarray) -> float:
    return float(np.abs(actual - expected).max() / np.abs(expected).max())


@pytest.mark.parametrize("family", FAMILIES)
def test_rate_dimension_and_id(family: str, saved: Saved) -> None:
    encoder = load_encoder(str(saved(family)))
    assert encoder.id == family
    assert encoder.sample_rate == RATES.get(family, 16_000)
    assert encoder.output_dim == (24 if family.startswith("clap") else 32)
    assert encoder.revision.startswith("sha256-")


@pytest.mark.parametrize("family", FAMILIES)
def test_a_clip_embeds_the_same_alone_in_a_batch_and_again(family: str, saved: Saved, make_clips: MakeClips) -> None:
    encoder = load_encoder(str(saved(family)))
    clips = make_clips(encoder.sample_rate, 0.5)
    together = encoder.embed(clips, encoder.sample_rate)
    alone = np.concatenate([encoder.embed(clip[None], encoder.sample_rate) for clip in clips])
    assert relative_error(together, alone) < 1e-4
    np.testing.assert_array_equal(encoder.embed(clips, encoder.sample_rate), together)
    reversed_order = encoder.embed(clips[::-1], encoder.sample_rate)[::-1]
    assert relative_error(reversed_order, together) < 1e-4
    # The clips are different sounds, so their embeddings must differ by more than rounding.
    assert min(relative_error(together[i], together[j]) for i, j in [(0, 1), (0, 2), (1, 2)]) > 1e-3


@pytest.mark.parametrize("family", FAMILIES)
def test_a_tone_from_32_khz_embeds_like_the_tone_at_the_models_rate(family: str, saved: Saved) -> None:
    encoder = load_encoder(str(saved(family)))

    def tone(frequency: float, rate: int) -> np.ndarray:
        t = np.arange(rate) / rate
        noise = np.random.default_rng(1).normal(size=64) @ np.sin(2 * np.pi * np.outer(np.linspace(50, 7000, 64), t))
        return ((0.5 * np.sin(2 * np.pi * frequency * t) + 0.003 * noise) * np.hanning(rate))[None]

    own, other = (encoder.embed(tone(f, encoder.sample_rate), encoder.sample_rate) for f in (400.0, 1700.0))
    resampled = encoder.embed(tone(400.0, 32_000), 32_000)
    assert np.linalg.norm(resampled - own) < 0.1 * np.linalg.norm(other - own)


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
    assert relative_error(load_encoder(str(folder)).embed(clips, 16_000), np.stack(expected)) < 1e-5


def test_frames_of_padding_are_left_out(saved: Saved, make_clips: MakeClips) -> None:
    """The extractor of w2v-BERT pairs frames of 10 ms and pads an odd last one."""
    folder = saved("w2v-bert")
    clips = make_clips(16_000, 0.705)
    inputs = transformers.SeamlessM4TFeatureExtractor.from_pretrained(folder)(
        list(clips), sampling_rate=16_000, return_tensors="pt"
    )
    assert (inputs["attention_mask"] == 0).sum(1).tolist() == [1, 1, 1]
    with torch.no_grad():
        hidden = transformers.Wav2Vec2BertModel.from_pretrained(folder).eval()(**inputs)[0].numpy()
    encoder = load_encoder(str(folder))
    assert relative_error(encoder.embed(clips, 16_000), hidden[:, :-1].mean(axis=1)) < 1e-5
    assert relative_error(encoder.embed(clips, 16_000), hidden.mean(axis=1)) > 1e-3


def test_encoder_decoder_model_embeds_with_its_encoder(saved: Saved, make_clips: MakeClips) -> None:
    folder = saved("speech-to-text")
    clips = make_clips(16_000, 1.0)
    inputs = transformers.Speech2TextFeatureExtractor.from_pretrained(folder)(
        list(clips), sampling_rate=16_000, return_tensors="pt"
    )
    with torch.no_grad():
        hidden = transformers.Speech2TextModel.from_pretrained(folder).eval().encoder(**inputs)[0].numpy()
    assert relative_error(load_encoder(str(folder)).embed(clips, 16_000), hidden.mean(axis=1)) < 1e-5


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
    assert relative_error(load_encoder(str(folder)).embed(clips, 16_000), hidden[:, kept].mean(axis=1)) < 1e-5


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
    assert relative_error(load_encoder(str(folder)).embed(clips, 48_000), expected) < 1e-5


@pytest.mark.parametrize("family", ["clap", "clap-fusion"])
def test_clap_takes_its_exact_window_from_32_khz(family: str, saved: Saved, make_clips: MakeClips) -> None:
    encoder = load_encoder(str(saved(family)))
    assert encoder.embed(make_clips(32_000, 2.0), 32_000).shape == (3, 24)


@pytest.mark.parametrize(
    ("family", "seconds", "longest"), [("clap", 2.1, "2 s"), ("ast", 2.2, "2.06494 s"), ("whisper", 3.1, "3 s")]
)
def test_clips_longer_than_the_window_are_refused(
    family: str, seconds: float, longest: str, saved: Saved, make_clips: MakeClips
) -> None:
    encoder = load_encoder(str(saved(family)))
    with pytest.raises(ValueError, match=f"clips last {seconds} s, but '{family}' takes {longest} at most"):
        encoder.embed(make_clips(encoder.sample_rate, seconds), encoder.sample_rate)


@pytest.mark.parametrize("family", ["wav2vec2", "speech-to-text", "ast"])
def test_clips_shorter_than_a_frame_are_refused(family: str, saved: Saved) -> None:
    encoder = load_encoder(str(saved(family)))
    samples = 100 if family != "wav2vec2" else 40
    complaint = {"speech-to-text": "cannot take clips of"}.get(family, "are shorter than one frame of")
    with pytest.raises(ValueError, match=rf"'{family}'") as caught:
        encoder.embed(np.full((1, samples), 0.1), 16_000)
    assert complaint in str(caught.value)
    assert f"{samples} samples at 16000 Hz" in str(caught.value)


def test_nan_weights_are_found_out(saved: Saved, make_clips: MakeClips) -> None:
    encoder = load_encoder(str(saved("wav2vec2")))
    with torch.no_grad():
        encoder._model.encoder.layer_norm.bias.fill_(float("nan"))
    with pytest.raises(ValueError, match="'wav2vec2' returned 32 of 32 values that are NaN"):
        encoder.embed(make_clips(16_000, 1.0), 16_000)


def test_models_that_cannot_be_embedded_with_say_why(tmp_path: Path) -> None:
    t = transformers
    text = tmp_path / "text"
    t.BertConfig().save_pretrained(text)
    with pytest.raises(ValueError, match=r"'text' \(model type 'bert'\) has no feature extractor"):
        load_encoder(str(text))

    image = tmp_path / "image"
    t.ViTConfig().save_pretrained(image)
    (image / "preprocessor_config.json").write_text('{"image_processor_type": "ViTImageProcessor"}')
    with pytest.raises(ValueError, match=r"'image' \(model type 'vit'\)"):
        load_encoder(str(image))

    several = tmp_path / "several"
    t.Qwen2AudioConfig().save_pretrained(several)
    t.WhisperFeatureExtractor().save_pretrained(several)
    with pytest.raises(ValueError, match=r"'several'.* several modalities \(audio_config, text_config\)"):
        load_encoder(str(several))

    codec = tmp_path / "codec"
    config = t.EncodecConfig(
        num_filters=2, hidden_size=8, num_lstm_layers=1, codebook_size=16, upsampling_ratios=[4, 2]
    )
    t.EncodecModel(config).save_pretrained(codec)
    t.EncodecFeatureExtractor().save_pretrained(codec)
    with pytest.raises(ValueError, match=r"EncodecModel returns no last_hidden_state.*'encodec'.* class of its own"):
        load_encoder(str(codec))

    mixed = tmp_path / "mixed"
    t.Wav2Vec2Config().save_pretrained(mixed)
    t.WhisperFeatureExtractor().save_pretrained(mixed)
    with pytest.raises(ValueError, match="the model takes 'input_values', but its WhisperFeatureExtractor makes"):
        load_encoder(f"untrained:{mixed}")


def test_padding_that_cannot_be_told_from_sound_is_refused(tmp_path: Path, saved: Saved) -> None:
    """An extractor that pads to a window without an attention mask, before a model of frames."""
    folder = tmp_path / "padded"
    config = transformers.Speech2TextConfig.from_pretrained(saved("speech-to-text"))
    config.save_pretrained(folder)
    transformers.WhisperFeatureExtractor(chunk_length=3).save_pretrained(folder)
    with pytest.raises(ValueError, match="pads every clip to one length and returns no attention mask"):
        load_encoder(f"untrained:{folder}")
