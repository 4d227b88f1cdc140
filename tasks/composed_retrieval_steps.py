"""Composed retrieval by steps: is the clip found that is a source clip moved by the mean step of a change?"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from audio_compositionality.dataset_builder.data import Row
from audio_compositionality.dataset_builder.recipes.composed_retrieval import TARGET
from audio_compositionality.encoders.base import ENCODER

from .base import Floats, Measure, Outputs, TaskInfo
from .metric_files import describe_metric
from .shapes.composed import COMPOSED_CAPTIONS, COMPOSED_FLOOR, ComposedTask

_METRIC = describe_metric("composed_retrieval")


@dataclass(frozen=True, kw_only=True)
class _StepInfo(TaskInfo):
    """The facts of the task."""

    @property
    def floor(self) -> str:
        """A model that knows nothing, and the model itself with half of its query."""
        return COMPOSED_FLOOR


class StepTask(ComposedTask):
    """The change of a row is the mean of z(target) − z(source) over other rows; see `rows_of_step`."""

    is_step = True

    def rows_scored(self, rows: Sequence[Row]) -> list[int]:
        """Places of the rows that have others to learn their step from."""
        return [place for place, learnt in enumerate(rows_of_step(rows)) if learnt]

    def changes(self, rows: Sequence[Row], clips: Sequence[Floats], outputs: Outputs) -> Floats:
        """The mean steps, [scored rows, dim]."""
        steps = [of_row[1 + row["roles"].index(TARGET)] - of_row[0] for row, of_row in zip(rows, clips, strict=True)]
        return np.array([np.mean([steps[k] for k in places], axis=0) for places in rows_of_step(rows) if places])


def rows_of_step(rows: Sequence[Row]) -> list[list[int]]:
    """For each row the places of the rows whose mean step is its change: of the same key, with other labels in the
    source, and of these the ones that share fewest labels with its source; none where there is no such row."""
    labels = [frozenset(event["label"] for event in row["events"][0]) for row in rows]
    by_key: dict[str, list[int]] = {}
    for place, row in enumerate(rows):
        by_key.setdefault(row["key"], []).append(place)
    of_rows = []
    for place, row in enumerate(rows):
        shared = {k: len(labels[place] & labels[k]) for k in by_key[row["key"]] if rows[k]["pair"] != row["pair"]}
        of_rows.append([k for k, count in shared.items() if count == min(shared.values())])
    return of_rows


TASK = StepTask(
    _StepInfo(
        name="composed_retrieval_steps",
        version=_METRIC.version,
        title="Composed retrieval by steps",
        question="Is the clip found that is a source clip moved by the mean step of a change?",
        benchmark="kinds",
        recipe="composed_retrieval",
        needs=ENCODER,
        samples="queries",
        measures=(
            *_METRIC.measures,
            Measure("left_out", "left out", "rows without others of their change", 0, (0.0, 1e15)),
        ),
        ranks_by="r1",
        trusted={"r1": "chance", "gain": 0.0},
        captions=COMPOSED_CAPTIONS,
        warning=(
            "Chance is not the floor: the source alone, or the step alone, may find as much, and R@1 has to be above "
            "both. A sum of what is heard in each place goes wrong where a sound is added first, since all others "
            "move; a sum without places finds half of the kind then. A spectrum of the whole clip has a direction for "
            "each sound, and so finds most of the kind attribute."
        ),
        citation=_METRIC.citation,
        on_request=True,
        is_level_matched=True,
    )
)
