"""MS-CLAP with a small HTSAT: its front end against librosa, its windows counted by hand, and wrong checkpoints."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import librosa
import numpy as np
import pytest
import torch
from compare import fixture_state
from safetensors.numpy import save_file
from transformers import ClapAudioConfig

from audio_compositionality.encoders.families.ms_clap import UNUSED, MsClapEncoder, convert_ms_clap
from audio_compositionality.encoders.loading.registry import load_model
from audio_compositionality.encoders.loading.weights import load_exactly
from audio_compositionality.encoders.model_encoder import ModelEncoder
from audio_compositionality.encoders.networks import htsat
from audio_compositionality.encoders.options import EncoderOptions

RATE = 44_100
HTSAT = "audio_encoder.base.htsat."
SMALL = {
    "depths": [1, 2, 1, 1], "num_attention_heads": [1, 1, 2, 2], "patch_embeds_hidden_size": 4, "hidden_size": 32,
}  # fmt: skip
FRAMES = 1 + 10 * RATE // 320
WINDOWS = [(0, 689), (344, 1033), (688, 1377)]
"""First frame and end of the windows that the model averages 10 s over."""

MakeClips = Callable[[int, float], np.ndarray]


@pytest.fixture
def load(monkeypatch: pytest.MonkeyPatch) -> Callable[..., MsClapEncoder]:
    """Function of options: a small model with fresh weights."""
    monkeypatch.setattr(htsat, "ms_clap_config", partial(ClapAudioConfig, **SMALL))

    def load(**options: Any) -> MsClapEncoder:
        encoder = load_model("untrained:ms-clap-2023", device="cpu", options=EncoderOptions(**options), seed=3)
        assert isinstance(encoder, MsClapEncoder)
        return encoder

    return load


@pytest.fixture(scope="session")
def official() -> dict[str, torch.Tensor]:
    """A checkpoint of the full size by the official names, but for the constants that follow from the architecture."""
    return {name: torch.from_numpy(array) for name, array in fixture_state("ms-clap-2023").items()}


def librosa_log_mel(clips: np.ndarray) -> torch.Tensor:
    """[n, frames, mels] in decibels: the published configuration (1,024 samples every 320, 64 bands, 50-8000 Hz)."""
    mel = librosa.feature.melspectrogram(
        y=clips, sr=RATE, n_fft=1024, hop_length=320, n_mels=64, fmin=50, fmax=8000, pad_mode="reflect"
    )
    return torch.from_numpy(librosa.power_to_db(mel, amin=1e-10, top_db=None)).mT


def by_hand(encoder: MsClapEncoder, windows: list[torch.Tensor]) -> np.ndarray:
    """Embeddings of clips from windows [n, frames, mels]: the mean of HTSAT's outputs, projected."""
    with torch.no_grad():
        latent = sum(encoder._model.htsat(window[:, None]).pooler_output for window in windows) / len(windows)
        projection = encoder._model.projection
        first = latent @ projection.linear1.weight.T
        second = torch.nn.functional.gelu(first) @ projection.linear2.weight.T
        return torch.nn.functional.layer_norm(first + second, (1024,)).numpy()


def test_ten_seconds_are_the_mean_of_three_windows(load: Callable[..., MsClapEncoder], make_clips: MakeClips) -> None:
    clips = make_clips(RATE, 10.0)
    log_mel = librosa_log_mel(clips)
    assert log_mel.shape[1] == FRAMES
    encoder = load()
    expected = by_hand(encoder, [log_mel[:, start:end] for start, end in WINDOWS])
    actual = encoder.embed(clips, RATE)
    assert actual.shape == (3, 1024)
    assert np.abs(actual - expected).max() < 1e-4 * np.abs(expected).max()
    np.testing.assert_array_equal(encoder.embed(clips, RATE), actual)
    alone = np.concatenate([encoder.embed(clip[None], RATE) for clip in clips])
    np.testing.assert_allclose(actual, alone, atol=1e-4)
    distances = [np.abs(actual[i] - actual[j]).max() for i, j in [(0, 1), (0, 2), (1, 2)]]
    assert min(distances) > 1e-2


@pytest.mark.parametrize(
    ("frames", "windows"),
    [
        (1024, [(0, 1024)]),
        (1025, [(0, 689)]),
        (1034, [(0, 689)]),
        (1035, [(0, 689), (344, 1033)]),
        (1378, [(0, 689), (344, 1033)]),
        (1379, WINDOWS),
    ],
)
def test_windows_of_longer_clips(
    frames: int, windows: list[tuple[int, int]], load: Callable[..., MsClapEncoder], make_clips: MakeClips
) -> None:
    """range(0, frames - 690, 344), from which the package's model takes windows where there are more than 1,024."""
    clips = make_clips(RATE, (frames - 1) * 320 / RATE)
    log_mel = librosa_log_mel(clips)
    assert log_mel.shape[1] == frames
    actual = load()._extract_features(clips).log_mel
    expected = torch.stack([log_mel[:, start:end] for start, end in windows], dim=1)
    # Single precision differs from librosa's double in bands of a tone that are near the floor.
    torch.testing.assert_close(actual, expected, rtol=0, atol=0.2)
    assert float((actual - expected).abs().mean()) < 1e-3


@pytest.mark.parametrize("seconds", [3.5, 2.0, 0.01])
def test_shorter_clips_are_repeated_up_to_seven_seconds(
    seconds: float, load: Callable[..., MsClapEncoder], make_clips: MakeClips
) -> None:
    clips = make_clips(RATE, seconds)
    repeated = np.tile(clips, math.ceil(7 / seconds))[:, : 7 * RATE]
    encoder = load()
    np.testing.assert_array_equal(encoder.embed(clips, RATE), encoder.embed(repeated, RATE))
    frames, frame_seconds = encoder.embed_frames(clips, RATE)
    assert frame_seconds == pytest.approx(965 * 320 / RATE / 32)
    assert frames.shape[1] == math.ceil(seconds / frame_seconds)


@pytest.mark.parametrize(("layer", "frames", "dim"), [(0, 512, 4), (1, 256, 8), (2, 128, 16), (3, 64, 32), (4, 64, 32)])
def test_layers(layer: int, frames: int, dim: int, load: Callable[..., MsClapEncoder], make_clips: MakeClips) -> None:
    clips = make_clips(RATE, 10.0)
    encoder = load(layer=layer)
    found, frame_seconds = encoder.embed_frames(clips, RATE)
    assert found.shape == (3, frames, dim)
    assert frame_seconds * frames == pytest.approx(10, abs=0.01)
    assert encoder.card.output_dim == dim
    np.testing.assert_allclose(encoder.embed(clips, RATE), found.mean(axis=1), atol=1e-5)
    np.testing.assert_allclose(load(layer=layer, pooling="max").embed(clips, RATE), found.max(axis=1), atol=1e-6)


@pytest.mark.parametrize("moment", [1.3, 2.45, 6.02, 9.1])
def test_a_change_of_sound_changes_the_frames_of_its_moment(moment: float, load: Callable[..., MsClapEncoder]) -> None:
    before = np.random.default_rng(0).normal(0, 0.1, (1, 10 * RATE)).astype(np.float32)
    after = before.copy()
    after[:, round((moment - 0.01) * RATE) : round((moment + 0.01) * RATE)] *= 0.01
    encoder = load(layer=0)
    (first, frame_seconds), (second, _) = (encoder.embed_frames(clip, RATE) for clip in (before, after))
    change = np.abs(first - second).max(axis=2)[0]
    assert abs((change.argmax() + 0.5) * frame_seconds - moment) < 0.05
    far = np.abs((np.arange(len(change)) + 0.5) * frame_seconds - moment) > 0.15
    assert change[far].max() < 1e-3 * change.max()


def test_windows_that_overlap_by_half_are_averaged() -> None:
    windows = torch.tensor([[[1.0, 2.0, 3.0, 4.0], [5.0, 6.0, 7.0, 8.0], [0.0, 0.0, 0.0, 2.0]]])[..., None]
    expected = [1, 2, (3 + 5) / 2, (4 + 6) / 2, 7 / 2, 8 / 2, 0, 2]
    assert htsat.overlap_mean(windows)[0, :, 0].tolist() == expected
    assert htsat.overlap_mean(windows[:, :1])[0, :, 0].tolist() == [1, 2, 3, 4]


def test_every_tensor_of_the_official_checkpoint_is_accounted_for(official: dict[str, torch.Tensor]) -> None:
    """What the file holds beside the audio encoder's weights: buffers, the text encoder and the temperature."""
    others = {
        HTSAT + "layers.0.blocks.0.attn.relative_position_index": torch.zeros(64, 64, dtype=torch.int64),
        HTSAT + "layers.0.blocks.1.attn_mask": torch.zeros(64, 64, 64),
        "caption_encoder.base.wte.weight": torch.zeros(2, 2),
        "caption_encoder.projection.linear1.weight": torch.zeros(2, 2),
        "logit_scale": torch.zeros(()),
    }
    model = htsat.MsClap()
    load_exactly(model, convert_ms_clap({**official, **others}), "file", UNUSED)
    attention = model.htsat.audio_encoder.layers[2].blocks[5].attention.self
    stored = official[HTSAT + "layers.2.blocks.5.attn.qkv.weight"]
    torch.testing.assert_close(
        torch.cat([attention.query.weight, attention.key.weight, attention.value.weight]), stored
    )
    torch.testing.assert_close(model.log_mel.filters, official[HTSAT + "logmel_extractor.melW"])


@pytest.mark.parametrize(
    ("name", "complaint"),
    [
        (
            "layers.1.blocks.0.attn.qkv.bias",
            r"3 missing: htsat\.audio_encoder\.layers\.1\.blocks\.0\.attention\.self\.key",
        ),
        ("layers.0.downsample.norm.weight", r"1 missing: htsat\.audio_encoder\.layers\.0\.downsample\.norm\.weight"),
        ("logmel_extractor.melW", "1 missing: log_mel.filters"),
        ("spectrogram_extractor.stft.conv_real.weight", r"conv_real\.weight' are missing"),
    ],
)
def test_missing_weights_are_named(name: str, complaint: str, official: dict[str, torch.Tensor]) -> None:
    state = {key: tensor for key, tensor in official.items() if key != HTSAT + name}
    with pytest.raises(ValueError, match=complaint):
        load_exactly(htsat.MsClap(), convert_ms_clap(state), "file", UNUSED)


def test_left_over_and_reshaped_weights_are_named(official: dict[str, torch.Tensor]) -> None:
    extra = {
        HTSAT + "layers.0.blocks.2.norm1.weight": torch.zeros(96),
        "audio_encoder.base.htsat.bn0.weight": torch.zeros(8),
    }
    with pytest.raises(
        ValueError, match=r"batch_norm\.weight \(stored \(8,\).*1 unexpected: .*blocks\.2\.layernorm_before"
    ):
        load_exactly(htsat.MsClap(), convert_ms_clap({**official, **extra}), "file", UNUSED)


def test_another_fourier_transform_is_refused(official: dict[str, torch.Tensor]) -> None:
    name = HTSAT + "spectrogram_extractor.stft.conv_imag.weight"
    with pytest.raises(ValueError, match=r"conv_imag\.weight' differ by .* was trained with another front end"):
        convert_ms_clap({**official, name: -official[name]})
    with pytest.raises(
        ValueError, match=r"have the shape \(257, 1, 512\), but must be there in the shape \(513, 1, 1024\)"
    ):
        convert_ms_clap({**official, name: torch.zeros(257, 1, 512)})


def test_the_stored_mel_filters_are_used(
    official: dict[str, torch.Tensor], tmp_path: Path, make_clips: MakeClips
) -> None:
    """Those that the package builds without a checkpoint are for 32 kHz, 50-14,000 Hz."""
    filters = librosa.filters.mel(sr=32_000, n_fft=1024, n_mels=64, fmin=50, fmax=14_000).T
    state = {name: tensor.numpy() for name, tensor in official.items()}
    state[HTSAT + "logmel_extractor.melW"] = np.ascontiguousarray(filters)
    path = tmp_path / "other.safetensors"
    save_file(state, path)
    encoder = load_model(f"ms-clap-2023={path}", device="cpu")
    assert isinstance(encoder, ModelEncoder)
    clips = make_clips(RATE, 7.0)
    power = np.abs(librosa.stft(clips, n_fft=1024, hop_length=320, pad_mode="reflect")) ** 2
    expected = librosa.power_to_db(filters.T @ power, amin=1e-10, top_db=None)
    actual = encoder._extract_features(clips).log_mel[:, 0].mT.numpy()
    assert np.abs(actual - expected).mean() < 1e-3
