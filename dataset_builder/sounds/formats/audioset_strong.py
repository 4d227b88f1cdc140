"""AudioSet's strong labels: ``segment_id start_time_seconds end_time_seconds label`` with ids of labels."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from audio_compositionality.support.text import shown

from ..annotations import Annotation, AnnotationError
from .parsing import (
    DraftRecording,
    LabelReading,
    ReadOptions,
    check_is_file,
    has_header,
    label_text,
    parsed_json,
    read_lines,
    read_text,
)

AUDIOSET = "audioset-strong"
"""The name of the format."""

CLIP_SECONDS = 10.0
"""Length of most segments; those at the end of a video are shorter."""

RESOLUTION = 0.1

_FIELDS = ("recording", "onset", "offset", "label")
ONTOLOGY = "ontology.json"
"""AudioSet's name of the file with its hierarchy of labels."""

_NAMES = ("mid_to_display_name.tsv", "class_labels_indices.csv", "class_labels.tsv", ONTOLOGY)


def read_audioset(path: Path, options: ReadOptions) -> tuple[Annotation, ...]:
    """Read a table, with or without header; segments of one video are one group."""
    check_is_file(path, "the table of strong labels")
    lines = read_lines(path)
    lines = lines[1:] if has_header(lines[0], 1) else lines
    names = _names(path, options)
    reading = LabelReading(options)
    unknown: dict[str, str] = {}
    for line in lines:
        if len(line.fields) != len(_FIELDS):
            reading.problems.add(
                line.where, f"has {len(line.fields)} fields; expected are segment, start, end and label"
            )
            continue
        row = dict(zip(_FIELDS, line.fields, strict=True))
        segment, id = row["recording"], row["label"]
        if id not in names and id.startswith(("/m/", "/g/", "/t/")):
            unknown.setdefault(id, line.where)
            continue
        seconds = reading.durations.get(segment, CLIP_SECONDS)
        new = DraftRecording(segment, duration=seconds, group=video_of(segment))
        draft = reading.drafts.setdefault(segment, new)
        reading.row(draft, {**row, "label": names.get(id, id)}, line.where)
    if unknown:
        reading.problems.add(
            next(iter(unknown.values())),
            f"there is no name of {shown(list(unknown))}; give a table of ids and names ({', '.join(_NAMES)})",
        )
    return reading.annotations(path, AUDIOSET, resolution=RESOLUTION)


def video_of(segment: str) -> str:
    """The video of a segment, whose name is that of the video and the millisecond at which it starts."""
    video, _, start = segment.rpartition("_")
    return video if start.isdigit() else segment


def _names(path: Path, options: ReadOptions) -> dict[str, str]:
    """Names of labels by id: of the options, else of a table beside the labels."""
    if options.names is not None:
        table = Path(options.names)
        if not table.is_file():
            raise AnnotationError(f"there is no table of names {str(table)!r}")
        return _names_of(table)
    beside = [path.with_name(name) for name in _NAMES]
    return next((_names_of(table) for table in beside if table.is_file()), {})


def _names_of(table: Path) -> dict[str, str]:
    if table.suffix == ".json":
        return {entry["id"]: label_text(entry["name"]) for entry in _ontology(table)}
    # Id and name are the last two columns, in this order.
    return {line.fields[-2]: label_text(line.fields[-1]) for line in read_lines(table) if len(line.fields) > 1}


def _ontology(path: Path) -> list[dict[str, Any]]:
    entries = parsed_json(read_text(path), path.name)
    if isinstance(entries, list) and entries and all(map(_is_entry, entries)):
        return entries
    raise AnnotationError(
        f"{path.name} is not an ontology in AudioSet's form: a list of entries with the texts id and name, and "
        "child_ids"
    )


def _is_entry(entry: Any) -> bool:
    if not isinstance(entry, dict) or not isinstance(entry.get("child_ids"), list):
        return False
    return all(isinstance(text, str) for text in (entry.get("id"), entry.get("name"), *entry["child_ids"]))


def related_labels(ontology: str | Path) -> Mapping[str, frozenset[str]]:
    """For each label its ancestors and descendants, with which it cannot be an option of one question.

    Args:
        ontology: AudioSet's ``ontology.json``.

    Raises:
        AnnotationError: the file is not an ontology.
    """
    entries = _ontology(Path(ontology))
    names = {entry["id"]: label_text(entry["name"]) for entry in entries}
    children = {entry["id"]: [child for child in entry["child_ids"] if child in names] for entry in entries}
    related: dict[str, set[str]] = {name: set() for name in names.values()}
    for id, name in names.items():
        waiting, seen = list(children[id]), {id}
        while waiting:
            child = waiting.pop()
            if child not in seen:
                seen.add(child)
                waiting += children[child]
                related[name].add(names[child])
                related[names[child]].add(name)
    return {name: frozenset(relatives) for name, relatives in related.items()}
