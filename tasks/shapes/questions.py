"""Questions with options about one or several clips: how they are asked, and their scores, samples and figures.

`QuestionTask` is the task of them all; rows come from a scene with variants or an annotated recording, see
`texts.questions`, or from any table of questions, see `recipes.question_rows`. For a table with its own kinds of
questions, `kind_questions` makes the task: each kind is a measure, and the worst is another.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from audio_compositionality.dataset_builder.data import PAUSE, DatasetError, Row
from audio_compositionality.dataset_builder.texts.questions import CLIP, NO, YES, check_question_row
from audio_compositionality.encoders.base import LANGUAGE_MODEL
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
    Printed,
    Profile,
    Samples,
    Scores,
    ShownQuestion,
    Tally,
    TaskError,
    TaskInfo,
    events_shown,
    groups_of,
    settings_among,
)
from ..metric_files import describe_metric
from .asking import AskingSpec, direct_prompt, question_prompt, shown_orders

if TYPE_CHECKING:
    from matplotlib.axes import Axes

METRIC = describe_metric("audio_questions")

NO_OPTION, REFUSED = -1, -2
"""Value of the column ``choice`` if no option was taken."""

LEAST_OF_A_WORDING = 10
"""Smallest mean number of questions per wording for which scores are grouped by wording."""

NO_KIND = "all"
"""Name of the kind of a question without one."""

VARIANTS = ("counting/together", "duration/longest")
"""Variants of the tasks of `texts.questions` that are separate kinds, since they require a sense of time."""

YES_OR_NO = ("concurrency", "presence", "sequence")
"""Kinds of questions whose options are Yes and No."""

UNLIKE_GROUPS = "Scores of single questions are weighted, so that groups count equally."

ORDERS_TALLY = Tally(
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
)
"""How answers change if the options of a question are shown in another order."""

COUNTED = tuple(measure for measure in METRIC.measures if measure.name in ("answers", "unparsed", "refused"))
"""Measures that count answers."""

QUESTIONS: dict[str, Any] = {
    "needs": LANGUAGE_MODEL,
    "samples": "questions",
    "captions": {CLIP: "the clip in question"},
    "on_request": True,
    "controls": (
        *("first", "longest", "majority", "blind", "statistics", "time-blind", "order-blind", "present", "oracle"),
        *("cascade", "without-audio:", "shuffled-audio:", "events-as-text:"),
    ),
    "is_level_matched": True,
    "trivial": "the best without listening",  # a constant answer needs no sound at all
    "twin": ("without-audio:", "the same model without sound"),  # an untrained language model cannot answer
    # The acoustic and text baselines include questions alone and sound without time.
    "optional_baselines": {"shuffled-audio:": "itself on shuffled stretches of sound"},
    "choices": AskingSpec().values(),
}
"""Facts of the tasks of questions with options; see `TaskInfo`."""

CLIP_QUESTIONS: dict[str, Any] = QUESTIONS | {
    "controls": (
        *("first", "longest", "majority", "blind", "without-audio:", "noise-audio:", "other-audio:"),
        *("fragment-audio:", "first-fragment-audio:", "loudest-fragment-audio:", "shuffled-audio:"),
    ),
    "ability": "listen",
    "described_by": ("blind",),  # a model below an acoustic baseline may still use the sound
    "optional_baselines": {"noise-audio:": "itself on noise", "other-audio:": "itself on another clip"},
}
"""Facts of the tasks of tables of questions, with or without stated kinds."""

MEASURES = tuple(
    replace(measure, column="score_group", outside=UNLIKE_GROUPS) if measure.name == "groups_right" else measure
    for measure in METRIC.measures
)
"""The metric's measures; a group, such as all questions about a clip, counts equally whatever its size."""


def profiled_by(measure: str, **more: Any) -> dict[str, Any]:
    """Return facts of a task of questions with a profile by a measure.

    The profile has scores by kind of question, polyphony and overlap, and the answers given; ``more`` are fields of
    `Profile`.
    """
    profile = Profile(
        measure,
        groupings=("task", "polyphony", "overlap"),
        shares=(("unparsed", "answers"), ("refused", "answers")),
        choices="choice",
        no_choice={NO_OPTION: "names no option", REFUSED: "refuses to answer"},
        heard_from="task",
    )
    return {"heard_by": measure, "profile": replace(profile, **more)}


def profiled_by_kinds(parts: tuple[str, ...] = ()) -> dict[str, Any]:
    """Return facts with a profile for a table of questions, by kind, number of options, length and clips."""
    groupings = ("kind", "options", "seconds", "clips")
    return profiled_by("accuracy", tallies=(ORDERS_TALLY,), groupings=groupings, heard_from="kind", parts=parts)


Asked = Sequence[tuple[Row, tuple[str, ...]]]
"""Each question with its options, in each order in which it is asked."""


class QuestionTask:
    """A task of questions with options; see `Task`."""

    spec: type[AskingSpec] = AskingSpec

    def __init__(self, info: TaskInfo, *drawings: Drawing, kinds: Sequence[str] = ()) -> None:
        """Store the facts, the figures, and the kinds of questions; none if any kind is allowed."""
        self.info, self.drawings, self.kinds = info, drawings, tuple(kinds)

    def inputs(self, row: Row, settings: Mapping[str, Any]) -> Inputs:
        """Return the clips of a test question, and a prompt for each order of its options.

        A training question has no inputs.
        """
        if row["split"] != "test":
            return Inputs()
        how = settings_among(AskingSpec, settings)
        orders = shown_orders(row["options"], how.orders)
        of_table = "files" in row
        clips = tuple(f"audio/{place}" for place in range(len(row["files"]))) if of_table else (CLIP,)
        return Inputs(
            clips=clips * len(orders),
            prompts=tuple(question_prompt(row["question"], options, how.prompt) for options in orders),
            options=tuple(orders),
            scoring=how.scoring,
            new_tokens=REASON_TOKENS if how.style.reasons else None,
            cuts=of_table,
        )

    def settings(self, rows: Sequence[Row], requested: Mapping[str, Any]) -> dict[str, Any]:
        """Return the words of prompts, the orders of options, and the scoring of answers.

        Raises:
            TaskError: there are no test questions, or one cannot be asked.
            InputError: a requested setting is invalid for `spec`.
        """
        how = settings_among(self.spec, requested)
        tested = tested_rows(rows)
        if not tested:
            raise TaskError(f"{self.info.name} has no questions in the split test; at least one is needed")
        for row in tested:
            self.check(row)
        return how.stored

    def check(self, row: Row) -> None:
        """Raise TaskError if a question cannot be asked or scored.

        Raises:
            TaskError: its row is incomplete, its words make no prompt, or its kind does not belong to the task.
        """
        name = f"{self.info.name}: the question {row['id']}"
        try:
            if "files" not in row:
                check_question_row(row)
            direct_prompt(row["question"], row["options"])
        except (DatasetError, InputError) as error:
            raise TaskError(f"{name} cannot be asked: {error}") from error
        kind = kind_of_row(row)
        if self.kinds and kind not in self.kinds:
            raise TaskError(f"{name} is of the kind {kind!r}; {nearest(kind, self.kinds)}")
        if kind in YES_OR_NO and "files" not in row and sorted(row["options"]) != [NO, YES]:
            raise TaskError(f"{name} has the options {row['options']}; they must be Yes and No")

    def score(
        self, rows: Sequence[Row], outputs: Outputs, settings: Mapping[str, Any], device: str, progress: bool
    ) -> Scores:
        """Score the answers to the test questions, each asked in every order of its options."""
        # Imported here, so that a task loads its metric only in the process that scores.
        from audio_compositionality.metrics.answers import REFUSED as REFUSALS

        tested, orders = tested_rows(rows), settings_among(AskingSpec, settings).orders
        asked = [(row, options) for row in tested for options in shown_orders(row["options"], orders)]
        values = self.measured(list(outputs.answers), asked, settings, device)
        # Map positions of rotated options to their positions in the row.
        taken: dict[str, list[int]] = {}
        for choice, rule, (row, options) in zip(values["choices"], values["rules"], asked, strict=True):
            missed = REFUSED if rule in REFUSALS else NO_OPTION
            place = missed if choice is None else row["options"].index(options[choice])
            taken.setdefault(row["id"], []).append(place)
        correct = np.array(values["scores_correct"], np.float64)
        columns: dict[str, Floats] = {
            "score": correct,
            "score_group": all_right(correct, groups_of(tested), np.zeros(len(tested), np.int64)),
            # The most frequent choice among the orders of a question; the first in a tie.
            "choice": np.array([Counter(places).most_common(1)[0][0] for places in taken.values()], np.float64),
        }
        if self.kinds:
            kinds = [float(self.kinds.index(kind_of_row(row))) for row in tested]
            columns["kind" if "files" in tested[0] else "task"] = np.array(kinds)
        samples, columns = self.sampled(tested, columns, values)
        measures: dict[str, Number] = {}
        for measure in self.info.measures:
            measures[measure.name] = values.get(measure.name)
            if measure.column is not None:
                of_measure = columns[measure.column][measure.places(columns)]
                measures[measure.name] = float(of_measure.mean()) if len(of_measure) else None
        return Scores(measures, tuple(row["id"] for row in samples), columns)

    def measured(
        self, answers: Sequence[str], asked: Asked, settings: Mapping[str, Any], device: str
    ) -> dict[str, Any]:
        """Return the metric's numbers, scores, choices and rules for answers to questions."""
        from audio_compositionality.metrics.audio_questions import audio_questions

        columns: dict[str, Any] = columns_of(asked)
        values = audio_questions(answers, kinds=[kind_of_row(row) for row, _ in asked], **columns, return_scores=True)
        chances = {f"chance_{kind}": part["chance"] for kind, part in values["by_kind"].items()}
        return values | chances | {"scores_correct": values["scores"]}

    def sampled(
        self, tested: Sequence[Row], columns: dict[str, Floats], values: dict[str, Any]
    ) -> tuple[Sequence[Row], dict[str, Floats]]:
        """Return the samples and their columns, from the test questions, their answers and the metric's numbers."""
        return tested, columns

    def samples(self, rows: Sequence[Row]) -> Samples:
        """Return the test questions.

        Questions of a group form a cluster: about counterparts, one recording or the same clips.
        """
        tested = tested_rows(rows)
        chance = [1 / len(row["options"]) for row in tested]
        kinds = tuple(kind_of_row(row) for row in tested)
        without_listening = {"chance": lambda places: float(np.mean([chance[place] for place in places]))}
        column, by = "group", "the group, counterparts or questions about one recording"
        if any("files" in row for row in tested):
            groups = {
                "kind": kinds,
                "options": tuple(f"{len(row['options'])} options" for row in tested),
                "seconds": tuple(_length(row["duration"]) for row in tested),
                "clips": tuple(counted(len(row["files"]), "clip") for row in tested),
            }
            by = "the group: by default the clips in question"
            if all(row.get("pair") for row in tested):
                column, by = "pair", "their sounds"
        else:
            groups = {
                "task": kinds,
                "polyphony": tuple(str(row["polyphony"]) for row in tested),
                "overlap": overlap_quartiles([row["overlap"] for row in tested]),
                "variant": tuple(f"{row['task']}, {row['variant']}" for row in tested),
                "source": tuple(row["source"] for row in tested),
                "wording": tuple(row["template"] for row in tested),
            }
            if len(set(groups["variant"])) == len(set(kinds)):
                del groups["variant"]
            if len(tested) < LEAST_OF_A_WORDING * len(set(groups["wording"])):
                del groups["wording"]
            # Only for these tasks: the constant answer 1 is right if one sound is present.
            without_listening["the best constant answer"] = lambda places: constant_answers(
                [tested[place] for place in places]
            )
        return Samples(
            rows=tested,
            clusters=groups_of(tested, column),
            clustered_by=by,
            groups={
                name: labels for name, labels in groups.items() if len(set(labels)) > 1 or name in ("kind", "task")
            },
            contents=tuple(_contents(row, column == "pair") for row in tested),
            asked=tuple(ShownQuestion(row["question"], tuple(row["options"]), row["answer"]) for row in tested),
            without_listening=without_listening,
        )


def tested_rows(rows: Sequence[Row]) -> tuple[Row, ...]:
    """Return the questions of the split test."""
    return tuple(row for row in rows if row["split"] == "test")


def kind_of_row(row: Row) -> str:
    """Return the kind of question of a row.

    For a table it is its kind, or `NO_KIND`; else its task, with the variant if that is a separate kind.
    """
    if "task" not in row:
        return str(row.get("kind") or NO_KIND)
    name = f"{row['task']}/{row['variant']}"
    return name if name in VARIANTS else str(row["task"])


def columns_of(asked: Asked) -> dict[str, list[Any]]:
    """Return the arguments that all question metrics share, for each question and each order of its options."""
    return {
        "references": [row["answer"] for row, _ in asked],
        "options": [list(options) for _, options in asked],
        "ids": [row["id"] for row, _ in asked],
        "groups": [row["group"] for row, _ in asked],
    }


def mean_of_parts(correct: Floats, parts: NDArray[np.int64]) -> Floats:
    """Return scores, [n], whose mean is the mean over parts of the share of right answers.

    A score is that mean plus the question's deviation from the share of its part, weighted so that parts count equally.

    Plainly weighted scores have the same mean, but it would vary with the number of questions of each part in a
    bootstrap draw, and the interval of an always right model would not be 1.
    """
    sizes = np.bincount(parts)
    shares = np.bincount(parts, correct) / np.maximum(sizes, 1)
    count = int((sizes > 0).sum())
    scores: Floats = shares.sum() / count + len(parts) / (count * sizes[parts]) * (correct - shares[parts])
    return scores


def all_right(correct: Floats, groups: NDArray[np.int64], parts: NDArray[np.int64]) -> Floats:
    """Return scores, [n], whose mean over the questions of a part is the share of its groups that are all right.

    A score is that share plus the group's deviation from it, weighted so that groups count equally; see
    `mean_of_parts`.
    """
    scores = np.zeros(len(correct))
    for part in np.unique(parts):
        members = np.flatnonzero(parts == part)
        numbers = np.unique(groups[members], return_inverse=True)[1].reshape(-1)
        is_right, sizes = np.bincount(numbers, correct[members] < 1) == 0, np.bincount(numbers)
        share, weights = is_right.mean(), len(members) / (len(sizes) * sizes)
        scores[members] = (share + weights * (is_right - share))[numbers]
    return scores


def constant_answers(rows: Sequence[Row]) -> float:
    """Return the share of questions answered correctly by the best constant.

    The constant is the text, or the position, that is right most often in a task, chosen with knowledge of all answers.
    """
    right = 0
    for task in dict.fromkeys(row["task"] for row in rows):
        answers = [(row["answer"], row["options"].index(row["answer"])) for row in rows if row["task"] == task]
        right += max(max(Counter(values).values()) for values in zip(*answers, strict=True))
    return right / len(rows)


def overlap_quartiles(seconds: Sequence[float]) -> tuple[str, ...]:
    """Return names of quartiles of the overlap, by their range; no overlap is a separate group."""
    values = np.array(seconds, np.float64)
    positive = values[values > 0]
    if not len(positive):
        return ("0 s",) * len(values)
    quartile = np.searchsorted(np.quantile(positive, [0.25, 0.5, 0.75]), values)
    names = {}
    for number in set(quartile[values > 0].tolist()):
        part = values[(quartile == number) & (values > 0)]
        low, high = f"{part.min():.2f}", f"{part.max():.2f}"
        names[number] = f"{low} s" if low == high else f"{low} to {high} s"
    return tuple(
        "0 s" if value == 0 else names[number] for value, number in zip(values, quartile.tolist(), strict=True)
    )


def _contents(row: Row, is_drawn: bool) -> dict[str, list[dict[str, str]]]:
    """Return the events of each clip in order of onset, as people read them; for a table of questions, the files."""
    if "files" not in row:
        events = sorted(row["events"], key=lambda event: (event["onset"], event["offset"]))
        return {CLIP: events_shown([{**event, "start": event["onset"], "stop": event["offset"]} for event in events])}
    if not is_drawn:
        return {f"audio/{n}": [{"file": file}] for n, file in enumerate(row["files"])}
    count = len(row["files"])
    seconds = row["duration"] / count
    clips: list[list[dict[str, Any]]] = [[] for _ in range(count)]
    for event in row["events"]:
        # The clips are played one after the other; see `asked_row`.
        place = min(int(event["onset"] // (seconds + PAUSE)), count - 1)
        start = place * (seconds + PAUSE)
        clips[place].append({**event, "start": event["onset"] - start, "stop": event["offset"] - start})
    return {f"audio/{n}": events_shown(events) for n, events in enumerate(clips)}


def _length(seconds: float | None) -> str:
    if seconds is None:
        return "unknown length"
    return next((f"up to {most} s" for most in (5, 10, 30, 60) if seconds <= most), "over 60 s")


# ----- figures
_BAR, _EDGE, _CHANCE, _MAJORITY, _STRICT = "#80B9D9", "#0072B2", "#555555", "#D55E00", "#000000"
"""Colours of Okabe and Ito 2008, "Color universal design", and grey."""

_PRINTED = "#888888"


@dataclass(frozen=True)
class QuestionBar:
    """One bar of a figure.

    Attributes:
        measure: name of the measure that it shows.
        name: text inside it.
        chance, majority: names of the measures drawn as dashed and dotted lines; empty for none.
        strict: name of the measure drawn as a diamond; empty for none.
    """

    measure: str
    name: str
    chance: str = ""
    majority: str = ""
    strict: str = ""


def draw_question_bars(
    axes: Axes,
    columns: Mapping[str, Floats],
    measures: Mapping[str, Number],
    *,
    bars: Sequence[QuestionBar],
    printed: Printed | None = None,
) -> None:
    """Draw one model's shares with 95 % intervals; measures that the result lacks are left out.

    Args:
        axes: an empty panel.
        columns: the ends of the interval of each bar's measure, by its name, if it has one.
        measures: measures of the result.
        bars: bars from left to right.
        printed: published figures, marked in grey next to them.
    """
    from matplotlib.patheffects import withStroke

    outline = [withStroke(linewidth=1.5, foreground="white", alpha=0.8)]
    bars = [bar for bar in bars if measures.get(bar.measure) is not None]
    for place, bar in enumerate(bars):
        value = float(measures[bar.measure] or 0)
        axes.text(
            place, 0.03, bar.name, rotation=90, ha="center", va="bottom", fontsize="small", zorder=4,
            path_effects=outline,
        )  # fmt: skip
        low, high = columns.get(bar.measure, (np.nan, np.nan))
        axes.bar(place, value, width=0.66, color=_BAR, edgecolor=_EDGE, linewidth=0.6)
        if np.isfinite([low, high]).all():
            axes.vlines(place + 0.2, low, high, color=_EDGE, linewidth=1.0)
        for name, colour, style in ((bar.chance, _CHANCE, "--"), (bar.majority, _MAJORITY, ":")):
            beside = measures.get(name)
            if beside is not None:
                axes.hlines(float(beside), place - 0.42, place + 0.42, color=colour, linestyle=style, linewidth=1.2)
        strict = measures.get(bar.strict)
        if strict is not None:
            axes.plot(place - 0.2, float(strict), "D", color=_STRICT, markersize=2.5)
        marks = () if printed is None else printed.of_measure(bar.measure)
        axes.plot([place + 0.41] * len(marks), marks, "_", color=_PRINTED, markersize=4, markeredgewidth=0.9)
    axes.set_xticks([])
    axes.set(xlim=(-0.6, len(bars) - 0.4), ylim=(0, 1.02))


ACCURACY_DRAWING = Drawing(
    name="questions",
    title=(
        "Share of questions answered correctly, and of groups, such as all questions about a clip, that are all "
        "right, with 95 % intervals. Dashed: chance. Dotted: the best constant answer."
    ),
    alternative="Bar chart of the accuracy and of groups that are all right with chance and the best constant answer, "
    "one panel per model.",
    columns=("score",),
    panel=partial(
        draw_question_bars,
        bars=(
            QuestionBar("accuracy", "all questions", chance="chance", majority="without_listening"),
            QuestionBar("groups_right", "groups all right", chance="groups_right_chance"),
        ),
    ),
    intervals=("accuracy", "groups_right"),
    y="share of questions",
)


# ----- questions of stated kinds
class KindQuestionTask(QuestionTask):
    """Questions of stated kinds, with a measure of the worst kind; see `kind_questions`."""

    def sampled(
        self, tested: Sequence[Row], columns: dict[str, Floats], values: dict[str, Any]
    ) -> tuple[Sequence[Row], dict[str, Floats]]:
        """See `QuestionTask.sampled`; adds scores and chance of the kind with the smallest gain over chance."""
        # Imported here, like the metric.
        from audio_compositionality.metrics.columns import of_all

        by_kind = values["by_kind"]
        worst = min((kind for kind in self.kinds if kind in by_kind), key=lambda kind: by_kind[kind]["adjusted"])
        values["chance_worst_kind"] = by_kind[worst]["chance"]
        is_worst = columns["kind"] == self.kinds.index(worst)
        return tested, columns | {"score_worst_kind": of_all(columns["score"][is_worst], is_worst)}


def kind_questions(
    name: str,
    title: str,
    question: str,
    kinds: Sequence[str],
    warning: str,
    *,
    ranks_by: str = "accuracy",
    described_by: Sequence[str] = (),
    captions: Mapping[str, str] | None = None,
) -> KindQuestionTask:
    """Return the task of a recipe with the same name, whose rows are questions of stated kinds.

    Args:
        name: name of the task and its recipe.
        title: the name for people.
        question: the question that it asks about a model.
        kinds: kinds of questions; words joined by underscores.
        warning: see `TaskInfo`.
        ranks_by: ``accuracy``, ``groups_right`` or ``worst_kind``.
        described_by: further baselines besides `blind` and `statistics`, which learns from nine numbers of a clip.
        captions: see `TaskInfo`; by default for one clip.
    """
    share = partial(Measure, range=(0.0, 1.0))
    measures = [
        share(
            "worst_kind",
            "worst kind",
            "share of questions answered correctly, for the kind with the smallest gain over chance",
            null="chance_worst_kind",
            column="score_worst_kind",
            outside="Scores of single questions are weighted, so that only the worst kind counts.",
        ),
        share("chance_worst_kind", "chance of the worst kind", "chance in that kind", shown=False),
    ]
    for place, kind in enumerate(kinds):
        words = kind.replace("_", " ")
        right, drawn = "share of questions answered correctly, for the kind", "accuracy of drawing an option,"
        within, chance = ("kind", float(place)), f"chance_{kind}"
        measures += [
            share(f"accuracy_{kind}", words, f"{right} {words}", null=chance, column="score", within=within),
            share(chance, f"chance of {words}", f"{drawn} {words}", shown=False),
        ]
    nulls = {"accuracy": "without_listening", "groups_right": "groups_right_chance", "worst_kind": "chance_worst_kind"}
    info = TaskInfo(
        **CLIP_QUESTIONS
        | {"captions": captions or QUESTIONS["captions"], "described_by": ("blind", "statistics", *described_by)},
        name=name,
        version=METRIC.version,
        title=title,
        question=question,
        benchmark="extended",
        recipe=name,
        measures=(*MEASURES, *measures),
        ranks_by=ranks_by,
        trusted={one: nulls[one] for one in dict.fromkeys((ranks_by, "accuracy"))},
        warning=warning,
        citation=METRIC.citation,
        **profiled_by_kinds(parts=tuple(f"accuracy_{kind}" for kind in kinds)),
    )
    return KindQuestionTask(info, ACCURACY_DRAWING, kinds=kinds)
