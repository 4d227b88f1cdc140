"""What is left of labels under transforms: is what is read from a clip still read after them (arXiv 2505.06224)?"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from audio_compositionality.dataset_builder.data import Row
from audio_compositionality.dataset_builder.scenes.effects import load_transform
from audio_compositionality.encoders.base import ENCODER

from .base import Drawing, Inputs, Outputs, Samples, Scores, TaskError, TaskInfo, settings_among
from .factor_rows import FACTORS, labels_of
from .metric_files import describe_metric
from .parts import FOLDS, LEVELS, PAPER, PartedMeasures, ProbeSpec, columns_of_parts
from .transform_rows import (
    CAPTIONS,
    TRANSFORMS,
    WARNING,
    bases_of,
    blocks_of,
    check_orbits,
    copied_originals,
    folds_of,
    is_candidate,
    is_original,
    original_samples,
    parameters_of,
    transforms_of,
)

_METRIC = describe_metric("disentanglement")

LABEL = "label"
"""What stands for a factor where recordings have labels."""

_SHIFTS = tuple(measure.name for measure in _METRIC.measures if measure.name.startswith("shift"))

_PARTED = PartedMeasures(
    _METRIC.measures,
    TRANSFORMS,
    "transforms",
    averaged=("shift_after", *(name for name in _SHIFTS if name != "shift_after")),
    of_parts=_SHIFTS,
    shown=("shift_after", "shift_before", "shift"),
)

_FACTORS = PartedMeasures(
    _METRIC.measures,
    tuple(f"{factor}_under_{transform}" for transform in TRANSFORMS for factor in (*FACTORS, LABEL)),
    "labels and transforms",
    averaged=(),
    of_parts=("shift_before", "shift_after"),
)


class TransformDisentanglement:
    """The task; see `Task`."""

    info = TaskInfo(
        name="transform_disentanglement",
        version=_METRIC.version,
        title="Labels under transforms",
        question="Is a label still read from a clip after a transform that the probe never heard?",
        benchmark="axes",
        recipe="transforms",
        needs=ENCODER,
        samples="clips with copies",
        measures=(*_PARTED.described, *_FACTORS.described),
        ranks_by="shift_after",
        trusted={"shift_after": None},
        captions=CAPTIONS,
        warning=f"{WARNING} R² after a transform has no lower bound: a probe that is thrown off is worse than a guess.",
        citation=_METRIC.citation,
        protocols={"paper": PAPER},
        on_request=True,
        controls=LEVELS,
    )
    spec = ProbeSpec
    drawings: tuple[Drawing, ...] = ()

    def inputs(self, row: Row, settings: Mapping[str, Any]) -> Inputs:
        """The clip, where its label is known."""
        return Inputs(clips=("audio",)) if _labelled(row) else Inputs()

    def settings(self, rows: Sequence[Row], requested: Mapping[str, Any]) -> dict[str, Any]:
        """The probes, and whether features are scaled."""
        labelled = [row for row in rows if _labelled(row)]
        if rows and not labelled:
            raise TaskError(f"{self.info.name} has no clip with a label; recordings need folders or a column of labels")
        check_orbits(labelled, self.info.name)
        originals = [row for row in labelled if is_original(row)]
        for factor in _factors(originals):
            values = _values(originals, factor)
            if len(set(values)) < 2:
                raise TaskError(f"{self.info.name} has one {factor} only, {values[0]!r}; it needs two")
            if isinstance(values[0], str):
                _check_classes(originals, values, factor)
        return settings_among(self.spec, requested).values()

    def score(
        self, rows: Sequence[Row], outputs: Outputs, settings: Mapping[str, Any], device: str, progress: bool
    ) -> Scores:
        """Score the embeddings [n, dim] of originals and copies whose labels are known: probes learn from originals of
        other folds."""
        # Importing the metric imports `evaluate`, which takes seconds that only the process that scores has to spend.
        from audio_compositionality.metrics.disentanglement import disentanglement

        labelled = [row for row in rows if _labelled(row)]
        embeddings = np.asarray(outputs.clips, np.float64)
        results: dict[str, Mapping[str, Any]] = {}
        by_factor: dict[str, Mapping[str, Any]] = {}
        for transform in transforms_of(labelled):
            places = [place for place, row in enumerate(labelled) if row["transform"] in ("", transform)]
            orbits = [labelled[place] for place in places]
            # Only what is known after a transform can be asked for.
            factors = [factor for factor in _factors(labelled) if factor not in load_transform(transform).alters]
            if not factors:
                continue
            results[transform] = disentanglement(
                embeddings[places],
                {factor: _values(orbits, factor) for factor in factors},
                folds_of(orbits),
                blocks_of(orbits),
                base=bases_of(orbits),
                parameters=parameters_of(orbits),
                **settings,
                return_scores=True,
            )
            for numbers in results[transform]["by_pair"]:
                by_factor[f"{numbers['factor']}_under_{transform}"] = numbers
        values = {**_PARTED.values(results), **_FACTORS.values(by_factor)}
        columns = columns_of_parts(
            {transform: result["scores_shift_after"] for transform, result in results.items()}, "score_shift_after"
        )
        return Scores(values, tuple(row["id"] for row in copied_originals(labelled)), columns)

    def samples(self, rows: Sequence[Row]) -> Samples:
        """The originals that have copies and labels."""
        return original_samples([row for row in rows if _labelled(row)])


def _labelled(row: Row) -> bool:
    return not is_candidate(row) and (bool(row.get("label")) or row.get("levels") is not None)


def _factors(rows: Sequence[Row]) -> tuple[str, ...]:
    return (LABEL,) if any(row.get("label") for row in rows) else FACTORS


def _values(rows: Sequence[Row], factor: str) -> list[Any]:
    """The labels of a factor; those of recordings are numbers where the data say so."""
    if factor != LABEL:
        return labels_of(rows, factor)
    if all(row.get("number") is not None for row in rows):
        return [float(row["number"]) for row in rows]
    return [str(row["label"]) for row in rows]


def _check_classes(originals: Sequence[Row], values: Sequence[str], factor: str) -> None:
    folds = Counter(value for value, _ in set(zip(values, folds_of(originals), strict=True)))
    alone = [value for value, count in folds.items() if count < 2]
    if alone:
        raise TaskError(
            f"the {factor} {alone[0]!r} is in one of {FOLDS} folds only, so that no probe could learn it where it is "
            "tested: it needs clips of more groups"
        )


TASK = TransformDisentanglement()
