"""Questions with options about a clip: wordings from ``wordings.yaml`` and their inverse, and rows.

`question_tasks` has the kinds of questions, `label_questions` asks them about annotated recordings, and `twins` about
scenes that are drawn for them; `question_controls` tests that their text does not reveal the answers.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import NamedTuple

from audio_compositionality.support.errors import InputError
from audio_compositionality.support.files import packaged_yaml, sha256_of_json
from audio_compositionality.support.text import nearest

from ..data import AUDIO, NUMBER, TEXT, WHOLE, DataColumn, DatasetError, Row, check_columns
from ..sounds.annotations import Annotation, AnnotationError, LabelledEvent, overlap_seconds, polyphony, readings
from ..sounds.splits import alike

YES, NO = "Yes", "No"

OVERLAP, ALONE = "overlap", "alone"
"""States of an anchor, and of Yes in a question."""

NO_TIME, SIMULTANEITY, ORDER = "neither", "simultaneity", "order"
"""The temporal information that a kind of question needs. `NO_TIME`: how much of each sound there is, as in statistics
of each over the whole clip. `SIMULTANEITY`: which sounds coincide, at whatever moment, as in moments in any order.
`ORDER`: the moments in their order."""

MOST_OPTIONS = 26
"""Most options of a question: each has a letter."""

CLIP = "audio"
"""Name of the one clip of a row."""

_LETTERED = re.compile(r"[(\[]?[A-Z][.:)\]](\s|$)")


class QuestionError(DatasetError):
    """Questions that are impossible, or unsound: names them and the reason."""


# ----- wordings
@dataclass(frozen=True)
class QuestionTemplate:
    """A wording.

    Attributes:
        name: unique among all, such as ``counting-kinds-07``.
        text: with ``{a}`` in the place of the anchor, and ``{b}`` in that of the label with which it is compared.
        polarity: for Yes and No, the state that Yes affirms, such as ``overlap``; else empty.
    """

    name: str
    text: str
    polarity: str = ""

    def question(self, anchor: str = "", other: str = "") -> str:
        """The question about an anchor, which is a label, or about two labels."""
        return self.text.format(a=in_sentence(anchor), b=in_sentence(other))


def in_sentence(label: str) -> str:
    """A label within a sentence: in lower case, but for abbreviations."""
    return " ".join(word if word.isupper() and len(word) > 1 else word.lower() for word in label.split())


def is_lettered(option: str) -> bool:
    """Whether a text starts like an option in a prompt, such as ``B. dog``, so that its letter would be ambiguous."""
    return _LETTERED.match(option.lstrip()) is not None


@cache
def templates_digest() -> str:
    """SHA-256 of the file's values: wordings are part of the data, and so of their fingerprint."""
    return sha256_of_json(packaged_yaml(__package__, "wordings.yaml"))


@cache
def all_templates() -> Mapping[tuple[str, str], tuple[QuestionTemplate, ...]]:
    """All wordings, by task and variant."""
    wordings = {}
    for task, variants in packaged_yaml(__package__, "wordings.yaml").items():
        for variant, entries in variants.items():
            by_polarity = entries if isinstance(entries, dict) else {"": entries}
            texts = [(text, polarity) for polarity, of_polarity in by_polarity.items() for text in of_polarity]
            wordings[task, variant] = tuple(
                QuestionTemplate(f"{task}-{variant}-{number:02d}", *text) for number, text in enumerate(texts, 1)
            )
    return wordings


def question_templates(task: str, variant: str) -> tuple[QuestionTemplate, ...]:
    """The wordings of a kind of question.

    Raises:
        InputError: there is no such kind.
    """
    wordings = all_templates()
    if (task, variant) not in wordings:
        hint = nearest(f"{task}/{variant}", ["/".join(kind) for kind in wordings])
        raise InputError(f"there are no questions {f'{task}/{variant}'!r}; {hint}")
    return wordings[task, variant]


def template_of(name: str) -> QuestionTemplate:
    """The wording of a name.

    Raises:
        InputError: there is none.
    """
    task, _, rest = name.partition("-")
    wordings = {template.name: template for template in question_templates(task, rest.rpartition("-")[0])}
    if name not in wordings:
        raise InputError(f"there is no wording {name!r}; {nearest(name, wordings)}")
    return wordings[name]


class QuestionMeaning(NamedTuple):
    """The meaning of a question.

    Attributes:
        task: such as ``counting``.
        variant: of the task, such as ``kinds``.
        anchor: the sound in question, as it is spoken; empty where the question is about the whole clip.
        polarity: for Yes and No, the state that Yes affirms, such as ``overlap``; else empty.
        compared: the sound with which the anchor is compared, as it is spoken; empty where there is none.
    """

    task: str
    variant: str
    anchor: str
    polarity: str
    compared: str = ""


class QuestionWording(NamedTuple):
    """A question in its wording.

    Attributes:
        asked: its meaning.
        template: the wording.
    """

    asked: QuestionMeaning
    template: QuestionTemplate


_LONGEST_QUESTION = 2_000
"""Characters of a question that can have one of the wordings: the time of a pattern with two gaps grows with their
square."""


def read_wording(question: str, options: Sequence[str] = ()) -> QuestionWording | None:
    """The meaning and the wording of a question; None where it has none of the wordings.

    >>> read_wording("What overlaps with the brass section?").asked
    QuestionMeaning(task='classification', variant='overlap', anchor='brass section', polarity='', compared='')

    The words of a label may be read as those of a wording. Of several readings, the one with most words of the wording,
    and so the shortest label, is taken.
    """
    if len(question) > _LONGEST_QUESTION:
        return None
    fitting = [
        QuestionWording(QuestionMeaning(*kind, labels.get("a", ""), template.polarity, labels.get("b", "")), template)
        for kind, template, pattern in _patterns()
        if (match := pattern.fullmatch(question))
        for labels in [match.groupdict(default="")]
    ]
    best = min(fitting, key=lambda one: len(one.asked.anchor) + len(one.asked.compared), default=None)
    if best and best.asked.polarity and options and {option.casefold() for option in options} != {"yes", "no"}:
        return None
    return best


@cache
def _patterns() -> list[tuple[tuple[str, str], QuestionTemplate, re.Pattern[str]]]:
    """Each wording with the kind of question and a pattern of its text, in which labels are ``a`` and ``b``."""
    return [
        (kind, template, re.compile(_pattern(template.text)))
        for kind, wordings in all_templates().items()
        for template in wordings
    ]


def _pattern(text: str) -> str:
    """A regular expression of a wording; a label that occurs twice matches the same text twice."""
    pattern = re.escape(text)
    for gap in "ab":
        pattern = pattern.replace(rf"\{{{gap}\}}", rf"(?P<{gap}>\S(?:.*\S)?)", 1)
        pattern = pattern.replace(rf"\{{{gap}\}}", f"(?P={gap})")
    return pattern


def check_labels(labels: Sequence[str], read: Callable[[str], str] = in_sentence) -> None:
    """Refuse labels that look like a lettered option, or that read alike.

    Args:
        labels: of one data set.
        read: the form of a label in a question.

    Raises:
        QuestionError: names them.
    """
    lettered = next((label for label in labels if is_lettered(read(label))), None)
    if lettered is not None:
        raise QuestionError(f"the label {lettered!r} starts as if it were a lettered option; write it in words")
    pair = alike(labels, read)
    if pair:
        raise QuestionError(f"the labels {pair[0]!r} and {pair[1]!r} read alike in a question; write one way")


# ----- questions
@dataclass(frozen=True)
class Question:
    """A question with its options.

    Attributes:
        id: unique among all.
        task: such as ``counting``.
        variant: of the task, such as ``kinds``.
        question: the text.
        options: in their order; all different.
        answer: the right option.
        anchor: the label in question; empty where the question is about the whole clip.
        template: name of the wording.
        group: of clips with a common origin; they are on one side of a split.
        recording: of its clip.
        polarity: for Yes and No, the state that Yes affirms, such as ``overlap``; else empty.
        start: seconds of the recording at which the clip begins.
        source: name of the data set.
        unit: of a few questions that are balanced with each other: same words and options, each the answer once.
    """

    id: str
    task: str
    variant: str
    question: str
    options: tuple[str, ...]
    answer: str
    anchor: str
    template: str
    group: str
    recording: str
    polarity: str = ""
    start: float = 0.0
    source: str = ""
    unit: str = ""

    @property
    def kind(self) -> str:
        """Task and variant, as one name."""
        return f"{self.task}/{self.variant}"


QUESTION_TEXTS = (
    *("id", "question", "answer", "task", "variant", "anchor", "polarity", "template"),
    *("group", "unit", "recording", "source"),
)
"""Columns of text with the name of a field of `Question`, beside ``options``."""


def question_columns(
    *, tasks: Sequence[str] = (), polarities: Sequence[str] = (OVERLAP, ALONE, ""), further: Sequence[DataColumn] = ()
) -> tuple[DataColumn, ...]:
    """The columns of a question.

    Args:
        tasks: the possible ones; empty where any is possible.
        polarities: the possible ones; empty for questions not answered by Yes or No.
        further: columns after these.
    """
    said = ", ".join(f"`{polarity}`" for polarity in polarities if polarity)
    polarity = (
        f"meaning of Yes, where options are Yes and No: {said}"
        if said
        else "empty, since nothing is answered by Yes or No"
    )
    about = ": " + ", ".join(f"`{task}`" for task in tasks) if tasks else ""
    return (
        DataColumn("id", TEXT, "name of the row"),
        DataColumn(CLIP, AUDIO, "the clip"),
        DataColumn("question", TEXT, "the question"),
        DataColumn("options", [TEXT], "the options, in this order", least=2),
        DataColumn("answer", TEXT, "the right option"),
        DataColumn("task", TEXT, f"task of the question{about}", choices=tuple(tasks)),
        DataColumn("variant", TEXT, "variant of the task"),
        DataColumn("anchor", TEXT, "the label that is asked about; empty where the whole clip is"),
        DataColumn(
            "polarity",
            TEXT,
            f"{polarity}; else empty" if said and "" in polarities else polarity,
            choices=tuple(polarities),
        ),
        DataColumn("template", TEXT, "name of the wording"),
        DataColumn("group", TEXT, "cluster of the clip: rows of one group are not independent"),
        DataColumn("unit", TEXT, "questions with the same words and options that are balanced with each other"),
        DataColumn("recording", TEXT, "name of the clip, or of what it is a part of"),
        DataColumn("source", TEXT, "the data set that it is of"),
        DataColumn("start", NUMBER, "seconds of the recording at which the clip begins"),
        DataColumn("duration", NUMBER, "seconds of the clip"),
        DataColumn("resolution", NUMBER, "seconds: how exact its labels are"),
        DataColumn("polyphony", WHOLE, "the largest number of labels at one time"),
        DataColumn("overlap", NUMBER, "seconds with two or more labels"),
        DataColumn(
            "gap",
            NUMBER,
            "seconds of silence between the sound in question and those apart from it, where the design sets them",
            optional=True,
        ),
        DataColumn(
            "level_difference",
            NUMBER,
            "dB between the loudest and the softest track, where that is exact",
            optional=True,
        ),
        DataColumn(
            "events",
            [{"onset": NUMBER, "offset": NUMBER, "label": TEXT}],
            "the events: `onset`, `offset` (seconds), `label`",
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

    Of soft labels, the events are those of the plain reading.

    Args:
        question: about the clip.
        annotation: the events of the clip.
        split: train or test.
        gap: seconds of silence around the anchor, where it is part of the design.
        level_difference: dB between the loudest and the softest sound of the clip, where it is exact.
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
    """The events of a row's clip."""
    events = tuple(LabelledEvent(event["onset"], event["offset"], event["label"]) for event in row["events"])
    return Annotation(
        row["recording"], row["duration"], events, row["resolution"], row["source"], row["start"], row["group"]
    )


def check_question_row(row: Row, columns: Sequence[DataColumn] = QUESTION_COLUMNS) -> None:
    """Refuse a row that is not a question with options, one of which is the answer, about a clip with events.

    The answer itself is not checked.

    Args:
        row: to check.
        columns: of the row.

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
            f"row {row['id']}: an event lacks a label, or 0 ≤ onset < offset ≤ duration in seconds: {error}"
        ) from error
