"""What holds for every family of transformers models."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from safetensors.torch import load_file, save_file

from audio_compositionality.encoders.loading.registry import load_model
from audio_compositionality.support.files import sha256_of_file

from ..contract import About, ModelContract, encoder_name

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


class TestFamilies(ModelContract):
    @pytest.fixture(params=FAMILIES)
    def about(self, request: pytest.FixtureRequest, saved: Saved) -> About:
        family = request.param
        return About(str(saved(family)), RATES.get(family, 16_000), DIMS.get(family, 32))


class TestBaselines(ModelContract):
    @pytest.fixture(params=[("downsample", 768), ("random", 768), ("log-mel-statistics", 256)])
    def about(self, request: pytest.FixtureRequest) -> About:
        name, dim = request.param
        return About(name, 32_000, dim, has_trained_weights=False)


@pytest.mark.parametrize("family", FAMILIES)
def test_id_and_digest(family: str, saved: Saved) -> None:
    card = load_model(str(saved(family))).card
    assert card.id == family
    assert card.weights_sha256 == sha256_of_file(saved(family) / "model.safetensors")
    assert card.revision.startswith("sha256-")


@pytest.mark.parametrize("family", ["wav2vec2", "encodec", "mimi", "pe-audio", "qwen2-audio"])
def test_an_untrained_twin_needs_no_weights(family: str, saved: Saved, tmp_path: Path) -> None:
    for file in saved(family).glob("*.json"):
        shutil.copy(file, tmp_path)
    assert load_model(f"untrained:{tmp_path}").card.id == f"untrained:{tmp_path.name}"


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
    name = encoder_name(family, folder)
    with pytest.raises(ValueError, match=rf"1 missing: \S*{end}\b"):
        load_model(name)
    save_file({**weights, f"{stored}_2": weights[stored].clone()}, folder / "model.safetensors", {"format": "pt"})
    with pytest.raises(ValueError, match=rf"1 unexpected: \S*{end}_2"):
        load_model(name)


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
