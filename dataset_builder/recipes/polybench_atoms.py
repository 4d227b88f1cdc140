"""Atomic questions about polyphonic scenes: is a sound present, and does one begin before another?"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..data import DataColumn, DatasetError, Row
from ..texts.counterparts import ATOMIC
from ..texts.question_tasks import ATOMS, STATES
from ..texts.questions import question_columns
from .polybench import CounterpartRecipe


class _AtomicQuestions(CounterpartRecipe):
    """Atomic questions about scenes."""

    name = "polybench_atoms"
    version = 2
    kinds = ATOMIC
    clips_of_set, questions_of_set = 4, 8

    def columns(self, spec: Any) -> Sequence[DataColumn]:
        """Return the columns of a question; its polarity is a state of its atom."""
        polarities = [state for states in STATES.values() for state in states]
        return question_columns(tasks=ATOMS, polarities=polarities)

    def check_row(self, row: Row) -> None:
        """Raise an error if a row is not an atomic question."""
        super().check_row(row)
        states = STATES[row["task"]]
        if row["polarity"] not in states:
            raise DatasetError(f"row {row['id']}: polarity is {row['polarity']!r}; it must be {' or '.join(states)}")


RECIPE = _AtomicQuestions()
