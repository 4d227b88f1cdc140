"""PE-Audio against transformers' own model."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch
import transformers
from safetensors.torch import load_file, save_file

from audio_compositionality.encoders.loading.registry import load_model
from audio_compositionality.encoders.options import EncoderOptions

Saved = Callable[[str], Path]
Save = Callable[[str, Path], Path]
MakeClips = Callable[[int, float], np.ndarray]

RATE = 48_000


def relative_error(actual: np.ndarray, expected: torch.Tensor) -> float:
    return float(np.abs(actual - expected.numpy()).max() / expected.abs().max())


def inputs_of(folder: Path, clips: np.ndarray) -> dict[str, torch.Tensor]:
    extractor = transformers.PeAudioFeatureExtractor.from_pretrained(folder)
    return extractor(list(clips), sampling_rate=RATE, return_tensors="pt")


def embed(folder: Path, clips: np.ndarray, **options: object) -> np.ndarray:
    encoder = load_model(str(folder), options=EncoderOptions(**options))
    embeddings = encoder.embed(clips, RATE)
    assert embeddings.shape == (len(clips), encoder.card.output_dim)
    return embeddings


@pytest.mark.parametrize("seconds", [0.04, 0.3, 0.5])
def test_the_embedding_is_the_projected_class_token(seconds: float, saved: Saved, make_clips: MakeClips) -> None:
    folder, clips = saved("pe-audio"), make_clips(RATE, seconds)
    model = transformers.PeAudioModel.from_pretrained(folder).eval()
    with torch.no_grad():
        expected = model.get_audio_embeds(**inputs_of(folder, clips))
        inner = model.audio_encoder(**inputs_of(folder, clips))
    assert relative_error(embed(folder, clips), expected) < 1e-5
    assert relative_error(embed(folder, clips, pooling="cls"), inner.pooler_output) < 1e-5
    assert relative_error(embed(folder, clips, pooling="mean"), inner.last_hidden_state.mean(1)) < 1e-5
    assert relative_error(embed(folder, clips, pooling="max"), inner.last_hidden_state.amax(1)) < 1e-5
    frames, distance = load_model(str(folder)).embed_frames(clips, RATE)
    assert distance == pytest.approx(0.04, rel=1e-12)
    assert relative_error(frames, inner.last_hidden_state) < 1e-5


def test_models_of_frames_project_each(saved: Saved, make_clips: MakeClips) -> None:
    folder, clips = saved("pe-audio-frames"), make_clips(RATE, 0.3)
    model = transformers.PeAudioFrameLevelModel.from_pretrained(folder).eval()
    with torch.no_grad():
        expected = model.get_audio_embeds(**inputs_of(folder, clips))
        token = model.audio_encoder(**inputs_of(folder, clips)).pooler_output
    assert expected.shape == (3, 8, 24)
    assert relative_error(embed(folder, clips), expected.mean(1)) < 1e-5
    assert relative_error(embed(folder, clips, pooling="max"), expected.amax(1)) < 1e-5
    assert relative_error(embed(folder, clips, pooling="cls"), token) < 1e-5


@pytest.mark.parametrize("family", ["pe-audio", "pe-audio-frames", "pe-audio-encoder"])
def test_layers(family: str, saved: Saved, make_clips: MakeClips) -> None:
    folder, clips = saved(family), make_clips(RATE, 0.3)
    model = transformers.AutoModel.from_pretrained(folder).eval()
    encoder = model if family == "pe-audio-encoder" else model.audio_encoder
    with torch.no_grad():
        output = encoder(**inputs_of(folder, clips), output_hidden_states=True)
    for layer in (0, 1):
        state = output.hidden_states[layer]
        assert relative_error(embed(folder, clips, layer=layer), state[:, 1:].mean(1)) < 1e-5
        assert relative_error(embed(folder, clips, layer=layer, pooling="cls"), state[:, 0]) < 1e-5
    assert torch.equal(output.hidden_states[2], output.last_hidden_state)
    assert relative_error(embed(folder, clips, layer=2), output.last_hidden_state.mean(1)) < 1e-5
    assert relative_error(embed(folder, clips, layer=2, pooling="cls"), output.pooler_output) < 1e-5


def test_an_encoder_alone_embeds_with_its_class_token(saved: Saved, make_clips: MakeClips) -> None:
    folder, clips = saved("pe-audio-encoder"), make_clips(RATE, 0.3)
    with torch.no_grad():
        expected = transformers.PeAudioEncoder.from_pretrained(folder).eval()(**inputs_of(folder, clips)).pooler_output
    assert relative_error(embed(folder, clips), expected) < 1e-5


@pytest.mark.parametrize("prefix", ["audio_model.", "audio_video_encoder.embedder."])
def test_the_audio_of_an_audio_visual_model(
    prefix: str, saved: Saved, save: Save, make_clips: MakeClips, tmp_path: Path
) -> None:
    """Two of its parts share the encoder, so that it may be stored under either name. Settings are as on the Hub."""
    folder = save("pe-audio", tmp_path / "av")
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(
        json.dumps(
            {
                "model_type": "pe_audio_video",
                "text_config": config["text_config"],
                "audio_video_config": {"audio_config": config["audio_config"]},
            }
        )
    )
    extractor = json.loads((folder / "preprocessor_config.json").read_text())
    (folder / "preprocessor_config.json").unlink()
    (folder / "processor_config.json").write_text(json.dumps({"feature_extractor": extractor}))
    weights = load_file(folder / "model.safetensors")
    renamed = {
        (prefix if name.startswith("audio_encoder.") else "audio_model.") + name: tensor
        for name, tensor in weights.items()
    }
    renamed["video_model.video_encoder.norm.weight"] = torch.zeros(3)
    save_file(renamed, folder / "model.safetensors", {"format": "pt"})
    clips = make_clips(RATE, 0.3)
    np.testing.assert_array_equal(embed(folder, clips), embed(saved("pe-audio"), clips))


def test_refusals(save: Save, saved: Saved, make_clips: MakeClips, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"clips of 1919 samples at 48000 Hz are shorter than one frame .*\(1920 samp"):
        embed(saved("pe-audio"), make_clips(RATE, 1919 / RATE))
    folder = save("pe-audio-encoder", tmp_path / "odd")
    transformers.PeAudioFeatureExtractor(hop_length=960).save_pretrained(folder)
    with pytest.raises(ValueError, match="makes frames of 960 samples, but the model of 1920"):
        load_model(str(folder))


def test_the_text_model_is_not_kept(saved: Saved) -> None:
    encoder = load_model(str(saved("pe-audio")))
    model = transformers.PeAudioModel.from_pretrained(saved("pe-audio"))
    kept = [*model.audio_encoder.parameters(), *model.audio_head.parameters()]
    assert encoder.card.parameters == sum(p.numel() for p in kept)
