"""What tasks have in common that score several factors or transforms: each by itself, and their mean."""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Hashable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from audio_compositionality.support.spec import Spec

from .base import Floats, Measure, Number

FOLDS = 5

Probe = Literal["ridge", "kernel", "slp", "mlp"]

PROBES: tuple[Probe, ...] = get_args(Probe)

LEVELS = ("level-statistics", "rms")
"""Controls that hear how loud a clip is, and nothing else: what they reach needs no more than that."""

PAPER = {"probes": ["slp", "mlp"], "scaled": False}
"""Settings that follow arXiv 2505.06224: both of its probes, on features and targets as they come."""


class ProbeSpec(Spec):
    """What can be set of a task that fits probes; its values are stored as they are."""

    probes: tuple[Probe, ...] = Field(("ridge", "kernel"), min_length=1, description="That are fitted.")
    scaled: bool = Field(
        True, description="Whether features and targets are scaled to a mean of 0 and a variance of 1."
    )


@dataclass(frozen=True)
class PartedMeasures:
    """Measures of a metric for each of several parts, and the means of some over the parts.

    Attributes:
        measures: of the metric.
        parts: names of factors or transforms.
        noun: what the parts are, in the plural.
        averaged: names of the measures that have a mean, the score first; where there are none, parts have no columns.
        of_parts: names of those that each part has.
        shown: names of those whose mean stands in tables; of a part the score alone does.
        prefix: before the name of a mean, where a task has the same measures of other parts too.
    """

    measures: Sequence[Measure]
    parts: Sequence[str]
    noun: str
    averaged: Sequence[str]
    of_parts: Sequence[str]
    shown: Collection[str] = ()
    prefix: str = ""

    @property
    def described(self) -> tuple[Measure, ...]:
        """The means, then ``<part>_<measure>``."""
        by_name = {measure.name: measure for measure in self.measures}
        means = (self._mean(by_name[name]) for name in self.averaged)
        return *means, *(self._of_part(part, by_name[name]) for part in self.parts for name in self.of_parts)

    def _mean(self, measure: Measure) -> Measure:
        return replace(
            measure,
            name=f"{self.prefix}{measure.name}",
            heading=f"{self.prefix.replace('_', ' ')}{measure.heading}",
            meaning=f"{measure.meaning}; mean over the {self.noun} for which it can be computed",
            null=f"{self.prefix}{measure.null}" if measure.null in self.averaged else None,
            column=None if self.prefix else measure.column,
            spread=None,
            shown=measure.name in self.shown,
        )

    def _of_part(self, part: str, measure: Measure) -> Measure:
        said = part.replace("_", " ")
        is_score = measure.name in self.averaged[:1]
        return replace(
            measure,
            name=f"{part}_{measure.name}",
            heading=said if is_score and not self.prefix else f"{said} {measure.heading}",
            meaning=f"{measure.meaning}; {said}",
            null=f"{part}_{measure.null}" if measure.null in self.of_parts else None,
            column=f"{part}_{measure.column}" if measure.column and self.averaged and not self.prefix else None,
            spread=f"{part}_{measure.spread}" if measure.spread in self.of_parts else None,
            shown=is_score and not self.prefix and bool(self.shown),
        )

    def values(self, results: Mapping[str, Mapping[str, Any]]) -> dict[str, Number]:
        """The measures from what the metric gave for each part; one that a part has not is None, and means are over the
        others."""
        values: dict[str, Number] = {}
        for name in self.averaged:
            stated = [result[name] for result in results.values() if result.get(name) is not None]
            values[f"{self.prefix}{name}"] = float(np.mean(stated)) if stated else None
        for part in self.parts:
            values |= {f"{part}_{name}": results.get(part, {}).get(name) for name in self.of_parts}
        return values


def columns_of_parts(scores: Mapping[str, Sequence[float] | Floats], column: str = "score") -> dict[str, Floats]:
    """The column of each part, and their mean, from the scores of the same samples by part."""
    columns = {f"{part}_{column}": np.asarray(values, np.float64) for part, values in scores.items()}
    return {column: np.mean(list(columns.values()), axis=0), **columns} if columns else {}


def dealt_folds(groups: Sequence[Hashable]) -> NDArray[np.int64]:
    """A fold for each row, equal for rows of one group; groups are dealt out in the order of digests of their names."""
    names = {group: repr(group) for group in dict.fromkeys(groups)}
    order = sorted(names, key=lambda group: hashlib.sha256(names[group].encode()).digest())
    folds = {group: place % FOLDS for place, group in enumerate(order)}
    return np.array([folds[group] for group in groups], np.int64)
