"""Recordings in a folder: ``LABEL[/CONDITION]/file.wav``, or a table ``metadata.csv`` that says what each file is."""

from __future__ import annotations

import csv
from collections import Counter
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

from audio_compositionality.support.text import first_line, nearest

from ..manifest import MANIFEST_NAME
from .labels import caption_columns, captions_of_table, counted_column, counted_labels, labels_of_table
from .named_sets import are_settings, parsed_description, read_description
from .reading import Candidate, ReadRecordings
from .sound_files import SoundError, check_folder, is_regular, printable, sound_files

METADATA = "metadata.csv"

SETTINGS = "sounds.yaml"
"""A file beside the sounds with settings of recipes that suit them, such as ``domain: birds`` and ``classes: 6``."""

FILE, LABEL, GROUP, CONDITION = "file_name", "label", "group", "condition"
"""Columns of the table: that of the files, and the others by default."""

_LARGEST_TABLE = 64 * 2**20
"""Bytes."""


def folder_recordings(
    folder: str | Path,
    *,
    label: str | None = None,
    group: str | None = None,
    condition: str | None = None,
    captions: str | Sequence[str] | None = None,
    separator: str | None = None,
    skip_invalid: bool = False,
    progress: bool = True,
) -> ReadRecordings:
    """The recordings in a folder.

    Where it holds ``metadata.csv``, its rows are the recordings: ``file_name`` is a path below the folder. Else all
    sound files are, at any depth: the label of each is the folder below the given one that it lies in, its condition
    the folders in between, such as ``flite/awb`` of ``dog/flite/awb/1.wav``, and its group the same. Settings of
    recipes that suit them stand in ``sounds.yaml``, where there is one.

    Args:
        folder: with sound files.
        label: column of the table with labels; by default ``label``, where there is one. Or ``words_per_second`` and
            ``words_per_second=COLUMN``, see `counted_labels`.
        group: column of the table with groups; by default ``group``, where there is one.
        condition: column of the table with conditions; by default ``condition``, where there is one.
        captions: columns of the table with captions; by default those that are called so, see `caption_columns`.
        separator: between several labels of a row of the table.
        skip_invalid: leave out recordings that cannot be used.
        progress: show progress bars.

    Raises:
        SoundError: what is there cannot be used: says which file and why.
    """
    folder = Path(folder)
    check_folder(folder)
    if (folder / MANIFEST_NAME).is_file():
        raise SoundError(f"{str(folder)!r} is a data set that was built, which --data takes")
    left_out: dict[str, str] = {}
    labelling = f"put them into folders, LABEL/file.wav, or write a {METADATA} with the column {LABEL}"
    if (folder / METADATA).is_file():
        candidates, columns, left_out = _listed(folder, label, group, condition, captions, separator)
        labelling = f"--label names a column of {METADATA}, which has {', '.join(columns)}"
    elif any(column is not None for column in (label, group, condition, captions, separator)):
        raise SoundError(
            f"{str(folder)!r} has no {METADATA}, whose columns --label, --group, --condition and --captions name; "
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
    """The settings of a file; none where there is no file."""
    if not path.is_file():
        return {}
    values = parsed_description(SETTINGS, read_description(path))
    if not are_settings(values):
        raise SoundError(f"{str(path)!r} holds no settings of recipes by their names, such as domain: birds")
    return dict(values)


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


def _listed(
    folder: Path,
    label: str | None,
    group: str | None,
    condition: str | None,
    captions: str | Sequence[str] | None,
    separator: str | None,
) -> tuple[list[Candidate], list[str], dict[str, str]]:
    """The recordings of the table, its columns, and who is left out and why; of a file that is not there, or outside
    the folder, reading says so."""
    rows = _table(folder / METADATA)
    columns = list(rows[0])
    said_in = counted_column(METADATA, label, columns)
    for column in (FILE, label if said_in is None else None, group, condition):
        if column is not None and column not in columns:
            raise SoundError(f"{METADATA} has no column {column!r}; {nearest(column, columns)}")
    label, group, condition = label or LABEL, group or GROUP, condition or CONDITION
    labels = [row.get(label, "").strip() for row in rows]
    names = [printable(Path(row[FILE]).as_posix()) for row in rows]
    for line, (name, text) in enumerate(zip(names, labels, strict=True), 2):
        if label in columns and not text:
            raise SoundError(f"{METADATA}: the {label} of {name!r} (line {line}) is empty; leave out what has none")
    twice = next((name for name, count in Counter(names).items() if count > 1), None)
    if twice is not None:
        raise SoundError(f"{METADATA} names {twice!r} twice; a recording has one line")
    if said_in is not None:
        said_of = [row.get(said_in, "") for row in rows]
        read = counted_labels(METADATA, said_in, said_of, lambda place: _file_below(folder, rows[place][FILE]))
    else:
        read = labels_of_table([printable(text) for text in labels], separator if label in columns else None)
    said = captions_of_table(rows, caption_columns(METADATA, columns, captions))
    candidates = [
        Candidate(
            name,
            text,
            None if read.numbers is None else read.numbers[place],
            printable(row.get(group, "").strip()),
            printable(row.get(condition, "").strip()),
            partial(_file_below, folder, row[FILE]),
            said[place],
            read.several[place] if read.several else (),
        )
        for place, (name, row, text) in enumerate(zip(names, rows, read.single, strict=True))
        if text is not None
    ]
    left_out = {names[place]: reason for place, reason in read.left_out.items()}
    return candidates, [printable(column) for column in columns if column != FILE], left_out


def _table(path: Path) -> list[dict[str, str]]:
    """The rows of a table, one or more, all with the same columns."""
    if path.stat().st_size > _LARGEST_TABLE:
        raise SoundError(f"{METADATA} has more than {_LARGEST_TABLE // 2**20} MiB; is it a table of recordings?")
    try:
        with path.open(encoding="utf-8-sig", newline="") as stream:
            rows = list(csv.DictReader(stream, strict=True))
    except (OSError, ValueError, csv.Error) as error:
        raise SoundError(f"{METADATA} cannot be read as a table (CSV in UTF-8): {first_line(error)}") from error
    if not rows:
        raise SoundError(f"{METADATA} has no row below its first line, which names the columns: {FILE}, {LABEL}")
    for line, row in enumerate(rows, 2):
        if None in row or None in row.values():
            raise SoundError(f"{METADATA}: row {line} has not as many fields as the first, which names the columns")
    return rows


def _file_below(folder: Path, name: str) -> Path:
    """The file of a name; a table must not lead anywhere else."""
    path = folder / name
    try:
        inside = path.resolve().is_relative_to(folder.resolve())
        if inside and is_regular(path):
            return path
    except (OSError, ValueError, RuntimeError) as error:
        raise SoundError(f"cannot be read: {first_line(error)}") from error
    raise SoundError("is no file in the folder of the table; links are not followed")
