"""Negation: is a caption that denies something nearer to the clip that it describes?"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from audio_compositionality.dataset_builder.data import Row

from .base import Measure, Outputs, Samples, Scores, TaskInfo
from .metric_files import describe_metric
from .shapes.pairs import PAIRS, CaptionPairTask

_METRIC = describe_metric("negation")

KINDS = tuple(one.name.removeprefix("match_") for one in _METRIC.measures if one.name.startswith("match_"))
"""The kinds of items; a sample's column ``kind`` has the index."""

NEARER = ("negated", "affirmed")
"""The measures of items with a caption that denies something."""


def _of_samples(measure: Measure) -> Measure:
    """Return a measure as a mean over the samples of a kind, or over all."""
    name = measure.name.removeprefix("match_")
    if name in KINDS:
        return replace(measure, column="score", within=("kind", float(KINDS.index(name))))
    if name in NEARER:
        why = "Scores of single items are weighted, so that only items with a caption that denies count."
        return replace(measure, column=f"score_{name}", outside=why)
    return measure


class NegationTask(CaptionPairTask):
    """The task; see `Task`."""

    def score(
        self, rows: Sequence[Row], outputs: Outputs, settings: Mapping[str, Any], device: str, progress: bool
    ) -> Scores:
        """Score the embeddings of n items."""
        # Imported here, so that a task loads its metric only in the process that scores.
        from audio_compositionality.metrics.columns import of_all
        from audio_compositionality.metrics.negation import negation

        kinds, negated = [row["kind"] for row in rows], [row["negated"] for row in rows]
        item = np.repeat(np.arange(len(rows)), 2)
        values = negation(outputs.clips, outputs.texts, item, negated=negated, kinds=kinds, return_scores=True)
        columns = {"score": np.array(values["scores"]), "kind": np.array([float(KINDS.index(kind)) for kind in kinds])}
        for name in NEARER if values["negated"] is not None else ():
            scores = np.array(values[f"scores_{name}"], np.float64)  # NaN where nothing is denied
            columns[f"score_{name}"] = of_all(scores[~np.isnan(scores)], ~np.isnan(scores))
        measures = {measure.name: values[measure.name] for measure in self.info.measures}
        return Scores(measures, tuple(row["id"] for row in rows), columns)

    def samples(self, rows: Sequence[Row]) -> Samples:
        """Return all items; items with the same labels form a cluster."""
        return replace(super().samples(rows), clustered_by="the labels of both clips")


TASK = NegationTask(
    TaskInfo(
        **PAIRS
        | {"benchmark": "extended", "ranks_by": "match", "trusted": {"match": "chance", "negated": "chance"}}
        # No recipe has training captions that deny something.
        | {"heard_by": "match", "training": ""},
        name="negation",
        version=_METRIC.version,
        title="Negation",
        question="Does a model understand what a caption denies, if two captions differ in one word?",
        recipe="negation",
        measures=tuple(map(_of_samples, _METRIC.measures)),
        warning=(
            "A model that takes 'no bell' for a bell has match at 1/2, affirmed at 1 and negated at 0: a high affirmed "
            "shows that sounds are recognised, and negated below 1/2 that the word is not understood. If kinds "
            "differ, only those above 1/2 are shown; for numbers no caption denies."
        ),
        citation=_METRIC.citation,
        # Sorted words are no baseline: even sorted, they say what is denied if one sound is in both clips.
        controls=("bag-of-words", "tiny-clap", "sorted-words:"),
    )
)
