"""MS-CLAP 2022 and 2023 with small networks: front ends against librosa, windows counted by hand, layers, lengths.

`test_checkpoints.py` has their files, `test_ms_clap_texts.py` their texts; `tests/encoders/test_references.py` compares
the whole models with the published package.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Any

import librosa
import numpy as np
import pytest
import torch

from audio_compositionality.encoders.families.ms_clap import MsClap2022Encoder, MsClapEncoder
from audio_compositionality.encoders.loading.registry import load_model
from audio_compositionality.encoders.networks import htsat
from audio_compositionality.encoders.options import EncoderOptions

from ..contract import CHANNELS, different_clips, small_networks

RATE = 44_100
WINDOWS = [(0, 689), (344, 1033), (688, 1377)]
"""First frame and end of the windows that the model of 2023 averages 10 s over."""

Load = Callable[..., Any]


@pytest.fixture
def load() -> Iterator[Load]:
    """Function of a year and of options: a small model with fresh weights."""

    def load(year: int, **options: Any) -> MsClapEncoder | MsClap2022Encoder:
        encoder = load_model(f"untrained:ms-clap-{year}", device="cpu", options=EncoderOptions(**options), seed=3)
        assert isinstance(encoder, (MsClapEncoder, MsClap2022Encoder))
        return encoder

    with small_networks():
        yield load


def librosa_log_mel(clips: np.ndarray, highest: int = 8_000) -> torch.Tensor:
    """[n, frames, mels] in decibels: the published configuration, 1,024 samples every 320, 64 bands from 50 Hz on."""
    mel = librosa.feature.melspectrogram(
        y=clips, sr=RATE, n_fft=1024, hop_length=320, n_mels=64, fmin=50, fmax=highest, pad_mode="reflect"
    )
    return torch.from_numpy(librosa.power_to_db(mel, amin=1e-10, top_db=None)).mT


def assert_same_log_mel(actual: torch.Tensor, expected: torch.Tensor) -> None:
    # Single precision differs from librosa's double in bands of a tone that are near the trivial baseline.
    torch.testing.assert_close(actual, expected, rtol=0, atol=0.2)
    assert float((actual - expected).abs().mean()) < 1e-3


def test_ten_seconds_are_the_mean_of_three_windows(load: Load) -> None:
    clips = different_clips(RATE, 10.0)
    log_mel = librosa_log_mel(clips)
    assert log_mel.shape[1] == 1 + 10 * RATE // 320
    encoder = load(2023)
    windows = [log_mel[:, None, start:end] for start, end in WINDOWS]
    with torch.no_grad():
        latent = sum(encoder._model.htsat(window).pooler_output for window in windows) / 3
        projection = encoder._model.projection
        first = latent @ projection.linear1.weight.T
        second = torch.nn.functional.gelu(first) @ projection.linear2.weight.T
        expected = torch.nn.functional.layer_norm(first + second, (1024,)).numpy()
    actual = encoder.embed(clips, RATE)
    assert np.abs(actual - expected).max() < 1e-4 * np.abs(expected).max()


@pytest.mark.parametrize(
    ("frames", "windows"),
    [
        (1025, [(0, 689)]),
        (1035, [(0, 689), (344, 1033)]),
        (1379, WINDOWS),
    ],
)
def test_windows_of_longer_clips(frames: int, windows: list[tuple[int, int]], load: Load) -> None:
    """range(0, frames - 690, 344), from which the package's model takes windows where there are more than 1,024."""
    clips = different_clips(RATE, (frames - 1) * 320 / RATE)[:2]
    log_mel = librosa_log_mel(clips)
    assert log_mel.shape[1] == frames
    expected = torch.stack([log_mel[:, start:end] for start, end in windows], dim=1)
    assert_same_log_mel(load(2023)._extract_features(clips).log_mel, expected)


def test_the_front_end_of_2022_goes_up_to_14_khz(load: Load) -> None:
    clips = different_clips(RATE, 6.0)[:2]
    assert_same_log_mel(load(2022)._extract_features(clips).log_mel, librosa_log_mel(clips, 14_000))


@pytest.mark.parametrize("seconds", [2.0])
@pytest.mark.parametrize(("year", "window", "hop"), [(2023, 7, 965 * 320 / RATE / 32), (2022, 5, 32 * 320 / RATE)])
def test_shorter_clips_are_repeated(year: int, window: int, hop: float, seconds: float, load: Load) -> None:
    clips = different_clips(RATE, seconds)
    repeated = np.tile(clips, math.ceil(window / seconds))[:, : window * RATE]
    encoder = load(year)
    np.testing.assert_array_equal(encoder.embed(clips, RATE), encoder.embed(repeated, RATE))
    frames, frame_seconds = encoder.embed_frames(clips, RATE)
    assert frame_seconds == pytest.approx(hop)
    assert frames.shape[1] == math.ceil(seconds / frame_seconds)


@pytest.mark.parametrize(
    ("year", "layer", "frames", "dim", "hop"),
    [
        *((2023, layer, *sizes, None) for layer, sizes in ((0, (512, 4)), (3, (64, 32)))),
        (2023, 4, 64, 32, None),
        *((2022, layer, 1379 // 2**blocks, dim, 2**blocks * 320 / RATE)
          for layer, blocks, dim in ((0, 0, 64), (5, 5, CHANNELS[4]), (6, 5, CHANNELS[5]))),
    ],
)  # fmt: skip
def test_layers(year: int, layer: int, frames: int, dim: int, hop: float | None, load: Load) -> None:
    clips = different_clips(RATE, 10.0)[:2]
    encoder = load(year, layer=layer)
    hidden, frame_seconds = encoder.embed_frames(clips, RATE)
    assert hidden.shape == (2, frames, dim)
    assert frame_seconds == pytest.approx(hop or 10 / frames, rel=1e-3)
    assert encoder.card.output_dim == dim
    np.testing.assert_allclose(encoder.embed(clips, RATE), hidden.mean(axis=1), rtol=1e-5, atol=1e-5)
    highest = load(year, layer=layer, pooling="max").embed(clips, RATE)
    np.testing.assert_allclose(highest, hidden.max(axis=1), atol=1e-6)
    if (year, layer) == (2022, 6):
        # Another pooling is that of the last block.
        np.testing.assert_allclose(load(year, pooling="max").embed(clips, RATE), highest, atol=1e-6)


@pytest.mark.parametrize("moment", [1.3, 6.02])
def test_a_change_of_sound_changes_the_frames_of_its_moment(moment: float, load: Load) -> None:
    before = np.random.default_rng(0).normal(0, 0.1, (1, 10 * RATE)).astype(np.float32)
    after = before.copy()
    after[:, round((moment - 0.01) * RATE) : round((moment + 0.01) * RATE)] *= 0.01
    encoder = load(2023, layer=0)
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
