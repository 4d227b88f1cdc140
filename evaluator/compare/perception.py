"""Perception or reasoning: each question answered from the sound, and from a text that lists its events.

A wrong answer from the list of events means that the model did not understand the question, or not what follows from
the list; a right answer from the list with a wrong one from sound means that it did not perceive the events. No judge
is needed, since both are scored by the same rules (`encoders.controls`, ``events-as-text:``).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from audio_compositionality.encoders.controls import CONTROLS, EVENTS_AS_TEXT
from audio_compositionality.support.errors import InputError
from audio_compositionality.support.table import Cell, Column, Row, Table
from audio_compositionality.support.text import number_text

from .comparison import Comparison
from .diversity import group_order
from .loading import ModelKind
from .statistics import mean_intervals
from .tables import interval_text

ALL = "all"

_ORDERS = (
    "Each question is asked under several orders of its options and counts as right only if the answer is right in "
    "every order: guesses, and a habit of naming the same position, hardly ever are."
)


@dataclass(frozen=True)
class Crossed:
    """Counts of questions by their two answers.

    Attributes:
        both: right from both.
        only_told: right from the list of events, wrong from sound: a failure of perception.
        only_heard: right from sound, wrong from the list.
        neither: wrong from both.
    """

    both: int
    only_told: int
    only_heard: int
    neither: int

    @property
    def n(self) -> int:
        """Number of questions."""
        return self.both + self.only_told + self.only_heard + self.neither

    @property
    def not_heard(self) -> float:
        """Share of the questions that are wrong from sound alone: perception."""
        return self.only_told / self.n

    @property
    def not_understood(self) -> float:
        """Share of the questions that are wrong from the list of events: reasoning."""
        return (self.only_heard + self.neither) / self.n


def cross(heard: ArrayLike, told: ArrayLike) -> Crossed:
    """Count the questions by whether the answers from sound and from the list of events are right.

    Args:
        heard: [n], 1 where the answer from sound is right, else 0.
        told: [n], 1 where the same model's answer from the list of events is right, else 0.

    Raises:
        InputError: there are no questions, two numbers of questions, or values other than 0 and 1.
    """
    one, other = np.asarray(heard, np.float64), np.asarray(told, np.float64)
    if one.ndim != 1 or one.shape != other.shape or not len(one):
        raise InputError(f"answers are of shapes {one.shape} and {other.shape}; they must be equally many, one or more")
    for values in (one, other):
        if not np.isin(values, (0, 1)).all():
            raise InputError(f"{values[~np.isin(values, (0, 1))][0]:g} is neither 0, wrong, nor 1, right")
    first, second = one == 1, other == 1
    counts = (first & second, ~first & second, first & ~second, ~first & ~second)
    return Crossed(*(int(part.sum()) for part in counts))


def told_twin(comparison: Comparison, place: int) -> int | None:
    """Return the place of the same model's result from lists of events, with answers taken in the same way, or None."""
    heard = comparison.results[place].result
    model = heard.model
    for other, result in enumerate(comparison.results):
        told = result.result.model
        if result.result.settings != heard.settings:
            continue
        # The version of the text stands after the model's own revision.
        is_same = (told.id, told.revision.rpartition("+text-")[0], told.options) == (
            CONTROLS[EVENTS_AS_TEXT].prefix + model.id,
            model.revision,
            model.options,
        )
        if result.kind is ModelKind.CONTROL and is_same:
            return other
    return None


def perception_tables(comparison: Comparison) -> Iterator[Table]:
    """The table of all models with results from sound and from lists of events; none where no model has both."""
    tables = {place: perception_table(comparison, place) for place in range(len(comparison.results))}
    by_label = {comparison.labels[place]: table for place, table in tables.items() if table is not None}
    if not by_label:
        return
    first = next(iter(by_label.values()))
    rows = tuple(Row((Cell(label), *row.cells)) for label, table in by_label.items() for row in table.rows)
    yield Table(first.caption, (Column("model", numeric=False), *first.columns), rows, first.legend, first.name)


def perception_table(comparison: Comparison, place: int) -> Table | None:
    """One model's answers from sound and from lists of events, over all questions and by their first grouping.

    A question that is asked with several orders of its options counts as right if it is right in every order. None
    where the model has no result from lists of events, or the task does not report by question the share of orders that
    are right.
    """
    profile, twin = comparison.info.profile, told_twin(comparison, place)
    view = None if profile is None else comparison.views.get(profile.measure)
    if profile is None or view is None or twin is None:
        return None
    if view.measure.range != (0.0, 1.0):
        return None
    shares = view.values[:, [place, twin]]
    heard, told = (shares == 1).astype(np.float64).T
    every: NDArray[np.bool_] = np.ones(len(heard), np.bool_)
    parts = [(ALL, every)]
    grouping = next(iter(profile.groupings), None)
    labels = None if comparison.samples is None else comparison.samples.groups.get(grouping or "")
    if labels is not None and len(set(labels)) > 1:
        parts += [(label, np.array(labels) == label) for label in sorted(set(labels), key=group_order)]
    rows = []
    for name, within in parts:
        crossed = cross(heard[within], told[within])
        errors = np.stack([(told == 1) & (heard == 0), told == 0], 1).astype(np.float64)[within]
        intervals = mean_intervals(errors, view.clusters[within])
        counts = (crossed.n, crossed.both, crossed.only_told, crossed.only_heard, crossed.neither)
        values = (crossed.not_heard, crossed.not_understood)
        cells = [
            Cell(value, number_text(value, 3), interval_text(interval))
            for value, interval in zip(values, intervals, strict=True)
        ]
        rows.append(Row((Cell(name), *map(Cell, counts), *cells)))
    columns = (
        Column(grouping or "questions", numeric=False),
        Column("n", digits=None),
        *(Column(heading, digits=None) for heading in ("both", "list only", "sound only", "neither")),
        Column("not heard", "share of questions answered right from the list of events and wrong from the sound"),
        Column("not understood", "share of questions answered wrong from the list of events"),
    )
    legend = (
        "List: the same questions to the same model, with silence and a list of the events and their times as text "
        f"({CONTROLS[EVENTS_AS_TEXT].prefix}). Both, list only, sound only, neither: which of the two answers are "
        "right. Not heard: right from the list and wrong from the sound, an error of perception. Not understood: "
        "wrong from the list, an error that perception cannot explain.",
        "Guesses are right in both, one or neither as often as chance predicts: near chance the shares are only "
        "bounds. Below a share: its 95 % interval over independent samples.",
        *((_ORDERS,) if not np.isin(shares, (0, 1)).all() else ()),
    )
    title = f"{comparison.info.title}: with the sound, and with a list of its events"
    return Table(title, columns, tuple(rows), legend, f"{comparison.info.name}-perception")
