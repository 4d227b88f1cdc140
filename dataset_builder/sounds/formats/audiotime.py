"""AudioTime: JSON of 10-s clips; only its parts ``ordering`` and ``timestamp`` have onsets and offsets."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from ..annotations import Annotation, AnnotationError, LabelledEvent
from . import parsing
from .parsing import DraftRecording, LabelReading, ReadOptions

CLIP_SECONDS = 10.0

_TIMES = ("onset", "offset")

_WITHOUT_INTERVALS = {"duration": "how long each sound lasts", "frequency": "when each sound begins, or how often"}


def read_audiotime(path: Path, options: ReadOptions) -> tuple[Annotation, ...]:
    """Read a JSON file."""
    parsing.check_is_file(path, "the JSON of a part of AudioTime")
    text = parsing.read_text(path)
    content = parsing.parsed_json(text, path.name)
    if not isinstance(content, dict) or not content:
        raise AnnotationError(f"{path.name} holds no clips; expected is clip -> event -> label -> intervals")
    reading = LabelReading(options, parsing.read_durations(options))
    problems, drafts = reading.problems, reading.drafts
    for clip, entry in content.items():
        line = text.count("\n", 0, max(text.find(json.dumps(clip)), 0)) + 1
        name, where = parsing.recording_name(clip), f"{path.name}:{line}"
        if name in drafts:
            problems.add(where, f"{name!r} stands in the file twice", name)
            continue
        seconds = reading.durations.get(name, CLIP_SECONDS)
        draft = drafts[name] = DraftRecording(name, duration=seconds, where=where)
        events = entry.get("event") if isinstance(entry, dict) else None
        if not isinstance(events, dict):
            problems.add(where, f"{name!r} has no 'event' with labels", name)
            continue
        for label, intervals in events.items():
            _check_kind(intervals, path, where)
            try:
                draft.events += [(_event(label, interval), where) for interval in intervals]
            except AnnotationError as error:
                problems.add(where, str(error), name)
    return reading.annotations(path, "audiotime")


def _check_kind(intervals: Any, path: Path, where: str) -> None:
    """Refuse the parts of AudioTime that have no intervals, by their names.

    Raises:
        AnnotationError: these are no lists of two times.
    """
    if isinstance(intervals, list) and all(isinstance(pair, list) and len(pair) == 2 for pair in intervals):
        return
    part = next((part for part in _WITHOUT_INTERVALS if part in path.stem.lower()), None)
    what = f"the part {part!r} of AudioTime says {_WITHOUT_INTERVALS[part]}" if part else "there are no intervals here"
    raise AnnotationError(f"{where}: {what}, not its onset and offset; only 'ordering' and 'timestamp' do")


def _event(label: str, interval: list[Any]) -> LabelledEvent:
    if not all(isinstance(time, int | float) and not isinstance(time, bool) for time in interval):
        raise AnnotationError(f"{label!r} lasts from {interval[0]!r} to {interval[1]!r}; expected are seconds")
    onset, offset = (parsing.seconds_of(str(interval[place]), f"the {name}") for place, name in enumerate(_TIMES))
    return LabelledEvent(onset, offset, parsing.label_text(label))
