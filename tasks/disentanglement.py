"""Disentanglement: is each factor of a source found where another has levels that were never heard (2505.06224)?"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import permutations
from typing import Any

import numpy as np
from pydantic import Field

from audio_compositionality.dataset_builder.data import Row
from audio_compositionality.encoders.base import ENCODER

from .base import Drawing, Inputs, Outputs, Samples, Scores, TaskInfo, settings_among
from .factor_rows import (
    CAPTIONS,
    FACTORS,
    WARNING,
    check_crossed,
    crossed_inputs,
    crossed_rows,
    crossed_samples,
    labels_of,
)
from .metric_files import describe_metric
from .parts import LEVELS, PAPER, PartedMeasures, ProbeSpec

_METRIC = describe_metric("disentanglement")

_PAIRS = {f"{factor}_over_{other}": (factor, other) for factor, other in permutations(FACTORS, 2)}

_PARTED = PartedMeasures(
    _METRIC.measures,
    tuple(_PAIRS),
    "pairs of factors",
    averaged=[measure.name for measure in _METRIC.measures if not measure.name.startswith("shift")],
    of_parts=("unseen", "seen", "unseen_r2", "seen_r2", "leak", "overlap"),
)

_SHOWN = ("unseen", "seen", "overlap", "overlap_chance", "leak", "rate_over_timbre_unseen")


class DisentanglementSpec(ProbeSpec):
    """What can be set of the task."""

    literature: bool = Field(
        False, description="Whether scores of the literature (DCI, MIG, SAP) are computed as well."
    )


class Disentanglement:
    """The task; see `Task`."""

    info = TaskInfo(
        name="disentanglement",
        version=_METRIC.version,
        title="Disentanglement",
        question="Is a factor still read where another has levels that the probe never heard?",
        benchmark="axes",
        recipe="factors",
        needs=ENCODER,
        samples="clips",
        measures=tuple(replace(measure, shown=measure.name in _SHOWN) for measure in _PARTED.described),
        ranks_by="unseen",
        trusted={"unseen": None},
        captions=CAPTIONS,
        warning=(
            f"{WARNING} The rate is read from timbres never heard by who hears levels alone. Scores of the literature "
            "(DCI, MIG, SAP) change under a rotation, which leaves all that can be read as it is: they stand beside "
            "themselves after one."
        ),
        citation=_METRIC.citation,
        protocols={"paper": PAPER},
        on_request=True,
        controls=LEVELS,
    )
    spec = DisentanglementSpec
    drawings: tuple[Drawing, ...] = ()

    def inputs(self, row: Row, settings: Mapping[str, Any]) -> Inputs:
        """The clip of a single source."""
        return crossed_inputs(row)

    def settings(self, rows: Sequence[Row], requested: Mapping[str, Any]) -> dict[str, Any]:
        """The probes, whether features are scaled, and whether scores of the literature are computed."""
        check_crossed(rows, self.info.name)
        return settings_among(self.spec, requested).values()

    def score(
        self, rows: Sequence[Row], outputs: Outputs, settings: Mapping[str, Any], device: str, progress: bool
    ) -> Scores:
        """Score the embeddings [n, dim] of n single sources."""
        # Importing the metric imports `evaluate`, which takes seconds that only the process that scores has to spend.
        from audio_compositionality.metrics.disentanglement import disentanglement

        crossed = crossed_rows(rows)
        result = disentanglement(
            np.asarray(outputs.clips, np.float64),
            {factor: labels_of(crossed, factor) for factor in FACTORS},
            **settings,
            return_scores=True,
        )
        by_pair = {(numbers["factor"], numbers["over"]): numbers for numbers in result["by_pair"]}
        values = _PARTED.values({part: by_pair.get(pair, {}) for part, pair in _PAIRS.items()})
        # What the metric gives is no mean over pairs alone: shares of variance are of all factors together.
        values |= {name: result[name] for name in _PARTED.averaged}
        columns = {f"{part}_score": by_pair[pair]["scores"] for part, pair in _PAIRS.items() if pair in by_pair}
        columns = {name: np.array(column) for name, column in {"score": result["scores"], **columns}.items()}
        return Scores(values, tuple(row["id"] for row in crossed), columns)

    def samples(self, rows: Sequence[Row]) -> Samples:
        """The single sources."""
        return crossed_samples(rows)


TASK = Disentanglement()
