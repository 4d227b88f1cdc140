"""Features of clips, computed once and kept on disk, since every epoch of every stage uses each clip.

The front end is that of evaluation. Preparing takes one pass over the clips; chunks that a killed process has finished
are not computed again, and processes of one machine share the features that one of them prepares. Each clip's features
have a digest, which a process compares when it first takes them: damaged ones are computed again, and a line says so.
"""

from __future__ import annotations

import errno
import hashlib
import json
import os
import shutil
import time
import warnings
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from functools import cached_property
from itertools import islice
from math import prod
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, Protocol

import numpy as np
from numpy.typing import NDArray

from audio_compositionality.dataset_builder.data import Clip
from audio_compositionality.encoders.base import FloatArray, resample
from audio_compositionality.support.files import CACHE_VARIABLE, cache_folder, locked, write_whole

from .settings import TrainingError

if TYPE_CHECKING:
    import torch
    from tqdm import tqdm
    from transformers import ClapFeatureExtractor

    from .data import TrainingData

VERSION = 2
"""Version of the stored features; it rises with any change of the values."""

CHUNK = 32
"""Clips of a chunk, which are computed, written and noted as done together."""

_DTYPE = np.dtype(np.float16)

_VALUES, _DIGESTS, _WHOLE, _LOCK = "values.bin", "digests.bin", "features.json", "lock"

_DIGEST = hashlib.sha256().digest_size
"""Bytes of a clip's digest; only zeros stand for a clip that is not done."""

_SPARE = 2**26
"""Bytes that must stay free on the disk."""


class ClipFrontEnd(Protocol):
    """The front end of a model: everything computed of a clip before weights take part.

    Attributes:
        sample_rate: Hz.
        shape: of the features of a clip.
        settings: all that decides the features, as JSON values.
    """

    @property
    def sample_rate(self) -> int: ...  # noqa: D102

    @property
    def shape(self) -> tuple[int, ...]: ...  # noqa: D102

    @property
    def settings(self) -> Mapping[str, Any]: ...  # noqa: D102

    def __call__(self, waveform: FloatArray) -> FloatArray:
        """Features, float32 of `shape`, of a clip [samples] at the front end's rate."""
        ...


class ClapFrontEnd:
    """The log-mel spectrogram of a `ClapModel`, ``input_features`` [1, frames, mels] in decibels; see `ClipFrontEnd`.

    As in evaluation, a clip shorter than the window is filled as the checkpoint says. A longer one is cut to its
    beginning: training has one embedding a clip.
    """

    def __init__(self, extractor: ClapFeatureExtractor, name: str) -> None:
        """Read the settings.

        Args:
            extractor: of the checkpoint.
            name: of the checkpoint, for messages.

        Raises:
            ModelError: on a setting that is not covered.
        """
        from audio_compositionality.encoders.front_ends.clap import ClapLogMel

        self._log_mel = ClapLogMel(extractor, name)
        self.sample_rate = int(extractor.sampling_rate)
        self.shape = (1, self._log_mel.frames, int(extractor.feature_size))
        digest = hashlib.sha256()
        for buffer in self._log_mel.buffers():
            digest.update(buffer.contiguous().numpy().tobytes())
        self.settings = {
            "front_end": "clap",
            "sample_rate": self.sample_rate,
            "window": self._log_mel.window_samples,
            "hop": int(extractor.hop_length),
            "size": int(extractor.fft_window_size),
            "padding": str(extractor.padding),
            "filters": digest.hexdigest(),
        }

    def __call__(self, waveform: FloatArray) -> FloatArray:
        """See `ClipFrontEnd`."""
        import torch

        clip = np.ascontiguousarray(waveform[None, : self._log_mel.window_samples])
        with torch.inference_mode():
            features: FloatArray = self._log_mel(torch.from_numpy(clip)).numpy()
        return features


@dataclass(frozen=True)
class StoredFeatures:
    """Features of all clips of some data, read from disk by need; see `batches.FeatureSource`.

    Attributes:
        folder: where they are.
        values: [clips, ...], memory-mapped; not compared with their digests.
        compute: computes the features of a clip by its number, float32.
    """

    folder: Path
    values: NDArray[Any]
    compute: Callable[[int], FloatArray]

    @cached_property
    def _digests(self) -> NDArray[np.uint8]:
        """SHA-256 of each clip's features, [clips, 32]."""
        return np.fromfile(self.folder / _DIGESTS, np.uint8).reshape(len(self.values), _DIGEST)

    @cached_property
    def _checked(self) -> NDArray[np.bool_]:
        """Whether the features of each clip were compared, [clips]."""
        return np.zeros(len(self.values), bool)

    def read(self, clips: NDArray[np.int64]) -> NDArray[np.float16]:
        """Features [n, ...] of clips by their numbers, as they are stored.

        Features that this process reads for the first time are compared with their digest: each clip costs one pass
        over its own bytes alone. Where the digest differs they are computed again, and a warning says so.
        """
        features: NDArray[np.float16] = self.values[clips]
        for place in np.flatnonzero(~self._checked[clips]).tolist():
            clip = int(clips[place])
            if self._checked[clip]:
                continue
            if _digest(features[place]) != self._digests[clip].tobytes():
                features[clips == clip] = self._again(clip)
            self._checked[clip] = True
        return features

    def gather(self, clips: NDArray[np.int64]) -> torch.Tensor:
        """Features [n, ...] of clips by their numbers, float32; see `read`."""
        import torch

        return torch.from_numpy(self.read(clips).astype(np.float32))

    def _again(self, clip: int) -> NDArray[np.float16]:
        """The features of a clip, computed again and written over the damaged ones."""
        warnings.warn(
            f"{self.folder / _VALUES} or {_DIGESTS} beside it is damaged: the features of clip {clip} are not those of "
            "their digest, and are computed again",
            stacklevel=3,
        )
        features = self.compute(clip).astype(_DTYPE)
        digest = _digest(features)
        with (self.folder / _VALUES).open("r+b") as values, (self.folder / _DIGESTS).open("r+b") as digests:
            _write_at(values, clip * features.nbytes, features.tobytes())
            _write_at(digests, clip * _DIGEST, digest)
        self._digests[clip] = np.frombuffer(digest, np.uint8)
        return features


def _digest(features: NDArray[np.float16]) -> bytes:
    return hashlib.sha256(features.data).digest()


def _write_at(stream: BinaryIO, place: int, content: bytes) -> None:
    stream.seek(place)
    stream.write(content)
    stream.flush()


def features_folder(data: TrainingData, front_end: ClipFrontEnd) -> Path:
    """The folder for the features of some data: one for equal clips, front ends and versions."""
    stated = {"version": VERSION, "fingerprint": data.fingerprint, "clips": data.num_clips, **front_end.settings}
    digest = hashlib.sha256(json.dumps(stated, sort_keys=True).encode()).hexdigest()
    return cache_folder() / "training-features" / digest[:32]


def prepare_features(
    data: TrainingData,
    front_end: ClipFrontEnd,
    *,
    folder: Path | None = None,
    workers: int | None = None,
    progress: bool = False,
) -> StoredFeatures:
    """The features of all clips of some data, of every split; missing ones are computed.

    While another process prepares the same, this one waits, and goes on where that one ends unfinished.

    Args:
        data: any split of them.
        front_end: of the model.
        folder: where to keep them; by default `features_folder`.
        workers: threads that compute, beside the one that renders or reads; default one a core, four at most.
        progress: show a bar.

    Raises:
        TrainingError: the disk has not the room.
        DatasetError: a clip cannot be used: names it.
    """
    folder = features_folder(data, front_end) if folder is None else folder
    shape = (data.num_clips, *front_end.shape)
    folder.mkdir(parents=True, exist_ok=True)
    while not _is_whole(folder, shape):
        with locked(folder / _LOCK) as got:
            if got and not _is_whole(folder, shape):
                _prepare(data, front_end, folder, shape, workers or min(os.cpu_count() or 1, 4), progress)
        if not got:
            time.sleep(0.2)

    def compute(clip: int) -> FloatArray:
        (one,) = data.clips(range(clip, clip + 1))
        return _features(one, front_end)

    return StoredFeatures(folder, np.memmap(folder / _VALUES, _DTYPE, "r", shape=shape), compute)


def _is_whole(folder: Path, shape: Sequence[int]) -> bool:
    return (folder / _WHOLE).is_file() and _have_sizes(folder, shape)


def _have_sizes(folder: Path, shape: Sequence[int]) -> bool:
    """Whether values and digests are there, for so many clips."""
    sizes = {_VALUES: prod(shape) * _DTYPE.itemsize, _DIGESTS: shape[0] * _DIGEST}
    return all((folder / name).is_file() and (folder / name).stat().st_size == size for name, size in sizes.items())


def _prepare(
    data: TrainingData, front_end: ClipFrontEnd, folder: Path, shape: tuple[int, ...], workers: int, progress: bool
) -> None:
    """Compute the unfinished chunks, and note that all are done."""
    from tqdm.auto import tqdm

    size = prod(shape[1:]) * _DTYPE.itemsize
    digests = _open_files(folder, shape)
    starts = range(0, shape[0], CHUNK)
    missing = [chunk for chunk, start in enumerate(starts) if not digests[start : start + CHUNK].any(axis=1).all()]
    _check_room(folder, len(missing) * CHUNK * size, shape[0])
    total = shape[0]
    bar: tqdm[Any]
    with (
        (folder / _VALUES).open("r+b") as values,
        (folder / _DIGESTS).open("r+b") as notes,
        tqdm(total=total, desc="log-mels", unit="clip", disable=not progress, leave=None) as bar,
    ):
        bar.n = min((len(starts) - len(missing)) * CHUNK, total)
        bar.refresh()
        try:
            for chunk, features in _computed(data, front_end, missing, workers):
                stored = features.astype(_DTYPE)
                _write_at(values, chunk * CHUNK * size, stored.tobytes())
                # Features with a digest must be on disk, even if the machine stops.
                os.fsync(values.fileno())
                _write_at(notes, chunk * CHUNK * _DIGEST, b"".join(map(_digest, stored)))
                bar.update(len(features))
        except OSError as error:
            if error.errno != errno.ENOSPC:
                raise
            _check_room(folder, 2**62, shape[0])
    stated = {"version": VERSION, "source": data.source, "recipe": data.recipe, "shape": shape, "dtype": _DTYPE.name}
    write_whole(folder / _WHOLE, json.dumps({**stated, **front_end.settings}, indent=1) + "\n")


def _open_files(folder: Path, shape: Sequence[int]) -> NDArray[np.uint8]:
    """Make the file of values at its full size, where it is not there; returns the digests, [clips, 32]."""
    values, digests = folder / _VALUES, folder / _DIGESTS
    if not _have_sizes(folder, shape):
        if (folder / _WHOLE).is_file():
            warnings.warn(
                f"{values} or {digests.name} beside it is not of its size: all is computed again", stacklevel=4
            )
        (folder / _WHOLE).unlink(missing_ok=True)
        write_whole(digests, bytes(shape[0] * _DIGEST))
        with values.open("wb") as stream:
            stream.truncate(prod(shape) * _DTYPE.itemsize)
    return np.fromfile(digests, np.uint8).reshape(shape[0], _DIGEST)


def _check_room(folder: Path, needed: int, clips: int) -> None:
    """Refuse to begin where the disk has not the room.

    Raises:
        TrainingError: says how much is needed and free, and what to do.
    """
    free = shutil.disk_usage(folder).free
    if needed + _SPARE > free:
        more = f"take {needed / 1e9:,.2f} GB more" if needed < 2**60 else "take more than there is"
        raise TrainingError(
            f"the log-mels of {clips:,} clips {more} in {folder}, where {free / 1e9:,.2f} GB are free: make room, or "
            f"name another folder in {CACHE_VARIABLE}. Finished features are kept"
        )


def _computed(
    data: TrainingData, front_end: ClipFrontEnd, chunks: Sequence[int], workers: int
) -> Iterator[tuple[int, FloatArray]]:
    """The features of chunks of clips, in their order: threads compute them while this one renders or reads on."""

    def of_clips(clips: list[Clip]) -> FloatArray:
        return np.stack([_features(clip, front_end) for clip in clips])

    waiting: deque[tuple[int, Future[FloatArray]]] = deque()
    with ThreadPoolExecutor(workers, thread_name_prefix="features") as pool:
        try:
            for chunk, clips in _clips_of(data, chunks):
                waiting.append((chunk, pool.submit(of_clips, clips)))
                # As many chunks wait as there are threads: clips do not pile up.
                if len(waiting) > workers + 1:
                    first, future = waiting.popleft()
                    yield first, future.result()
            while waiting:
                first, future = waiting.popleft()
                yield first, future.result()
        finally:
            pool.shutdown(cancel_futures=True)


def _clips_of(data: TrainingData, chunks: Sequence[int]) -> Iterator[tuple[int, list[Clip]]]:
    """The clips of each chunk; consecutive chunks are read in one pass."""
    runs: list[list[int]] = []
    for chunk in chunks:
        if runs and runs[-1][-1] + 1 == chunk:
            runs[-1].append(chunk)
        else:
            runs.append([chunk])
    for run in runs:
        clips = data.clips(range(run[0] * CHUNK, min((run[-1] + 1) * CHUNK, data.num_clips)))
        for chunk in run:
            yield chunk, list(islice(clips, CHUNK))


def _features(clip: Clip, front_end: ClipFrontEnd) -> FloatArray:
    return front_end(resample(clip.waveform[None], clip.sample_rate, front_end.sample_rate)[0])
