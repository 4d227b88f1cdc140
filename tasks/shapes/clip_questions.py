"""Questions with options about one or several clips, of any data, scored by the metric `audio_questions`.

Where data have kinds of questions of their own, `kind_questions` makes the task: each kind is a measure, and the worst.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from audio_compositionality.dataset_builder.data import PAUSE, DatasetError, Row
from audio_compositionality.encoders.options import REASON_TOKENS
from audio_compositionality.support.errors import InputError
from audio_compositionality.support.text import counted, nearest

from ..base import (
    Drawing,
    Floats,
    Inputs,
    Measure,
    Number,
    Outputs,
    Samples,
    Scores,
    ShownQuestion,
    TaskError,
    TaskInfo,
    events_shown,
    groups_of,
    settings_among,
)
from ..metric_files import describe_metric
from .asking import CYCLIC, AskingSpec, direct_prompt, question_prompt, shown_orders
from .questions import (
    NO_OPTION,
    ORDERS_TALLY,
    QUESTIONS,
    REFUSED,
    UNLIKE_GROUPS,
    AnswerTask,
    QuestionBar,
    all_right,
    asked_questions,
    draw_question_bars,
    profiled_by,
    tested_rows,
    usual_choices,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes

METRIC = describe_metric("audio_questions")

WITHOUT_SOUND = {
    "without-audio:": "itself without sound",
    "noise-audio:": "itself on noise",
    "other-audio:": "itself on another clip",
}
"""Controls without the clip that is asked about, in words."""

FRAGMENTS = ("fragment-audio:", "first-fragment-audio:", "loudest-fragment-audio:")
"""Controls with a quarter of it."""

NO_KIND = "all"
"""Name of the kind of a question without one."""


CLIP_QUESTIONS: dict[str, Any] = QUESTIONS | {
    "controls": ("first", "longest", "majority", "blind", *WITHOUT_SOUND, *FRAGMENTS, "shuffled-audio:"),
    "ability": "listen",
    "described_by": ("blind",),  # who is below a description of the sound may listen all the same
    # Who refuses without sound gains nothing.
    "bars": {name: words for name, words in WITHOUT_SOUND.items() if name != QUESTIONS["twin"][0]},
}
"""Facts of the tasks of questions of stated kinds, or of none."""

MEASURES = tuple(
    replace(measure, column="score_group", outside=UNLIKE_GROUPS) if measure.name == "groups_right" else measure
    for measure in METRIC.measures
)
"""The metric's measures; a group, such as all questions about a clip, counts the same whatever its size."""


def profiled_by_kinds(parts: tuple[str, ...] = ()) -> dict[str, Any]:
    """Facts of a task whose samples are told apart by accuracy, by kind of question, number of options and length."""
    groupings = ("kind", "options", "seconds", "clips")
    return profiled_by("accuracy", tallies=(ORDERS_TALLY,), groupings=groupings, heard_from="kind", parts=parts)


_BARS = (
    QuestionBar("accuracy", "all questions", chance="chance", majority="without_listening"),
    QuestionBar("groups_right", "groups all right", chance="groups_right_chance"),
)


def draw_accuracy(axes: Axes, columns: Mapping[str, Floats], measures: Mapping[str, Number]) -> None:
    """Draw one model's accuracy and groups that are all right; see `draw_question_bars`."""
    draw_question_bars(axes, columns, measures, _BARS)


ACCURACY_DRAWING = Drawing(
    name="questions",
    title=(
        "Share of questions that are answered rightly, and of groups, such as all questions about a clip, that are all "
        "right, with 95 % intervals. Dashed: chance. Dotted: the best constant answer."
    ),
    alternative="Bars of the accuracy and of groups that are all right with chance and the best constant answer, a "
    "panel a model.",
    columns=("score",),
    panel=draw_accuracy,
    intervals=("accuracy", "groups_right"),
    y="share of questions",
)


class ClipQuestionTask(AnswerTask):
    """A task of questions about one or several clips; see `Task`."""

    def check(self, row: Row) -> None:
        """See `AnswerTask.check`."""
        try:
            direct_prompt(row["question"], row["options"])
        except (DatasetError, InputError) as error:
            raise TaskError(f"{self.info.name}: the question {row['id']} cannot be asked: {error}") from error

    def inputs(self, row: Row, settings: Mapping[str, Any]) -> Inputs:
        """The clips of a question, and the question as a prompt for each order of its options."""
        how = settings_among(AskingSpec, settings)
        orders = shown_orders(row["options"], how.orders)
        clips = tuple(f"audio/{place}" for place in range(len(row["files"])))
        return Inputs(
            clips=clips * len(orders),
            prompts=tuple(question_prompt(row["question"], options, how.prompt) for options in orders),
            options=tuple(orders),
            scoring=how.scoring,
            new_tokens=REASON_TOKENS if how.style.reasons else None,
            cuts=True,
        )

    def score(
        self, rows: Sequence[Row], outputs: Outputs, settings: Mapping[str, Any], device: str, progress: bool
    ) -> Scores:
        """Score the answers to the questions, each asked in every order of its options."""
        # Imported by need: a task loads its metric only in the process that scores.
        from audio_compositionality.metrics.answers import REFUSED as REFUSALS
        from audio_compositionality.metrics.audio_questions import audio_questions

        tested = tested_rows(rows)
        asked = asked_questions(tested, settings)
        values = audio_questions(
            list(outputs.answers),
            [row["answer"] for row, _ in asked],
            [list(options) for _, options in asked],
            kinds=[row["kind"] or NO_KIND for row, _ in asked],
            ids=[row["id"] for row, _ in asked] if settings_among(AskingSpec, settings).orders == CYCLIC else None,
            groups=[row["group"] for row, _ in asked],
            return_scores=True,
        )
        missed = [REFUSED if rule in REFUSALS else NO_OPTION for rule in values["rules"]]
        taken = [
            no if choice is None else row["options"].index(options[choice])
            for choice, no, (row, options) in zip(values["choices"], missed, asked, strict=True)
        ]
        correct = np.array(values["scores"], np.float64)
        columns: dict[str, Floats] = {
            "score": correct,
            "score_group": all_right(correct, groups_of(tested), np.zeros(len(tested), np.int64)),
            "choice": np.array(usual_choices([row["id"] for row, _ in asked], taken), np.float64),
        }
        measures = {measure.name: values.get(measure.name) for measure in self.info.measures}
        return Scores(measures, tuple(row["id"] for row in tested), columns)

    def samples(self, rows: Sequence[Row]) -> Samples:
        """The questions; those of a group, by default about the same clips, or of a ``pair`` belong together."""
        tested = tested_rows(rows)
        is_paired = all(row.get("pair") for row in tested)
        chance = [1 / len(row["options"]) for row in tested]
        groups = {
            "kind": tuple(row["kind"] or NO_KIND for row in tested),
            "options": tuple(f"{len(row['options'])} options" for row in tested),
            "seconds": tuple(_length(row["duration"]) for row in tested),
            "clips": tuple(counted(len(row["files"]), "clip") for row in tested),
        }
        return Samples(
            rows=tested,
            clusters=groups_of(tested, "pair" if is_paired else "group"),
            clustered_by="their sounds" if is_paired else "the group: by default the clips that are asked about",
            groups={name: labels for name, labels in groups.items() if len(set(labels)) > 1 or name == "kind"},
            contents=tuple(map(_heard_in if is_paired else _files_of, tested)),
            asked=tuple(ShownQuestion(row["question"], tuple(row["options"]), row["answer"]) for row in tested),
            without_listening={"chance": lambda places: float(np.mean([chance[place] for place in places]))},
        )


def _files_of(row: Row) -> dict[str, list[dict[str, str]]]:
    """The files of the clips."""
    return {f"audio/{n}": [{"file": file}] for n, file in enumerate(row["files"])}


def _heard_in(row: Row) -> dict[str, list[dict[str, str]]]:
    """The events of each clip of a drawn question, see `asked_row`."""
    count = len(row["files"])
    seconds = row["duration"] / count
    clips: list[list[dict[str, Any]]] = [[] for _ in range(count)]
    for event in row["events"]:
        place = min(int(event["onset"] // (seconds + PAUSE)), count - 1)
        start = place * (seconds + PAUSE)
        times = {"start": event["onset"] - start, "stop": event["offset"] - start}
        clips[place].append({"label": event["label"], **times})
    return {f"audio/{n}": events_shown(events) for n, events in enumerate(clips)}


_LENGTHS = (5, 10, 30, 60)


def _length(seconds: float | None) -> str:
    if seconds is None:
        return "unknown length"
    return next((f"up to {most} s" for most in _LENGTHS if seconds <= most), f"over {_LENGTHS[-1]} s")


def _kind_measures(kinds: Sequence[str]) -> tuple[Measure, ...]:
    """The accuracy of each kind of question and of the worst, each with its chance."""
    share = (0.0, 1.0)
    measures = [
        Measure(
            "worst_kind",
            "worst kind",
            "share of questions answered correctly, of the kind in which least is gained over chance",
            range=share,
            null="chance_worst_kind",
            column="score_worst_kind",
            outside="Scores of single questions are weighted, so that only the worst kind counts.",
        ),
        Measure("chance_worst_kind", "chance of the worst kind", "chance in that kind", range=share, shown=False),
    ]
    for place, kind in enumerate(kinds):
        words = kind.replace("_", " ")
        measures += [
            Measure(
                f"accuracy_{kind}",
                words,
                f"share of questions answered correctly, of the kind {words}",
                range=share,
                null=f"chance_{kind}",
                column="score",
                within=("kind", float(place)),
            ),
            Measure(
                f"chance_{kind}",
                f"chance of {words}",
                f"accuracy of drawing an option, {words}",
                range=share,
                shown=False,
            ),
        ]
    return tuple(measures)


class KindQuestionTask(ClipQuestionTask):
    """Questions of stated kinds: each kind has a measure of its own, and the worst one; see `kind_questions`."""

    def __init__(self, info: TaskInfo, kinds: Sequence[str]) -> None:
        """Its facts, and the kinds that rows may have."""
        super().__init__(info, ACCURACY_DRAWING)
        self._kinds = tuple(kinds)

    def check(self, row: Row) -> None:
        """See `AnswerTask.check`."""
        super().check(row)
        if row["kind"] not in self._kinds:
            raise TaskError(
                f"{self.info.name}: the question {row['id']} is of the kind {row['kind']!r}; "
                f"{nearest(row['kind'], self._kinds)}"
            )

    def score(
        self, rows: Sequence[Row], outputs: Outputs, settings: Mapping[str, Any], device: str, progress: bool
    ) -> Scores:
        """Score the answers to the questions, of all kinds, of each and of the worst."""
        # Imported by need, as the metric is.
        from audio_compositionality.metrics.columns import of_all

        scores = super().score(rows, outputs, settings, device, progress)
        tested, correct = tested_rows(rows), scores.columns["score"]
        kind = np.array([self._kinds.index(row["kind"]) for row in tested])
        chance = np.array([1 / len(row["options"]) for row in tested])
        shares = {
            place: (float(correct[kind == place].mean()), float(chance[kind == place].mean())) for place in set(kind)
        }
        worst = min(shares, key=lambda place: ((shares[place][0] - shares[place][1]) / (1 - shares[place][1]), place))
        measures = dict(scores.measures)
        for place, name in enumerate(self._kinds):
            measures[f"accuracy_{name}"], measures[f"chance_{name}"] = shares.get(place, (None, None))
        measures["worst_kind"], measures["chance_worst_kind"] = shares[worst]
        columns = {
            **scores.columns,
            "kind": kind.astype(np.float64),
            "score_worst_kind": of_all(correct[kind == worst], kind == worst),
        }
        return replace(scores, measures={one.name: measures[one.name] for one in self.info.measures}, columns=columns)


def kind_questions(
    name: str,
    title: str,
    question: str,
    kinds: Sequence[str],
    warning: str,
    *,
    ranks_by: str = "accuracy",
    captions: Mapping[str, str] | None = None,
) -> KindQuestionTask:
    """The task of a recipe of the same name, whose rows are questions of stated kinds.

    Args:
        name: of the task and its recipe.
        title: for people.
        question: what it asks of a model.
        kinds: of questions; words joined by underscores.
        warning: see `TaskInfo`.
        ranks_by: ``accuracy``, ``groups_right`` or ``worst_kind``.
        captions: see `TaskInfo`; by default of one clip.
    """
    nulls = {"accuracy": "without_listening", "groups_right": "groups_right_chance", "worst_kind": "chance_worst_kind"}
    info = TaskInfo(
        **CLIP_QUESTIONS | {"captions": captions or QUESTIONS["captions"]},
        name=name,
        version=METRIC.version,
        title=title,
        question=question,
        benchmark="kinds",
        recipe=name,
        measures=(*MEASURES, *_kind_measures(kinds)),
        ranks_by=ranks_by,
        trusted={one: nulls[one] for one in dict.fromkeys((ranks_by, "accuracy"))},
        warning=warning,
        citation=METRIC.citation,
        **profiled_by_kinds(parts=tuple(f"accuracy_{kind}" for kind in kinds)),
    )
    return KindQuestionTask(info, kinds)
