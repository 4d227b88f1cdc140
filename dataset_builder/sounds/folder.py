"""Recordings in a folder: ``LABEL[/CONDITION]/file.wav``, or with a table ``metadata.csv`` that describes each file."""

from __future__ import annotations

import csv
from collections import Counter
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from audio_compositionality.support.text import first_line, nearest

from ..manifest import MANIFEST_NAME
from . import labels
from .hub import values_in_yaml
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

if TYPE_CHECKING:
    from ..data_spec import DataSpec

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
    spec: DataSpec,
    *,
    table: str | Path | None = None,
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
        spec: the columns of the table; by default ``label``, ``group`` and ``condition``, where there are any, and
            those of `caption_columns` and `word_columns`.
        table: that describes each file, where it is not the ``metadata.csv`` of the folder.
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
        rows = _table(file)
        candidates, left_out = _by_table(folder, file.name, rows, spec)
        columns = [printable(column) for column in rows[0] if column != _file_column(rows)]
        labelling = f"--set label=COLUMN names a column of {file.name}, which has {', '.join(columns)}"
    elif any(getattr(spec, name) is not None for name in labels.COLUMNS):
        raise SoundError(
            f"{str(folder)!r} has no {METADATA}, whose columns label, group, condition, captions and words name; "
            "without it the folders in it are the labels, and the folders in these the conditions"
        )
    else:
        places = [path.relative_to(folder) for path in sound_files(folder)]
        beside = [place for place in places if len(place.parts) == 1]
        if beside and len(beside) < len(places):
            raise SoundError(
                f"{str(folder)!r} holds sound files ({printable(beside[0].name)!r} and so on) beside folders with "
                f"others: of which label are they? Put them into LABEL/, or write a {METADATA}"
            )
        candidates = []
        for place in places:
            label, group = "" if beside else printable(place.parts[0]), printable("/".join(place.parts[1:-1]))
            name = printable(place.as_posix())
            candidates.append(Candidate(name, label, None, group, group, partial(Path, folder / place)))
    suggested = folder / SETTINGS
    return ReadRecordings(
        printable(str(folder)),
        candidates,
        suggested=values_in_yaml(suggested, SETTINGS) if suggested.is_file() else {},
        labelling=labelling,
        left_out=left_out,
        skip_invalid=skip_invalid,
        progress=progress,
    )


def _by_table(
    folder: Path, table: str, rows: Sequence[Mapping[str, str]], spec: DataSpec
) -> tuple[list[Candidate], dict[str, str]]:
    """The recordings of a table, and the rows that are left out, with reasons; a file that is missing or outside the
    folder is reported when it is read."""
    columns, file_column = list(rows[0]), _file_column(rows)
    counted = labels.counted_column(table, spec.label, columns)
    if file_column not in columns:
        raise SoundError(
            f"{table} has no column {FILE!r} with the files (nor {', '.join(FILE_COLUMNS[1:])}); "
            f"{nearest(FILE, columns)}"
        )
    for column in (spec.label if counted is None else None, spec.group, spec.condition):
        if column is not None and column not in columns:
            raise SoundError(f"{table} has no column {column!r}; {nearest(column, columns)}")
    names = [printable(Path(row[file_column]).as_posix()) for row in rows]
    twice = next((name for name, count in Counter(names).items() if count > 1), None)
    if twice is not None:
        raise SoundError(f"{table} names {twice!r} twice; a recording has one line")

    def file(row: int) -> Path:
        return _file_below(folder, rows[row][file_column])

    names_of_labels, groups, conditions = (
        [printable(row.get(column, "").strip()) for row in rows]
        for column in (spec.label or LABEL, spec.group or GROUP, spec.condition or CONDITION)
    )
    has_labels = (spec.label or LABEL) in columns
    if counted is not None:
        read = labels.counted_labels(table, counted, [row.get(counted, "") for row in rows], file)
    elif spec.separator is None or not has_labels:
        read = labels.single_labels(names_of_labels)
    else:
        read = labels.several_labels([labels.split_labels(text, spec.separator) for text in names_of_labels])
    if counted is None and has_labels and not all(names_of_labels):
        line = names_of_labels.index("")
        raise SoundError(
            f"{table}: the {spec.label or LABEL} of {names[line]!r} (line {line + 2}) is empty; leave out what has none"
        )
    of_captions = labels.caption_columns(table, columns, spec.captions)
    captions = [[printable(row[column].strip()) for column in of_captions] for row in rows]
    attributes = labels.word_columns(table, columns, spec.words)
    return labels.candidates_of(
        names,
        read,
        file,
        groups=groups,
        conditions=conditions,
        captions=[tuple(filter(None, dict.fromkeys(of_row))) for of_row in captions],
        words=labels.words_by_row([[row[name] for name in attributes] for row in rows], attributes.values()),
    )


def _file_column(rows: Sequence[Mapping[str, str]]) -> str:
    return next((column for column in FILE_COLUMNS if column in rows[0]), FILE)


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
