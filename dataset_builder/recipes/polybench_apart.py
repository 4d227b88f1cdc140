"""Questions about polyphonic scenes, and about the same sounds one after the other."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..data import TEXT, DataColumn, DatasetError, Row
from ..texts.polyphony import AskedClip
from ..texts.questions import question_columns
from ..texts.twins import ARRANGEMENTS, PAIRED
from .polybench import TwinRecipe

_FURTHER = (
    DataColumn("arrangement", TEXT, "`together` or `apart`", choices=ARRANGEMENTS),
    DataColumn(
        "pair",
        TEXT,
        "name of the pair: the same question about the same sounds in both arrangements",
    ),
)


class _ApartQuestions(TwinRecipe):
    """Questions about scenes in two arrangements: together and apart."""

    name = "polybench_apart"
    version = 2
    kinds = PAIRED
    clips_of_set = questions_of_set = 14

    def columns(self, spec: Any) -> Sequence[DataColumn]:
        """The columns of a question, with its arrangement and its pair: the name that the same question has in both."""
        return question_columns(tasks=[kind.task for kind in self.kinds], polarities=("",), further=_FURTHER)

    def row(self, asked: AskedClip) -> Row:
        """The row of a question."""
        group, clip = asked.group, asked.question.recording.rpartition("-")[2]
        return {**super().row(asked), "arrangement": group.arrangement, "pair": f"{group.pair}-{clip}"}

    def check_row(self, row: Row) -> None:
        """Refuse a row that is not a question of a pair."""
        super().check_row(row)
        if not row["pair"]:
            raise DatasetError(f"row {row['id']}: pair is ''; it names what is asked in both arrangements")


RECIPE = _ApartQuestions()
