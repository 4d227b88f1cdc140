"""Recordings that are parts of files, by strong labels: who has said what is heard in a file, and from when to when.

Tables are read as AudioSet's strong labels are (``segment_id, start_time_seconds, end_time_seconds, label``), as the
release of arXiv 2310.08753 has them (``filename, event_label, onset, offset``), or with the columns ``file, label,
start, stop``; with tabs or commas.
"""

from __future__ import annotations

import csv
import io
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import soundfile

from audio_compositionality.support.text import first_line, shown

from .reading import SHORTEST_RECORDING, Candidate, ReadRecordings
from .sound_files import SoundError, check_folder, printable, read_header, read_samples, sound_files

_COLUMNS = (
    ("file", "label", "start", "stop"),
    ("segment_id", "label", "start_time_seconds", "end_time_seconds"),
    ("filename", "event_label", "onset", "offset"),
)
"""Names of file, label, start and stop in each kind of table."""

_NAMES = ("class_labels.tsv", "mid_to_display_name.tsv", "class_labels_indices.csv")
"""Tables beside the strong labels that say what an id such as ``/m/09x0r`` is called."""

_APART = 0.1
"""Seconds in which another label may be heard in an event."""

_LARGEST_TABLE = 256 * 2**20


@dataclass(frozen=True)
class StrongLabel:
    """An event that somebody heard in a file.

    Attributes:
        file: as the table names it.
        label: what is heard.
        start, stop: seconds.
    """

    file: str
    label: str
    start: float
    stop: float


def strong_recordings(
    folder: str | Path, table: str | Path, *, skip_invalid: bool = False, progress: bool = True
) -> ReadRecordings:
    """The events of a table of strong labels as recordings, each of its own label.

    Only what is heard alone is taken: an event in which another label is heard as well is left out. Events of one file
    are of one group. A file of the table that is not in the folder is left out, as those of videos that are no longer
    there always are; `ReadRecordings.skipped` lists it.

    Args:
        folder: with sound files, at any depth, called as in the table, with or without ending; of AudioSet's segments
            (``<id of the video>_<milliseconds>``) also by the video alone, with or without a ``Y`` before it.
        table: of strong labels.
        skip_invalid: leave out what cannot be used.
        progress: show progress bars.

    Raises:
        SoundError: it is no table of strong labels, or none of its files is there.
    """
    folder, table = Path(folder), Path(table)
    check_folder(folder)
    of_file: dict[str, list[StrongLabel]] = defaultdict(list)
    for event in read_strong_labels(table):
        of_file[event.file].append(event)
    paths: dict[str, Path] = {}
    for path in sound_files(folder):
        for name in (path.name, path.stem, path.relative_to(folder).as_posix()):
            paths.setdefault(name, path)
    candidates, missing = [], []
    for file, events in of_file.items():
        names = [name for name in _names_of(file) if name in paths]
        if names:
            candidates += [_candidate(folder, paths[names[0]], event) for event in _alone(events)]
        else:
            missing.append(file)
    if not candidates:
        raise SoundError(
            f"{printable(str(folder))!r} holds none of the {len(of_file):,} files of {printable(table.name)} in which "
            f"a label is heard alone; they are called {shown([printable(name) for name in missing])}"
        )
    return ReadRecordings(
        printable(f"{folder} ({table.name})"),
        candidates,
        left_out={printable(file): "is not in the folder" for file in missing},
        skip_invalid=skip_invalid,
        progress=progress,
    )


def _names_of(file: str) -> list[str]:
    """What a file of a table may be called."""
    base = file.replace("\\", "/").rpartition("/")[2]
    video, _, start = base.rpartition("_")
    names = [file, base, Path(base).stem, f"Y{base}"]
    # The segments of AudioSet are named by the millisecond at which they start in their video.
    return [*names, video, f"Y{video}"] if start.isdigit() else names


def _alone(events: Sequence[StrongLabel]) -> list[StrongLabel]:
    """The events of a file in which no other label is heard for longer than `_APART`, those of one label as one."""
    merged: list[StrongLabel] = []
    for event in sorted(events, key=lambda event: (event.label, event.start)):
        last = merged[-1] if merged else None
        if last is not None and last.label == event.label and event.start <= last.stop:
            merged[-1] = StrongLabel(event.file, event.label, last.start, max(last.stop, event.stop))
        else:
            merged.append(event)
    return [
        event
        for event in merged
        if event.stop - event.start >= SHORTEST_RECORDING
        and not any(
            min(event.stop, other.stop) - max(event.start, other.start) > _APART
            for other in merged
            if other.label != event.label
        )
    ]


def _candidate(folder: Path, path: Path, event: StrongLabel) -> Candidate:
    name = printable(path.relative_to(folder).as_posix())
    id = f"{name}@{event.start:.3f}-{event.stop:.3f}"
    return Candidate(id, printable(event.label), None, name, "", partial(_part, path, event.start, event.stop))


def _part(path: Path, start: float, stop: float) -> io.BytesIO:
    """A part of a file, as a file of its own."""
    header = read_header(path)
    first, last = round(start * header.rate), min(round(stop * header.rate), header.frames)
    if last <= first:
        raise SoundError(f"ends at {header.frames / header.rate:.2f} s, before the event at {start:.2f} s")
    stream = io.BytesIO()
    samples = read_samples(path, last - first, first)
    soundfile.write(stream, samples, header.rate, format="WAV", subtype="FLOAT")
    return stream


def read_strong_labels(table: str | Path) -> list[StrongLabel]:
    """The events of a table; ids of labels are named by a table beside it, where there is one.

    Raises:
        SoundError: it cannot be read, or a row has no file, no label, or no times with start < stop.
    """
    table = Path(table)
    rows = _rows(table)
    names = next((columns for columns in _COLUMNS if rows and set(columns) <= set(rows[0])), None)
    if names is None:
        expected = "; or ".join(", ".join(columns) for columns in _COLUMNS)
        raise SoundError(f"{printable(table.name)} is no table of strong labels: its columns have to be {expected}")
    titles = _titles(table.parent)
    events = []
    for line, row in enumerate(rows, 2):
        file, label, *times = (str(row[name] or "").strip() for name in names)
        try:
            start, stop = map(float, times)
        except ValueError:
            start, stop = 0.0, 0.0
        if not file or not label or not 0 <= start < stop:
            raise SoundError(
                f"{printable(table.name)}: row {line} is {printable(str(row))}; it has a file, a label, and start < "
                "stop in seconds"
            )
        events.append(StrongLabel(file, titles.get(label, label), start, stop))
    return events


def _titles(folder: Path) -> Mapping[str, str]:
    """What ids of labels are called."""
    for name in _NAMES:
        if (folder / name).is_file():
            lines = _lines(folder / name)
            # Id and name are the last two columns, in this order.
            return {fields[-2].strip(): fields[-1].strip() for fields in lines if len(fields) > 1}
    return {}


def _rows(table: Path) -> list[dict[str, str]]:
    lines = _lines(table)
    header = [field.strip() for field in lines[0]] if lines else []
    return [dict(zip(header, [*fields, *[""] * len(header)], strict=False)) for fields in lines[1:] if any(fields)]


def _lines(table: Path) -> list[list[str]]:
    try:
        if table.stat().st_size > _LARGEST_TABLE:
            raise SoundError(f"{printable(table.name)} has more than {_LARGEST_TABLE // 2**20} MiB")
        text = table.read_text("utf-8-sig")
        first = text.partition("\n")[0]
        return list(csv.reader(io.StringIO(text, newline=""), delimiter="\t" if "\t" in first else ","))
    except (OSError, ValueError, csv.Error) as error:
        raise SoundError(f"{printable(str(table))} cannot be read as a table: {first_line(error)}") from error
