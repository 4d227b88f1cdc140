"""The cost of overlap: the same sounds together and one after the other, with the same questions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from audio_compositionality.dataset_builder.data import Row
from audio_compositionality.dataset_builder.texts.counterparts import ARRANGEMENTS, PAIRED
from audio_compositionality.dataset_builder.texts.questions import CLIP

from .base import Drawing, Floats, Inputs, Measure, Samples, Tally, TaskError, TaskInfo
from .metric_files import describe_metric
from .shapes.questions import (
    COUNTED,
    QUESTIONS,
    QuestionBar,
    QuestionTask,
    draw_question_bars,
    profiled_by,
)

METRIC = describe_metric("polybench")

APART_TASKS = tuple(kind.task for kind in PAIRED)
"""Tasks whose questions have the same answer in both arrangements."""

_COLUMNS = {"together": "score", "apart": "score_apart", "change": "score_change"}
"""Columns of the samples, by the measure that is the column's mean."""

_MEANINGS = {
    "together": "share of the questions answered correctly if sounds overlap",
    "apart": "share of the same questions answered correctly if the same sounds follow each other",
    "change": "together minus apart: if it is negative, overlap costs this much",
}


def _measures() -> tuple[Measure, ...]:
    spans = {"together": (0.0, 1.0), "apart": (0.0, 1.0), "change": (-1.0, 1.0)}
    nulls = {"together": "chance", "apart": "chance"}
    whole = [
        Measure(name, name, meaning, range=spans[name], null=nulls.get(name), column=_COLUMNS[name])
        for name, meaning in _MEANINGS.items()
    ]
    by_task = [
        replace(
            measure,
            name=f"{measure.name}_{task}",
            heading=f"{task} {measure.name}",
            null=None,
            within=("task", float(APART_TASKS.index(task))),
            shown=False,
        )
        for task in APART_TASKS
        for measure in whole
    ]
    return (
        *whole,
        Measure("chance", "chance", "accuracy of drawing an option", range=(0.0, 1.0)),
        Measure(
            "without_listening",
            "best without listening",
            "accuracy when drawing an option, always giving one text or always taking one position, whichever is best "
            "in each task",
            range=(0.0, 1.0),
            shown=False,
        ),
        *by_task,
        *COUNTED,
    )


_TALLIES = (
    Tally(
        "The same sounds together and apart",
        "task",
        tuple(_MEANINGS),
        {
            "all": tuple(_MEANINGS),
            **{task: tuple(f"{name}_{task}" for name in _MEANINGS) for task in APART_TASKS},
        },
    ),
)

_BARS = tuple(
    QuestionBar(f"{side}{suffix}", f"{words}{side}", chance="chance" if not suffix else "")
    for suffix, words in (("", "all, "), *((f"_{task}", f"{task}, ") for task in APART_TASKS))
    for side in ("together", "apart")
)


_BY_ARRANGEMENT = Drawing(
    name="arrangements",
    title=(
        "Share of correct answers if sounds overlap (together) and if the same sounds follow each other (apart), "
        "for all questions and for each task, with 95 % intervals. Dashed: chance. If together is lower than apart, "
        "overlap costs the difference."
    ),
    alternative="Bar chart of the accuracy together and apart, for all questions and by task, one panel per model.",
    columns=("task", "score", "score_apart"),
    panel=partial(draw_question_bars, bars=_BARS),
    intervals=tuple(bar.measure for bar in _BARS),
    y="share of questions",
)


class ApartTask(QuestionTask):
    """The task; see `Task`. A sample is a question in both arrangements, under its row with the sounds together."""

    def inputs(self, row: Row, settings: Mapping[str, Any]) -> Inputs:
        """Return the inputs of `QuestionTask`; both arrangements of a scene are in one group."""
        inputs = super().inputs(row, settings)
        return replace(inputs, group=row["pair"].rpartition("-")[0]) if inputs.prompts else inputs

    def settings(self, rows: Sequence[Row], requested: Mapping[str, Any]) -> dict[str, Any]:
        """Return the settings of `QuestionTask`.

        Raises:
            TaskError: the rows cannot be scored, or no question is asked in both arrangements.
        """
        settings = super().settings(rows, requested)
        if not _pairs(rows):
            raise TaskError(f"{self.info.name} has no question asked in both arrangements; at least one is needed")
        return settings

    def sampled(
        self, tested: Sequence[Row], columns: dict[str, Floats], values: dict[str, Any]
    ) -> tuple[Sequence[Row], dict[str, Floats]]:
        """See `QuestionTask.sampled`; pair by pair, without questions that have no pair."""
        places = {row["id"]: place for place, row in enumerate(tested)}
        asked, others = zip(*_pairs(tested), strict=True)
        together, apart = ([places[row["id"]] for row in side] for side in (asked, others))
        correct, choice = columns["score"], columns["choice"]
        return asked, {
            "score": correct[together],
            "score_apart": correct[apart],
            "score_change": correct[together] - correct[apart],
            "task": columns["task"][together],
            "choice": choice[together],
            "choice_apart": choice[apart],
        }

    def samples(self, rows: Sequence[Row]) -> Samples:
        """Return the questions in both arrangements, under their rows with the sounds together.

        Counterparts form a cluster.
        """
        return super().samples([row for row, _ in _pairs(rows)])


def _pairs(rows: Sequence[Row]) -> list[tuple[Row, Row]]:
    """Return the rows, together and apart, of each test question that has both, in the order of the first."""
    sides: tuple[dict[str, Row], dict[str, Row]] = ({}, {})
    for row in rows:
        if row["split"] == "test":
            sides[ARRANGEMENTS.index(row["arrangement"])][row["pair"]] = row
    together, apart = sides
    return [(row, apart[pair]) for pair, row in together.items() if pair in apart]


TASK = ApartTask(
    TaskInfo(
        **QUESTIONS | {"samples": "questions in both arrangements", "captions": {CLIP: "the sounds together"}},
        name="polybench_apart",
        version=METRIC.version,
        title="What overlap costs",
        question="Does an audio language model recognise less of the same sounds if they overlap?",
        benchmark="polybench_apart",
        recipe="polybench_apart",
        measures=_measures(),
        ranks_by="together",
        trusted={"together": "without_listening"},
        warning=(
            "The change is the cost of overlap only for a model above chance if sounds follow each other: a model "
            "at chance has nothing to lose. The sounds are shorter than in the other questions about overlapping "
            "sounds, so that they can follow each other in a clip of the same length; together they leave more of it "
            "silent."
        ),
        citation=METRIC.citation,
        **profiled_by("together", tallies=_TALLIES),
    ),
    _BY_ARRANGEMENT,
    kinds=APART_TASKS,
)
