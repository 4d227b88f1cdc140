"""Atomic questions: is a sound present, and does one begin before another? Questions about overlap build on these."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

from audio_compositionality.dataset_builder.data import Row
from audio_compositionality.dataset_builder.texts.question_tasks import ATOMS
from audio_compositionality.dataset_builder.texts.questions import YES

from .base import Drawing, Measure, TaskInfo
from .metric_files import describe_metric
from .shapes.questions import (
    COUNTED,
    QUESTIONS,
    UNLIKE_GROUPS,
    Asked,
    QuestionBar,
    QuestionTask,
    draw_question_bars,
    profiled_by,
)

_share = partial(Measure, range=(0.0, 1.0))

_MEASURES = (
    _share("accuracy", "accuracy", "share of the questions answered correctly", null="chance", column="score"),
    *(
        _share(
            name,
            name,
            f"share of right answers about {name}",
            column="score",
            within=("task", float(place)),
            null="chance",
        )
        for place, name in enumerate(ATOMS)
    ),
    _share(
        "groups_right",
        "all counterparts right",
        "share of the pairs of counterparts with all four questions answered correctly",
        null="groups_right_chance",
        column="score_group",
        outside=UNLIKE_GROUPS,
    ),
    _share("chance", "chance", "accuracy of drawing an option"),
    _share("groups_right_chance", "chance of that", "groups right by drawing an option each time", shown=False),
    _share(
        "without_listening",
        "best without listening",
        "accuracy when drawing an option, always giving one text or always taking one position",
        shown=False,
    ),
    _share("yes_rate", "Yes", "share of Yes among the answers that name an option; half of the right answers are Yes"),
    *COUNTED,
)

_BARS = (
    *(QuestionBar(atom, atom, chance="chance") for atom in ATOMS),
    QuestionBar("groups_right", "all counterparts right", chance="groups_right_chance"),
    QuestionBar("yes_rate", "says Yes", chance="chance"),
)


_BY_ATOM = Drawing(
    name="atoms",
    title=(
        "Share of correct answers to each kind of atomic question, and share of pairs of counterparts with all answers "
        "right, with 95 % intervals; share of Yes among answers: half of the right answers are Yes. Dashed: chance."
    ),
    alternative="Bar chart of the accuracy in each kind of atomic question, of groups that are all right and of the "
    "share of Yes, with chance, one panel per model.",
    columns=("task", "score"),
    panel=partial(draw_question_bars, bars=_BARS),
    intervals=(*ATOMS, "groups_right"),
    y="share",
)


class AtomTask(QuestionTask):
    """The task; see `Task`."""

    def check(self, row: Row) -> None:
        """See `QuestionTask.check`; the recipe checks that a polarity is a state of an atom."""
        super().check({**row, "polarity": ""})

    def measured(
        self, answers: Sequence[str], asked: Asked, settings: Mapping[str, Any], device: str
    ) -> dict[str, Any]:
        """See `QuestionTask.measured`; adds the share of Yes among the answers that name an option."""
        values = super().measured(answers, asked, settings, device)
        chosen = zip(values["choices"], asked, strict=True)
        said = [options[choice] for choice, (_, options) in chosen if choice is not None]
        return values | {"yes_rate": said.count(YES) / len(said) if said else None}


TASK = AtomTask(
    TaskInfo(
        **QUESTIONS | {"controls": tuple(name for name in QUESTIONS["controls"] if name != "longest")},
        name="polybench_atoms",
        version=2,
        title="PolyBench, atoms",
        question="Does an audio language model recognise that a sound is present, and which of two begins first?",
        benchmark="polybench_atoms",
        recipe="polybench_atoms",
        measures=_MEASURES,
        ranks_by="accuracy",
        trusted={"accuracy": "without_listening", "groups_right": "groups_right_chance"},
        warning=(
            "Half of the right answers are Yes: compare the share of Yes with the accuracy. A model that fails here "
            "lacks the parts of the questions about overlap; one that succeeds here and fails there lacks their "
            "combination."
        ),
        citation=describe_metric("polybench").citation,
        **profiled_by("accuracy", parts=ATOMS),
    ),
    _BY_ATOM,
    kinds=ATOMS,
)
