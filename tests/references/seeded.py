"""Weights and clips that a reference implementation and ours are both given: made from seeds by NumPy alone.

Nothing of the project is imported here, so that a reference's script can be run in an environment of its own that has
numpy, scipy, librosa and safetensors.

A checkpoint is too large to keep, its names and shapes are not: `seeded_state` fills them with the same numbers
anywhere. Weights are scaled so that signals keep their size through a deep network and every one of them matters.
"""

from __future__ import annotations

import json
import zlib
from collections.abc import Mapping, Sequence
from pathlib import Path

import librosa
import numpy as np
import scipy.ndimage
import scipy.signal
from safetensors.numpy import save_file

SECONDS = 10
FOLDER = Path(__file__).parent


def seeded_state(shapes: Mapping[str, Sequence[int]], seed: int = 0) -> dict[str, np.ndarray]:
    """A float32 array for each name and shape, as a function of name, shape and seed only."""
    return {name: _seeded_tensor(name, tuple(shape), seed) for name, shape in shapes.items()}


def _seeded_tensor(name: str, shape: tuple[int, ...], seed: int) -> np.ndarray:
    if name.endswith("num_batches_tracked"):
        return np.zeros(shape, np.int64)
    normal = np.random.default_rng([seed, zlib.crc32(name.encode())]).standard_normal(shape, np.float32)
    if name.endswith("running_var"):
        return (1 + 0.2 * np.tanh(normal)).astype(np.float32)
    if name.endswith("bias") or name.endswith("running_mean"):
        return 0.1 * normal
    if len(shape) <= 1:  # scales of normalisations
        return (1 + 0.1 * normal).astype(np.float32)
    if len(shape) == 2 or name.endswith("weight"):
        return normal / np.float32(np.sqrt(np.prod(shape[1:])))
    return 0.1 * normal  # tokens and positions


def torchlibrosa_constants(
    prefix: str, *, sample_rate: int, n_fft: int, mels: int, fmin: float, fmax: float
) -> dict[str, np.ndarray]:
    """What torchlibrosa keeps beside the weights: the windowed Fourier matrix and the mel filters, by its names."""
    window = scipy.signal.get_window("hann", n_fft, fftbins=True)
    matrix = np.exp(-2j * np.pi * np.outer(np.arange(n_fft // 2 + 1), np.arange(n_fft)) / n_fft) * window
    filters = librosa.filters.mel(sr=sample_rate, n_fft=n_fft, n_mels=mels, fmin=fmin, fmax=fmax)
    return {
        f"{prefix}spectrogram_extractor.stft.conv_real.weight": matrix.real[:, None].astype(np.float32),
        f"{prefix}spectrogram_extractor.stft.conv_imag.weight": matrix.imag[:, None].astype(np.float32),
        f"{prefix}logmel_extractor.melW": np.ascontiguousarray(filters.T, np.float32),
    }


def seeded_clips(sample_rate: int, seconds: float = SECONDS) -> np.ndarray:
    """Four clips, float32 [4, samples]: coloured noise, a sweep, repeated decaying tones, a soft chord with noise."""
    rng = np.random.default_rng(7)
    t = np.arange(round(seconds * sample_rate)) / sample_rate
    noise = np.cumsum(rng.standard_normal(t.size))
    noise = noise - scipy.ndimage.uniform_filter1d(noise, 64)
    sweep = scipy.signal.chirp(t, 60, seconds, 0.45 * sample_rate, "logarithmic")
    tones = np.sin(2 * np.pi * 440 * t) * np.exp(-8 * (t % 0.5)) + 0.3 * np.sin(2 * np.pi * 1318 * t) * (t % 1.3 < 0.4)
    chord = sum(np.sin(2 * np.pi * f * t + f) for f in (220, 277, 330, 2_000)) + 0.2 * rng.standard_normal(t.size)
    levels = (0.3, 0.8, 0.5, 0.05)
    clips = [
        level * clip / np.abs(clip).max() for level, clip in zip(levels, (noise, sweep, tones, chord), strict=True)
    ]
    return np.stack(clips).astype(np.float32)


def save_fixture(
    encoder: str,
    reference: str,
    sample_rate: int,
    shapes: dict[str, list[int]],
    embeddings: np.ndarray,
    constants: dict[str, object] | None = None,
) -> None:
    """Keep the embeddings [n, dim] that a reference with the seeded weights gives for the seeded clips.

    Args:
        encoder: registered name.
        reference: package and version.
        sample_rate: rate of the clips in Hz.
        shapes: shape of every tensor of the checkpoint, by its official name, but for the constants.
        embeddings: what the reference returned.
        constants: arguments of `torchlibrosa_constants`, where the checkpoint holds them.
    """
    about = {"reference": reference, "sample_rate": sample_rate, "shapes": shapes, "constants": constants}
    metadata = {"about": json.dumps(about), "command": f"python tests/references/{encoder.replace('-', '_')}.py"}
    save_file({"embeddings": np.ascontiguousarray(embeddings, np.float32)}, FOLDER / f"{encoder}.safetensors", metadata)
