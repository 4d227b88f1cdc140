"""Latents of codecs against their encoders called as transformers does on the way to the quantiser."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch
import transformers

from audio_compositionality.encoders.loading.registry import load_model
from audio_compositionality.encoders.options import EncoderOptions

Saved = Callable[[str], Path]
Save = Callable[[str, Path], Path]
MakeClips = Callable[[int, float], np.ndarray]

HOPS = {"encodec": 160, "encodec-stereo": 160, "dac": 320, "mimi": 1920}


def relative_error(actual: np.ndarray, expected: np.ndarray) -> float:
    return float(np.abs(actual - expected).max() / np.abs(expected).max())


def quantised(folder: Path, inputs: dict[str, torch.Tensor]) -> list[torch.Tensor]:
    """What the quantiser of a codec is given, call by call, when transformers encodes: [n, dim, frames]."""
    model = transformers.AutoModel.from_pretrained(folder).eval()
    seen: list[torch.Tensor] = []
    encode = model.quantizer.encode if hasattr(model.quantizer, "encode") else model.quantizer.forward

    def spy(latents: torch.Tensor, *arguments: object, **options: object) -> object:
        seen.append(latents)
        return encode(latents, *arguments, **options)

    setattr(model.quantizer, encode.__name__, spy)
    with torch.no_grad():
        model.encode(**inputs)
    return seen


def inputs_of(folder: Path, clips: np.ndarray, rate: int) -> dict[str, torch.Tensor]:
    extractor = transformers.AutoFeatureExtractor.from_pretrained(folder)
    sounds = list(clips) if extractor.feature_size == 1 else [np.stack([clip, clip]) for clip in clips]
    return extractor(raw_audio=sounds, sampling_rate=rate, return_tensors="pt")


@pytest.mark.slow
@pytest.mark.parametrize("seconds", [0.1, 0.4096, 0.7])
@pytest.mark.parametrize("family", ["encodec", "dac", "mimi"])
def test_latents_are_what_the_quantiser_is_given(
    family: str, seconds: float, saved: Saved, make_clips: MakeClips
) -> None:
    folder = saved(family)
    encoder = load_model(str(folder))
    rate = encoder.card.sample_rate
    clips = make_clips(rate, seconds)
    inputs = dict(inputs_of(folder, clips, rate))
    if family == "dac":
        inputs.pop("padding_mask")
    (expected,) = quantised(folder, inputs)
    frames, distance = encoder.embed_frames(clips, rate)
    assert frames.shape[1] == math.ceil(clips.shape[1] / HOPS[family])
    assert distance == pytest.approx(HOPS[family] / rate, rel=1e-12)
    assert relative_error(frames, expected.mT.numpy()) < 1e-5
    assert relative_error(encoder.embed(clips, rate), expected.mean(dim=2).numpy()) < 1e-5
    highest = load_model(str(folder), options=EncoderOptions(pooling="max"))
    assert relative_error(highest.embed(clips, rate), expected.amax(dim=2).numpy()) < 1e-5


@pytest.mark.parametrize("seconds", [0.01, 0.2, 0.25, 0.7])
def test_chunks_of_stereo_encodec(seconds: float, saved: Saved, make_clips: MakeClips) -> None:
    """Chunks of 12,000 samples every 11,880, 75 frames each; the grid of frames takes each from the latest chunk."""
    folder = saved("encodec-stereo")
    clips = make_clips(48_000, seconds)
    chunks = quantised(folder, inputs_of(folder, clips, 48_000))
    # What follows the last whole chunk is the overlap, wholly of padding.
    assert [chunk.shape for chunk in chunks] == [(3, 16, 75)] * (len(chunks) - 1) + [(3, 16, 1)]
    samples = clips.shape[1]
    starts = range(0, samples, 160)
    expected = np.stack([chunks[start // 11_880][:, :, start % 11_880 // 160].numpy() for start in starts], axis=1)
    encoder = load_model(str(folder))
    frames, distance = encoder.embed_frames(clips, 48_000)
    assert distance == pytest.approx(1 / 300, rel=1e-12)
    assert frames.shape == expected.shape
    assert relative_error(frames, expected) < 1e-5
    assert relative_error(encoder.embed(clips, 48_000), expected.mean(axis=1)) < 1e-5


def test_stereo_encodec_ignores_level_and_survives_silence(saved: Saved, make_clips: MakeClips) -> None:
    encoder, clips = load_model(str(saved("encodec-stereo"))), make_clips(48_000, 0.5)
    assert relative_error(encoder.embed(clips / 8, 48_000), encoder.embed(clips, 48_000)) < 1e-4
    assert np.isfinite(encoder.embed(np.zeros((1, 24_000)), 48_000)).all()
    mono = load_model(str(saved("encodec")))
    assert relative_error(mono.embed(clips / 8, 48_000), mono.embed(clips, 48_000)) > 1e-2


def test_layers_of_mimi(saved: Saved, make_clips: MakeClips) -> None:
    folder, clips = saved("mimi"), make_clips(24_000, 0.7)
    model = transformers.MimiModel.from_pretrained(folder).eval()
    with torch.no_grad():
        output = model.encoder(torch.from_numpy(clips)[:, None], output_hidden_states=True)
        state = model.encoder.encoder_seanet(torch.from_numpy(clips)[:, None]).mT
    assert torch.equal(output.hidden_states[0], state)
    embeddings = []
    for layer in range(3):
        encoder = load_model(str(folder), options=EncoderOptions(layer=layer))
        frames, distance = encoder.embed_frames(clips, 24_000)
        assert frames.shape == (3, 18, 32)  # 16,800 samples by 960
        assert distance == pytest.approx(0.04, rel=1e-12)
        assert relative_error(frames, output.hidden_states[layer].numpy()) < 1e-5
        embeddings.append(encoder.embed(clips, 24_000))
    assert min(relative_error(embeddings[k], embeddings[k + 1]) for k in range(2)) > 1e-3


@pytest.mark.parametrize("family", ["encodec", "encodec-stereo", "dac"])
def test_a_convolutional_codec_has_no_layers(family: str, saved: Saved) -> None:
    assert load_model(str(saved(family))).num_layers == 0
    with pytest.raises(ValueError, match=f"'{family}' is a convolutional codec without layers.*leave the layer out"):
        load_model(str(saved(family)), options=EncoderOptions(layer=0))


@pytest.mark.parametrize("family", list(HOPS))
def test_clips_shorter_than_a_frame(family: str, saved: Saved) -> None:
    encoder, hop = load_model(str(saved(family))), HOPS[family]
    noise = np.random.default_rng(0).normal(0, 0.1, (2, hop))
    assert encoder.embed_frames(noise, encoder.card.sample_rate)[0].shape == (2, 1, encoder.card.output_dim)
    message = f"clips of {hop - 1} samples at {encoder.card.sample_rate} Hz are shorter than one frame of '{family}'"
    with pytest.raises(ValueError, match=message):
        encoder.embed(noise[:, 1:], encoder.card.sample_rate)


def test_only_the_part_before_the_quantiser_is_kept(saved: Saved) -> None:
    for family in HOPS:
        encoder = load_model(str(saved(family)))
        whole = transformers.AutoModel.from_pretrained(saved(family))
        assert encoder.card.parameters == sum(p.numel() for p in whole.encoder.parameters())


def test_a_front_end_of_another_rate_is_refused(save: Save, tmp_path: Path) -> None:
    folder = save("dac", tmp_path / "dac")
    transformers.DacFeatureExtractor(sampling_rate=16_000, hop_length=320).save_pretrained(folder)
    with pytest.raises(ValueError, match="works at 16000 Hz, but the model at 44100 Hz"):
        load_model(str(folder))
