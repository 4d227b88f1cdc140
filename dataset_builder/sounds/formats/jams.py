"""JAMS: a JSON file a recording, with the namespaces ``scaper``, ``segment_open`` and ``tag_open``."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from audio_compositionality.support.text import first_line

from ..annotations import Annotation, AnnotationError, LabelledEvent
from . import parsing
from .parsing import DraftRecording, LabelReading, Problems, ReadOptions

NAMESPACES = ("scaper", "segment_open", "tag_open")
"""The namespaces that are read, the first that a file has."""


def read_jams(path: Path, options: ReadOptions) -> tuple[Annotation, ...]:
    """Read a file or a folder; backgrounds of scaper are left out, and each of its events is a source."""
    reading = LabelReading(options, parsing.read_durations(options))
    for file in parsing.files_in(path, (".jams",)):
        draft = reading.of_file(file)
        if draft is None:
            continue
        try:
            _read_file(draft, file, reading.problems)
        except AnnotationError as error:
            reading.problems.add(file.name, str(error), draft.recording)
            del reading.drafts[draft.recording]
        if draft.duration is None:
            draft.duration = options.sounds.get(draft.recording)
    return reading.annotations(path, "jams")


def _read_file(draft: DraftRecording, file: Path, problems: Problems) -> None:
    content = parsing.parsed_json(parsing.read_text(file), "the file")
    try:
        seconds = content.get("file_metadata", {}).get("duration")
        annotations = [entry for entry in content["annotations"] if entry["namespace"] in NAMESPACES]
    except (KeyError, TypeError, AttributeError) as error:
        raise AnnotationError(f"is no JAMS: {first_line(error)}") from error
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
    for number, observation in enumerate(_observations(of_namespace[0].get("data")), 1):
        where = f"{file.name}: {namespace} {number}"
        try:
            event = _event(observation, f"{number}" if namespace == "scaper" else None)
            draft.events += [(event, where)] if event else []
        except (KeyError, TypeError, AttributeError):
            problems.add(where, "is no observation with time, duration and value", draft.recording)
        except AnnotationError as error:
            problems.add(where, str(error), draft.recording)


def _observations(data: Any) -> list[Any]:
    """Observations as a list, or as JAMS before 0.3 had them, as a list for each field.

    Raises:
        AnnotationError: they are neither.
    """
    if isinstance(data, list):
        return data
    if isinstance(data, dict) and all(isinstance(values, list) for values in data.values()):
        return [dict(zip(data, values, strict=True)) for values in zip(*data.values(), strict=False)]
    raise AnnotationError("has an annotation without a list of observations")


def _event(observation: dict[str, Any], source: str | None) -> LabelledEvent | None:
    value = observation["value"]
    if source is not None:
        if value["role"] == "background":
            return None
        value = value["label"]
    onset, length = (parsing.seconds_of(str(observation[name]), f"the {name}") for name in ("time", "duration"))
    confidence = observation.get("confidence")
    sure = None if confidence is None else parsing.share_of(str(confidence), "the confidence")
    return LabelledEvent(onset, onset + length, parsing.label_text(value), source, sure)
