"""Questions with options about a clip: the test rows, the reading of answers, and the figures."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from audio_compositionality.dataset_builder.data import DatasetError, Row
from audio_compositionality.dataset_builder.texts.question_tasks import kind_named
from audio_compositionality.dataset_builder.texts.questions import (
    CLIP,
    NO_TIME,
    ORDER,
    SIMULTANEITY,
    check_question_row,
)
from audio_compositionality.encoders.base import LANGUAGE_MODEL
from audio_compositionality.encoders.options import REASON_TOKENS
from audio_compositionality.support.errors import InputError

from ..base import (
    Drawing,
    Floats,
    Inputs,
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
    groups_of,
    settings_among,
)
from ..metric_files import describe_metric
from .asking import AskingSpec, direct_prompt, question_prompt, shown_orders

if TYPE_CHECKING:
    from matplotlib.axes import Axes

METRIC = describe_metric("polybench")

TASKS = tuple(measure.name for measure in METRIC.measures if measure.null == f"chance_{measure.name}")
"""Tasks of questions, in the order of the paper, then those with time; a sample's column ``task`` has the place."""

KINDS = {name: name.replace("_", "/") for name in TASKS}
"""The kind of question of each task, as `questions` call it."""

_NEEDS = {NO_TIME: "no time", SIMULTANEITY: "the sounds of one moment", ORDER: "the order in time"}
"""The need for time of a kind of question, in words."""

NO_OPTION, REFUSED = -1, -2
"""Value of the column ``choice`` where no option was taken."""

LEAST_OF_A_WORDING = 10
"""Mean number of questions a wording from which scores are grouped by wording."""

UNLIKE_GROUPS = "Scores of single questions are weighted, so that groups count the same."

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
"""What becomes of answers where the options of a question stand in another order."""

COUNTED = ("unparsed", "refused", "answers")
"""Measures that count answers."""

QUESTIONS: dict[str, Any] = {
    "needs": LANGUAGE_MODEL,
    "samples": "questions",
    "captions": {CLIP: "the clip that is asked about"},
    "on_request": True,
    "controls": (
        *("first", "longest", "majority", "blind", "statistics", "time-blind", "order-blind", "present", "oracle"),
        *("cascade", "without-audio:", "shuffled-audio:", "events-as-text:"),
    ),
    "is_level_matched": True,
    "floor": "the best that needs no listening",  # a constant answer needs no sound at all
    "twin": ("without-audio:", "the same model without sound"),  # without training a language model answers nothing
    # Questions alone and sound without time are among the plain descriptions.
    "bars": {"shuffled-audio:": "itself on shuffled stretches of sound"},
    "choices": AskingSpec().values(),
}
"""Facts of the tasks of questions with options; see `TaskInfo`."""


def profiled_by(measure: str, **more: Any) -> dict[str, Any]:
    """Facts of a task of questions whose samples are told apart by a measure: scores by kind of question, polyphony and
    overlap, and the answers given; ``more`` are fields of `Profile`."""
    profile = Profile(
        measure,
        groupings=("task", "polyphony", "overlap"),
        shares=(("unparsed", "answers"), ("refused", "answers")),
        choices="choice",
        no_choice={NO_OPTION: "names no option", REFUSED: "refuses to answer"},
        heard_from="task",
    )
    return {"heard_by": measure, "profile": replace(profile, **more)}


@dataclass(frozen=True)
class ReadAnswers:
    """Answers to n questions as they are read; a question may be asked in several orders of its options.

    Attributes:
        texts: for each answer the option that it names; None where it names none.
        choices: for each answer the place of that option in the row, or `NO_OPTION` or `REFUSED`.
        correct: for each question the share of its orders that are answered rightly, [n].
        usual: for each question the most frequent choice among its answers, see `usual_choices`, [n].
    """

    texts: tuple[str | None, ...]
    choices: tuple[int, ...]
    correct: Floats
    usual: Floats

    @property
    def counts(self) -> dict[str, Number]:
        """The measures `COUNTED`."""
        return {
            "unparsed": self.texts.count(None),
            "refused": self.choices.count(REFUSED),
            "answers": len(self.texts),
        }


class AnswerTask(ABC):
    """A task of questions with options; see `Task`."""

    spec: type[AskingSpec] = AskingSpec

    def __init__(self, info: TaskInfo, *drawings: Drawing) -> None:
        """What it is, and its figures."""
        self.info = info
        self.drawings = drawings

    def inputs(self, row: Row, settings: Mapping[str, Any]) -> Inputs:
        """The clip of a test question, and the question as a prompt for each order of its options; nothing for a
        training question."""
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
        """The words of prompts, the orders of options, and the scoring of answers.

        Raises:
            TaskError: there are no test questions, or one cannot be asked.
            InputError: a requested setting is not one of `spec`.
        """
        how = settings_among(self.spec, requested)
        tested = tested_rows(rows)
        if not tested:
            raise TaskError(f"{self.info.name} has no questions of the split test; it needs at least one")
        for row in tested:
            self.check(row)
        return how.stored

    @abstractmethod
    def check(self, row: Row) -> None:
        """Refuse a question that cannot be asked or scored.

        Raises:
            TaskError: it cannot be asked or scored.
        """

    @abstractmethod
    def score(
        self, rows: Sequence[Row], outputs: Outputs, settings: Mapping[str, Any], device: str, progress: bool
    ) -> Scores:
        """Score the answers to the test questions, each asked in every order of its options."""

    def check_words(self, row: Row) -> None:
        """Refuse a question whose row is incomplete, or whose words make no prompt.

        Raises:
            TaskError: the row or its words are such.
        """
        try:
            check_question_row(row)
            direct_prompt(row["question"], row["options"])
        except (DatasetError, InputError) as error:
            raise TaskError(f"{self.info.name}: the question {row['id']} cannot be asked: {error}") from error

    def read(self, rows: Sequence[Row], outputs: Outputs, settings: Mapping[str, Any]) -> ReadAnswers:
        """The answers to the questions of the split test, read by the rules of the metric `polybench`."""
        # Imported by need: a task loads its metric only in the process that scores.
        from audio_compositionality.metrics.answers import REFUSED as REFUSALS
        from audio_compositionality.metrics.answers import match_answer

        asked = asked_questions(tested_rows(rows), settings)
        texts: list[str | None] = []
        taken = []
        for answer, (row, options) in zip(outputs.answers, asked, strict=True):
            match = match_answer(answer, options)
            texts.append(None if match.option is None else options[match.option])
            missed = REFUSED if match.rule in REFUSALS else NO_OPTION
            taken.append(missed if match.option is None else row["options"].index(options[match.option]))
        ids = [row["id"] for row, _ in asked]
        places = np.unique(ids, return_inverse=True)[1]
        first = np.array(list(dict.fromkeys(places.tolist())))
        right = np.array([text == row["answer"] for text, (row, _) in zip(texts, asked, strict=True)], np.float64)
        correct: Floats = (np.bincount(places, right) / np.bincount(places))[first]
        return ReadAnswers(tuple(texts), tuple(taken), correct, np.array(usual_choices(ids, taken), np.float64))

    def means(self, columns: Mapping[str, Floats]) -> dict[str, Number]:
        """The measures that are means of columns; None for a column that no sample has."""
        values: dict[str, Number] = {}
        for measure in self.info.with_intervals:
            of_measure = columns[str(measure.column)][measure.places(columns)]
            values[measure.name] = float(of_measure.mean()) if len(of_measure) else None
        return values

    def samples(self, rows: Sequence[Row]) -> Samples:
        """The test questions; questions of a group, be it twins or one recording, belong together."""
        tested = tested_rows(rows)
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
            clusters=groups_of(tested),
            clustered_by="the group, twins or questions about one recording",
            groups={name: labels for name, labels in groups.items() if len(set(labels)) > 1 or name == "task"},
            contents=tuple(_contents(row) for row in tested),
            asked=tuple(ShownQuestion(row["question"], tuple(row["options"]), row["answer"]) for row in tested),
            without_listening={
                "chance": lambda places: float(np.mean([1 / len(tested[k]["options"]) for k in places])),
                # Only for these: the constant answer 1 is right wherever one sound is present.
                "the best constant answer": lambda places: constant_answers([tested[k] for k in places]),
            },
        )


def tested_rows(rows: Sequence[Row]) -> tuple[Row, ...]:
    """The questions of the split test."""
    return tuple(row for row in rows if row["split"] == "test")


def asked_questions(tested: Sequence[Row], settings: Mapping[str, Any]) -> list[tuple[Row, tuple[str, ...]]]:
    """Each question, with its options in each order in which it is asked."""
    orders = settings_among(AskingSpec, settings).orders
    return [(row, options) for row in tested for options in shown_orders(row["options"], orders)]


def task_of(row: Row) -> str:
    """The question's entry of `TASKS`: its variant, where that is an entry of its own."""
    name = f"{row['task']}_{row['variant']}"
    return name if name in TASKS else str(row["task"])


def kind_of_row(row: Row) -> str:
    """The kind of question of a row, in words; its task for a row of another recipe."""
    name = task_of(row)
    return KINDS.get(name, name)


def needs_of(task: str) -> str:
    """A task's need for time, in words."""
    return _NEEDS[kind_named(KINDS[task]).time]


def kind_with_needs(task: str) -> str:
    """The kind of question of a task, and its need for time, in words."""
    return f"{KINDS[task]} ({needs_of(task)})"


def mean_of_parts(correct: Floats, parts: NDArray[np.int64]) -> Floats:
    """Scores, [n], whose mean is the mean over parts of the share of right answers. A score is that mean plus the
    question's deviation from the share of its part, weighted such that parts count the same.

    Plainly weighted scores have the same mean, but it would vary with the number of questions of each part in a
    bootstrap draw, and the interval of an always right model would not be 1.
    """
    sizes = np.bincount(parts)
    shares = np.bincount(parts, correct) / np.maximum(sizes, 1)
    count = int((sizes > 0).sum())
    scores: Floats = shares.sum() / count + len(parts) / (count * sizes[parts]) * (correct - shares[parts])
    return scores


def all_right(correct: Floats, groups: NDArray[np.int64], parts: NDArray[np.int64]) -> Floats:
    """Scores, [n], whose mean over the questions of a part is the share of its groups that are all right. A score is
    that share plus the group's deviation from it, weighted such that groups count the same; see `mean_of_parts`."""
    scores = np.zeros(len(correct))
    for part in np.unique(parts):
        members = np.flatnonzero(parts == part)
        numbers = np.unique(groups[members], return_inverse=True)[1].reshape(-1)
        is_right, sizes = np.bincount(numbers, correct[members] < 1) == 0, np.bincount(numbers)
        share, weights = is_right.mean(), len(members) / (len(sizes) * sizes)
        scores[members] = (share + weights * (is_right - share))[numbers]
    return scores


def usual_choices(ids: Sequence[str], choices: Sequence[int]) -> list[int]:
    """The most frequent choice among the answers to each question, in a tie the first; in the order in which ids first
    appear.

    Args:
        ids: question id of each answer.
        choices: choice of each answer, as many.
    """
    by_question: dict[str, list[int]] = {}
    for id, choice in zip(ids, choices, strict=True):
        by_question.setdefault(id, []).append(choice)
    return [Counter(taken).most_common(1)[0][0] for taken in by_question.values()]


def constant_answers(rows: Sequence[Row]) -> float:
    """The share of questions answered rightly by a constant: the text, or the position, that is right most often in
    their task; the better of the two, chosen when all answers are known."""
    right = 0
    for task in dict.fromkeys(row["task"] for row in rows):
        answers = [(row["answer"], row["options"].index(row["answer"])) for row in rows if row["task"] == task]
        right += max(max(Counter(values).values()) for values in zip(*answers, strict=True))
    return right / len(rows)


def overlap_quartiles(seconds: Sequence[float]) -> tuple[str, ...]:
    """Names of quartiles of the overlap, by their span; no overlap is a group of its own."""
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


def _contents(row: Row) -> dict[str, list[dict[str, str]]]:
    """The events, for people, in the order of the onsets."""
    events = sorted(row["events"], key=lambda event: (event["onset"], event["offset"]))
    return {
        CLIP: [
            {"sound": event["label"], "from (s)": f"{event['onset']:.2f}", "to (s)": f"{event['offset']:.2f}"}
            for event in events
        ]
    }


_BAR, _EDGE, _CHANCE, _MAJORITY, _STRICT = "#80B9D9", "#0072B2", "#555555", "#D55E00", "#000000"
"""Colours of Okabe and Ito 2008, "Color universal design", and grey."""

_PRINTED = "#888888"


@dataclass(frozen=True)
class QuestionBar:
    """A bar.

    Attributes:
        measure: name of the measure that it shows.
        name: text inside it.
        chance, majority: names of the measures drawn as dashed and dotted lines; empty for none.
        strict: name of the measure drawn as a diamond; likewise.
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
    bars: Sequence[QuestionBar],
    printed: Printed | None = None,
) -> None:
    """Draw one model's shares with 95 % intervals; measures that the result lacks are left out.

    Args:
        axes: an empty panel.
        columns: the ends of the interval of each bar's measure, by its name.
        measures: of the result.
        bars: from left to right.
        printed: published figures, marked in grey beside them.
    """
    from matplotlib.patheffects import withStroke

    outline = [withStroke(linewidth=1.5, foreground="white", alpha=0.8)]
    for place, bar in enumerate(bars):
        value = measures.get(bar.measure)
        axes.text(
            place, 0.03, bar.name, rotation=90, ha="center", va="bottom", fontsize="small", zorder=4,
            path_effects=outline,
        )  # fmt: skip
        if value is None:
            continue
        low, high = columns[bar.measure]
        axes.bar(place, float(value), width=0.66, color=_BAR, edgecolor=_EDGE, linewidth=0.6)
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
