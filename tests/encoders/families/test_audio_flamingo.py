"""AF-Whisper out of a tiny Audio Flamingo 3: only its own shards are touched, frames are those of the clip."""

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

from ..contract import About, ModelContract, different_clips

RATE = 16_000
LAYERS = 3
SHARDS = {name: f"model-0000{number}-of-00003.safetensors" for number, name in enumerate(("tower", "both", "text"), 1)}

MakeClips = Callable[[int, float], np.ndarray]
HubCache = Callable[[str, Path, list[str]], Path]


def make_model() -> Any:
    config = transformers.AudioFlamingo3Config(
        audio_config={
            "hidden_size": 32, "num_hidden_layers": LAYERS, "num_attention_heads": 4, "intermediate_size": 48,
            "max_source_positions": 150, "num_mel_bins": 16,
        },
        text_config={
            "hidden_size": 16, "intermediate_size": 16, "num_hidden_layers": 2, "num_attention_heads": 2,
            "num_key_value_heads": 2, "vocab_size": 20,
        },
        audio_token_id=19,
    )  # fmt: skip
    with torch.random.fork_rng():
        torch.manual_seed(3)
        model = transformers.AudioFlamingo3ForConditionalGeneration(config).eval()
        with torch.no_grad():
            for parameter in model.parameters():
                parameter.add_(0.1 * torch.randn_like(parameter))
    return model


@pytest.fixture(scope="session")
def whole() -> Any:
    return make_model()


@pytest.fixture(scope="session")
def extractor() -> transformers.WhisperFeatureExtractor:
    return transformers.WhisperFeatureExtractor(feature_size=16, chunk_length=3, return_attention_mask=True)


@pytest.fixture(scope="session")
def kept_folder(whole: Any, extractor: Any, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A checkpoint in three shards; of the third, with nothing but the language model, there is only a scrap.

    Tests must not write to it.
    """
    path = tmp_path_factory.mktemp("flamingo") / "af3"
    extractor.save_pretrained(path)
    whole.save_pretrained(path)
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


def by_hand(whole: Any, extractor: Any, clips: np.ndarray, layer: int | None = None) -> tuple[np.ndarray, int]:
    """All frames [n, frames, dim] of the window, called as `AudioFlamingo3Processor` and the model do, and how many
    frames of the output the model keeps: one for every sound token."""
    inputs = extractor(list(clips), sampling_rate=RATE, return_tensors="pt", return_attention_mask=True)
    tower, mask = whole.model.audio_tower, inputs["attention_mask"]
    with torch.no_grad():
        output = tower(inputs["input_features"], input_features_mask=mask, output_hidden_states=True)
    hidden = output.last_hidden_state if layer is None else output.hidden_states[layer]
    return hidden.numpy(), int(tower._get_feat_extract_output_lengths(mask.sum(-1))[1][0])


class TestTower(ModelContract):
    @pytest.fixture
    def about(self, kept_folder: Path) -> About:
        return About(f"tower:{kept_folder}", RATE, 32)


@pytest.mark.parametrize(
    ("seconds", "layer"),
    [*((seconds, None) for seconds in (0.05, 0.71, 1.03, 2.99, 3.0)), *((1.0, layer) for layer in range(LAYERS + 1))],
)
def test_frames_that_the_model_keeps(seconds: float, layer: int | None, extractor: Any, kept_folder: Path) -> None:
    """The last hidden state is the output, with half as many frames as those before it."""
    clips = different_clips(RATE, seconds)
    hidden, kept = by_hand(make_model(), extractor, clips, layer)
    count, distance = (kept, 0.04) if layer in (None, LAYERS) else (50, 0.02)
    frames, frame_seconds = load(kept_folder, layer=layer).embed_frames(clips, RATE)
    assert frame_seconds == pytest.approx(distance)
    assert abs(count * frame_seconds - seconds) <= 0.04
    np.testing.assert_allclose(frames, hidden[:, :count], atol=1e-5)
    mean = load(kept_folder, layer=layer).embed(clips, RATE)
    np.testing.assert_allclose(mean, hidden[:, :count].mean(axis=1), atol=1e-5)
    largest = load(kept_folder, layer=layer, pooling="max").embed(clips, RATE)
    np.testing.assert_allclose(largest, hidden[:, :count].max(axis=1), atol=1e-5)


def test_the_input_of_the_first_block_is_the_convolutions_and_positions(
    whole: Any, extractor: Any, folder: Path, make_clips: MakeClips
) -> None:
    clips = make_clips(RATE, 1.0)
    tower = whole.model.audio_tower
    mel = extractor(list(clips), sampling_rate=RATE, return_tensors="pt")["input_features"]
    with torch.no_grad():
        hidden = torch.nn.functional.gelu(tower.conv2(torch.nn.functional.gelu(tower.conv1(mel)))).mT
        hidden = hidden + tower.embed_positions.weight
    frames, _ = load(folder, layer=0).embed_frames(clips, RATE)
    np.testing.assert_allclose(frames, hidden[:, :50].numpy(), atol=1e-5)


def test_clips_shorter_than_a_frame_and_longer_than_the_window(folder: Path) -> None:
    with pytest.raises(ValueError, match="clips of 320 samples at 16000 Hz are shorter than one frame of 'tower:af3'"):
        load(folder).embed(np.full((1, 320), 0.1), RATE)
    # Before the pooling a frame is half as long.
    assert load(folder, layer=1).embed(np.full((1, 320), 0.1), RATE).shape == (1, 32)
    with pytest.raises(ValueError, match=r"clips last 3\.5 s, but 'tower:af3' takes 3 s at most"):
        load(folder).embed(np.zeros((1, 56_000)), RATE)


def test_only_the_towers_shards_are_read_and_hashed(folder: Path, whole: Any) -> None:
    encoder = load(folder)
    digests = [hashlib.sha256((folder / SHARDS[name]).read_bytes()).hexdigest() for name in ("tower", "both")]
    assert encoder.card.weights_sha256 == hashlib.sha256("".join(digests).encode()).hexdigest()
    assert encoder.card.parameters == sum(p.numel() for p in whole.model.audio_tower.parameters())
    (folder / SHARDS["text"]).unlink()
    assert load(folder).card.weights_sha256 == encoder.card.weights_sha256


def test_from_the_hub_only_the_towers_shards_are_asked_for(
    folder: Path, hub_cache: HubCache, make_clips: MakeClips
) -> None:
    expected = load(folder)
    clips = make_clips(RATE, 1.0)
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


def test_weights_that_are_not_the_towers_are_named(folder: Path) -> None:
    names = json.loads((folder / "model.safetensors.index.json").read_text())["weight_map"]
    bias = next(name for name in names if name.endswith("audio_tower.conv1.bias"))
    tower = load_file(folder / SHARDS["tower"])
    for changed, message in (
        (
            {k: v for k, v in tower.items() if k != bias},
            "a AudioFlamingo3Encoder: 1 missing: conv1.bias",
        ),
        ({**tower, bias: torch.zeros(7)}, r"1 of another shape: conv1.bias \(stored \(7,\), model \(32,\)\)"),
        ({**tower, bias.replace("conv1", "conv3"): torch.zeros(7)}, r"1 unexpected: conv3\.bias"),
    ):
        save_file(changed, folder / SHARDS["tower"])
        with pytest.raises(ValueError, match=rf"in 'tower:af3' .*{message}"):
            load(folder)


def test_missing_and_damaged_files_are_named(folder: Path) -> None:
    both, index = folder / SHARDS["both"], folder / "model.safetensors.index.json"
    for change, message in (
        (lambda: both.write_bytes(both.read_bytes()[:99]), f"cannot read the weights of 'tower:af3' in .*{both.name}"),
        (both.unlink, f"'tower:af3' has no {both.name}, which holds weights of the part that embeds"),
        (
            lambda: index.write_text(json.dumps({"weight_map": {"lm_head.weight": SHARDS["text"]}})),
            "lists no weights of the part of 'tower:af3' that embeds",
        ),
        (lambda: index.write_text("{"), r"cannot read .*index\.json, the index of the weights of 'tower:af3'"),
        (index.unlink, r"'tower:af3' holds model-00001-of-00003.safetensors, .* but neither model.safe"),
    ):
        change()
        with pytest.raises(ValueError, match=message):
            load(folder)


@pytest.mark.parametrize("prefix", ["audio_tower.", "model.audio_tower."])
def test_names_of_both_versions_of_transformers(
    prefix: str, whole: Any, extractor: Any, tmp_path: Path, make_clips: MakeClips
) -> None:
    """Published in November 2025 with the first; version 5 nests the tower one deeper. Stored in half the precision."""
    path = tmp_path / "af3"
    extractor.save_pretrained(path)
    whole.config.save_pretrained(path)
    tower = whole.model.audio_tower.state_dict()
    save_file({prefix + name: tensor.bfloat16() for name, tensor in tower.items()}, path / "model.safetensors")
    encoder = load(path)
    assert {p.dtype for p in encoder._model.parameters()} == {torch.float32}
    rounded = make_model()
    rounded.model.audio_tower.load_state_dict({name: tensor.bfloat16().float() for name, tensor in tower.items()})
    clips = make_clips(RATE, 1.0)
    hidden, kept = by_hand(rounded, extractor, clips)
    np.testing.assert_allclose(encoder.embed(clips, RATE), hidden[:, :kept].mean(axis=1), atol=1e-5)


def test_a_checkpoint_of_the_encoder_alone(
    whole: Any, extractor: Any, folder: Path, tmp_path: Path, make_clips: MakeClips
) -> None:
    path = tmp_path / "encoder"
    extractor.save_pretrained(path)
    whole.model.audio_tower.save_pretrained(path)
    assert json.loads((path / "config.json").read_text())["model_type"] == "audioflamingo3_encoder"
    clips = make_clips(RATE, 1.0)
    np.testing.assert_array_equal(load(path).embed(clips, RATE), load(folder).embed(clips, RATE))


def test_untrained_needs_the_configurations_only(whole: Any, extractor: Any, tmp_path: Path) -> None:
    extractor.save_pretrained(tmp_path)
    whole.config.save_pretrained(tmp_path)
    card = load_model(f"untrained:af-whisper={tmp_path}", device="cpu", seed=1).card
    assert (card.id, card.weights_sha256) == ("untrained:af-whisper", None)
    with pytest.raises(ValueError, match="holds no safetensors weights"):
        load(tmp_path)
