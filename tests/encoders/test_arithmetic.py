"""Reduced precision and compilation, with models of several kinds."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch
import transformers

from audio_compositionality.encoders.loading.registry import load_model
from audio_compositionality.encoders.options import EncoderOptions

Saved = Callable[[str], Path]
MakeClips = Callable[[int, float], np.ndarray]


@pytest.mark.parametrize("precision", ["bfloat16", "float16"])
@pytest.mark.parametrize("family", ["wav2vec2", "w2v-bert", "encodec", "pe-audio", "qwen2-audio"])
def test_reduced_precision_deviates_a_little(family: str, precision: str, saved: Saved, make_clips: MakeClips) -> None:
    encoder = load_model(str(saved(family)), options=EncoderOptions(precision=precision))
    assert encoder.card.id == f"{family}@{precision}"
    clips = make_clips(encoder.card.sample_rate, 0.71)
    exact = load_model(str(saved(family))).embed(clips, encoder.card.sample_rate)
    error = np.linalg.norm(encoder.embed(clips, encoder.card.sample_rate) - exact, axis=1) / np.linalg.norm(
        exact, axis=1
    )
    # A bfloat16 has 8 bits of mantissa, a float16 11.
    assert 1e-6 < error.max() < (0.2 if precision == "bfloat16" else 0.02)
    deviation = encoder.precision_deviation(clips, encoder.card.sample_rate)
    assert deviation["relative_mean"] == pytest.approx(error.mean(), rel=1e-2)
    assert deviation["relative_max"] == pytest.approx(error.max(), rel=1e-2)
    assert deviation["spread_ratio"] > 0


@pytest.mark.parametrize("family", ["whisper", "clap", "ast"])
def test_a_callers_autocast_changes_nothing(family: str, saved: Saved, make_clips: MakeClips) -> None:
    encoder = load_model(str(saved(family)), device="cpu")
    clips = make_clips(encoder.card.sample_rate, 0.71)
    expected = encoder.embed(clips, encoder.card.sample_rate)
    with torch.autocast("cpu", torch.bfloat16):
        np.testing.assert_array_equal(encoder.embed(clips, encoder.card.sample_rate), expected)


@pytest.mark.skipif(
    shutil.which("c++") is None and shutil.which("g++") is None, reason="torch.compile needs a C++ compiler"
)
def test_compiled(tmp_path: Path, make_clips: MakeClips) -> None:
    # Every kernel takes the compiler seconds.
    config = transformers.Wav2Vec2Config(
        hidden_size=16, num_hidden_layers=1, num_attention_heads=2, intermediate_size=16, conv_dim=(8, 8),
        conv_kernel=(10, 8), conv_stride=(10, 8), num_feat_extract_layers=2, num_conv_pos_embeddings=4,
        num_conv_pos_embedding_groups=2,
    )  # fmt: skip
    config.save_pretrained(tmp_path)
    transformers.Wav2Vec2FeatureExtractor().save_pretrained(tmp_path)
    clips = make_clips(16_000, 0.5)
    compiled, plain = (
        load_model(f"untrained:{tmp_path}", options=EncoderOptions(compile=flag)) for flag in (True, False)
    )
    assert compiled.card.id == plain.card.id
    graphs = torch._dynamo.utils.counters["stats"]["unique_graphs"]
    expected = plain.embed(clips, 16_000)
    assert np.abs(compiled.embed(clips, 16_000) - expected).max() < 1e-4 * np.abs(expected).max()
    assert torch._dynamo.utils.counters["stats"]["unique_graphs"] == graphs + 1
