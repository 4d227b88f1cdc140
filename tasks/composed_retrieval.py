"""Composed retrieval: is the clip found that matches a source clip with a change in words?"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any

import numpy as np

from audio_compositionality.dataset_builder.data import Row
from audio_compositionality.dataset_builder.recipes.composed_retrieval import TARGET

from .base import Inputs, Outputs, PlainTask, Samples, Scores, TaskInfo, events_shown, groups_of, scores_from
from .metric_files import describe_metric
from .shapes.pairs import REVERSED_AUDIO, SHUFFLED, SORTED_WORDS, TEXTS

_METRIC = describe_metric("composed_retrieval")


_CONTROLS = {
    "without-text:": "itself without the change",
    **SORTED_WORDS,
    **REVERSED_AUDIO,
}


class ComposedTask(PlainTask):
    """The task of queries (a source clip and a change in words) and their candidates; see `Task`."""

    def inputs(self, row: Row, settings: Mapping[str, Any]) -> Inputs:
        """Return the source, the candidates, and the change."""
        return Inputs(clips=_clips_of(row), texts=(row["change"],))

    def score(
        self, rows: Sequence[Row], outputs: Outputs, settings: Mapping[str, Any], device: str, progress: bool
    ) -> Scores:
        """Score the embeddings of the source and the candidates of each row, and of its change."""
        # Imported here, so that a task loads its metric only in the process that scores.
        from audio_compositionality.metrics.composed_retrieval import composed_retrieval

        starts = np.cumsum([0, *(1 + len(row["roles"]) for row in rows)])
        clips = [outputs.clips[start:stop].astype(np.float64) for start, stop in pairwise(starts)]
        values = composed_retrieval(
            np.stack([of_row[0] for of_row in clips]),
            outputs.texts.astype(np.float64),
            [of_row[1:] for of_row in clips],
            np.array([row["roles"].index(TARGET) for row in rows]),
            [row["kind"] for row in rows],
            return_scores=True,
        )
        return scores_from(values, self.info, rows)

    def samples(self, rows: Sequence[Row]) -> Samples:
        """Return all rows; rows with the same change form a cluster, since they share a text."""
        return Samples(
            rows=tuple(rows),
            clusters=groups_of(rows, "key"),
            clustered_by="the change",
            groups={"kind": tuple(row["kind"] for row in rows)},
            contents=tuple(
                {name: events_shown(events) for name, events in zip(_clips_of(row), row["events"], strict=True)}
                for row in rows
            ),
            texts=tuple(
                {"source": row["change"]}
                | {
                    f"candidates/{place}": "the target" if role == TARGET else role
                    for place, role in enumerate(row["roles"])
                }
                for row in rows
            ),
        )


def _clips_of(row: Row) -> tuple[str, ...]:
    """Return the names of the source and the candidates."""
    return ("source", *(f"candidates/{place}" for place in range(len(row["roles"]))))


TASK = ComposedTask(
    TaskInfo(
        **TEXTS | {"benchmark": "extended", "trivial": "chance and half of its query"},
        name="composed_retrieval",
        version=_METRIC.version,
        title="Composed retrieval",
        question="Is the clip found that matches a source clip with a change in words?",
        recipe="composed_retrieval",
        samples="queries",
        measures=_METRIC.measures,
        ranks_by="r1",
        trusted={"r1": "chance", "gain": 0.0},
        captions={"source": "the source, and its change", "candidates": "a candidate"},
        warning=(
            "Chance is not the trivial baseline: the source alone, or the change alone, may find as much, and R@1 must "
            "be above both. A gain shows that both are used, not that order or binding is: without these, half of the "
            "queries of the kinds then and attribute are found. A sum in which one of the two dominates the other is "
            "at the trivial baseline even if both are represented."
        ),
        citation=_METRIC.citation,
        controls=("bag-of-words", *_CONTROLS),
        optional_baselines=SHUFFLED | _CONTROLS,
    )
)
