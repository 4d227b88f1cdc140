"""Parquet shards: their columns, rows and encoded clips, with the shard's name in every error."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import pyarrow.compute as pc
import pyarrow.parquet as pq
from datasets import Features

from .data import DatasetError, Row
from .manifest import FINGERPRINT_KEY, MANIFEST_NAME
from .parquet import AudioColumn, audio_columns, naming, open_parquet
from .places import Place, StoredShard

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
