"""Equivariance: does a change of one factor move an embedding in a way that can be read and foretold (2505.06224)?"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from typing import Any

import numpy as np

from audio_compositionality.dataset_builder.data import Row
from audio_compositionality.encoders.base import ENCODER

from .base import Drawing, Floats, Inputs, Outputs, Samples, Scores, TaskError, TaskInfo, settings_among
from .factor_rows import (
    CAPTIONS,
    FACTORS,
    WARNING,
    check_crossed,
    contexts_of,
    crossed_rows,
    crossed_samples,
    is_crossed,
    labels_of,
    star_clip,
)
from .metric_files import describe_metric
from .parts import FOLDS, LEVELS, PAPER, PartedMeasures, ProbeSpec, columns_of_parts, dealt_folds
from .scenes import numbered

_METRIC = describe_metric("equivariance")

_CROSSED = PartedMeasures(
    _METRIC.measures,
    FACTORS,
    "factors",
    averaged=(
        *("r_equivariance", "r_explained", "r_translate", "r_level_top1", "r_level_chance"),
        *("r_context_top1", "r_context_chance", "r_cosine", "identity_cosine"),
        *("p", "p_start", "p_end", "p_difference", "p_from_labels", "p_gain", "shuffled_p"),
    ),
    of_parts=[measure.name for measure in _METRIC.measures],
    shown=("r_equivariance", "p", "p_start", "p_gain"),
)

_STARS = PartedMeasures(
    _METRIC.measures,
    [f"{factor}_in_scene" for factor in FACTORS],
    "factors",
    averaged=("r_equivariance", "p", "p_start", "p_gain"),
    of_parts=("r_equivariance", "r_explained", "p", "p_start", "p_gain", "pairs"),
    prefix="in_scene_",
)


class Equivariance:
    """The task; see `Task`."""

    info = TaskInfo(
        name="equivariance",
        version=_METRIC.version,
        title="Equivariance",
        question="Can the change of one factor be read from two embeddings, and the second foretold from it?",
        benchmark="axes",
        recipe="factors",
        needs=ENCODER,
        samples="clips",
        measures=(*_CROSSED.described, *_STARS.described),
        ranks_by="r_equivariance",
        trusted={"r_equivariance": None, "p_gain": None},
        captions=CAPTIONS,
        warning=(
            f"{WARNING} An encoder that only maps energy smoothly is highly equivariant: untrained networks exceed "
            "trained ones here."
        ),
        citation=_METRIC.citation,
        protocols={"paper": PAPER},
        on_request=True,
        controls=LEVELS,
    )
    spec = ProbeSpec
    drawings: tuple[Drawing, ...] = ()

    def inputs(self, row: Row, settings: Mapping[str, Any]) -> Inputs:
        """The clip, but for stars' clips of other onsets."""
        return Inputs(clips=("audio",)) if is_crossed(row) or star_clip(row) in (*FACTORS, "") else Inputs()

    def settings(self, rows: Sequence[Row], requested: Mapping[str, Any]) -> dict[str, Any]:
        """The probes, and whether features are scaled."""
        check_crossed(rows, self.info.name)
        stars = {row["block"] for row in rows if not is_crossed(row)}
        if len(stars) < FOLDS:
            raise TaskError(f"{self.info.name} has {len(stars)} stars; it needs at least {FOLDS}")
        return settings_among(self.spec, requested).values()

    def score(
        self, rows: Sequence[Row], outputs: Outputs, settings: Mapping[str, Any], device: str, progress: bool
    ) -> Scores:
        """Score the embeddings [n, dim] of single sources and stars; orbits are tested whole where they were not
        learnt from."""
        given = [row for row in rows if self.inputs(row, settings).clips]
        embeddings = np.asarray(outputs.clips)  # the metric makes float64 of what it is given, part by part
        crossed = np.array([is_crossed(row) for row in given])
        singles = crossed_rows(given)
        results = {
            factor: _scored(embeddings[crossed], singles, factor, contexts_of(singles, factor), settings)
            for factor in FACTORS
        }
        in_scene = {}
        for factor in FACTORS:
            places = [
                place for place, row in enumerate(given) if not is_crossed(row) and star_clip(row) in (factor, "")
            ]
            members = [given[place] for place in places]
            stars = [row["block"] for row in members]
            in_scene[f"{factor}_in_scene"] = _scored(embeddings[places], members, factor, stars, settings)
        columns: dict[str, Floats] = {}
        for column in ("score", "score_p", "score_p_gain"):
            lists = {factor: result[column.replace("score", "scores")] for factor, result in results.items()}
            columns |= columns_of_parts(
                {factor: scores for factor, scores in lists.items() if scores is not None}, column
            )
        return Scores(
            {**_CROSSED.values(results), **_STARS.values(in_scene)}, tuple(row["id"] for row in singles), columns
        )

    def samples(self, rows: Sequence[Row]) -> Samples:
        """The single sources."""
        return crossed_samples(rows)


def _scored(
    embeddings: Floats, rows: Sequence[Row], factor: str, orbits: Sequence[Hashable], settings: Mapping[str, Any]
) -> dict[str, Any]:
    # Importing the metric imports `evaluate`, which takes seconds that only the process that scores has to spend.
    from audio_compositionality.metrics.equivariance import equivariance

    numbers = numbered(orbits)
    return equivariance(
        embeddings, numbers, labels_of(rows, factor), dealt_folds(orbits), numbers, **settings, return_scores=True
    )


TASK = Equivariance()
