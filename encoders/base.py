"""The base class that audio encoders share, and the checks of what goes into a model and comes out of it.

The encoders work in two stages, so that a pipeline can overlap them: `prepare` (resampling and the front end) and
`forward` (the model).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

import numpy as np
import soxr
from numpy.typing import ArrayLike, NDArray

from audio_compositionality.support.errors import AudioCompositionalityError, InputError

from .protocols import AudioEncoder, ModelCard

Features = TypeVar("Features")
FloatArray = NDArray[np.float32]

INT16_SCALE = 32_768
"""16-bit samples are divided by this, so that full scale is [-1, 1)."""


class ModelError(AudioCompositionalityError):
    """A model that cannot be loaded, or cannot be run as it is asked for."""


class ClipError(AudioCompositionalityError):
    """One clip of a batch cannot be embedded.

    Attributes:
        reason: why.
        row: place of the clip in its batch, counted from 0.
    """

    def __init__(self, reason: str, row: int, clip: str | None = None) -> None:
        """`clip` is the clip's id, which the message names where it is known, else the row."""
        super().__init__(f"row {row}: {reason}" if clip is None else f"clip '{clip}': {reason}")
        self.reason = reason
        self.row = row


@dataclass(frozen=True)
class GivenClip:
    """A clip, as a model that answers is given it.

    Attributes:
        waveform: float32 [samples] in [-1, 1].
        sample_rate: Hz.
    """

    waveform: FloatArray
    sample_rate: int


class StagedEncoder(ABC, Generic[Features]):
    """An encoder in two stages. A subclass sets `card` and implements the two underscored methods.

    Attributes:
        card: what it is.
        device: torch device of the model; one without a model computes on the CPU.
    """

    card: ModelCard
    device: str = "cpu"

    def prepare(self, waveforms: ArrayLike, sample_rate: int) -> Features:
        """Validate clips, bring them to the encoder's rate and compute what its model takes.

        Args:
            waveforms: [n, samples], floating within [-1, 1], or int16.
            sample_rate: their rate in Hz.

        Raises:
            InputError: on a wrong shape, type or rate.
            ModelError: on clips that the model cannot take.
            ClipError: when one clip is to blame (NaN, infinity); it carries the row.
        """
        clips = resample(check_waveforms(waveforms), check_sample_rate(sample_rate), self.card.sample_rate)
        return self._extract_features(clips)

    def forward(self, features: Features) -> FloatArray:
        """Embed what `prepare` returned: float32 [n, output_dim].

        Raises:
            ClipError: when an embedding is not finite.
            ModelError: when the model returned another shape than it should.
        """
        return check_embeddings(self._run_model(features), self)

    def embed(self, waveforms: ArrayLike | Sequence[ArrayLike], sample_rate: int) -> FloatArray:
        """Embed clips: `forward(prepare(waveforms, sample_rate))`; see `AudioEncoder.embed`.

        Clips of different lengths may be given as a list of [samples] arrays. Those of one length are embedded
        together, so that none is padded to another's length.
        """
        if not isinstance(waveforms, (list, tuple)) or len({np.shape(clip) for clip in waveforms}) <= 1:
            return self.forward(self.prepare(np.asarray(waveforms), sample_rate))
        clips = [np.asarray(clip) for clip in waveforms]
        embeddings = np.empty((len(clips), output_dim_of(self)), np.float32)
        for shape in sorted({clip.shape for clip in clips}):
            rows = [row for row, clip in enumerate(clips) if clip.shape == shape]
            embeddings[rows] = self.forward(self.prepare([clips[row] for row in rows], sample_rate))
        return embeddings

    @abstractmethod
    def _extract_features(self, clips: FloatArray) -> Features:
        """Features of valid clips, float32 [n, samples] at the encoder's own rate."""

    @abstractmethod
    def _run_model(self, features: Features) -> FloatArray:
        """Embeddings [n, output_dim] of features."""


class WaveformEncoder(StagedEncoder[FloatArray]):
    """An encoder whose features are the waveforms themselves, float32 [n, samples] at its own rate."""

    def _extract_features(self, clips: FloatArray) -> FloatArray:
        return clips


def check_waveforms(waveforms: ArrayLike) -> FloatArray:
    """Validated clips as float32 [n, samples] within [-1, 1].

    Floating input is taken as it is, int16 is divided by 32,768.

    Raises:
        InputError: if the array is not 2-D, is empty, or is of another type.
        ClipError: if a clip holds NaN or infinity.
    """
    array = np.asarray(waveforms)
    if array.ndim != 2:
        hint = "; wrap a single clip as waveform[None, :]" if array.ndim == 1 else ""
        raise InputError(f"waveforms have shape {array.shape}, but must be [n, samples]{hint}")
    if array.size == 0:
        raise InputError(f"waveforms have shape {array.shape}, but must hold a clip and a sample at least")
    if array.dtype == np.int16:
        return array.astype(np.float32) / np.float32(INT16_SCALE)
    if not np.issubdtype(array.dtype, np.floating):
        raise InputError(f"waveforms are {array.dtype}, but must be floating within [-1, 1], or int16")
    clips: FloatArray = np.ascontiguousarray(array, dtype=np.float32)
    finite = np.isfinite(clips).all(axis=1)
    if not finite.all():
        row = int(np.argmin(finite))
        sample = int(np.argmin(np.isfinite(clips[row])))
        value = array[row, sample]
        raise ClipError(f"the waveform holds {value} at sample {sample}; samples must be finite", row)
    return clips


def check_sample_rate(sample_rate: int) -> int:
    """The rate as an int.

    Raises:
        InputError: if it is no positive whole number of Hz.
    """
    if isinstance(sample_rate, bool) or int(sample_rate) != sample_rate or sample_rate <= 0:
        raise InputError(f"sample rate {sample_rate!r} must be a positive whole number of Hz")
    return int(sample_rate)


def resample(clips: FloatArray, source_rate: int, target_rate: int) -> FloatArray:
    """Clips [n, samples] brought from one rate (Hz) to another by soxr at its quality "HQ" (20 bits).

    Each clip is resampled alone, so that its samples do not depend on its batch; between equal rates clips are
    returned as they are.

    Raises:
        InputError: if the clips are too short to leave one sample.
    """
    if source_rate == target_rate:
        return clips
    resampled: FloatArray = np.stack([soxr.resample(c, source_rate, target_rate, quality="HQ") for c in clips])
    if resampled.shape[1] == 0:
        raise InputError(
            f"clips of {clips.shape[1]} samples at {source_rate} Hz are shorter than one sample at {target_rate} Hz"
        )
    return resampled


def output_dim_of(encoder: AudioEncoder) -> int:
    """Length of the embeddings of an encoder.

    Raises:
        ModelError: if its card states none.
    """
    if encoder.card.output_dim is None:
        raise ModelError(f"the card of '{encoder.card.id}' states no output_dim; that of an encoder must")
    return encoder.card.output_dim


def check_embeddings(embeddings: NDArray[Any], encoder: AudioEncoder, count: int | None = None) -> FloatArray:
    """Embeddings as float32 [n, output_dim], known to be finite.

    Args:
        embeddings: what a model returned.
        encoder: whose card the check uses.
        count: number of clips, where the caller knows it.

    Raises:
        ModelError: on another shape or type.
        ClipError: if a row is not finite.
    """
    array, dim = np.asarray(embeddings), output_dim_of(encoder)
    rows = len(array) if count is None and array.ndim else count
    if array.shape != (rows, dim):
        expected = f"[{'n' if count is None else count}, {dim}]"
        raise ModelError(f"encoder '{encoder.card.id}' returned shape {array.shape}, but must return {expected}")
    if not np.issubdtype(array.dtype, np.floating):
        raise ModelError(f"encoder '{encoder.card.id}' returned {array.dtype}, but must return floating embeddings")
    finite = np.isfinite(array).all(axis=1)
    if not finite.all():
        row = int(np.argmin(finite))
        bad = int((~np.isfinite(array[row])).sum())
        raise ClipError(
            f"encoder '{encoder.card.id}' returned {bad} of {dim} values that are NaN or infinite",
            row,
        )
    return array.astype(np.float32, copy=False)
