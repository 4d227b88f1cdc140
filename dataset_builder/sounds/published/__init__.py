"""Readers of published third-party benchmarks, one per file: ``NAME:PATH`` names a reader and a user's copy.

A module in this folder, or in an installed package, defines its reader under the name ``READER``. Nothing of a
benchmark is shipped or downloaded here. The authors' two published data sets have their own names, splits and columns
and no manifest; they need no reader, and the facts about them are here.
"""

from __future__ import annotations

import hashlib
import io
import json
import os
import re
import stat
import zipfile
import zlib
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path, PurePosixPath
from types import MappingProxyType
from typing import Any, Protocol

import numpy as np

from audio_compositionality.support.discovery import Registry
from audio_compositionality.support.files import open_file, read_file, sha256_of, sha256_of_file
from audio_compositionality.support.text import first_line

from ...data import Clip, Data, DatasetError, Row, check_range
from ...tables import text_of
from ..recordings import SoundError, SoundFile, is_regular, printable, read_header, read_samples

LONGEST_CLIP, LONGEST_TOGETHER = 600, 1_200
"""Most seconds of a decoded file, and of all files of a question, which are in memory at once."""


class Reader(Protocol):
    """Reads a published third-party benchmark from a user's copy.

    Attributes:
        name: the prefix in ``NAME:PATH``.
        meaning: its benchmark, for help texts.
    """

    @property
    def name(self) -> str: ...  # noqa: D102

    @property
    def meaning(self) -> str: ...  # noqa: D102

    def open(self, path: str) -> Data:
        """Open the copy at a path.

        Raises:
            DatasetError: it is missing, or cannot be read; lists all missing files.
        """
        ...


_registry: Registry[Reader] = Registry(__name__, "READER", "audio_compositionality.readers", lambda reader: reader.name)


def list_readers() -> tuple[str, ...]:
    """Return the names of all readers: in this folder, in installed packages, and registered ones."""
    return tuple(_registry.all())


def register_reader(reader: Reader) -> None:
    """Make a reader known in this process; it replaces any reader of the same name."""
    _registry.add(reader)


def reader_of(source: str) -> tuple[Reader, str] | None:
    """Return the reader and the path in ``NAME:PATH``; None if there is no reader of this name."""
    name, colon, path = source.partition(":")
    reader = _registry.find(name) if colon else None
    return None if reader is None else (reader, path)


CONFIGURATION = "default"
"""Name of their only configuration."""


@dataclass(frozen=True)
class PublishedData:
    """One of the authors' published data sets.

    Attributes:
        recipe: name of the recipe of its rows.
        splits: its name for each split of the recipe.
        columns: columns of the data set.
    """

    recipe: str
    splits: Mapping[str, str]
    columns: frozenset[str]


PUBLISHED = (
    # chuyangchenn/a-coat-2k on the Hub.
    PublishedData(
        "a_coat",
        MappingProxyType({"test": "test"}),
        frozenset({"A", "B", "C", "D", "metadata"}),
    ),
    # chuyangchenn/a-tre-10k.
    PublishedData(
        "a_tre",
        MappingProxyType({"train": "train", "validation": "val", "test": "test"}),
        frozenset({"audio", "metadata"}),
    ),
)


def published_with(columns: Collection[str]) -> PublishedData | None:
    """Return the published data set with these columns, also in a renamed copy; None if there is none."""
    return next((data for data in PUBLISHED if data.columns <= set(columns)), None)


def published_columns() -> str:
    """Return the columns of both data sets, for an error."""
    return " or ".join(f"{data.recipe}: {', '.join(sorted(data.columns))}" for data in PUBLISHED)


@dataclass(frozen=True)
class ReadClip:
    """A clip that is not decoded yet.

    Attributes:
        name: name of the clip within its row: ``audio/0``.
        sound: returns the file or its content; raises DatasetError if it must not be opened.
    """

    name: str
    sound: Callable[[], SoundFile]


class ReadConfiguration:
    """Rows that were read, and the files of their clips, with different lengths and rates; see `Configuration`.

    Attributes:
        recipe: name of the recipe of the rows.
        source: what the data were opened from.
        rows: all rows without their audio.
    """

    def __init__(self, recipe: str, source: str, rows: Sequence[Row], clips: Sequence[Sequence[ReadClip]]) -> None:
        """Decode nothing yet.

        Args:
            recipe: name of the recipe.
            source: what the data were opened from.
            rows: see above.
            clips: clips of each row.
        """
        self.recipe = recipe
        self.source = source
        self.rows: Sequence[Row] = tuple(rows)
        self._clips = [
            (f"{row['id']}/{clip.name}", clip) for row, of_row in zip(rows, clips, strict=True) for clip in of_row
        ]

    @property
    def clip_ids(self) -> Sequence[str]:
        """Return the ids of all clips, row by row."""
        return tuple(id for id, _ in self._clips)

    @property
    def rows_digest(self) -> str:
        """Return the fingerprint, which covers the rows as they were read."""
        return self.fingerprint

    @cached_property
    def fingerprint(self) -> str:
        """Return the SHA-256 of the rows and the content of the files, independent of their paths."""
        digest = hashlib.sha256(f"{self.recipe}\n".encode())
        for row in self.rows:
            digest.update(json.dumps(row, sort_keys=True).encode() + b"\n")
        for id, clip in self._clips:
            file = clip.sound()
            content = sha256_of_file(file) if isinstance(file, Path) else sha256_of(file.getvalue())
            digest.update(f"{id} {content}\n".encode())
        return digest.hexdigest()

    def clips(self, wanted: range | None = None, *, keep_invalid: bool = False) -> Iterator[Clip]:
        """Yield clips in the order of `clip_ids`, the mean of their channels; see `Configuration.clips`."""
        for place in check_range(wanted, len(self._clips)):
            id, clip = self._clips[place]
            try:
                file = clip.sound()
                header = read_header(file)
                if header.frames > LONGEST_CLIP * header.rate:
                    seconds = header.frames / header.rate
                    raise SoundError(f"declares {seconds:,.0f} s; a clip may last at most {LONGEST_CLIP} s")
                if not header.frames:
                    raise SoundError("is empty; a clip must have at least one sample")
                waveform = read_samples(file, header.frames, 0)
                if not waveform.any():
                    raise SoundError("is silent; a clip must contain sound")
            except DatasetError as error:
                if not keep_invalid:
                    raise DatasetError(f"{self.source}: clip {id} {error}") from error
                yield Clip(id, np.full(1, np.nan, np.float32), 1, str(error))
            else:
                yield Clip(id, waveform, header.rate)


LARGEST_FILE = 256 * 2**20
"""Largest file that is read, in bytes."""

LARGEST_TABLE = 64 * 2**20
"""Largest table, in bytes."""

MOST_FILES = 100_000
"""Most files in an archive; one with more is not read."""

ZSTANDARD = 93
"""Number of the compression Zstandard in a zip archive (PKWARE's APPNOTE.TXT 6.3.10, 4.4.5)."""

_LOCAL_HEADER = 30
"""Bytes before the name of a file in a zip archive; the lengths of name and further fields are the last four."""

_SKIPPED = re.compile(r"(^|/)(__MACOSX(/|$)|\.)")
"""Files that archivers and systems leave behind."""


class FolderFiles:
    """The files in a folder and the folders below it; links and hidden files are skipped.

    Attributes:
        title: its name in messages.
        names: all files in it, sorted: paths with slashes, relative to the folder.
    """

    def __init__(self, folder: Path) -> None:
        """List the files."""
        self.title = printable(str(folder))
        self._folder = folder
        paths = []
        for root, folders, names in os.walk(folder, followlinks=False):
            folders[:] = [name for name in folders if not _SKIPPED.search(name)]
            paths += [Path(root, name) for name in names if not _SKIPPED.search(name) and is_regular(Path(root, name))]
        self.names = tuple(sorted(path.relative_to(folder).as_posix() for path in paths))

    def file(self, name: str) -> Path:
        """Return the path of a file.

        Raises:
            DatasetError: it is too large.
        """
        path = self._folder / name
        if path.stat().st_size > LARGEST_FILE:
            raise DatasetError(f"has {path.stat().st_size:,} bytes; the limit is {LARGEST_FILE:,}")
        return path

    def head(self, name: str, size: int) -> bytes:
        """Return the first bytes of a file of any size.

        Raises:
            DatasetError: it cannot be read.
        """
        try:
            with open_file(self._folder / name) as stream:
                return stream.read(size)
        except OSError as error:
            raise DatasetError(f"cannot be read: {first_line(error)}") from error


class ZippedFiles:
    """The files in a zip archive, read into memory one by one; nothing is written anywhere.

    Names that lead out of the archive, links and encrypted files are not read.
    """

    def __init__(self, path: Path) -> None:
        """Read the list of files.

        Raises:
            DatasetError: it is not a zip archive, or has too many files.
        """
        self.title = printable(str(path))
        try:
            open_file(path).close()
            self._archive = zipfile.ZipFile(path)
        except (OSError, zipfile.BadZipFile, ValueError, NotImplementedError) as error:
            raise DatasetError(f"{self.title} cannot be read as a zip archive: {first_line(error)}") from error
        entries = self._archive.infolist()
        if len(entries) > MOST_FILES:
            raise DatasetError(f"{self.title} contains {len(entries):,} files; the limit is {MOST_FILES:,}")
        self._entries: dict[str, zipfile.ZipInfo] = {}
        for entry in entries:
            name, kind = PurePosixPath(entry.filename), stat.S_IFMT(entry.external_attr >> 16)
            outside = name.is_absolute() or ".." in name.parts or "\\" in entry.filename or "\0" in entry.filename
            encrypted = bool(entry.flag_bits & 1)
            skipped = _SKIPPED.search(entry.filename) is not None
            if not (entry.is_dir() or outside or encrypted or skipped) and kind in (0, stat.S_IFREG):
                self._entries[entry.filename] = entry
        self.names = tuple(sorted(self._entries))

    def file(self, name: str) -> io.BytesIO:
        """Return the content of a file.

        Raises:
            DatasetError: it cannot be read, or is too large.
        """
        entry = self._entries[name]
        if entry.file_size > LARGEST_FILE:
            raise DatasetError(f"declares {entry.file_size:,} bytes; the limit is {LARGEST_FILE:,}")
        # No more than its declared size, whatever the compressed data would expand to.
        content = self.head(name, entry.file_size + 1)
        if len(content) != entry.file_size:
            raise DatasetError(f"has {len(content):,} bytes or more but declares {entry.file_size:,}")
        return io.BytesIO(content)

    def head(self, name: str, size: int) -> bytes:
        """Return the first bytes of a file; see `FolderFiles.head`."""
        entry = self._entries[name]
        try:
            with self._unpacked(entry) if entry.compress_type == ZSTANDARD else self._archive.open(entry) as stream:
                content: bytes = stream.read(size)
        except (OSError, zipfile.BadZipFile, EOFError, RuntimeError, NotImplementedError, ValueError) as error:
            raise DatasetError(f"cannot be unpacked: {first_line(error)}") from error
        except Exception as error:
            # zlib, lzma and bz2 have their own errors.
            raise DatasetError(f"cannot be unpacked: {first_line(error)}") from error
        if len(content) == entry.file_size and zlib.crc32(content) != entry.CRC:
            raise DatasetError("cannot be unpacked: its checksum does not match")
        return content

    def _unpacked(self, entry: zipfile.ZipInfo) -> Any:
        """Return the content of a Zstandard file as a stream; `zipfile` reads these from Python 3.14 on."""
        import pyarrow

        with open_file(Path(str(self._archive.filename))) as stream:
            stream.seek(entry.header_offset)
            header = stream.read(_LOCAL_HEADER)
            stream.seek(sum(int.from_bytes(header[place : place + 2], "little") for place in (26, 28)), os.SEEK_CUR)
            packed = stream.read(min(entry.compress_size, LARGEST_FILE))
        return pyarrow.CompressedInputStream(pyarrow.BufferReader(packed), "zstd")


class ParquetFiles:
    """The files of a Parquet table, one per row: ``bytes`` in its audio column, named by another column."""

    def __init__(self, path: Path, *, name: str, sound: str) -> None:
        """Read the names; sound is read one row group at a time, on demand.

        Args:
            path: path of the table.
            name: column with names.
            sound: column with sound, structs of bytes and path.

        Raises:
            DatasetError: the table has another form, or names a file twice.
        """
        from ...manifest import open_parquet, rows_of_groups

        self.title = printable(str(path))
        self._sound = sound
        self._table = open_parquet(self.title, path)
        self._read: tuple[int, list[Any]] = (-1, [])
        self._places: dict[str, tuple[int, int]] = {}
        groups = range(self._table.num_row_groups)
        rows = iter(rows_of_groups(self.title, self._table, groups, [name]))
        for group in groups:
            for place in range(self._table.metadata.row_group(group).num_rows):
                text = next(rows)[name]
                if not isinstance(text, str) or not text or text in self._places:
                    raise DatasetError(
                        f"{self.title} names the file {text!r} in {name}twice; give each row its own file"
                    )
                self._places[text] = (group, place)
        self.names = tuple(self._places)

    def texts(self, column: str) -> list[str]:
        """Return a column of texts, in the order of the rows."""
        from ...manifest import rows_of_groups

        rows = rows_of_groups(self.title, self._table, range(self._table.num_row_groups), [column])
        return ["" if row[column] is None else str(row[column]) for row in rows]

    def file(self, name: str) -> io.BytesIO:
        """Return the content of a file; see `ZippedFiles.file`."""
        from ...manifest import rows_of_groups

        group, place = self._places[name]
        if self._read[0] != group:
            rows = rows_of_groups(self.title, self._table, [group], [self._sound])
            self._read = (group, [row[self._sound] for row in rows])
        content = (self._read[1][place] or {}).get("bytes")
        if not content:
            raise DatasetError("contains no audio")
        if len(content) > LARGEST_FILE:
            raise DatasetError(f"has {len(content):,} bytes; the limit is {LARGEST_FILE:,}")
        return io.BytesIO(content)


Container = FolderFiles | ZippedFiles | ParquetFiles
"""Files by name."""


def table_text(container: Container, name: str) -> str:
    """Return the text of a table in a container, in UTF-8 or else in the code page of Western spreadsheets.

    Raises:
        DatasetError: it cannot be read, or is too large.
    """
    try:
        file = container.file(name)
        size = file.stat().st_size if isinstance(file, Path) else len(file.getvalue())
        if size > LARGEST_TABLE:
            raise DatasetError(f"has {size:,} bytes; the limit is {LARGEST_TABLE:,}")
        content = read_file(file) if isinstance(file, Path) else file.getvalue()
    except (DatasetError, OSError) as error:
        raise DatasetError(f"{container.title}: {printable(name)} {first_line(error)}") from error
    return text_of(content, printable(name), otherwise="cp1252")
