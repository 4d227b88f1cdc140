"""A narrow PaSST with two blocks, against torch's own transformer, a spectrogram from NumPy, and wrong files."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import librosa
import numpy as np
import pytest
import scipy.signal
import torch
from safetensors.numpy import save_file
from seeded import seeded_state

from audio_compositionality.encoders.front_ends.passt import PasstLogMel
from audio_compositionality.encoders.loading.registry import load_model
from audio_compositionality.encoders.model_encoder import ModelEncoder
from audio_compositionality.encoders.options import EncoderOptions

from ..contract import PASST, different_clips, small_networks

RATE = 32_000
DIM, DEPTH, HEADS = (PASST[name] for name in ("DIM", "DEPTH", "HEADS"))


def official_state(dim: int = DIM) -> dict[str, np.ndarray]:
    """A checkpoint by the official names."""
    shapes: dict[str, tuple[int, ...]] = {
        "cls_token": (1, 1, dim),
        "dist_token": (1, 1, dim),
        "new_pos_embed": (1, 2, dim),
        "freq_new_pos_embed": (1, dim, 12, 1),
        "time_new_pos_embed": (1, dim, 1, 99),
        "patch_embed.proj.weight": (dim, 1, 16, 16),
        "patch_embed.proj.bias": (dim,),
        "norm.weight": (dim,),
        "norm.bias": (dim,),
        "head.0.weight": (dim,),
        "head.0.bias": (dim,),
        "head.1.weight": (527, dim),
        "head.1.bias": (527,),
        "head_dist.weight": (527, dim),
        "head_dist.bias": (527,),
    }
    for block in range(DEPTH):
        for name, rows, columns in (
            ("attn.qkv", 3 * dim, dim),
            ("attn.proj", dim, dim),
            ("mlp.fc1", 4 * dim, dim),
            ("mlp.fc2", dim, 4 * dim),
        ):
            shapes |= {f"blocks.{block}.{name}.weight": (rows, columns), f"blocks.{block}.{name}.bias": (rows,)}
        for name in ("norm1", "norm2"):
            shapes |= {f"blocks.{block}.{name}.weight": (dim,), f"blocks.{block}.{name}.bias": (dim,)}
    return seeded_state(shapes)


@pytest.fixture
def small() -> Iterator[None]:
    with small_networks():
        yield


@pytest.fixture
def load(small: None, tmp_path: Path) -> Callable[..., ModelEncoder]:
    """Function of options: the small model with its seeded weights."""
    path = tmp_path / "small.safetensors"
    save_file(official_state(), path)
    return lambda **options: load_model(f"passt-s={path}", device="cpu", options=EncoderOptions(**options))


def log_mel_by_hand(clip: np.ndarray) -> np.ndarray:
    """[128, frames]: Kaldi's triangles on the scale 1127 ln(1 + f / 700)."""
    emphasised = clip[1:] - 0.97 * clip[:-1]
    spectrum = librosa.stft(
        emphasised, n_fft=1024, hop_length=320, win_length=800, window=scipy.signal.get_window("hann", 800, False),
        center=True, pad_mode="reflect",
    )  # fmt: skip
    mels = 1127 * np.log1p(np.arange(513) * RATE / 1024 / 700)
    edges = np.linspace(0, 1127 * np.log1p(15_000 / 700), 130)
    filters = np.stack(
        [
            np.maximum(0, np.minimum((mels - low) / (mid - low), (high - mels) / (high - mid)))
            for low, mid, high in zip(edges, edges[1:], edges[2:], strict=False)
        ]
    )
    return (np.log(filters @ np.abs(spectrum) ** 2 + 1e-5) + 4.5) / 5


def tokens_by_hand(log_mel: np.ndarray) -> tuple[list[torch.Tensor], torch.Tensor]:
    """Tokens [n, tokens, dim] before and after every block, and after the last normalisation."""
    state = {name: torch.from_numpy(array) for name, array in official_state().items()}
    moments = (log_mel.shape[2] - 16) // 10 + 1
    kernel = state["patch_embed.proj.weight"][:, 0]
    tokens = [(state[f"{name}_token"][0] + state["new_pos_embed"][0, i]) for i, name in enumerate(("cls", "dist"))]
    tokens = [token.expand(len(log_mel), -1) for token in tokens]
    for band in range(12):
        for moment in range(moments):
            patch = torch.from_numpy(log_mel[:, 10 * band : 10 * band + 16, 10 * moment : 10 * moment + 16]).float()
            position = state["freq_new_pos_embed"][0, :, band, 0] + state["time_new_pos_embed"][0, :, 0, moment]
            tokens.append(torch.einsum("nft,dft->nd", patch, kernel) + state["patch_embed.proj.bias"] + position)
    outputs = [torch.stack(tokens, dim=1)]
    renamed = {
        "self_attn.in_proj_": "attn.qkv.",
        "self_attn.out_proj.": "attn.proj.",
        "linear1.": "mlp.fc1.",
        "linear2.": "mlp.fc2.",
        "norm1.": "norm1.",
        "norm2.": "norm2.",
    }
    for block in range(DEPTH):
        layer = torch.nn.TransformerEncoderLayer(
            DIM, HEADS, 4 * DIM, 0.0, "gelu", layer_norm_eps=1e-6, batch_first=True, norm_first=True
        )
        names = [(f"{to}{part}", f"blocks.{block}.{of}{part}") for to, of in renamed.items() for part in PARTS]
        layer.load_state_dict({to: state[of] for to, of in names})
        with torch.no_grad():
            outputs.append(layer(outputs[-1]))
    last = torch.nn.functional.layer_norm(outputs[-1], (DIM,), state["norm.weight"], state["norm.bias"], 1e-6)
    return outputs, last


PARTS = ("weight", "bias")


def test_the_spectrogram_is_that_of_the_package() -> None:
    clips = different_clips(RATE, 0.5)
    expected = np.stack([log_mel_by_hand(clip.astype(np.float64)) for clip in clips])
    np.testing.assert_allclose(PasstLogMel()(torch.from_numpy(clips)), expected, atol=1e-4)


@pytest.mark.slow
@pytest.mark.parametrize("seconds", [10.0, 1.23])
def test_layers_tokens_and_frames(seconds: float, load: Callable[..., ModelEncoder]) -> None:
    clips = different_clips(RATE, seconds)
    log_mel = np.stack([log_mel_by_hand(clip.astype(np.float64)) for clip in clips])
    outputs, last = tokens_by_hand(log_mel)
    moments = (log_mel.shape[2] - 16) // 10 + 1
    assert moments == (99 if seconds == 10 else 11)
    for layer, tokens in [*enumerate(outputs), (None, last)]:
        encoder = load(layer=layer)
        frames, frame_seconds = encoder.embed_frames(clips, RATE)
        expected = torch.stack([tokens[:, 2 + m :: moments].mean(dim=1) for m in range(moments)], dim=1)
        np.testing.assert_allclose(frames, expected, atol=2e-4)
        assert (frame_seconds, encoder.card.output_dim) == (0.1, DIM)
        cls = load(layer=layer, pooling="cls").embed(clips, RATE)
        np.testing.assert_allclose(cls, (tokens[:, 0] + tokens[:, 1]) / 2, atol=2e-4)
        mean = load(layer=layer, pooling="mean").embed(clips, RATE)
        np.testing.assert_allclose(mean, frames.mean(axis=1), atol=1e-6)
        # The model's own embedding is of its output only.
        np.testing.assert_array_equal(encoder.embed(clips, RATE), cls if layer is None else mean)


def test_lengths(load: Callable[..., ModelEncoder]) -> None:
    encoder = load()
    assert encoder.embed_frames(np.zeros((1, 4801)), RATE)[0].shape == (1, 1, DIM)
    assert encoder.embed_frames(np.zeros((1, 320_000)), RATE)[0].shape == (1, 99, DIM)
    with pytest.raises(ValueError, match=r"clips of 4800 samples at 32000 Hz are shorter than one frame of.*\(4801"):
        encoder.embed(np.zeros((1, 4800)), RATE)
    with pytest.raises(ValueError, match=r"clips last 10\.5 s, but 'passt-s' takes 10 s at most; cut them before"):
        encoder.embed(np.zeros((1, 336_000)), RATE)
