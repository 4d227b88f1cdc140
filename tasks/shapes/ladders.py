"""Ladders: clips in which one sound is heard so and so often, ordered by a probe of embeddings or by their captions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from audio_compositionality.dataset_builder.data import Row
from audio_compositionality.support.spec import Spec

from ..base import Drawing, Inputs, Outputs, Samples, Scores, TaskError, TaskInfo, events_shown, groups_of, scores_from

LADDER_CAPTIONS: Mapping[str, str] = {"audio": "a clip of the ladder: the same sound, once more from clip to clip"}


class LadderTask:
    """A task of ladders, scored by the metric `count_instances`, with captions where texts are needed; see `Task`."""

    spec = Spec
    drawings: tuple[Drawing, ...] = ()

    def __init__(self, info: TaskInfo) -> None:
        """What it is; its needs decide whether there are captions."""
        self.info = info
        self._has_texts = "text" in info.needs

    def inputs(self, row: Row, settings: Mapping[str, Any]) -> Inputs:
        """The clips of a ladder, and their captions."""
        clips = tuple(f"audio/{place}" for place in range(len(row["counts"])))
        return Inputs(clips=clips, texts=tuple(row["captions"]) if self._has_texts else ())

    def settings(self, rows: Sequence[Row], requested: Mapping[str, Any]) -> dict[str, Any]:
        """None: the score depends on the embeddings and their rows alone.

        Raises:
            TaskError: there are no ladders; or a probe would have no other label to be trained on.
        """
        if not rows:
            raise TaskError(f"{self.info.name} has no ladders; it needs at least one")
        for held in () if self._has_texts else dict.fromkeys(row["held"] for row in rows):
            labels = sorted({row["label"] for row in rows if row["held"] == held})
            if len(labels) < 2:
                raise TaskError(
                    f"{self.info.name}: where {held} is held, all ladders are of {labels[0]!r}; a probe is tested on "
                    "labels that it was not trained on, and needs 2 or more: --set ladders=120, or more labels"
                )
        return {}

    def score(
        self, rows: Sequence[Row], outputs: Outputs, settings: Mapping[str, Any], device: str, progress: bool
    ) -> Scores:
        """Score the embeddings of the clips of n ladders."""
        # Imported by need: a task loads its metric only in the process that scores.
        from audio_compositionality.metrics.count_instances import count_instances

        def of_clips(name: str) -> list[Any]:
            return [row[name] for row in rows for _ in row["counts"]]

        values = count_instances(
            outputs.clips,
            [count for row in rows for count in row["counts"]],
            of_clips("id"),
            of_clips("held"),
            of_clips("label"),
            texts=outputs.texts if self._has_texts else None,
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
                {f"audio/{place}": events_shown(events) for place, events in enumerate(row["events"])} for row in rows
            ),
            texts=tuple({f"audio/{place}": text for place, text in enumerate(row["captions"])} for row in rows),
        )
