"""PolyBench: questions about overlapping sounds: how many, which longest, whether, what, when?

How much of time each kind of question needs is stated with the kinds, in `texts.questions`: a kind that needs none is
partly answered from how much of each sound a clip has (`time-blind`), and stands beside the score where another kind
asks the same with time.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from pydantic import Field, model_validator

from audio_compositionality.dataset_builder.data import Row
from audio_compositionality.support.errors import InputError
from audio_compositionality.support.text import nearest

from .base import (
    GENERATE,
    Drawing,
    Floats,
    Measure,
    Number,
    Outputs,
    Scores,
    Tally,
    TaskError,
    TaskInfo,
    groups_of,
    printed_figures,
    settings_among,
)
from .shapes.asking import CYCLIC, AskingSpec
from .shapes.questions import (
    KINDS,
    METRIC,
    NO_OPTION,
    ORDERS_TALLY,
    QUESTIONS,
    REFUSED,
    TASKS,
    AnswerTask,
    QuestionBar,
    all_right,
    asked_questions,
    draw_question_bars,
    kind_with_needs,
    mean_of_parts,
    needs_of,
    profiled_by,
    task_of,
    tested_rows,
    usual_choices,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_UNLIKE = "Scores of single questions are weighted, so that tasks, or groups, count the same."

_WITHOUT_LISTENING = Measure(
    name="without_listening",
    heading="best without listening",
    meaning="accuracy of who does in each task what is best there without a clip: draw an option, always give one text "
    "or always take one position",
    range=(0.0, 1.0),
    shown=False,
)


EMBEDDING_MATCH = "embedding_match"
"""The setting that names a sentence encoder, and the measure that it gives."""

_EMBEDDING_MATCH = Measure(
    name=EMBEDDING_MATCH,
    heading="accuracy by embedding match",
    meaning="accuracy where each answer counts as the option that is most similar to it by sentence embeddings, as the "
    "paper matches; it never abstains, and is not the score",
    range=(0.0, 1.0),
    null="chance",
    shown=False,
)


def _measures() -> tuple[Measure, ...]:
    """The metric's measures, single tasks and groups with the columns whose means they are; and our own."""
    changes: dict[str, dict[str, Any]] = {
        "accuracy": {"outside": _UNLIKE},
        "accuracy_micro": {"heading": "accuracy"},
        "groups_right": {"column": "score_group", "outside": _UNLIKE},
    }
    for place, task in enumerate(TASKS):
        within = ("task", float(place))
        meaning = next(measure.meaning for measure in METRIC.measures if measure.name == task)
        changes[task] = {
            "column": "score_correct",
            "within": within,
            "meaning": f"{meaning}; it needs {needs_of(task)}",
        }
        changes[f"chance_{task}"] = {"heading": f"{KINDS[task]} chance", "meaning": "accuracy of drawing an option"}
        changes[f"groups_right_{task}"] = {
            "column": "score_group_in_task",
            "within": within,
            "outside": _UNLIKE,
            "null": f"groups_right_chance_{task}",
        }
    chances = [
        Measure(
            name=f"groups_right_chance_{task}",
            heading=f"chance of groups right, {KINDS[task]}",
            meaning=f"groups right by drawing an option each time, of {KINDS[task]}",
            range=(0.0, 1.0),
            shown=False,
        )
        for task in TASKS
    ]
    measures = [replace(measure, **changes.get(measure.name, {})) for measure in METRIC.measures]
    return (*measures, *chances, _WITHOUT_LISTENING, _EMBEDDING_MATCH)


_TALLIES = (
    Tally(
        "By kind of question, with what of time it needs",
        "kind of question",
        ("accuracy", "chance", "best constant text", "macro F1", "all of a group right", "chance of that"),
        {
            kind_with_needs(task): tuple(
                prefix + task
                for prefix in ("", "chance_", "majority_", "macro_f1_", "groups_right_", "groups_right_chance_")
            )
            for task in TASKS
        },
    ),
    Tally(
        "Answers about concurrency, whichever of the two Yes stands for",
        "what is right",
        ("it says that something overlaps", "it says that nothing does", "it says neither"),
        {
            "something overlaps": ("tp", "fn", "unparsed_overlap"),
            "nothing overlaps": ("fp", "tn", "unparsed_alone"),
        },
        {"something overlaps": 0, "nothing overlaps": 1},
    ),
    ORDERS_TALLY,
    Tally(
        "By the option that is most similar to the whole answer, as the paper matches",
        "questions",
        ("accuracy by embedding match", "accuracy by the rules", "chance"),
        {"all": (EMBEDDING_MATCH, "accuracy", "chance")},
        needs=EMBEDDING_MATCH,
    ),
)

PRINTED = printed_figures("polybench")
"""The paper's figures for the five tasks."""

_BARS = tuple(
    QuestionBar(task, KINDS[task], chance=f"chance_{task}", majority=f"majority_{task}", strict=f"groups_right_{task}")
    for task in TASKS
)


def draw_tasks(axes: Axes, columns: Mapping[str, Floats], measures: Mapping[str, Number]) -> None:
    """Draw one model's accuracy by task; see `draw_question_bars`."""
    asked = [bar for bar in _BARS if measures.get(bar.measure) is not None]
    draw_question_bars(axes, columns, measures, asked, PRINTED)


_BY_TASK = Drawing(
    name="tasks",
    title=(
        "Accuracy by kind of question with 95 % intervals. Of time, "
        + "; ".join(f"{KINDS[task]} needs {needs_of(task)}" for task in TASKS).replace("needs no time", "needs none")
        + ". Dashed: chance. Dotted: the best constant text. Diamonds: groups, "
        "such as the twins of a scene, with every question of the task answered correctly. Grey ticks on the "
        f"right of a bar: the accuracies of five models as printed, not comparable. {PRINTED.sentence}"
    ),
    alternative="Bars of the accuracy in each kind of question with chance, the best constant text and the accuracies "
    "that the paper prints, a panel a model.",
    columns=("task", "score_correct"),
    panel=draw_tasks,
    intervals=TASKS,
    y="share of questions",
)


class EmbeddingMatchSpec(AskingSpec):
    """The settings of the task."""

    embedding_match: str | None = Field(
        None,
        min_length=1,
        description="Also score by sentence embeddings, as the paper matches: each answer counts as the option most "
        "similar to it by this encoder of sentences, a folder or a Hub id; it stands beside the score, and a result "
        "that has it is not submitted.",
    )

    @model_validator(mode="after")
    def _is_written(self) -> EmbeddingMatchSpec:
        if self.embedding_match is not None and self.scoring != GENERATE:
            raise InputError(
                f"{EMBEDDING_MATCH} compares what a model writes, and the scoring {self.scoring!r} has it write "
                f"nothing: take the scoring {GENERATE!r}"
            )
        return self


class PolybenchTask(AnswerTask):
    """The task; see `Task`."""

    spec = EmbeddingMatchSpec

    def check(self, row: Row) -> None:
        """See `AnswerTask.check`."""
        self.check_words(row)
        if row["task"] not in TASKS:
            raise TaskError(
                f"{self.info.name}: the question {row['id']} is of the task {row['task']!r}; "
                f"{nearest(row['task'], TASKS)}"
            )
        if row["task"] == "concurrency" and sorted(row["options"]) != ["No", "Yes"]:
            raise TaskError(
                f"{self.info.name}: the options of {row['id']} are {row['options']}; of concurrency they are Yes and No"
            )

    def score(
        self, rows: Sequence[Row], outputs: Outputs, settings: Mapping[str, Any], device: str, progress: bool
    ) -> Scores:
        """Score the answers to the test questions, each asked in every order of its options."""
        # Imported by need: a task loads its metric only in the process that scores.
        from audio_compositionality.metrics.answers import REFUSED as REFUSALS
        from audio_compositionality.metrics.columns import of_all
        from audio_compositionality.metrics.polybench import polybench
        from audio_compositionality.metrics.questions import in_means

        tested = tested_rows(rows)
        asked = asked_questions(tested, settings)
        is_cyclic = settings_among(AskingSpec, settings).orders == CYCLIC
        values = polybench(
            list(outputs.answers),
            [row["answer"] for row, _ in asked],
            [options for _, options in asked],
            [task_of(row) for row, _ in asked],
            ids=[row["id"] for row, _ in asked] if is_cyclic else None,
            groups=[row["group"] for row, _ in asked],
            polarity=[row["polarity"] for row, _ in asked],
            return_scores=True,
        )
        if EMBEDDING_MATCH in settings:
            values[EMBEDDING_MATCH] = embedding_accuracy(settings[EMBEDDING_MATCH], outputs.answers, asked, device)
        by_task = values["by_task"]
        best = [
            max(part["chance"], part["majority"], part["best_position"])
            for name, part in by_task.items()
            if name in in_means(by_task)
        ]
        values[_WITHOUT_LISTENING.name] = float(np.mean(best))
        values |= {f"groups_right_chance_{name}": part["groups_right_chance"] for name, part in by_task.items()}
        missed = [REFUSED if rule in REFUSALS else NO_OPTION for rule in values["rules"]]
        # Of rotated options, their places in the row.
        taken = [
            no if choice is None else row["options"].index(options[choice])
            for choice, no, (row, options) in zip(values["choices"], missed, asked, strict=True)
        ]
        correct, task = np.array(values["scores_correct"], np.float64), _task_places(tested)
        groups, ranked = groups_of(tested), np.isin(task, [TASKS.index(name) for name in in_means(by_task)])
        together = np.zeros(int(ranked.sum()), np.int64)
        columns: dict[str, Floats] = {
            "score": of_all(mean_of_parts(correct[ranked], task[ranked]), ranked),
            "score_correct": correct,
            "score_group": of_all(all_right(correct[ranked], groups[ranked], together), ranked),
            "score_group_in_task": all_right(correct, groups, task),
            "task": task.astype(np.float64),
            "choice": np.array(usual_choices([row["id"] for row, _ in asked], taken), np.float64),
        }
        measures = {measure.name: values.get(measure.name) for measure in self.info.measures}
        return Scores(measures, tuple(row["id"] for row in tested), columns)


def _task_places(rows: Sequence[Row]) -> NDArray[np.int64]:
    return np.array([TASKS.index(task_of(row)) for row in rows], np.int64)


def embedding_accuracy(
    encoder: str, answers: Sequence[str], asked: Sequence[tuple[Row, Sequence[str]]], device: str
) -> float:
    """The accuracy of PolyBench, the mean over its tasks, where each answer counts as the option most similar to it.

    Args:
        encoder: see `SentenceEncoder`.
        answers: m texts.
        asked: the question of each answer, and its options as shown.
        device: torch device.

    Raises:
        ModelError: the encoder cannot be loaded.
    """
    # Imported by need: the encoder takes seconds to import.
    from audio_compositionality.encoders.text_towers import SentenceEncoder
    from audio_compositionality.metrics.answers import embedding_match
    from audio_compositionality.metrics.polybench import polybench

    options = [list(listed) for _, listed in asked]
    taken = embedding_match(answers, options, SentenceEncoder(encoder, device))
    tasks = [row["task"] for row, _ in asked]
    references = [row["answer"] for row, _ in asked]
    values = polybench(taken, references, options, tasks, ids=[row["id"] for row, _ in asked], parsed=True)
    return float(values["accuracy"])


TASK = PolybenchTask(
    TaskInfo(
        **QUESTIONS,
        name="polybench",
        version=METRIC.version,
        title="PolyBench",
        question="Does an audio language model hear how many sounds there are, which lasts longest, and what overlaps "
        "what, and when?",
        benchmark="polybench",
        recipe="polybench",
        measures=_measures(),
        ranks_by="accuracy",
        trusted={"accuracy": "without_listening", "groups_right": "groups_right_chance"},
        warning=(
            "An accuracy alone says little: compare it with the best constant answer, with the baseline blind, which "
            "learns from the words of questions alone, and with the same model given silence (without-audio:). An "
            "answer that names no option is wrong; where there are many of these (unparsed), look at what the model "
            "writes, or let its likelihoods decide (--set scoring=letters). Groups right is the strict score: of "
            "twins, whose answers differ only because labels changed places, all have to be right; of recordings it "
            "depends on how many questions were asked about each. On recordings, classification tests which sounds "
            "occur more than when: present, which knows nothing of time, answers nearly all of it. The baseline "
            "time-blind, which knows how much there is of each band and not when, is above chance in counting and "
            "duration, which need no time: a score there is no sense of time, and in the mean over tasks counting "
            "together and the longest event stand in their place where they are asked. A model that scores as high "
            "with its clips in disorder (shuffled-audio:) has shown no sense of order."
        ),
        citation=METRIC.citation,
        printed=PRINTED,
        # Kinds of their own; variants replace two of them where they are asked.
        **profiled_by("accuracy_micro", tallies=_TALLIES, parts=tuple(name for name in TASKS if KINDS[name] == name)),
    ),
    _BY_TASK,
)
