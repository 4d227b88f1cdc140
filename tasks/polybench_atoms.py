"""Atomic questions: is a sound present, and does one begin before another? Questions about overlap build on these."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from audio_compositionality.dataset_builder.data import Row
from audio_compositionality.dataset_builder.texts.question_tasks import ATOMS
from audio_compositionality.dataset_builder.texts.questions import NO, YES

from .base import Drawing, Floats, Measure, Number, Outputs, Scores, TaskError, TaskInfo, groups_of
from .shapes.questions import (
    COUNTED,
    METRIC,
    QUESTIONS,
    UNLIKE_GROUPS,
    AnswerTask,
    QuestionBar,
    all_right,
    constant_answers,
    draw_question_bars,
    profiled_by,
    tested_rows,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes

CHANCE = 1 / 2
"""Every question is answered by Yes or No."""


def _share(name: str, heading: str, meaning: str, **fields: Any) -> Measure:
    return Measure(name, heading, meaning, range=(0.0, 1.0), **fields)


def _measures() -> tuple[Measure, ...]:
    of_atoms = [
        _share(
            name,
            name,
            f"share of right answers about {name}",
            column="score",
            within=("task", float(place)),
            null="chance",
        )
        for place, name in enumerate(ATOMS)
    ]
    kept = [measure for measure in METRIC.measures if measure.name in COUNTED]
    return (
        _share(
            "accuracy", "accuracy", "share of the questions that are answered rightly", null="chance", column="score"
        ),
        *of_atoms,
        _share(
            "groups_right",
            "all twins right",
            "share of the groups of twins with all four questions answered correctly",
            null="groups_right_chance",
            column="score_group",
            outside=UNLIKE_GROUPS,
        ),
        _share("chance", "chance", "accuracy of drawing an option"),
        _share("groups_right_chance", "chance of that", "groups right by drawing an option each time", shown=False),
        _share(
            "without_listening",
            "best without listening",
            "accuracy of who draws an option, always gives one text or always takes one position",
            shown=False,
        ),
        _share("yes_rate", "Yes", "share of Yes among the answers that name an option; half of the right ones are"),
        *kept,
    )


_BARS = (
    *(QuestionBar(atom, atom, chance="chance") for atom in ATOMS),
    QuestionBar("groups_right", "all twins right", chance="groups_right_chance"),
    QuestionBar("yes_rate", "says Yes", chance="chance"),
)


def draw_atoms(axes: Axes, columns: Mapping[str, Floats], measures: Mapping[str, Number]) -> None:
    """Draw one model's accuracy on each atom and on whole groups, and its share of Yes; see `draw_question_bars`."""
    without: Floats = np.full(2, np.nan)
    draw_question_bars(axes, {"yes_rate": without, **columns}, measures, _BARS)


_BY_ATOM = Drawing(
    name="atoms",
    title=(
        "Share of right answers to each kind of atomic question and of groups of twins that are all right, with 95 % "
        "intervals, and the share of Yes among answers, of which half are right. Dashed: chance."
    ),
    alternative="Bars of the accuracy in each kind of atomic question, of groups that are all right and of the share "
    "of Yes, with chance, a panel a model.",
    columns=("task", "score"),
    panel=draw_atoms,
    intervals=(*ATOMS, "groups_right"),
    y="share",
)


class AtomTask(AnswerTask):
    """The task; see `Task`."""

    def check(self, row: Row) -> None:
        """See `AnswerTask.check`; a question has one wording for both of its answers, and no polarity."""
        if row["task"] not in ATOMS:
            raise TaskError(
                f"{self.info.name}: the question {row['id']} is of the task {row['task']!r}; they are of "
                f"{' and '.join(ATOMS)}"
            )
        if sorted(row["options"]) != sorted((YES, NO)):
            raise TaskError(f"{self.info.name}: the options of {row['id']} are {row['options']}; they are Yes and No")
        self.check_words({**row, "polarity": ""})

    def score(
        self, rows: Sequence[Row], outputs: Outputs, settings: Mapping[str, Any], device: str, progress: bool
    ) -> Scores:
        """Score the answers to the test questions, each asked in every order of its options."""
        tested, read = tested_rows(rows), self.read(rows, outputs, settings)
        groups = groups_of(tested)
        columns: dict[str, Floats] = {
            "score": read.correct,
            "score_group": all_right(read.correct, groups, np.zeros(len(tested), np.int64)),
            "task": np.array([ATOMS.index(row["task"]) for row in tested], np.float64),
            "choice": read.usual,
        }
        parsed = [text for text in read.texts if text is not None]
        orders = len(read.texts) // len(tested)  # all questions are shown in as many, since all have two options
        values: dict[str, Number] = {
            "chance": CHANCE,
            "groups_right_chance": float(np.mean(CHANCE ** (np.bincount(groups) * orders))),
            "without_listening": max(CHANCE, constant_answers(tested)),
            "yes_rate": parsed.count(YES) / len(parsed) if parsed else None,
            **read.counts,
            **self.means(columns),
        }
        return Scores(values, tuple(row["id"] for row in tested), columns)


TASK = AtomTask(
    TaskInfo(
        **QUESTIONS | {"controls": tuple(name for name in QUESTIONS["controls"] if name != "longest")},
        name="polybench_atoms",
        version=2,
        title="PolyBench, atoms",
        question="Does an audio language model hear that a sound is there, and which of two begins first?",
        benchmark="polybench_atoms",
        recipe="polybench_atoms",
        measures=_measures(),
        ranks_by="accuracy",
        trusted={"accuracy": "without_listening", "groups_right": "groups_right_chance"},
        warning=(
            "Half of the right answers are Yes: read the share of Yes beside the accuracy. A model that fails here "
            "lacks the parts of the questions about overlap; one that succeeds here and fails there lacks their "
            "combination."
        ),
        citation=METRIC.citation,
        **profiled_by("accuracy", parts=ATOMS),
    ),
    _BY_ATOM,
)
