"""Informativeness: can each factor of a source be read from its embedding (arXiv 2505.06224, section III)?"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from audio_compositionality.dataset_builder.data import Row
from audio_compositionality.encoders.base import ENCODER

from .base import Drawing, Inputs, Outputs, Samples, Scores, TaskInfo, settings_among
from .factor_rows import (
    CAPTIONS,
    FACTORS,
    WARNING,
    check_crossed,
    contexts_of,
    crossed_inputs,
    crossed_rows,
    crossed_samples,
    labels_of,
)
from .metric_files import describe_metric
from .parts import LEVELS, PAPER, PROBES, PartedMeasures, ProbeSpec, columns_of_parts, dealt_folds
from .scenes import numbered

_METRIC = describe_metric("informativeness")

_PARTED = PartedMeasures(
    _METRIC.measures,
    FACTORS,
    "factors",
    averaged=("informativeness", *PROBES, "shuffled"),
    of_parts=[measure.name for measure in _METRIC.measures],
    shown=("informativeness", "shuffled"),
)


class Informativeness:
    """The task; see `Task`."""

    info = TaskInfo(
        name="informativeness",
        version=_METRIC.version,
        title="Informativeness",
        question="Can timbre, pitch, rate and amplitude of a source be read from its embedding?",
        benchmark="axes",
        recipe="factors",
        needs=ENCODER,
        samples="clips",
        measures=_PARTED.described,
        ranks_by="informativeness",
        trusted={"informativeness": None},
        captions=CAPTIONS,
        warning=(
            f"{WARNING} Most encoders, trained or not, are near 1: what is there says little of how it is there. Rate "
            "and amplitude are read from the level of a clip alone."
        ),
        citation=_METRIC.citation,
        protocols={"paper": PAPER},
        on_request=True,
        controls=LEVELS,
    )
    spec = ProbeSpec
    drawings: tuple[Drawing, ...] = ()

    def inputs(self, row: Row, settings: Mapping[str, Any]) -> Inputs:
        """The clip of a single source."""
        return crossed_inputs(row)

    def settings(self, rows: Sequence[Row], requested: Mapping[str, Any]) -> dict[str, Any]:
        """The probes, and whether features are scaled."""
        check_crossed(rows, self.info.name)
        return settings_among(self.spec, requested).values()

    def score(
        self, rows: Sequence[Row], outputs: Outputs, settings: Mapping[str, Any], device: str, progress: bool
    ) -> Scores:
        """Score the embeddings [n, dim] of n single sources: a factor is tested in contexts it was not learnt in."""
        # Importing the metric imports `evaluate`, which takes seconds that only the process that scores has to spend.
        from audio_compositionality.metrics.informativeness import informativeness

        crossed = crossed_rows(rows)
        embeddings = np.asarray(outputs.clips, np.float64)
        results: dict[str, dict[str, Any]] = {}
        for factor in FACTORS:
            contexts = contexts_of(crossed, factor)
            results[factor] = informativeness(
                embeddings,
                labels_of(crossed, factor),
                dealt_folds(contexts),
                numbered(contexts),
                **settings,
                return_scores=True,
            )
        columns = columns_of_parts({factor: result.pop("scores") for factor, result in results.items()})
        return Scores(_PARTED.values(results), tuple(row["id"] for row in crossed), columns)

    def samples(self, rows: Sequence[Row]) -> Samples:
        """The single sources."""
        return crossed_samples(rows)


TASK = Informativeness()
