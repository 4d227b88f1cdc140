"""MAESTRO Real with soft labels: the share of annotators who heard a class in a second.

A file a recording without header, ``onset offset label confidence``; or the table of DCASE 2024 with a fifth column
``confidence``, whose names are ``<recording>-<start>-<end>`` in hundredths of a second.
"""

from __future__ import annotations

import re
from pathlib import Path

from ..annotations import LEAST_CONFIDENCE, Annotation
from .maestro import RESOLUTION
from .parsing import (
    STRONG_COLUMNS,
    DraftRecording,
    LabelReading,
    ReadOptions,
    TableLine,
    files_in,
    has_header,
    read_durations,
    read_lines,
    recording_name,
    table_rows,
)

_FIELDS = ("onset", "offset", "label", "confidence")
_SEGMENT = re.compile(r"(?P<recording>.+)-(?P<start>\d+)-(?P<end>\d+)")


class _Reader:
    """See `AnnotationReader`."""

    name = "maestro-soft"
    meaning = "MAESTRO Real, soft labels: a folder of files with onset, offset, label, confidence; or DCASE's table"

    def read(self, path: Path, options: ReadOptions) -> tuple[Annotation, ...]:
        """Read a folder or a table.

        Of a file without a duration, the last labelled second is the end: every class has all seconds. Overlapping
        parts of a recording, as in DCASE's training data, are read once.
        """
        reading = LabelReading(options, read_durations(options))
        for file in files_in(path, (".txt", ".tsv", ".csv")):
            lines = read_lines(file)
            if has_header(lines[0], 1):
                _add_table(reading, lines)
            else:
                _add_file(reading, file, lines)
        _check_twice(reading)
        for draft in reading.drafts.values():
            # An event that hardly anybody heard is absent; it still counts for the duration of the recording.
            if draft.duration is None:
                draft.duration = max((event.offset for event, _ in draft.events), default=None)
            draft.events = [(e, where) for e, where in draft.events if (e.confidence or 0.0) >= LEAST_CONFIDENCE]
        reading.drafts = _without_overlaps(reading.drafts)
        return reading.annotations(path, self.name, resolution=RESOLUTION, joined=True)


def _add_file(reading: LabelReading, file: Path, lines: list[TableLine]) -> None:
    draft = reading.of_file(file)
    if draft is None:
        return
    for line in lines:
        if len(line.fields) != len(_FIELDS):
            what = f"has {len(line.fields)} fields; expected are {', '.join(_FIELDS)}"
            reading.problems.add(line.where, what)
        else:
            _add(reading, draft, dict(zip(_FIELDS, line.fields, strict=True)), line.where)


def _add_table(reading: LabelReading, lines: list[TableLine]) -> None:
    drafts = reading.drafts
    for where, row in table_rows(lines, {**STRONG_COLUMNS, "confidence": "confidence"}):
        name = recording_name(row["recording"])
        segment = _SEGMENT.fullmatch(name)
        if name not in drafts:
            drafts[name] = DraftRecording(name, duration=reading.durations.get(name), where=where)
            if segment:
                start, end = (int(segment[part]) / 100 for part in ("start", "end"))
                if start >= end:
                    reading.problems.add(where, f"{name!r} begins at {start:g} s and ends at {end:g} s")
                    del drafts[name]
                    continue
                recording = segment["recording"]
                drafts[name] = DraftRecording(
                    recording, duration=end - start, where=where, start=start, group=recording
                )
        _add(reading, drafts[name], row, where)


def _add(reading: LabelReading, draft: DraftRecording, row: dict[str, str], where: str) -> None:
    if row["label"] and not row["confidence"]:
        reading.problems.add(where, "has no confidence", draft.recording)
    else:
        reading.row(draft, row, where)


def _check_twice(reading: LabelReading) -> None:
    """A class that has two confidences in one second."""
    for name, draft in reading.drafts.items():
        first: dict[tuple[str, float], tuple[float | None, str]] = {}
        for event, where in draft.events:
            confidence, before = first.setdefault((event.label, event.onset), (event.confidence, where))
            if confidence != event.confidence:
                reading.problems.add(
                    where,
                    f"{event.label!r} at {event.onset:g} s of {name!r} is {event.confidence:g}, "
                    f"in {before} {confidence:g}",
                )


def _without_overlaps(drafts: dict[str, DraftRecording]) -> dict[str, DraftRecording]:
    """The parts of each recording that do not overlap, from its beginning."""
    kept: dict[str, DraftRecording] = {}
    ends: dict[str, float] = {}
    for key, draft in sorted(drafts.items(), key=lambda item: (item[1].recording, item[1].start)):
        if not draft.group:
            kept[key] = draft
        elif draft.start >= ends.get(draft.recording, 0.0) - 1e-6:
            kept[key] = draft
            ends[draft.recording] = draft.start + (draft.duration or 0.0)
    return kept


READER = _Reader()
