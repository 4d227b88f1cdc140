"""A-COAT, the Audio Compositional Object Algebra Test (arXiv 2603.13685, section 3.2), with its controls.

A quadruple is four sound scenes A, B = A ∪ T, C, D = C ∪ T. An encoder is additive when adding the
sources T moves A's embedding and C's embedding by the same step, so the score of a quadruple is
cos(z_B − z_A, z_D − z_C). Nothing is trained.

The score alone misleads: an encoder that moves by the same step ("more energy") for every added source scores high
whatever T is. So the mean is reported with the same cosine between mismatched quadruples, the score after subtraction
of the mean step, and the rank of the correct step among all. All in float64.

>>> rng = np.random.default_rng(0)
>>> z_a, z_c, step = rng.normal(size=(3, 50, 16))
>>> result = a_coat(z_a, z_a + step, z_c, z_c + 2 * step)
>>> round(result["a_coat"], 6), result["n"], result["top1"]
(1.0, 50, 1.0)
>>> abs(result["null"]) < 0.1
True
"""

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .arrays import (
    ROWS_COMPARED,
    Floats,
    adjusted_scores,
    own_row_ranks,
    rank_rates,
    read_matrix,
    row_cosines,
    row_norms,
    sample_std,
    unit_rows,
)
from .evaluated import COAT as _CITATION
from .evaluated import count, measure, metric_class, ratio, share

ZERO_STEP = 1e-9
"""A step counts as zero if it is at most this times the larger norm of its two embeddings. It lies well below the
resolution of a float32 embedding (2^-24 = 6e-8 of the value) and well above float64 rounding."""

MATCHES = 10
"""Mismatched partners averaged in `matched_null` for each quadruple."""


def a_coat_scores(a: ArrayLike, b: ArrayLike, c: ArrayLike, d: ArrayLike) -> Floats:
    """Return cos(z_B − z_A, z_D − z_C) of every quadruple: float64 [n], each in −1…1.

    `a`, `b`, `c`, `d` are embeddings [n, dim] (array, nested list or tensor). A quadruple with a step
    of zero (see `ZERO_STEP`) on either side scores 0. Formula: arXiv 2603.13685, section 3.2.

    Raises ValueError when an input is not a finite [n, dim] array with n, dim ≥ 1, or shapes differ.

    >>> a_coat_scores([[0, 0]], [[1, 0]], [[5, 5]], [[5, 7]]).tolist()
    [0.0]
    """
    first, second, _ = _steps(*_embeddings(a, b, c, d))
    return row_cosines(unit_rows(first), unit_rows(second))


def a_coat(
    a: ArrayLike,
    b: ArrayLike,
    c: ArrayLike,
    d: ArrayLike,
    *,
    t_size: ArrayLike | None = None,
    t_level: ArrayLike | None = None,
    return_scores: bool = False,
) -> dict[str, Any]:
    """Return the A-COAT score of n quadruples and its controls.

    `a`, `b`, `c`, `d`: embeddings [n, dim]. `t_size` [n], integers ≥ 1, is the number of sources in T and
    `t_level` [n] the level of T in dB; they are given together or not at all.

    - `a_coat`, `std` (n − 1 in the denominator; 0 when n = 1), `n`: the score, in −1…1;
    - `degenerate`: quadruples with a zero step on either side; they score 0, here and in `centred`;
    - `null`: mean cosine of the steps B_i − A_i and D_j − C_j over all ordered pairs i ≠ j;
    - `matched_null`: for each i the mean of that cosine over the 10 quadruples j ≠ i of the same t_size with
      the nearest t_level (quadruples equally far at the tenth place share its weight, so the order of the rows
      does not matter), averaged over the i that have a partner; None when none has, and without t_size and t_level;
    - `adjusted` = (a_coat − null′)/(1 − null′), with null′ = matched_null if it is not None, else null; 0 when 1 −
      null′ < 1e-12;
    - `centred`, `centred_std`: the score after the mean of the other quadruples' steps is subtracted from each step, of
      B − A from B − A and of D − C from D − C. If the mean included the quadruple's own step, or if one mean were used
      for both sides, the two would not be independent and noise would not score 0 on average;
    - `top1`, `mrr`: how often the quadruple's own D − C is the nearest of all n to B − A by cosine, and the mean
      reciprocal of its rank; t tied steps share their t ranks equally. `top1_chance` = 1/n and `mrr_chance` = H_n/n are
      the expectations under a random order;
    - with return_scores, lists of n: `scores` and `scores_centred`, the cosines behind a_coat and centred;
      `scores_adjusted`, (score − null_i)/(1 − null′), where null_i is the null of this quadruple's steps; its mean is
      adjusted; `scores_top1`, 1 if the own step is the nearest, shared among tied steps, else 0.

    With n = 1 there is no other quadruple: null, matched_null, adjusted, centred, centred_std, scores_centred and
    scores_adjusted are None.

    Raises ValueError as `a_coat_scores` does, and if t_size or t_level has the wrong length or values or only one of
    the two is given.
    """
    first, second, scale = _steps(*_embeddings(a, b, c, d))
    n = len(first)
    matching = _matching(t_size, t_level, n)
    u, v = unit_rows(first), unit_rows(second)
    scores = row_cosines(u, v)
    degenerate: NDArray[np.bool_] = np.logical_not(u.any(axis=1) & v.any(axis=1))
    nearest, reciprocal_ranks = own_row_ranks(u, v)
    centred = _centred_scores(first, second, scale, degenerate) if n > 1 else None
    # The mean of u_i·v_j over j ≠ i comes from u_i times the sum of all v_j, without an n × n matrix.
    nulls = (u @ v.sum(axis=0) - scores) / (n - 1) if n > 1 else None
    matched_nulls = _matched_nulls(u, v, *matching) if matching is not None else None
    null, matched = _mean(nulls), _mean(matched_nulls)
    own_nulls = nulls if matched is None else matched_nulls
    adjusted = None if own_nulls is None else adjusted_scores(scores, own_nulls)
    result: dict[str, Any] = {
        "a_coat": float(scores.mean()),
        "std": sample_std(scores),
        "n": n,
        "degenerate": int(degenerate.sum()),
        "null": null,
        "matched_null": matched,
        "adjusted": _mean(adjusted),
        "centred": None if centred is None else float(centred.mean()),
        "centred_std": None if centred is None else sample_std(centred),
        **rank_rates(nearest, reciprocal_ranks),
    }
    if return_scores:
        result["scores"] = scores.tolist()
        result["scores_centred"] = None if centred is None else centred.tolist()
        result["scores_adjusted"] = None if adjusted is None else adjusted.tolist()
        result["scores_top1"] = nearest.tolist()
    return result


ACoat = metric_class(
    a_coat,
    dict.fromkeys("abcd", "numbers"),
    citation=_CITATION,
)


def _embeddings(*inputs: ArrayLike) -> tuple[Floats, ...]:
    """Return a, b, c, d as finite float64 [n, dim] of one shape, or raise ValueError."""
    arrays = [read_matrix(name, x) for name, x in zip("abcd", inputs, strict=True)]
    if len({x.shape for x in arrays}) > 1:
        shapes = ", ".join(f"{name} {x.shape}" for name, x in zip("abcd", arrays, strict=True))
        raise ValueError(f"a, b, c and d must have the same shape [n, dim]; got {shapes}.")
    return tuple(arrays)


def _matching(t_size: Any, t_level: Any, n: int) -> tuple[Floats, Floats] | None:
    """Return t_size and t_level as float64 [n] each, None when neither is given, or raise ValueError."""
    if t_size is None and t_level is None:
        return None
    if t_size is None or t_level is None:
        given, missing = ("t_size", "t_level") if t_level is None else ("t_level", "t_size")
        raise ValueError(f"{given} is given without {missing}; matched_null needs both. Give both or neither.")
    size, level = np.asarray(t_size, dtype=np.float64), np.asarray(t_level, dtype=np.float64)
    for name, x in (("t_size", size), ("t_level", level)):
        if x.shape != (n,):
            raise ValueError(f"{name} must have one value per quadruple ({n}); got shape {x.shape}.")
        if not np.isfinite(x).all():
            row = int(np.flatnonzero(~np.isfinite(x))[0])
            raise ValueError(f"{name} must be finite; row {row} is {x[row]}.")
    bad = np.flatnonzero((size < 1) | (size != np.round(size)))
    if len(bad):
        raise ValueError(f"t_size is a number of sources and must be an integer ≥ 1; row {bad[0]} is {size[bad[0]]:g}.")
    return size, level


def _steps(a: Floats, b: Floats, c: Floats, d: Floats) -> tuple[Floats, Floats, tuple[Floats, Floats]]:
    """Return B − A and D − C [n, dim], set to zero if negligible, and the norms that define negligible."""
    scale = (
        np.maximum(row_norms(a), row_norms(b)),
        np.maximum(row_norms(c), row_norms(d)),
    )
    return _without_noise(b - a, scale[0]), _without_noise(d - c, scale[1]), scale


def _without_noise(step: Floats, scale: Floats) -> Floats:
    step[row_norms(step) <= ZERO_STEP * scale] = 0.0
    return step


def _matched_nulls(u: Floats, v: Floats, size: Floats, level: Floats) -> Floats:
    """Return for each u_i the mean of u_i·v_j over its partners j; NaN if it has no partner."""
    nulls = np.full(len(u), np.nan)
    for value in np.unique(size):
        group = np.flatnonzero(size == value)
        if len(group) < 2:
            continue
        k = min(MATCHES, len(group) - 1)
        for start in range(0, len(group), ROWS_COMPARED):
            rows = group[start : start + ROWS_COMPARED]
            distance = np.abs(level[rows, None] - level[None, group])
            distance[np.arange(len(rows)), np.arange(start, start + len(rows))] = np.inf
            farthest = np.partition(distance, k - 1, axis=1)[:, k - 1, None]
            nearer, tied = distance < farthest, distance == farthest
            share = (k - nearer.sum(axis=1, keepdims=True)) / tied.sum(axis=1, keepdims=True)
            weights = (nearer + share * tied) / k
            nulls[rows] = np.einsum("ij,ij->i", weights @ v[group], u[rows])
    return nulls


def _mean(values: Floats | None) -> float | None:
    """Return the mean of the values that are not NaN; None if all are NaN."""
    if values is None or np.isnan(values).all():
        return None
    return float(np.nanmean(values))


def _centred_scores(
    first: Floats, second: Floats, scale: tuple[Floats, Floats], degenerate: NDArray[np.bool_]
) -> Floats:
    u = unit_rows(_without_noise(first - _means_of_others(first), scale[0]))
    v = unit_rows(_without_noise(second - _means_of_others(second), scale[1]))
    return np.where(degenerate, 0.0, row_cosines(u, v))


def _means_of_others(steps: Floats) -> Floats:
    """Return for each row of [n, dim] the mean of the other rows."""
    means: Floats = (steps.sum(axis=0) - steps) / (len(steps) - 1)
    return means


VERSION = 1
"""Increases with every change of code or constants that can change a number."""

MEASURES = {
    "a_coat": measure(
        "A-COAT",
        "mean cosine of the steps B − A and D − C over the quadruples",
        null="matched_null",
        column="score",
        linear=1.0,
    ),
    "std": measure("sd", "standard deviation of the score over the quadruples", range=(0.0, 1.5), shown=False),
    "n": count("n", "number of quadruples"),
    "degenerate": count("zero steps", "number of quadruples with a step of zero, which score 0", 0.0),
    "null": measure("null", "mean cosine of steps from different quadruples: the effect of adding any source"),
    "matched_null": measure(
        "matched null", "null between quadruples that add the same number of sources at nearly the same level"
    ),
    "adjusted": ratio(
        "adjusted",
        "(score − null) / (1 − null), with the matched null if it can be computed",
        column="score_adjusted",
        linear=1.0,
        outside="Adjusted scores of single quadruples can lie above 1, if a quadruple's own null is below the mean: "
        "all are divided by 1 − the mean null. The mean over all cannot.",
    ),
    "centred": measure(
        "centred",
        "the score after subtracting the mean step of the other quadruples",
        column="score_centred",
        linear=1.0,
    ),
    "centred_std": measure(
        "centred sd", "standard deviation of the centred score over the quadruples", range=(0.0, 1.5), shown=False
    ),
    "top1": share(
        "top-1",
        "how often the quadruple's own step D − C is the nearest of all to B − A",
        null="top1_chance",
        column="score_top1",
        linear=1.0,
    ),
    "mrr": share(
        "MRR",
        "mean reciprocal of the rank of the own step D − C among all by nearness to B − A",
        null="mrr_chance",
        shown=False,
    ),
    "top1_chance": share("top-1 chance", "top-1 of a random order", shown=False),
    "mrr_chance": share("MRR chance", "MRR of a random order", shown=False),
}
"""Description of each number that `a_coat` returns, by name, the score first."""
