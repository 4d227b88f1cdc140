"""Baselines without training: the two baselines of the paper, and acoustic and text baselines.

"Downsample" and "Random" are rows of the results in arXiv 2603.13685; both embed a clip in 768 values here. The
log-mel statistics are the simplest embedding that describes a sound, a reference for the gain of a network. Statistics
of cepstra and of levels, and the level of a clip alone, are further controls, scored on request: they show which scores
a smooth spectrum alone, and loudness alone, can achieve.
"""

from __future__ import annotations

import hashlib
import math
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from audio_compositionality.support.errors import InputError

from ..base import INT16_SCALE, By, FloatArray, ModelCard, WaveformEncoder, check_texts, words_of
from ..loading.listing import ModelListing

BASELINE_DIM = 768
SAMPLE_RATE = 32_000

MELS = 128

WINDOW, HOP = 1024, 512
"""Samples of a frame (32 ms), and between frames, of the statistics over time."""

_OPTION = re.compile(r"^([A-Z])\. ", re.MULTILINE)
"""The letter of an option in a prompt."""

FLOOR = 1e-10
"""Smallest power in logarithms: -100 dB of a power of 1. It replaces smaller powers, such as silence."""


def card_of(name: str, output_dim: int) -> ModelCard:
    """Make the card of a baseline."""
    return ModelCard(name, "v1", SAMPLE_RATE, output_dim, paradigm="none (baseline)", licence="Apache-2.0")


class Downsample(WaveformEncoder):
    """The waveform of the full clip, band-limited and resampled to 768 values (see `fourier_resample`).

    It is linear: nothing is normalised by clip.
    """

    card = card_of("downsample", BASELINE_DIM)

    def _run_model(self, features: FloatArray) -> FloatArray:
        return fourier_resample(features, BASELINE_DIM).astype(np.float32)


class RandomVector(WaveformEncoder):
    """768 normal variates (mean 0, variance 1), seeded by the content of the clip or of the text.

    The seed is the BLAKE2b digest of the samples rounded to 16 bits, so the same clip has the same vector in any
    batch, order or process, and clips that differ in one 16-bit sample have independent vectors. The seed for a text is
    the digest of its UTF-8 bytes, personalised so that no clip has the same.
    """

    card = card_of("random", BASELINE_DIM)
    needs_columns = frozenset({"options"})

    def _run_model(self, features: FloatArray) -> FloatArray:
        return np.stack([seeded_normals(clip.tobytes(), BASELINE_DIM) for clip in _rounded(features)])

    def embed_text(self, texts: Sequence[str]) -> FloatArray:
        """Embed texts; see `Model.embed_text`."""
        return np.stack([seeded_normals(text.encode(), BASELINE_DIM, b"text") for text in check_texts(texts)])

    def answer(self, clips: Sequence[Sequence[Any]], prompts: Sequence[str]) -> list[str]:
        """Return one of the letters before the options of each prompt, seeded by the prompt and the clip; see
        `Model.answer`. For a prompt without such options the answer is empty."""
        return [self._letter(clip, prompt) for clip, prompt in zip(self.single_clips(clips), prompts, strict=True)]

    def score_options(
        self, clips: Sequence[Sequence[Any]], prompts: Sequence[str], options: Sequence[Sequence[str]], by: By
    ) -> list[list[float]]:
        """Return 0 for the option whose letter `answer` gives, else minus infinity; see `Model.score_options`."""
        places = ["ABCDEFGHIJKLMNOPQRSTUVWXYZ".find(letter or " ") for letter in self.answer(clips, prompts)]
        return [
            [0.0 if place == taken else -math.inf for place in range(len(texts))]
            for taken, texts in zip(places, options, strict=True)
        ]

    def _letter(self, clip: Any, prompt: str) -> str:
        letters = _OPTION.findall(prompt)
        samples = _rounded(np.asarray(clip.waveform, np.float32)).tobytes()
        digest = hashlib.blake2b(samples + prompt.encode(), digest_size=16, person=b"answer").digest()
        return letters[int.from_bytes(digest, "little") % len(letters)] if letters else ""


class LogMelStatistics(WaveformEncoder):
    """Mean and standard deviation over time of a log-mel spectrogram: 128 means, then 128 deviations.

    Hann window of 1,024 samples (32 ms), hop of 512 (16 ms), frames centred and the clip zero-padded by half a
    window at both ends; power; 128 Slaney mel filters from 0 to 16 kHz; log10, at least -10 (-100 dB of a power of 1);
    population standard deviation.
    """

    card = card_of("log-mel-statistics", 2 * MELS)

    def _run_model(self, features: FloatArray) -> FloatArray:
        return np.stack([self._statistics(clip) for clip in features])

    def embed_frames(self, waveforms: ArrayLike, sample_rate: int) -> tuple[FloatArray, float]:
        """Return the log-mel spectrogram, a frame every 16 ms; see `Model.embed_frames`."""
        features = self.prepare(waveforms, sample_rate)
        # Frames are centred on multiples of the hop: half a hop before the stated middle.
        return np.stack([_log_mel(clip) for clip in features]), HOP / SAMPLE_RATE

    def _statistics(self, clip: FloatArray) -> FloatArray:
        log_mel = _log_mel(clip)
        statistics = np.concatenate([log_mel.mean(axis=0, dtype=np.float64), log_mel.std(axis=0, dtype=np.float64)])
        return statistics.astype(np.float32)


class MfccStatistics(WaveformEncoder):
    """Mean and standard deviation over time of 20 mel cepstra, and the deviation of their deltas: 60 values.

    The cepstra follow `librosa.feature.mfcc` with its default number (torchaudio's is 40, others take 13), on the
    frames and mel bands of `LogMelStatistics`: decibels, limited to 80 dB below the loudest band of the clip, and their
    orthonormal cosine transform (DCT-II), whose first coefficient is the level. Deltas follow `librosa.feature.delta`:
    slopes over nine frames; the first and the last frame are repeated beyond the ends. Deviations are population
    standard deviations.
    """

    cepstra = 20
    card = card_of("mfcc-statistics", 3 * cepstra)
    range_db = 80.0

    def _run_model(self, features: FloatArray) -> FloatArray:
        return np.stack([self._statistics(clip) for clip in features])

    def _statistics(self, clip: FloatArray) -> FloatArray:
        import scipy.fft

        decibels = 10 * _log_mel(clip).astype(np.float64)
        raised = np.maximum(decibels, decibels.max() - self.range_db)
        cepstra = scipy.fft.dct(raised, norm="ortho", axis=1)[:, : self.cepstra]
        slopes = _over_nine(cepstra, _SLOPE)
        statistics = np.concatenate([cepstra.mean(axis=0), cepstra.std(axis=0), slopes.std(axis=0)])
        return statistics.astype(np.float32)


class ModulationStatistics(WaveformEncoder):
    """Log-mel statistics, and how fast each part of the spectrum changes: 256 values, then 16 bands × 8 rates.

    The log-mel spectrogram of `LogMelStatistics` is averaged over 16 bands of 8 mels and each band's mean over time is
    subtracted. Then the power of modulation between neighbouring `rates` is summed (over the frames, divided by their
    number) and its root taken: decibels, 0 for a band that does not change. Clips of fewer than `shortest` frames are
    followed by zeros, so that each rate has a bin.
    """

    bands, shortest, range_db = 16, 256, 60.0
    rates = 0.5 * 2 ** (0.75 * np.arange(9))
    """Hz, from 0.5 to 32 in steps of three quarters of an octave; there are 62.5 frames per second."""
    card = card_of("modulation-statistics", 2 * MELS + bands * (len(rates) - 1))

    def _run_model(self, features: FloatArray) -> FloatArray:
        return np.stack([self._statistics(_log_mel(clip).astype(np.float64)) for clip in features])

    def _statistics(self, log_mel: NDArray[np.float64]) -> FloatArray:
        bands = 10 * log_mel.reshape(len(log_mel), self.bands, -1).mean(axis=2)
        length = max(len(bands), self.shortest)
        spectrum = np.abs(np.fft.rfft(bands - bands.mean(axis=0), length, axis=0)) ** 2 / len(bands) ** 2
        rates = np.fft.rfftfreq(length, HOP / SAMPLE_RATE)
        powers = [
            spectrum[(low <= rates) & (rates < high)].sum(axis=0)
            for low, high in zip(self.rates, self.rates[1:], strict=False)
        ]
        modulation = np.sqrt(np.stack(powers, 1)).ravel()
        statistics = np.concatenate([log_mel.mean(axis=0), log_mel.std(axis=0), modulation])
        return statistics.astype(np.float32)

    def embed_frames(self, waveforms: ArrayLike, sample_rate: int) -> tuple[FloatArray, float]:
        """Return frames every 16 ms: 24 cepstra of decibels minus their mean over the clip, averaged over nine frames,
        their change over these, and the pairwise products of the first 12 averages; see `Model.embed_frames`.

        Bands more than `range_db` below the loudest are raised to that limit. From a sum of cepstra, a linear probe can
        find which sounds a clip has; from products, which sound is active at a moment.
        """
        import scipy.fft

        frames = []
        for clip in self.prepare(waveforms, sample_rate):
            decibels = 10 * _log_mel(clip).astype(np.float64)
            raised = np.maximum(decibels, decibels.max() - self.range_db)
            cepstra = scipy.fft.dct(raised - raised.mean(), norm="ortho", axis=1)[:, :24] / MELS**0.5
            means = _over_nine(cepstra, np.full(9, 1 / 9))
            first, second = np.triu_indices(12)
            products = means[:, first] * means[:, second] / 10
            frames.append(np.concatenate([means, 9 * _over_nine(cepstra, _SLOPE), products], axis=1))
        return np.stack(frames).astype(np.float32), HOP / SAMPLE_RATE


_SLOPE = np.arange(-4, 5) / 60
"""Weights of nine frames; the weighted sum is the slope of their regression line, per frame."""


def _over_nine(values: NDArray[np.float64], weights: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the weighted sum of each frame [frames, n] and its four neighbours on both sides; the ends are
    repeated."""
    ends = np.pad(values, ((4, 4), (0, 0)), mode="edge")
    summed: NDArray[np.float64] = np.lib.stride_tricks.sliding_window_view(ends, 9, axis=0) @ weights
    return summed


class LevelStatistics(WaveformEncoder):
    """The level of a clip over time: 8 values in decibels of full scale, none below -100.

    The level of the clip (root mean square) and its highest sample; then, over the levels of its frames, the mean, the
    standard deviation, the 10th, 50th and 90th percentile, and the mean absolute difference between neighbouring
    frames. Frames are as in `LogMelStatistics`, without a taper (`librosa.feature.rms`).
    """

    card = card_of("level-statistics", 8)
    percentiles = (10, 50, 90)

    def _run_model(self, features: FloatArray) -> FloatArray:
        return np.stack([self._statistics(clip.astype(np.float64)) for clip in features]).astype(np.float32)

    def _statistics(self, clip: NDArray[np.float64]) -> NDArray[np.float64]:
        of_clip = _decibels(np.array([np.mean(clip**2), np.max(clip**2)]))
        levels = _decibels(np.mean(_frames(clip) ** 2, axis=1))
        change = np.abs(np.diff(levels)).mean() if len(levels) > 1 else 0.0
        of_frames = (levels.mean(), levels.std(), *np.percentile(levels, self.percentiles), change)
        return np.array([*of_clip, *of_frames])


class RootMeanSquare(WaveformEncoder):
    """The root mean square of a clip: one number, 1 for a square wave at full scale."""

    card = card_of("rms", 1)

    def _run_model(self, features: FloatArray) -> FloatArray:
        power = np.mean(np.square(features, dtype=np.float64), axis=1, keepdims=True)
        level: FloatArray = np.sqrt(power).astype(np.float32)
        return level


def _rounded(samples: FloatArray) -> NDArray[np.int16]:
    """Round samples to 16 bits."""
    return np.clip(np.rint(samples * INT16_SCALE), -INT16_SCALE, INT16_SCALE - 1).astype("<i2")


def seeded_normals(content: bytes, count: int, kind: bytes = b"") -> FloatArray:
    """Return standard normal variates seeded by bytes.

    Args:
        content: bytes whose BLAKE2b digest is the seed.
        count: number of variates.
        kind: kind of content, at most 16 bytes: the same bytes of another kind give other variates.
    """
    seed = int.from_bytes(hashlib.blake2b(content, digest_size=16, person=kind).digest(), "little")
    vector: FloatArray = np.random.Generator(np.random.Philox(seed)).standard_normal(count, np.float32)
    return vector


def _decibels(power: NDArray[np.float64]) -> NDArray[np.float64]:
    decibels: NDArray[np.float64] = 10 * np.log10(np.maximum(power, FLOOR))
    return decibels


def _frames(clip: NDArray[Any]) -> NDArray[Any]:
    """Return frames [frames, WINDOW] of a clip padded with zeros by half a frame at both ends."""
    return np.lib.stride_tricks.sliding_window_view(np.pad(clip, WINDOW // 2), WINDOW)[::HOP]


def _log_mel(clip: FloatArray) -> FloatArray:
    """Return the logarithm to base 10 of the mel spectrogram of a clip at `SAMPLE_RATE`: [frames, MELS]."""
    frames, filters = _frames(clip), _mel_filters(SAMPLE_RATE, WINDOW, MELS)
    mels = []
    # In blocks that fit into the processor's cache, which takes half the time.
    for start in range(0, len(frames), 64):
        spectrum = np.fft.rfft(frames[start : start + 64] * filters.taper)
        power = spectrum.real**2 + spectrum.imag**2
        # The filters are nearly all zeros; a matrix product would also start BLAS threads for nothing.
        mels.append(np.add.reduceat(power[:, filters.bins] * filters.weights, filters.starts, axis=1))
    log_mel: FloatArray = np.log10(np.maximum(np.concatenate(mels), np.float32(FLOOR)))
    return log_mel


@dataclass(frozen=True)
class _MelFilters:
    """Hann window and the non-zero weights of mel filters, filter after filter.

    Attributes:
        taper: [window].
        bins: frequency bin of each weight.
        weights: weights, as many as bins.
        starts: index at which each filter's weights begin.
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
    """Resample signals [n, samples] to [n, length] by truncating or zero-padding their Fourier series.

    This is the trigonometric interpolation of each signal, taken as one period: a frequency below the lower of
    the two Nyquist frequencies passes unchanged, one above is removed, and a clip whose two ends differ rings at
    them. The values agree with `scipy.signal.resample`, which takes three times as long. It is linear, to the
    precision of float64.

    Raises:
        InputError: `length` is odd, so that the spectrum would have no Nyquist bin.
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
    """Return the first `count` bins of the discrete Fourier transform of a signal.

    Decimation in time (Cooley and Tukey, 1965): short transforms of `step` interleaved signals in parallel,
    and the sum of their bins with twiddle factors. For the few low bins of a long signal this is
    about three times as fast as the whole transform.
    """
    twiddles = _twiddles(signal.shape[0], count)
    interleaved = np.asarray(signal, dtype=np.float64).reshape(-1, twiddles.shape[1])
    bins: NDArray[np.complex128] = np.einsum("kj,kj->k", np.fft.rfft(interleaved, axis=0)[:count], twiddles)
    return bins


@lru_cache(maxsize=2)
def _twiddles(samples: int, count: int) -> NDArray[np.complex128]:
    """Return exp(-2πi·k·j/samples), [count, step]; `samples/step` is the shortest transform with `count` bins."""
    short = next(size for size in range(1, samples + 1) if samples % size == 0 and size // 2 + 1 >= count)
    phase = np.outer(np.arange(count), np.arange(samples // short)) / samples
    twiddles: NDArray[np.complex128] = np.exp(-2j * np.pi * phase)
    return twiddles


def listing_of(encoder: type[WaveformEncoder], description: str, **facts: Any) -> ModelListing:
    """Return the listing of a baseline from its card; `facts` are fields of `ModelListing`."""
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
        **facts,
    )


DIM = 256


class BagOfWords(LogMelStatistics):
    """A random vector per word; a text is the sum of its words' vectors, divided by the root of their number.

    Words are as in `words_of`: without case and punctuation. Texts of the same words have the
    same vector to the last bit, whatever their order. A clip is its log-mel statistics (`LogMelStatistics`), multiplied
    by a random matrix. Words and matrix are standard normal variates of fixed seeds, so that texts and clips are
    independent.
    """

    card = card_of("bag-of-words", DIM)

    def _run_model(self, features: FloatArray) -> FloatArray:
        # Row by row: the sums of a product of matrices depend on their size.
        return np.stack([row @ _projection() for row in super()._run_model(features)])

    def embed_text(self, texts: Sequence[str]) -> FloatArray:
        """Embed texts; see `Model.embed_text`. A text without words is a vector of zeros."""
        vectors = []
        for text in check_texts(texts):
            words = words_of(text)
            total = np.zeros(DIM)
            for word, count in sorted(Counter(words).items()):
                total += count * _vector_of(word)
            vectors.append((total / max(len(words), 1) ** 0.5).astype(np.float32))
        return np.stack(vectors)


@lru_cache(maxsize=10_000)
def _vector_of(word: str) -> FloatArray:
    return seeded_normals(word.encode(), DIM, b"word")


@lru_cache(maxsize=1)
def _projection() -> FloatArray:
    return seeded_normals(b"projection", 2 * MELS * DIM).reshape(2 * MELS, DIM) / np.float32((2 * MELS) ** 0.5)


MODELS = (
    listing_of(
        Downsample,
        "the waveform resampled to 768 values; linear, so that sums of sounds are sums of embeddings",
        is_linear=True,
        is_baseline=True,
    ),
    listing_of(
        RandomVector,
        "768 normal variates seeded by the content of the clip or of the text; for a question a random option",
        embeds_text=True,
        answers=True,
        is_baseline=True,
    ),
    listing_of(
        LogMelStatistics,
        "mean and standard deviation over time of a 128-band log-mel spectrogram; frames: the spectrogram itself",
        is_reference=True,
        embeds_frames=True,
        is_baseline=True,
    ),
    listing_of(
        ModulationStatistics,
        "log-mel statistics and the modulation spectrum, 16 bands by 8 rates; frames: cepstra, slopes and products",
        is_reference=True,
        embeds_frames=True,
        is_baseline=True,
    ),
    listing_of(
        MfccStatistics,
        "mean and standard deviation over time of 20 mel cepstra, and the deviation of their deltas",
    ),
    listing_of(
        LevelStatistics,
        "8 statistics of the level of a clip and of its changes, nothing else",
        is_level=True,
    ),
    listing_of(
        RootMeanSquare,
        "the root mean square of a clip: one number, nothing else",
        is_level=True,
    ),
    listing_of(
        BagOfWords,
        "texts: the sum of a random vector for each word, whatever their order; clips: a random projection of the "
        "log-mel statistics; the two are unrelated",
        is_reference=True,
        embeds_text=True,
    ),
)
