"""Across instances: is a class recognised in another recording, and are conditions bound to labels?

Both tasks use recordings in blocks and trials at one level.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from audio_compositionality.dataset_builder.data import Row
from audio_compositionality.encoders.base import ENCODER

from ..base import Drawing, Floats, Inputs, Number, Outputs, PlainTask, Samples, Scores, TaskError, scores_from

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_LISTS = ("B", "D", "alone_b", "alone_d")
"""Clips of each class of a block, after its contexts."""

_SCENES = ("X1", "Y1", "X2", "Y2")
_ACROSS = ("X3/0", "Y3/0")
"""Clips of a trial, and its clips under other conditions, if there are any."""

_MEASURES_ACROSS = ("across", "across_cosine")

LADDER = {"score_alone_top1": "alone", "score_part_top1": "part", "score": "scene"}
"""Columns of the samples, from neither context to both, and their names."""

INTERVALS = ("alone_top1", "part_top1", "top1")
"""The measures that are the means of these columns."""

_COLOUR = "#0072B2"
"""Blue of Okabe and Ito 2008, "Color universal design"."""


def draw_ladder(axes: Axes, columns: Mapping[str, Floats], measures: Mapping[str, Number]) -> None:
    """Draw one model's means with their intervals, and chance.

    Args:
        axes: an empty panel.
        columns: the columns of `LADDER`, each [n], and the ends of `INTERVALS`, each [2].
        measures: with ``top1_chance``.
    """
    means = np.array([columns[name].mean() for name in LADDER])
    low, high = np.stack([columns[name] for name in INTERVALS], axis=1)
    # If all blocks have the same mean, rounding may put an end of the interval on its wrong side.
    lengths = np.maximum([means - low, high - means], 0)
    axes.errorbar(range(len(LADDER)), means, lengths, color=_COLOUR, marker="o", markersize=4, capsize=2)
    _finish(axes, measures)


def draw_one_ladder(axes: Axes, columns: Mapping[str, Floats], measures: Mapping[str, Number], sample: int) -> None:
    """Draw the three numbers of one block over the numbers of all blocks.

    Args:
        axes: an empty panel.
        columns: the columns of `LADDER`, each [n].
        measures: with ``top1_chance``.
        sample: index of the block.
    """
    every = np.stack([columns[name] for name in LADDER])
    axes.plot(every, color="#AAAAAA", linewidth=0.4)
    axes.plot(every[:, sample], color=_COLOUR, marker="o", markersize=4, label="this block")
    _finish(axes, measures)


def _finish(axes: Axes, measures: Mapping[str, Number]) -> None:
    chance = measures.get("top1_chance")
    if chance is not None:
        axes.axhline(float(chance), color="#555555", linestyle="--", linewidth=0.8)
    axes.set_xticks(range(len(LADDER)), list(LADDER.values()))
    axes.set(xlim=(-0.4, len(LADDER) - 0.6), ylim=(0, 1.02))


INSTANCES: dict[str, Any] = {
    "benchmark": "coat",
    "needs": ENCODER,
    "on_request": True,
    "controls": ("mfcc-statistics", "level-statistics", "shuffled:"),
    "is_level_matched": True,
}
"""Facts of the tasks across instances; see `TaskInfo`."""


class BlockTask(PlainTask):
    """The task of blocks of K classes, each with one instance in one context and one in another; see `Task`."""

    drawings: tuple[Drawing, ...] = (
        Drawing(
            name="instance_ladder",
            title=(
                "Top-1 of the instances alone, with one of the two in its context, and with both: means over blocks "
                "with 95 % intervals, and chance, a dashed line."
            ),
            alternative="Top-1 alone, in part and in scenes, with intervals and chance, one panel per model.",
            columns=tuple(LADDER),
            panel=draw_ladder,
            one=draw_one_ladder,
            intervals=INTERVALS,
            y="top-1",
        ),
    )

    def inputs(self, row: Row, settings: Mapping[str, Any]) -> Inputs:
        """Return the contexts, then the scenes and instances of each class."""
        return Inputs(clips=("A", "C", *(f"{name}/{k}" for name in _LISTS for k in range(len(row["labels"])))))

    def settings(self, rows: Sequence[Row], requested: Mapping[str, Any]) -> dict[str, Any]:
        """Return no settings: the score depends only on the embeddings and their rows.

        Raises:
            TaskError: there are no blocks, or they have different numbers of classes.
        """
        settings, first = super().settings(rows, requested), rows[0]
        for row in rows:
            if len(row["labels"]) != len(first["labels"]):
                raise TaskError(
                    f"{self.info.name} needs the same number of classes in each block; {first['id']} has "
                    f"{len(first['labels'])}, {row['id']} has {len(row['labels'])}"
                )
        return settings

    def score(
        self, rows: Sequence[Row], outputs: Outputs, settings: Mapping[str, Any], device: str, progress: bool
    ) -> Scores:
        """Score the embeddings [n (2 + 4 K), dim] of n blocks; only a control is fitted."""
        # Imported here, so that a task loads its metric only in the process that scores.
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
        return scores_from(values, self.info, rows)

    def samples(self, rows: Sequence[Row]) -> Samples:
        """Return all blocks, each its own cluster.

        They are drawn independently, though conditions and recordings recur.
        """
        contents = []
        for row in rows:
            heard = {
                part: (row[f"context_{side}"], row[f"context_{side}_instances"], "")
                for part, side in (("A", "a"), ("C", "c"))
            }
            for part, side in (("T in B", "b"), ("T in D", "d")):
                heard[part] = (row["labels"], row[f"instances_{side}"], row[f"condition_{side}"])
            contents.append(
                {
                    part: [
                        {"label": label, **({"condition": condition} if condition else {}), "recording": recording}
                        for label, recording in zip(labels, recordings, strict=True)
                    ]
                    for part, (labels, recordings, condition) in heard.items()
                }
            )
        return Samples(rows=tuple(rows), clusters=np.arange(len(rows)), contents=tuple(contents))


class TrialTask(PlainTask):
    """The task of trials, with the same two conditions and two labels in two pairings; see `Task`."""

    def inputs(self, row: Row, settings: Mapping[str, Any]) -> Inputs:
        """Return the four scenes, and two more if there are other conditions."""
        return Inputs(clips=(*_SCENES, *(_ACROSS if row["conditions_across"] else ())))

    def score(
        self, rows: Sequence[Row], outputs: Outputs, settings: Mapping[str, Any], device: str, progress: bool
    ) -> Scores:
        """Score the embeddings of the scenes of n trials; `across` is over the trials with other conditions."""
        # Imported here, so that a task loads its metric only in the process that scores.
        from audio_compositionality.metrics.binding import binding

        places = np.cumsum([0, *(len(self.inputs(row, settings).clips) for row in rows)])
        embeddings = np.asarray(outputs.clips)
        scenes = [embeddings[places[:-1] + scene] for scene in range(len(_SCENES))]
        across = [place for place, row in enumerate(rows) if row["conditions_across"]]
        elsewhere = [embeddings[places[across] + len(_SCENES) + scene] for scene in range(len(_ACROSS))]
        if len(across) == len(rows):
            values = binding(*scenes, *elsewhere, return_scores=True)
        else:
            values = binding(*scenes, return_scores=True)
            if across:
                some = binding(*(scene[across] for scene in scenes), *elsewhere)
                values |= {name: some[name] for name in _MEASURES_ACROSS}
        return scores_from(values, self.info, rows)

    def samples(self, rows: Sequence[Row]) -> Samples:
        """Return all trials, each its own cluster, though conditions, labels and recordings recur."""
        return Samples(
            rows=tuple(rows), clusters=np.arange(len(rows)), contents=tuple(_contents_of_trial(row) for row in rows)
        )


def _contents_of_trial(row: Row) -> dict[str, list[dict[str, str]]]:
    """Return the labels and conditions of X and Y as people read them."""
    w, other = row["labels"]
    scenes = {}
    for number, conditions, instances in (
        ("1, 2", row["conditions"], row["instances"]),
        ("3", row["conditions_across"], row["instances_across"]),
    ):
        if conditions:
            for name, labels, recordings in (("X", (w, other), instances[:2]), ("Y", (other, w), instances[2:])):
                scenes[f"{name}{number}"] = [
                    {"label": label, "condition": condition, "recording": recording}
                    for label, condition, recording in zip(labels, conditions, recordings, strict=True)
                ]
    return scenes
