"""Cnn14 with few channels, against the layers of the paper written out, librosa's spectrogram, and wrong files."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterator
from pathlib import Path

import librosa
import numpy as np
import pytest
import torch
from safetensors.numpy import save_file
from seeded import seeded_state, torchlibrosa_constants
from torch.nn.functional import avg_pool2d, batch_norm, conv2d, linear

from audio_compositionality.encoders.front_ends.torchlibrosa import DecibelSpectrogram
from audio_compositionality.encoders.loading.registry import load_model
from audio_compositionality.encoders.loading.weights import read_tensors
from audio_compositionality.encoders.model_encoder import ModelEncoder
from audio_compositionality.encoders.networks import cnn14
from audio_compositionality.encoders.options import EncoderOptions

from ..contract import CHANNELS, different_clips, small_networks

RATE = 32_000
CONSTANTS = torchlibrosa_constants("", sample_rate=RATE, n_fft=1024, mels=64, fmin=50, fmax=14_000)
MATRIX = "spectrogram_extractor.stft.conv_real.weight"


def official_state(channels: tuple[int, ...] = CHANNELS) -> dict[str, np.ndarray]:
    """A checkpoint by the official names."""
    norm = ("weight", "bias", "running_mean", "running_var")
    shapes: dict[str, tuple[int, ...]] = {f"bn0.{name}": (64,) for name in norm}
    shapes["bn0.num_batches_tracked"] = ()
    for number, (inputs, outputs) in enumerate(zip((1, *channels), channels, strict=False), start=1):
        block = f"conv_block{number}"
        shapes |= {f"{block}.conv1.weight": (outputs, inputs, 3, 3), f"{block}.conv2.weight": (outputs, outputs, 3, 3)}
        shapes |= {f"{block}.{bn}.{name}": (outputs,) for bn in ("bn1", "bn2") for name in norm}
        shapes |= {f"{block}.{bn}.num_batches_tracked": () for bn in ("bn1", "bn2")}
    last = channels[-1]
    shapes |= {"fc1.weight": (last, last), "fc1.bias": (last,), "fc_audioset.weight": (527, last)}
    return {**seeded_state({**shapes, "fc_audioset.bias": (527,)}), **CONSTANTS}


@pytest.fixture
def small() -> Iterator[None]:
    with small_networks():
        yield


@pytest.fixture
def load(small: None, tmp_path: Path) -> Callable[..., ModelEncoder]:
    """Function of options: the small model with its seeded weights."""
    path = tmp_path / "small.safetensors"
    save_file(official_state(), path)
    return lambda **options: load_model(f"panns-cnn14={path}", device="cpu", options=EncoderOptions(**options))


def blocks_by_hand(log_mel: np.ndarray) -> tuple[list[torch.Tensor], torch.Tensor]:
    """Output of every block [n, channels, frames, bands], of block 0 the input of the first, and the embedding."""
    state = {name: torch.from_numpy(array) for name, array in official_state().items()}

    def normalised(maps: torch.Tensor, name: str) -> torch.Tensor:
        parts = [state[f"{name}.{part}"] for part in ("running_mean", "running_var", "weight", "bias")]
        return batch_norm(maps, *parts)

    maps = normalised(torch.from_numpy(log_mel)[:, :, None], "bn0").permute(0, 2, 3, 1)
    outputs = [maps]
    for number in range(1, 7):
        for half in "12":
            maps = conv2d(maps, state[f"conv_block{number}.conv{half}.weight"], padding=1)
            maps = normalised(maps, f"conv_block{number}.bn{half}").relu()
        maps = avg_pool2d(maps, 2) if number < 6 else maps
        outputs.append(maps)
    moments = maps.mean(dim=3)
    summed = moments.amax(dim=2) + moments.mean(dim=2)
    return outputs, linear(summed, state["fc1.weight"], state["fc1.bias"]).relu()


def librosa_log_mel(clip: np.ndarray) -> np.ndarray:
    power = librosa.feature.melspectrogram(
        y=clip, sr=RATE, n_fft=1024, hop_length=320, window="hann", center=True, pad_mode="reflect", power=2.0,
        n_mels=64, fmin=50, fmax=14_000,
    )  # fmt: skip
    return librosa.power_to_db(power, ref=1.0, amin=1e-10, top_db=None)


def test_the_spectrogram_is_librosas() -> None:
    clips = different_clips(RATE, 0.5)
    expected = np.stack([librosa_log_mel(clip).T for clip in clips])
    ours = DecibelSpectrogram(RATE, cnn14.BAND_EDGES)(torch.from_numpy(clips)).numpy()
    # Bands with nearly no power come from rounding.
    loud = expected > -70
    assert loud.mean() > 0.5
    np.testing.assert_allclose(ours[loud], expected[loud], rtol=0, atol=5e-3)
    silence = DecibelSpectrogram(RATE, cnn14.BAND_EDGES)(torch.zeros(1, 9920))
    torch.testing.assert_close(silence, torch.full((1, 32, 64), -100.0))


def test_layers_are_the_blocks_of_the_paper(load: Callable[..., ModelEncoder]) -> None:
    clips = different_clips(RATE, 1.0)
    outputs, embedding = blocks_by_hand(np.stack([librosa_log_mel(clip) for clip in clips]))
    np.testing.assert_allclose(load().embed(clips, RATE), embedding, rtol=1e-3, atol=1e-3)
    for layer, maps in enumerate(outputs):
        expected = maps[:, 0] if layer == 0 else maps.mean(dim=3).transpose(1, 2)
        encoder = load(layer=layer)
        frames, frame_seconds = encoder.embed_frames(clips, RATE)
        assert frames.shape[1] == 101 // 2 ** min(layer, 5)
        assert frame_seconds == pytest.approx(0.01 * 2 ** min(layer, 5))
        np.testing.assert_allclose(frames, expected, rtol=1e-3, atol=1e-3)
        assert encoder.card.output_dim == (64, *CHANNELS)[layer]
        np.testing.assert_allclose(encoder.embed(clips, RATE), frames.mean(axis=1), rtol=1e-5, atol=1e-6)
    last, _ = load(layer=6).embed_frames(clips, RATE)
    np.testing.assert_allclose(load(pooling="max").embed(clips, RATE), last.max(axis=1), rtol=1e-6)


def test_clips_of_any_length_that_leaves_a_frame(load: Callable[..., ModelEncoder]) -> None:
    encoder = load()
    assert encoder.embed_frames(np.zeros((1, 9920)), RATE)[0].shape == (1, 1, CHANNELS[-1])
    assert encoder.embed_frames(np.zeros((1, 12 * RATE)), RATE)[0].shape == (1, 37, CHANNELS[-1])
    with pytest.raises(ValueError, match=r"9919 samples at 32000 Hz are shorter than one frame.*\(9920 samples\)"):
        encoder.embed(np.zeros((1, 9919)), RATE)
    with pytest.raises(ValueError, match="no class token"):
        load(pooling="cls")


@pytest.mark.parametrize("before_numpy_2", [True, False])
def test_a_training_checkpoint_with_its_samplers_state(before_numpy_2: bool, tmp_path: Path) -> None:
    path = tmp_path / "Cnn14.pth"
    model = OrderedDict((name, torch.from_numpy(array)) for name, array in official_state((1, 1, 1, 1, 1, 1)).items())
    sampler = {"queue": [np.arange(3), np.ones(2)], "pointers": [0, np.int64(2)], "rate": np.float64(0.5)}
    content = {"iteration": 600_000, "model": model, "sampler": sampler}
    torch.save(content, path, _use_new_zipfile_serialization=False)
    stored = path.read_bytes()
    assert b"numpy._core" in stored
    if before_numpy_2:
        path.write_bytes(stored.replace(b"numpy._core", b"numpy.core"))
    found = read_tensors(path)
    assert set(found) == set(model)
    assert all(torch.equal(found[name], tensor) for name, tensor in model.items())
