"""Features of clips, computed once and kept on disk, since every epoch of every stage uses each clip.

The front end is the one for evaluation. Preparing takes one pass over the clips; chunks that a killed process has
finished are not computed again, and processes of one machine share the features that one of them prepares. Each clip's
features have a digest, which a process compares when it first reads them: damaged ones are computed again, with a
warning.
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
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from functools import cached_property
from itertools import islice
from math import prod
from pathlib import Path
from tokenize import TokenError
from typing import TYPE_CHECKING, Any, Literal, Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

from audio_compositionality.dataset_builder.data import Clip
from audio_compositionality.encoders.base import FloatArray, resample
from audio_compositionality.support.files import (
    CACHE_VARIABLE,
    cache_folder,
    locked,
    open_file,
    sha256_of_json,
    write_whole,
)
from audio_compositionality.support.progress import make_bar

from .settings import TrainingError

if TYPE_CHECKING:
    import torch
    from transformers import ClapFeatureExtractor

    from .data import TrainingData

VERSION = 4
"""Version of the stored features; raise it with any change of the values or files."""

CHUNK = 32
"""Number of clips of a chunk, which are computed, written and marked as done together."""

_VALUES, _DIGESTS, _FACTS = "values.npy", "digests.npy", "features.json"
"""Float16 [clips, ...]; `_digest` of each clip's values, bytes [clips, 32], zeros until it is done; the settings."""

_SPARE = 2**26
"""Bytes that must stay free on the disk."""


class ClipFrontEnd(Protocol):
    """The front end of a model: everything computed from a clip before weights take part.

    Attributes:
        sample_rate: Hz.
        shape: shape of the features of a clip.
        settings: all that decides the features, as JSON values.
    """

    @property
    def sample_rate(self) -> int: ...  # noqa: D102

    @property
    def shape(self) -> tuple[int, ...]: ...  # noqa: D102

    @property
    def settings(self) -> Mapping[str, Any]: ...  # noqa: D102

    def __call__(self, waveform: FloatArray) -> FloatArray:
        """Return features, float32 of `shape`, of a clip [samples] at the front end's rate."""
        ...


class ClapFrontEnd:
    """The log-mel spectrogram of a `ClapModel`, ``input_features`` [1, frames, mels] in decibels; see `ClipFrontEnd`.

    As in evaluation, a clip shorter than the window is filled as the checkpoint states. Only the
    beginning of a longer one is used: training has one embedding per clip.
    """

    def __init__(self, extractor: ClapFeatureExtractor, name: str) -> None:
        """Read the settings.

        Args:
            extractor: feature extractor of the checkpoint.
            name: name of the checkpoint, for messages.

        Raises:
            ModelError: a setting is not supported.
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
    """Features of all clips of some data, read from disk when needed; see `batches.FeatureSource`.

    Attributes:
        folder: folder of the files.
        values: [clips, ...], memory-mapped; not compared with their digests.
        digests: digest of each clip's features, bytes [clips, 32], memory-mapped; see `_digest`.
        owner: digest of the data and the front end.
        compute: computes the features of a clip by its number, float32.
    """

    folder: Path
    values: NDArray[Any]
    digests: NDArray[np.uint8]
    owner: str
    compute: Callable[[int], FloatArray]

    @cached_property
    def _checked(self) -> NDArray[np.bool_]:
        """Whether the features of each clip were compared, [clips]."""
        return np.zeros(len(self.values), bool)

    def read(self, clips: NDArray[np.int64]) -> NDArray[np.float16]:
        """Return features [n, ...] of clips by their numbers, as they are stored.

        Features that this process reads for the first time are compared with their digest; this reads only the clip's
        own bytes. If the digest differs, they are computed again and overwritten, with a warning.
        """
        features: NDArray[np.float16] = self.values[clips]
        for clip in np.unique(clips[~self._checked[clips]]).tolist():
            if _digest(self.values[clip], clip, self.owner) != self.digests[clip].tobytes():
                warnings.warn(
                    f"{self.folder / _VALUES} or {_DIGESTS} next to it is damaged: the features of clip {clip} do not "
                    "match their digest and are computed again",
                    stacklevel=3,
                )
                again = self.compute(clip).astype(np.float16)
                features[clips == clip] = again
                if (arrays := _open_arrays(self.folder, self.values.shape, "r+")) is not None:
                    arrays[0][clip], arrays[1][clip] = again, np.frombuffer(_digest(again, clip, self.owner), np.uint8)
            self._checked[clip] = True
        return features

    def gather(self, clips: NDArray[np.int64]) -> torch.Tensor:
        """Return features [n, ...] of clips by their numbers, float32; see `read`."""
        import torch

        return torch.from_numpy(self.read(clips).astype(np.float32))


def _digest(features: NDArray[np.float16], clip: int, owner: str) -> bytes:
    """Return the SHA-256 of a clip's features, its number and their owner, so that other data are not confused."""
    return hashlib.sha256(f"{owner} {clip} ".encode() + features.tobytes()).digest()


def _owner(data: TrainingData, front_end: ClipFrontEnd) -> str:
    """Return a digest of all that decides features: equal for equal clips, front ends and versions."""
    stated = {"version": VERSION, "fingerprint": data.fingerprint, "clips": data.num_clips, **front_end.settings}
    return sha256_of_json(stated)


def features_folder(data: TrainingData, front_end: ClipFrontEnd) -> Path:
    """Return the folder for the features of some data: equal for equal clips, front ends and versions."""
    return cache_folder() / "training-features" / _owner(data, front_end)[:32]


def prepare_features(
    data: TrainingData,
    front_end: ClipFrontEnd,
    *,
    folder: Path | None = None,
    workers: int | None = None,
    progress: bool = False,
) -> StoredFeatures:
    """Return the features of all clips of some data, of every split; missing ones are computed.

    While another process prepares the same features, this one waits; if that one ends early, this one continues.

    Args:
        data: any split of the data.
        front_end: front end of the model.
        folder: where to keep the features; by default `features_folder`.
        workers: number of threads that compute, in addition to the one that renders or reads; by default one per core,
            at most four.
        progress: show a progress bar.

    Raises:
        TrainingError: the disk has too little space.
        DatasetError: a clip cannot be used; it is named.
    """
    folder = features_folder(data, front_end) if folder is None else folder
    shape, owner = (data.num_clips, *front_end.shape), _owner(data, front_end)
    folder.mkdir(parents=True, exist_ok=True)

    def compute(clips: Iterable[Clip]) -> FloatArray:
        waveforms = (resample(clip.waveform[None], clip.sample_rate, front_end.sample_rate)[0] for clip in clips)
        return np.stack([front_end(waveform) for waveform in waveforms])

    while (arrays := _open_arrays(folder, shape)) is None or not arrays[1].any(axis=1).all():
        with locked(folder / "lock") as got:
            if got:
                arrays = _open_arrays(folder, shape, "r+") or _make_arrays(folder, shape)
                facts = {"version": VERSION, "source": data.source, "recipe": data.recipe, **front_end.settings}
                write_whole(folder / _FACTS, json.dumps(facts, indent=1) + "\n")
                _fill(*arrays, data, owner, compute, workers or min(os.cpu_count() or 1, 4), progress)
        if not got:
            time.sleep(0.2)
    return StoredFeatures(folder, *arrays, owner, lambda clip: compute(data.clips(range(clip, clip + 1)))[0])


_Arrays: TypeAlias = tuple["np.memmap[Any, Any]", "np.memmap[Any, Any]"]


def _open_arrays(folder: Path, shape: tuple[int, ...], mode: Literal["r", "r+"] = "r") -> _Arrays | None:
    """Open the values and digests in a folder; None if they are missing, truncated or of another shape."""
    try:
        # Opened for writing, a truncated file would be made longer.
        for name, expected in ((_VALUES, shape), (_DIGESTS, (shape[0], hashlib.sha256().digest_size))):
            open_file(folder / name).close()
            if np.lib.format.open_memmap(folder / name, "r").shape != expected:
                return None
        values, digests = (np.lib.format.open_memmap(folder / name, mode) for name in (_VALUES, _DIGESTS))
    except (OSError, ValueError, SyntaxError, TokenError, OverflowError, MemoryError):
        # A header is Python, and read as such; it may claim any shape, and any length of its own.
        return None
    return values, digests


def _make_arrays(folder: Path, shape: tuple[int, ...]) -> _Arrays:
    """Create files of values and digests, and reserve their disk space.

    Raises:
        TrainingError: the disk has too little space; states how much is needed and free, and what to do.
    """
    needed = prod(shape) * 2
    free = shutil.disk_usage(folder).free
    if (folder / _DIGESTS).exists():
        warnings.warn(
            f"{folder / _VALUES} or {_DIGESTS} next to it has the wrong size: all features are computed again",
            stacklevel=3,
        )
    try:
        if needed + _SPARE > free:
            raise OSError(errno.ENOSPC, "less is free")
        (folder / _DIGESTS).unlink(missing_ok=True)
        values = np.lib.format.open_memmap(folder / _VALUES, "w+", np.float16, shape)
        if hasattr(os, "posix_fallocate"):
            # Writing to a mapped file without space left would end the process.
            with (folder / _VALUES).open("r+b") as file:
                os.posix_fallocate(file.fileno(), 0, (folder / _VALUES).stat().st_size)
    except OSError as error:
        if error.errno != errno.ENOSPC:
            raise
        raise TrainingError(
            f"the log-mels of {shape[0]:,} clips take {needed / 1e9:,.2f} GB in {folder}, but {free / 1e9:,.2f} GB "
            f"are free; free some space, or set {CACHE_VARIABLE} to another folder"
        ) from error
    digest = hashlib.sha256().digest_size
    return values, np.lib.format.open_memmap(folder / _DIGESTS, "w+", np.uint8, (shape[0], digest))


def _fill(
    values: np.memmap[Any, Any],
    digests: np.memmap[Any, Any],
    data: TrainingData,
    owner: str,
    compute: Callable[[Iterable[Clip]], FloatArray],
    workers: int,
    progress: bool,
) -> None:
    """Compute the features from the first unfinished clip on, in threads, while this thread renders or reads."""
    done = int(np.append(digests.any(axis=1), False).argmin())
    clips = iter(data.clips(range(done, len(values))))
    waiting: deque[Future[FloatArray]] = deque()
    with (
        ThreadPoolExecutor(workers, thread_name_prefix="features") as pool,
        make_bar("log-mels", "clip", len(values), shown=progress, done=done) as bar,
    ):
        try:
            while (chunk := list(islice(clips, CHUNK))) or waiting:
                if chunk:
                    waiting.append(pool.submit(compute, chunk))
                # At most one waiting chunk per thread: clips do not pile up.
                if not chunk or len(waiting) > workers + 1:
                    features = waiting.popleft().result().astype(np.float16)
                    some = slice(done, done + len(features))
                    values[some] = features
                    # Features with a digest must be on disk, even if the machine stops.
                    values.flush()
                    digests[some] = [
                        np.frombuffer(_digest(one, clip, owner), np.uint8) for clip, one in enumerate(features, done)
                    ]
                    done += len(features)
                    bar.update(len(features))
        finally:
            pool.shutdown(cancel_futures=True)
