"""Questions about polyphonic scenes, and about the same sounds one after another."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..data import TEXT, DataColumn, DatasetError, Row
from ..texts.counterparts import ARRANGEMENTS, PAIRED
from ..texts.polyphony import AskedClip
from ..texts.questions import question_columns
from .polybench import CounterpartRecipe

_FURTHER = (
    DataColumn("arrangement", TEXT, "`together` or `apart`", choices=ARRANGEMENTS),
    DataColumn(
        "pair",
        TEXT,
        "name of the pair: the same question about the same sounds in both arrangements",
    ),
)


class _ApartQuestions(CounterpartRecipe):
    """Questions about scenes in two arrangements: together and apart."""

    name = "polybench_apart"
    version = 2
    kinds = PAIRED
    clips_of_set = questions_of_set = 14

    def columns(self, spec: Any) -> Sequence[DataColumn]:
        """Return the columns of a question, its arrangement, and the pair name that both arrangements share."""
        return question_columns(tasks=[kind.task for kind in self.kinds], polarities=("",), further=_FURTHER)

    def row(self, asked: AskedClip) -> Row:
        """Return the row of a question."""
        group, clip = asked.group, asked.question.recording.rpartition("-")[2]
        return {**super().row(asked), "arrangement": group.arrangement, "pair": f"{group.pair}-{clip}"}

    def check_row(self, row: Row) -> None:
        """Raise an error if a row is not a question of a pair."""
        super().check_row(row)
        if not row["pair"]:
            raise DatasetError(f"row {row['id']}: pair is ''; it must name the question that both arrangements share")


RECIPE = _ApartQuestions()
