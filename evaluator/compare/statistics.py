"""Intervals and tests on the scores of samples: arrays in, numbers out.

Samples that belong together are a *cluster*: the quadruples that share their added sources T. Bootstrap and tests take
clusters, not samples, as the random draws; where every cluster holds one sample, as in most of the data, these are the
usual bootstrap and tests.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import islice

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse, special

from audio_compositionality.support.errors import InputError

MIN_SAMPLES = 10
"""Fewest clusters for an interval or a test. Our choice: below it, neither a t-test of skewed scores nor a bootstrap of
so few values can be relied on."""

SIGNIFICANT = 0.05
"""Level of the corrected tests; intervals are 1 - 0.05 = 95 %."""

BOOTSTRAP_RESAMPLES = 4_000
"""Bootstrap resamples. The end of a 95 % interval then has a Monte Carlo error of about 4 % of a standard error:
sqrt(0.025 * 0.975 / R) / phi(1.96), with phi the normal density."""

SCORE_ROUNDING = 1e-7
"""Scores that differ by no more than this everywhere count as equal: float32 embeddings are rounded at 2^-24 = 6e-8."""

_BLOCK = 500  # resamples weighted at once

Floats = NDArray[np.float64]
Interval = tuple[float, float]

UNBOUNDED = 1e15
"""Stands for "no bound" in the ranges of measures."""

EVERYTHING = (-UNBOUNDED, UNBOUNDED)
"""The range of a measure without bounds."""


@dataclass(frozen=True)
class BootstrapMeans:
    """Means of m columns of scores under resampling of clusters; see `bootstrap_means`.

    Attributes:
        estimate: [m], the means themselves.
        resampled: [R, m], the means of each resample.
        jackknifed: [K, m], the means without each cluster.
    """

    estimate: Floats
    resampled: Floats
    jackknifed: Floats


@dataclass(frozen=True)
class PairedTest:
    """Whether two models differ on the same samples; see `compare_pairs`.

    Attributes:
        first, second: columns that are compared, first < second.
        n: number of samples.
        difference: mean of first minus mean of second.
        interval: 95 % BCa interval of the difference.
        t: statistic; infinite where all differences are the same and not zero.
        p: two-sided.
        p_adjusted: after Benjamini and Hochberg, over all pairs.
        effect_size: Cohen's d_z, mean difference / standard deviation of the differences; infinite as `t` is.

        `interval`, `t`, `p`, `p_adjusted` and `effect_size` are None if there are too few samples.
    """

    first: int
    second: int
    n: int
    difference: float
    interval: Interval | None
    t: float | None
    p: float | None
    p_adjusted: float | None
    effect_size: float | None

    @property
    def significant(self) -> bool:
        """Whether the two are distinguishable, at a false discovery rate of 5 %."""
        return self.p_adjusted is not None and self.p_adjusted <= SIGNIFICANT


class PairedTests:
    """Paired tests of every two of m columns of scores, in the order (0, 1), (0, 2), …, (1, 2), …; see `compare_pairs`.

    Intervals and sizes of effects are computed when a test is read: of 1,000 columns there are 499,500 pairs.

    Attributes:
        first, second: [pairs], columns that are compared, first < second.
        difference: [pairs], mean of first minus mean of second.
        t, p, p_adjusted: [pairs], see `PairedTest`; None if there are too few samples.
    """

    def __init__(self, scores: Floats, index: NDArray[np.int64], bounds: Interval, seed: int) -> None:
        self._scores, self._index, self._bounds, self._seed = scores, index, bounds, seed
        m = scores.shape[1]
        self.first, self.second = np.triu_indices(m, 1)
        means = scores.mean(axis=0)
        self.difference: Floats = means[self.first] - means[self.second]
        self.t: Floats | None = None
        self.p: Floats | None = None
        self.p_adjusted: Floats | None = None
        if m < 2 or index.max() + 1 < MIN_SAMPLES:
            return
        tested = [_t_tests(scores[:, k, None] - scores[:, k + 1 :], index) for k in range(m - 1)]
        # Imported only where results are compared: it takes a second.
        from scipy.stats import false_discovery_control

        self.t, self.p = (np.concatenate(parts) for parts in zip(*tested, strict=True))
        self.p_adjusted = false_discovery_control(self.p)

    @property
    def significant(self) -> NDArray[np.bool_]:
        """[pairs], see `PairedTest.significant`."""
        return np.zeros(len(self), bool) if self.p_adjusted is None else self.p_adjusted <= SIGNIFICANT

    def __len__(self) -> int:
        return len(self.first)

    def __iter__(self) -> Iterator[PairedTest]:
        return map(self.between, self.first.tolist(), self.second.tolist())

    def between(self, first: int, second: int) -> PairedTest:
        """Return the test of two columns, first < second."""
        place = first * (2 * self._scores.shape[1] - first - 1) // 2 + second - first - 1
        difference = float(self.difference[place])
        n, interval, effect = len(self._scores), None, None
        if self.p is not None:
            means, (low, high) = self._bootstrapped, self._bounds
            interval = bounded_interval(
                bca_interval(
                    difference,
                    means.resampled[:, first] - means.resampled[:, second],
                    means.jackknifed[:, first] - means.jackknifed[:, second],
                    expanded_level(len(means.jackknifed)),
                ),
                difference,
                (low - high, high - low),
            )
            differences = self._scores[:, first] - self._scores[:, second]
            mean, deviation = float(differences.mean()), float(differences.std(ddof=1))
            if np.abs(differences).max() <= SCORE_ROUNDING:
                effect = 0.0
            elif deviation > SCORE_ROUNDING * abs(mean) * 1e-3:
                effect = mean / deviation
            else:
                effect = math.copysign(math.inf, mean)
        t, p, p_adjusted = (
            None if values is None else float(values[place]) for values in (self.t, self.p, self.p_adjusted)
        )
        return PairedTest(first, second, n, difference, interval, t, p, p_adjusted, effect)

    @cached_property
    def _bootstrapped(self) -> BootstrapMeans:
        return bootstrap_means(self._scores, self._index, seed=self._seed)


@dataclass(frozen=True)
class GroupMean:
    """Mean score of the samples with one label; the 95 % interval is None where they are too few."""

    label: str
    n: int
    mean: float
    interval: Interval | None


def bootstrap_means(
    values: ArrayLike, clusters: ArrayLike, *, resamples: int = BOOTSTRAP_RESAMPLES, seed: int = 0
) -> BootstrapMeans:
    """Means over samples under resampling: K clusters drawn with replacement from the K clusters.

    Field and Welsh 2007, "Bootstrapping clustered data", cluster bootstrap: a cluster comes with all its samples. All
    columns share the resamples, so the difference of two columns is the resampled difference.

    Args:
        values: scores, [n, m].
        clusters: [n], equal for samples of one cluster.
        resamples: R.
        seed: of the resampling.

    Raises:
        InputError: if values are not [n, m], not finite, or clusters are not [n].
    """
    scores, index = _checked(values, clusters)
    number = int(index.max()) + 1
    size = np.bincount(index, minlength=number).astype(np.float64)
    sums = _cluster_sums(scores, index)
    draws = np.random.default_rng(seed).integers(0, number, (resamples, number))
    resampled = np.empty((resamples, scores.shape[1]))
    for start in range(0, resamples, _BLOCK):
        block = draws[start : start + _BLOCK]
        offset = np.arange(len(block))[:, None] * number
        weights = np.bincount((block + offset).ravel(), minlength=len(block) * number).reshape(len(block), number)
        resampled[start : start + len(block)] = (weights @ sums) / (weights @ size)[:, None]
    left = len(scores) - size
    with np.errstate(divide="ignore", invalid="ignore"):
        jackknifed = (sums.sum(axis=0) - sums) / left[:, None]
    return BootstrapMeans(scores.mean(axis=0), resampled, jackknifed)


def bca_interval(estimate: float, resampled: Floats, jackknifed: Floats, level: float = 1 - SIGNIFICANT) -> Interval:
    """Bias-corrected and accelerated bootstrap interval.

    Efron 1987, "Better bootstrap confidence intervals", section 2, acceleration from the jackknife (Efron and
    Tibshirani 1993, equation 14.15); the percentile of the estimate counts ties half, as SciPy's does.

    Args:
        estimate: the statistic.
        resampled: [R], the statistic of each resample.
        jackknifed: [K], the statistic without each cluster.
        level: coverage.

    Returns:
        the ends; twice the estimate where resampling changes nothing.
    """
    if np.ptp(resampled) <= SCORE_ROUNDING * max(1.0, abs(estimate)) * 1e-3:
        return estimate, estimate
    below = (np.mean(resampled < estimate) + np.mean(resampled <= estimate)) / 2
    bias = special.ndtri(below)
    influence = jackknifed.mean() - jackknifed
    spread = float((influence**2).sum())
    acceleration = float((influence**3).sum()) / (6 * spread**1.5) if spread else 0.0
    ends = bias + special.ndtri([(1 - level) / 2, (1 + level) / 2])
    low, high = np.quantile(resampled, special.ndtr(bias + ends / (1 - acceleration * ends)))
    return float(low), float(high)


def expanded_level(number: int, level: float = 1 - SIGNIFICANT) -> float:
    """The level at which to take the ends of a bootstrap interval of `number` clusters, so that it covers `level`.

    A bootstrap interval is too narrow for few clusters, by the factor sqrt((K - 1) / K) and by normal instead of
    Student's quantiles. Hesterberg 2015, "What teachers should know about the bootstrap", section 4.5 (expanded
    percentile): take the ends at Φ(±sqrt(K / (K - 1)) t), t being the quantile of Student's t with K - 1 degrees of
    freedom.
    """
    expanded = math.sqrt(number / (number - 1)) * special.stdtrit(number - 1, (1 + level) / 2)
    return float(1 - 2 * special.ndtr(-expanded))


def bounded_interval(interval: Interval, estimate: float, bounds: Interval) -> Interval:
    """An interval moved into bounds: an end within them stays, an end outside is mapped by a scale that respects them.

    Scores of samples that are contributions to a ratio, or to a correlation, can lie outside the range of their mean,
    and so can the ends of its interval. The scale g is log(estimate − low) or −log(high − estimate) for one
    bound, and the logit of the share of the range for two; an end e outside becomes
    g⁻¹(g(estimate) + g′(estimate)·(e − estimate)): the delta method, as for odds and correlations (Efron and Tibshirani
    1993, section 12.6). The other end is not stretched with it: near one bound that would make it reach the other.

    Args:
        interval: the ends.
        estimate: the mean.
        bounds: the range of the measure; 1e15 and beyond is no bound.
    """
    low, high = bounds
    if not low < estimate < high:
        return min(max(interval[0], low), high), min(max(interval[1], low), high)
    ends = list(interval)
    for k, end in enumerate(ends):
        if low <= end <= high:
            continue
        moved, under, over = end - estimate, estimate - low, high - estimate
        if low <= -UNBOUNDED:
            inside = high - over * math.exp(-moved / over)
        elif high >= UNBOUNDED:
            inside = low + under * math.exp(moved / under)
        else:
            slope = (high - low) / (under * over)
            inside = low + (high - low) * float(special.expit(math.log(under / over) + slope * moved))
        ends[k] = min(max(inside, low), high)
    return ends[0], ends[1]


def mean_intervals(
    values: ArrayLike, clusters: ArrayLike, *, bounds: Interval = EVERYTHING, seed: int = 0
) -> list[Interval | None]:
    """95 % BCa interval, at `expanded_level`, of the mean of each column of scores [n, m], within the bounds of means.

    None if there are too few clusters. See `bounded_interval`.
    """
    scores, index = _checked(values, clusters)
    if index.max() + 1 < MIN_SAMPLES:
        return [None] * scores.shape[1]
    bootstrapped = bootstrap_means(scores, index, seed=seed)
    level = expanded_level(len(bootstrapped.jackknifed))
    return [
        bounded_interval(bca_interval(estimate, resampled, jackknifed, level), estimate, bounds)
        for estimate, resampled, jackknifed in zip(
            bootstrapped.estimate.tolist(), bootstrapped.resampled.T, bootstrapped.jackknifed.T, strict=True
        )
    ]


def paired_t_test(difference: ArrayLike, clusters: ArrayLike) -> tuple[float, float]:
    """t and two-sided p of a mean difference of zero, with clusters as the random draws.

    With g a cluster, e the differences less their mean: t = mean / sqrt(K / (K - 1) Σ_g (Σ_{i in g} e_i)²) n, K - 1
    degrees of freedom: the cluster-robust variance of a regression on a constant (Cameron and Miller 2015, "A
    practitioner's guide to cluster-robust inference", section II). Where each cluster holds one sample it is the paired
    t-test.

    Args:
        difference: [n], of the two scores of each sample.
        clusters: [n].
    """
    values, index = _checked(np.reshape(difference, (-1, 1)), clusters)
    t, p = _t_tests(values, index)
    return float(t[0]), float(p[0])


def _t_tests(differences: Floats, index: NDArray[np.int64]) -> tuple[Floats, Floats]:
    """Return t and p of each column of differences [n, k]; see `paired_t_test`."""
    mean, number = differences.mean(axis=0), int(index.max()) + 1
    sums = _cluster_sums(differences - mean, index)
    error = np.sqrt(number / (number - 1) * (sums**2).sum(axis=0)) / len(differences)
    # Without a difference, or where differences cancel within each cluster, but for rounding.
    is_equal = np.abs(differences).max(axis=0) <= SCORE_ROUNDING
    is_equal |= np.maximum(error, np.abs(mean)) <= SCORE_ROUNDING
    is_fixed = ~is_equal & (error <= SCORE_ROUNDING * np.abs(mean) * 1e-3)
    with np.errstate(divide="ignore", invalid="ignore"):
        t = np.where(is_equal, 0.0, np.where(is_fixed, np.copysign(np.inf, mean), mean / error))
    return t, 2 * special.stdtr(number - 1, -np.abs(t))


def compare_pairs(
    values: ArrayLike, clusters: ArrayLike, *, bounds: Interval = EVERYTHING, seed: int = 0
) -> PairedTests:
    """Return the paired tests of every two columns of scores of the same samples.

    The p values are corrected together, by Benjamini and Hochberg 1995, as the paper's are (arXiv 2603.13685, section
    5); `paired_t_test` gives each pair's p value.

    Args:
        values: scores, [n, m], one column per model.
        clusters: [n].
        bounds: the range of a mean, from which the range of differences follows.
        seed: of the bootstrap.

    Raises:
        InputError: as `bootstrap_means`.
    """
    return PairedTests(*_checked(values, clusters), bounds, seed)


LETTERS = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"


def compact_letters(means: ArrayLike, tests: PairedTests) -> list[str] | None:
    """Return the letters of each column: two columns share a letter if and only if they are not distinguishable.

    The compact letter display of Piepho 2004, "An algorithm for a letter-based representation of all-pairwise
    comparisons": a letter is a largest set in which no test is significant. Letters go from the highest mean down, a
    to z and A to Z.

    Args:
        means: [m].
        tests: of every two columns.

    Returns:
        the letters of each column, "-" if there are too few samples; None if it takes more letters than there are: of
        many columns the number of such sets can grow exponentially.
    """
    order = np.argsort(-np.asarray(means, np.float64), kind="stable").tolist()
    if tests.p is None and len(order) > 1:
        return ["-"] * len(order)
    place = np.argsort(order)
    # Imported only where results are compared.
    import networkx

    alike = networkx.Graph()
    alike.add_nodes_from(range(len(order)))
    is_alike = ~tests.significant
    alike.add_edges_from(
        zip(place[tests.first[is_alike]].tolist(), place[tests.second[is_alike]].tolist(), strict=True)
    )
    cliques = [sorted(clique) for clique in islice(networkx.find_cliques(alike), len(LETTERS) + 1)]
    if len(cliques) > len(LETTERS):
        return None
    letters = [""] * len(order)
    for letter, clique in zip(LETTERS, sorted(cliques), strict=False):
        for k in clique:
            letters[order[k]] += letter
    return letters


def shared_ranks(means: ArrayLike, tests: PairedTests) -> list[int]:
    """Return the rank of each column: 1 and the number of columns that are significantly higher.

    So columns that cannot be distinguished share a rank, as in 1, 2, 2, 4. No column has a better rank than one with a
    higher mean, even if a larger variance hides its difference from those above both.

    Args:
        means: [m].
        tests: of every two columns.
    """
    means = np.asarray(means, np.float64)
    lower = np.where(tests.difference > 0, tests.second, tests.first)[tests.significant]
    above = np.bincount(lower, minlength=len(means))
    order = np.argsort(-means, kind="stable")
    ranks = np.empty(len(means), np.int64)
    ranks[order] = 1 + np.maximum.accumulate(above[order])
    return [int(rank) for rank in ranks]


def group_means(
    values: ArrayLike, labels: Sequence[str], clusters: ArrayLike, *, bounds: Interval = EVERYTHING
) -> list[list[GroupMean]]:
    """Mean and 95 % BCa interval of the scores of the samples with each label.

    Args:
        values: scores, [n, m], one column per model.
        labels: [n].
        clusters: [n].
        bounds: the range of a mean.

    Returns:
        for each column the groups in the order of their labels.
    """
    scores, index = _checked(values, clusters)
    names = np.asarray(labels)
    columns: list[list[GroupMean]] = [[] for _ in range(scores.shape[1])]
    for label in np.unique(names).tolist():
        members = names == label
        means = scores[members].mean(axis=0)
        intervals = mean_intervals(scores[members], index[members], bounds=bounds)
        for groups, mean, interval in zip(columns, means.tolist(), intervals, strict=True):
            groups.append(GroupMean(label, int(members.sum()), mean, interval))
    return columns


def _checked(values: ArrayLike, clusters: ArrayLike) -> tuple[Floats, NDArray[np.int64]]:
    """Scores [n, m], and clusters [n] numbered from 0 without gaps."""
    scores, names = np.asarray(values, np.float64), np.asarray(clusters)
    if scores.ndim != 2 or 0 in scores.shape:
        raise InputError(f"scores have shape {scores.shape}, but must be [n, m] with n, m ≥ 1")
    if names.shape != scores.shape[:1]:
        raise InputError(f"clusters have shape {names.shape}, but must be ({len(scores)},), one per sample")
    if not np.isfinite(scores).all():
        row, column = np.argwhere(~np.isfinite(scores))[0]
        raise InputError(f"scores must be finite; row {row}, column {column} is {scores[row, column]}")
    return scores, np.unique(names, return_inverse=True)[1]


def _cluster_sums(scores: Floats, index: NDArray[np.int64]) -> Floats:
    # As a matrix product: ten times as fast as np.add.at, with the same order of additions.
    members = sparse.csr_array((np.ones(len(index)), (index, np.arange(len(index)))))
    sums: Floats = members @ scores
    return sums
