"""Formats that are text tables: with one row per event, or one file per recording.

DESED has ``filename onset offset event_label`` with tabs, and durations in a second table. MAESTRO Real with hard
labels has DESED's columns in a ``.csv``, one row per class and second. MAESTRO Real with soft labels has the share of
annotators who heard a class in a second: one file per recording without header, ``onset offset label confidence``, or
the table of DCASE 2024 with a fifth column ``confidence``, whose names are ``<recording>-<start>-<end>`` in hundredths
of a second. Any other table has a header, whose columns the user names, e.g. DataSED's. One file per recording with
``onset offset label`` and no header is the format of TUT's sets and of Audacity. Raven's selection tables have a
header, and often one file per recording.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

from audio_compositionality.support.text import nearest

from ...tables import TableError, first_heading, heading_of, read_lines
from ..annotations import LEAST_CONFIDENCE, Annotation, AnnotationError
from . import parsing
from .parsing import (
    RAVEN_COLUMNS,
    RAVEN_LABELS,
    STRONG_COLUMNS,
    DraftRecording,
    LabelReading,
    ReadOptions,
)

RESOLUTION = 1.0
"""Seconds, for MAESTRO: annotators judged windows that began a second apart."""

_TABLES = (".csv", ".tsv", ".txt")

_SEGMENT = re.compile(r"(?P<recording>.+)-(?P<start>\d+)-(?P<end>\d+)")

_TEXT, _SOFT = ("onset", "offset", "label"), ("onset", "offset", "label", "confidence")

_COLUMNS = ("recording", "onset", "offset", "length", "label", "duration", "source", "confidence")


def read_desed(path: Path, options: ReadOptions) -> tuple[Annotation, ...]:
    """Read a table, or all tables in a folder; a row without a label is a clip without events."""
    return read_tables(path, options, STRONG_COLUMNS, parsing.durations_beside(path, options), name="desed")


def read_maestro(path: Path, options: ReadOptions) -> tuple[Annotation, ...]:
    """Read a table, or all tables in a folder; consecutive seconds of a class are one event."""
    durations = parsing.durations_beside(path, options)
    return read_tables(path, options, STRONG_COLUMNS, durations, name="maestro", resolution=RESOLUTION, joined=True)


def read_table(path: Path, options: ReadOptions) -> tuple[Annotation, ...]:
    """Read a table, or all tables in a folder, with the columns `ReadOptions.columns`, by default `PLAIN_COLUMNS`.

    A table without a recording column describes the recording that its own name gives.
    """
    first = parsing.files_in(path, _TABLES, follow_links=options.follow_links)[0]
    usual = parsing.usual_columns(read_lines(first, options.encoding)[0].fields)
    columns = dict(options.columns) or dict(usual)
    if "recording" in usual:
        columns.setdefault("recording", usual["recording"])
    for field in columns:
        if field not in _COLUMNS:
            raise AnnotationError(f"a table has no field {field!r}; {nearest(field, _COLUMNS)}")
    missing = [field for field in ("onset", "label") if field not in columns]
    missing += [] if "offset" in columns or "length" in columns else ["offset (or length)"]
    if missing:
        raise AnnotationError(f"give the columns of the table: there is none for {', '.join(missing)}")
    # A column of durations would not agree with the sound to the last digit.
    durations = parsing.read_durations(options) if "duration" in columns else parsing.durations_of(options)
    return read_tables(path, options, columns, durations, name="table")


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
    """Return the recordings of a table, or of all tables in a folder, with one row per event.

    Args:
        path: path of the table or the folder.
        options: the user's options.
        columns: heading of each field.
        durations: durations of recordings, if known.
        name: name of the format.
        resolution: seconds, unless the options give it.
        joined: whether adjacent rows of a label are one event.

    Raises:
        AnnotationError: see `read_annotations`.
    """
    reading = LabelReading(options, durations)
    for file in parsing.files_in(path, _TABLES, follow_links=options.follow_links):
        if not parsing.is_durations_table(file, options):
            reading.table(file, columns)
    return reading.annotations(path, name, resolution=resolution, joined=joined)


def read_text_files(path: Path, options: ReadOptions) -> tuple[Annotation, ...]:
    """Read a file or a folder; an empty file is a recording without events."""
    reading = LabelReading(options)
    for file in parsing.files_in(path, (".txt", ".ann", ".lab", ".tsv"), follow_links=options.follow_links):
        draft = None if parsing.is_durations_table(file, options) else reading.of_file(file)
        if draft is None:
            continue
        try:
            lines = read_lines(file, options.encoding, blanks=len(_TEXT))
        except TableError as error:
            reading.problems.add(file.name, str(error))
            continue
        for line in lines:
            # Audacity writes the frequencies of a label on a separate line.
            if line.fields[0] == "\\":
                continue
            if len(line.fields) != len(_TEXT):
                what = f"is {' '.join(line.fields)!r}; expected: {', '.join(_TEXT)}"
                reading.problems.add(line.where, what, draft.recording)
            else:
                reading.row(draft, dict(zip(_TEXT, line.fields, strict=True)), line.where)
    return reading.annotations(path, "text")


def read_raven(path: Path, options: ReadOptions) -> tuple[Annotation, ...]:
    """Read a selection table, or a folder with one for each recording.

    A table with the column ``Begin File`` names the recordings; otherwise its file name does:
    ``rec.Table.1.selections.txt`` describes ``rec``. Raven lists a selection once for each view; it is read once.
    """
    reading = LabelReading(options)
    for file in parsing.files_in(path, _TABLES, follow_links=options.follow_links):
        if parsing.is_durations_table(file, options):
            continue
        lines = read_lines(file, options.encoding)
        header = lines[0].fields
        columns = {**RAVEN_COLUMNS, **options.columns}
        label = columns.setdefault("label", first_heading(RAVEN_LABELS, header) or "")
        if not label:
            raise AnnotationError(
                f"{file.name} has the columns {', '.join(header)}, but none of {', '.join(RAVEN_LABELS)}. Give "
                "the column "
                "with the labels: --set columns=label=COLUMN"
            )
        optional = {"selection": "Selection", "recording": "Begin File"}
        columns = {**{field: name for field, name in optional.items() if heading_of(name, header)}, **columns}
        of_file = None if "recording" in columns else reading.of_file(file)
        if of_file is None and "recording" not in columns:
            continue
        seen: set[tuple[str, str]] = set()
        for where, row in parsing.table_rows(lines, columns):
            name = parsing.recording_name(row.get("recording", ""))
            # If one table has several recordings, selections of each are numbered from 1.
            selection = name, row.get("selection") or where
            if selection in seen:
                continue
            seen.add(selection)
            draft = of_file if "recording" not in columns else reading.drafts.get(name)
            if draft is None:
                draft = reading.drafts[name] = DraftRecording(name, duration=reading.durations.get(name))
            reading.row(draft, row, where)
    return reading.annotations(path, "raven")


def read_maestro_soft(path: Path, options: ReadOptions) -> tuple[Annotation, ...]:
    """Read a folder or a table.

    For a file without a duration, the last labelled second is the end: every class has all seconds. Overlapping parts
    of a recording, as in DCASE's training data, are read once.
    """
    reading = LabelReading(options, parsing.read_durations(options))
    drafts, problems = reading.drafts, reading.problems
    for file in parsing.files_in(path, (".txt", ".tsv", ".csv"), follow_links=options.follow_links):
        lines = read_lines(file, options.encoding)
        rows: list[tuple[DraftRecording, dict[str, str], str]] = []
        if parsing.has_header(lines[0], 1):
            for where, row in parsing.table_rows(lines, {**STRONG_COLUMNS, "confidence": "confidence"}):
                name = parsing.recording_name(row["recording"])
                segment = _SEGMENT.fullmatch(name)
                if segment:
                    whole, start, end = segment["recording"], int(segment["start"]) / 100, int(segment["end"]) / 100
                    if start >= end:
                        problems.add(where, f"{name!r} begins at {start:g} s and ends at {end:g} s")
                        continue
                    new = DraftRecording(whole, duration=end - start, where=where, start=start, group=whole)
                else:
                    new = DraftRecording(name, duration=reading.durations.get(name), where=where)
                drafts.setdefault(name, new)
                rows.append((drafts[name], row, where))
        elif (draft := reading.of_file(file)) is not None:
            for line in lines:
                if len(line.fields) == len(_SOFT):
                    rows.append((draft, dict(zip(_SOFT, line.fields, strict=True)), line.where))
                else:
                    what = f"has {len(line.fields)} fields; expected: {', '.join(_SOFT)}"
                    problems.add(line.where, what)
        for draft, row, where in rows:
            if row["label"] and not row["confidence"]:
                problems.add(where, "has no confidence", draft.recording)
            else:
                reading.row(draft, row, where)
    ends: dict[str, float] = {}
    for key, draft in sorted(drafts.items(), key=lambda item: (item[1].recording, item[1].start)):
        first: dict[tuple[str, float], tuple[float | None, str]] = {}
        for event, where in draft.events:
            confidence, before = first.setdefault((event.label, event.onset), (event.confidence, where))
            if confidence != event.confidence:
                called = f"{event.label!r} at {event.onset:g} s of {key!r}"
                problems.add(where, f"{called} is {event.confidence:g}, but {confidence:g} in {before}")
        # An event that hardly anybody heard is absent; it still counts for the duration of the recording.
        if draft.duration is None:
            draft.duration = max((event.offset for event, _ in draft.events), default=None)
        draft.events = [(e, where) for e, where in draft.events if (e.confidence or 0.0) >= LEAST_CONFIDENCE]
        # Of overlapping parts of recordings, the first.
        if draft.group and draft.start < ends.get(draft.recording, 0.0) - 1e-6:
            del drafts[key]
        elif draft.group:
            ends[draft.recording] = draft.start + (draft.duration or 0.0)
    return reading.annotations(path, "maestro-soft", resolution=RESOLUTION, joined=True)
