"""Invariance of embeddings to an irrelevant change, and selectivity for a relevant one.

An original clip z and its copies z′, each changed by a transform such as added noise: how far do the copies lie from
their original? The cosine of z and z′ (arXiv 2505.06224, section III) misleads: if all clips have a cosine of .9, a
cosine of .95 is little. So the score is 1 − E|z′ − z|²/E|z_i − z_j|²: 1 if nothing moves, 0 if a copy is as far from
its original as another clip is. It depends on neither the unit nor the basis nor the origin of the embeddings, and
nothing is trained. All in float64.

Invariance alone ranks nothing: the level of a clip is invariant to every change that keeps the level, and represents
nothing else. `abx` scores invariance *and* selectivity, with two further clips for each original: A, with the same
relevant content, and B, with different content. It is the machine ABX task (Schatz et al. 2013, "Evaluating speech
features with the minimal-pair ABX task") with a copy as X: how often is it nearer to A than to B? Ties count half, and

    abx = 2 · mean over originals of the mean over copies of ([|z′ − a| < |z′ − b|] + ½ [|z′ − a| = |z′ − b|]) − 1

is 1 if it always is and 0 by chance. `invariance` states the conditions on A and B under which no shortcut is above
chance.

>>> rng = np.random.default_rng(0)
>>> originals = rng.normal(size=(50, 16))
>>> z, base = np.vstack([originals, originals]), [-1] * 50 + list(range(50))
>>> result = invariance(z, base)
>>> result["invariance"], result["top1"], result["n"]
(1.0, 1.0, 50)
>>> z[50:] = rng.normal(size=(50, 16))
>>> abs(invariance(z, base)["invariance"]) < 0.2
True
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from .arrays import (
    ROUNDING,
    ROWS_COMPARED,
    TIE,
    Floats,
    Ints,
    group_sums,
    nearest_shares,
    read_matrix,
    row_cosines,
    row_norms,
    unit_rows,
)
from .columns import (
    FEWEST_BLOCKS,
    UNBOUNDED,
    check_copies,
    copy_parameters,
    owner_means,
    quarter_numbers,
    read_blocks,
    read_relations,
)
from .evaluated import AXES as _CITATION
from .evaluated import MOST, count, measure, metric_class, ratio, share

COINCIDES = 1e-5
"""Two clips whose embeddings differ by at most this times the largest value count as equal, as two clips of one level
are to a level meter: resampling affects the ends of a clip and changes its level by at most 1e-6 (for the 48 pairs of
the recipe `transforms`, resampled from 32 kHz to 16, 22.05 and 48)."""

QUARTERS = ("quarter_1", "quarter_2", "quarter_3", "quarter_4")


def invariance(
    embeddings: ArrayLike,
    base: ArrayLike,
    parameters: Any = None,
    blocks: Sequence[Any] | None = None,
    *,
    steps: ArrayLike | None = None,
    same: ArrayLike | None = None,
    different: ArrayLike | None = None,
    return_scores: bool = False,
) -> dict[str, Any]:
    """Return how little copies differ from their originals, with controls.

    - `embeddings` [n, dim]; `base` [n], integers: for a copy the row of its original, for an original −1. An original
      may have one or more copies; each original counts equally.
    - `parameters` [n], numbers: how strongly a copy was changed; None or NaN for originals. Only their order is used,
      so it does not matter whether their scale is linear.
    - `blocks` [n], strings or integers: groups of related clips, such as recordings of one speaker; a copy is in the
      block of its original. Without `blocks` each original is its own block.
    - `steps` [m, dim]: differences z″ − z of embeddings of clips with a relevant difference.
    - `same`, `different` [originals, dim], both or none, in the order of the originals' rows: a and b, embeddings of
      two further clips for each. A has the relevant content of the original, B has other content. To make this content
      the only difference, A and B have exactly the same level and length; both differ from the original in all
      irrelevant properties, such as onsets; and for half of the originals both have inverted polarity. Then a constant
      and the root mean square have a = b, a tie, which scores exactly 0; a hash of the samples is equally likely to be
      nearer to either; and so are the samples themselves, since inversion reverses |z′ − a| < |z′ − b| for a and b of
      equal length (|z′ − a|² − |z′ − b|² = 2 z′·(b − a)).

    Results; means are over originals, after a mean over the copies of each:

    - `invariance` = 1 − E|z′ − z|²/E|z_i − z_j|², with z_i and z_j originals of different blocks: 1 if nothing moves, 0
      if a copy is as far away as another clip, without a lower bound; 0 if all originals are equal;
    - `abx` = 2 · mean([|z′ − a| < |z′ − b|] + ½ [tied]) − 1: 1 if copies are always nearer to the clip of the same
      content, 0 by chance, −1 if they never are; a and b within `COINCIDES` of each other are tied. None without
      `same`;
    - `cosine`: of z′ and z (arXiv 2505.06224, section III); `cosine_null`: of originals of different blocks;
      `centred_cosine` and `centred_cosine_null`: cosine and cosine_null after subtracting the mean of the originals;
    - `top1`: how often a copy's own original is the nearest of all, with t tied originals sharing equally;
      `top1_chance` = 1/originals;
    - `quarter_1` … `quarter_4`: `invariance` of the copies in each quarter by parameter (equal parameters stay
      together), the weakest first; None without parameters, and if a quarter has no copy;
    - `selectivity` = E|step|²/E|z′ − z|² over `steps`: how much more a relevant difference moves the embedding than the
      irrelevant change; None without steps, 0 if neither moves it, 1e15 if only steps do;
    - `n`: number of originals;
    - `scores` (with return_scores), one for each original, in the order of the rows: the linearised contribution to
      `invariance`, which is exactly their mean. For θ = E A/E B, with A_i the mean of |z′ − z_i|² over the copies and
      B_i the mean of |z_i − z_j|² over the others, it is 1 − θ − (A_i − E A − 2θ·(B_i − E B))/E B; the factor is 2,
      since a clip is in the denominator as z_i and as z_j. So an interval from these scores accounts for the estimated
      denominator.

    Raises ValueError if embeddings or steps are not finite [n, dim], lengths differ, base names no original or an
    original has no copy, a copy is in another block than its original, there are fewer than 5 blocks, parameters are
    not finite or all the same, or `same` and `different` do not have one row for each original.

    >>> z = np.random.default_rng(1).normal(size=(10, 4))
    >>> steps = [[3.0, 0.0, 0.0, 0.0]]
    >>> copies = z + [[1.0, 0.0, 0.0, 0.0]]
    >>> round(invariance(np.vstack([z, copies]), [-1] * 10 + list(range(10)), steps=steps)["selectivity"], 6)
    9.0
    """
    z = read_matrix("embeddings", embeddings)
    originals, copies, owners = read_relations(base, len(z))
    without = np.delete(originals, owners)
    if len(without):
        raise ValueError(
            f"base of row {without[0]} is −1, an original, but no row is a copy of it; {len(without)} of "
            f"{len(originals)} originals have no copy. Leave them out, or give their copies."
        )
    if blocks is not None:
        block, names = read_blocks(blocks, len(z))
        check_copies(block, names, copies, originals[owners])
        groups = block[originals]
    elif len(originals) < FEWEST_BLOCKS:
        raise ValueError(f"There are {len(originals)} originals; at least {FEWEST_BLOCKS} are needed.")
    else:
        groups = np.arange(len(originals))
    quarters = None if parameters is None else quarter_numbers(copy_parameters(parameters, copies, len(z)))
    moves = None if steps is None else read_matrix("steps", steps)
    if moves is not None and moves.shape[1] != z.shape[1]:
        raise ValueError(f"steps must have the {z.shape[1]} columns of embeddings; got shape {moves.shape}.")

    scores_abx = _abx(z, originals, copies, owners, same, different)
    unit = float(np.abs(z).max()) or 1.0
    z = z / unit
    centred = z - z[originals].mean(axis=0)
    if np.abs(centred).max() <= ROUNDING:
        centred[:] = 0.0
    start, end = centred[originals], centred[copies]
    distances = np.square(end - start[owners]).sum(axis=1)
    moved, apart = owner_means(distances, owners), _mean_distances(start, groups)
    # Contributions of the originals to 1 − E moved/E apart, which is exactly their mean.
    mean = float(apart.mean())
    scores = np.zeros(len(moved))
    if mean > 0:
        share_moved = float(moved.mean()) / mean
        scores = 1 - share_moved - (moved - moved.mean() - 2 * share_moved * (apart - mean)) / mean
    nearest = np.empty(len(end))
    lengths = np.square(start).sum(axis=1)
    for first in range(0, len(end), ROWS_COMPARED):
        rows = slice(first, first + ROWS_COMPARED)
        sizes = np.square(end[rows]).sum(axis=1)[:, None] + lengths
        to_originals = sizes - 2 * end[rows] @ start.T
        own = to_originals[np.arange(len(to_originals)), owners[rows]][:, None]
        nearest[rows] = nearest_shares(to_originals, own, TIE * sizes)
    result: dict[str, Any] = {
        "invariance": float(scores.mean()),
        "abx": None if scores_abx is None else float(scores_abx.mean()),
        **_mean_cosines("cosine", z[originals], z[copies], owners, groups),
        **_mean_cosines("centred_cosine", start, end, owners, groups),
        "top1": float(owner_means(nearest, owners).mean()),
        "top1_chance": 1 / len(originals),
        **dict.fromkeys(QUARTERS),
        "selectivity": None if moves is None else _ratio(float(np.square(moves / unit).sum(axis=1).mean()), moved),
        "n": len(originals),
    }
    for number, name in enumerate(QUARTERS if quarters is not None else ()):
        part = distances[quarters == number]
        if len(part):
            result[name] = 1 - float(part.mean()) / mean if mean else 0.0
    if return_scores:
        result |= {"scores": scores.tolist(), "scores_abx": None if scores_abx is None else scores_abx.tolist()}
    return result


def selectivity(steps: ArrayLike, moves: ArrayLike) -> float:
    """Return E|step|²/E|z′ − z|², as `invariance` does for one copy per original, without its other numbers.

    - `steps` [m, dim]: differences of embeddings of clips with a relevant difference;
    - `moves` [n, dim]: differences z′ − z of copies and originals.

    Raises ValueError if either is not finite, or their columns differ.

    >>> selectivity([[3.0, 0.0]], [[1.0, 0.0], [0.0, 1.0]])
    9.0
    """
    step, move = read_matrix("steps", steps), read_matrix("moves", moves)
    if step.shape[1] != move.shape[1]:
        raise ValueError(f"steps must have the {move.shape[1]} columns of moves; got shape {step.shape}.")
    unit = float(max(np.abs(step).max(), np.abs(move).max())) or 1.0
    return _ratio(float(np.square(step / unit).sum(axis=1).mean()), np.square(move / unit).sum(axis=1))


Invariance = metric_class(
    invariance,
    {"embeddings": "numbers", "base": "integer"},
    citation=_CITATION,
)


def _mean_distances(x: Floats, groups: Ints) -> Floats:
    """Return for each row the mean of |x_i − x_j|² over the rows of other groups."""
    lengths, counts = np.square(x).sum(axis=1), np.bincount(groups)
    sums = group_sums(x, groups)
    # The mean distance of a row comes from sums over the other rows, without an n × n matrix.
    count = len(x) - counts[groups]
    near = lengths.sum() - np.bincount(groups, lengths)[groups]
    across = np.einsum("ij,ij->i", x, sums.sum(axis=0) - sums[groups])
    means: Floats = np.maximum(lengths + (near - 2 * across) / count, 0.0)
    return means


def _ratio(steps: float, moved: Floats) -> float:
    unit = float(moved.mean())
    if steps == 0:
        return 0.0
    return min(steps / unit, UNBOUNDED) if unit else UNBOUNDED


def _mean_cosines(name: str, start: Floats, end: Floats, owners: Ints, groups: Ints) -> dict[str, float]:
    """Return the mean cosine of copies and their originals, and of originals of different groups."""
    u, v = unit_rows(start), unit_rows(end)
    sums = group_sums(u, groups)
    count = len(u) - np.bincount(groups)[groups]
    nulls = np.einsum("ij,ij->i", u, sums.sum(axis=0) - sums[groups]) / count
    return {
        name: float(owner_means(row_cosines(u[owners], v), owners).mean()),
        f"{name}_null": float(np.clip(nulls.mean(), -1.0, 1.0)),
    }


def _abx(z: Floats, originals: Ints, copies: Ints, owners: Ints, same: Any, different: Any) -> Floats | None:
    """Return for each original 2 · (share of its copies nearer to its row of `same` than of `different`) − 1."""
    if same is None and different is None:
        return None
    sides = []
    for name, given in (("same", same), ("different", different)):
        if given is None:
            raise ValueError(f"{name} is missing. Give both same and different, or neither.")
        side = read_matrix(name, given)
        if side.shape != (len(originals), z.shape[1]):
            raise ValueError(
                f"{name} must have the shape ({len(originals)}, {z.shape[1]}), one row per original; got {side.shape}."
            )
        sides.append(side)
    unit = float(max(np.abs(x).max() for x in (z, *sides))) or 1.0
    a, b, x = sides[0] / unit, sides[1] / unit, z[copies] / unit
    # Equivalent to comparing |x − a|² with |x − b|², but rounding errors scale with the distances, not the origin.
    nearer = np.einsum("ij,ij->i", x - (a[owners] + b[owners]) / 2, a[owners] - b[owners])
    sizes = row_norms(x - a[owners]) * row_norms(a - b)[owners]
    wins = (1 + np.where(np.abs(nearer) <= TIE * sizes, 0.0, np.sign(nearer))) / 2
    wins[(np.abs(a - b).max(axis=1) <= COINCIDES)[owners]] = 0.5
    shares: Floats = 2 * owner_means(wins, owners) - 1
    return shares


VERSION = 2
"""Increases with every change of code or constants that can change a number."""

MEASURES = {
    "invariance": ratio(
        "Invariance",
        "1 − mean squared distance of copies from their originals / mean squared distance of different clips",
        column="score",
        outside="Scores of single originals can lie above 1: they are contributions to a "
        "ratio, and an original that is far from all others raises its denominator.",
    ),
    "abx": measure(
        "ABX",
        "how often a copy is nearer to a clip with its content than to one with other content, above chance",
        column="score_abx",
    ),
    "cosine": measure("cosine", "mean cosine of copies and their originals", null="cosine_null"),
    "cosine_null": measure("null cosine", "mean cosine of different clips"),
    "centred_cosine": measure(
        "centred cosine",
        "mean cosine of copies and their originals after subtracting the mean of all originals",
        null="centred_cosine_null",
    ),
    "centred_cosine_null": measure(
        "null centred cosine",
        "mean cosine of different clips after subtracting the mean of all originals",
        shown=False,
    ),
    "top1": share("top-1", "how often a copy's own original is the nearest of all originals", null="top1_chance"),
    "top1_chance": share("top-1 chance", "top-1 of a random order", shown=False),
    "quarter_1": ratio("first quarter", "the score of the quarter of copies with the smallest parameters"),
    "quarter_2": ratio("second quarter", "the score of the second quarter of copies by their parameters", shown=False),
    "quarter_3": ratio("third quarter", "the score of the third quarter of copies by their parameters", shown=False),
    "quarter_4": ratio("last quarter", "the score of the quarter of copies with the largest parameters"),
    "selectivity": measure(
        "selectivity",
        "mean squared step when something that matters changes / mean squared distance of copies",
        range=(0.0, MOST),
    ),
    "n": count("n", "number of originals", 5.0),
}
"""Description of each number that `invariance` returns, by name, the score first."""
