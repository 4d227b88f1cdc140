"""AF-Whisper out of a tiny Audio Flamingo 3: only its own shards are touched. `test_families.py` has its frames."""

from __future__ import annotations

import hashlib
import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import transformers
from safetensors.torch import load_file, save_file

from audio_compositionality.encoders.loading.registry import load_model
from audio_compositionality.encoders.model_encoder import ModelEncoder
from audio_compositionality.encoders.options import EncoderOptions

from ..contract import HubCache, different_clips

RATE = 16_000
SHARDS = {name: f"model-0000{number}-of-00003.safetensors" for number, name in enumerate(("tower", "both", "text"), 1)}


@pytest.fixture(scope="session")
def kept_folder(saved: Callable[[str], Path], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A checkpoint in three shards; of the third, with nothing but the language model, there is only a scrap.

    Tests must not write to it.
    """
    path = Path(shutil.copytree(saved("audio-flamingo"), tmp_path_factory.mktemp("flamingo") / "af3"))
    weights = load_file(path / "model.safetensors")
    (path / "model.safetensors").unlink()
    tower = [name for name in weights if "audio_tower." in name]
    text = [name for name in weights if "audio_tower." not in name]
    contents = {"tower": tower[:20], "both": tower[20:] + text[:3], "text": text[3:]}
    for shard, names in contents.items():
        save_file({name: weights[name] for name in names}, path / SHARDS[shard])
    index = {"metadata": {}, "weight_map": {name: SHARDS[s] for s, names in contents.items() for name in names}}
    (path / "model.safetensors.index.json").write_text(json.dumps(index))
    (path / SHARDS["text"]).write_bytes(b"no safetensors")
    return path


@pytest.fixture
def folder(kept_folder: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(kept_folder, tmp_path / "af3"))


def load(path: Path | str, **options: Any) -> ModelEncoder:
    name = f"tower:{path}" if isinstance(path, Path) else path
    encoder = load_model(name, device="cpu", options=EncoderOptions(**options))
    assert isinstance(encoder, ModelEncoder)
    return encoder


def test_only_the_towers_shards_are_read_and_hashed(folder: Path) -> None:
    encoder = load(folder)
    digests = [hashlib.sha256((folder / SHARDS[name]).read_bytes()).hexdigest() for name in ("tower", "both")]
    assert encoder.card.weights_sha256 == hashlib.sha256("".join(digests).encode()).hexdigest()
    (folder / SHARDS["text"]).unlink()
    assert load(folder).card.weights_sha256 == encoder.card.weights_sha256


def test_from_the_hub_only_the_towers_shards_are_asked_for(folder: Path, hub_cache: HubCache) -> None:
    expected = load(folder)
    clips = different_clips(RATE, 1.0)
    embeddings = expected.embed(clips, RATE)
    (folder / SHARDS["text"]).unlink()
    snapshot = hub_cache("nvidia/audio-flamingo-3-hf", folder, ["model.safetensors", "processor_config.json"])
    encoder = load("af-whisper")
    np.testing.assert_array_equal(encoder.embed(clips, RATE), embeddings)
    assert (encoder.card.id, encoder.card.revision) == ("af-whisper", snapshot.name)
    assert encoder.card.weights_sha256 == expected.card.weights_sha256

    (snapshot / SHARDS["both"]).unlink()
    complaint = f"cannot get {SHARDS['both']} of 'nvidia/audio-flamingo-3-hf' from the Hugging Face Hub"
    with pytest.raises(ValueError, match=complaint):
        load("af-whisper")


def test_missing_and_damaged_files_are_named(folder: Path) -> None:
    both, index = folder / SHARDS["both"], folder / "model.safetensors.index.json"
    for change, message in (
        (lambda: both.write_bytes(both.read_bytes()[:99]), f"cannot read the weights of 'tower:af3' in .*{both.name}"),
        (both.unlink, f"'tower:af3' has no {both.name}, which holds weights of its encoder"),
        (
            lambda: index.write_text(json.dumps({"weight_map": {"lm_head.weight": SHARDS["text"]}})),
            "lists no weights of the encoder of 'tower:af3'",
        ),
        (lambda: index.write_text("{"), r"cannot read .*index\.json, the index of the weights of 'tower:af3'"),
        (index.unlink, r"'tower:af3' holds model-00001-of-00003.safetensors, .* but neither model.safe"),
    ):
        change()
        with pytest.raises(ValueError, match=message):
            load(folder)


@pytest.fixture
def tower(saved: Callable[[str], Path]) -> dict[str, torch.Tensor]:
    weights = load_file(saved("audio-flamingo") / "model.safetensors").items()
    return {name.partition("audio_tower.")[2]: weight for name, weight in weights if "audio_tower." in name}


def settings_alone(folder: Path, path: Path) -> Path:
    return Path(shutil.copytree(folder, path, ignore=shutil.ignore_patterns("*.safetensors*")))


@pytest.mark.parametrize("prefix", ["audio_tower.", "model.audio_tower."])
def test_names_of_both_versions_of_transformers(
    prefix: str, tower: dict[str, torch.Tensor], saved: Callable[[str], Path], tmp_path: Path
) -> None:
    """Published in November 2025 with the first; version 5 nests the tower one deeper. Stored in half the precision."""
    path = settings_alone(saved("audio-flamingo"), tmp_path / "af3")
    save_file({prefix + name: weight.bfloat16() for name, weight in tower.items()}, path / "model.safetensors")
    encoder = load(path)
    assert {p.dtype for p in encoder._model.parameters()} == {torch.float32}
    save_file({prefix + name: weight.bfloat16().float() for name, weight in tower.items()}, path / "model.safetensors")
    clips = different_clips(RATE, 1.0)
    np.testing.assert_array_equal(encoder.embed(clips, RATE), load(path).embed(clips, RATE))
    assert not np.array_equal(encoder.embed(clips, RATE), load(saved("audio-flamingo")).embed(clips, RATE))


def test_a_checkpoint_of_the_encoder_alone_and_one_without_weights(
    saved: Callable[[str], Path], tmp_path: Path
) -> None:
    folder, path = saved("audio-flamingo"), tmp_path / "encoder"
    whole = transformers.AudioFlamingo3ForConditionalGeneration.from_pretrained(folder)
    whole.model.audio_tower.save_pretrained(path)
    shutil.copy(folder / "preprocessor_config.json", path)
    assert json.loads((path / "config.json").read_text())["model_type"] == "audioflamingo3_encoder"
    clips = different_clips(RATE, 1.0)
    np.testing.assert_array_equal(load(path).embed(clips, RATE), load(folder).embed(clips, RATE))
    bare = settings_alone(folder, tmp_path / "bare")
    card = load_model(f"untrained:af-whisper={bare}", device="cpu", seed=1).card
    assert (card.id, card.weights_sha256) == ("untrained:af-whisper", None)
    with pytest.raises(ValueError, match="holds no safetensors weights"):
        load(bare)
