"""Read a benchmark from a built folder, from the Hub, or from the authors' published data."""

from __future__ import annotations

import hashlib
import io
import os
import warnings
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import datasets
import huggingface_hub
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import soundfile
import soxr
import yaml

from audio_compositionality.hub import Action, Hub, HubError, Repository, call

from .benchmark import AUDIO_COLUMNS, Clip, ClipBatch, check_rows, check_task, in_batches
from .manifest import MANIFEST_NAME, Manifest, sha256_of
from .messages import DatasetError
from .synthesis.config import SPLITS
from .synthesis.scenes import ATTRIBUTES
from .synthesis.sound import Waveform

SAMPLE_RATE = 32_000
"""Hz of the published data, taken where no manifest says otherwise; a clip at another rate is resampled to it."""

LONGEST_CLIP = 600
"""Seconds; a file that claims more is not decoded."""

LABELS = tuple(f"{attribute}_label" for attribute in ATTRIBUTES)

Shards = dict[str, Path]
"""Local path of each shard, by its name below the root of the data set."""

_EXPECTED = "expected a folder written by `audio-compositionality build`, or a Hub id of such data"

_SPLIT_NAMES = {"val": "validation", **{split: split for split in SPLITS}}


class _InvalidClipError(Exception):
    """What is wrong with a clip, as the end of a sentence that begins with its id."""


@dataclass(frozen=True)
class _File:
    """A shard of a task.

    Attributes:
        split: which it belongs to.
        name: below the root of the data set.
        path: where it is.
        groups: for each of its row groups, the numbers of its rows in the task.
        first: number of its first row in its split.
    """

    split: str
    name: str
    path: Path
    groups: tuple[range, ...]
    first: int


class StoredBenchmark:
    """A benchmark stored as Parquet shards with embedded audio.

    Shards are read in place, batch by batch. Where the folder has a manifest (`build_dataset` writes one), a shard
    must have the hash that stands there, so that a fingerprint never names other samples than were read.
    """

    def __init__(self, source: str, *, revision: str | None = None) -> None:
        self.source = source
        if Path(source).is_dir():
            self._shards, self._manifest = _find_shards(source, None), Manifest.load(Path(source) / MANIFEST_NAME)
        else:
            self._shards, self._manifest = _open_on_hub(source, revision)
        self.tasks = tuple(task for task in AUDIO_COLUMNS if task in self._shards)
        self.sample_rate = SAMPLE_RATE
        if self._manifest is not None:
            self.sample_rate = int(self._manifest.configuration["sample_rate"])
            found = {name for splits in self._shards.values() for shards in splits.values() for name in shards}
            missing = sorted(set(self._manifest.shards) - found)
            if missing:
                raise DatasetError(
                    f"{source} lacks {len(missing)} of its {len(self._manifest.shards)} shards, such as {missing[0]}: "
                    "the samples would not be those of the fingerprint; build or download it again"
                )
        self._verified: set[str] = set()
        self._files: dict[str, list[_File]] = {}
        self._lengths: dict[str, int] = {}
        self._resampling_said = False

    @cached_property
    def fingerprint(self) -> str:
        """The manifest's fingerprint; without a manifest, SHA-256 over the hashes of all shards."""
        if self._manifest is not None:
            return self._manifest.fingerprint
        digest = hashlib.sha256()
        for task, splits in self._shards.items():
            for split, paths in splits.items():
                for path in paths.values():
                    digest.update(f"{task} {split} {sha256_of(path)}\n".encode())
        return digest.hexdigest()

    @property
    def amplitude_gains(self) -> Mapping[str, float] | None:
        """Linear gain of each amplitude label, known where there is a manifest."""
        return self._manifest.amplitude_gains if self._manifest else None

    def num_clips(self, task: str) -> int:
        """Clips of a task: four a quadruple, one a scene."""
        return self._num_rows(task) * len(AUDIO_COLUMNS[task])

    def _num_rows(self, task: str) -> int:
        return sum(len(group) for shard in self._task_files(task) for group in shard.groups)

    def rows(self, task: str) -> list[dict[str, Any]]:
        """All rows of a task without their audio; a row without an id is named by task, split and position."""
        rows: list[dict[str, Any]] = []
        for split, shards in self._shards[check_task(task, self)].items():
            records: list[dict[str, Any]] = []
            for name, path in shards.items():
                file = self._verified_file(task, name, path)
                columns = [name for name in file.schema_arrow.names if name not in AUDIO_COLUMNS[task]]
                records += file.read(columns).to_pylist()
            for index, record in enumerate(records):
                row = {"id": _row_id(task, split, index), **record, "split": split}
                _check_metadata(task, row)
                rows.append(row)
        return rows

    def batches(
        self, task: str, batch_size: int, rows: range | None = None, *, keep_invalid: bool = False
    ) -> Iterator[ClipBatch]:
        """The clips of a task, decoded as they are asked for; only the row groups that hold them are read.

        See `Benchmark.batches`.

        Raises:
            DatasetError: a shard that differs from the manifest; without ``keep_invalid``, a clip that cannot be
                decoded, or that is empty, silent, not mono, not finite or of another length than the first: each
                names the row and the column.
        """
        clips = self._clips(task, check_rows(rows, self._num_rows(task)), keep_invalid)
        yield from in_batches(clips, batch_size, self.sample_rate)

    def _clips(self, task: str, rows: range, keep_invalid: bool) -> Iterator[Clip]:
        length = self._length(task) if rows else 0
        for clip_id, audio in self._encoded_clips(task, rows):
            error = None
            try:
                waveform = self._decode(clip_id, audio)
                if len(waveform) != length:
                    raise _InvalidClipError(
                        f"has {len(waveform):,} samples, the first has {length:,}; clips of a data set have one length"
                    )
            except _InvalidClipError as found:
                if not keep_invalid:
                    raise DatasetError(f"clip {clip_id} {found}") from found
                waveform, error = np.full(length, np.nan, np.float32), str(found)
            yield clip_id, waveform, error

    def _length(self, task: str) -> int:
        """Samples of every clip of a task: those of the first that can be decoded."""
        if task in self._lengths:
            return self._lengths[task]
        error = None
        for clip_id, audio in self._encoded_clips(task, range(self._num_rows(task))):
            try:
                self._lengths[task] = len(self._decode(clip_id, audio))
            except _InvalidClipError as found:
                error = error or DatasetError(f"clip {clip_id} {found}")
            else:
                return self._lengths[task]
        raise error or DatasetError(f"{self.source} holds no clip of {task}")

    def _encoded_clips(self, task: str, rows: range) -> Iterator[tuple[str, Any]]:
        """Id of each clip of some rows, and what its column holds."""
        for shard in self._task_files(task):
            wanted = [number for number, group in enumerate(shard.groups) if _overlap(group, rows)]
            if not wanted:
                continue
            file = self._verified_file(task, shard.name, shard.path)
            columns = [name for name in ("id", *AUDIO_COLUMNS[task]) if name in file.schema_arrow.names]
            start = shard.groups[wanted[0]].start
            for batch in file.iter_batches(batch_size=16, row_groups=wanted, columns=columns):
                found = range(start, start + len(batch))
                kept = _overlap(found, rows)
                start = found.stop
                for number, record in zip(
                    kept, batch.slice(kept.start - found.start, len(kept)).to_pylist(), strict=True
                ):
                    index = number - shard.groups[0].start + shard.first
                    row_id = record.get("id") or _row_id(task, shard.split, index)
                    for column in AUDIO_COLUMNS[task]:
                        yield f"{row_id}/{column}", record[column]
                if start >= rows.stop:
                    return

    def _task_files(self, task: str) -> list[_File]:
        if task not in self._files:
            files = []
            row = 0
            for split, shards in self._shards[check_task(task, self)].items():
                first = row
                for name, path in shards.items():
                    metadata = self._verified_file(task, name, path).metadata
                    groups = []
                    before = row - first
                    for number in range(metadata.num_row_groups):
                        size = metadata.row_group(number).num_rows
                        groups.append(range(row, row + size))
                        row += size
                    files.append(_File(split, name, path, tuple(groups), before))
            self._files[task] = files
        return self._files[task]

    def _decode(self, clip_id: str, audio: Any) -> Waveform:
        data = audio.get("bytes") if isinstance(audio, dict) else None
        if not data or not isinstance(data, bytes):
            raise _InvalidClipError("holds no audio; each clip is an encoded file embedded in its row")
        try:
            info = soundfile.info(io.BytesIO(data))
            if info.frames > LONGEST_CLIP * info.samplerate:
                raise _InvalidClipError(f"claims {info.frames:,} samples; a clip lasts {LONGEST_CLIP} s at most")
            samples, rate = soundfile.read(io.BytesIO(data), dtype="float32", always_2d=True)
        except (soundfile.SoundFileError, RuntimeError) as error:
            raise _InvalidClipError(f"cannot be decoded, its data are damaged: {error}") from error
        if samples.shape[1] != 1:
            raise _InvalidClipError(f"has {samples.shape[1]} channels; clips are mono")
        waveform = samples[:, 0]
        if not len(waveform):
            raise _InvalidClipError("is empty; a clip has at least one sample")
        if not np.isfinite(waveform).all():
            raise _InvalidClipError("has values that are not finite (NaN or infinity)")
        if not waveform.any():
            raise _InvalidClipError("is silent; every scene has a source that sounds")
        if rate != self.sample_rate:
            if not self._resampling_said:
                warnings.warn(
                    f"{self.source}: clip {clip_id} is at {rate:,} Hz; others than {self.sample_rate:,} Hz are "
                    "resampled to it (said once)",
                    stacklevel=2,
                )
                self._resampling_said = True
            waveform = soxr.resample(waveform, rate, self.sample_rate)
        return np.asarray(waveform, np.float32)

    def _verified_file(self, task: str, name: str, path: Path) -> pq.ParquetFile:
        if self._manifest is not None and name not in self._verified:
            self._manifest.verify(name, path)
            self._verified.add(name)
        file = _open(path)
        missing = {*AUDIO_COLUMNS[task], "metadata"} - set(file.schema_arrow.names)
        if missing:
            raise DatasetError(f"{name} lacks the columns {', '.join(sorted(missing))} of {task}")
        return file


def _overlap(one: range, other: range) -> range:
    start = max(one.start, other.start)
    return range(start, max(start, min(one.stop, other.stop)))


def _row_id(task: str, split: str, index: int) -> str:
    return f"{task}-{split}-{index:05d}"


def _open(path: Path) -> pq.ParquetFile:
    try:
        return pq.ParquetFile(path)
    except (pa.ArrowException, OSError) as error:
        raise DatasetError(f"{path.name} cannot be read as Parquet: {error}") from error


def _open_on_hub(source: str, revision: str | None) -> tuple[dict[str, dict[str, Shards]], Manifest | None]:
    """Shards and manifest of a data set on the Hub, both of one commit."""
    repository = Repository("dataset", source)

    def found() -> tuple[dict[str, dict[str, Shards]], Manifest | None]:
        at = Hub().head(repository, revision or "main")
        return _find_shards(source, at), _find_manifest(source, at)

    try:
        return call(Action(f"read the data set {source}", repository=repository), found)
    except HubError as error:
        raise DatasetError(str(error)) from error


def _find_manifest(source: str, revision: str | None) -> Manifest | None:
    """The manifest on the Hub; None where there is none."""
    try:
        path = huggingface_hub.hf_hub_download(source, MANIFEST_NAME, repo_type="dataset", revision=revision)
    except huggingface_hub.errors.LocalEntryNotFoundError as error:
        # Not "there is none" but "it cannot be asked": without it the same data would get another fingerprint.
        raise DatasetError(f"{MANIFEST_NAME} of {source} is not in the cache and the Hub cannot be reached") from error
    except huggingface_hub.errors.EntryNotFoundError:
        return None
    return Manifest.load(Path(path))


def _find_shards(source: str, revision: str | None) -> dict[str, dict[str, Shards]]:
    """Task -> split -> shards, downloaded first where the source is a Hub id."""
    found: dict[str, dict[str, Shards]] = {}
    try:
        for config_name in datasets.get_dataset_config_names(source, revision=revision):
            builder = datasets.load_dataset_builder(source, config_name, revision=revision)
            splits = {
                _SPLIT_NAMES.get(str(split), str(split)): _download(source, [str(file) for file in files])
                for split, files in builder.config.data_files.items()
            }
            task = _task_of(source, splits)
            needed = SPLITS if task == "a_tre" else ("test",)
            if not set(needed) <= set(splits):
                raise DatasetError(
                    f"{source}, {task}: the splits are {', '.join(splits)}; needed are {', '.join(needed)}"
                )
            found[task] = {split: splits[split] for split in needed}
    except DatasetError:
        raise
    except (FileNotFoundError, ValueError, ConnectionError, yaml.YAMLError) as error:
        raise DatasetError(f"no data set in {source!r}: {str(error).strip().splitlines()[0]}; {_EXPECTED}") from error
    return found


def _download(source: str, files: list[str]) -> Shards:
    """Name below the root of the data set -> local path."""
    others = [file for file in files if not file.endswith(".parquet")]
    if others:
        raise DatasetError(f"{source} holds {Path(others[0]).name}, which is not Parquet; {_EXPECTED}")
    if Path(source).is_dir():
        # Not resolved: the files of a downloaded snapshot are links to elsewhere.
        names = [Path(os.path.relpath(os.path.abspath(file), os.path.abspath(source))).as_posix() for file in files]
        outside = [name for name in names if name.startswith("../")]
        if outside:
            raise DatasetError(f"{source} names a file outside of it, {outside[0]}; {_EXPECTED}")
        return dict(zip(names, map(Path, files), strict=True))
    # Files on the Hub are named hf://datasets/ORG/NAME@COMMIT/PATH.
    names = [file.split("@", 1)[1].split("/", 1)[1] for file in files]
    return dict(zip(names, map(Path, datasets.DownloadManager().download(files)), strict=True))


def _task_of(source: str, splits: dict[str, Shards]) -> str:
    """The task whose columns the first shard has."""
    first = next((path for shards in splits.values() for path in shards.values() if path.is_file()), None)
    if first is None:
        raise DatasetError(f"{source} names no file; {_EXPECTED}")
    names = _open(first).schema_arrow.names
    for task, audio in AUDIO_COLUMNS.items():
        if {*audio, "metadata"} <= set(names):
            return task
    wanted = " or ".join(f"{task}: {', '.join((*audio, 'metadata'))}" for task, audio in AUDIO_COLUMNS.items())
    raise DatasetError(f"{source} has the columns {', '.join(names)}; missing are those of a task ({wanted})")


def _check_metadata(task: str, row: dict[str, Any]) -> None:
    metadata = row["metadata"]
    parts = [metadata.get(part) for part in "ACT"] if task == "a_coat" and isinstance(metadata, dict) else [metadata]
    for part in parts:
        if not isinstance(part, list) or not part:
            raise DatasetError(f"row {row['id']}: metadata is {metadata!r}; it lists at least one source a scene")
        for source in part:
            if not isinstance(source, dict):
                raise DatasetError(f"row {row['id']}: a source is {source!r}; a source has {', '.join(LABELS)}")
            missing = [label for label in LABELS if not isinstance(source.get(label), str)]
            if missing:
                raise DatasetError(
                    f"row {row['id']}: a source lacks {', '.join(missing)}; a source has {', '.join(LABELS)}"
                )
