"""Data read from a built folder, the Hub or what the authors published: Parquet shards with embedded audio."""

from __future__ import annotations

import hashlib
import io
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.compute as pc
import pyarrow.parquet as pq
import soundfile
import soxr
from datasets import Features
from numpy.typing import NDArray

from audio_compositionality.support.files import sha256_of_file

from .data import Clip, DatasetError, HeldData, Row, Waveform, check_range
from .manifest import FINGERPRINT_KEY, MANIFEST_NAME
from .parquet import AudioColumn, audio_columns, naming, open_parquet
from .places import Place, StoredShard, StoredShards, find_shards, place_of
from .recipes import list_recipes, load_recipe
from .recipes.base import Recipe

ROWS_AT_A_TIME = 16


@dataclass(frozen=True)
class ShardReader:
    """A shard, downloaded and compared with the manifest when it is first read.

    A shard that was built here has a manifest: without it the same samples would get another fingerprint.

    Attributes:
        place: where it lies.
        shard: which it is.
        recipe: what its rows are rows of.
    """

    place: Place
    shard: StoredShard
    recipe: str

    @cached_property
    def path(self) -> Path:
        """The file, whose digest is that of the manifest.

        Raises:
            DatasetError: it is another, is not there, or was built here and its manifest is not there.
        """
        path = self.place.path(self.shard.name)
        if path is None:
            raise DatasetError(f"{self.shard.name} of {self.place.source} is not there; build or download it again")
        if self.shard.built is not None:
            self.shard.built.verify(self.shard.name, path)
            return path
        metadata = naming(self.shard.name, lambda: pq.read_metadata(path)).metadata or {}
        if FINGERPRINT_KEY in metadata:
            fingerprint = metadata[FINGERPRINT_KEY].decode("utf-8", "replace")
            raise DatasetError(
                f"{self.shard.name} of {self.place.source} was built with the fingerprint {fingerprint[:12]}, and the "
                f"{MANIFEST_NAME} that says what all shards are is not there: build them again (--force), or download "
                "all files again"
            )
        return path

    def open(self) -> pq.ParquetFile:
        """Open the file. It is not kept open."""
        return open_parquet(self.shard.name, self.path)

    @cached_property
    def features(self) -> Features:
        """The columns as they are declared."""
        # Taken here: that a shard is another than the manifest's is no damage of Parquet.
        path = self.path
        features: Features = naming(self.shard.name, lambda: Features.from_arrow_schema(pq.read_schema(path)))
        return features

    @cached_property
    def columns(self) -> tuple[AudioColumn, ...]:
        """The columns with sound."""
        return audio_columns(self.features)

    @cached_property
    def groups(self) -> tuple[range, ...]:
        """For each row group the numbers of its rows in the shard."""
        metadata = self.open().metadata
        groups: list[range] = []
        first = 0
        for number in range(metadata.num_row_groups):
            stop = first + metadata.row_group(number).num_rows
            groups.append(range(first, stop))
            first = stop
        return tuple(groups)

    @property
    def num_rows(self) -> int:
        """Rows of the shard."""
        return self.groups[-1].stop if self.groups else 0

    def rows(self) -> list[Row]:
        """The rows without their audio."""
        audio = {column.name for column in self.columns}
        names = [name for name in self.features if name not in audio]
        rows: list[Row] = naming(self.shard.name, lambda: self.open().read(names).to_pylist())
        return rows if names else [{} for _ in range(self.num_rows)]

    def list_lengths(self, column: str) -> list[int]:
        """How many clips a row has in a column of lists; the clips themselves are not read."""

        def read() -> list[int]:
            file = self.open()
            leaves = [file.schema.column(number).path for number in range(len(file.schema))]
            inside = [leaf for leaf in leaves if leaf.startswith(f"{column}.")]
            leaf = next((leaf for leaf in inside if leaf.endswith(".path")), inside[0])
            lengths: list[int] = pc.fill_null(pc.list_value_length(file.read([leaf])[column]), 0).to_pylist()
            return lengths

        return naming(self.shard.name, read)

    def encoded_rows(self, wanted: range, columns: Sequence[AudioColumn]) -> Iterator[tuple[int, Row]]:
        """Number and audio columns of some rows; only the row groups that hold them are read."""
        numbers = [number for number, group in enumerate(self.groups) if overlap(group, wanted)]
        if not numbers:
            return
        names = [column.name for column in columns]
        start = self.groups[numbers[0]].start
        batches = naming(
            self.shard.name,
            lambda: self.open().iter_batches(batch_size=ROWS_AT_A_TIME, row_groups=numbers, columns=names),
        )
        while start < wanted.stop:
            batch = naming(self.shard.name, lambda: next(batches, None))
            if batch is None:
                return
            kept = overlap(range(start, start + len(batch)), wanted)
            part = batch.slice(kept.start - start, len(kept))
            yield from zip(kept, naming(self.shard.name, part.to_pylist), strict=True)
            start += len(batch)


def overlap(one: range, other: range) -> range:
    """The numbers that are in both of two ranges."""
    start = max(one.start, other.start)
    return range(start, max(start, min(one.stop, other.stop)))


LONGEST_CLIP = 600
"""Seconds; a file that claims more is not decoded."""


class _InvalidClipError(Exception):
    """What is wrong with a clip, as the end of a sentence that begins with its id.

    Attributes:
        length: samples of the clip, where they are known.
    """

    def __init__(self, text: str, length: int = 1) -> None:
        super().__init__(text)
        self.length = length


def _check_row(recipe: Recipe[Any], row: Row, shard: str) -> None:
    try:
        recipe.check_row(row)
    except DatasetError as error:
        raise DatasetError(f"{shard}: {error}") from error


class StoredData(HeldData["StoredConfiguration"]):
    """Data stored as Parquet shards with embedded audio; see `Data`.

    Where there is a manifest (`build_dataset` writes one), a shard must have the digest that stands there, so that a
    fingerprint never names other samples than were read.
    """

    def __init__(self, source: str, *, revision: str | None = None) -> None:
        """Find the shards; they are read when they are asked for.

        Args:
            source: a folder, or a Hub id.
            revision: branch, tag or commit of a Hub id.

        Raises:
            DatasetError: there is no data set, or it is not one of this project.
        """
        place = place_of(source, revision)
        super().__init__(
            source, {name: StoredConfiguration(place, name, shards) for name, shards in find_shards(place).items()}
        )

    def configuration(self, recipe: str) -> StoredConfiguration:
        """The configuration of a recipe.

        Raises:
            DatasetError: there is none, or its build has not finished.
        """
        configuration = super().configuration(recipe)
        if not configuration.shards:
            raise DatasetError(f"{self.source} has no shard of {recipe}: the build has not finished; run it again")
        return configuration


class StoredConfiguration:
    """The data of one recipe, read shard by shard in place; see `Configuration`.

    Attributes:
        recipe: name of the recipe.
        source: what the data were opened from.
        shards: readers, in the order of the rows.
    """

    def __init__(self, place: Place, recipe: str, stored: StoredShards) -> None:
        self.recipe = recipe
        self.source = place.source
        self.shards = tuple(ShardReader(place, shard, recipe) for shard in stored.shards)
        self._stated_fingerprint = stored.fingerprint
        self._recipe = load_recipe(recipe) if recipe in list_recipes() else None
        self._resampling_said = False

    @cached_property
    def fingerprint(self) -> str:
        """The manifest's; without a manifest, SHA-256 over the names of the splits and the digests of the shards."""
        if self._stated_fingerprint is not None:
            return self._stated_fingerprint
        digest = hashlib.sha256(f"{self.recipe}\n".encode())
        for reader in self.shards:
            digest.update(f"{reader.shard.split} {sha256_of_file(reader.path)}\n".encode())
        return digest.hexdigest()

    @cached_property
    def columns(self) -> tuple[AudioColumn, ...]:
        """The columns with sound, which all shards declare alike.

        Raises:
            DatasetError: a shard has others, or lacks one that the recipe has.
        """
        columns = self.shards[0].columns
        expected = {column.name for column in columns}
        if self._recipe is not None:
            settings = next(iter(self._recipe.presets.values()), None)
            if settings is not None:
                expected |= {column.name for column in audio_columns(self._recipe.features(settings))}
        for reader in self.shards:
            missing = expected - {column.name for column in reader.columns}
            if missing:
                raise DatasetError(
                    f"{reader.shard.name} lacks the columns {', '.join(sorted(missing))} of {self.recipe}, declared as "
                    f"audio; it has {', '.join(reader.features)}"
                )
            if reader.columns != columns:
                raise DatasetError(f"{reader.shard.name} declares other audio than {self.shards[0].shard.name}")
        if not columns:
            raise DatasetError(f"{self.shards[0].shard.name} declares no column with audio")
        return columns

    @cached_property
    def rows(self) -> Sequence[Row]:
        """All rows without their audio; a row without an id is named by recipe, split and position."""
        _ = self.columns
        rows: list[Row] = []
        ids = set()
        first_of_split: dict[str, int] = {}
        for reader in self.shards:
            split = reader.shard.split
            first = first_of_split.setdefault(split, len(rows))
            for record in reader.rows():
                row = {"id": f"{self.recipe}-{split}-{len(rows) - first:05d}", **record, "split": split}
                if not isinstance(row["id"], str) or row["id"] in ids:
                    raise DatasetError(
                        f"{reader.shard.name}: a row has the id {row['id']!r}; an id is a text of its own"
                    )
                ids.add(row["id"])
                if self._recipe is not None:
                    _check_row(self._recipe, row, reader.shard.name)
                rows.append(row)
        return tuple(rows)

    @cached_property
    def _clip_names(self) -> tuple[tuple[str, ...], ...]:
        """The names of each row's clips.

        Raises:
            DatasetError: a row lacks a clip that its recipe gives it, such as one of a list.
        """
        counts = []
        for column in self.columns:
            of_rows: list[int] = []
            for reader in self.shards:
                of_rows += reader.list_lengths(column.name) if column.is_list else [1] * reader.num_rows
            counts.append(of_rows)
        stored = tuple(
            tuple(name for column, count in zip(self.columns, row, strict=True) for name in column.clip_names(count))
            for row in zip(*counts, strict=True)
        )
        if self._recipe is not None:
            for row, names in zip(self.rows, stored, strict=True):
                missing = set(self._recipe.clip_names(row)).difference(names)
                if missing:
                    raise DatasetError(f"{self.source}: row {row['id']} lacks the clip {min(missing)!r}")
        return stored

    @cached_property
    def clip_ids(self) -> Sequence[str]:
        """Ids of all clips, row by row."""
        return tuple(
            f"{row['id']}/{name}" for row, names in zip(self.rows, self._clip_names, strict=True) for name in names
        )

    @cached_property
    def _first_clips(self) -> NDArray[np.int64]:
        """Number of the first clip of each row, and of all clips at the end."""
        return np.cumsum([0, *map(len, self._clip_names)])

    def clips(self, wanted: range | None = None, *, keep_invalid: bool = False) -> Iterator[Clip]:
        """Clips in the order of `clip_ids`, decoded as they are asked for.

        See `Configuration.clips`. A clip that cannot be used has the length that it would have had, or that of one
        sample where nobody knows.

        Raises:
            DatasetError: a shard that differs from the manifest or is damaged; without ``keep_invalid``, a clip that
                cannot be decoded, or that is empty, silent, not mono, not finite or, where the recipe has clips of one
                length, of another length than the first: each names the clip and its shard.
        """
        wanted = check_range(wanted, len(self.clip_ids))
        length = self._common_length if wanted and self._recipe is not None and self._recipe.one_length else None
        for number, column, audio in self._encoded_clips(wanted):
            clip_id = self.clip_ids[number]
            rate = column.sample_rate or 0
            problem = None
            try:
                waveform, rate = self._decode(clip_id, audio, column.sample_rate)
                if length not in (None, len(waveform)):
                    raise _InvalidClipError(
                        f"has {len(waveform):,} samples, the first has {length:,}; those of "
                        f"{self.recipe} have one length"
                    )
            except _InvalidClipError as error:
                if not keep_invalid:
                    raise DatasetError(f"{self._shard_of(number)}: clip {clip_id} {error}") from error
                waveform = np.full(error.length if length is None else length, np.nan, np.float32)
                problem = str(error)
            yield Clip(clip_id, waveform, rate or 1, problem)

    @cached_property
    def _common_length(self) -> int:
        """Samples of every clip: those of the first that can be decoded."""
        first_problem = None
        for number, column, audio in self._encoded_clips(range(len(self.clip_ids))):
            clip_id = self.clip_ids[number]
            try:
                return len(self._decode(clip_id, audio, column.sample_rate)[0])
            except _InvalidClipError as error:
                first_problem = first_problem or DatasetError(f"{self._shard_of(number)}: clip {clip_id} {error}")
        raise first_problem or DatasetError(f"{self.source} holds no clip of {self.recipe}")

    def _encoded_clips(self, wanted: range) -> Iterator[tuple[int, AudioColumn, Any]]:
        """Number and column of each clip, and what its column holds."""
        if not wanted:
            return
        starts = self._first_clips
        rows = range(
            int(np.searchsorted(starts, wanted.start, "right")) - 1, int(np.searchsorted(starts, wanted.stop, "left"))
        )
        first_row = 0
        for reader in self.shards:
            here = overlap(range(first_row, first_row + reader.num_rows), rows)
            in_shard = range(here.start - first_row, here.stop - first_row)
            for row, record in reader.encoded_rows(in_shard, self.columns) if here else ():
                number = int(starts[first_row + row])
                for column in self.columns:
                    for audio in (record[column.name] or ()) if column.is_list else (record[column.name],):
                        if number in wanted:
                            yield number, column, audio
                        number += 1
            first_row += reader.num_rows

    def _shard_of(self, clip: int) -> str:
        """Name of the shard that holds a clip, by the clip's number."""
        row = int(np.searchsorted(self._first_clips, clip, "right")) - 1
        ends = np.cumsum([reader.num_rows for reader in self.shards])
        return self.shards[int(np.searchsorted(ends, row, "right"))].shard.name

    def _decode(self, clip_id: str, audio: Any, declared_rate: int | None) -> tuple[Waveform, int]:
        """Samples and rate of an encoded clip; it is resampled to the rate that its column declares."""
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
        length = len(samples) if declared_rate is None else round(len(samples) * declared_rate / rate)
        if samples.shape[1] != 1:
            raise _InvalidClipError(f"has {samples.shape[1]} channels; clips are mono", length)
        waveform = samples[:, 0]
        if not len(waveform):
            raise _InvalidClipError("is empty; a clip has at least one sample")
        if not np.isfinite(waveform).all():
            raise _InvalidClipError("has values that are not finite (NaN or infinity)", length)
        if not waveform.any():
            raise _InvalidClipError("is silent; a clip has something to hear", length)
        if declared_rate is None or rate == declared_rate:
            return np.asarray(waveform, np.float32), rate
        if not self._resampling_said:
            warnings.warn(
                f"{self.source}: clip {clip_id} is at {rate:,} Hz; others than {declared_rate:,} Hz are resampled to "
                "it (said once)",
                stacklevel=2,
            )
            self._resampling_said = True
        return np.asarray(soxr.resample(waveform, rate, declared_rate), np.float32), declared_rate
