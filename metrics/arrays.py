"""Read and check arrays of embeddings, and compute on their rows."""

import difflib
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

TIE = 1e-12
"""Cosines closer than this are tied; the rounding error of a dot product of unit vectors is about 1e-15."""

NO_STEP = 1e-13
"""A difference of embeddings of at most this times the longest of them counts as zero: well above float64 rounding, and
low enough for embeddings with a large common mean."""

ROUNDING = 1e-9
"""Features that differ by less than this times the largest of them are equal; float32 resolves 6e-8."""

ROWS_COMPARED = 1024  # rows of the n × n similarity held at once
LARGEST = 1e150  # beyond this a float64 norm overflows


def read_matrix(name: str, x: Any) -> Floats:
    """Return embeddings as finite float64 [n, dim] with n, dim ≥ 1. Raises ValueError, which names the input `name`."""
    if hasattr(x, "detach"):  # a torch tensor, perhaps on a device, with a gradient, or in bfloat16
        x = x.detach().cpu().double()
    try:
        raw = np.asarray(x)
    except ValueError as error:
        raise ValueError(f"{name} must be an array [n, dim] with rows of equal length: {error}") from None
    if raw.dtype.kind not in "fiu" and raw.size:
        raise ValueError(f"{name} must hold real numbers; got an array of {raw.dtype}, shape {raw.shape}.")
    if raw.ndim != 2 or 0 in raw.shape:
        raise ValueError(f"{name} must be [n, dim] with n ≥ 1 and dim ≥ 1; got shape {raw.shape}.")
    array = raw.astype(np.float64, copy=False)
    if not (float(raw.max()) <= LARGEST and float(raw.min()) >= -LARGEST):  # written so that NaN fails
        bad = ~(np.abs(array) <= LARGEST)
        rows = np.flatnonzero(bad.any(axis=1))
        value = array[rows[0]][bad[rows[0]]][0]
        raise ValueError(
            f"{name} must be finite (at most {LARGEST:g}); {len(rows)} of {len(array)} rows are not, "
            f"the first is row {rows[0]} with {value}."
        )
    return array


def check_length(name: str, values: Any, n: int) -> None:
    """Raise ValueError unless there are n values."""
    if len(values) != n:
        raise ValueError(f"{name} must have one entry per embedding ({n}); got {len(values)}.")


def check_together(inputs: dict[str, Any], why: str) -> None:
    """Raise ValueError, with the reason, if only one of two inputs is given."""
    given = [name for name, x in inputs.items() if x is not None]
    if len(given) == 1:
        (missing,) = set(inputs) - set(given)
        raise ValueError(f"{given[0]} is given without {missing}; {why}. Give both or neither.")


def nearest_name(word: str, choices: Sequence[str]) -> str:
    """Return the choice spelled most similarly to a word."""
    return (difflib.get_close_matches(word, choices, n=1, cutoff=0.0) or list(choices))[0]


def row_norms(x: Floats) -> Floats:
    """Return the lengths of the rows."""
    norms: Floats = np.sqrt(np.einsum("ij,ij->i", x, x))
    return norms


def unit_rows(x: Floats) -> Floats:
    """Return the rows at length 1; rows of zeros stay zero, so that their cosines are 0."""
    norm = row_norms(x)[:, None]
    return x / np.where(norm > 0, norm, 1.0)


def row_cosines(u: Floats, v: Floats) -> Floats:
    """Return the products of rows u_i·v_i of length 1, clipped to −1…1."""
    cosines: Floats = np.clip(np.einsum("ij,ij->i", u, v), -1.0, 1.0)
    return cosines


def cosines_with_unit(x: Floats, unit: Floats) -> Floats:
    """Return the cosine of each row of x and the same row of `unit`, whose rows have length 1."""
    cosines: Floats = np.clip(np.einsum("ij,ij->i", unit_rows(x), unit), -1.0, 1.0)
    return cosines


def sample_std(scores: Floats) -> float:
    """Return the standard deviation with n − 1 in the denominator; 0 for a single score."""
    return float(scores.std(ddof=1)) if len(scores) > 1 else 0.0


def above_share(x: Floats, y: Floats) -> Floats:
    """Return 1 where x is above y, 1/2 where they are tied, else 0."""
    above: Floats = np.where(x > y + TIE, 1.0, np.where(x >= y - TIE, 0.5, 0.0))
    return above


def own_row_ranks(u: Floats, v: Floats) -> tuple[Floats, Floats]:
    """Return, for each row i, whether v_i is the nearest of all v_j to u_i by cosine, and its reciprocal rank.

    Each of t tied v_j counts as the nearest by 1/t and has the mean of their reciprocal ranks.
    """
    n = len(u)
    harmonic = np.concatenate([[0.0], np.cumsum(1 / np.arange(1, n + 1))])
    nearest, reciprocal_ranks = np.empty(n), np.empty(n)
    for start in range(0, n, ROWS_COMPARED):
        block = slice(start, start + ROWS_COMPARED)
        similarity = u[block] @ v.T
        pair = np.diagonal(similarity, offset=start)[:, None]
        better = (similarity > pair + TIE).sum(axis=1)
        tied = (similarity >= pair - TIE).sum(axis=1) - better
        nearest[block] = (better == 0) / tied
        reciprocal_ranks[block] = (harmonic[better + tied] - harmonic[better]) / tied
    return nearest, reciprocal_ranks


def rank_rates(nearest: Floats, reciprocal_ranks: Floats) -> dict[str, float]:
    """Return ``top1`` and ``mrr``, the means of `own_row_ranks`, and their expectations under a random order."""
    n = len(nearest)
    return {
        "top1": float(nearest.mean()),
        "mrr": float(reciprocal_ranks.mean()),
        "top1_chance": 1 / n,
        "mrr_chance": float((1 / np.arange(1, n + 1)).sum() / n),
    }


def nearest_shares(distances: Floats, truth: Floats, rounding: Floats) -> Floats:
    """Return, for each row of distances, whether its entry `truth` [m, 1] is the smallest; t ties count 1/t each."""
    nearer = (distances < truth - rounding).sum(axis=1)
    tied = (distances <= truth + rounding).sum(axis=1) - nearer
    shares: Floats = (nearer == 0) / tied
    return shares


def adjusted_scores(scores: Floats, nulls: Floats) -> Floats:
    """Return (score_i − null_i)/(1 − mean null), whose mean is the ratio of means; a null of NaN becomes the mean."""
    null = float(np.nanmean(nulls))
    if 1 - null < 1e-12:
        return np.zeros(len(scores))
    adjusted: Floats = (scores - np.where(np.isnan(nulls), null, nulls)) / (1 - null)
    return adjusted


def group_sums(x: Floats, groups: Ints) -> Floats:
    """Return the sum of the rows of each group, [groups, dim]."""
    sums = np.zeros((int(groups.max()) + 1, x.shape[1]))
    np.add.at(sums, groups, x)
    return sums
