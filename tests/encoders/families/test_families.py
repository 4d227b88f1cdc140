"""What holds for every family of transformers models."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import soxr
from safetensors.torch import load_file, save_file

from audio_compositionality.encoders.loading.registry import load_model
from audio_compositionality.support.files import sha256_of_file

FAMILIES = [
    "wav2vec2",
    "wav2vec2-masked",
    "wav2vec2-adapter",
    "hubert",
    "wavlm",
    "sew",
    "sew-d",
    "unispeech",
    "unispeech-sat",
    "data2vec-audio",
    "wav2vec2-conformer",
    "speech-to-text",
    "w2v-bert",
    "ast",
    "clap",
    "clap-fusion",
    "whisper",
    "encodec",
    "encodec-stereo",
    "dac",
    "mimi",
    "pe-audio",
    "pe-audio-frames",
    "pe-audio-encoder",
    "qwen2-audio",
    "qwen2-audio-encoder",
]
RATES = {
    "clap": 48_000,
    "clap-fusion": 48_000,
    "encodec": 24_000,
    "encodec-stereo": 48_000,
    "dac": 44_100,
    "mimi": 24_000,
    "pe-audio": 48_000,
    "pe-audio-frames": 48_000,
    "pe-audio-encoder": 48_000,
}
DIMS = {
    "wav2vec2-adapter": 24,
    "clap": 24,
    "clap-fusion": 24,
    "pe-audio": 24,
    "pe-audio-frames": 24,
    "encodec": 16,
    "encodec-stereo": 16,
    "dac": 64,
}

Saved = Callable[[str], Path]
Save = Callable[[str, Path], Path]
MakeClips = Callable[[int, float], np.ndarray]


def relative_error(actual: np.ndarray, expected: np.ndarray) -> float:
    return float(np.abs(actual - expected).max() / np.abs(expected).max())


@pytest.mark.parametrize("family", FAMILIES)
def test_rate_dimension_and_id(family: str, saved: Saved) -> None:
    encoder = load_model(str(saved(family)))
    assert encoder.card.id == family
    assert encoder.card.sample_rate == RATES.get(family, 16_000)
    assert encoder.card.output_dim == DIMS.get(family, 32)
    assert encoder.card.weights_sha256 == sha256_of_file(saved(family) / "model.safetensors")
    assert encoder.card.revision.startswith("sha256-")


@pytest.mark.parametrize("family", FAMILIES)
def test_a_clip_embeds_the_same_alone_in_a_batch_and_again(family: str, saved: Saved, make_clips: MakeClips) -> None:
    encoder = load_model(str(saved(family)))
    clips = make_clips(encoder.card.sample_rate, 0.5)
    together = encoder.embed(clips, encoder.card.sample_rate)
    alone = np.concatenate([encoder.embed(clip[None], encoder.card.sample_rate) for clip in clips])
    assert relative_error(together, alone) < 1e-4
    np.testing.assert_array_equal(encoder.embed(clips, encoder.card.sample_rate), together)
    reversed_order = encoder.embed(clips[::-1], encoder.card.sample_rate)[::-1]
    assert relative_error(reversed_order, together) < 1e-4
    # The clips are different sounds, so their embeddings must differ by more than rounding.
    assert min(relative_error(together[i], together[j]) for i, j in [(0, 1), (0, 2), (1, 2)]) > 1e-3


@pytest.mark.parametrize("family", FAMILIES)
def test_clips_at_another_rate_are_resampled(family: str, saved: Saved, make_clips: MakeClips) -> None:
    encoder = load_model(str(saved(family)))
    clips = make_clips(32_000, 0.5)
    resampled = np.stack([soxr.resample(clip, 32_000, encoder.card.sample_rate, quality="HQ") for clip in clips])
    np.testing.assert_array_equal(encoder.embed(clips, 32_000), encoder.embed(resampled, encoder.card.sample_rate))


@pytest.mark.parametrize("family", ["wav2vec2", "encodec", "mimi", "pe-audio", "qwen2-audio"])
def test_an_untrained_twin_has_the_shape_but_not_the_weights(
    family: str, saved: Saved, make_clips: MakeClips, tmp_path: Path
) -> None:
    for file in saved(family).glob("*.json"):
        shutil.copy(file, tmp_path)
    trained = load_model(str(saved(family)))
    one, same, other = (load_model(f"untrained:{tmp_path}", seed=seed) for seed in (1, 1, 2))
    assert (one.card.id, one.card.output_dim) == (f"untrained:{tmp_path.name}", trained.card.output_dim)
    assert one.card.weights_sha256 is None
    assert one.card.revision.startswith("seed-1-")
    clips = make_clips(one.card.sample_rate, 0.5)
    embedded = one.embed(clips, one.card.sample_rate)
    np.testing.assert_array_equal(same.embed(clips, one.card.sample_rate), embedded)
    assert relative_error(other.embed(clips, one.card.sample_rate), embedded) > 1e-2
    assert relative_error(trained.embed(clips, one.card.sample_rate), embedded) > 1e-2


@pytest.mark.parametrize(
    ("family", "stored"),
    [
        ("sew-d", "encoder.encoder.layer.1.attention.self.query_proj.weight"),
        ("speech-to-text", "encoder.conv.conv_layers.1.weight"),
        ("encodec", "encoder.layers.3.conv.bias"),
        ("dac", "encoder.block.2.conv1.weight"),
        ("mimi", "encoder_transformer.layers.1.mlp.fc1.weight"),
        ("pe-audio", "audio_encoder.layers.1.mlp.up_proj.weight"),
        ("pe-audio-encoder", "layers.1.mlp.up_proj.weight"),
        ("qwen2-audio", "audio_tower.layers.1.fc1.weight"),
        ("qwen2-audio-encoder", "layers.1.fc1.weight"),
    ],
)
def test_missing_and_left_over_weights_are_named(family: str, stored: str, save: Save, tmp_path: Path) -> None:
    folder = save(family, tmp_path / "odd")
    weights = load_file(folder / "model.safetensors")
    end = ".".join(stored.split(".")[-2:])
    save_file({k: w for k, w in weights.items() if k != stored}, folder / "model.safetensors", {"format": "pt"})
    with pytest.raises(ValueError, match=rf"1 missing: \S*{end}\b"):
        load_model(str(folder))
    save_file({**weights, f"{stored}_2": weights[stored].clone()}, folder / "model.safetensors", {"format": "pt"})
    with pytest.raises(ValueError, match=rf"1 unexpected: \S*{end}_2"):
        load_model(str(folder))


@pytest.mark.parametrize("family", ["wav2vec2", "encodec"])
def test_weight_norm_under_its_names_of_published_checkpoints(
    family: str, save: Save, saved: Saved, make_clips: MakeClips, tmp_path: Path
) -> None:
    folder = save(family, tmp_path / "old")
    weights = load_file(folder / "model.safetensors")
    old = {
        key.replace("parametrizations.weight.original0", "weight_g").replace(
            "parametrizations.weight.original1", "weight_v"
        ): weight
        for key, weight in weights.items()
    }
    assert any(key.endswith("weight_g") for key in old)
    save_file(old, folder / "model.safetensors", {"format": "pt"})
    encoder = load_model(str(folder))
    clips = make_clips(encoder.card.sample_rate, 0.5)
    expected = load_model(str(saved(family))).embed(clips, encoder.card.sample_rate)
    np.testing.assert_array_equal(encoder.embed(clips, encoder.card.sample_rate), expected)
