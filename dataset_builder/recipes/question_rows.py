"""Rows of drawn multiple-choice questions about one or several clips, with the columns of a table of questions."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from ..data import AUDIO, NUMBER, PAUSE, TEXT, DataColumn, DatasetError, Pcm16, Row
from ..scenes.mixing import Clip, EventSounds, mix
from ..sounds.published.question_tables import FEWEST_OPTIONS, fault_of
from .base import AnySpec, Recipe

Mixed = Callable[[Sequence[Clip]], Sequence[Pcm16]]

QUESTION_COLUMNS = (
    DataColumn("id", TEXT, "name of the question"),
    DataColumn("audio", [AUDIO], "the clips, in the order of `files`", per="files"),
    DataColumn("question", TEXT, "the question, on one line"),
    DataColumn("options", [TEXT], "the options, without letters", least=FEWEST_OPTIONS, filled=True),
    DataColumn("answer", TEXT, "the right option"),
    DataColumn("kind", TEXT, "kind of the question; empty if the table has none"),
    DataColumn("group", TEXT, "questions of one group are not independent; by default questions about the same clips"),
    DataColumn(
        "pair", TEXT, "shared by groups that are not independent either, e.g. their labels; else none", optional=True
    ),
    DataColumn("files", [TEXT], "names of the clips in the table", least=1, filled=True),
    DataColumn("duration", NUMBER, "total length of all clips in seconds, if known", optional=True),
    DataColumn(
        "events",
        [{"onset": NUMBER, "offset": NUMBER, "label": TEXT}],
        "onset and offset in seconds and label of each sound, if the table has labels",
        optional=True,
    ),
)


class QuestionRecipe(Recipe[AnySpec]):
    """A recipe of questions with options about one or several clips."""

    def columns(self, spec: AnySpec) -> Sequence[DataColumn]:
        """Return the columns of a question."""
        return QUESTION_COLUMNS

    def check_row(self, row: Row) -> None:
        """Raise an error if a row is not a question with one right option; see `Recipe.check_row`."""
        super().check_row(row)
        fault = fault_of(row["question"], row["options"], row["answer"])
        if fault is not None:
            raise DatasetError(f"row {row['id']}: {fault}")


def asked_row(
    id: str,
    question: str,
    options: Sequence[str],
    answer: str,
    *,
    kind: str,
    group: str,
    pair: str,
    clips: Sequence[Sequence[Mapping[str, Any]]],
    seconds: float,
) -> Row:
    """Return the row of a question.

    Args:
        id: unique among the rows.
        question: one line.
        options: in the order in which they are presented.
        answer: one of them.
        kind: kind of question.
        group: name shared by questions with the same words.
        pair: shared by groups that are not independent, e.g. their labels.
        clips: the events of each clip of the question, with ``label``, ``start`` and ``stop`` in seconds.
            Clips are played one after the other, `PAUSE` apart.
        seconds: length of a clip.
    """
    events = [
        {"onset": event["start"] + later, "offset": event["stop"] + later, "label": event["label"]}
        for place, of_clip in enumerate(clips)
        for later in [place * (seconds + PAUSE)]
        for event in of_clip
    ]
    return {
        "id": id,
        "split": "test",
        "question": question,
        "options": list(options),
        "answer": answer,
        "kind": kind,
        "group": group,
        "pair": pair,
        "files": [f"{id}-{number}" for number in range(1, len(clips) + 1)],
        "duration": len(clips) * seconds,
        "events": events,
    }


def under_one_gain(clips: Sequence[Clip], sounds: EventSounds, length: int, *places: int) -> Mixed:
    """Return a function that mixes some clips of a group with the gain of all, so that levels do not reveal the answer.

    Args:
        clips: clips of all questions of the group.
        sounds: sounds of the events.
        length: samples of a clip.
        places: indices of one question's clips; see `Drawn.mixed`.
    """

    def mixed(_: Sequence[Clip]) -> Sequence[Pcm16]:
        every = mix(clips, sounds.samples, length)
        return [every[place] for place in places]

    return mixed
