"""Recordings in a folder: ``LABEL[/CONDITION]/file.wav``, or with a table ``metadata.csv`` that describes each file."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from audio_compositionality.support.text import nearest, shortened

from ..manifest import MANIFEST_NAME
from ..tables import ReadTable, first_heading, heading_of, open_table, value_of
from . import labels
from .files import FoundFiles, check_folder, check_sounds
from .hub import values_in_yaml
from .recordings import FILE_COLUMNS, Candidate, ReadRecordings, SoundError, SoundFile, printable

if TYPE_CHECKING:
    from ..data_spec import DataSpec

METADATA = "metadata.csv"

SETTINGS = "sounds.yaml"
"""A file next to the sounds with suitable settings of recipes, e.g. ``domain: birds`` and ``classes: 6``."""

FILE = FILE_COLUMNS[0]
"""Preferred name of the table's column with the files."""

LABEL, GROUP, CONDITION = "label", "group", "condition"
"""Default names of the other columns."""


def folder_recordings(
    folder: str | Path,
    spec: DataSpec,
    *,
    table: str | Path | None = None,
    skip_invalid: bool = False,
    progress: bool = True,
) -> ReadRecordings:
    """Return the recordings in a folder.

    With ``metadata.csv``, its rows are the recordings: ``file_name``, or else the first of `FILE_COLUMNS` that it has,
    is a path in the folder. Otherwise all sound files are read, at any depth: the label of each is its top folder below
    the given one; its condition is the folders in between, e.g. ``flite/awb`` for ``dog/flite/awb/1.wav``, and so is
    its group. ``sounds.yaml``, if it exists, contains suitable settings of recipes.

    Args:
        folder: folder with sound files.
        spec: the columns of the table; by default ``label``, ``group`` and ``condition``, if they exist, and the
            columns found by `caption_columns` and `word_columns`.
        table: the table that describes each file, unless it is ``metadata.csv`` in the folder.
        skip_invalid: leave out unusable recordings.
        progress: show progress bars.

    Raises:
        SoundError: the content is unusable; names the file and the reason.
    """
    folder = Path(folder)
    check_folder(folder)
    if (folder / MANIFEST_NAME).is_file():
        raise SoundError(f"{str(folder)!r} is a built data set, not a folder of recordings")
    files = FoundFiles(folder, follow_links=spec.follow_links)
    left_out: dict[str, str] = {}
    columns_used: dict[str, str] = {}
    others = dict(files.left_out)
    labelling = f"put them into folders LABEL/file.wav, or write a {METADATA} with the column {LABEL}"
    file = folder / METADATA if table is None else Path(table)
    if file.is_file():
        rows = open_table(file, encoding=spec.encoding)
        if not rows.lines:
            raise SoundError(f"{file.name} has no rows below its first line, which names the columns: {FILE}, {LABEL}")
        candidates, left_out, columns_used = _by_table(files, rows, spec)
        read = {candidate.id for candidate in candidates}
        others |= dict.fromkeys(map(files.name, files.sounds), f"has no row in {file.name}")
        others = {name: why for name, why in others.items() if name not in read and name not in left_out}
        columns = [printable(column) for column in rows.headings if column != _file_column(rows, spec)]
        labelling = f"give a column of {file.name} with --set label=COLUMN: {', '.join(columns)}"
    elif any(getattr(spec, name) is not None for name in labels.COLUMNS):
        raise SoundError(
            f"{str(folder)!r} has no {METADATA}, to which label, group, condition, captions and words refer; "
            "without it, its folders are the labels, and folders in them the conditions"
        )
    else:
        check_sounds(files)
        places = [path.relative_to(folder) for path in files.sounds]
        beside = [place for place in places if len(place.parts) == 1]
        if beside and len(beside) < len(places):
            raise SoundError(
                f"{str(folder)!r} contains sound files ({printable(beside[0].name)!r} and so on) next to folders with "
                f"others, so their label is unknown. Put them into LABEL/, or write a {METADATA}"
            )
        candidates = []
        for place in places:
            label, group = "" if beside else printable(place.parts[0]), printable("/".join(place.parts[1:-1]))
            name = printable(place.as_posix())
            candidates.append(Candidate(name, label, None, group, group, partial(Path, folder / place)))
    suggested = folder / SETTINGS
    for path, why in ((file, "is the table that describes the sounds"), (suggested, "has settings for the sounds")):
        if path.is_relative_to(folder) and files.name(path) in others:
            others[files.name(path)] = why
    return ReadRecordings(
        printable(str(folder)),
        candidates,
        suggested=values_in_yaml(suggested, SETTINGS) if suggested.is_file() else {},
        labelling=labelling,
        left_out=left_out,
        beside=others,
        columns=columns_used,
        skip_invalid=skip_invalid,
        progress=progress,
    )


def _by_table(
    files: FoundFiles, table: ReadTable, spec: DataSpec
) -> tuple[list[Candidate], dict[str, str], dict[str, str]]:
    """Return the recordings of a table, the reasons why rows are left out, and the use of each column.

    A file that is missing or outside the folder is reported when it is read.
    """
    file_column = _file_column(table, spec)
    counted = labels.counted_column(table.name, spec.label, table.headings)
    # The heading of each field: the given one, or else the usual one if the table has it.
    headings = {
        name: table.column(getattr(spec, name)) if getattr(spec, name) else heading_of(name, table.headings)
        for name in (LABEL, GROUP, CONDITION)
        if name != LABEL or counted is None
    }
    rows = table.records()
    paths: dict[int, Path] = {}
    missing: dict[int, str] = {}
    for number, row in enumerate(rows):
        try:
            paths[number] = files.named(row[file_column])
        except SoundError as error:
            missing[number] = str(error)
    names = [
        files.name(paths[number]) if number in paths else printable(row[file_column]) for number, row in enumerate(rows)
    ]
    first = dict[str, str]()
    for name, line in zip(names, table.lines, strict=True):
        if first.setdefault(name, line.where) != line.where:
            raise SoundError(f"{line.where} names {name!r}, as {first[name]} does; give each recording one line")

    def file(number: int) -> SoundFile:
        if number in missing:
            raise SoundError(missing[number])
        return paths[number]

    said, groups, conditions = (
        [printable(row.get(headings.get(name) or "", "")) for row in rows] for name in (LABEL, GROUP, CONDITION)
    )
    lists = [value_of(text) for text in said]
    if counted is not None:
        read = labels.counted_labels(table.name, counted, [row[counted] for row in rows], file)
    elif said and all(isinstance(value, list) for value in lists):
        # Label Studio exports the regions of a recording like this.
        for line, name, value in zip(table.lines, names, lists, strict=True):
            if any(isinstance(one, dict) for one in value):
                raise SoundError(
                    f"{line.where}: the {headings[LABEL]} of {name!r} is {shortened(str(value), 60)!r}; a label "
                    "must be a "
                    "text, or texts in a list"
                )
        each = [[str(label).strip() for label in value] for value in lists]
        read = labels.several_labels(each, hierarchy=spec.hierarchy)
    elif spec.separator is None or not headings[LABEL]:
        read = labels.single_labels(said)
    else:
        read = labels.several_labels([labels.split_labels(text, spec.separator) for text in said], (), spec.hierarchy)
    if counted is None and headings[LABEL] and not all(said):
        number = said.index("")
        raise SoundError(
            f"{table.lines[number].where}: the {headings[LABEL]} of {names[number]!r} is empty; leave out "
            "recordings without one"
        )
    of_captions = labels.caption_columns(table.name, table.headings, spec.captions)
    captions = [[value_of(row[column]) for column in of_captions] for row in rows]
    flat = [
        [text for value in of_row for text in (value if isinstance(value, list) else [value])] for of_row in captions
    ]
    attributes = labels.word_columns(table.name, table.headings, spec.words)
    candidates, left_out = labels.candidates_of(
        names,
        read,
        file,
        groups=groups,
        conditions=conditions,
        captions=[
            tuple(filter(None, dict.fromkeys(printable(str(text)).strip() for text in of_row))) for of_row in flat
        ],
        words=labels.words_by_row([[row[name] for name in attributes] for row in rows], attributes.values()),
    )
    used = labels.uses_of(table.headings, file_column, headings, counted, of_captions, attributes)
    return candidates, left_out, used


def _file_column(table: ReadTable, spec: DataSpec) -> str:
    """Return the heading of the column with the files."""
    if spec.file is not None:
        return table.column(spec.file)
    column = first_heading(FILE_COLUMNS, table.headings)
    if column is None:
        raise SoundError(
            f"{table.name} has no column {FILE!r} with the files (nor {', '.join(FILE_COLUMNS[1:])}); "
            f"{nearest(FILE, table.headings)}; give it with --set file=COLUMN{table.one_column()}"
        )
    return column
