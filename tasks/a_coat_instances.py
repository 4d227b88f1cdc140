"""A-COAT across instances: which of K classes was added is told by another instance in another context."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from audio_compositionality.dataset_builder.data import Row
from audio_compositionality.encoders.base import ENCODER
from audio_compositionality.support.spec import Spec

from .base import Drawing, Floats, Inputs, Outputs, Samples, Scores, TaskError, TaskInfo
from .instance_ladder import INTERVALS, LADDER, draw_ladder, draw_one_ladder
from .metric_files import describe_metric

_METRIC = describe_metric("a_coat_instances")

_LISTS = ("B", "D", "alone_b", "alone_d")


class ACoatInstances:
    """The task; see `Task`."""

    info = TaskInfo(
        name="a_coat_instances",
        version=_METRIC.version,
        title="A-COAT instances",
        question="Is a class that is added to a scene the same one, by another instance and in another context?",
        benchmark="coat",
        recipe="a_coat_instances",
        needs=ENCODER,
        samples="blocks",
        measures=_METRIC.measures,
        ranks_by="top1",
        trusted={"top1": "top1_chance", "part_top1": "top1_chance", "pairwise": "pairwise_chance"},
        captions={
            "A": "one context",
            "B": "A and an instance of one class (their number after the slash)",
            "C": "another context",
            "D": "C and another instance of the class of that number",
            "alone_b": "the instances of B alone",
            "alone_d": "the instances of D alone",
        },
        heard=("A", "C", "B/0", "D/0", "B/1", "D/1"),
        warning=(
            "Recognition alone may explain a high score: who knows a class by itself (alone top-1) finds some of it in "
            "a scene, kept says how much of it, and no number here shows composition in place of recognition. An "
            "encoder that was taught other things may stay at chance or below its untrained twin, which says "
            "nothing against it."
        ),
        citation=_METRIC.citation,
        on_request=True,
        is_headline=True,
        is_level_matched=True,
        controls=("mfcc-statistics", "level-statistics", "shuffled:"),
    )
    spec = Spec
    drawings = (
        Drawing(
            name="instance_ladder",
            title=(
                "Top-1 of the instances alone, with one of the two in its context, and with both: means over blocks "
                "with 95 % intervals, and chance, a dashed line."
            ),
            alternative="Top-1 alone, in part and in scenes, with intervals and chance, a panel a model.",
            columns=tuple(LADDER),
            panel=draw_ladder,
            one=draw_one_ladder,
            intervals=INTERVALS,
            y="top-1",
        ),
    )

    def inputs(self, row: Row, settings: Mapping[str, Any]) -> Inputs:
        """The contexts, then the scenes and instances of each class."""
        return Inputs(clips=("A", "C", *(f"{name}/{k}" for name in _LISTS for k in range(len(row["labels"])))))

    def settings(self, rows: Sequence[Row], requested: Mapping[str, Any]) -> dict[str, Any]:
        """None: the score depends on the embeddings and their rows alone.

        Raises:
            TaskError: there are no blocks, or they have different numbers of classes.
        """
        if not rows:
            raise TaskError(f"{self.info.name} has no blocks; it needs at least one")
        first = rows[0]
        for row in rows:
            if len(row["labels"]) != len(first["labels"]):
                raise TaskError(
                    f"{self.info.name} needs as many classes in each block: {first['id']} has {len(first['labels'])}, "
                    f"{row['id']} has {len(row['labels'])}"
                )
        return {}

    def score(
        self, rows: Sequence[Row], outputs: Outputs, settings: Mapping[str, Any], device: str, progress: bool
    ) -> Scores:
        """Score the embeddings [n (2 + 4 K), dim] of n blocks; what is fitted is a control."""
        # Importing the metric imports `evaluate`, which takes seconds that only the process that scores has to spend.
        from audio_compositionality.metrics.a_coat_instances import a_coat_instances

        classes = len(rows[0]["labels"])
        embeddings = np.asarray(outputs.clips).reshape(len(rows), 2 + len(_LISTS) * classes, -1)
        lists = embeddings[:, 2:].reshape(len(rows), len(_LISTS), classes, -1)
        b, d, alone_b, alone_d = (lists[:, place] for place in range(len(_LISTS)))
        values = a_coat_instances(
            embeddings[:, 0],
            b,
            embeddings[:, 1],
            d,
            alone_b,
            alone_d,
            [row["labels"] for row in rows],
            [[row["condition_b"], row["condition_d"]] for row in rows],
            return_scores=True,
        )
        columns: dict[str, Floats] = {}
        for measure in self.info.sampled:
            scores = values.pop(f"scores{str(measure.column).removeprefix('score')}")
            if scores is not None:
                columns[str(measure.column)] = np.array(scores, np.float64)
        return Scores(values, tuple(row["id"] for row in rows), columns)

    def samples(self, rows: Sequence[Row]) -> Samples:
        """All blocks, each on its own: blocks are drawn anew, though conditions and recordings come again in others."""
        return Samples(rows=tuple(rows), clusters=np.arange(len(rows)), contents=tuple(_contents(row) for row in rows))


def _contents(row: Row) -> dict[str, list[dict[str, str]]]:
    """What a block holds, for people."""
    contents = {
        part: [
            {"label": label, "recording": instance}
            for label, instance in zip(
                row[f"context_{part.lower()}"], row[f"context_{part.lower()}_instances"], strict=True
            )
        ]
        for part in ("A", "C")
    }
    for part, side in (("T in B", "b"), ("T in D", "d")):
        condition = {"condition": row[f"condition_{side}"]} if row[f"condition_{side}"] else {}
        contents[part] = [
            {"label": label, **condition, "recording": instance}
            for label, instance in zip(row["labels"], row[f"instances_{side}"], strict=True)
        ]
    return contents


TASK = ACoatInstances()
