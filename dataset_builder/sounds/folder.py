"""Recordings in a folder: ``LABEL[/CONDITION]/file.wav``, or with a table ``metadata.csv`` that describes each file."""

from __future__ import annotations

import csv
from collections import Counter
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

from audio_compositionality.support.text import first_line, nearest

from ..manifest import MANIFEST_NAME
from .hub import values_in_yaml
from .labels import (
    Labels,
    candidates_of,
    caption_columns,
    captions_of_table,
    counted_column,
    counted_labels,
    labels_of_table,
    word_columns,
    words_by_row,
)
from .recordings import (
    FILE_COLUMNS,
    Candidate,
    ReadRecordings,
    SoundError,
    check_folder,
    delimiter_of,
    is_regular,
    printable,
    sound_files,
)

METADATA = "metadata.csv"

SETTINGS = "sounds.yaml"
"""A file beside the sounds with settings of recipes that suit them, such as ``domain: birds`` and ``classes: 6``."""

FILE = FILE_COLUMNS[0]
"""Column of the table with the files: its preferred name."""

LABEL, GROUP, CONDITION = "label", "group", "condition"
"""Default names of the other columns."""

_LARGEST_TABLE = 64 * 2**20
"""Largest table, in bytes."""


def folder_recordings(
    folder: str | Path,
    *,
    table: str | Path | None = None,
    label: str | None = None,
    group: str | None = None,
    condition: str | None = None,
    captions: str | Sequence[str] | None = None,
    separator: str | None = None,
    words: str | Sequence[str] | None = None,
    skip_invalid: bool = False,
    progress: bool = True,
) -> ReadRecordings:
    """The recordings in a folder.

    With ``metadata.csv``, its rows are the recordings: ``file_name``, or else the first of `FILE_COLUMNS` that it has,
    is a path below the folder. Otherwise all sound files are, at any depth: the label of each is its top folder below
    the given one, its condition the folders in between, such as ``flite/awb`` of ``dog/flite/awb/1.wav``, and its group
    the same. ``sounds.yaml``, where there is one, has settings of recipes that suit them.

    Args:
        folder: with sound files.
        table: that describes each file, where it is not the ``metadata.csv`` of the folder.
        label: column of the table with labels; by default ``label``, where there is one. Or ``words_per_second`` and
            ``words_per_second=COLUMN``, see `counted_labels`.
        group: column of the table with groups; by default ``group``, where there is one.
        condition: column of the table with conditions; by default ``condition``, where there is one.
        captions: columns of the table with captions; by default the columns of that name, see `caption_columns`.
        separator: between several labels of a row of the table.
        words: columns of the table with a word each; by default those named ``word:ATTRIBUTE``, see `word_columns`.
        skip_invalid: leave out unusable recordings.
        progress: show progress bars.

    Raises:
        SoundError: the content is unusable: names the file and the reason.
    """
    folder = Path(folder)
    check_folder(folder)
    if (folder / MANIFEST_NAME).is_file():
        raise SoundError(f"{str(folder)!r} is a data set that was built, and no folder of recordings")
    left_out: dict[str, str] = {}
    labelling = f"put them into folders, LABEL/file.wav, or write a {METADATA} with the column {LABEL}"
    file = folder / METADATA if table is None else Path(table)
    if file.is_file():
        read = _Table(folder, file)
        candidates, left_out = read.candidates(label, group, condition, captions, separator, words)
        columns = [printable(column) for column in read.columns if column != read.file_column]
        labelling = f"--set label=COLUMN names a column of {file.name}, which has {', '.join(columns)}"
    elif any(column is not None for column in (label, group, condition, captions, separator, words)):
        raise SoundError(
            f"{str(folder)!r} has no {METADATA}, whose columns label, group, condition, captions and words name; "
            "without it the folders in it are the labels, and the folders in these the conditions"
        )
    else:
        candidates = _by_folder(folder)
    return ReadRecordings(
        printable(str(folder)),
        candidates,
        suggested=_suggested(folder / SETTINGS),
        labelling=labelling,
        left_out=left_out,
        skip_invalid=skip_invalid,
        progress=progress,
    )


def _suggested(path: Path) -> dict[str, Any]:
    """The settings of a file; empty where there is no file."""
    if not path.is_file():
        return {}
    return values_in_yaml(path, SETTINGS)


def _by_folder(folder: Path) -> list[Candidate]:
    places = [path.relative_to(folder) for path in sound_files(folder)]
    beside = [place for place in places if len(place.parts) == 1]
    if beside and len(beside) < len(places):
        raise SoundError(
            f"{str(folder)!r} holds sound files ({printable(beside[0].name)!r} and so on) beside folders with others: "
            f"of which label are they? Put them into LABEL/, or write a {METADATA}"
        )
    candidates = []
    for place in places:
        label, condition = ("", ()) if beside else (place.parts[0], place.parts[1:-1])
        group = printable("/".join(condition))
        name = printable(place.as_posix())
        candidates.append(Candidate(name, printable(label), None, group, group, partial(Path, folder / place)))
    return candidates


class _Table:
    """The table of a folder."""

    def __init__(self, folder: Path, file: Path) -> None:
        self._folder, self._name = folder, file.name
        self._rows = _table(file)
        self.columns = list(self._rows[0])
        self.file_column = next((column for column in FILE_COLUMNS if column in self.columns), FILE)

    def candidates(
        self,
        label: str | None,
        group: str | None,
        condition: str | None,
        captions: str | Sequence[str] | None,
        separator: str | None,
        words: str | Sequence[str] | None,
    ) -> tuple[list[Candidate], dict[str, str]]:
        """The recordings, and the rows that are left out, with reasons; a file that is missing or outside the folder is
        reported when it is read."""
        said_in = counted_column(self._name, label, self.columns)
        if self.file_column not in self.columns:
            raise SoundError(
                f"{self._name} has no column {FILE!r} with the files (nor {', '.join(FILE_COLUMNS[1:])}); "
                f"{nearest(FILE, self.columns)}"
            )
        for column in (label if said_in is None else None, group, condition):
            if column is not None and column not in self.columns:
                raise SoundError(f"{self._name} has no column {column!r}; {nearest(column, self.columns)}")
        names = self._names()
        read = self._labels(label or LABEL, said_in, separator, names)
        groups, conditions = self._texts(group or GROUP), self._texts(condition or CONDITION)
        said = captions_of_table(self._rows, caption_columns(self._name, self.columns, captions))
        attributes = word_columns(self._name, self.columns, words)
        spoken = words_by_row([[row[name] for name in attributes] for row in self._rows], tuple(attributes.values()))
        return candidates_of(names, read, self._file, groups=groups, conditions=conditions, captions=said, words=spoken)

    def _file(self, row: int) -> Path:
        return _file_below(self._folder, self._rows[row][self.file_column])

    def _texts(self, column: str) -> list[str]:
        return [printable(row.get(column, "").strip()) for row in self._rows]

    def _names(self) -> list[str]:
        names = [printable(Path(row[self.file_column]).as_posix()) for row in self._rows]
        twice = next((name for name, count in Counter(names).items() if count > 1), None)
        if twice is not None:
            raise SoundError(f"{self._name} names {twice!r} twice; a recording has one line")
        return names

    def _labels(self, label: str, said_in: str | None, separator: str | None, names: Sequence[str]) -> Labels:
        if said_in is not None:
            said = [row.get(said_in, "") for row in self._rows]
            return counted_labels(self._name, said_in, said, self._file)
        texts = self._texts(label)
        if label not in self.columns:
            return labels_of_table(texts, None)
        for line, (name, text) in enumerate(zip(names, texts, strict=True), 2):
            if not text:
                raise SoundError(
                    f"{self._name}: the {label} of {name!r} (line {line}) is empty; leave out what has none"
                )
        return labels_of_table(texts, separator)


def _table(path: Path) -> list[dict[str, str]]:
    """The rows of a table, at least one, all with the same columns."""
    if path.stat().st_size > _LARGEST_TABLE:
        raise SoundError(f"{path.name} has more than {_LARGEST_TABLE // 2**20} MiB; is it a table of recordings?")
    try:
        with path.open(encoding="utf-8-sig", newline="") as stream:
            first = stream.readline()
            stream.seek(0)
            rows = list(csv.DictReader(stream, delimiter=delimiter_of(first), strict=True))
    except (OSError, ValueError, csv.Error) as error:
        raise SoundError(f"{path.name} cannot be read as a table (CSV in UTF-8): {first_line(error)}") from error
    if not rows:
        raise SoundError(f"{path.name} has no row below its first line, which names the columns: {FILE}, {LABEL}")
    for line, row in enumerate(rows, 2):
        if None in row or None in row.values():
            raise SoundError(f"{path.name}: row {line} has not as many fields as the first, which names the columns")
    return rows


def _file_below(folder: Path, name: str) -> Path:
    """The file of a name; a table must not lead outside the folder."""
    path = folder / name
    try:
        inside = path.resolve().is_relative_to(folder.resolve())
        if inside and is_regular(path):
            return path
    except (OSError, ValueError, RuntimeError) as error:
        raise SoundError(f"cannot be read: {first_line(error)}") from error
    raise SoundError("is not a file in the folder of the table; links are not followed")
