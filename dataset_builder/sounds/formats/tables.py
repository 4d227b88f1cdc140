"""Tables of strong labels, whatever their columns are called."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from audio_compositionality.support.text import first_line

from .base import (
    AnnotationError,
    Draft,
    LabelledEvent,
    Problems,
    ReadOptions,
    durations_table,
    label_text,
    recording_name,
    seconds_of,
    share_of,
)

_LARGEST_MIB = 256

STRONG_COLUMNS: Mapping[str, str] = {
    "recording": "filename",
    "onset": "onset",
    "offset": "offset",
    "label": "event_label",
}
"""Headings of DESED, which MAESTRO and others took over."""

PLAIN_COLUMNS: Mapping[str, str] = {"recording": "file", "onset": "start", "offset": "stop", "label": "label"}
"""Headings of tables that people write by hand."""


@dataclass(frozen=True)
class Line:
    """A line of a table.

    Attributes:
        where: file and line, for messages.
        fields: what stands in its columns, without blanks around it.
    """

    where: str
    fields: tuple[str, ...]


def read_text(path: Path) -> str:
    """The text of a file.

    Raises:
        AnnotationError: it cannot be read, or is no text.
    """
    try:
        if path.stat().st_size > _LARGEST_MIB * 2**20:
            raise AnnotationError(f"{path.name} has more than {_LARGEST_MIB} MiB")
        return path.read_text("utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise AnnotationError(f"{path.name} cannot be read as text: {first_line(error)}") from error


def parsed_json(text: str, name: str) -> Any:
    """What a text in JSON says.

    Raises:
        AnnotationError: it is none.
    """
    try:
        return json.loads(text)
    # Brackets of thousands of levels are a RecursionError.
    except (ValueError, RecursionError) as error:
        raise AnnotationError(f"{name} is no JSON: {first_line(error)}") from error


def read_lines(path: Path) -> list[Line]:
    """The lines of a table that are not empty; between its fields are tabs, semicolons or commas, as in its first line.

    Raises:
        AnnotationError: it cannot be read, or holds nothing.
    """
    text = read_text(path)
    first = next((line for line in text.splitlines() if line.strip()), "")
    delimiter = next((char for char in "\t;" if char in first), ",")
    # Tables with tabs quote nothing: a quotation mark in a label is one.
    quoting: Literal[0, 3] = csv.QUOTE_NONE if delimiter == "\t" else csv.QUOTE_MINIMAL
    lines = []
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter, quoting=quoting)
    try:
        for fields in reader:
            if any(field.strip() for field in fields):
                lines.append(Line(f"{path.name}:{reader.line_num}", tuple(field.strip() for field in fields)))
    except csv.Error as error:
        raise AnnotationError(f"{path.name}:{reader.line_num}: is no row of a table: {error}") from error
    if not lines:
        raise AnnotationError(f"{path.name} is empty")
    return lines


def table_rows(lines: Sequence[Line], columns: Mapping[str, str]) -> Iterator[tuple[str, dict[str, str]]]:
    """The rows below a header: place, and text by field. Ends that are missing are empty.

    Args:
        lines: of the table.
        columns: heading of each field.

    Raises:
        AnnotationError: the header has not all of the columns.
    """
    header = lines[0].fields
    missing = [heading for heading in columns.values() if heading not in header]
    if missing:
        raise AnnotationError(
            f"{lines[0].where}: the columns are {', '.join(header)}; there is no {' and no '.join(map(repr, missing))}"
        )
    places = {field: header.index(heading) for field, heading in columns.items()}
    for line in lines[1:]:
        fields = dict(enumerate(line.fields))
        yield line.where, {name: fields.get(place, "") for name, place in places.items()}


def add_row(draft: Draft, row: Mapping[str, str], where: str, problems: Problems) -> None:
    """Add the event of a row to its recording, or what is wrong with it to the problems.

    A row with neither label nor times says that nothing is heard.
    """
    draft.where = draft.where or where
    if not any(row.get(field) for field in ("label", "onset", "offset", "length")):
        draft.empty.append(where)
        return
    try:
        onset = seconds_of(row["onset"], "the onset")
        if "offset" in row:
            offset = seconds_of(row["offset"], "the offset")
        else:
            offset = onset + seconds_of(row["length"], "the length")
        confidence = share_of(row["confidence"], "the confidence") if row.get("confidence") else None
        label = label_text(row["label"])
        draft.events.append((LabelledEvent(onset, offset, label, row.get("source") or None, confidence), where))
        if row.get("duration"):
            duration = seconds_of(row["duration"], "the duration")
            if draft.duration is not None and abs(draft.duration - duration) > 1e-3:
                raise AnnotationError(
                    f"{draft.recording!r} lasts {duration:g} s, in a line before {draft.duration:g} s"
                )
            draft.duration = duration
    except AnnotationError as error:
        problems.add(where, str(error), draft.recording)


def read_durations(options: ReadOptions, *beside: Path) -> dict[str, float]:
    """Durations by recording: those of the options, else of the first table of `beside` that is there; else none.

    Raises:
        AnnotationError: the table is none of names and seconds, or says two things of a recording.
    """
    if isinstance(options.durations, Mapping):
        return durations_table(options.durations)
    paths = [Path(options.durations)] if options.durations is not None else [path for path in beside if path.is_file()]
    if not paths:
        return {}
    if not paths[0].is_file():
        raise AnnotationError(f"there is no table of durations {str(paths[0])!r}")
    return _durations(paths[0])


def durations_beside(path: Path, options: ReadOptions) -> dict[str, float]:
    """As `durations_of`, with the table ``NAME_durations`` beside a table ``NAME``."""
    beside = [
        path.with_name(f"{path.stem}{end}{suffix}")
        for end in ("_durations", "_duration")
        for suffix in (path.suffix, ".tsv", ".csv")
    ]
    return durations_of(options, *beside)


def is_durations_table(file: Path, options: ReadOptions) -> bool:
    """Whether a file is the table of durations that the options name."""
    return isinstance(options.durations, str | Path) and file.resolve() == Path(options.durations).resolve()


def durations_of(options: ReadOptions, *beside: Path) -> dict[str, float]:
    """As `read_durations`; of a recording that is in no table, that of its sound.

    Raises:
        AnnotationError: see `read_durations`.
    """
    return {**durations_table(options.sounds), **read_durations(options, *beside)}


def _durations(path: Path) -> dict[str, float]:
    lines, durations, problems = read_lines(path), dict[str, float](), Problems()
    for number, line in enumerate(lines):
        if number == 0 and not _is_number(line.fields[-1]):
            continue
        try:
            if len(line.fields) < 2:
                raise AnnotationError("expected are a name and seconds")
            name, seconds = recording_name(line.fields[0]), seconds_of(line.fields[1], "the duration")
            if seconds <= 0:
                raise AnnotationError(f"the duration of {name!r} is {seconds:g} s; expected is more than 0")
            if abs(durations.setdefault(name, seconds) - seconds) > 1e-3:
                raise AnnotationError(f"{name!r} lasts {seconds:g} s, in a line before {durations[name]:g} s")
        except AnnotationError as error:
            problems.add(line.where, str(error))
    problems.tell(path)
    return durations


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def has_header(line: Line, place: int) -> bool:
    """Whether a first line is a header: what stands at the place of a time is no number."""
    return place < len(line.fields) and not _is_number(line.fields[place])


def read_strong_table(
    path: Path, durations: Mapping[str, float], problems: Problems, columns: Mapping[str, str] = STRONG_COLUMNS
) -> dict[str, Draft]:
    """The recordings of a table with a row for each event.

    Args:
        path: of the table.
        durations: by recording, where they are known.
        problems: to which those of rows are added.
        columns: heading of each field.

    Raises:
        AnnotationError: it is no table with these columns.
    """
    drafts: dict[str, Draft] = {}
    for where, row in table_rows(read_lines(path), columns):
        name = recording_name(row["recording"])
        if not name:
            problems.add(where, "names no recording", where)
            continue
        draft = drafts.setdefault(name, Draft(name, duration=durations.get(name)))
        add_row(draft, row, where, problems)
    return drafts
