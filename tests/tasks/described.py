"""What the scores of every task have to be, whatever was embedded."""

from __future__ import annotations

import json

import numpy as np
import pytest

from audio_compositionality.tasks.base import Scores, Task


def check_described(task: Task, scores: Scores, rows: list) -> None:
    """Numbers are those that the task describes, in their ranges, and means of their columns; the ids its samples'."""
    assert set(scores.measures) == {measure.name for measure in task.info.measures}
    assert scores.ids == task.samples(rows).ids
    assert json.dumps(scores.measures, allow_nan=False)
    for measure in task.info.measures:
        value, column = scores.measures[measure.name], scores.columns.get(measure.column)
        assert value is None or measure.range[0] - 1e-9 <= value <= measure.range[1] + 1e-9, measure.name
        if column is not None:
            assert column.shape == (len(scores.ids),)
            assert np.isfinite(column).all()
            assert column.mean() == pytest.approx(value, abs=1e-9), measure.name
    assert all(measure.column for measure in task.info.recommended)
