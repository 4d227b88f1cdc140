"""Reading of label files in any format: tables, durations, and a list of all problems."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path, PurePosixPath
from typing import Any

from audio_compositionality.support.text import first_line, parse_json, plain, shortened, shown

from ...tables import Line, first_heading, heading_of, number_of, read_lines, time_of
from ..annotations import ROUNDING, Annotation, AnnotationError, LabelledEvent, event_order, joined_events
from ..entries import label_text as label_text
from ..files import walked
from ..recordings import AUDIO_SUFFIXES, FOREIGN_SUFFIXES
from ..splits import alike

_MOST_SHOWN = 20
"""Most problems that an error lists."""


@dataclass(frozen=True)
class ReadOptions:
    """Facts that label files may not contain.

    Attributes:
        durations: seconds of each recording by name, or a table with two columns; if None, durations from the format.
        resolution: seconds; if None, the format's resolution.
        columns: for the formats ``table`` and ``raven``, the heading of each field: ``recording, onset, offset,
            label``, and optionally ``length`` (instead of offset), ``duration``, ``source``, ``confidence``.
        names: for AudioSet, a table of ids and names, or its ontology as JSON.
        sounds: seconds of the sound of each recording by name, used if nothing else gives its duration.
        encoding: encoding of tables; by default UTF-8 or UTF-16.
        left_out: receives the recordings with wrong labels, by name with the problem; None: an error.
        follow_links: whether links that lead out of a folder of labels are followed; otherwise they are an error.
    """

    durations: Mapping[str, float] | str | Path | None = None
    resolution: float | None = None
    columns: Mapping[str, str] = field(default_factory=dict)
    names: str | Path | None = None
    sounds: Mapping[str, float] = field(default_factory=dict)
    encoding: str | None = None
    left_out: dict[str, str] | None = None
    follow_links: bool = False


class Problems:
    """The problems of files, reported together.

    Attributes:
        left_out: recordings that are left out because of their problems; None if these are problems like any other.
    """

    def __init__(self, left_out: dict[str, str] | None = None) -> None:
        """Begin without problems; for `left_out` see above."""
        self.left_out = left_out
        self._texts: list[str] = []
        self._are_of_recordings = True

    def __bool__(self) -> bool:
        """Return whether there are any."""
        return bool(self._texts)

    def add(self, where: str, text: str, recording: str | None = None) -> None:
        """Add a problem at a place, e.g. ``labels.tsv:12``, and its recording if it concerns only one."""
        problem = f"{plain(where)}: {plain(text)}"
        if recording is not None and self.left_out is not None:
            self.left_out.setdefault(recording, problem)
            return
        self._texts.append(problem)
        self._are_of_recordings &= recording is not None

    def tell(self, source: Path) -> None:
        """Raise one error about all problems, if there are any.

        Raises:
            AnnotationError: there are problems.
        """
        if not self._texts:
            return
        hint = "--skip-invalid leaves out such recordings" if self._are_of_recordings else ""
        if len(self._texts) == 1:
            raise AnnotationError("; ".join(filter(None, (self._texts[0], hint))))
        rest = len(self._texts) - _MOST_SHOWN
        lines = [*self._texts[:_MOST_SHOWN], *([f"and {rest:,} more"] if rest > 0 else [])]
        head = f"{plain(str(source))}: {len(self._texts):,} problems{f' ({hint})' if hint else ''}:"
        raise AnnotationError("\n  ".join((head, *lines)))


@dataclass
class DraftRecording:
    """A recording while its file is read.

    Attributes:
        events: events with the place of each, for messages.
        empty: places of rows that state silence.
        duration: seconds; None until it is known.
        where: its first place in the files.
        start, group: as in `Annotation`.
    """

    recording: str
    events: list[tuple[LabelledEvent, str]] = field(default_factory=list)
    empty: list[str] = field(default_factory=list)
    duration: float | None = None
    where: str = ""
    start: float = 0.0
    group: str = ""


def recording_name(name: str) -> str:
    """Return the name of a recording: its file's name without folder, and without the suffix of a sound file."""
    base = PurePosixPath(name.strip().replace("\\", "/")).name
    suffix = PurePosixPath(base).suffix
    return base[: -len(suffix)] if suffix.lower() in (*AUDIO_SUFFIXES, *FOREIGN_SUFFIXES) else base


_VIEW = re.compile(r"\.(Table\.\d+|selections|BirdNET)\b.*", re.IGNORECASE)
"""The end that Raven and BirdNET append to the name of a recording: ``rec.Table.1.selections``."""


def labelled_recording(file: Path) -> str:
    """Return the recording described by a label file, from the file's name without suffix and Raven's additions."""
    return recording_name(_VIEW.sub("", file.stem))


def seconds_of(text: str, what: str) -> float:
    """Return a time in a table: seconds, or ``hh:mm:ss``.

    Raises:
        AnnotationError: it is not a finite number.
    """
    return _finite(time_of(text), text, what, "seconds, e.g. 1.25, or hh:mm:ss")


def share_of(text: str, what: str) -> float:
    """Return a share in a table; its range, 0 to 1, is checked elsewhere.

    Raises:
        AnnotationError: it is not a finite number.
    """
    return _finite(number_of(text), text, what, "numbers from 0 to 1")


def _finite(value: float, text: str, what: str, expected: str) -> float:
    if not math.isfinite(value):
        raise AnnotationError(f"{what} is {shortened(text.strip(), 40)!r}; expected: {expected}")
    return value


def left_out_text(left_out: Mapping[str, str]) -> str:
    """Return the first recordings that are left out, with reasons, and the number of the others."""
    return shown([f"{name} ({reason})" for name, reason in left_out.items()])


def durations_table(durations: Mapping[str, float]) -> dict[str, float]:
    """Return durations by the names of recordings used here.

    Raises:
        AnnotationError: a duration is not a positive number.
    """
    table = {recording_name(name): float(seconds) for name, seconds in durations.items()}
    for name, seconds in table.items():
        if not 0 < seconds < math.inf:
            raise AnnotationError(f"the duration of {name!r} is {seconds}; expected: seconds, more than 0")
    return table


def check_is_file(path: Path, what: str) -> None:
    """Raise an error if a path is not a file."""
    if not path.is_file():
        raise AnnotationError(f"{str(path)!r} is not a file; expected: {what}")


def files_in(path: Path, suffixes: Sequence[str], *, follow_links: bool) -> list[Path]:
    """Return a file, or the files in a folder and below it that end in one of `suffixes`, by path.

    Raises:
        AnnotationError: the path does not exist, or the folder has no such file; or a file is a link out of the folder,
            and `follow_links` is false.
    """
    if path.is_file():
        return [path]
    if not path.is_dir():
        raise AnnotationError(f"{plain(str(path))!r} is neither a file nor a folder")
    files = sorted(file for file in walked(path) if file.suffix.lower() in suffixes and file.is_file())
    if not files:
        raise AnnotationError(f"{plain(str(path))!r} contains no file that ends in {' or '.join(suffixes)}")
    home = path.resolve()
    out = next((file for file in files if not file.resolve().is_relative_to(home)), None)
    if out is not None and not follow_links:
        raise AnnotationError(
            f"{plain(str(out))!r} is a link out of the folder; use --set follow_links=true to follow it"
        )
    return files


STRONG_COLUMNS: Mapping[str, str] = {
    "recording": "filename",
    "onset": "onset",
    "offset": "offset",
    "label": "event_label",
}
"""DESED's headings, adopted by MAESTRO and others."""

PLAIN_COLUMNS: Mapping[str, tuple[str, ...]] = {
    "recording": ("file", "file_name", "filename", "path", "audio", "recording", "clip"),
    "onset": ("start", "onset", "begin", "start_time", "begin_time", "start (s)"),
    "offset": ("stop", "offset", "end", "stop_time", "end_time", "end (s)"),
    "label": ("label", "event_label", "class", "species", "common name"),
}
"""Usual headings of other tables, in order of preference; headings with (s) are BirdNET's."""

RAVEN_COLUMNS: Mapping[str, str] = {"onset": "Begin Time (s)", "offset": "End Time (s)"}
"""Headings of Raven's selection tables; the label is in the first of `RAVEN_LABELS`."""

RAVEN_LABELS = ("Annotation", "Label", "Species", "Common Name", "Species Code", "Call Type", "Tag", "Type", "Class")


def usual_columns(header: Sequence[str]) -> dict[str, str]:
    """Return the heading of each field of `PLAIN_COLUMNS` that a header has."""
    found = {field: first_heading(headings, header) for field, headings in PLAIN_COLUMNS.items()}
    return {field: heading for field, heading in found.items() if heading is not None}


def parsed_json(text: str, name: str) -> Any:
    """Return the value of a JSON text.

    Raises:
        AnnotationError: the text is not JSON.
    """
    try:
        return parse_json(text)
    # Thousands of nested brackets raise a RecursionError.
    except (ValueError, RecursionError) as error:
        raise AnnotationError(f"{name} is not JSON: {first_line(error)}") from error


def table_rows(lines: Sequence[Line], columns: Mapping[str, str]) -> Iterator[tuple[str, dict[str, str]]]:
    """Yield the rows below a header: place, and text by field. Missing fields at the end are empty.

    Args:
        lines: lines of the table.
        columns: heading of each field.

    Raises:
        AnnotationError: the header lacks a column, or a row has more fields than columns.
    """
    header = lines[0].fields
    found = {field: heading_of(heading, header) for field, heading in columns.items()}
    missing = [columns[field] for field, heading in found.items() if heading is None]
    if missing:
        raise AnnotationError(
            f"{lines[0].where}: the columns are {', '.join(header)}; there is no {' and no '.join(map(repr, missing))}"
        )
    for line in lines[1:]:
        if any(line.fields[len(header) :]):
            raise AnnotationError(
                f"{line.where} has {len(line.fields)} fields, but the first line names {len(header)} columns. Put "
                "quotation marks around fields that contain the delimiter"
            )
        fields = dict(zip(header, line.fields, strict=False))
        yield line.where, {name: fields.get(heading or "", "") for name, heading in found.items()}


def read_durations(options: ReadOptions, *beside: Path) -> dict[str, float]:
    """Return durations by recording, from the options, or else the first existing table of `beside`, or else none.

    Raises:
        AnnotationError: the table does not have names and seconds, or contradicts itself.
    """
    if isinstance(options.durations, Mapping):
        return durations_table(options.durations)
    paths = [Path(options.durations)] if options.durations is not None else [path for path in beside if path.is_file()]
    if not paths:
        return {}
    if not paths[0].is_file():
        raise AnnotationError(f"the table of durations {str(paths[0])!r} does not exist")
    durations, problems = dict[str, float](), Problems()
    for number, line in enumerate(read_lines(paths[0], options.encoding)):
        if number == 0 and has_header(line, len(line.fields) - 1):
            continue
        try:
            if len(line.fields) < 2:
                raise AnnotationError("expected: a name and seconds")
            name, seconds = recording_name(line.fields[0]), seconds_of(line.fields[1], "the duration")
            if seconds <= 0:
                raise AnnotationError(f"the duration of {name!r} is {seconds:g} s; it must be more than 0")
            if abs(durations.setdefault(name, seconds) - seconds) > 1e-3:
                raise AnnotationError(f"{name!r} lasts {seconds:g} s, but {durations[name]:g} s in an earlier line")
        except AnnotationError as error:
            problems.add(line.where, str(error))
    problems.tell(paths[0])
    return durations


def durations_beside(path: Path, options: ReadOptions) -> dict[str, float]:
    """Return the result of `durations_of`, with the table ``NAME_durations`` next to a table ``NAME``."""
    beside = [
        path.with_name(f"{path.stem}{end}{suffix}")
        for end in ("_durations", "_duration")
        for suffix in (path.suffix, ".tsv", ".csv")
    ]
    return durations_of(options, *beside)


def is_durations_table(file: Path, options: ReadOptions) -> bool:
    """Return whether a file is the table of durations in the options."""
    return isinstance(options.durations, str | Path) and file.resolve() == Path(options.durations).resolve()


def durations_of(options: ReadOptions, *beside: Path) -> dict[str, float]:
    """Return the result of `read_durations`; for a recording in no table, the duration of its sound.

    Raises:
        AnnotationError: see `read_durations`.
    """
    return {**durations_table(options.sounds), **read_durations(options, *beside)}


def has_header(line: Line, place: int) -> bool:
    """Return whether a first line is a header: its field at `place` is not a number."""
    return place < len(line.fields) and line.fields[place].lower() != "nan" and math.isnan(time_of(line.fields[place]))


class LabelReading:
    """The recordings of label files while they are read, and all their problems.

    Attributes:
        options: the user's options.
        durations: durations of recordings, if known.
        problems: problems so far.
        drafts: the recordings, by their names in the files.
    """

    def __init__(self, options: ReadOptions, durations: Mapping[str, float] | None = None) -> None:
        """Read nothing yet; durations are `durations_of` the options unless given."""
        self.options = options
        self.durations = durations_of(options) if durations is None else durations
        self.problems = Problems(options.left_out)
        self.drafts: dict[str, DraftRecording] = {}

    def of_file(self, file: Path) -> DraftRecording | None:
        """Return the recording of a separate label file; None if there is a problem: a second file of this name."""
        name = labelled_recording(file)
        if name in self.drafts:
            self.problems.add(file.name, f"there are two files of {name!r}", name)
            return None
        draft = self.drafts[name] = DraftRecording(name, duration=self.durations.get(name), where=file.name)
        return draft

    def table(self, file: Path, columns: Mapping[str, str]) -> None:
        """Add the recordings of a table with one row per event.

        Args:
            file: the table.
            columns: heading of each field; without a recording column, the file name gives the recording.

        Raises:
            AnnotationError: it is not a table with these columns.
        """
        of_file: dict[str, DraftRecording] = {}
        folders: dict[str, str] = {}
        for where, row in table_rows(read_lines(file, self.options.encoding), columns):
            named = row.get("recording", labelled_recording(file))
            name = recording_name(named)
            if not name:
                self.problems.add(where, "has no recording", where)
                continue
            place = named.replace("\\", "/").rpartition("/")[0]
            if place and folders.setdefault(name, place) != place:
                what = f"{name!r} is in the folder {place!r} here and in {folders[name]!r} before; give it another name"
                self.problems.add(where, what, name)
            draft = of_file.setdefault(name, DraftRecording(name, duration=self.durations.get(name)))
            self.row(draft, row, where)
        for name in sorted(self.drafts.keys() & of_file.keys()):
            self.problems.add(of_file[name].where, f"{name!r} is also in {self.drafts[name].where}")
        self.drafts |= of_file

    def row(self, draft: DraftRecording, row: Mapping[str, str], where: str) -> None:
        """Add the event of a row to its recording, or its problem to the problems.

        A row with neither label nor times says that the recording is silent.
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
                        f"{draft.recording!r} lasts {duration:g} s, but {draft.duration:g} s in an earlier line"
                    )
                draft.duration = duration
        except AnnotationError as error:
            self.problems.add(where, str(error), draft.recording)

    def annotations(
        self, source: Path, name: str, *, resolution: float = 0.0, joined: bool = False
    ) -> tuple[Annotation, ...]:
        """Return the recordings, once they are complete and consistent.

        Labels may end `ROUNDING` s, or their resolution, after the recording; they are cut there. A recording without
        events and with unknown duration is left out.

        Args:
            source: file or folder that was read, for messages.
            name: name of the format.
            resolution: seconds, unless the options give it.
            joined: whether to join events of a label that touch, as in a table with one row per second.

        Raises:
            AnnotationError: lists all problems, e.g. a recording has no duration, is declared silent but has events, or
                labels differ only in upper and lower case.
        """
        if self.options.resolution is not None:
            resolution = self.options.resolution
        problems = self.problems
        missing = [key for key, draft in self.drafts.items() if draft.duration is None and draft.events]
        for key in missing if problems.left_out is not None else ():
            why = "no table gives its duration, and its sound is missing or empty"
            problems.add(self.drafts[key].where or str(source), why, self.drafts[key].recording)
        if missing and problems.left_out is None:
            what = f"the durations of {len(missing):,} recordings are missing ({shown(missing)})"
            if self.options.sounds:
                count = f"{len(missing):,} of {len(self.drafts):,} recordings"
                what = f"{count} have no file in the folder ({shown(missing)})"
            why = "no table gives their duration, and their sound is missing or empty"
            problems.add(str(source), f"{what}: {why}", missing[0])
        annotations = []
        for key, draft in sorted(self.drafts.items()):
            if draft.empty and draft.events:
                _, where = draft.events[0]
                problems.add(draft.empty[0], f"{key!r} has no label here, but one in {where}", draft.recording)
            duration = draft.duration
            if duration is None:
                continue
            events = []
            for event, where in draft.events:
                if event.offset > duration + max(ROUNDING, resolution) + 1e-6:
                    end = f"after the end of the recording at {duration:g} s"
                    problems.add(where, f"{event.label!r} lasts until {event.offset:g} s, {end}", draft.recording)
                elif event.onset < duration:
                    events.append(replace(event, offset=min(event.offset, duration)))
            events = joined_events(events) if joined else sorted(events, key=event_order)
            try:
                annotations.append(
                    Annotation(draft.recording, duration, tuple(events), resolution, name, draft.start, draft.group)
                )
            except AnnotationError as error:
                problems.add(draft.where, str(error), draft.recording)
        left_out = problems.left_out or {}
        places: dict[str, str] = {}
        for draft in self.drafts.values():
            if draft.recording not in left_out:
                for event, where in draft.events:
                    places.setdefault(event.label, where)
        pair = alike(places, str.casefold)
        if pair is not None:
            what = f"the labels {pair[0]!r} and {pair[1]!r} differ only in upper and lower case; spell both alike"
            problems.add(places[pair[1]], what)
        annotations = [annotation for annotation in annotations if annotation.recording not in left_out]
        if not annotations and not problems and not left_out:
            problems.add(str(source), "has no label")
        problems.tell(source)
        return tuple(annotations)
