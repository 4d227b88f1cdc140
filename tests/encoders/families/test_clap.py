"""CLAP's front end against transformers' extractor, its frames against the image counted out by hand, its files."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
import transformers
from safetensors.torch import load_file, save_file

from audio_compositionality.encoders.base import ModelError
from audio_compositionality.encoders.front_ends.clap import ClapLogMel
from audio_compositionality.encoders.loading import checkpoints
from audio_compositionality.encoders.loading.registry import load_model
from audio_compositionality.encoders.model_encoder import ModelEncoder
from audio_compositionality.encoders.options import EncoderOptions
from audio_compositionality.support.files import sha256_of_file

RATE = 48_000
# The tiny model of conftest.py: 201 frames of 16 bands are stretched to 256 and folded into 4 segments of 64 × 16,
# which patches of 4 × 4 cut into 4 × 4 rows and 16 columns. Its two stages have 16 × 16 patches, then 8 × 8 twice.
SEGMENTS = 4
ROWS_OF_SEGMENT = (4, 2, 2)
COLUMNS = (16, 8, 8)

Saved = Callable[[str], Path]
Save = Callable[[str, Path], Path]
MakeClips = Callable[[int, float], np.ndarray]
HubCache = Callable[[str, Path, list[str]], Path]


def load(folder: Path | str, **options: object) -> ModelEncoder:
    encoder = load_model(str(folder), device="cpu", options=EncoderOptions(**options))
    assert isinstance(encoder, ModelEncoder)
    return encoder


def pure_tones(seconds: float) -> np.ndarray:
    """Loud tones with nothing beside them: most bands lie near the floor."""
    t = np.arange(round(seconds * RATE)) / RATE
    return np.stack([0.9 * np.sin(2 * np.pi * f * t) for f in (100, 440, 6000)]).astype(np.float32)


@pytest.mark.parametrize("truncation", ["fusion", "rand_trunc"])
@pytest.mark.parametrize("padding", ["repeatpad", "repeat", "pad"])
@pytest.mark.parametrize("seconds", [2.0, 1.3, 0.3, 1 / RATE])
def test_log_mel_is_that_of_the_extractor(truncation: str, padding: str, seconds: float, make_clips: MakeClips) -> None:
    extractor = transformers.ClapFeatureExtractor(max_length_s=2, truncation=truncation, padding=padding)
    clips = np.concatenate([make_clips(RATE, seconds), pure_tones(seconds)])
    expected = extractor(list(clips), sampling_rate=RATE, return_tensors="pt")["input_features"][:, 0]
    actual = ClapLogMel(extractor, "clap")(torch.from_numpy(clips))
    assert actual.dtype == torch.float32
    assert float((actual - expected).norm() / expected.norm()) < 1e-6
    # Decibels, so that 1e-3 is the relative difference of the largest.
    assert float((actual - expected).abs().max()) < 1e-3


def test_log_mel_follows_the_extractors_settings(make_clips: MakeClips) -> None:
    extractor = transformers.ClapFeatureExtractor(
        feature_size=40, hop_length=320, fft_window_size=512, frequency_min=50, max_length_s=1, truncation="rand_trunc"
    )
    clips = make_clips(RATE, 1.0)
    expected = extractor(list(clips), sampling_rate=RATE, return_tensors="pt")["input_features"][:, 0]
    torch.testing.assert_close(ClapLogMel(extractor, "clap")(torch.from_numpy(clips)), expected, rtol=1e-5, atol=1e-3)


@pytest.mark.parametrize(
    ("setting", "value", "complaint"),
    [
        ("truncation", "middle", "'changed' has truncation 'middle', but must have one of fusion, rand_trunc"),
        ("padding", "reflect", "'changed' has padding 'reflect', but must have one of repeatpad, repeat, pad"),
        ("feature_size", 32, r"'changed' makes 201 frames of 32 mel bands, but the model takes 256 of 16"),
        ("max_length_s", 3, r"'changed' makes 301 frames of 16 mel bands, but the model takes 256 of 16"),
        ("feature_extractor_type", "WhisperFeatureExtractor", "comes with a WhisperFeatureExtractor"),
    ],
)
def test_extractors_that_do_not_fit_are_refused(
    setting: str, value: object, complaint: str, save: Save, tmp_path: Path
) -> None:
    path = save("clap", tmp_path / "changed") / "preprocessor_config.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), setting: value}))
    with pytest.raises(ValueError, match=complaint):
        load(path.parent)


@pytest.mark.parametrize("family", ["clap", "clap-fusion"])
@pytest.mark.parametrize("layer", [0, 1, 2])
def test_frames_of_a_layer_are_the_patches_of_their_moment(
    family: str, layer: int, saved: Saved, make_clips: MakeClips
) -> None:
    clips = make_clips(RATE, 2.0)
    model = transformers.ClapModel.from_pretrained(saved(family)).eval()
    extractor = transformers.ClapFeatureExtractor.from_pretrained(saved(family))
    mel = extractor(list(clips), sampling_rate=RATE, return_tensors="pt")["input_features"]
    with torch.no_grad():
        output = model.audio_model(mel, is_longer=torch.zeros(3, 1, dtype=torch.bool), output_hidden_states=True)
    image = output.hidden_states[layer].numpy()
    rows, columns = ROWS_OF_SEGMENT[layer], COLUMNS[layer]
    assert image.shape[2:] == (SEGMENTS * rows, columns)
    expected = [
        image[:, :, segment * rows : (segment + 1) * rows, column].mean(axis=2)
        for segment in range(SEGMENTS)
        for column in range(columns)
    ]
    encoder = load(saved(family), layer=layer)
    frames, frame_seconds = encoder.embed_frames(clips, RATE)
    np.testing.assert_allclose(frames, np.stack(expected, axis=1), atol=1e-4)
    assert frame_seconds == pytest.approx(2.0 / len(expected))
    assert encoder.card.output_dim == image.shape[1] == (16, 32, 32)[layer]
    np.testing.assert_allclose(encoder.embed(clips, RATE), np.mean(expected, axis=0), atol=1e-4)


def test_frames_of_the_output_average_to_the_models_own_output(saved: Saved, make_clips: MakeClips) -> None:
    clips = make_clips(RATE, 2.0)
    model = transformers.ClapModel.from_pretrained(saved("clap")).eval()
    extractor = transformers.ClapFeatureExtractor.from_pretrained(saved("clap"))
    mel = extractor(list(clips), sampling_rate=RATE, return_tensors="pt")["input_features"]
    with torch.no_grad():
        latent = model.audio_model(mel).pooler_output.numpy()
    encoder = load(saved("clap"), pooling="mean")
    assert encoder.card.output_dim == 32
    np.testing.assert_allclose(encoder.embed(clips, RATE), latent, atol=1e-5)
    frames, _ = encoder.embed_frames(clips, RATE)
    np.testing.assert_allclose(load(saved("clap"), pooling="max").embed(clips, RATE), frames.max(axis=1), atol=1e-6)


@pytest.mark.parametrize("moment", [0.31, 0.94, 1.57])
def test_a_change_of_sound_changes_the_frames_of_its_moment(moment: float, saved: Saved) -> None:
    before = np.random.default_rng(0).normal(0, 0.1, (1, 2 * RATE)).astype(np.float32)
    after = before.copy()
    after[:, round((moment - 0.01) * RATE) : round((moment + 0.01) * RATE)] = 0
    encoder = load(saved("clap"), layer=0)
    (first, frame_seconds), (second, _) = (encoder.embed_frames(clip, RATE) for clip in (before, after))
    change = np.abs(first - second).max(axis=2)[0]
    assert abs((change.argmax() + 0.5) * frame_seconds - moment) < frame_seconds
    far = np.abs((np.arange(len(change)) + 0.5) * frame_seconds - moment) > 0.1
    assert change[far].max() < 1e-3 * change.max()


@pytest.mark.parametrize(("seconds", "frames"), [(2.0, 32), (1.0, 16), (1.01, 17), (0.001, 1)])
def test_frames_of_repetitions_and_padding_are_left_out(
    seconds: float, frames: int, saved: Saved, make_clips: MakeClips
) -> None:
    found, frame_seconds = load(saved("clap")).embed_frames(make_clips(RATE, seconds), RATE)
    assert found.shape[1] == frames == math.ceil(seconds / frame_seconds)


def test_a_short_clip_is_repeated(saved: Saved, make_clips: MakeClips) -> None:
    clips = make_clips(RATE, 1.0)
    encoder = load(saved("clap"))
    np.testing.assert_array_equal(encoder.embed(clips, RATE), encoder.embed(np.tile(clips, 2), RATE))
    norms = np.linalg.norm(encoder.embed(clips, RATE), axis=1)
    np.testing.assert_allclose(norms, 1, rtol=1e-5)


def test_weights_of_the_text_part_are_not_needed(save: Save, tmp_path: Path, make_clips: MakeClips) -> None:
    folder = save("clap", tmp_path / "clap")
    clips = make_clips(RATE, 2.0)
    whole = load(folder).embed(clips, RATE)
    weights = load_file(folder / "model.safetensors")
    save_file({k: v for k, v in weights.items() if k.startswith("audio_")}, folder / "model.safetensors")
    encoder = load(folder)
    np.testing.assert_array_equal(encoder.embed(clips, RATE), whole)
    audio = sum(v.numel() for k, v in weights.items() if k.startswith("audio_") and v.is_floating_point())
    buffers = sum(v.numel() for k, v in weights.items() if "running" in k and k.startswith("audio_"))
    assert encoder.card.parameters == audio - buffers


def published(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Turn a checkpoint into one of a PyTorch file, whose hash is published as that of laion/clap-htsat-unfused."""
    pickle = folder / "pytorch_model.bin"
    torch.save(load_file(folder / "model.safetensors"), pickle)
    (folder / "model.safetensors").unlink()
    repository = "laion/clap-htsat-unfused"
    file = replace(checkpoints.PUBLISHED_PICKLES[repository], digest=f"sha256:{sha256_of_file(pickle)}")
    monkeypatch.setitem(checkpoints.PUBLISHED_PICKLES, repository, file)


def test_the_published_pytorch_file_is_read(
    save: Save, saved: Saved, tmp_path: Path, make_clips: MakeClips, monkeypatch: pytest.MonkeyPatch
) -> None:
    clips = make_clips(RATE, 2.0)
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
    make_clips: MakeClips,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    folder = save("clap", tmp_path / "hub")
    published(folder, monkeypatch)
    absent = ["model.safetensors", "model.safetensors.index.json", "processor_config.json"]
    snapshot = hub_cache("laion/clap-htsat-unfused", folder, absent)
    clips = make_clips(RATE, 2.0)
    encoder = load("laion-clap")
    assert encoder.card.revision == snapshot.name
    np.testing.assert_array_equal(encoder.embed(clips, RATE), load(saved("clap")).embed(clips, RATE))

    pickle = snapshot / "pytorch_model.bin"
    pickle.write_bytes(pickle.read_bytes() + b"0")
    with pytest.raises(ValueError, match=r"pytorch_model.bin has the sha256 .*, but the published file has"):
        load("laion-clap")


def test_a_hub_checkpoint_without_safetensors_is_refused(save: Save, hub_cache: HubCache, tmp_path: Path) -> None:
    folder = save("clap", tmp_path / "hub")
    torch.save(load_file(folder / "model.safetensors"), folder / "pytorch_model.bin")
    (folder / "model.safetensors").unlink()
    hub_cache("some/clap", folder, ["model.safetensors", "model.safetensors.index.json", "processor_config.json"])
    with pytest.raises(ValueError, match="'some/clap' on the Hugging Face Hub holds no safetensors weights"):
        load("some/clap")


@pytest.mark.parametrize("seconds", [2.1, 4.0, 4.5])
def test_a_longer_clip_is_the_mean_of_windows(seconds: float, saved: Saved, make_clips: MakeClips) -> None:
    clips, window = make_clips(RATE, seconds), 2 * RATE
    encoder = load(saved("clap"))
    count = math.ceil(seconds / 2)
    starts = [int(place * (clips.shape[1] - window) / (count - 1)) for place in range(count)]
    mean = np.mean([encoder.embed(clips[:, start : start + window], RATE) for start in starts], axis=0)
    expected = mean / np.linalg.norm(mean, axis=1, keepdims=True)
    np.testing.assert_allclose(encoder.embed(clips, RATE), expected, atol=1e-5)


def test_layers_poolings_and_frames_of_a_longer_clip_are_refused(saved: Saved, make_clips: MakeClips) -> None:
    clips, complaint = make_clips(RATE, 2.1), r"clips last 2\.1 s, but .* takes 2 s at most"
    for options in ({"layer": 1}, {"pooling": "mean"}):
        with pytest.raises(ModelError, match=complaint):
            load(saved("clap"), **options).embed(clips, RATE)
    with pytest.raises(ModelError, match=complaint):
        load(saved("clap")).embed_frames(clips, RATE)
