"""MAESTRO Real with soft labels: how many of those who were asked heard a class in a second.

A file a recording without header, ``onset offset label confidence``; or the table of DCASE 2024 with a fifth column
``confidence``, whose names are ``<recording>-<start>-<end>`` in hundredths of a second.
"""

from __future__ import annotations

import re
from pathlib import Path

from .base import (
    LEAST_CONFIDENCE,
    STRONG_COLUMNS,
    Annotation,
    Draft,
    Line,
    Problems,
    ReadOptions,
    add_row,
    annotations_from,
    files_in,
    has_header,
    read_durations,
    read_lines,
    recording_name,
    table_rows,
)
from .maestro import RESOLUTION

_FIELDS = ("onset", "offset", "label", "confidence")
_SEGMENT = re.compile(r"(?P<recording>.+)-(?P<start>\d+)-(?P<end>\d+)")


class _Reader:
    """See `AnnotationReader`."""

    name = "maestro-soft"
    meaning = "MAESTRO Real, soft labels: a folder of files with onset, offset, label, confidence; or DCASE's table"

    def read(self, path: Path, options: ReadOptions) -> tuple[Annotation, ...]:
        """Read a folder or a table.

        Of a file without a duration, the last second that has a label is the end: every class has all seconds. Parts of
        a recording that overlap, as those that DCASE trains with do, are read once.
        """
        problems = Problems(options.left_out)
        durations = read_durations(options)
        drafts: dict[str, Draft] = {}
        for file in files_in(path, (".txt", ".tsv", ".csv")):
            lines = read_lines(file)
            if has_header(lines[0], 1):
                _add_table(drafts, lines, durations, problems)
            else:
                _add_file(drafts, file, lines, durations, problems)
        _check_twice(drafts, problems)
        for draft in drafts.values():
            # What hardly anybody heard is not heard; it still told how long the recording is.
            if draft.duration is None:
                draft.duration = max((event.offset for event, _ in draft.events), default=None)
            draft.events = [(e, where) for e, where in draft.events if (e.confidence or 0.0) >= LEAST_CONFIDENCE]
        resolution = RESOLUTION if options.resolution is None else options.resolution
        drafts = _without_overlaps(drafts)
        return annotations_from(drafts, problems, path, resolution=resolution, name=self.name, joined=True)


def _add_file(
    drafts: dict[str, Draft], file: Path, lines: list[Line], durations: dict[str, float], problems: Problems
) -> None:
    name = recording_name(file.stem)
    if name in drafts:
        problems.add(file.name, f"there are two files of {name!r}")
        return
    draft = drafts[name] = Draft(name, duration=durations.get(name), where=file.name)
    for line in lines:
        if len(line.fields) != len(_FIELDS):
            problems.add(line.where, f"has {len(line.fields)} fields; expected are {', '.join(_FIELDS)}")
        else:
            _add(draft, dict(zip(_FIELDS, line.fields, strict=True)), line.where, problems)


def _add_table(drafts: dict[str, Draft], lines: list[Line], durations: dict[str, float], problems: Problems) -> None:
    for where, row in table_rows(lines, {**STRONG_COLUMNS, "confidence": "confidence"}):
        name = recording_name(row["recording"])
        segment = _SEGMENT.fullmatch(name)
        if name not in drafts:
            drafts[name] = Draft(name, duration=durations.get(name), where=where)
            if segment:
                start, end = (int(segment[part]) / 100 for part in ("start", "end"))
                if start >= end:
                    problems.add(where, f"{name!r} begins at {start:g} s and ends at {end:g} s")
                    del drafts[name]
                    continue
                recording = segment["recording"]
                drafts[name] = Draft(recording, duration=end - start, where=where, start=start, group=recording)
        _add(drafts[name], row, where, problems)


def _add(draft: Draft, row: dict[str, str], where: str, problems: Problems) -> None:
    if row["label"] and not row["confidence"]:
        problems.add(where, "has no confidence", draft.recording)
    else:
        add_row(draft, row, where, problems)


def _check_twice(drafts: dict[str, Draft], problems: Problems) -> None:
    """A class that has two confidences in one second."""
    for name, draft in drafts.items():
        first: dict[tuple[str, float], tuple[float | None, str]] = {}
        for event, where in draft.events:
            confidence, before = first.setdefault((event.label, event.onset), (event.confidence, where))
            if confidence != event.confidence:
                problems.add(
                    where,
                    f"{event.label!r} at {event.onset:g} s of {name!r} is {event.confidence:g}, "
                    f"in {before} {confidence:g}",
                )


def _without_overlaps(drafts: dict[str, Draft]) -> dict[str, Draft]:
    """The parts of each recording that do not overlap, from its beginning."""
    kept: dict[str, Draft] = {}
    ends: dict[str, float] = {}
    for key, draft in sorted(drafts.items(), key=lambda item: (item[1].recording, item[1].start)):
        if not draft.group:
            kept[key] = draft
        elif draft.start >= ends.get(draft.recording, 0.0) - 1e-6:
            kept[key] = draft
            ends[draft.recording] = draft.start + (draft.duration or 0.0)
    return kept


READER = _Reader()
