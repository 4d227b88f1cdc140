"""What an encoder is: the protocol that everything else relies on, and the base class the built-in ones share.

An encoder turns clips into one vector each. Encoders that come with the project work in two stages, so that a
pipeline can overlap them: `prepare` (resampling and the front end, on the CPU) and `forward` (the model).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any, Generic, Protocol, TypeVar, runtime_checkable

import numpy as np
import soxr
from numpy.typing import ArrayLike, NDArray

from .options import DEFAULT_OPTIONS, EncoderOptions

Features = TypeVar("Features")
FloatArray = NDArray[np.float32]

INT16_SCALE = 32_768
"""16-bit samples are divided by this, so that full scale is [-1, 1)."""


class ClipError(ValueError):
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


@runtime_checkable
class Encoder(Protocol):
    """Anything that embeds clips.

    Attributes:
        id: name of the encoder; result files are named by it.
        sample_rate: rate in Hz that the encoder works at. `embed` takes clips at any rate and resamples them.
        output_dim: length of an embedding.
        revision: what exactly was run: a version for a baseline, the commit of a Hub repository or the SHA-256 of
            the weights and settings of a folder, the seed of an untrained model with its commit or settings.
    """

    @property
    def id(self) -> str: ...  # noqa: D102

    @property
    def sample_rate(self) -> int: ...  # noqa: D102

    @property
    def output_dim(self) -> int: ...  # noqa: D102

    @property
    def revision(self) -> str: ...  # noqa: D102

    def embed(self, waveforms: ArrayLike, sample_rate: int) -> FloatArray:
        """Embed clips of equal length.

        Args:
            waveforms: [n, samples], floating within [-1, 1], or int16.
            sample_rate: their rate in Hz.

        Returns:
            float32 [n, output_dim]; a row depends on its own clip only.
        """
        ...


class StagedEncoder(ABC, Generic[Features]):
    """An encoder in two stages. A subclass sets the four attributes and implements the two underscored methods.

    Attributes:
        device: torch device of the model; one without a model computes on the CPU.
        options: layer, pooling and precision, where there is a model to choose them for.
        weights_sha256: SHA-256 of the weights; None where there are none, or fresh ones.
        front_end_version: counted up when a change to the front end changes embeddings, so that stored ones are not
            taken for new ones.
        paradigm: how the model was trained, in words; None where it is not known.
        licence: of the weights, as their publisher states it; None where it is not known.
    """

    id: str
    sample_rate: int
    output_dim: int
    revision: str
    device: str = "cpu"
    options: EncoderOptions = DEFAULT_OPTIONS
    weights_sha256: str | None = None
    front_end_version: int = 1
    paradigm: str | None = None
    licence: str | None = None

    def prepare(self, waveforms: ArrayLike, sample_rate: int) -> Features:
        """Validate clips, bring them to the encoder's rate and compute what its model takes.

        Args:
            waveforms: [n, samples], floating within [-1, 1], or int16.
            sample_rate: their rate in Hz.

        Raises:
            ValueError: on a wrong shape, type or rate, or a clip that the encoder cannot take.
            ClipError: when one clip is to blame (NaN, infinity); it carries the row.
        """
        clips = resample(check_waveforms(waveforms), check_sample_rate(sample_rate), self.sample_rate)
        return self._extract_features(clips)

    def forward(self, features: Features) -> FloatArray:
        """Embed what `prepare` returned: float32 [n, output_dim].

        Raises:
            ClipError: when an embedding is not finite.
            ValueError: when the model returned another shape than it should.
        """
        return check_embeddings(self._run_model(features), self)

    def embed(self, waveforms: ArrayLike | Sequence[ArrayLike], sample_rate: int) -> FloatArray:
        """Embed clips: `forward(prepare(waveforms, sample_rate))`; see `Encoder.embed`.

        Clips of different lengths may be given as a list of [samples] arrays. Those of one length are embedded
        together, so that none is padded to another's length.
        """
        if not isinstance(waveforms, (list, tuple)) or len({np.shape(clip) for clip in waveforms}) <= 1:
            return self.forward(self.prepare(np.asarray(waveforms), sample_rate))
        clips = [np.asarray(clip) for clip in waveforms]
        embeddings = np.empty((len(clips), self.output_dim), np.float32)
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


def check_waveforms(waveforms: ArrayLike) -> FloatArray:
    """Validated clips as float32 [n, samples] within [-1, 1].

    Floating input is taken as it is, int16 is divided by 32,768.

    Raises:
        ValueError: if the array is not 2-D, is empty, or is of another type.
        ClipError: if a clip holds NaN or infinity.
    """
    array = np.asarray(waveforms)
    if array.ndim != 2:
        hint = "; wrap a single clip as waveform[None, :]" if array.ndim == 1 else ""
        raise ValueError(f"waveforms have shape {array.shape}, but must be [n, samples]{hint}")
    if array.size == 0:
        raise ValueError(f"waveforms have shape {array.shape}, but must hold a clip and a sample at least")
    if array.dtype == np.int16:
        return array.astype(np.float32) / np.float32(INT16_SCALE)
    if not np.issubdtype(array.dtype, np.floating):
        raise ValueError(f"waveforms are {array.dtype}, but must be floating within [-1, 1], or int16")
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
        ValueError: if it is no positive whole number of Hz.
    """
    if isinstance(sample_rate, bool) or int(sample_rate) != sample_rate or sample_rate <= 0:
        raise ValueError(f"sample rate {sample_rate!r} must be a positive whole number of Hz")
    return int(sample_rate)


def resample(clips: FloatArray, source_rate: int, target_rate: int) -> FloatArray:
    """Clips [n, samples] brought from one rate (Hz) to another by soxr at its quality "HQ" (20 bits).

    Each clip is resampled alone, so that its samples do not depend on its batch; between equal rates clips are
    returned as they are.

    Raises:
        ValueError: if the clips are too short to leave one sample.
    """
    if source_rate == target_rate:
        return clips
    resampled: FloatArray = np.stack([soxr.resample(c, source_rate, target_rate, quality="HQ") for c in clips])
    if resampled.shape[1] == 0:
        raise ValueError(
            f"clips of {clips.shape[1]} samples at {source_rate} Hz are shorter than one sample at {target_rate} Hz"
        )
    return resampled


def check_embeddings(embeddings: NDArray[Any], encoder: Encoder, count: int | None = None) -> FloatArray:
    """Embeddings as float32 [n, output_dim], known to be finite.

    Args:
        embeddings: what a model returned.
        encoder: whose `id` and `output_dim` the check uses.
        count: number of clips, where the caller knows it.

    Raises:
        ValueError: on another shape.
        ClipError: if a row is not finite.
    """
    array = np.asarray(embeddings)
    rows = len(array) if count is None and array.ndim else count
    if array.shape != (rows, encoder.output_dim):
        expected = f"[{'n' if count is None else count}, {encoder.output_dim}]"
        raise ValueError(f"encoder '{encoder.id}' returned shape {array.shape}, but must return {expected}")
    if not np.issubdtype(array.dtype, np.floating):
        raise ValueError(f"encoder '{encoder.id}' returned {array.dtype}, but must return floating embeddings")
    finite = np.isfinite(array).all(axis=1)
    if not finite.all():
        row = int(np.argmin(finite))
        bad = int((~np.isfinite(array[row])).sum())
        raise ClipError(
            f"encoder '{encoder.id}' returned {bad} of {encoder.output_dim} values that are NaN or infinite",
            row,
        )
    return array.astype(np.float32, copy=False)
