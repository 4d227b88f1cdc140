"""The columns of questions, whatever their clips are: from questions to rows, and back."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from ...data import DatasetError, Row
from ...sounds.formats.base import Annotation, AnnotationError, LabelledEvent
from ...sounds.intervals import overlap_seconds, polyphony, readings
from .base import MOST_OPTIONS, Question

if TYPE_CHECKING:
    from datasets import Features


QUESTION_TEXTS = (
    *("id", "question", "answer", "task", "variant", "anchor", "polarity", "template"),
    *("group", "unit", "recording", "source"),
)
"""Columns of text that are named as the field of `Question` that they have, beside ``options``."""

POLARITIES = ("overlap", "alone", "")

CLIP = "audio"
"""Name of the one clip of a row."""


def question_features(sample_rate: int | None, extra: Mapping[str, Any] | None = None) -> Features:
    """The columns of a question.

    Args:
        sample_rate: Hz of the clips; None where each has its own.
        extra: further columns.
    """
    from datasets import Audio, Features, List, Value

    text, number = Value("string"), Value("float64")
    return Features(
        {
            "id": text,
            CLIP: Audio(sampling_rate=sample_rate),
            "question": text,
            "options": List(text),
            **dict.fromkeys(QUESTION_TEXTS[2:], text),
            **dict.fromkeys(("start", "duration", "resolution"), number),
            "polyphony": Value("int32"),
            **dict.fromkeys(("overlap", "gap", "level_difference"), number),
            "events": List({"onset": number, "offset": number, "label": text}),
            **(extra or {}),
        }
    )


def row_of(
    question: Question,
    annotation: Annotation,
    split: str,
    *,
    gap: float | None = None,
    level_difference: float | None = None,
) -> Row:
    """A question as a row, without its sound.

    Of soft labels the events are those of the plain reading.

    Args:
        question: about the clip.
        annotation: what is heard in it.
        split: train or test.
        gap: seconds of silence next to what is asked about, where that was laid out on purpose.
        level_difference: dB between the loudest and the softest sound of the clip, where that is exact.
    """
    plain, *_ = readings(annotation)
    texts = {name: getattr(question, name) for name in QUESTION_TEXTS}
    return {
        **texts,
        "split": split,
        "options": list(question.options),
        "start": float(annotation.start),
        "duration": float(annotation.duration),
        "resolution": float(annotation.resolution),
        "polyphony": polyphony(plain),
        "overlap": overlap_seconds(plain),
        "gap": None if gap is None else float(gap),
        "level_difference": None if level_difference is None else float(level_difference),
        "events": [
            {"onset": float(event.onset), "offset": float(event.offset), "label": event.label} for event in plain.events
        ],
    }


def question_of(row: Row) -> Question:
    """The question of a row."""
    texts = {name: row[name] for name in QUESTION_TEXTS}
    return Question(**texts, options=tuple(row["options"]), start=row["start"])


def annotation_of(row: Row) -> Annotation:
    """What is heard in the clip of a row."""
    events = tuple(LabelledEvent(event["onset"], event["offset"], event["label"]) for event in row["events"])
    return Annotation(
        row["recording"], row["duration"], events, row["resolution"], row["source"], row["start"], row["group"]
    )


def check_question_row(row: Row) -> None:
    """Refuse a row that is no question with options, one of which is the answer, about a clip with events.

    Whether the answer is right is not asked; see `check.fault_of`.

    Raises:
        DatasetError: names the row and what is wrong.
    """
    for column in QUESTION_TEXTS:
        if not isinstance(row.get(column), str):
            raise DatasetError(f"row {row['id']}: {column} is {row.get(column)!r}; it is a text")
    for column in ("question", "task", "group"):
        if not row[column]:
            raise DatasetError(f"row {row['id']}: {column} is empty")
    options = row.get("options")
    if (
        not isinstance(options, list)
        or not all(isinstance(option, str) and option for option in options)
        or not 2 <= len(options) <= MOST_OPTIONS
        or len(set(options)) < len(options)
    ):
        raise DatasetError(
            f"row {row['id']}: options are {options!r}; they are two or more texts, {MOST_OPTIONS} at most, "
            "all different"
        )
    if row["answer"] not in options:
        raise DatasetError(f"row {row['id']}: answer is {row['answer']!r}, which is none of the options {options!r}")
    if row["polarity"] not in POLARITIES:
        raise DatasetError(
            f"row {row['id']}: polarity is {row['polarity']!r}; it is one of {', '.join(map(repr, POLARITIES))}"
        )
    _check_numbers(row)
    if not isinstance(row.get("events"), list):
        raise DatasetError(f"row {row['id']}: events are {row.get('events')!r}; they are a list")
    try:
        annotation_of(row)
    except (AnnotationError, KeyError, TypeError) as error:
        raise DatasetError(
            f"row {row['id']}: what is heard is not 0 ≤ onset < offset ≤ duration in seconds, with a label: {error}"
        ) from error


def _check_numbers(row: Row) -> None:
    for column in ("start", "duration", "resolution", "polyphony", "overlap"):
        value = row.get(column)
        if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 <= value < math.inf:
            raise DatasetError(f"row {row['id']}: {column} is {value!r}; it is a number, 0 or more")
    for column in ("gap", "level_difference"):
        value = row.get(column)
        if value is not None and (not isinstance(value, float) or not math.isfinite(value)):
            raise DatasetError(f"row {row['id']}: {column} is {value!r}; it is a number or missing")
