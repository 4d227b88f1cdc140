"""Binding: is it told which of two conditions goes with which of two labels?"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from audio_compositionality.dataset_builder.data import Row
from audio_compositionality.encoders.base import ENCODER
from audio_compositionality.support.spec import Spec

from .base import Drawing, Floats, Inputs, Outputs, Samples, Scores, TaskError, TaskInfo
from .metric_files import describe_metric

_METRIC = describe_metric("binding")

_SCENES = ("X1", "Y1", "X2", "Y2")
_ACROSS = ("X3/0", "Y3/0")

_MEASURES_ACROSS = ("across", "across_cosine")


class Binding:
    """The task; see `Task`."""

    info = TaskInfo(
        name="binding",
        version=_METRIC.version,
        title="Binding",
        question="Is it told which voice says which word, where voices and words are the same?",
        benchmark="coat",
        recipe="binding",
        needs=ENCODER,
        samples="trials",
        measures=_METRIC.measures,
        ranks_by="binding",
        trusted={"binding": "binding_chance"},
        captions={
            "X1": "u with w, v with w′",
            "Y1": "u with w′, v with w",
            "X2": "X1 placed and filtered anew",
            "Y2": "Y1 placed and filtered anew",
            "X3": "X1 under other conditions",
            "Y3": "Y1 under other conditions",
        },
        warning=(
            "X2 and Y2 are the recordings of X1 and Y1 once more, so that a memory of mixtures suffices: log-mel "
            "statistics, which know no label, are high too. Across, the same under other conditions, is the number "
            "that asks for binding; sounds without related conditions have none."
        ),
        citation=_METRIC.citation,
        on_request=True,
        is_level_matched=True,
        controls=("mfcc-statistics", "level-statistics", "shuffled:"),
    )
    spec = Spec
    drawings: tuple[Drawing, ...] = ()

    def inputs(self, row: Row, settings: Mapping[str, Any]) -> Inputs:
        """The four scenes, and two more where there are other conditions."""
        return Inputs(clips=(*_SCENES, *(_ACROSS if row["conditions_across"] else ())))

    def settings(self, rows: Sequence[Row], requested: Mapping[str, Any]) -> dict[str, Any]:
        """None: the score depends on the embeddings alone.

        Raises:
            TaskError: there are no rows.
        """
        if not rows:
            raise TaskError(f"{self.info.name} has no trials; it needs at least one")
        return {}

    def score(
        self, rows: Sequence[Row], outputs: Outputs, settings: Mapping[str, Any], device: str, progress: bool
    ) -> Scores:
        """Score the embeddings of the scenes of n trials; `across` is of those that have other conditions."""
        # Importing the metric imports `evaluate`, which takes seconds that only the process that scores has to spend.
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
        columns: dict[str, Floats] = {}
        for measure in self.info.sampled:
            scores = values.pop(f"scores{str(measure.column).removeprefix('score')}")
            if scores is not None:
                columns[str(measure.column)] = np.array(scores, np.float64)
        return Scores(values, tuple(row["id"] for row in rows), columns)

    def samples(self, rows: Sequence[Row]) -> Samples:
        """All trials, each on its own, though conditions, labels and recordings come again in others."""
        return Samples(rows=tuple(rows), clusters=np.arange(len(rows)), contents=tuple(_contents(row) for row in rows))


def _contents(row: Row) -> dict[str, list[dict[str, str]]]:
    """Who says what in X and in Y, for people."""
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


TASK = Binding()
