"""Counting in captions: does "bell heard three times" match the clip with three bells?"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from audio_compositionality.dataset_builder.data import Row

from .base import Inputs, Outputs, PlainTask, Samples, Scores, TaskInfo, events_shown, groups_of, scores_from
from .metric_files import describe_metric
from .shapes.pairs import TEXTS

_METRIC = describe_metric("count_instances")


class LadderTask(PlainTask):
    """The task of ladders, clips with a different number of occurrences of one sound, and their captions; see
    `Task`."""

    def inputs(self, row: Row, settings: Mapping[str, Any]) -> Inputs:
        """Return the clips of a ladder, and their captions."""
        return Inputs(clips=_clips_of(row), texts=tuple(row["captions"]))

    def score(
        self, rows: Sequence[Row], outputs: Outputs, settings: Mapping[str, Any], device: str, progress: bool
    ) -> Scores:
        """Score the embeddings of the clips and captions of n ladders."""
        # Imported here, so that a task loads its metric only in the process that scores.
        from audio_compositionality.metrics.count_instances import count_instances

        values = count_instances(
            outputs.clips,
            outputs.texts,
            [count for row in rows for count in row["counts"]],
            [row["id"] for row in rows for _ in row["counts"]],
            [row["held"] for row in rows for _ in row["counts"]],
            return_scores=True,
        )
        return scores_from(values, self.info, rows)

    def samples(self, rows: Sequence[Row]) -> Samples:
        """Return all ladders; ladders of one sound form a cluster; tones have too few labels for intervals."""
        return Samples(
            rows=tuple(rows),
            clusters=groups_of(rows, "pair"),
            clustered_by="the sound",
            groups={"held": tuple(row["held"] for row in rows), "label": tuple(row["label"] for row in rows)},
            contents=tuple(
                {clip: events_shown(events) for clip, events in zip(_clips_of(row), row["events"], strict=True)}
                for row in rows
            ),
            texts=tuple(dict(zip(_clips_of(row), row["captions"], strict=True)) for row in rows),
        )


def _clips_of(row: Row) -> tuple[str, ...]:
    return tuple(f"audio/{place}" for place in range(len(row["counts"])))


TASK = LadderTask(
    TaskInfo(
        **TEXTS | {"benchmark": "extended"},
        name="count_instances_text",
        version=_METRIC.version,
        title="Counting in captions",
        question="Do clips and captions match by the number of times a sound occurs?",
        recipe="count_instances",
        samples="ladders",
        measures=_METRIC.measures,
        ranks_by="worst",
        trusted={"worst": "chance"},
        captions={"audio": "a clip of the ladder: the same sound, once more from clip to clip"},
        heard_by="exact",  # defined for every ladder; the worst part only for some
        controls=("bag-of-words", "without-text:"),
        warning=(
            "Captions of a ladder differ in a number word alone, and all ladders have the same words: a model without "
            "knowledge of numbers orders them somehow, equally in all ladders, and may be lucky in all of them. An "
            "interval over ladders does not account for this: the score must be above its trivial baseline, which at "
            "most 1 of 24 permutations of the number words exceeds. Matching a fuller clip with a larger number is "
            "enough, except where energy, span and activity are held."
        ),
        citation=_METRIC.citation,
    )
)
