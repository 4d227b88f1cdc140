"""A-COAT: is adding the same sources to two scenes the same step (arXiv 2603.13685, section 3.2)?"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from audio_compositionality.dataset_builder.data import Row
from audio_compositionality.encoders.base import ENCODER
from audio_compositionality.support.spec import Spec

from . import scenes
from .base import Drawing, Inputs, Measure, Outputs, Samples, Scores, TaskError, TaskInfo
from .metric_files import describe_metric
from .step_plane import STEP_COLUMNS, draw_one, draw_panel, step_plane

_METRIC = describe_metric("a_coat")

_STEP_VARIANCES = tuple(
    Measure(
        f"step_variance_{number}",
        f"variance on step axis {number}",
        f"share of the steps' variance on their principal axis {number}",
        range=(0.0, 1.0),
        shown=False,
    )
    for number in (1, 2)
)


class ACoat:
    """The task; see `Task`."""

    info = TaskInfo(
        name="a_coat",
        version=_METRIC.version,
        title="A-COAT",
        question="Is adding the same sources to two different scenes the same step in the space of embeddings?",
        benchmark="coat",
        recipe="a_coat",
        needs=ENCODER,
        samples="quadruples",
        measures=(*_METRIC.measures, *_STEP_VARIANCES),
        ranks_by="adjusted",
        trusted={"adjusted": 0.0, "top1": "top1_chance"},
        captions={
            "A": "one scene",
            "B": "A and the added sources T",
            "C": "another scene",
            "D": "C and the same T",
            "T alone": "B − A, which are the samples of D − C as well",
        },
        derived={"T alone": ("B", "-A")},
        warning=(
            "A high score alone is no evidence of learned composition: an encoder that answers every added source with "
            "one step towards more energy scores high. Adjusted and top-1 show that. Read it beside an untrained "
            "network and log-mel-statistics: what they reach as well was not learnt."
        ),
        citation=_METRIC.citation,
        protocols={"paper": {}},
    )
    spec = Spec
    drawings = (
        Drawing(
            name="step_plane",
            title="The steps B − A and D − C on the first two principal axes of all steps of a model.",
            alternative="The steps of the quadruples on their first two principal axes, a panel a model.",
            columns=STEP_COLUMNS,
            panel=draw_panel,
            one=draw_one,
        ),
    )

    def inputs(self, row: Row, settings: Mapping[str, Any]) -> Inputs:
        """The four clips of a quadruple."""
        return Inputs(clips=("A", "B", "C", "D"))

    def settings(self, rows: Sequence[Row], requested: Mapping[str, Any]) -> dict[str, Any]:
        """None: the score depends on the embeddings and their rows alone."""
        if not rows:
            raise TaskError("a_coat has no quadruple; it needs at least one")
        return {}

    def score(
        self, rows: Sequence[Row], outputs: Outputs, settings: Mapping[str, Any], device: str, progress: bool
    ) -> Scores:
        """Score the embeddings [4 n, dim] of n quadruples; nothing is fitted."""
        # Importing the metric imports `evaluate`, which takes seconds that only the process that scores has to spend.
        from audio_compositionality.metrics.a_coat import a_coat

        a, b, c, d = quadruple_embeddings(outputs.clips)
        values = a_coat(a, b, c, d, **_matching(rows), return_scores=True)
        lists = {name: values.pop(f"scores{name}") for name in ("", "_centred", "_adjusted", "_top1")}
        columns = {f"score{name}": np.array(column) for name, column in lists.items() if column is not None}
        exact = [part.astype(np.float64, copy=False) for part in (a, b, c, d)]
        plane = step_plane(exact[1] - exact[0], exact[3] - exact[2])
        columns |= dict(zip(STEP_COLUMNS, (*plane.ab.T, *plane.cd.T), strict=True))
        variances = dict(zip((measure.name for measure in _STEP_VARIANCES), plane.variance, strict=True))
        return Scores({**values, **variances}, tuple(row["id"] for row in rows), columns)

    def samples(self, rows: Sequence[Row]) -> Samples:
        """All quadruples; those with the same added sources T are not independent."""
        parts = {part: [row["metadata"][part] for row in rows] for part in ("A", "C", "T")}
        counts = {part: scenes.counts(sources) for part, sources in parts.items()}
        return Samples(
            rows=tuple(rows),
            clusters=scenes.same_scenes(parts["T"]),
            clustered_by="the sets of added sources T",
            diversity=scenes.entropies(rows, list(parts.values())),
            diversity_name="H^quad",
            held_fixed={f"number of sources of {part}": count for part, count in counts.items()},
            groups={
                "|T|, the number of sources that are added": tuple(map(str, counts["T"])),
                "the number of sources": tuple(map(str, counts["A"] + counts["C"] + counts["T"])),
                "the attributes whose classes differ between A and C": tuple(
                    scenes.differing(a, c) for a, c in zip(parts["A"], parts["C"], strict=True)
                ),
            },
            contents=tuple(
                {part: scenes.labels_for_people(row["metadata"][part]) for part in ("A", "C", "T")} for row in rows
            ),
        )


def quadruple_embeddings(embeddings: NDArray[np.floating]) -> NDArray[np.floating]:
    """The embeddings of A, B, C and D, [4, n, dim], of those of the clips of n quadruples, [4 n, dim]."""
    return embeddings.reshape(len(embeddings) // 4, 4, -1).transpose(1, 0, 2)


def _matching(rows: Sequence[Row]) -> dict[str, Any]:
    """What the matched null is matched by, where the rows state the gains of their sources: the number of sources of T,
    and its level in dB, by the sum of the powers of its sources, each the square of its gain."""
    if not all(row.get("gains") for row in rows):
        return {}
    gains = [row["gains"]["T"] for row in rows]
    levels = [10 * math.log10(sum(gain**2 for gain in source_gains)) for source_gains in gains]
    return {"t_size": [len(source_gains) for source_gains in gains], "t_level": levels}


TASK = ACoat()
