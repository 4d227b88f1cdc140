"""Invariance to onsets: do other onsets move an embedding less than other sources do?

Of each scene of the recipe `transforms` there is a clip whose sources begin at other times, and beside it one at the
same level that differs in one factor of the first source. The scene itself is the copy that is compared with both: see
the metric `invariance` (`abx`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from audio_compositionality.dataset_builder.data import Row
from audio_compositionality.dataset_builder.scenes.bases import DIFFERING
from audio_compositionality.encoders.base import ENCODER
from audio_compositionality.support.spec import Spec

from . import scenes
from .base import Drawing, Floats, Inputs, Outputs, Samples, Scores, TaskError, TaskInfo
from .metric_files import describe_metric
from .parts import FOLDS, LEVELS
from .transform_rows import WARNING, candidate_places, compared, is_candidate, is_original

_METRIC = describe_metric("invariance")

_MEASURES = {measure.name: measure for measure in _METRIC.measures}

_NAMES = (
    *("abx", "selectivity", "invariance", "cosine", "cosine_null", "centred_cosine", "centred_cosine_null"),
    *("top1", "top1_chance", "n"),
)

_OF_FACTORS = tuple(
    replace(
        _MEASURES[name],
        name=f"{factor}_{name}",
        heading=f"{factor} {_MEASURES[name].heading}",
        meaning=f"{_MEASURES[name].meaning}; where the other clip differs in the {factor}",
        column=None,
        shown=name == "abx",
    )
    for name in ("abx", "selectivity")
    for factor in DIFFERING
)


class OnsetInvariance:
    """The task; see `Task`."""

    info = TaskInfo(
        name="onset_invariance",
        version=_METRIC.version,
        title="Invariance to onsets",
        question="Do other onsets of the same sources move an embedding less than another source does?",
        benchmark="axes",
        recipe="transforms",
        needs=ENCODER,
        samples="scenes",
        measures=(*(_MEASURES[name] for name in _NAMES), *_OF_FACTORS),
        ranks_by="abx",
        trusted={"abx": 0.0},
        captions={"audio": "a scene"},
        warning=f"{WARNING} What hears nothing is invariant to all: nothing is ranked by the invariance itself.",
        citation=_METRIC.citation,
        on_request=True,
        controls=LEVELS,
    )
    spec = Spec
    drawings: tuple[Drawing, ...] = ()

    def inputs(self, row: Row, settings: Mapping[str, Any]) -> Inputs:
        """The clip of a base or a candidate."""
        return Inputs(clips=("audio",)) if _is_heard(row) else Inputs()

    def settings(self, rows: Sequence[Row], requested: Mapping[str, Any]) -> dict[str, Any]:
        """None: the score depends on the embeddings and their rows alone."""
        if any(row["recording"] for row in rows):
            raise TaskError(f"{self.info.name} has recordings, whose sounds cannot be moved in time; it needs scenes")
        bases = _bases(rows)
        if len(bases) < FOLDS:
            raise TaskError(
                f"{self.info.name} has {len(bases)} scenes with a clip of other onsets and one of another source; it "
                f"needs at least {FOLDS}"
            )
        return {}

    def score(
        self, rows: Sequence[Row], outputs: Outputs, settings: Mapping[str, Any], device: str, progress: bool
    ) -> Scores:
        """Score the embeddings [n, dim] of scenes and candidates; nothing is fitted."""
        # Importing the metric imports `evaluate`, which takes seconds that only the process that scores has to spend.
        from audio_compositionality.metrics.invariance import invariance, selectivity

        heard = [row for row in rows if _is_heard(row)]
        scored = {row["id"] for row in compared(heard)}
        places = [place for place, row in enumerate(heard) if row["id"] in scored]
        clips, kept = np.asarray(outputs.clips, np.float64)[places], [heard[place] for place in places]
        bases = clips[[place for place, row in enumerate(kept) if is_original(row)]]
        same, other = (clips[side] for side in candidate_places(kept))
        base = [-1] * len(bases) + list(range(len(bases)))
        # Which of two clips is called the original makes no difference but to this: A is compared, and not X.
        result = invariance(
            np.concatenate([same, bases]), base, steps=other - same, same=same, different=other, return_scores=True
        )
        values = {name: result[name] for name in _NAMES}
        factors = np.array([kept[place]["candidate"] for place in candidate_places(kept)[1]])
        shares = np.array(result["scores_abx"])
        for factor in DIFFERING:
            of_factor = factors == factor
            some = bool(of_factor.any())
            values[f"{factor}_abx"] = float(shares[of_factor].mean()) if some else None
            values[f"{factor}_selectivity"] = (
                selectivity((other - same)[of_factor], (same - bases)[of_factor]) if some else None
            )
        columns: dict[str, Floats] = {"score_abx": shares, "score": np.array(result["scores"])}
        return Scores(values, tuple(row["id"] for row in _bases(rows)), columns)

    def samples(self, rows: Sequence[Row]) -> Samples:
        """The scenes that have candidates."""
        bases = _bases(rows)
        differs = {row["base"]: row["candidate"] for row in rows if row["candidate"] in DIFFERING}
        counts = scenes.counts([row["metadata"] for row in bases])
        return Samples(
            rows=tuple(bases),
            clusters=np.arange(len(bases)),
            groups={
                "the number of sources": tuple(map(str, counts)),
                "what the other clip differs in": tuple(differs[row["base"]] for row in bases),
            },
            contents=tuple({"audio": scenes.labels_for_people(row["metadata"])} for row in bases),
        )


def _is_heard(row: Row) -> bool:
    return is_original(row) or is_candidate(row)


def _bases(rows: Sequence[Row]) -> list[Row]:
    """The scenes that have candidates, in the order of the rows."""
    return [row for row in compared([row for row in rows if _is_heard(row)]) if is_original(row)]


TASK = OnsetInvariance()
