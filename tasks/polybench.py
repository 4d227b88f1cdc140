"""PolyBench: are questions about sounds that overlap answered: how many, which longest, whether, what, when?

What of time each kind of question needs is said where the kinds are, in `questions`: those that need none are answered
in part by who knows what sounds how much (`time-blind`), and stand beside the score where another asks the same with
time."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from pydantic import Field, model_validator

from audio_compositionality.dataset_builder.data import DatasetError, Row
from audio_compositionality.dataset_builder.texts.questions import CLIP, check_question_row
from audio_compositionality.encoders.base import LANGUAGE_MODEL
from audio_compositionality.encoders.options import REASON_TOKENS
from audio_compositionality.support.errors import InputError
from audio_compositionality.support.text import nearest

from .base import (
    GENERATE,
    Drawing,
    Floats,
    Inputs,
    Measure,
    Number,
    Outputs,
    Samples,
    Scores,
    TaskError,
    TaskInfo,
    settings_among,
)
from .embedding_match import embedding_accuracy
from .printed import printed_figures
from .profiles import Asked, Profile, Tally
from .question_bars import QuestionBar, draw_question_bars
from .question_kinds import KINDS, METRIC, TASKS, kind_of_row, kind_with_needs, needs_of, task_of
from .question_prompts import CYCLIC, direct_prompt, question_prompt, shown_orders
from .question_scores import all_right, constant_answers, mean_of_parts, of_all, overlap_quartiles, usual_choices
from .question_settings import AskingSpec

if TYPE_CHECKING:
    from matplotlib.axes import Axes

UNPARSED, REFUSED = -1, -2
"""In the column ``choice``, where no option was taken."""

LEAST_OF_A_WORDING = 10
"""Questions of each wording, on average, from which on scores are told apart by wording."""

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
"""The setting that names an encoder of sentences, and the measure that it gives."""

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
    """The metric's measures, with the columns that those of single tasks and of groups are means of; and our own."""
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


_PROFILE = Profile(
    measure="accuracy_micro",
    groupings=("task", "polyphony", "overlap"),
    shares=(("unparsed", "answers"), ("refused", "answers")),
    tallies=(
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
        Tally(
            "Every question under all cyclic orders of its options",
            "questions",
            ("the same answer in two orders", "chance", "right in all orders", "chance of that", "position habit"),
            {
                "all": (
                    "consistency",
                    "consistency_chance",
                    "all_orders_right",
                    "all_orders_right_chance",
                    "position_distance",
                )
            },
            needs="consistency",
        ),
        Tally(
            "By the option that is most similar to the whole answer, as the paper matches",
            "questions",
            ("accuracy by embedding match", "accuracy by the rules", "chance"),
            {"all": (EMBEDDING_MATCH, "accuracy", "chance")},
            needs=EMBEDDING_MATCH,
        ),
    ),
    choices="choice",
    no_choice={UNPARSED: "names no option", REFUSED: "refuses to answer"},
    heard_from="task",
    # Kinds of their own; variants take the place of two of them where they are asked.
    parts=tuple(name for name in TASKS if KINDS[name] == name),
)

PRINTED = printed_figures("polybench")
"""What the paper prints of the five tasks."""

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
        "such as the twins of a scene, of which every question of the task is answered rightly. Grey ticks on the "
        f"right of a bar: the accuracies of five models as printed, not comparable. {PRINTED.sentence}"
    ),
    alternative="Bars of the accuracy in each kind of question with chance, the best constant text and the accuracies "
    "that the paper prints, a panel a model.",
    columns=("task", "score_correct"),
    panel=draw_tasks,
    intervals=TASKS,
    y="share of questions",
)


class PolybenchSpec(AskingSpec):
    """What can be set of the task."""

    embedding_match: str | None = Field(
        None,
        min_length=1,
        description="Also score by sentence embeddings, as the paper matches: each answer counts as the option most "
        "similar to it by this encoder of sentences, a folder or a Hub id; it stands beside the score, and a result "
        "that has it is not submitted.",
    )

    @model_validator(mode="after")
    def _is_written(self) -> PolybenchSpec:
        if self.embedding_match is not None and self.scoring != GENERATE:
            raise InputError(
                f"{EMBEDDING_MATCH} compares what a model writes, and the scoring {self.scoring!r} has it write "
                f"nothing: take the scoring {GENERATE!r}"
            )
        return self


class Polybench:
    """The task; see `Task`."""

    info = TaskInfo(
        name="polybench",
        version=METRIC.version,
        title="PolyBench",
        question="Does an audio language model hear how many sounds there are, which lasts longest, and what overlaps "
        "what, and when?",
        benchmark="polybench",
        recipe="polybench",
        needs=LANGUAGE_MODEL,
        samples="questions",
        measures=_measures(),
        ranks_by="accuracy",
        trusted={"accuracy": "without_listening", "groups_right": "groups_right_chance"},
        floor="the best that needs no listening",
        twin=("without-audio:", "the same model without sound"),
        captions={CLIP: "the clip that is asked about"},
        heard_by="accuracy_micro",
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
            "with its clips in disorder (shuffled-audio:) has not shown that it hears an order."
        ),
        citation=METRIC.citation,
        on_request=True,
        controls=(
            *(
                "first",
                "longest",
                "majority",
                "blind",
                "statistics",
                "time-blind",
                "order-blind",
                "present",
                "oracle",
                "cascade",
            ),
            *("without-audio:", "shuffled-audio:", "events-as-text:"),
        ),
        is_level_matched=True,
        profile=_PROFILE,
        printed=PRINTED,
        choices=AskingSpec().values(),
    )
    spec: type[AskingSpec] = PolybenchSpec
    drawings: tuple[Drawing, ...] = (_BY_TASK,)

    def inputs(self, row: Row, settings: Mapping[str, Any]) -> Inputs:
        """The clip of a test question, and the question as a prompt for each order of its options; nothing of one to
        learn from."""
        if row["split"] != "test":
            return Inputs()
        how = settings_among(AskingSpec, settings)
        orders = shown_orders(row["options"], how.orders)
        return Inputs(
            clips=(CLIP,) * len(orders),
            prompts=tuple(question_prompt(row["question"], options, how.prompt) for options in orders),
            options=tuple(orders),
            scoring=how.scoring,
            new_tokens=REASON_TOKENS if how.style.reasons else None,
        )

    def settings(self, rows: Sequence[Row], requested: Mapping[str, Any]) -> dict[str, Any]:
        """How questions are put in words, in which orders of their options, and how answers are taken.

        Raises:
            TaskError: there are no questions to test by, or one cannot be asked.
            InputError: a requested setting is not one of `spec`.
        """
        how = settings_among(self.spec, requested)
        tested = _tested(rows)
        if not tested:
            raise TaskError(f"{self.info.name} has no questions of the split test; it needs at least one")
        for row in tested:
            _check(row)
        return how.stored

    def score(
        self, rows: Sequence[Row], outputs: Outputs, settings: Mapping[str, Any], device: str, progress: bool
    ) -> Scores:
        """Score the answers to the questions of the split test, of each one for every order of its options."""
        # Importing the metric imports `evaluate`, which takes seconds that only the process that scores has to spend.
        from audio_compositionality.metrics.answers import REFUSED as REFUSALS
        from audio_compositionality.metrics.polybench import polybench
        from audio_compositionality.metrics.questions import in_means

        tested = _tested(rows)
        orders = settings_among(AskingSpec, settings).orders
        asked = [(row, options) for row in tested for options in shown_orders(row["options"], orders)]
        values = polybench(
            list(outputs.answers),
            [row["answer"] for row, _ in asked],
            [options for _, options in asked],
            [task_of(row) for row, _ in asked],
            ids=[row["id"] for row, _ in asked] if orders == CYCLIC else None,
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
        missed = [REFUSED if rule in REFUSALS else UNPARSED for rule in values["rules"]]
        # Of options that were turned, the place that they have in the row.
        taken = [
            no if choice is None else row["options"].index(options[choice])
            for choice, no, (row, options) in zip(values["choices"], missed, asked, strict=True)
        ]
        correct, task = np.array(values["scores_correct"], np.float64), _task_places(tested)
        groups, ranked = _groups(tested), np.isin(task, [TASKS.index(name) for name in in_means(by_task)])
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

    def samples(self, rows: Sequence[Row]) -> Samples:
        """The questions of the split test; those of a group, be it twins or one recording, belong together."""
        tested = _tested(rows)
        groups = {
            "task": tuple(kind_of_row(row) for row in tested),
            "polyphony": tuple(str(row["polyphony"]) for row in tested),
            "overlap": overlap_quartiles([row["overlap"] for row in tested]),
            "variant": tuple(f"{row['task']}, {row['variant']}" for row in tested),
            "source": tuple(row["source"] for row in tested),
            "wording": tuple(row["template"] for row in tested),
        }
        tasks = len(set(groups["task"]))
        if len(set(groups["variant"])) == tasks:
            del groups["variant"]
        if len(tested) < LEAST_OF_A_WORDING * len(set(groups["wording"])):
            del groups["wording"]
        return Samples(
            rows=tested,
            clusters=_groups(tested),
            clustered_by="the group, twins or questions about one recording",
            groups={name: labels for name, labels in groups.items() if len(set(labels)) > 1 or name == "task"},
            contents=tuple(_contents(row) for row in tested),
            asked=tuple(Asked(row["question"], tuple(row["options"]), row["answer"]) for row in tested),
            without_listening={
                "chance": lambda places: float(np.mean([1 / len(tested[k]["options"]) for k in places])),
                # Of these alone: who always says 1 is right wherever one sound is heard.
                "the best constant answer": lambda places: constant_answers([tested[k] for k in places]),
            },
        )


def _tested(rows: Sequence[Row]) -> tuple[Row, ...]:
    return tuple(row for row in rows if row["split"] == "test")


def _check(row: Row) -> None:
    """Refuse a question that cannot be asked or scored."""
    try:
        check_question_row(row)
        direct_prompt(row["question"], row["options"])
    except (DatasetError, InputError) as error:
        raise TaskError(f"polybench: the question {row['id']} cannot be asked: {error}") from error
    if row["task"] not in TASKS:
        raise TaskError(
            f"polybench: the question {row['id']} is of the task {row['task']!r}; {nearest(row['task'], TASKS)}"
        )
    if row["task"] == "concurrency" and sorted(row["options"]) != ["No", "Yes"]:
        raise TaskError(
            f"polybench: the options of {row['id']} are {row['options']}; of concurrency they are Yes and No"
        )


def _task_places(rows: Sequence[Row]) -> NDArray[np.int64]:
    return np.array([TASKS.index(task_of(row)) for row in rows], np.int64)


def _groups(rows: Sequence[Row]) -> NDArray[np.int64]:
    """A number for each question, [n], equal for those of one group."""
    return np.unique([row["group"] for row in rows], return_inverse=True)[1].astype(np.int64)


def _contents(row: Row) -> dict[str, list[dict[str, str]]]:
    """What sounds when, for people, in the order of the onsets."""
    events = sorted(row["events"], key=lambda event: (event["onset"], event["offset"]))
    return {
        CLIP: [
            {"sound": event["label"], "from (s)": f"{event['onset']:.2f}", "to (s)": f"{event['offset']:.2f}"}
            for event in events
        ]
    }


TASK = Polybench()
