"""The columns of questions, whatever their clips are: from questions to rows, and back."""

from __future__ import annotations

from collections.abc import Sequence

from ...columns import AUDIO, NUMBER, TEXT, WHOLE, Column, check_columns
from ...data import DatasetError, Row
from ...sounds.formats.base import Annotation, AnnotationError, LabelledEvent
from ...sounds.intervals import overlap_seconds, polyphony, readings
from .base import MOST_OPTIONS, Question
from .kinds import ALONE, OVERLAP

QUESTION_TEXTS = (
    *("id", "question", "answer", "task", "variant", "anchor", "polarity", "template"),
    *("group", "unit", "recording", "source"),
)
"""Columns of text that are named as the field of `Question` that they have, beside ``options``."""

CLIP = "audio"
"""Name of the one clip of a row."""


def question_columns(
    *, tasks: Sequence[str] = (), polarities: Sequence[str] = (OVERLAP, ALONE, ""), further: Sequence[Column] = ()
) -> tuple[Column, ...]:
    """The columns of a question.

    Args:
        tasks: that there are; none where there can be any.
        polarities: that there are; empty ones of questions that are not answered by Yes or No.
        further: columns behind these.
    """
    said = ", ".join(f"`{polarity}`" for polarity in polarities if polarity)
    polarity = f"of Yes and No, what Yes says: {said}" if said else "empty, since nothing is answered by Yes or No"
    about = ": " + ", ".join(f"`{task}`" for task in tasks) if tasks else ""
    return (
        Column("id", TEXT, "name of the row"),
        Column(CLIP, AUDIO, "the clip"),
        Column("question", TEXT, "what is asked"),
        Column("options", [TEXT], "what is chosen from, in this order", least=2),
        Column("answer", TEXT, "the option that is right"),
        Column("task", TEXT, f"what it is about{about}", choices=tuple(tasks)),
        Column("variant", TEXT, "of the task"),
        Column("anchor", TEXT, "the label that is asked about; empty where the whole clip is"),
        Column(
            "polarity",
            TEXT,
            f"{polarity}; else empty" if said and "" in polarities else polarity,
            choices=tuple(polarities),
        ),
        Column("template", TEXT, "name of the wording"),
        Column("group", TEXT, "what clips of one origin have in common: samples of a group are not independent"),
        Column("unit", TEXT, "questions with the same words and options that are balanced with each other"),
        Column("recording", TEXT, "name of the clip, or of what it is a part of"),
        Column("source", TEXT, "the data set that it is of"),
        Column("start", NUMBER, "seconds of the recording at which the clip begins"),
        Column("duration", NUMBER, "seconds of the clip"),
        Column("resolution", NUMBER, "seconds: how exact its labels are"),
        Column("polyphony", WHOLE, "most labels that are heard at the same time"),
        Column("overlap", NUMBER, "seconds in which two labels or more are heard"),
        Column(
            "gap",
            NUMBER,
            "seconds of silence between what is asked about and what is apart from it, where that is dealt",
            optional=True,
        ),
        Column(
            "level_difference",
            NUMBER,
            "dB between the loudest and the softest track, where that is exact",
            optional=True,
        ),
        Column(
            "events",
            [{"onset": NUMBER, "offset": NUMBER, "label": TEXT}],
            "when which label is heard: `onset`, `offset` (seconds), `label`",
        ),
        *further,
    )


QUESTION_COLUMNS = question_columns()


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


def check_question_row(row: Row, columns: Sequence[Column] = QUESTION_COLUMNS) -> None:
    """Refuse a row that is no question with options, one of which is the answer, about a clip with events.

    Whether the answer is right is not asked; see `check.fault_of`.

    Args:
        row: to check.
        columns: that it has.

    Raises:
        DatasetError: names the row and what is wrong.
    """
    check_columns(row, columns)
    for column in ("question", "task", "group"):
        if not row[column]:
            raise DatasetError(f"row {row['id']}: {column} is empty")
    options = row["options"]
    if not all(options) or len(options) > MOST_OPTIONS or len(set(options)) < len(options):
        raise DatasetError(
            f"row {row['id']}: options are {options!r}; they are two or more texts, {MOST_OPTIONS} at most, "
            "all different"
        )
    if row["answer"] not in options:
        raise DatasetError(f"row {row['id']}: answer is {row['answer']!r}, which is none of the options {options!r}")
    for column in ("start", "duration", "resolution", "polyphony", "overlap"):
        if row[column] < 0:
            raise DatasetError(f"row {row['id']}: {column} is {row[column]!r}; it is a number, 0 or more")
    try:
        annotation_of(row)
    except AnnotationError as error:
        raise DatasetError(
            f"row {row['id']}: what is heard is not 0 ≤ onset < offset ≤ duration in seconds, with a label: {error}"
        ) from error
