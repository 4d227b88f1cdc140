"""How scores change with what is known of the samples: slopes against diversity, means of groups."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from .comparison import Comparison
from .lines import LineFit, fit_line
from .statistics import Floats, GroupMean, group_means


@dataclass(frozen=True)
class Slope:
    """How a measure changes with diversity.

    Attributes:
        label: of the result.
        diversity: name of what it is a slope against, as `Samples.diversity` has it.
        fit: on that alone; None where there are too few samples or it does not vary.
        fit_within: with the numbers of `Samples.held_fixed` held fixed; None likewise, or where there are no such.
        p_adjusted: of `fit`, corrected over all slopes of the comparison (Benjamini and Hochberg 1995).
        p_adjusted_within: of `fit_within`.
    """

    label: str
    diversity: str
    fit: LineFit | None
    fit_within: LineFit | None
    p_adjusted: float | None
    p_adjusted_within: float | None


@dataclass(frozen=True)
class Diversity:
    """A measure against what is known of the samples.

    Attributes:
        slopes: one a result and kind of diversity, that which figures show first.
        groups: by the name of a grouping, for each result's label the means of the groups.
    """

    slopes: tuple[Slope, ...]
    groups: Mapping[str, Mapping[str, tuple[GroupMean, ...]]]


def diversity(comparison: Comparison, measure: str) -> Diversity | None:
    """A measure against diversity and by groups; None where nothing of the kind is known of the samples.

    What is diverse is often only more: where a task names numbers to be held fixed, each slope is also given with
    them held fixed, each number a category.

    Args:
        comparison: of whose results.
        measure: name of a measure that all results have by sample.

    Raises:
        ResultError: see `Comparison.view`.
    """
    view, samples = comparison.view(measure), comparison.samples
    if samples is None or not (samples.diversity or samples.groups):
        return None
    fixed = _categories(list(samples.held_fixed.values()))
    clusters = samples.clusters
    fits = [
        (
            label,
            name,
            fit_line(x, y, clusters=clusters),
            fit_line(x, y, clusters=clusters, covariates=fixed) if samples.held_fixed else None,
        )
        for label, y in zip(comparison.labels, view.values.T, strict=True)
        for name, x in samples.diversity.items()
    ]
    plain, within = _corrected([fit for *_, fit, _ in fits]), _corrected([fit for *_, fit in fits])
    slopes = tuple(Slope(*item, p, q) for item, p, q in zip(fits, plain, within, strict=True))
    groups = {
        name: {
            label: tuple(sorted(means, key=lambda group: group_order(group.label)))
            for label, means in zip(
                comparison.labels, group_means(view.values, labels, clusters, bounds=view.measure.range), strict=True
            )
        }
        for name, labels in samples.groups.items()
    }
    return Diversity(slopes, groups)


def _categories(columns: Sequence[NDArray[np.int64]]) -> Floats | None:
    """Indicators [n, k] of every value of every column but its first; [n, 0] where none varies."""
    parts = [column[:, None] == np.unique(column)[1:] for column in columns]
    return np.hstack(parts).astype(np.float64) if parts else None


def _corrected(fits: Sequence[LineFit | None]) -> list[float | None]:
    p = [fit.p for fit in fits if fit is not None]
    adjusted = iter(stats.false_discovery_control(p).tolist() if p else [])
    return [None if fit is None else next(adjusted) for fit in fits]


_NUMBER = re.compile(r"\d+(?:\.\d+)?(?=$| )")
"""In front of a label: "2", "1.5 to 2.5 s"."""


def group_order(label: str) -> tuple[float, str]:
    """What labels are ordered by: those with a number in front by its size, words by their letters after them."""
    match = _NUMBER.match(label)
    return (math.inf if match is None else float(match[0]), label)
