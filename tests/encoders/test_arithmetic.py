"""Reduced precision and compilation, with models of several kinds."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch

from audio_compositionality.encoders.base import ModelCard
from audio_compositionality.encoders.loading.registry import load_model
from audio_compositionality.encoders.model_encoder import Hidden, ModelEncoder
from audio_compositionality.encoders.options import EncoderOptions

from .contract import encoder_name

Saved = Callable[[str], Path]
MakeClips = Callable[[int, float], np.ndarray]


class Rounded(ModelEncoder[torch.Tensor]):
    """Embeds a clip as its first two samples; in reduced precision, with a known error."""

    error = torch.tensor([[0.0, 0.3], [0.0, 0.0], [0.4, 0.0]])

    def __init__(self, precision: str) -> None:
        card = ModelCard("rounded", "1", 16_000, 2, options=EncoderOptions(precision=precision))
        super().__init__(card, num_layers=0, device=torch.device("cpu"))

    def _extract_features(self, clips: np.ndarray) -> torch.Tensor:
        return self._on_device(clips[:, :2])

    def _encode(self, features: torch.Tensor) -> Hidden:
        is_reduced = torch.is_autocast_enabled("cpu")
        frames = features + self.error if is_reduced else features
        return Hidden(frames[:, None], 1.0)


@pytest.mark.parametrize("precision", ["bfloat16", "float16"])
def test_the_deviation_of_reduced_precision_by_hand(precision: str) -> None:
    clips = np.array([[0.6, 0.8, 0], [0.0, 0.5, 0], [0.3, -0.4, 0]], np.float32)
    encoder = Rounded(precision)
    np.testing.assert_allclose(encoder.embed(clips, 16_000), clips[:, :2] + Rounded.error.numpy())
    deviation = encoder.precision_deviation(clips, 16_000)
    # Errors .3, 0 and .4 of norms 1, .5 and .5; the mean is (.3, .3), from which the clips are at .34, .13 and .49,
    # squared.
    assert deviation["relative_mean"] == pytest.approx((0.3 + 0 + 0.8) / 3, rel=1e-5)
    assert deviation["relative_max"] == pytest.approx(0.8, rel=1e-5)
    assert deviation["spread_ratio"] == pytest.approx(np.sqrt((0.09 + 0.16) / (0.34 + 0.13 + 0.49)), rel=1e-5)
    exact = Rounded("float32")
    np.testing.assert_array_equal(exact.embed(clips, 16_000), clips[:, :2])
    assert set(exact.precision_deviation(clips, 16_000).values()) == {0.0}


@pytest.mark.parametrize("precision", ["bfloat16", "float16"])
@pytest.mark.parametrize("family", ["wav2vec2", "w2v-bert", "encodec", "pe-audio", "qwen2-audio"])
def test_every_kind_of_model_runs_in_reduced_precision(
    family: str, precision: str, saved: Saved, make_clips: MakeClips
) -> None:
    name = encoder_name(family, saved(family))
    encoder = load_model(name, device="cpu", options=EncoderOptions(precision=precision))
    assert encoder.card.id == f"{name.replace(str(saved(family)), family)}@{precision}"
    clips = make_clips(encoder.card.sample_rate, 0.71)
    assert encoder.embed(clips, encoder.card.sample_rate).dtype == np.float32
    # Something is rounded; how much, random weights on whatever processor do not say.
    assert encoder.precision_deviation(clips, encoder.card.sample_rate)["relative_max"] > 0


@pytest.mark.parametrize("family", ["whisper", "clap", "ast"])
def test_a_callers_autocast_changes_nothing(family: str, saved: Saved, make_clips: MakeClips) -> None:
    encoder = load_model(str(saved(family)), device="cpu")
    clips = make_clips(encoder.card.sample_rate, 0.71)
    expected = encoder.embed(clips, encoder.card.sample_rate)
    with torch.autocast("cpu", torch.bfloat16):
        np.testing.assert_array_equal(encoder.embed(clips, encoder.card.sample_rate), expected)
