"""What controls do to clips, float32 [n, samples]: each clip by itself, so that a batch changes nothing."""

from __future__ import annotations

import hashlib

import numpy as np

from ..base import INT16_SCALE, FloatArray

NOISE_LEVEL = 0.1
"""Root mean square of the noise that clips become: 20 dB below full scale."""

STRETCH = 0.25
"""Seconds of the stretches in which a clip is put into disorder."""

PADDED_SECONDS = 10
"""How long clips become that are padded: the window of CLAP, which repeats shorter ones until they fill it."""


def reversed_clips(clips: FloatArray, sample_rate: int) -> FloatArray:
    """Clips [n, samples] backwards."""
    return clips[:, ::-1]


def padded_clips(clips: FloatArray, sample_rate: int) -> FloatArray:
    """Clips [n, samples] with silence behind them up to `PADDED_SECONDS`."""
    missing = max(0, PADDED_SECONDS * sample_rate - clips.shape[1])
    return np.pad(clips, ((0, 0), (0, missing)))


def silence_clips(clips: FloatArray, sample_rate: int) -> FloatArray:
    """One clip [1, samples] of silence, which stands for all."""
    return np.zeros_like(clips[:1])


def noise_clips(clips: FloatArray, sample_rate: int) -> FloatArray:
    """White noise for each of some clips [n, samples], of one level; the same for the same clip in any batch."""
    return np.stack([_noise_of(clip) for clip in clips])


def _noise_of(clip: FloatArray) -> FloatArray:
    """White noise of the length of a clip, and of one level whatever its own: its samples are but the seed."""
    noise: FloatArray = _generator_of(clip).standard_normal(len(clip), np.float32)
    limited: FloatArray = np.clip(np.float32(NOISE_LEVEL) * noise, -1, 1)
    return limited


def shuffled_clips(clips: FloatArray, sample_rate: int) -> FloatArray:
    """Clips [n, samples] whose stretches of `STRETCH` are in disorder, the same for the same clip in any batch."""
    return np.stack([_shuffled_one(clip, max(1, round(STRETCH * sample_rate))) for clip in clips])


def _shuffled_one(clip: FloatArray, length: int) -> FloatArray:
    """A clip with its whole stretches of so many samples in another order, its own in any batch; the rest stays last.

    They are cut and joined without fades: a fade would take from each what the others keep, and clicks are in all
    clips alike.
    """
    whole = len(clip) // length * length
    stretches = clip[:whole].reshape(-1, length)
    return np.concatenate([stretches[_generator_of(clip).permutation(len(stretches))].ravel(), clip[whole:]])


def _generator_of(clip: FloatArray) -> np.random.Generator:
    """Random numbers that the 16-bit samples of a clip decide."""
    samples = np.clip(np.rint(clip * INT16_SCALE), -INT16_SCALE, INT16_SCALE - 1).astype("<i2")
    seed = int.from_bytes(hashlib.blake2b(samples.tobytes(), digest_size=16).digest(), "little")
    return np.random.Generator(np.random.Philox(seed))
