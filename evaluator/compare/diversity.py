"""Scores against facts about the samples: straight lines against diversity, means of groups."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import linalg, special, stats

from audio_compositionality.tasks.shapes.pairs import frequency_groups

from .comparison import Comparison
from .statistics import MIN_SAMPLES, SCORE_ROUNDING, SIGNIFICANT, Floats, GroupMean, Interval, group_means

MIN_CLUSTERS = 40
"""Fewest clusters for a slope where some clusters hold several samples: with fewer than 20 to 50 its test rejects
too often (Cameron and Miller 2015, section VI)."""


@dataclass(frozen=True)
class LineFit:
    """A straight line through scores, by least squares; see `fit_line`.

    Attributes:
        n: number of samples in the fit.
        slope: change of the score for a change of x by 1.
        slope_interval: its 95 % interval, Student's t.
        p: two-sided, of slope 0.
        intercept: at x = 0, covariates at their means.
        r2: share of the variance that the whole fit explains.
        covariance: [2, 2] of intercept and slope.
        dof: degrees of freedom of interval and band.
    """

    n: int
    slope: float
    slope_interval: Interval
    p: float
    intercept: float
    r2: float
    covariance: Floats
    dof: float

    def band(self, x: ArrayLike) -> tuple[Floats, Floats, Floats]:
        """The line at x [k], and the lower and upper end of the 95 % band of the mean there, each [k]."""
        at = np.asarray(x, np.float64)
        mean = self.intercept + self.slope * at
        design = np.stack([np.ones_like(at), at], axis=1)
        error = np.sqrt(np.einsum("ki,ij,kj->k", design, self.covariance, design))
        half = special.stdtrit(self.dof, 1 - SIGNIFICANT / 2) * error
        return mean, mean - half, mean + half


def fit_line(
    x: ArrayLike, y: ArrayLike, *, clusters: ArrayLike | None = None, covariates: ArrayLike | None = None
) -> LineFit | None:
    """Least squares of scores y on x, with covariates held fixed.

    Ordinary least squares. The spread of scores changes with diversity, so the covariance allows for unequal variances:
    HC3 (MacKinnon and White 1985) where each cluster is one sample, else cluster-robust (Cameron and Miller 2015),
    which needs `MIN_CLUSTERS`.

    Args:
        x: [n].
        y: [n], scores.
        clusters: [n]; by default each sample is a cluster.
        covariates: [n, k], entered beside x.

    Returns:
        the fit, without samples that alone determine a covariate's coefficient and so have no bearing on the slope;
        None if there are too few clusters, or x does not vary once covariates are held fixed.
    """
    at, scores = np.asarray(x, np.float64), np.asarray(y, np.float64)
    extra = np.zeros((len(at), 0)) if covariates is None else np.asarray(covariates, np.float64)
    names = np.arange(len(at)) if clusters is None else np.asarray(clusters)
    design, telling = _design(at, extra)
    while not telling.all():
        at, scores, extra, names = at[telling], scores[telling], extra[telling], names[telling]
        design, telling = _design(at, extra)
    groups = np.unique(names, return_inverse=True)[1]
    number = len(np.unique(groups))
    enough = MIN_SAMPLES if number == len(at) else MIN_CLUSTERS
    if number < max(enough, design.shape[1] + 2) or np.linalg.matrix_rank(design) < design.shape[1]:
        return None
    inverse: Floats = np.asarray(np.linalg.pinv(design), np.float64)
    coefficients = inverse @ scores
    residuals = scores - design @ coefficients
    if number == len(at):
        covariance, dof = _covariance_hc3(design, inverse, residuals), len(at) - design.shape[1]
    else:
        covariance, dof = _covariance_of_clusters(design, inverse, residuals, groups), number - 1
    slope, error = float(coefficients[1]), float(np.sqrt(covariance[1, 1]))
    half = float(special.stdtrit(dof, 1 - SIGNIFICANT / 2)) * error
    constant = float(np.ptp(scores)) <= SCORE_ROUNDING
    return LineFit(
        n=len(at),
        slope=slope,
        slope_interval=(slope - half, slope + half),
        p=1.0 if constant else 2 * float(special.stdtr(dof, -abs(slope) / error)) if error else float(slope == 0),
        intercept=float(coefficients[0]),
        r2=0.0 if constant else 1 - float(residuals @ residuals) / float(((scores - scores.mean()) ** 2).sum()),
        covariance=covariance[:2, :2],
        dof=float(dof),
    )


def _covariance_hc3(design: Floats, inverse: Floats, residuals: Floats) -> Floats:
    """HC3 covariance [k, k] of the coefficients (MacKinnon and White 1985).

    (XᵀX)⁻¹ Xᵀ diag(e² / (1 - h)²) X (XᵀX)⁻¹: each residual over the share that its sample leaves to the others.

    Args:
        design: X, [n, k].
        inverse: its pseudoinverse, (XᵀX)⁻¹ Xᵀ, [k, n].
        residuals: e, [n].
    """
    leverage = np.einsum("ij,ji->i", design, inverse)
    spread = inverse * (residuals / (1 - leverage))
    return np.asarray(spread @ spread.T)


def _covariance_of_clusters(design: Floats, inverse: Floats, residuals: Floats, groups: NDArray[np.int64]) -> Floats:
    """Covariance [k, k] of the coefficients where samples of a cluster depend on each other.

    (XᵀX)⁻¹ Σ_g X_gᵀ e_g e_gᵀ X_g (XᵀX)⁻¹ times G / (G - 1) · (n - 1) / (n - k) for G clusters (Cameron and Miller
    2015, equations 11 and 12).

    Args:
        design, inverse, residuals: as for `_covariance_hc3`.
        groups: cluster of each sample, numbered from 0, [n].
    """
    n, k = design.shape
    number = int(groups.max()) + 1
    moments = np.zeros((number, k))
    np.add.at(moments, groups, design * residuals[:, None])
    spread = inverse @ inverse.T @ moments.T
    return np.asarray(spread @ spread.T * (number / (number - 1) * (n - 1) / (n - k)))


def _design(x: Floats, covariates: Floats) -> tuple[Floats, NDArray[np.bool_]]:
    """[1, x, linearly independent covariates, centred], and a mask: False where a row alone sets a coefficient."""
    centred = covariates - covariates.mean(axis=0) if len(covariates) else covariates
    if centred.size:
        r, order = linalg.qr(centred, mode="r", pivoting=True)
        size = np.abs(np.diagonal(r))
        centred = centred[:, np.sort(order[: int((size > SCORE_ROUNDING * max(size.max(), 1.0)).sum())])]
    design = np.hstack([np.ones((len(x), 1)), x[:, None], centred])
    basis = np.linalg.svd(design, full_matrices=False)[0][:, : np.linalg.matrix_rank(design)]
    # A leverage of 1: the fit goes through this sample, whatever the others are.
    return design, 1 - np.einsum("ij,ij->i", basis, basis) > SCORE_ROUNDING


# ----- Slopes and groups of a comparison


@dataclass(frozen=True)
class Slope:
    """How a measure changes with diversity.

    Attributes:
        label: of the result.
        diversity: the name of its x, as in `Samples.diversity`.
        fit: on x alone; None if there are too few samples or x does not vary.
        fit_within: with the numbers of `Samples.held_fixed` held fixed; None as for `fit`, or without such numbers.
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
    """A measure against the diversity and the groups of samples.

    Attributes:
        slopes: one per result and kind of diversity; the kind that figures show comes first.
        groups: by the name of a grouping, for each result's label the means of the groups.
    """

    slopes: tuple[Slope, ...]
    groups: Mapping[str, Mapping[str, tuple[GroupMean, ...]]]


def diversity(comparison: Comparison, measure: str) -> Diversity | None:
    """A measure against diversity and by groups; None where the data have neither.

    More diverse samples often have more of something, such as sources: where a task names numbers to be held fixed,
    each slope is also given with them held fixed, every value of a number as a category.

    Args:
        comparison: with the results.
        measure: name of a measure that all results have by sample.

    Raises:
        ResultError: see `Comparison.view`.
    """
    view, samples = comparison.view(measure), comparison.samples
    if samples is None or not (samples.diversity or samples.groups):
        return None
    # Indicators of every value of every number but its first.
    columns = [column[:, None] == np.unique(column)[1:] for column in samples.held_fixed.values()]
    fixed = np.hstack(columns).astype(np.float64) if columns else None
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


def _corrected(fits: Sequence[LineFit | None]) -> list[float | None]:
    p = [fit.p for fit in fits if fit is not None]
    adjusted = iter(stats.false_discovery_control(p).tolist() if p else [])
    return [None if fit is None else next(adjusted) for fit in fits]


_NUMBER = re.compile(r"\d+(?:\.\d+)?(?=$| )")
"""In front of a label: "2", "1.5 to 2.5 s"."""


def group_order(label: str) -> tuple[float, str]:
    """Sort key of labels: those that begin with a number by its size, words alphabetically after them."""
    match = _NUMBER.match(label)
    return (math.inf if match is None else float(match[0]), label)


GROUPING = "training captions that name the rarer sound"


def with_training_captions(comparison: Comparison, captions: Sequence[str]) -> Comparison:
    """A comparison with one more grouping of its samples: how often the rarer of their labels occurs in captions.

    Args:
        comparison: of a task; where its samples have no labels, it gets a note that says so, and no groups.
        captions: from the training of its models.
    """
    samples = comparison.samples
    groups = () if samples is None else frequency_groups(samples.rows, captions)
    if samples is None or not groups:
        note = "its samples have no known labels to count in the training captions"
        return replace(comparison, notes=(*comparison.notes, note))
    return replace(comparison, samples=replace(samples, groups={**samples.groups, GROUPING: groups}))
