"""Questions with options about a clip: wordings from ``wordings.yaml``, their inverse, and rows.

`question_tasks` defines the kinds of questions, `label_questions` asks them about annotated recordings, and
`counterparts` about scenes that are drawn for them; `question_controls` tests that the text does not reveal the
answers.
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
over the whole clip. `SIMULTANEITY`: which sounds coincide, at any moment, as in moments in any order. `ORDER`: the
moments in their order."""

MOST_OPTIONS = 26
"""Most options of a question: each has a letter."""

CLIP = "audio"
"""Name of a row's only clip."""

_LETTERED = re.compile(r"[(\[]?[A-Z][.:)\]](\s|$)")


class QuestionError(DatasetError):
    """Questions that are impossible or unsound; the message names them and the reason."""


# ----- wordings
@dataclass(frozen=True)
class QuestionTemplate:
    """A wording.

    Attributes:
        name: unique name, e.g. ``counting-kinds-07``.
        text: text with ``{a}`` for the anchor, and ``{b}`` for the label with which it is compared.
        polarity: for Yes and No, the state that Yes affirms, e.g. ``overlap``; else empty.
    """

    name: str
    text: str
    polarity: str = ""

    def question(self, anchor: str = "", other: str = "") -> str:
        """Return the question about an anchor, which is a label, or about two labels."""
        return self.text.format(a=in_sentence(anchor), b=in_sentence(other))


def in_sentence(label: str) -> str:
    """Return a label as written within a sentence: in lower case, except for abbreviations."""
    return " ".join(word if word.isupper() and len(word) > 1 else word.lower() for word in label.split())


def is_lettered(option: str) -> bool:
    """Return whether a text begins like an option, e.g. ``B. dog``, which makes its letter ambiguous."""
    return _LETTERED.match(option.lstrip()) is not None


@cache
def templates_digest() -> str:
    """Return the SHA-256 of the file's values: wordings are part of the data, and so of their fingerprint."""
    return sha256_of_json(packaged_yaml(__package__, "wordings.yaml"))


@cache
def all_templates() -> Mapping[tuple[str, str], tuple[QuestionTemplate, ...]]:
    """Return all wordings, by task and variant."""
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
    """Return the wordings of a kind of question.

    Raises:
        InputError: this kind does not exist.
    """
    wordings = all_templates()
    if (task, variant) not in wordings:
        hint = nearest(f"{task}/{variant}", ["/".join(kind) for kind in wordings])
        raise InputError(f"there are no questions {f'{task}/{variant}'!r}; {hint}")
    return wordings[task, variant]


def template_of(name: str) -> QuestionTemplate:
    """Return the wording with this name.

    Raises:
        InputError: this name does not exist.
    """
    task, _, rest = name.partition("-")
    wordings = {template.name: template for template in question_templates(task, rest.rpartition("-")[0])}
    if name not in wordings:
        raise InputError(f"there is no wording {name!r}; {nearest(name, wordings)}")
    return wordings[name]


class QuestionMeaning(NamedTuple):
    """The meaning of a question.

    Attributes:
        task: the task, e.g. ``counting``.
        variant: variant of the task, e.g. ``kinds``.
        anchor: the sound in question, as written in it; empty if the question is about the whole clip.
        polarity: for Yes and No, the state that Yes affirms, e.g. ``overlap``; else empty.
        compared: the sound with which the anchor is compared, as written in the question; empty if there is none.
    """

    task: str
    variant: str
    anchor: str
    polarity: str
    compared: str = ""


class QuestionWording(NamedTuple):
    """A question in its wording.

    Attributes:
        asked: the meaning.
        template: the wording.
    """

    asked: QuestionMeaning
    template: QuestionTemplate


_LONGEST_QUESTION = 2_000
"""Most characters of a question that is compared with the wordings; the time of a pattern with two gaps grows with
their square."""


def read_wording(question: str, options: Sequence[str] = ()) -> QuestionWording | None:
    """Return the meaning and the wording of a question; None if it has none of the wordings.

    >>> read_wording("What overlaps with the brass section?").asked
    QuestionMeaning(task='classification', variant='overlap', anchor='brass section', polarity='', compared='')

    Words of a label can also be words of a wording. Of several readings, the one with the most words in the wording,
    and so the shortest label, is used.
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
    """Return each wording with its kind of question and a pattern of its text, in which labels are ``a`` and ``b``."""
    return [
        (kind, template, re.compile(_pattern(template.text)))
        for kind, wordings in all_templates().items()
        for template in wordings
    ]


def _pattern(text: str) -> str:
    """Return a wording's regular expression; a label that occurs twice matches the same text twice."""
    pattern = re.escape(text)
    for gap in "ab":
        pattern = pattern.replace(rf"\{{{gap}\}}", rf"(?P<{gap}>\S(?:.*\S)?)", 1)
        pattern = pattern.replace(rf"\{{{gap}\}}", f"(?P={gap})")
    return pattern


def check_labels(labels: Sequence[str], read: Callable[[str], str] = in_sentence) -> None:
    """Raise an error if labels look like a lettered option, or read alike.

    Args:
        labels: labels of one data set.
        read: returns the form of a label in a question.

    Raises:
        QuestionError: names them.
    """
    lettered = next((label for label in labels if is_lettered(read(label))), None)
    if lettered is not None:
        raise QuestionError(f"the label {lettered!r} begins like a lettered option; write it in words")
    pair = alike(labels, read)
    if pair:
        raise QuestionError(f"the labels {pair[0]!r} and {pair[1]!r} read alike in a question; write both the same way")


# ----- questions
@dataclass(frozen=True)
class Question:
    """A question with its options.

    Attributes:
        id: unique id.
        task: the task, e.g. ``counting``.
        variant: variant of the task, e.g. ``kinds``.
        question: the text.
        options: all different, in the order in which they are presented.
        answer: the right option.
        anchor: the label in question; empty if the question is about the whole clip.
        template: name of the wording.
        group: clips with a common origin, which are on one side of a split.
        recording: recording of its clip.
        polarity: for Yes and No, the state that Yes affirms, e.g. ``overlap``; else empty.
        start: time in the recording at which the clip begins, in seconds.
        source: name of the data set.
        unit: a few questions that are balanced with each other: same words and options, each the answer once.
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
        """Return task and variant as one name."""
        return f"{self.task}/{self.variant}"


QUESTION_TEXTS = (
    *("id", "question", "answer", "task", "variant", "anchor", "polarity", "template"),
    *("group", "unit", "recording", "source"),
)
"""Text columns that have the name of a field of `Question`; ``options`` is separate."""


def question_columns(
    *, tasks: Sequence[str] = (), polarities: Sequence[str] = (OVERLAP, ALONE, ""), further: Sequence[DataColumn] = ()
) -> tuple[DataColumn, ...]:
    """Return the columns of a question.

    Args:
        tasks: the possible tasks; empty if any is possible.
        polarities: the possible polarities; empty for questions not answered by Yes or No.
        further: columns after these.
    """
    said = ", ".join(f"`{polarity}`" for polarity in polarities if polarity)
    polarity = (
        f"if options are Yes and No, meaning of Yes: {said}"
        if said
        else "empty, since no question is answered by Yes or No"
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
        DataColumn("anchor", TEXT, "the label in question; empty if the question is about the whole clip"),
        DataColumn(
            "polarity",
            TEXT,
            f"{polarity}; else empty" if said and "" in polarities else polarity,
            choices=tuple(polarities),
        ),
        DataColumn("template", TEXT, "name of the wording"),
        DataColumn("group", TEXT, "cluster of the clip: rows of one group are not independent"),
        DataColumn("unit", TEXT, "questions with the same words and options that are balanced with each other"),
        DataColumn("recording", TEXT, "name of the clip, or of the recording that it is part of"),
        DataColumn("source", TEXT, "data set of the clip"),
        DataColumn("start", NUMBER, "time in the recording at which the clip begins, in seconds"),
        DataColumn("duration", NUMBER, "length of the clip in seconds"),
        DataColumn("resolution", NUMBER, "resolution of its labels in seconds"),
        DataColumn("polyphony", WHOLE, "the largest number of labels at one time"),
        DataColumn("overlap", NUMBER, "time with two or more labels, in seconds"),
        DataColumn(
            "gap",
            NUMBER,
            "silence between the sound in question and sounds apart from it in seconds, if set by the design",
            optional=True,
        ),
        DataColumn(
            "level_difference",
            NUMBER,
            "difference between the loudest and the softest track in dB, if exact",
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
    """Return a question as a row, without its sound.

    For soft labels, the row has the events of the plain reading.

    Args:
        question: question about the clip.
        annotation: events of the clip.
        split: train or test.
        gap: seconds of silence around the anchor, if it is part of the design.
        level_difference: dB between the loudest and the softest sound of the clip, if it is exact.
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
    """Return the question of a row."""
    texts = {name: row[name] for name in QUESTION_TEXTS}
    return Question(**texts, options=tuple(row["options"]), start=row["start"])


def annotation_of(row: Row) -> Annotation:
    """Return the events of a row's clip."""
    events = tuple(LabelledEvent(event["onset"], event["offset"], event["label"]) for event in row["events"])
    return Annotation(
        row["recording"], row["duration"], events, row["resolution"], row["source"], row["start"], row["group"]
    )


def check_question_row(row: Row, columns: Sequence[DataColumn] = QUESTION_COLUMNS) -> None:
    """Raise an error if a row is not a question with options, one of them the answer, about a clip with events.

    The answer itself is not checked.

    Args:
        row: the row.
        columns: columns of the row.

    Raises:
        DatasetError: names the row and what is wrong.
    """
    check_columns(row, columns)
    for column in ("question", "task", "group"):
        if not row[column]:
            raise DatasetError(f"row {row['id']}: {column} is empty")
    options = row["options"]
    if not all(options) or len(options) > MOST_OPTIONS or len(set(options)) < len(options):
        raise DatasetError(f"row {row['id']}: options are {options!r}; give two to {MOST_OPTIONS} texts, all different")
    if row["answer"] not in options:
        raise DatasetError(f"row {row['id']}: answer is {row['answer']!r}, which is not one of the options {options!r}")
    for column in ("start", "duration", "resolution", "polyphony", "overlap"):
        if row[column] < 0:
            raise DatasetError(f"row {row['id']}: {column} is {row[column]!r}; it must be a number, 0 or more")
    try:
        annotation_of(row)
    except AnnotationError as error:
        raise DatasetError(
            f"row {row['id']}: an event lacks a label, or 0 ≤ onset < offset ≤ duration in seconds: {error}"
        ) from error
