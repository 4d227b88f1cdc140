"""Rate binding: which of two sources is the faster, where all that is loud is the same?"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from typing import Any

import numpy as np

from audio_compositionality.dataset_builder.data import Row
from audio_compositionality.encoders.base import ENCODER

from .base import Drawing, Inputs, Outputs, Samples, Scores, TaskError, TaskInfo, settings_among
from .factor_rows import WARNING
from .metric_files import describe_metric
from .parts import LEVELS, PAPER, PROBES, PartedMeasures, ProbeSpec, dealt_folds
from .scenes import numbered

_METRIC = describe_metric("informativeness")

UNSEEN, SEEN = "unseen", "seen"

_PARTED = PartedMeasures(
    [measure for measure in _METRIC.measures if measure.name != "rmse"],
    (UNSEEN, SEEN),
    "timbres never heard, and those heard with other notes",
    averaged=("informativeness",),
    of_parts=("informativeness", *PROBES, "shuffled", "accuracy", "chance", "n", "blocks"),
    shown=("informativeness",),
)

_MEAN = "informativeness"
"""Of timbres never heard and of those heard together, which means nothing."""

_FEWEST_GROUPS = 3


class RateBinding:
    """The task; see `Task`."""

    info = TaskInfo(
        name="rate_binding",
        version=_METRIC.version,
        title="Rate binding",
        question="Which of two sources is the faster, where both clips have the same rates and the same loudness?",
        benchmark="axes",
        recipe="rate_binding",
        needs=ENCODER,
        samples="clips",
        measures=tuple(measure for measure in _PARTED.described if measure.name != _MEAN),
        ranks_by=f"{UNSEEN}_informativeness",
        trusted={f"{UNSEEN}_informativeness": 0.0},
        captions={"audio": "a low source and a high one"},
        warning=(
            f"{WARNING} Sources are named by their register alone: what is asked is which of two rates is whose, "
            "not whether a rate is heard."
        ),
        citation=_METRIC.citation,
        protocols={"paper": PAPER},
        on_request=True,
        is_level_matched=True,
        controls=LEVELS,
    )
    spec = ProbeSpec
    drawings: tuple[Drawing, ...] = ()

    def inputs(self, row: Row, settings: Mapping[str, Any]) -> Inputs:
        """The clip."""
        return Inputs(clips=("audio",))

    def settings(self, rows: Sequence[Row], requested: Mapping[str, Any]) -> dict[str, Any]:
        """The probes, and whether features are scaled.

        Raises:
            TaskError: too few groups of timbres to learn from some, choose by another and be tested on a third.
        """
        groups = len({row["group"] for row in rows})
        if groups < _FEWEST_GROUPS:
            raise TaskError(f"{self.info.name} has {groups} groups of timbres; it needs at least {_FEWEST_GROUPS}")
        return settings_among(self.spec, requested).values()

    def score(
        self, rows: Sequence[Row], outputs: Outputs, settings: Mapping[str, Any], device: str, progress: bool
    ) -> Scores:
        """Score the embeddings [n, dim] of n clips: by timbres never heard, and by notes never heard together."""
        # Importing the metric imports `evaluate`, which takes seconds that only the process that scores has to spend.
        from audio_compositionality.metrics.informativeness import informativeness

        contexts = [_context(row) for row in rows]
        folds = {UNSEEN: np.array([row["group"] for row in rows], np.int64), SEEN: dealt_folds(contexts)}
        results = {
            part: informativeness(
                np.asarray(outputs.clips, np.float64),
                [row["faster"] for row in rows],
                of_part,
                numbered(contexts),
                **settings,
                return_scores=True,
            )
            for part, of_part in folds.items()
        }
        columns = {f"{part}_score": np.asarray(result.pop("scores")) for part, result in results.items()}
        values = {name: value for name, value in _PARTED.values(results).items() if name != _MEAN}
        return Scores(values, tuple(row["id"] for row in rows), columns)

    def samples(self, rows: Sequence[Row]) -> Samples:
        """All clips; those of the same timbres and notes are not independent."""
        return Samples(
            rows=tuple(rows),
            clusters=numbered([_context(row) for row in rows]),
            clustered_by="the timbres and notes of both sources",
            groups={"faster": tuple(row["faster"] for row in rows)},
            contents=tuple({"audio": _sources(row)} for row in rows),
        )


def _context(row: Row) -> Hashable:
    """What a clip is but for its rates: the timbre and the note of either source."""
    return (*row["timbres"], *row["notes"])


def _sources(row: Row) -> list[dict[str, str]]:
    """Both sources, for people."""
    return [
        {"timbre": timbre, "pitch": f"MIDI {note}", "rate": f"{rate:g} Hz"}
        for timbre, note, rate in zip(row["timbres"], row["notes"], row["rates"], strict=True)
    ]


TASK = RateBinding()
