"""Invariance: does what changes a clip and not its content leave its embedding where it is (arXiv 2505.06224)?"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from audio_compositionality.dataset_builder.data import Row
from audio_compositionality.encoders.protocols import AudioEncoder

from .base import Drawing, Inputs, Outputs, Samples, Scores, TaskInfo
from .metric_files import describe_metric
from .parts import LEVELS, PartedMeasures, columns_of_parts
from .transform_rows import (
    CAPTIONS,
    TRANSFORMS,
    WARNING,
    bases_of,
    blocks_of,
    check_orbits,
    copied_originals,
    orbit_places,
    original_samples,
    parameters_of,
    transforms_of,
)

_METRIC = describe_metric("invariance")

_PARTED = PartedMeasures(
    _METRIC.measures,
    TRANSFORMS,
    "transforms",
    averaged=[measure.name for measure in _METRIC.measures if measure.name not in ("selectivity", "n")],
    of_parts=[measure.name for measure in _METRIC.measures if measure.name not in ("selectivity", "n")],
    shown=("invariance", "cosine", "cosine_null", "top1"),
)


class Invariance:
    """The task; see `Task`."""

    info = TaskInfo(
        name="invariance",
        version=_METRIC.version,
        title="Invariance",
        question="Does an embedding stay where it is under gain, noise, filters and reverberation?",
        benchmark="axes",
        recipe="transforms",
        model=AudioEncoder,
        samples="clips with copies",
        measures=_PARTED.described,
        ranks_by="invariance",
        trusted={"invariance": None},
        captions=CAPTIONS,
        warning=(
            f"{WARNING} The plain cosine misleads: different clips of an untrained network can have one of .99 as well."
        ),
        citation=_METRIC.citation,
        protocols={"paper": {}},
        on_request=True,
        controls=LEVELS,
    )
    drawings: tuple[Drawing, ...] = ()

    def inputs(self, row: Row, settings: Mapping[str, Any]) -> Inputs:
        """The clip."""
        return Inputs(clips=("audio",))

    def settings(self, rows: Sequence[Row], requested: Mapping[str, Any]) -> dict[str, Any]:
        """None: the score depends on the embeddings and their rows alone."""
        check_orbits(rows, self.info.name)
        return {}

    def score(
        self, rows: Sequence[Row], outputs: Outputs, settings: Mapping[str, Any], device: str, progress: bool
    ) -> Scores:
        """Score the embeddings [n, dim] of originals and copies; nothing is fitted."""
        # Importing the metric imports `evaluate`, which takes seconds that only the process that scores has to spend.
        from audio_compositionality.metrics.invariance.invariance import invariance

        embeddings = np.asarray(outputs.clips, np.float64)
        results: dict[str, dict[str, Any]] = {}
        for transform in transforms_of(rows):
            places = orbit_places(rows, transform)
            orbits = [rows[place] for place in places]
            results[transform] = invariance(
                embeddings[places],
                bases_of(orbits),
                parameters_of(orbits),
                blocks_of(orbits),
                return_scores=True,
            )
        columns = columns_of_parts({transform: result.pop("scores") for transform, result in results.items()})
        return Scores(_PARTED.values(results), tuple(row["id"] for row in copied_originals(rows)), columns)

    def samples(self, rows: Sequence[Row]) -> Samples:
        """The originals that have copies."""
        return original_samples(rows)


TASK = Invariance()
