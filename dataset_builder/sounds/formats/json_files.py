"""Formats in JSON.

JAMS has one file per recording; its namespaces ``scaper``, ``segment_open`` and ``tag_open`` are read. AudioTime has 10
s clips in one file; only its parts ``ordering`` and ``timestamp`` have onsets and offsets.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from audio_compositionality.support.text import first_line

from ...tables import TableError, read_text
from ..annotations import Annotation, AnnotationError, LabelledEvent
from . import parsing
from .parsing import DraftRecording, LabelReading, Problems, ReadOptions

NAMESPACES = ("scaper", "segment_open", "tag_open")
"""The namespaces that are read; the first one that a file has is used."""


def read_jams(path: Path, options: ReadOptions) -> tuple[Annotation, ...]:
    """Read a file or a folder; scaper's backgrounds are left out, and each of its events is a source."""
    reading = LabelReading(options, parsing.read_durations(options))
    for file in parsing.files_in(path, (".jams",), follow_links=options.follow_links):
        draft = reading.of_file(file)
        if draft is None:
            continue
        try:
            _read_jams(draft, file, reading.problems)
        except (AnnotationError, TableError) as error:
            reading.problems.add(file.name, str(error), draft.recording)
            del reading.drafts[draft.recording]
        if draft.duration is None:
            draft.duration = options.sounds.get(draft.recording)
    return reading.annotations(path, "jams")


def _read_jams(draft: DraftRecording, file: Path, problems: Problems) -> None:
    content = parsing.parsed_json(read_text(file), "the file")
    try:
        seconds = content.get("file_metadata", {}).get("duration")
        annotations = [entry for entry in content["annotations"] if entry["namespace"] in NAMESPACES]
    except (KeyError, TypeError, AttributeError) as error:
        raise AnnotationError(f"is not JAMS: {first_line(error)}") from error
    if draft.duration is None and isinstance(seconds, int | float):
        draft.duration = parsing.seconds_of(str(seconds), "the duration")
    for namespace in NAMESPACES:
        of_namespace = [entry for entry in annotations if entry["namespace"] == namespace]
        if of_namespace:
            break
    else:
        raise AnnotationError(f"has no annotation of the namespaces {', '.join(NAMESPACES)}")
    if len(of_namespace) > 1:
        raise AnnotationError(f"has {len(of_namespace)} annotations of the namespace {namespace!r}; keep one")
    data = of_namespace[0].get("data")
    if isinstance(data, dict) and all(isinstance(values, list) for values in data.values()):
        # JAMS before 0.3 has a list for each field.
        data = [dict(zip(data, values, strict=True)) for values in zip(*data.values(), strict=False)]
    if not isinstance(data, list):
        raise AnnotationError("has an annotation without a list of observations")
    for number, observation in enumerate(data, 1):
        where = f"{file.name}: {namespace} {number}"
        try:
            event = _observed(observation, f"{number}" if namespace == "scaper" else None)
            draft.events += [(event, where)] if event else []
        except (KeyError, TypeError, AttributeError):
            problems.add(where, "is not an observation with time, duration and value", draft.recording)
        except AnnotationError as error:
            problems.add(where, str(error), draft.recording)


def _observed(observation: dict[str, Any], source: str | None) -> LabelledEvent | None:
    value = observation["value"]
    if source is not None:
        if value["role"] == "background":
            return None
        value = value["label"]
    onset, length = (parsing.seconds_of(str(observation[name]), f"the {name}") for name in ("time", "duration"))
    confidence = observation.get("confidence")
    sure = None if confidence is None else parsing.share_of(str(confidence), "the confidence")
    return LabelledEvent(onset, onset + length, parsing.label_text(value), source, sure)


_CLIP_SECONDS = 10.0

_WITHOUT_INTERVALS = {"duration": "how long each sound lasts", "frequency": "when each sound begins, or how often"}


def read_audiotime(path: Path, options: ReadOptions) -> tuple[Annotation, ...]:
    """Read a JSON file."""
    parsing.check_is_file(path, "the JSON of a part of AudioTime")
    text = read_text(path)
    content = parsing.parsed_json(text, path.name)
    if not isinstance(content, dict) or not content:
        raise AnnotationError(f"{path.name} contains no clips; expected: clip -> event -> label -> intervals")
    reading = LabelReading(options, parsing.read_durations(options))
    problems, drafts = reading.problems, reading.drafts
    for clip, entry in content.items():
        line = text.count("\n", 0, max(text.find(json.dumps(clip)), 0)) + 1
        name, where = parsing.recording_name(clip), f"{path.name}:{line}"
        if name in drafts:
            problems.add(where, f"{name!r} occurs twice in the file", name)
            continue
        seconds = reading.durations.get(name, _CLIP_SECONDS)
        draft = drafts[name] = DraftRecording(name, duration=seconds, where=where)
        events = entry.get("event") if isinstance(entry, dict) else None
        if not isinstance(events, dict):
            problems.add(where, f"{name!r} has no 'event' with labels", name)
            continue
        for label, intervals in events.items():
            if not (isinstance(intervals, list) and all(isinstance(p, list) and len(p) == 2 for p in intervals)):
                # The parts of AudioTime without intervals are refused by name.
                part = next((part for part in _WITHOUT_INTERVALS if part in path.stem.lower()), None)
                said = f"the part {part!r} of AudioTime says {_WITHOUT_INTERVALS[part]}" if part else ""
                raise AnnotationError(
                    f"{where}: {said or 'there are no intervals here'}, not its onset and offset; only 'ordering' and "
                    "'timestamp' do"
                )
            try:
                for times in intervals:
                    if not all(isinstance(time, int | float) and not isinstance(time, bool) for time in times):
                        raise AnnotationError(f"{label!r} lasts from {times[0]!r} to {times[1]!r}; expected: seconds")
                    onset = parsing.seconds_of(str(times[0]), "the onset")
                    offset = parsing.seconds_of(str(times[1]), "the offset")
                    draft.events.append((LabelledEvent(onset, offset, parsing.label_text(label)), where))
            except AnnotationError as error:
                problems.add(where, str(error), name)
    return reading.annotations(path, "audiotime")
