"""A task of a third party: is a tone near its octave?"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from audio_compositionality.dataset_builder.data import Row
from audio_compositionality.encoders.base import ENCODER
from audio_compositionality.support.spec import Spec
from audio_compositionality.tasks.base import (
    Drawing,
    Inputs,
    Outputs,
    Samples,
    Scores,
    TaskError,
    TaskInfo,
    independent_samples,
)
from audio_compositionality.tasks.metric_files import describe_metric

_METRIC = describe_metric(Path(__file__).parent / "toy_pairs" / "toy_pairs.py")


class ToyTask:
    """The task; see `audio_compositionality.tasks.base.Task`."""

    info = TaskInfo(
        name="toy_pairs",
        version=_METRIC.version,
        title="Octave-Similarity",
        question="Is a tone nearer to its octave than to the octaves of other tones?",
        benchmark="toy",
        recipe="toy_pairs",
        needs=ENCODER,
        samples="pairs",
        measures=_METRIC.measures,
        ranks_by="adjusted",
        warning="A made-up score: it shows how a task is made.",
        citation=_METRIC.citation,
    )
    spec = Spec  # nothing can be set
    drawings: tuple[Drawing, ...] = ()

    def inputs(self, row: Row, settings: Mapping[str, Any]) -> Inputs:
        """Both clips of a pair."""
        return Inputs(clips=("low", "high"))

    def settings(self, rows: Sequence[Row], requested: Mapping[str, Any]) -> dict[str, Any]:
        """None; two pairs at least."""
        if len(rows) < 2:
            raise TaskError(f"toy_pairs has {len(rows)} pairs; it needs two at least")
        return {}

    def score(
        self, rows: Sequence[Row], outputs: Outputs, settings: Mapping[str, Any], device: str, progress: bool
    ) -> Scores:
        """Score the embeddings [2 n, dim] of n pairs."""
        from toy_pairs.toy_pairs import toy_pairs

        values = toy_pairs(outputs.clips[::2], outputs.clips[1::2], return_scores=True)
        columns = {"score": np.asarray(values.pop("scores"), np.float64)}
        return Scores(values, tuple(row["id"] for row in rows), columns)

    def samples(self, rows: Sequence[Row]) -> Samples:
        """Each pair is its own."""
        return independent_samples(rows)


TASK = ToyTask()
