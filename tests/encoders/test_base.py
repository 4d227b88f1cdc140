from __future__ import annotations

import numpy as np
import pytest

from audio_compositionality.encoders.base import (
    AudioEncoder,
    AudioLanguageModel,
    ClipError,
    ModelCard,
    ModelError,
    StagedEncoder,
    check_waveforms,
    output_dim_of,
    resample,
)
from audio_compositionality.encoders.loading.registry import load_model


class Minimal:
    """The least that is an encoder."""

    card = ModelCard("minimal", "v1", 16_000, 2)
    device = "cpu"

    def embed(self, waveforms, sample_rate):
        return np.zeros((len(waveforms), 2), np.float32)


class Fixed(StagedEncoder[np.ndarray]):
    """Returns what it was made with."""

    card = ModelCard("fixed", "v1", 16_000, 2)

    def __init__(self, output) -> None:
        self.output = np.asarray(output)

    def _extract_features(self, clips):
        return clips

    def _run_model(self, features):
        return self.output


def test_protocol_is_checked_at_run_time() -> None:
    assert isinstance(Minimal(), AudioEncoder)
    assert isinstance(load_model("random"), AudioEncoder)
    assert not isinstance(object(), AudioEncoder)
    assert not isinstance(Minimal(), AudioLanguageModel)


def test_an_encoder_whose_card_states_no_dimension() -> None:
    encoder = Minimal()
    encoder.card = ModelCard("minimal", "v1", 16_000, None)
    with pytest.raises(ModelError, match="the card of 'minimal' states no output_dim"):
        output_dim_of(encoder)


def test_int16_is_scaled_to_full_scale() -> None:
    np.testing.assert_array_equal(
        check_waveforms(np.array([[-32_768, 16_384, 0]], np.int16)), np.array([[-1.0, 0.5, 0.0]], np.float32)
    )


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
def test_floating_input_becomes_float32(dtype: type) -> None:
    clips = check_waveforms(np.array([[0.5, -0.25]], dtype))
    assert clips.dtype == np.float32
    np.testing.assert_array_equal(clips, [[0.5, -0.25]])


@pytest.mark.parametrize(
    ("waveforms", "message"),
    [
        (np.zeros(100), r"shape \(100,\), but must be \[n, samples\]; wrap a single clip"),
        (np.zeros((2, 2, 100)), r"shape \(2, 2, 100\), but must be \[n, samples\]"),
        (np.zeros((0, 100)), r"shape \(0, 100\), but must hold a clip"),
        (np.zeros((2, 0)), r"shape \(2, 0\), but must hold a clip and a sample"),
        (np.zeros((1, 5), np.int32), "are int32, but must be floating"),
        (np.zeros((1, 5), np.complex64), "are complex64, but must be floating"),
    ],
)
def test_bad_waveforms_are_named(waveforms: np.ndarray, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        load_model("random").embed(waveforms, 32_000)


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_a_clip_that_is_not_finite_is_named(value: float) -> None:
    clips = np.zeros((4, 50), np.float32)
    clips[2, 7] = value
    with pytest.raises(ClipError, match=f"row 2: the waveform holds {value} at sample 7") as caught:
        load_model("random").embed(clips, 32_000)
    assert caught.value.row == 2


@pytest.mark.parametrize("rate", [0, -1, 16_000.5, True])
def test_bad_sample_rate(rate: float) -> None:
    with pytest.raises(ValueError, match="positive whole number of Hz"):
        load_model("random").embed(np.zeros((1, 10)), rate)


@pytest.mark.parametrize(("source", "target"), [(32_000, 16_000), (32_000, 48_000), (44_100, 16_000), (8_000, 32_000)])
def test_resampling_a_tone_gives_the_tone_at_the_new_rate(source: int, target: int) -> None:
    def tone(rate: int) -> np.ndarray:
        t = np.arange(rate) / rate
        return (np.sin(2 * np.pi * 1000 * t) * np.hanning(rate)).astype(np.float32)[None]

    out = resample(tone(source), source, target)
    assert out.shape == (1, target)
    assert out.dtype == np.float32
    # The two Hann windows end one sample apart at their own rates: 1e-3 allows for that.
    np.testing.assert_allclose(out, tone(target), atol=1e-3)


def test_resampling_removes_what_the_new_rate_cannot_hold() -> None:
    t = np.arange(32_000) / 32_000
    high = (np.sin(2 * np.pi * 12_000 * t) * np.hanning(32_000)).astype(np.float32)[None]
    assert np.abs(resample(high, 32_000, 16_000)).max() < 1e-4


def test_resampling_does_not_depend_on_the_batch() -> None:
    clips = np.random.default_rng(0).normal(size=(3, 3200)).astype(np.float32)
    alone = np.concatenate([resample(clip[None], 32_000, 16_000) for clip in clips])
    np.testing.assert_array_equal(resample(clips, 32_000, 16_000), alone)


def test_a_clip_shorter_than_a_sample_is_refused() -> None:
    with pytest.raises(ValueError, match="1 samples at 32000 Hz are shorter than one sample at 100 Hz"):
        resample(np.zeros((1, 1), np.float32), 32_000, 100)


def test_outputs_are_checked() -> None:
    clips = np.zeros((2, 10))
    with pytest.raises(
        ClipError, match="row 1: encoder 'fixed' returned 1 of 2 values that are NaN or infinite"
    ) as caught:
        Fixed([[0.0, 1.0], [np.nan, 1.0]]).embed(clips, 16_000)
    assert caught.value.row == 1
    with pytest.raises(ValueError, match=r"'fixed' returned shape \(2, 3\), but must return \[n, 2\]"):
        Fixed(np.zeros((2, 3))).embed(clips, 16_000)
    with pytest.raises(ValueError, match="'fixed' returned int64, but must return floating"):
        Fixed([[1, 2], [3, 4]]).embed(clips, 16_000)
    assert Fixed([[1.0, 2.0]]).embed(clips, 16_000).dtype == np.float32
