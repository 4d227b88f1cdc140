"""Equivariance to transforms: can the strength of one be read from two embeddings, and the second foretold from it?"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from audio_compositionality.dataset_builder.data import Row
from audio_compositionality.encoders.base import ENCODER

from .base import Drawing, Floats, Inputs, Outputs, Samples, Scores, TaskInfo, settings_among
from .metric_files import describe_metric
from .parts import LEVELS, PAPER, PartedMeasures, ProbeSpec, columns_of_parts
from .scenes import numbered
from .transform_rows import (
    CAPTIONS,
    TRANSFORMS,
    WARNING,
    blocks_of,
    check_orbits,
    copied_originals,
    folds_of,
    is_candidate,
    is_original,
    orbit_places,
    original_samples,
    parameters_of,
    transforms_of,
    without_candidates,
)

_METRIC = describe_metric("equivariance")

_LEFT_OUT = ("p_from_labels", "n")
"""Originals have no parameter that could be read from one clip."""

_PARTED = PartedMeasures(
    _METRIC.measures,
    TRANSFORMS,
    "transforms",
    averaged=(
        *("r_equivariance", "r_explained", "r_translate", "r_level_top1", "r_level_chance"),
        *("r_cosine", "identity_cosine", "p", "p_start", "p_end", "p_difference", "p_gain", "shuffled_p"),
    ),
    of_parts=[measure.name for measure in _METRIC.measures if measure.name not in _LEFT_OUT],
    shown=("r_equivariance", "p", "p_end", "p_gain"),
)


class TransformEquivariance:
    """The task; see `Task`."""

    info = TaskInfo(
        name="transform_equivariance",
        version=_METRIC.version,
        title="Equivariance to transforms",
        question="Can the strength of a transform be read from two embeddings, and the second foretold from it?",
        benchmark="axes",
        recipe="transforms",
        needs=ENCODER,
        samples="clips with copies",
        measures=_PARTED.described,
        ranks_by="r_equivariance",
        trusted={"r_equivariance": None, "p_gain": None},
        captions=CAPTIONS,
        warning=WARNING,
        citation=_METRIC.citation,
        protocols={"paper": PAPER},
        on_request=True,
        controls=LEVELS,
    )
    spec = ProbeSpec
    drawings: tuple[Drawing, ...] = ()

    def inputs(self, row: Row, settings: Mapping[str, Any]) -> Inputs:
        """The clip of a base or a copy."""
        return Inputs() if is_candidate(row) else Inputs(clips=("audio",))

    def settings(self, rows: Sequence[Row], requested: Mapping[str, Any]) -> dict[str, Any]:
        """The probes, and whether features are scaled."""
        check_orbits(rows, self.info.name)
        return settings_among(self.spec, requested).values()

    def score(
        self, rows: Sequence[Row], outputs: Outputs, settings: Mapping[str, Any], device: str, progress: bool
    ) -> Scores:
        """Score the embeddings [n, dim] of originals and copies; pairs go from an original to its copies."""
        # Importing the metric imports `evaluate`, which takes seconds that only the process that scores has to spend.
        from audio_compositionality.metrics.equivariance import equivariance

        rows, embeddings = without_candidates(rows), np.asarray(outputs.clips, np.float64)
        originals = copied_originals(rows)
        place_of = {row["base"]: place for place, row in enumerate(originals)}
        results: dict[str, dict[str, Any]] = {}
        columns: dict[str, dict[str, Floats]] = {"score": {}, "score_p": {}, "score_p_gain": {}}
        for transform in transforms_of(rows):
            places = orbit_places(rows, transform)
            orbits = [rows[place] for place in places]
            result = results[transform] = equivariance(
                embeddings[places],
                numbered([row["base"] for row in orbits]),
                parameters_of(orbits),
                folds_of(orbits),
                numbered(blocks_of(orbits)),
                base=[is_original(row) for row in orbits],
                **settings,
                return_scores=True,
            )
            ends = np.array([place_of[orbits[row]["base"]] for row in result["rows"]])
            for column, lists in columns.items():
                scores = np.array(result[column.replace("score", "scores")])
                lists[transform] = _means(scores, ends, len(originals))
        merged: dict[str, Floats] = {}
        for column, lists in columns.items():
            merged |= columns_of_parts(lists, column)
        return Scores(_PARTED.values(results), tuple(row["id"] for row in originals), merged)

    def samples(self, rows: Sequence[Row]) -> Samples:
        """The originals that have copies."""
        return original_samples(rows)


def _means(scores: Floats, originals: NDArray[np.int64], count: int) -> Floats:
    """The mean score of the copies of each original, so weighted that the mean of means is that of all copies."""
    totals: Floats = np.bincount(originals, scores, count).astype(np.float64)
    return totals * (count / len(scores))


TASK = TransformEquivariance()
