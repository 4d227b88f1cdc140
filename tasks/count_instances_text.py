"""Counting in captions: does "bell heard three times" match the clip in which the bell is heard three times?"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from audio_compositionality.dataset_builder.data import Row

from .base import Inputs, Outputs, PlainTask, Samples, Scores, TaskInfo, events_shown, groups_of, scores_from
from .metric_files import describe_metric
from .shapes.pairs import TEXTS

_METRIC = describe_metric("count_instances")


class LadderTask(PlainTask):
    """The task of ladders, clips in which one sound is heard so and so often, and their captions; see `Task`."""

    def inputs(self, row: Row, settings: Mapping[str, Any]) -> Inputs:
        """The clips of a ladder, and their captions."""
        return Inputs(clips=_clips_of(row), texts=tuple(row["captions"]))

    def score(
        self, rows: Sequence[Row], outputs: Outputs, settings: Mapping[str, Any], device: str, progress: bool
    ) -> Scores:
        """Score the embeddings of the clips and captions of n ladders."""
        # Imported by need: a task loads its metric only in the process that scores.
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
        """All ladders; those of one sound belong together: tones have too few labels for intervals."""
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
        question="Do clips and captions match by how often the same sound is heard?",
        recipe="count_instances",
        samples="ladders",
        measures=_METRIC.measures,
        ranks_by="worst",
        trusted={"worst": "chance"},
        captions={"audio": "a clip of the ladder: the same sound, once more from clip to clip"},
        heard_by="exact",  # a score of single ladders: the worst part is of some of them alone
        controls=("bag-of-words", "without-text:"),
        warning=(
            "Captions of a ladder differ in a number word alone, and all ladders have the same words: a model that "
            "knows nothing of numbers orders them somehow, in all ladders alike, and may be lucky in all of them. An "
            "interval over ladders does not see that: the score has to be above its trivial baseline, which 1 of 24 "
            "permutations of the number words exceeds at most. A fuller clip that matches a larger number is enough, "
            "but for where energy, span and activity are held."
        ),
        citation=_METRIC.citation,
    )
)
