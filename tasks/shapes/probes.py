"""Probes: the four axes of arXiv 2505.06224 as tasks, each with a design.

Informativeness: can a factor be read from an embedding? Equivariance: can its change be read and predicted? Invariance:
does a transform leave the embedding unchanged? Disentanglement: is a factor read whatever the other factors are?
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, Literal, get_args

import numpy as np
from pydantic import Field

from audio_compositionality.dataset_builder.data import Row
from audio_compositionality.dataset_builder.scenes.bases import DIFFERING
from audio_compositionality.dataset_builder.scenes.effects import load_transform
from audio_compositionality.support.spec import Spec

from ..base import Drawing, Floats, Inputs, Outputs, Samples, Scores, TaskError, TaskInfo, numbered, settings_among
from ..metric_files import PartedMeasures
from .designs import (
    FACTORS,
    FOLDS,
    Design,
    bases_of,
    blocks_of,
    factor_levels,
    is_original,
    parameters_of,
    row_folds,
    transforms_of,
)

Probe = Literal["ridge", "kernel", "slp", "mlp"]

PROBES: tuple[Probe, ...] = get_args(Probe)


class ProbeSpec(Spec):
    """The settings of a task that fits probes; results store their values unchanged."""

    probes: tuple[Probe, ...] = Field(("ridge", "kernel"), min_length=1, description="Probes to fit.")
    scaled: bool = Field(
        True, description="Whether features and targets are scaled to a mean of 0 and a variance of 1."
    )


class DisentanglementSpec(ProbeSpec):
    """The settings of disentanglement."""

    literature: bool = Field(False, description="Whether to compute published scores (DCI, MIG, SAP) too.")


class DesignedTask(ABC):
    """A task on the varied clips of a design; see `Task`."""

    spec: type[Spec] = ProbeSpec
    drawings: tuple[Drawing, ...] = ()

    def __init__(self, info: TaskInfo, design: Design, *measures: PartedMeasures) -> None:
        """Store the facts, design and measures.

        Args:
            info: the facts of the task.
            design: design of the varied clips.
            measures: measures of each part, and means over parts; the first have columns of the samples.
        """
        self.info = info
        self._design = design
        self._measures = measures

    def inputs(self, row: Row, settings: Mapping[str, Any]) -> Inputs:
        """Return the clip, if the design embeds it."""
        return Inputs(clips=("audio",)) if self._design.is_given(row) else Inputs()

    def settings(self, rows: Sequence[Row], requested: Mapping[str, Any]) -> dict[str, Any]:
        """Return the probes, whether features are scaled, and the other fields of `spec`.

        Raises:
            TaskError: the design rejects the rows.
            InputError: a requested setting is invalid for `spec`.
        """
        self._design.check(rows, self.info.name)
        return settings_among(self.spec, requested).values()

    @abstractmethod
    def score(
        self, rows: Sequence[Row], outputs: Outputs, settings: Mapping[str, Any], device: str, progress: bool
    ) -> Scores:
        """See `Task.score`."""

    def samples(self, rows: Sequence[Row]) -> Samples:
        """Return the samples of the design."""
        return self._design.samples(rows)

    def _embedded(self, rows: Sequence[Row]) -> list[Row]:
        """Return the rows whose clips are embedded."""
        return [row for row in rows if self._design.is_given(row)]

    def _values(self, results: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
        """Return the measures of the task from the metric's results for each part."""
        names = {measure.name for measure in self.info.measures}
        values = {name: value for parted in self._measures for name, value in parted.values(results).items()}
        return {name: value for name, value in values.items() if name in names}

    def _ids(self, rows: Sequence[Row]) -> tuple[str, ...]:
        return tuple(row["id"] for row in self._design.scored(rows))


class InformativenessTask(DesignedTask):
    """A factor is read by a probe in contexts unseen in training; scored by the metric `informativeness`."""

    def score(
        self, rows: Sequence[Row], outputs: Outputs, settings: Mapping[str, Any], device: str, progress: bool
    ) -> Scores:
        """Score the embeddings [n, dim] of n clips."""
        # Imported here, so that a task loads its metric only in the process that scores.
        from audio_compositionality.metrics.informativeness import informativeness

        embeddings = np.asarray(outputs.clips, np.float64)
        results: dict[str, dict[str, Any]] = {}
        for name, clips in self._design.parts(self._embedded(rows)):
            results[name] = informativeness(
                embeddings[[clip.place for clip in clips]],
                [clip.level for clip in clips],
                np.array([clip.fold for clip in clips]),
                numbered([clip.block for clip in clips]),
                **settings,
                return_scores=True,
            )
        columns = columns_of_parts({name: result.pop("scores") for name, result in results.items()})
        named = {measure.column for measure in self.info.measures}
        columns = {name: scores for name, scores in columns.items() if name in named}
        return Scores(self._values(results), self._ids(rows), columns)


class EquivarianceTask(DesignedTask):
    """A change is read from two embeddings, and the second predicted from it; scored by the metric `equivariance`."""

    def score(
        self, rows: Sequence[Row], outputs: Outputs, settings: Mapping[str, Any], device: str, progress: bool
    ) -> Scores:
        """Score the embeddings [n, dim] of n clips; each orbit is tested as a unit by a fit to other orbits."""
        # Imported here, so that a task loads its metric only in the process that scores.
        from audio_compositionality.metrics.equivariance import equivariance

        embeddings = np.asarray(outputs.clips)  # the metric converts its input to float64, part by part
        ids = self._ids(rows)
        results: dict[str, dict[str, Any]] = {}
        scores: dict[str, dict[str, Floats]] = {"score": {}, "score_p": {}, "score_p_gain": {}}
        for name, clips in self._design.parts(self._embedded(rows)):
            originals = [clip.is_original for clip in clips]
            result = results[name] = equivariance(
                embeddings[[clip.place for clip in clips]],
                numbered([clip.orbit for clip in clips]),
                [clip.level for clip in clips],
                np.array([clip.fold for clip in clips]),
                numbered([clip.block for clip in clips]),
                base=originals if any(originals) else None,
                **settings,
                return_scores=True,
            )
            samples = np.array([clip.sample for clip in clips])
            for column, of_parts in scores.items():
                values = result[column.replace("score", "scores")]
                if samples.min() >= 0 and values is not None:
                    ends = samples[result["rows"]]
                    # Means over each sample's clips, weighted so that their mean is the mean over all clips.
                    of_parts[name] = np.bincount(ends, values, len(ids)).astype(np.float64) * (len(ids) / len(values))
        columns: dict[str, Floats] = {}
        for column, of_parts in scores.items():
            columns |= columns_of_parts(of_parts, column)
        return Scores(self._values(results), ids, columns)


class InvarianceTask(DesignedTask):
    """A copy is nearer to a clip with its content than to one with other content, by the metric `invariance`.

    See its `abx`, and ``dataset_builder/scenes/bases.py`` for the two clips. Nothing is fitted, and there are no
    settings.
    """

    spec = Spec

    def score(
        self, rows: Sequence[Row], outputs: Outputs, settings: Mapping[str, Any], device: str, progress: bool
    ) -> Scores:
        """Score the embeddings [n, dim] of n clips."""
        results = self._results(rows, np.asarray(outputs.clips, np.float64))
        columns = {
            **columns_of_parts({name: result.pop("scores_abx") for name, result in results.items()}, "score_abx"),
            **columns_of_parts({name: result.pop("scores") for name, result in results.items()}),
        }
        return Scores(self._values(results), self._ids(rows), columns)

    def _results(self, rows: Sequence[Row], embeddings: Floats) -> dict[str, dict[str, Any]]:
        """Return the metric's result for each part."""
        # Imported here, so that a task loads its metric only in the process that scores.
        from audio_compositionality.metrics.invariance import invariance

        results = {}
        for name, clips in self._design.parts(self._embedded(rows)):
            originals = [clip for clip in clips if clip.is_original]
            place_of = {clip.orbit: place for place, clip in enumerate(clips) if clip.is_original}
            same, different = (embeddings[[getattr(one, side) for one in originals]] for side in ("same", "different"))
            results[name] = invariance(
                embeddings[[clip.place for clip in clips]],
                [-1 if clip.is_original else place_of[clip.orbit] for clip in clips],
                None if clips[0].level is None else [clip.level for clip in clips],
                None if clips[0].block is None else [clip.block for clip in clips],
                steps=different - same,
                same=same,
                different=different,
                return_scores=True,
            )
        return results


class OnsetTask(InvarianceTask):
    """`InvarianceTask` for scenes and their copies with other onsets, with an `OnsetDesign`.

    Its measures ``FACTOR_abx`` and ``FACTOR_selectivity`` are for the factor that differs.
    """

    def score(
        self, rows: Sequence[Row], outputs: Outputs, settings: Mapping[str, Any], device: str, progress: bool
    ) -> Scores:
        """Score the embeddings [n, dim] of scenes and candidates."""
        from audio_compositionality.metrics.invariance import selectivity

        embeddings, given = np.asarray(outputs.clips, np.float64), self._embedded(rows)
        (result,) = self._results(rows, embeddings).values()
        ((_, clips),) = self._design.parts(given)
        originals = [clip for clip in clips if clip.is_original]
        bases = embeddings[[clip.place for clip in clips if not clip.is_original]]
        same, different = (embeddings[[getattr(one, side) for one in originals]] for side in ("same", "different"))
        factors = np.array([given[clip.different]["candidate"] for clip in originals])
        shares = np.array(result["scores_abx"])
        values = {measure.name: result[measure.name] for measure in self.info.measures if measure.name in result}
        for factor in DIFFERING:
            of_factor = factors == factor
            some = bool(of_factor.any())
            values[f"{factor}_abx"] = float(shares[of_factor].mean()) if some else None
            values[f"{factor}_selectivity"] = (
                selectivity((different - same)[of_factor], (same - bases)[of_factor]) if some else None
            )
        return Scores(values, self._ids(rows), {"score_abx": shares, "score": np.array(result["scores"])})


class DisentanglementTask(DesignedTask):
    """A factor is read at levels of another factor unseen in training; scored by the metric `disentanglement`.

    Its parts are ``FACTOR_over_OTHER``.
    """

    spec = DisentanglementSpec

    def score(
        self, rows: Sequence[Row], outputs: Outputs, settings: Mapping[str, Any], device: str, progress: bool
    ) -> Scores:
        """Score the embeddings [n, dim] of n single sources."""
        # Imported here, so that a task loads its metric only in the process that scores.
        from audio_compositionality.metrics.disentanglement import disentanglement

        crossed = self._design.scored(rows)
        result = disentanglement(
            np.asarray(outputs.clips, np.float64),
            {factor: factor_levels(crossed, factor) for factor in FACTORS},
            **settings,
            return_scores=True,
        )
        by_pair = {f"{numbers['factor']}_over_{numbers['over']}": numbers for numbers in result["by_pair"]}
        # Shares of variance are over all factors together, not means over pairs.
        values = self._values(by_pair) | {name: result[name] for name in self._measures[0].averaged}
        lists = {f"{pair}_score": numbers["scores"] for pair, numbers in by_pair.items()}
        columns = {name: np.array(scores) for name, scores in {"score": result["scores"], **lists}.items()}
        return Scores(values, self._ids(rows), columns)


class LabelTask(DesignedTask):
    """A label read from a clip can still be read after a transform; scored by the metric `disentanglement`.

    Its design is `LabelledTransformDesign`; its parts are the transforms, then ``FACTOR_under_TRANSFORM``.
    """

    def settings(self, rows: Sequence[Row], requested: Mapping[str, Any]) -> dict[str, Any]:
        """Return the probes, and whether features are scaled.

        Raises:
            TaskError: no clip has a label, too few have a copy, or labels cannot be learned.
            InputError: a requested setting is invalid for `spec`.
        """
        labelled = self._embedded(rows)
        if rows and not labelled:
            raise TaskError(f"{self.info.name} has no labelled clip; recordings need folders or a column of labels")
        settings = super().settings(labelled, requested)
        originals = [row for row in labelled if is_original(row)]
        for factor in _factors(originals):
            values = _labels(originals, factor)
            if len(set(values)) < 2:
                raise TaskError(f"{self.info.name} has only one {factor}, {values[0]!r}; at least two are needed")
            if not isinstance(values[0], str):
                continue
            folds = Counter(value for value, _ in set(zip(values, row_folds(originals).tolist(), strict=True)))
            alone = [value for value, count in folds.items() if count < 2]
            if alone:
                raise TaskError(
                    f"the {factor} {alone[0]!r} is in only one of {FOLDS} folds, so that no probe can learn it before "
                    "the test: add clips of more groups"
                )
        return settings

    def score(
        self, rows: Sequence[Row], outputs: Outputs, settings: Mapping[str, Any], device: str, progress: bool
    ) -> Scores:
        """Score the embeddings [n, dim] of originals and copies with known labels.

        Probes learn from originals of other folds.
        """
        # Imported here, so that a task loads its metric only in the process that scores.
        from audio_compositionality.metrics.disentanglement import disentanglement

        labelled = self._embedded(rows)
        embeddings = np.asarray(outputs.clips, np.float64)
        results: dict[str, Mapping[str, Any]] = {}
        by_factor: dict[str, Mapping[str, Any]] = {}
        for transform in transforms_of(labelled):
            places = [place for place, row in enumerate(labelled) if row["transform"] in ("", transform)]
            orbits = [labelled[place] for place in places]
            # Only labels that are known after a transform can be tested.
            factors = [factor for factor in _factors(labelled) if factor not in load_transform(transform).alters]
            if not factors:
                continue
            results[transform] = disentanglement(
                embeddings[places],
                {factor: _labels(orbits, factor) for factor in factors},
                row_folds(orbits).tolist(),
                blocks_of(orbits),
                base=bases_of(orbits),
                parameters=parameters_of(orbits),
                **settings,
                return_scores=True,
            )
            for numbers in results[transform]["by_pair"]:
                by_factor[f"{numbers['factor']}_under_{transform}"] = numbers
        columns = columns_of_parts(
            {transform: result["scores_shift_after"] for transform, result in results.items()}, "score_shift_after"
        )
        return Scores(self._values({**results, **by_factor}), self._ids(rows), columns)


LABEL = "label"
"""The name used instead of a factor if recordings have labels."""


def columns_of_parts(scores: Mapping[str, Sequence[float] | Floats], column: str = "score") -> dict[str, Floats]:
    """Return the column of each part, and their mean, from the scores of the same samples by part."""
    columns = {f"{part}_{column}": np.asarray(values, np.float64) for part, values in scores.items()}
    return {column: np.mean(list(columns.values()), axis=0), **columns} if columns else {}


def _factors(rows: Sequence[Row]) -> tuple[str, ...]:
    return (LABEL,) if any(row.get("label") for row in rows) else FACTORS


def _labels(rows: Sequence[Row], factor: str) -> list[Any]:
    """Return the labels of a factor; labels of recordings are numbers if the data say so."""
    if factor != LABEL:
        return factor_levels(rows, factor)
    if all(row.get("number") is not None for row in rows):
        return [float(row["number"]) for row in rows]
    return [str(row["label"]) for row in rows]
