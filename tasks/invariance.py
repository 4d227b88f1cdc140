"""Invariance: does what changes a clip and not its content move its embedding less than what does change the content?

The axis of arXiv 2505.06224. The task ranks by what is invariant *and* selective: for each transform, how often a copy
is nearer to another clip of its content than to one of another content, at one level. See the metric `invariance`
(`abx`), and `dataset_builder/scenes/bases.py` for the two clips.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from audio_compositionality.dataset_builder.data import Row
from audio_compositionality.dataset_builder.scenes.bases import SAME
from audio_compositionality.encoders.base import ENCODER
from audio_compositionality.support.spec import Spec

from .base import Drawing, Inputs, Outputs, Samples, Scores, TaskError, TaskInfo
from .metric_files import describe_metric
from .parts import LEVELS, PartedMeasures, columns_of_parts
from .transform_rows import (
    CAPTIONS,
    TRANSFORMS,
    WARNING,
    bases_of,
    blocks_of,
    candidate_places,
    check_orbits,
    compared,
    copied_originals,
    is_candidate,
    is_original,
    orbit_places,
    original_samples,
    parameters_of,
    transforms_of,
)

_METRIC = describe_metric("invariance")

_NAMES = ("abx", *(measure.name for measure in _METRIC.measures if measure.name not in ("abx", "n")))

_PARTED = PartedMeasures(
    _METRIC.measures,
    TRANSFORMS,
    "transforms",
    averaged=_NAMES,
    of_parts=_NAMES,
    shown=("abx", "selectivity", "invariance", "cosine", "cosine_null", "top1"),
)


class Invariance:
    """The task; see `Task`."""

    info = TaskInfo(
        name="invariance",
        version=_METRIC.version,
        title="Invariance",
        question="Does gain, noise, a filter or reverberation move an embedding less than other content does?",
        benchmark="axes",
        recipe="transforms",
        needs=ENCODER,
        samples="clips with copies",
        measures=_PARTED.described,
        ranks_by="abx",
        trusted={"abx": 0.0},
        captions=CAPTIONS,
        warning=(
            f"{WARNING} Nothing is ranked by the invariance itself: what hears nothing but the level is invariant to "
            "all that leaves the level. The plain cosine misleads: different clips of an untrained network can have "
            "one of .99 as well."
        ),
        citation=_METRIC.citation,
        protocols={"paper": {}},
        on_request=True,
        controls=LEVELS,
    )
    spec = Spec
    drawings: tuple[Drawing, ...] = ()

    def inputs(self, row: Row, settings: Mapping[str, Any]) -> Inputs:
        """The clip."""
        return Inputs(clips=("audio",))

    def settings(self, rows: Sequence[Row], requested: Mapping[str, Any]) -> dict[str, Any]:
        """None: the score depends on the embeddings and their rows alone."""
        check_orbits(rows, self.info.name)
        if not compared(rows):
            raise TaskError(f"{self.info.name} has no clips that copies could be compared with: build the data anew")
        check_orbits(compared(rows), self.info.name)
        return {}

    def score(
        self, rows: Sequence[Row], outputs: Outputs, settings: Mapping[str, Any], device: str, progress: bool
    ) -> Scores:
        """Score the embeddings [n, dim] of originals and copies; nothing is fitted."""
        # Importing the metric imports `evaluate`, which takes seconds that only the process that scores has to spend.
        from audio_compositionality.metrics.invariance import invariance

        every, rows = rows, compared(rows)
        kept = {row["id"] for row in rows}
        embeddings = np.asarray(outputs.clips, np.float64)[[row["id"] in kept for row in every]]
        same, other = candidate_places(rows)
        place_of = {rows[place]["base"]: number for number, place in enumerate(same)}
        results: dict[str, dict[str, Any]] = {}
        for transform in transforms_of(rows):
            places = orbit_places(rows, transform)
            orbits = [rows[place] for place in places]
            pairs = [place_of[row["base"]] for row in orbits if is_original(row)]
            a, b = (embeddings[[side[pair] for pair in pairs]] for side in (same, other))
            results[transform] = invariance(
                embeddings[places],
                bases_of(orbits),
                parameters_of(orbits),
                blocks_of(orbits),
                steps=b - a,
                same=a,
                different=b,
                return_scores=True,
            )
        columns = {
            **columns_of_parts({name: result.pop("scores_abx") for name, result in results.items()}, "score_abx"),
            **columns_of_parts({name: result.pop("scores") for name, result in results.items()}),
        }
        return Scores(_PARTED.values(results), tuple(row["id"] for row in copied_originals(rows)), columns)

    def samples(self, rows: Sequence[Row]) -> Samples:
        """The originals that have copies and clips that these are compared with."""
        rows = compared(rows)
        samples = original_samples(rows)
        differs = {row["base"]: row["candidate"] for row in rows if is_candidate(row) and row["candidate"] != SAME}
        groups = {"what the other clip differs in": tuple(differs[row["base"]] for row in samples.rows)}
        return replace(samples, groups={**samples.groups, **groups})


TASK = Invariance()
