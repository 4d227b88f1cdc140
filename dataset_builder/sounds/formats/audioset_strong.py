"""AudioSet's strong labels: ``segment_id start_time_seconds end_time_seconds label`` with ids of labels."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from audio_compositionality.support.text import shown

from ...tables import read_lines, read_text
from ..annotations import Annotation, AnnotationError
from .parsing import (
    DraftRecording,
    LabelReading,
    ReadOptions,
    check_is_file,
    has_header,
    label_text,
    parsed_json,
)

AUDIOSET = "audioset-strong"
"""Name of the format."""

CLIP_SECONDS = 10.0
"""Length of most segments; segments at the end of a video are shorter."""

RESOLUTION = 0.1

_FIELDS = ("recording", "onset", "offset", "label")
ONTOLOGY = "ontology.json"
"""AudioSet's name for the file with its hierarchy of labels."""

_NAMES = ("mid_to_display_name.tsv", "class_labels_indices.csv", "class_labels.tsv", ONTOLOGY)


def read_audioset(path: Path, options: ReadOptions) -> tuple[Annotation, ...]:
    """Read a table, with or without header; segments of one video are one group."""
    check_is_file(path, "the table of strong labels")
    lines = read_lines(path, options.encoding)
    lines = lines[1:] if has_header(lines[0], 1) else lines
    # The table of names is given in the options, or next to the labels; id and name are its last two columns.
    tables = [path.with_name(name) for name in _NAMES] if options.names is None else [Path(options.names)]
    table = next((table for table in tables if table.is_file()), None)
    if table is None and options.names is not None:
        raise AnnotationError(f"the table of names {str(tables[0])!r} does not exist")
    names: dict[str, str] = {}
    if table is not None and table.suffix == ".json":
        names = {entry["id"]: label_text(entry["name"]) for entry in _ontology(table)}
    elif table is not None:
        rows = [line.fields for line in read_lines(table, options.encoding) if len(line.fields) > 1]
        names = {id: label_text(name) for *_, id, name in rows}
    reading = LabelReading(options)
    unknown: dict[str, str] = {}
    for line in lines:
        if len(line.fields) != len(_FIELDS):
            reading.problems.add(line.where, f"has {len(line.fields)} fields; expected: segment, start, end and label")
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
            f"there is no name for {shown(list(unknown))}; give a table of ids and names ({', '.join(_NAMES)})",
        )
    return reading.annotations(path, AUDIOSET, resolution=RESOLUTION)


def video_of(segment: str) -> str:
    """Return the video of a segment; a segment is named after its video and start in milliseconds."""
    video, _, start = segment.rpartition("_")
    return video if start.isdigit() else segment


def _ontology(path: Path) -> list[dict[str, Any]]:
    entries = parsed_json(read_text(path), path.name)
    is_ontology = (
        isinstance(entries, list)
        and bool(entries)
        and all(isinstance(entry, dict) and isinstance(entry.get("child_ids"), list) for entry in entries)
        and all(isinstance(entry.get("id"), str) and isinstance(entry.get("name"), str) for entry in entries)
        and all(isinstance(child, str) for entry in entries for child in entry["child_ids"])
    )
    if not is_ontology:
        raise AnnotationError(
            f"{path.name} is not an ontology in AudioSet's form: a list of entries with the texts id and name, and "
            "child_ids"
        )
    return list(entries)


def labels_above(ontology: str | Path) -> Mapping[str, frozenset[str]]:
    """Return the labels above each label of a hierarchy.

    Args:
        ontology: AudioSet's ``ontology.json``.

    Raises:
        AnnotationError: the file is not an ontology.
    """
    entries = _ontology(Path(ontology))
    names = {entry["id"]: label_text(entry["name"]) for entry in entries}
    children = {entry["id"]: [child for child in entry["child_ids"] if child in names] for entry in entries}
    above: dict[str, set[str]] = {name: set() for name in names.values()}
    for id, name in names.items():
        waiting, seen = list(children[id]), {id}
        while waiting:
            child = waiting.pop()
            if child not in seen:
                seen.add(child)
                waiting += children[child]
                above[names[child]].add(name)
    return {name: frozenset(uppers) for name, uppers in above.items()}


def related_labels(ontology: str | Path) -> Mapping[str, frozenset[str]]:
    """Return the ancestors and descendants of each label, which cannot be options of the same question.

    See `labels_above`.
    """
    above = labels_above(ontology)
    return {name: uppers | {one for one in above if name in above[one]} for name, uppers in above.items()}
