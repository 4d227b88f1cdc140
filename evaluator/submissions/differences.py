"""Claimed beside recomputed numbers, one by one, each with its tolerance."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from scipy import stats

from audio_compositionality.encoders.base import LANGUAGE_MODEL
from audio_compositionality.evaluator.compare.statistics import UNBOUNDED
from audio_compositionality.evaluator.results.result import CLUSTER, Result, SampleTable
from audio_compositionality.tasks.base import TaskInfo

EXACT_TOLERANCE = 1e-6
"""Tolerance of numbers without a fit, relative above 1: other libraries and processors add in another order, which
changes cosines by about 1e-12; claim and recomputation start from the same rounded embeddings."""

INTERVAL_TOLERANCE = 0.1
"""Tolerance of the ends of an interval, in units of its width: other versions of a library may draw other resamples,
and 4,000 of them leave an end uncertain by about 1 % of the width."""

LEAST_FIT_TOLERANCE = 1e-3
"""Least tolerance of the score of fits, also for a small spread: other devices and versions may differ this far."""

FIT_CONFIDENCE = 0.99
"""Two means of k fits each differ by more than the tolerance in 1 % of the cases; see `_fit_tolerance`."""


@dataclass(frozen=True)
class Difference:
    """A claimed number beside the recomputed one.

    Attributes:
        name: of the number.
        claimed, recomputed: the number; None where it is missing.
        tolerance: largest distance that counts as agreement; None for numbers that depend on the randomness of fits,
            which are only reported.
    """

    name: str
    claimed: float | None
    recomputed: float | None
    tolerance: float | None

    @property
    def holds(self) -> bool:
        """Whether the claim agrees with the recomputation."""
        if self.tolerance is None:
            return True
        if self.claimed is None or self.recomputed is None:
            return self.claimed is self.recomputed
        return abs(self.claimed - self.recomputed) <= self.tolerance

    def __str__(self) -> str:
        claimed, recomputed = ("none" if x is None else f"{x:.9g}" for x in (self.claimed, self.recomputed))
        return f"{self.name} is {claimed} in the claim and {recomputed} recomputed"


def differences_of(info: TaskInfo, claimed: Result, recomputed: Result) -> tuple[Difference, ...]:
    """The measures and the ends of their intervals. Numbers that are only reported have no tolerance.

    Args:
        info: the task of both, in their version.
        claimed: the submitted result.
        recomputed: the recomputed result; it alone sets the tolerances, since a claimed spread may be any number.
    """
    differences = []
    for measure in info.measures:
        name, tolerance = measure.name, None
        claim, value = _number(claimed, name), _number(recomputed, name)
        if not measure.fitted:
            tolerance = _exact(value)
        elif measure.spread is not None:
            tolerance = _fit_tolerance(measure.spread, recomputed)
        differences.append(Difference(name, claim, value, tolerance))
        if measure.column is None:
            continue
        interval = recomputed.intervals.get(name)
        allowed = None if measure.fitted else interval_tolerance(interval)
        for place, end in enumerate(("lower", "upper")):
            claim, value = (None if ends is None else ends[place] for ends in (claimed.intervals.get(name), interval))
            differences.append(Difference(f"{end} end of the interval of {name}", claim, value, allowed))
    return tuple(differences)


def interval_tolerance(interval: tuple[float, float] | None) -> float:
    """Return the largest allowed distance between the ends of a claimed and a recomputed interval."""
    return (
        EXACT_TOLERANCE if interval is None else max(EXACT_TOLERANCE, INTERVAL_TOLERANCE * (interval[1] - interval[0]))
    )


def _number(result: Result, name: str) -> float | None:
    value = result.measures.get(name)
    return None if value is None else float(value)


def _exact(value: float | None) -> float:
    return EXACT_TOLERANCE * max(1.0, abs(value or 0.0))


def _fit_tolerance(spread: str, recomputed: Result) -> float:
    """Largest distance between means of k fits, from the standard deviation s of the k recomputed fits.

    The difference of two means of k has the standard deviation s sqrt(2 / k), estimated with k - 1 degrees of freedom.
    """
    seeds = recomputed.settings.get("seeds")
    count = len(seeds) if isinstance(seeds, list) else 0
    if count < 2:
        return LEAST_FIT_TOLERANCE
    quantile = float(stats.t.ppf((1 + FIT_CONFIDENCE) / 2, count - 1))
    return max(LEAST_FIT_TOLERANCE, quantile * float(recomputed.measures[spread] or 0.0) * math.sqrt(2 / count))


def sample_differences(info: TaskInfo, claimed: SampleTable, recomputed: SampleTable) -> tuple[Difference, ...]:
    """The largest difference in each column of samples; both tables have the same columns of the same samples.

    Columns of fitted measures are only reported: where an embedding holds nothing to learn, other fits score other
    samples high. So are columns without a measure as their mean, such as coordinates on arbitrary axes; except where
    answers are scored, since the chosen option is read from the answer's text.
    """
    exact = {measure.column for measure in info.with_intervals if not measure.fitted}
    exact -= {measure.column for measure in info.with_intervals if measure.fitted}
    exact.add(CLUSTER)
    if info.needs == LANGUAGE_MODEL:
        exact |= set(recomputed.columns)
    differences = []
    for name, values in recomputed.columns.items():
        claims = claimed.columns[name]
        worst = int(np.argmax(np.abs(claims - values)))
        claim, value = float(claims[worst]), float(values[worst])
        tolerance = _exact(value) if name in exact else None
        differences.append(Difference(f"{name} of {recomputed.ids[worst]}", claim, value, tolerance))
    return tuple(differences)


def sample_problem(claimed: SampleTable, recomputed: SampleTable) -> str | None:
    """Why two tables of samples are not comparable; None where they are."""
    if claimed.ids != recomputed.ids:
        return "its samples differ from the data, or are in another order"
    if set(claimed.columns) != set(recomputed.columns):
        return "the columns of its samples do not belong to its task"
    return None


def mean_problem(info: TaskInfo, result: Result, samples: SampleTable) -> str | None:
    """Return why samples do not belong to a result: a measure differs from the mean of its column, or a value is out of
    range; None if they do."""
    for measure in info.with_intervals:
        column = samples.columns.get(measure.column or "")
        value = result.measures.get(measure.name)
        if column is None or value is None:
            continue
        low, high = measure.range
        # A range that is open at one end belongs to a ratio of means, which single samples may leave, as well as
        # wherever the task states it.
        is_closed = low > -UNBOUNDED and high < UNBOUNDED and not measure.outside
        if is_closed and (column.min() < low - EXACT_TOLERANCE or column.max() > high + EXACT_TOLERANCE):
            return f"{measure.column} is not within {low:g} to {high:g}"
        places = measure.places(samples.columns)
        if not len(places) or abs(float(column[places].mean()) - float(value)) > 1e-9 * max(1.0, abs(float(value))):
            return f"the mean of {measure.column} is not the {measure.name} of the result"
    return None
