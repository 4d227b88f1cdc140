"""Atomic questions: is a sound heard, and does one begin before another? Questions about overlap are made of these."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from audio_compositionality.dataset_builder.data import DatasetError, Row
from audio_compositionality.dataset_builder.texts.question_tasks import ATOMS
from audio_compositionality.dataset_builder.texts.questions import NO, YES, check_question_row
from audio_compositionality.support.errors import InputError

from .base import Drawing, Floats, Measure, Number, Outputs, Scores, TaskError, settings_among
from .polybench import REFUSED, UNPARSED, Polybench
from .profiles import Profile
from .question_bars import QuestionBar, draw_question_bars
from .question_prompts import direct_prompt, shown_orders
from .question_scores import all_right, constant_answers, usual_choices
from .question_settings import AskingSpec

if TYPE_CHECKING:
    from matplotlib.axes import Axes

CHANCE = 1 / 2
"""Every question is answered by Yes or No."""

_UNLIKE = "Scores of single questions are weighted, so that groups count the same."


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
    kept = [measure for measure in Polybench.info.measures if measure.name in ("unparsed", "refused", "answers")]
    return (
        _share(
            "accuracy", "accuracy", "share of the questions that are answered rightly", null="chance", column="score"
        ),
        *of_atoms,
        _share(
            "groups_right",
            "all twins right",
            "share of the groups of twins of which all four questions are answered rightly",
            null="groups_right_chance",
            column="score_group",
            outside=_UNLIKE,
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
    """Draw what one model has of each atom, of whole groups, and how often it says Yes; see `draw_question_bars`."""
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


class PolybenchAtoms(Polybench):
    """The task; see `Task`. Answers are read by the rules of the metric `polybench`."""

    info = replace(
        Polybench.info,
        name="polybench_atoms",
        version=2,
        title="PolyBench, atoms",
        question="Does an audio language model hear that a sound is there, and which of two begins first?",
        benchmark="polybench_atoms",
        recipe="polybench_atoms",
        measures=_measures(),
        ranks_by="accuracy",
        trusted={"accuracy": "without_listening", "groups_right": "groups_right_chance"},
        heard_by="accuracy",
        warning=(
            "Half of the right answers are Yes, whatever is heard: see the share of Yes beside the accuracy. Who fails "
            "here has not heard what questions about overlap are made of; who succeeds here and fails there has not "
            "put it together."
        ),
        controls=(
            *("first", "majority", "blind", "statistics", "time-blind", "order-blind", "present", "oracle", "cascade"),
            *("without-audio:", "shuffled-audio:", "events-as-text:"),
        ),
        profile=Profile(
            measure="accuracy",
            groupings=("task", "polyphony", "overlap"),
            shares=(("unparsed", "answers"), ("refused", "answers")),
            choices="choice",
            no_choice={UNPARSED: "names no option", REFUSED: "refuses to answer"},
            heard_from="task",
            parts=ATOMS,
        ),
        printed=None,
    )
    spec = AskingSpec
    drawings: tuple[Drawing, ...] = (_BY_ATOM,)

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
            if row["task"] not in ATOMS:
                raise TaskError(
                    f"{self.info.name}: the question {row['id']} is of the task {row['task']!r}; they are of "
                    f"{' and '.join(ATOMS)}"
                )
            if sorted(row["options"]) != sorted((YES, NO)):
                raise TaskError(
                    f"{self.info.name}: the options of {row['id']} are {row['options']}; they are Yes and No"
                )
            try:
                check_question_row({**row, "polarity": ""})
                direct_prompt(row["question"], row["options"])
            except (DatasetError, InputError) as error:
                raise TaskError(f"{self.info.name}: the question {row['id']} cannot be asked: {error}") from error
        return how.stored

    def score(
        self, rows: Sequence[Row], outputs: Outputs, settings: Mapping[str, Any], device: str, progress: bool
    ) -> Scores:
        """Score the answers to the questions of the split test, of each one for every order of its options."""
        # Importing the metric imports `evaluate`, which takes seconds that only the process that scores has to spend.
        from audio_compositionality.metrics.answers import REFUSED as REFUSALS
        from audio_compositionality.metrics.answers import match_answer

        tested = _tested(rows)
        orders = settings_among(AskingSpec, settings).orders
        asked = [(row, options) for row in tested for options in shown_orders(row["options"], orders)]
        texts: list[str | None] = []
        taken = []
        for answer, (row, options) in zip(outputs.answers, asked, strict=True):
            match = match_answer(answer, options)
            texts.append(None if match.option is None else options[match.option])
            missed = REFUSED if match.rule in REFUSALS else UNPARSED
            taken.append(missed if match.option is None else row["options"].index(options[match.option]))
        right = [text == row["answer"] for text, (row, _) in zip(texts, asked, strict=True)]
        # All questions are shown in as many orders, since all have two options.
        correct: Floats = np.array(right, np.float64).reshape(len(tested), -1).mean(axis=1)
        groups = np.unique([row["group"] for row in tested], return_inverse=True)[1].astype(np.int64)
        columns: dict[str, Floats] = {
            "score": correct,
            "score_group": all_right(correct, groups, np.zeros(len(tested), np.int64)),
            "task": np.array([ATOMS.index(row["task"]) for row in tested], np.float64),
            "choice": np.array(usual_choices([row["id"] for row, _ in asked], taken), np.float64),
        }
        parsed = [text for text in texts if text is not None]
        values: dict[str, Number] = {
            "chance": CHANCE,
            "groups_right_chance": float(np.mean(CHANCE ** (np.bincount(groups) * (len(asked) // len(tested))))),
            "without_listening": max(CHANCE, constant_answers(tested)),
            "yes_rate": parsed.count(YES) / len(parsed) if parsed else None,
            "unparsed": texts.count(None),
            "refused": taken.count(REFUSED),
            "answers": len(texts),
        }
        for measure in self.info.measures:
            if measure.column is not None:
                of_measure = columns[measure.column][measure.places(columns)]
                values[measure.name] = float(of_measure.mean()) if len(of_measure) else None
        return Scores(values, tuple(row["id"] for row in tested), columns)


def _tested(rows: Sequence[Row]) -> tuple[Row, ...]:
    return tuple(row for row in rows if row["split"] == "test")


TASK = PolybenchAtoms()
