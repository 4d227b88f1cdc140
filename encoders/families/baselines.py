"""Baselines, which are not trained: the two of the paper, and the statistics of a log-mel spectrogram.

"Downsample" and "Random" are rows of the results in arXiv 2603.13685; both embed a clip in 768 values here. The
log-mel statistics are the simplest embedding that describes a sound, so that a network can be seen to add to it.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from audio_compositionality.support.errors import InputError

from ..base import INT16_SCALE, FloatArray, WaveformEncoder
from ..loading.listing import ModelListing
from ..protocols import ModelCard

BASELINE_DIM = 768
SAMPLE_RATE = 32_000


def _card(name: str, output_dim: int) -> ModelCard:
    return ModelCard(name, "v1", SAMPLE_RATE, output_dim, paradigm="none (baseline)", licence="Apache-2.0")


class Downsample(WaveformEncoder):
    """The waveform of the whole clip, band-limited and resampled to 768 values (see `fourier_resample`).

    It is linear: nothing is normalised by clip.
    """

    card = _card("downsample", BASELINE_DIM)

    def _run_model(self, features: FloatArray) -> FloatArray:
        return fourier_resample(features, BASELINE_DIM).astype(np.float32)


class RandomVector(WaveformEncoder):
    """768 normal variates (mean 0, variance 1), seeded by the clip's content.

    The seed is the BLAKE2b digest of the samples rounded to 16 bits, so the same clip has the same vector in any
    batch, order or process, and clips that differ in one 16-bit sample have independent vectors.
    """

    card = _card("random", BASELINE_DIM)

    def _run_model(self, features: FloatArray) -> FloatArray:
        samples = np.clip(np.rint(features * INT16_SCALE), -INT16_SCALE, INT16_SCALE - 1).astype("<i2")
        return np.stack([self._vector(clip.tobytes()) for clip in samples])

    def _vector(self, content: bytes) -> FloatArray:
        seed = int.from_bytes(hashlib.blake2b(content, digest_size=16).digest(), "little")
        vector: FloatArray = np.random.Generator(np.random.Philox(seed)).standard_normal(BASELINE_DIM, np.float32)
        return vector


class LogMelStatistics(WaveformEncoder):
    """Mean and standard deviation over time of a log-mel spectrogram: 128 means, then 128 deviations.

    Hann window of 1,024 samples (32 ms), hop of 512 (16 ms), frames centred and the clip zero-padded by half a
    window at both ends; power; 128 Slaney mel filters from 0 to 16 kHz; log10, floored at 1e-10 (-100 dB of a
    power of 1); the deviation is that of the population.
    """

    mels = 128
    card = _card("log-mel-statistics", 2 * mels)
    window = 1024
    hop = 512
    floor = 1e-10

    def _run_model(self, features: FloatArray) -> FloatArray:
        return np.stack([self._statistics(clip) for clip in features])

    def _statistics(self, clip: FloatArray) -> FloatArray:
        frames = np.lib.stride_tricks.sliding_window_view(np.pad(clip, self.window // 2), self.window)[:: self.hop]
        # In blocks that stay in the cache, which takes half the time.
        mel = np.concatenate([self._mel(frames[start : start + 64]) for start in range(0, len(frames), 64)])
        log_mel = np.log10(np.maximum(mel, np.float32(self.floor)))
        statistics = np.concatenate([log_mel.mean(axis=0, dtype=np.float64), log_mel.std(axis=0, dtype=np.float64)])
        return statistics.astype(np.float32)

    def _mel(self, frames: FloatArray) -> FloatArray:
        """Mel spectrogram [frames, mels] of frames [frames, window]."""
        filters = _mel_filters(self.card.sample_rate, self.window, self.mels)
        spectrum = np.fft.rfft(frames * filters.taper)
        power = spectrum.real**2 + spectrum.imag**2
        # The filters are nearly all zeros; a matrix product would also start BLAS threads for nothing.
        mel: FloatArray = np.add.reduceat(power[:, filters.bins] * filters.weights, filters.starts, axis=1)
        return mel


@dataclass(frozen=True)
class _MelFilters:
    """Hann window and the non-zero weights of mel filters, filter after filter.

    Attributes:
        taper: [window].
        bins: frequency bin of each weight.
        weights: as long.
        starts: where each filter's weights begin.
    """

    taper: FloatArray
    bins: NDArray[np.intp]
    weights: FloatArray
    starts: NDArray[np.intp]


@lru_cache(maxsize=1)
def _mel_filters(sample_rate: int, window: int, mels: int) -> _MelFilters:
    import librosa

    taper = (0.5 - 0.5 * np.cos(2 * np.pi * np.arange(window) / window)).astype(np.float32)
    matrix = librosa.filters.mel(sr=sample_rate, n_fft=window, n_mels=mels)
    filters, bins = np.nonzero(matrix)
    return _MelFilters(taper, bins, matrix[filters, bins], np.searchsorted(filters, np.arange(mels)))


def fourier_resample(signals: NDArray[np.floating], length: int) -> NDArray[np.float64]:
    """Signals [n, samples] resampled to [n, length] by truncating or zero-padding their Fourier series.

    This is the trigonometric interpolation of each signal, taken as one period: a frequency below the lower of
    the two Nyquist frequencies passes unchanged, one above is removed, and a clip whose two ends differ rings at
    them. The values are those of `scipy.signal.resample`, which takes three times as long. It is linear, to the
    precision of float64.

    Raises:
        InputError: if `length` is odd, where the spectrum would end in no Nyquist bin.
    """
    if length % 2:
        raise InputError(f"length {length} must be even")
    samples = signals.shape[-1]
    half = length // 2
    kept = min(half, samples // 2)
    spectrum = np.stack([_low_bins(signal, kept + 1) for signal in signals])
    if samples > length:
        # Bin -length/2 folds onto +length/2; for real signals their sum is twice the real part.
        spectrum[:, half] = 2 * spectrum[:, half].real
    elif samples < length and samples % 2 == 0:
        # The Nyquist bin of the signal becomes two ordinary bins, +samples/2 and -samples/2.
        spectrum[:, kept] *= 0.5
    resampled: NDArray[np.float64] = np.fft.irfft(spectrum, length) * (length / samples)
    return resampled


def _low_bins(signal: NDArray[np.floating], count: int) -> NDArray[np.complex128]:
    """The first `count` bins of the discrete Fourier transform of a signal.

    Decimation in time (Cooley and Tukey, 1965): the transforms of `step` interleaved signals, which are short and
    run side by side, and the sum of their bins with twiddle factors. For the few low bins of a long signal this is
    about three times as fast as the whole transform.
    """
    twiddles = _twiddles(signal.shape[0], count)
    interleaved = np.asarray(signal, dtype=np.float64).reshape(-1, twiddles.shape[1])
    bins: NDArray[np.complex128] = np.einsum("kj,kj->k", np.fft.rfft(interleaved, axis=0)[:count], twiddles)
    return bins


@lru_cache(maxsize=2)
def _twiddles(samples: int, count: int) -> NDArray[np.complex128]:
    """exp(-2πi·k·j/samples), [count, step], with `samples/step` the shortest transform that has `count` bins."""
    short = next(size for size in range(1, samples + 1) if samples % size == 0 and size // 2 + 1 >= count)
    phase = np.outer(np.arange(count), np.arange(samples // short)) / samples
    twiddles: NDArray[np.complex128] = np.exp(-2j * np.pi * phase)
    return twiddles


def _listing(
    encoder: type[WaveformEncoder], description: str, *, is_reference: bool = False, is_linear: bool = False
) -> ModelListing:
    card = encoder.card
    assert card.paradigm is not None
    assert card.licence is not None
    return ModelListing(
        card.id,
        card.output_dim,
        card.sample_rate,
        card.paradigm,
        card.licence,
        description,
        make=encoder,
        is_baseline=True,
        is_reference=is_reference,
        is_linear=is_linear,
    )


MODELS = (
    _listing(
        Downsample,
        "the waveform resampled to 768 values; linear, so that sums of sounds are sums of embeddings",
        is_linear=True,
    ),
    _listing(RandomVector, "768 normal variates seeded by the clip's content; knows nothing"),
    _listing(
        LogMelStatistics,
        "mean and standard deviation over time of a 128-band log-mel spectrogram",
        is_reference=True,
    ),
)
