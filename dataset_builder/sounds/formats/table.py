"""Any table with a header and a row for each event, whose columns the user names, such as DataSED's."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from audio_compositionality.support.text import nearest

from ..annotations import Annotation, AnnotationError
from .parsing import (
    PLAIN_COLUMNS,
    LabelReading,
    ReadOptions,
    durations_of,
    files_in,
    is_durations_table,
    read_durations,
    read_lines,
)

_SUFFIXES = (".csv", ".tsv", ".txt")

_FIELDS = ("recording", "onset", "offset", "length", "label", "duration", "source", "confidence")


class _Reader:
    """See `AnnotationReader`."""

    name = "table"
    meaning = "any CSV or TSV with a header, with the heading of each column; or with file, label, start and stop"

    def read(self, path: Path, options: ReadOptions) -> tuple[Annotation, ...]:
        """Read a table, or all of a folder, with the columns `ReadOptions.columns`, by default `PLAIN_COLUMNS`."""
        columns = dict(options.columns)
        if not columns and set(PLAIN_COLUMNS.values()) <= set(read_lines(files_in(path, _SUFFIXES)[0])[0].fields):
            columns = dict(PLAIN_COLUMNS)
        for field in columns:
            if field not in _FIELDS:
                raise AnnotationError(f"a table has no field {field!r}; {nearest(field, _FIELDS)}")
        missing = [field for field in ("recording", "onset", "label") if field not in columns]
        missing += [] if "offset" in columns or "length" in columns else ["offset (or length)"]
        if missing:
            raise AnnotationError(f"the columns of the table have to be named: there is none for {', '.join(missing)}")
        # A column of durations would not agree with the sound to the last digit.
        durations = read_durations(options) if "duration" in columns else durations_of(options)
        return read_tables(path, options, columns, durations, name=self.name)


def read_tables(
    path: Path,
    options: ReadOptions,
    columns: Mapping[str, str],
    durations: Mapping[str, float],
    *,
    name: str,
    resolution: float = 0.0,
    joined: bool = False,
) -> tuple[Annotation, ...]:
    """The recordings of a table, or of all tables of a folder, with a row for each event.

    Args:
        path: of the table or the folder.
        options: of the user.
        columns: heading of each field.
        durations: of recordings, where they are known.
        name: of the format.
        resolution: seconds, where the options state none.
        joined: whether adjacent rows of a label are one event.

    Raises:
        AnnotationError: see `read_annotations`.
    """
    reading = LabelReading(options, durations)
    for file in files_in(path, _SUFFIXES):
        if not is_durations_table(file, options):
            reading.table(file, columns)
    return reading.annotations(path, name, resolution=resolution, joined=joined)


READER = _Reader()
