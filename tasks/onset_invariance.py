"""Invariance to onsets: do other onsets of the same sources leave an embedding where it is (arXiv 2505.06224)?"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from audio_compositionality.dataset_builder.data import Row
from audio_compositionality.dataset_builder.recipes.factors import ONSET
from audio_compositionality.encoders.protocols import AudioEncoder

from . import scenes
from .base import Drawing, Floats, Inputs, Outputs, Samples, Scores, TaskError, TaskInfo
from .factor_rows import FACTORS, WARNING, is_crossed, star_clip
from .metric_files import describe_metric
from .parts import FOLDS, LEVELS

_METRIC = describe_metric("invariance")

_LEFT_OUT = ("quarter_1", "quarter_2", "quarter_3", "quarter_4", "selectivity")

_MEASURES = {measure.name: measure for measure in _METRIC.measures}

_SELECTIVITIES = tuple(
    replace(
        _MEASURES["selectivity"],
        name=f"{factor}_selectivity",
        heading=f"{factor} selectivity",
        meaning=f"mean squared step when the {factor} of one source changes / that when only onsets do",
    )
    for factor in FACTORS
)


class OnsetInvariance:
    """The task; see `Task`."""

    info = TaskInfo(
        name="onset_invariance",
        version=_METRIC.version,
        title="Invariance to onsets",
        question="Does an embedding stay where it is when the same sources only begin at other times?",
        benchmark="axes",
        recipe="factors",
        model=AudioEncoder,
        samples="stars",
        measures=(
            *(measure for measure in _METRIC.measures if measure.name not in _LEFT_OUT),
            *_SELECTIVITIES,
        ),
        ranks_by="invariance",
        trusted={"invariance": None},
        captions={"audio": "a star's base"},
        warning=f"{WARNING} What hears nothing is invariant to all: selectivity tells how much more what matters does.",
        citation=_METRIC.citation,
        on_request=True,
        controls=LEVELS,
    )
    drawings: tuple[Drawing, ...] = ()

    def inputs(self, row: Row, settings: Mapping[str, Any]) -> Inputs:
        """The clip of a star; nothing of the other rows."""
        return Inputs() if is_crossed(row) else Inputs(clips=("audio",))

    def settings(self, rows: Sequence[Row], requested: Mapping[str, Any]) -> dict[str, Any]:
        """None: the score depends on the embeddings and their rows alone."""
        stars = _stars(rows)
        if len(stars) < FOLDS:
            raise TaskError(
                f"{self.info.name} has {len(stars)} stars with a base and other onsets; it needs at least {FOLDS}"
            )
        return {}

    def score(
        self, rows: Sequence[Row], outputs: Outputs, settings: Mapping[str, Any], device: str, progress: bool
    ) -> Scores:
        """Score the embeddings [n, dim] of the clips of stars; nothing is fitted."""
        # Importing the metric imports `evaluate`, which takes seconds that only the process that scores has to spend.
        from audio_compositionality.metrics.invariance.invariance import invariance, selectivity

        stars = list(_stars(rows).values())
        embeddings = np.asarray(outputs.clips, np.float64)
        originals = embeddings[[clips[""][0] for clips in stars]]
        copies = embeddings[[clips[ONSET][0] for clips in stars]]
        base = [-1] * len(stars) + list(range(len(stars)))
        result = invariance(np.concatenate([originals, copies]), base, return_scores=True)
        selectivities: dict[str, float | None] = {}
        for measure, factor in zip(_SELECTIVITIES, FACTORS, strict=True):
            steps = _steps(embeddings, stars, factor)
            selectivities[measure.name] = None if steps is None else selectivity(steps, copies - originals)
        values = {measure.name: (result | selectivities)[measure.name] for measure in self.info.measures}
        return Scores(values, tuple(_bases(rows)), {"score": np.array(result["scores"])})

    def samples(self, rows: Sequence[Row]) -> Samples:
        """The stars, each by its base."""
        ids = _bases(rows)
        by_id = {row["id"]: row for row in rows}
        bases = [by_id[id] for id in ids]
        counts = scenes.counts([row["metadata"] for row in bases])
        return Samples(
            rows=tuple(bases),
            clusters=np.arange(len(bases)),
            groups={"the number of sources": tuple(map(str, counts))},
            contents=tuple({"audio": scenes.labels_for_people(row["metadata"])} for row in bases),
        )


def _stars(rows: Sequence[Row]) -> dict[str, dict[str, list[int]]]:
    """Of each star that has a base and other onsets, places of its clips among those of stars, by what was changed."""
    stars: dict[str, dict[str, list[int]]] = defaultdict(lambda: defaultdict(list))
    for place, row in enumerate(row for row in rows if not is_crossed(row)):
        stars[row["block"]][star_clip(row)].append(place)
    return {name: clips for name, clips in stars.items() if clips[""] and clips[ONSET]}


def _bases(rows: Sequence[Row]) -> list[str]:
    """Row id of the base of each star that is scored, in the order of `_stars`."""
    given = [row for row in rows if not is_crossed(row)]
    return [str(given[clips[""][0]]["id"]) for clips in _stars(given).values()]


def _steps(embeddings: Floats, stars: Sequence[Mapping[str, Sequence[int]]], factor: str) -> Floats | None:
    """The steps [m, dim] from the base of each star to its clips with another level of a factor; None without any."""
    pairs = [(clips[""][0], place) for clips in stars for place in clips[factor]]
    if not pairs:
        return None
    start, end = np.array(pairs).T
    steps: Floats = embeddings[end] - embeddings[start]
    return steps


TASK = OnsetInvariance()
