"""Strong labels of recordings: events with onset and offset, from any format.

A format is a function from a file or folder to the annotations in it; `FORMATS` lists them by name. No sound is read
here.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from audio_compositionality.support.text import nearest, shortened

from ...tables import Line, folded_heading, head_of, heading_of, read_lines, read_text, time_of
from ..annotations import Annotation, AnnotationError
from .audioset_strong import AUDIOSET, read_audioset
from .json_files import read_audiotime, read_jams
from .parsing import (
    PLAIN_COLUMNS,
    RAVEN_COLUMNS,
    STRONG_COLUMNS,
    ReadOptions,
    files_in,
    parsed_json,
    usual_columns,
)
from .tables import read_desed, read_maestro, read_maestro_soft, read_raven, read_table, read_text_files

FORMATS: Mapping[str, Callable[[Path, ReadOptions], tuple[Annotation, ...]]] = {
    # AudioSet's strong labels: segment, start, end, id of the label; with a table of ids and names.
    AUDIOSET: read_audioset,
    # JSON of clip -> event -> label -> [[onset, offset], ...]; only the parts ordering and timestamp.
    "audiotime": read_audiotime,
    # filename, onset, offset, event_label with tabs; durations in TABLE_durations.tsv next to it.
    "desed": read_desed,
    # One file per recording, or a folder of them; namespaces scaper, segment_open, tag_open.
    "jams": read_jams,
    # MAESTRO Real, hard labels: DESED's columns in a .csv with tabs, a row for each class and second.
    "maestro": read_maestro,
    # MAESTRO Real, soft labels: a folder of files with onset, offset, label, confidence; or DCASE's table.
    "maestro-soft": read_maestro_soft,
    # Selection tables: Begin Time (s), End Time (s) and a label; one file per recording, or Begin File.
    "raven": read_raven,
    # Any CSV or TSV with a header: the heading of each field is given, or a usual one.
    "table": read_table,
    # One file per recording, named like its sound: onset, offset, label with tabs or blanks, no header.
    "text": read_text_files,
}
"""The function that reads all recordings of a file or folder in each format, by its name on the command line."""


def read_annotations(path: str | Path, format: str, options: ReadOptions | None = None) -> tuple[Annotation, ...]:
    """Return the labels of recordings, in the order of their names.

    Args:
        path: path of a file or a folder, as the format requires.
        format: one of `FORMATS`.
        options: facts that the files do not determine.

    Raises:
        AnnotationError: the format does not exist; or files are missing, empty, or contradict themselves or each other:
            all problems are listed.
    """
    check_format(format)
    return FORMATS[format](Path(path), options or ReadOptions())


SUFFIXES = (".jams", ".json", ".tsv", ".csv", ".txt", ".ann", ".lab")
"""Suffixes of label files."""
_SEGMENTS = ("segment_id", "start_time_seconds", "end_time_seconds", "label")
_IDS = ("/m/", "/g/", "/t/")


def format_of(path: str | Path, encoding: str | None = None, *, follow_links: bool = True) -> str:
    """Return the name of the format of a file, or of the first file in a folder.

    MAESTRO's hard labels and DESED's have the same columns. A table with times within a second is DESED's; a ``.csv``
    in which each row is a whole second is MAESTRO's; any other is ambiguous.

    Raises:
        AnnotationError: the format is ambiguous or unknown; lists all formats.
    """
    path = Path(path)
    file = files_in(path, SUFFIXES, follow_links=follow_links)[0]
    name = _guess(file, encoding, is_folder=path.is_dir())
    if name is None:
        first = next((", ".join(line.fields) for line in head_of(file)), "")
        raise AnnotationError(
            f"cannot tell the format of the strong labels in {file.name}; the first line is "
            f"{shortened(first, 120)!r}. Give the format with --set format=NAME, one of {', '.join(FORMATS)} "
            "(docs/how-to/data.md), or the columns of a table, "
            "--set columns=recording=COLUMN,onset=COLUMN,offset=COLUMN,label=COLUMN"
        )
    return name


def check_format(name: str) -> None:
    """Raise an error if a format does not exist.

    Raises:
        AnnotationError: with the nearest name, and all names.
    """
    if name not in FORMATS:
        raise AnnotationError(f"there is no label format {name!r}; {nearest(name, FORMATS)}")


def _guess(file: Path, encoding: str | None, *, is_folder: bool) -> str | None:
    if file.suffix.lower() == ".jams":
        return "jams"
    if file.suffix.lower() == ".json":
        content = parsed_json(read_text(file), file.name)
        entry = next(iter(content.values()), None) if isinstance(content, dict) else None
        return "audiotime" if isinstance(entry, dict) and isinstance(entry.get("event"), dict) else None
    lines = read_lines(file, encoding)
    first = tuple(map(folded_heading, lines[0].fields))
    if set(STRONG_COLUMNS.values()) <= set(first):
        if "confidence" in first:
            return "maestro-soft"
        places = [first.index(STRONG_COLUMNS[field]) for field in ("onset", "offset")]
        spans = [[line.fields[place] for place in places] for line in lines[1:] if len(line.fields) > max(places)]
        times = [[time_of(text) for text in span] for span in spans if _are_times(span)]
        if any(time % 1 for span in times for time in span):
            return "desed"
        whole_seconds = bool(times) and all(offset - onset == 1 for onset, offset in times)
        return "maestro" if whole_seconds and file.suffix.lower() == ".csv" else None
    if is_folder and len(first) == 1:
        lines = read_lines(file, encoding, blanks=3)
    name = _format_of_lines(lines, is_folder=is_folder)
    # A .csv with two times may have an onset and a length, like Sonic Visualiser's.
    return None if name == "text" and file.suffix.lower() == ".csv" else name


def _format_of_lines(lines: Sequence[Line], *, is_folder: bool) -> str | None:
    """Return the format of rows that do not have DESED's columns."""
    first = tuple(map(folded_heading, lines[0].fields))
    if usual_columns(first).keys() == PLAIN_COLUMNS.keys():
        return "table"
    if all(heading_of(heading, first) for heading in RAVEN_COLUMNS.values()):
        return "raven"
    if first == _SEGMENTS:
        return AUDIOSET
    if any(len(line.fields) != len(first) for line in lines):
        return None
    if len(first) == 4 and _are_times(first[1:3]) and first[3].startswith(_IDS):
        return AUDIOSET
    # One file per recording: a single file could be part of something else.
    if _are_times(first[:2]) and is_folder:
        if len(first) == 4 and _are_times(first[3:]):
            return "maestro-soft"
        return "text" if len(first) == 3 and not _are_times(first[2:]) else None
    return None


def holds_events(lines: Sequence[Line]) -> bool:
    """Return whether the first rows of a table are strong labels: they have onsets, offsets and labels."""
    if not lines:
        return False
    first = tuple(map(folded_heading, lines[0].fields))
    of_desed = set(STRONG_COLUMNS.values()) <= set(first)
    return (
        of_desed or _format_of_lines(lines, is_folder=True) is not None or (_are_times(first[1:3]) and len(first) == 4)
    )


def _are_times(texts: Sequence[str]) -> bool:
    return bool(texts) and not any(math.isnan(time_of(text)) for text in texts)
