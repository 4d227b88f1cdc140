"""CLAP's front end against transformers' extractor, its frames against the image counted out by hand, its files."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
import transformers
from safetensors.torch import load_file

from audio_compositionality.encoders.base import ModelError
from audio_compositionality.encoders.front_ends.clap import ClapLogMel
from audio_compositionality.encoders.loading import checkpoints
from audio_compositionality.encoders.loading.registry import load_model
from audio_compositionality.encoders.model_encoder import ModelEncoder
from audio_compositionality.encoders.options import EncoderOptions
from audio_compositionality.support.files import sha256_of_file

from ..contract import HubCache, Save, Saved, different_clips

RATE = 48_000


def load(folder: Path | str, **options: object) -> ModelEncoder:
    encoder = load_model(str(folder), device="cpu", options=EncoderOptions(**options))
    assert isinstance(encoder, ModelEncoder)
    return encoder


def pure_tones(seconds: float) -> np.ndarray:
    """Loud tones with nothing beside them: most bands lie near the trivial baseline."""
    t = np.arange(round(seconds * RATE)) / RATE
    return np.stack([0.9 * np.sin(2 * np.pi * f * t) for f in (100, 440, 6000)]).astype(np.float32)


@pytest.mark.parametrize("truncation", ["fusion", "rand_trunc"])
@pytest.mark.parametrize("padding", ["repeatpad", "repeat", "pad"])
@pytest.mark.parametrize("seconds", [2.0, 1.3, 0.3, 1 / RATE])
def test_log_mel_is_that_of_the_extractor(truncation: str, padding: str, seconds: float) -> None:
    extractor = transformers.ClapFeatureExtractor(max_length_s=2, truncation=truncation, padding=padding)
    clips = np.concatenate([different_clips(RATE, seconds), pure_tones(seconds)])
    expected = extractor(list(clips), sampling_rate=RATE, return_tensors="pt")["input_features"][:, 0]
    actual = ClapLogMel(extractor, "clap")(torch.from_numpy(clips))
    assert actual.dtype == torch.float32
    assert float((actual - expected).norm() / expected.norm()) < 1e-6
    # Decibels, so that 1e-3 is the relative difference of the largest.
    assert float((actual - expected).abs().max()) < 1e-3


def test_log_mel_follows_the_extractors_settings() -> None:
    extractor = transformers.ClapFeatureExtractor(
        feature_size=40, hop_length=320, fft_window_size=512, frequency_min=50, max_length_s=1, truncation="rand_trunc"
    )
    clips = different_clips(RATE, 1.0)
    expected = extractor(list(clips), sampling_rate=RATE, return_tensors="pt")["input_features"][:, 0]
    torch.testing.assert_close(ClapLogMel(extractor, "clap")(torch.from_numpy(clips)), expected, rtol=1e-5, atol=1e-3)


def published(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Turn a checkpoint into one of a PyTorch file, whose hash is published as that of laion/clap-htsat-unfused."""
    pickle = folder / "pytorch_model.bin"
    torch.save(load_file(folder / "model.safetensors"), pickle)
    (folder / "model.safetensors").unlink()
    repository = "laion/clap-htsat-unfused"
    file = replace(checkpoints.PUBLISHED_PICKLES[repository], digest=f"sha256:{sha256_of_file(pickle)}")
    monkeypatch.setitem(checkpoints.PUBLISHED_PICKLES, repository, file)


def test_the_published_pytorch_file_is_read(
    save: Save, saved: Saved, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    clips = different_clips(RATE, 2.0)
    folder = save("clap", tmp_path / "old")
    published(folder, monkeypatch)
    encoder = load(f"laion-clap={folder}")
    np.testing.assert_array_equal(encoder.embed(clips, RATE), load(saved("clap")).embed(clips, RATE))
    assert encoder.card.weights_sha256 == sha256_of_file(folder / "pytorch_model.bin")
    assert encoder.card.id == "laion-clap"


def test_from_the_hub_only_the_published_file_is_read(
    save: Save,
    saved: Saved,
    hub_cache: HubCache,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    folder = save("clap", tmp_path / "hub")
    published(folder, monkeypatch)
    absent = ["model.safetensors", "model.safetensors.index.json", "processor_config.json"]
    snapshot = hub_cache("laion/clap-htsat-unfused", folder, absent)
    clips = different_clips(RATE, 2.0)
    encoder = load("laion-clap")
    assert encoder.card.revision == snapshot.name
    np.testing.assert_array_equal(encoder.embed(clips, RATE), load(saved("clap")).embed(clips, RATE))

    pickle = snapshot / "pytorch_model.bin"
    pickle.write_bytes(pickle.read_bytes() + b"0")
    with pytest.raises(ValueError, match=r"pytorch_model.bin has the sha256 .*, but the published file has"):
        load("laion-clap")


@pytest.mark.parametrize("seconds", [2.1, 4.5])
def test_a_longer_clip_is_the_mean_of_windows(seconds: float, saved: Saved) -> None:
    clips, window = different_clips(RATE, seconds), 2 * RATE
    encoder = load(saved("clap"))
    count = math.ceil(seconds / 2)
    starts = [int(place * (clips.shape[1] - window) / (count - 1)) for place in range(count)]
    mean = np.mean([encoder.embed(clips[:, start : start + window], RATE) for start in starts], axis=0)
    expected = mean / np.linalg.norm(mean, axis=1, keepdims=True)
    np.testing.assert_allclose(encoder.embed(clips, RATE), expected, atol=1e-5)


def test_layers_poolings_and_frames_of_a_longer_clip_are_refused(saved: Saved) -> None:
    clips, complaint = different_clips(RATE, 2.1), r"clips last 2\.1 s, but .* takes at most 2 s"
    for options in ({"layer": 1}, {"pooling": "mean"}):
        with pytest.raises(ModelError, match=complaint):
            load(saved("clap"), **options).embed(clips, RATE)
    with pytest.raises(ModelError, match=complaint):
        load(saved("clap")).embed_frames(clips, RATE)
