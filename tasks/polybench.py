"""PolyBench: questions about overlapping sounds: how many, which is longest, whether, what, and when?

`texts.questions` states how much timing each kind of question needs. A kind that needs none can be answered in part
from how much of each sound a clip has (`time-blind`); it is reported separately from the score if another kind asks the
same question with timing.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
from pydantic import Field, model_validator

from audio_compositionality.dataset_builder.data import Row
from audio_compositionality.dataset_builder.texts.question_tasks import kind_named
from audio_compositionality.dataset_builder.texts.questions import NO_TIME, ORDER, SIMULTANEITY
from audio_compositionality.support.errors import InputError

from .base import GENERATE, Drawing, Floats, Measure, Tally, TaskInfo, groups_of, printed_figures
from .metric_files import describe_metric
from .shapes.asking import AskingSpec
from .shapes.questions import (
    ORDERS_TALLY,
    QUESTIONS,
    Asked,
    QuestionBar,
    QuestionTask,
    all_right,
    columns_of,
    draw_question_bars,
    kind_of_row,
    mean_of_parts,
    profiled_by,
)

METRIC = describe_metric("polybench")

TASKS = tuple(measure.name for measure in METRIC.measures if measure.null == f"chance_{measure.name}")
"""Tasks of questions, in the order of the paper, then those with time; a sample's column ``task`` has the index."""

KINDS = {name: name.replace("_", "/") for name in TASKS}
"""The kind of question of each task, as named in `texts.questions`."""

_TIMES = {NO_TIME: "no time", SIMULTANEITY: "the sounds of one moment", ORDER: "the order in time"}

NEEDS = {name: _TIMES[kind_named(kind).time] for name, kind in KINDS.items()}
"""The timing that each task needs, in words."""

_UNLIKE = "Scores of single questions are weighted, so that tasks, or groups, count the same."

_WITHOUT_LISTENING = Measure(
    name="without_listening",
    heading="best without listening",
    meaning="accuracy of the best strategy without a clip for each task: draw an option, always give one text or "
    "always take one position",
    range=(0.0, 1.0),
    shown=False,
)


EMBEDDING_MATCH = "embedding_match"
"""The setting that names a sentence encoder, and the name of its measure."""

_EMBEDDING_MATCH = Measure(
    name=EMBEDDING_MATCH,
    heading="accuracy by embedding match",
    meaning="accuracy if each answer counts as the option that is most similar to it by sentence embeddings, as in the "
    "paper; it never abstains, and is not the score",
    range=(0.0, 1.0),
    null="chance",
    shown=False,
)


def _measures() -> tuple[Measure, ...]:
    """Return the metric's measures, with the columns of single tasks and groups, and our own measures."""
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
            "meaning": f"{meaning}; it needs {NEEDS[task]}",
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
            meaning=f"groups right by drawing an option each time, for {KINDS[task]}",
            range=(0.0, 1.0),
            shown=False,
        )
        for task in TASKS
    ]
    measures = [replace(measure, **changes.get(measure.name, {})) for measure in METRIC.measures]
    return (*measures, *chances, _WITHOUT_LISTENING, _EMBEDDING_MATCH)


_TALLIES = (
    Tally(
        "By kind of question, with the timing that it needs",
        "kind of question",
        ("accuracy", "chance", "best constant text", "macro F1", "all of a group right", "chance of that"),
        {
            f"{KINDS[task]} ({NEEDS[task]})": tuple(
                prefix + task
                for prefix in ("", "chance_", "majority_", "macro_f1_", "groups_right_", "groups_right_chance_")
            )
            for task in TASKS
        },
    ),
    Tally(
        "Answers about concurrency, whatever Yes stands for",
        "truth",
        ("answer: something overlaps", "answer: nothing overlaps", "neither"),
        {
            "something overlaps": ("tp", "fn", "unparsed_overlap"),
            "nothing overlaps": ("fp", "tn", "unparsed_alone"),
        },
        {"something overlaps": 0, "nothing overlaps": 1},
    ),
    ORDERS_TALLY,
    Tally(
        "By the option most similar to the whole answer, as in the paper",
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


_BY_TASK = Drawing(
    name="tasks",
    title=(
        "Accuracy by kind of question with 95 % intervals. Timing: "
        + "; ".join(f"{KINDS[task]} needs {NEEDS[task]}" for task in TASKS).replace("needs no time", "needs none")
        + ". Dashed: chance. Dotted: the best constant text. Diamonds: groups, "
        "such as the counterparts of a scene, with every question of the task answered correctly. Grey ticks at the "
        f"right: the accuracies of five models as printed, not comparable. {PRINTED.sentence}"
    ),
    alternative="Bar chart of the accuracy in each kind of question with chance, the best constant text and the "
    "accuracies printed in the paper, one panel per model.",
    columns=("task", "score_correct"),
    panel=partial(draw_question_bars, bars=_BARS, printed=PRINTED),
    intervals=TASKS,
    y="share of questions",
)


class EmbeddingMatchSpec(AskingSpec):
    """The settings of the task."""

    embedding_match: str | None = Field(
        None,
        min_length=1,
        description="Also score by sentence embeddings, as in the paper: each answer counts as the option most "
        "similar to it by this sentence encoder, a folder or a Hub id. Reported in addition to the score; a result "
        "with it cannot be submitted.",
    )

    @model_validator(mode="after")
    def _is_written(self) -> EmbeddingMatchSpec:
        if self.embedding_match is not None and self.scoring != GENERATE:
            raise InputError(
                f"{EMBEDDING_MATCH} compares the texts that a model writes; with scoring {self.scoring!r} it writes "
                f"none. Set scoring to {GENERATE!r}"
            )
        return self


class PolybenchTask(QuestionTask):
    """The task; see `Task`."""

    spec = EmbeddingMatchSpec

    def measured(
        self, answers: Sequence[str], asked: Asked, settings: Mapping[str, Any], device: str
    ) -> dict[str, Any]:
        """See `QuestionTask.measured`; adds the embedding match if requested.

        Raises:
            ModelError: its encoder cannot be loaded.
        """
        # Imported here, so that a task loads its metric only in the process that scores; an encoder takes seconds.
        from audio_compositionality.metrics.polybench import embedding_match, polybench
        from audio_compositionality.metrics.questions import in_means

        given: dict[str, Any] = columns_of(asked) | {"tasks": [kind_of_row(row).replace("/", "_") for row, _ in asked]}
        polarity = [row["polarity"] for row, _ in asked]
        values = polybench(answers, **given, polarity=polarity, return_scores=True)
        by_task = values["by_task"]
        values |= {f"groups_right_chance_{name}": part["groups_right_chance"] for name, part in by_task.items()}
        ranked = [by_task[name] for name in in_means(by_task)]
        best = [max(part["chance"], part["majority"], part["best_position"]) for part in ranked]
        values["without_listening"] = float(np.mean(best))
        if EMBEDDING_MATCH in settings:
            from audio_compositionality.encoders.text_towers import SentenceEncoder

            encoder = SentenceEncoder(settings[EMBEDDING_MATCH], device)
            taken = embedding_match(answers, given["options"], encoder)
            values[EMBEDDING_MATCH] = polybench(taken, **given, parsed=True)["accuracy"]
        return values

    def sampled(
        self, tested: Sequence[Row], columns: dict[str, Floats], values: dict[str, Any]
    ) -> tuple[Sequence[Row], dict[str, Floats]]:
        """See `QuestionTask.sampled`; tasks count equally, and replaced ones not at all."""
        from audio_compositionality.metrics.columns import of_all
        from audio_compositionality.metrics.questions import in_means

        correct, task, groups = columns["score"], columns["task"].astype(np.int64), groups_of(tested)
        ranked = np.isin(task, [TASKS.index(name) for name in in_means(values["by_task"])])
        together = np.zeros(int(ranked.sum()), np.int64)
        return tested, {
            "score": of_all(mean_of_parts(correct[ranked], task[ranked]), ranked),
            "score_correct": correct,
            "score_group": of_all(all_right(correct[ranked], groups[ranked], together), ranked),
            "score_group_in_task": all_right(correct, groups, task),
            "task": columns["task"],
            "choice": columns["choice"],
        }


TASK = PolybenchTask(
    TaskInfo(
        **QUESTIONS,
        name="polybench",
        version=METRIC.version,
        title="PolyBench",
        question="Does an audio language model recognise how many sounds there are, which lasts longest, what overlaps "
        "what, and when?",
        benchmark="polybench",
        recipe="polybench",
        measures=_measures(),
        ranks_by="accuracy",
        trusted={"accuracy": "without_listening", "groups_right": "groups_right_chance"},
        warning=(
            "An accuracy alone is hard to interpret: compare it with the best constant answer, with the baseline "
            "blind, which learns from the words of questions alone, and with the same model given silence "
            "(without-audio:). An answer that names no option is wrong; if there are many of these (unparsed), look "
            "at what the model writes, or use its likelihoods (--set scoring=letters). Groups right is the strict "
            "score: for counterparts, whose answers differ only because labels changed places, all must be right; for "
            "recordings it depends on how many questions were asked about each. On recordings, classification tests "
            "which sounds occur more than when: present, which knows no times, answers nearly all of it. The baseline "
            "time-blind, which knows how much there is of each band but not when, is above chance in counting and "
            "duration, which need no timing: a score there does not show a sense of time, and in the mean over tasks "
            "counting together and the longest event replace them if they are asked. A model that scores as high with "
            "its clips in disorder (shuffled-audio:) has shown no sense of order."
        ),
        citation=METRIC.citation,
        printed=PRINTED,
        # Separate kinds; variants replace two of them if asked.
        **profiled_by("accuracy_micro", tallies=_TALLIES, parts=tuple(name for name in TASKS if KINDS[name] == name)),
    ),
    _BY_TASK,
    kinds=tuple(KINDS.values()),
)
