"""Multiple-choice questions about sounds that others wrote: tables of a user, and published benchmarks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from audio_compositionality.support.spec import Spec

from ..data import AUDIO, NUMBER, TEXT, DataColumn, DatasetError, Row
from ..sounds.published.question_tables import FEWEST_OPTIONS, fault_of
from .base import Recipe


class _AudioQuestions(Recipe[Spec]):
    """Questions with options about one or several clips; they are read, and never drawn."""

    name = "audio_questions"
    one_length = False

    @property
    def presets(self) -> Mapping[str, Spec]:
        """None: the rows are those of a table."""
        return {}

    def columns(self, spec: Any) -> Sequence[DataColumn]:
        """The columns of a question."""
        return (
            DataColumn("id", TEXT, "name of the question"),
            DataColumn("split", TEXT, "always `test`", choices=self.splits),
            DataColumn("audio", [AUDIO], "the clips, in the order of `files`", per="files"),
            DataColumn("question", TEXT, "the question, on one line"),
            DataColumn("options", [TEXT], "the options, without letters", least=FEWEST_OPTIONS, filled=True),
            DataColumn("answer", TEXT, "the right option"),
            DataColumn("kind", TEXT, "kind of the question; empty where the table has none"),
            DataColumn("group", TEXT, "not independent within a group; by default those about the same clips"),
            DataColumn("files", [TEXT], "names of the clips in the table", least=1, filled=True),
            DataColumn("duration", NUMBER, "seconds of all clips together, where known", optional=True),
            DataColumn(
                "events",
                [{"onset": NUMBER, "offset": NUMBER, "label": TEXT}],
                "onset and offset in seconds and label of each sound, where the table has labels",
                optional=True,
            ),
        )

    def check_row(self, row: Row) -> None:
        """Refuse a row that is not a question with one right option; see `Recipe.check_row`."""
        super().check_row(row)
        fault = fault_of(row["question"], row["options"], row["answer"])
        if fault is not None:
            raise DatasetError(f"row {row['id']}: {fault}")


RECIPE = _AudioQuestions()
