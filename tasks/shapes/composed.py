"""Composed queries: a source clip and a change, and the candidates among which one is the source with the change."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any

import numpy as np

from audio_compositionality.dataset_builder.data import Row
from audio_compositionality.dataset_builder.recipes.composed_retrieval import TARGET
from audio_compositionality.support.spec import Spec

from ..base import (
    Drawing,
    Floats,
    Inputs,
    Outputs,
    Samples,
    Scores,
    TaskError,
    TaskInfo,
    events_shown,
    groups_of,
    scores_from,
)

COMPOSED_FLOOR = "chance and half of its query"
"""The floor of `TaskInfo`: a model that knows nothing, and the model itself with half of its query."""

COMPOSED_CAPTIONS: Mapping[str, str] = {"source": "the source, and its change", "candidates": "a candidate"}


class ComposedTask:
    """A task of composed queries, scored by the metric `composed_retrieval`; see `Task`.

    A subclass whose changes are no texts overrides `rows_scored` and `changes`.
    """

    spec = Spec
    drawings: tuple[Drawing, ...] = ()
    is_step = False

    def __init__(self, info: TaskInfo) -> None:
        """What it is."""
        self.info = info

    def rows_scored(self, rows: Sequence[Row]) -> list[int]:
        """Places of the rows that are scored."""
        return list(range(len(rows)))

    def changes(self, rows: Sequence[Row], clips: Sequence[Floats], outputs: Outputs) -> Floats:
        """The changes of the scored rows, [scored rows, dim]; `clips` are the source and the candidates of each row."""
        return outputs.texts.astype(np.float64)

    def inputs(self, row: Row, settings: Mapping[str, Any]) -> Inputs:
        """The source, the candidates, and the change where it is a text."""
        return Inputs(clips=_clips_of(row), texts=() if self.is_step else (row["change"],))

    def settings(self, rows: Sequence[Row], requested: Mapping[str, Any]) -> dict[str, Any]:
        """None: the score depends on the embeddings and their rows alone.

        Raises:
            TaskError: no row can be scored.
        """
        if not self.rows_scored(rows):
            raise TaskError(
                f"{self.info.name} can score none of {len(rows)} queries; it needs one whose change comes again with "
                "another source: --set items=144 gives enough"
            )
        return {}

    def score(
        self, rows: Sequence[Row], outputs: Outputs, settings: Mapping[str, Any], device: str, progress: bool
    ) -> Scores:
        """Score the embeddings of the source and the candidates of each row, and of its change."""
        # Imported by need: a task loads its metric only in the process that scores.
        from audio_compositionality.metrics.composed_retrieval import composed_retrieval

        starts = np.cumsum([0, *(1 + len(row["roles"]) for row in rows)])
        every = [outputs.clips[start:stop].astype(np.float64) for start, stop in pairwise(starts)]
        places = self.rows_scored(rows)
        scored, clips = [rows[place] for place in places], [every[place] for place in places]
        values = composed_retrieval(
            np.stack([of_row[0] for of_row in clips]),
            self.changes(rows, every, outputs),
            [of_row[1:] for of_row in clips],
            np.array([row["roles"].index(TARGET) for row in scored]),
            [row["kind"] for row in scored],
            is_step=self.is_step,
            return_scores=True,
        )
        return scores_from(values | {"left_out": len(rows) - len(scored)}, self.info, scored)

    def samples(self, rows: Sequence[Row]) -> Samples:
        """The scored rows; rows of the same change belong together, since a text or a step is of all of them."""
        scored = tuple(rows[place] for place in self.rows_scored(rows))
        return Samples(
            rows=scored,
            clusters=groups_of(scored, "key"),
            clustered_by="the change",
            groups={"kind": tuple(row["kind"] for row in scored)},
            contents=tuple(
                {name: events_shown(events) for name, events in zip(_clips_of(row), row["events"], strict=True)}
                for row in scored
            ),
            texts=tuple(
                dict(zip(_clips_of(row), (row["change"], *map(_said, row["roles"])), strict=True)) for row in scored
            ),
        )


def _clips_of(row: Row) -> tuple[str, ...]:
    """The source and the candidates."""
    return ("source", *(f"candidates/{place}" for place in range(len(row["roles"]))))


def _said(role: str) -> str:
    """A role, for people."""
    return "the target" if role == TARGET else role
