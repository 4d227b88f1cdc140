"""Whether two models' embeddings of the same clips are one thing, told from a few kilobytes of each.

Compared are ranks, which no monotone change of a distance touches, of the distances between some fixed clips, the
anchors; of the rows as they are, of rows of length 1, and of rows of length 1 after their mean was taken away. Rows
that agree least are left out first, so that single ones do not count. Embeddings are nearly the same in three ways:

- the ranks are the same but for rounding: after a shift, a scale, a rotation, other signs, another order of the
  dimensions, rows made 1 long, or a few rows moved or exchanged;
- the ranks are alike, and what differs looks like noise. Where two models hear differently, how they differ is a
  function of the sound, so that clips that are near each other differ alike; noise knows of no sound. For the pair of
  clips (i, j) with difference of ranks e_ij, and the clips i' and j' that are nearest to them in the earlier
  embeddings, the *structure* is the correlation of e_ij with e_i'j', over pairs of which no clip is in the other;
- dimensions are the same, clip by clip in their ranks: where some were dropped, doubled, scaled or added.

What the limits leave of honest models is measured by `audio_compositionality.studies.copies`.
"""

from __future__ import annotations

import base64
import hashlib
from functools import lru_cache
from typing import Annotated

import numpy as np
from numpy.typing import NDArray
from pydantic import Field, StrictInt, StringConstraints, model_validator
from scipy import stats

from audio_compositionality.evaluator.results.strict import ResultError, Strict

Floats = NDArray[np.float64]

ANCHORS = 96
"""Clips that are compared, at most: 4,560 distances."""

ANCHOR_BLOCK = 8
"""Anchors that follow each other in the data, where rows are often of related clips, so that there are near ones."""

DIMENSIONS = 48
"""Dimensions that are remembered, at most."""

KEPT = 0.75
"""Share of the anchors that agree best, which are compared in the end."""

SAME_RANKS = 0.005
"""Mean difference of ranks, 1 of independent embeddings, up to which they are the same but for rounding. Layers of
untrained networks, which add next to nothing to each other, are the honest models that come nearest."""

FAR = 0.8
"""The same, before rows are left out, from which on nothing else is compared."""

ALIKE_RANKS = 0.3
"""The same up to which embeddings with noise are looked for."""

STRUCTURE = 0.18
"""What differs between embeddings that are `ALIKE_RANKS` is noise where its structure is no larger."""

LEAST_ANCHORS = 64
"""Anchors without which structure tells nothing."""

SAME_DIMENSION = 0.999
"""Correlation of ranks from which on two dimensions are one."""

LEAST_DIMENSIONS = 6
"""Dimensions that have to be the same; of embeddings with fewer half of them, and 3 at least."""

LEAST_DISTANCE_SPREAD = 0.02
"""Standard deviation of distances, over their mean, below which they tell nothing: clips are all equally far apart."""

Bytes = Annotated[str, StringConstraints(strict=True, pattern="^[A-Za-z0-9+/]*={0,2}$", max_length=50_000)]


class Shape(Strict):
    """What the embeddings of the anchors are compared by. Texts are bytes in Base64, numbers little-endian.

    Attributes:
        anchors: number of anchors n.
        distances: float32 [n (n − 1) / 2], of each pair, in units of their root mean square; row by row above the
            diagonal.
        lengths: float32 [2, n], of the rows as they are and with the mean of all rows taken away; in the same units.
        dimensions: uint8 [k, n], twice the rank from 0 of each anchor in dimensions that have enough different values.
            Which of them are remembered depends on what they hold, not on their place.
    """

    anchors: Annotated[StrictInt, Field(ge=0, le=ANCHORS)]
    distances: Bytes
    lengths: Bytes
    dimensions: Bytes

    @model_validator(mode="after")
    def _check(self) -> Shape:
        n = self.anchors
        try:
            distances, lengths = _numbers(self.distances), _numbers(self.lengths)
            ranks = _raw(self.dimensions)
        except ValueError:
            raise ResultError("it is not in Base64") from None
        if len(distances) != n * (n - 1) // 2 or len(lengths) != 2 * n or len(ranks) > DIMENSIONS * n:
            raise ResultError("it has another number of distances, lengths or ranks than its anchors have")
        if n and len(ranks) % n:
            raise ResultError("a dimension has another number of ranks than there are anchors")
        if not all(np.isfinite(numbers).all() and (numbers >= 0).all() for numbers in (distances, lengths)):
            raise ResultError("a distance or a length is negative or not finite")
        return self


def shape_of(embeddings: Floats, offset: Floats) -> Shape:
    """The shape of embeddings.

    Args:
        embeddings: [clips, dim], with their mean taken away.
        offset: the mean, [dim].
    """
    centred = embeddings[anchors_of(len(embeddings))]
    distances = pair_distances(centred)
    unit = float(np.sqrt((distances**2).mean())) if len(distances) else 0.0
    lengths = np.stack([np.linalg.norm(centred + offset, axis=1), np.linalg.norm(centred, axis=1)])
    return Shape(
        anchors=len(centred),
        distances=_written(distances / (unit or 1.0)),
        lengths=_written(lengths / (unit or 1.0)),
        dimensions=base64.b64encode(_dimensions(centred).tobytes()).decode(),
    )


def anchors_of(clips: int) -> NDArray[np.int64]:
    """Places of the clips that are compared: blocks at even distances, all where there are few."""
    if clips <= ANCHORS:
        return np.arange(clips)
    starts = np.linspace(0, clips - ANCHOR_BLOCK, ANCHORS // ANCHOR_BLOCK).round().astype(np.int64)
    return np.unique(starts[:, None] + np.arange(ANCHOR_BLOCK))


def pair_distances(rows: Floats) -> Floats:
    """Euclidean distances of each pair of rows, [n (n − 1) / 2]."""
    squares = (rows**2).sum(axis=1)
    pairs = np.triu_indices(len(rows), 1)
    inner = rows @ rows.T
    distances: Floats = np.sqrt(np.maximum(squares[pairs[0]] + squares[pairs[1]] - 2 * inner[pairs], 0))
    return distances


def _dimensions(rows: Floats) -> NDArray[np.uint8]:
    """Doubled ranks of dimensions, [k, n]: those whose highest and lowest anchors have the least hash."""
    if not len(rows):
        return np.zeros((0, 0), np.uint8)
    order = np.argsort(rows, axis=0, kind="stable")
    steps = np.diff(np.take_along_axis(rows, order, axis=0), axis=0) > 0
    varied = np.flatnonzero(1 + steps.sum(axis=0) >= max(8, 3 * len(rows) // 4))
    ranks = np.round(2 * (stats.rankdata(rows[:, varied], axis=0) - 1)).astype(np.uint8).T
    keys = {}
    for each, low, high in zip(ranks, order[:2, varied].T, order[-2:, varied].T, strict=True):
        # Other signs exchange the two ends.
        ends = sorted((sorted(low.tolist()), sorted(high.tolist())))
        keys[each.tobytes()] = hashlib.sha256(repr(ends).encode()).digest()
    written = sorted(keys, key=lambda each: (keys[each], each))[:DIMENSIONS]
    return np.frombuffer(b"".join(written), np.uint8).reshape(len(written), len(rows))


def are_nearly_same(new: Shape, earlier: Shape) -> bool:
    """Whether embeddings are nearly the same as earlier ones of the same clips, by their shapes; see the module."""
    if new.anchors != earlier.anchors:
        return False
    difference, structure = difference_of_ranks(new, earlier)
    is_noise = difference <= ALIKE_RANKS and new.anchors >= LEAST_ANCHORS and structure <= STRUCTURE
    return difference <= SAME_RANKS or is_noise or have_same_dimensions(new, earlier)


def have_same_dimensions(one: Shape, other: Shape) -> bool:
    """Whether enough of the remembered dimensions are the same."""
    fewest = min(len(_rank_vectors(shape)) for shape in (one, other))
    return same_dimensions(one, other) >= max(3, min(LEAST_DIMENSIONS, (fewest + 1) // 2))


def same_dimensions(one: Shape, other: Shape) -> int:
    """How many of the remembered dimensions of either are one of the other's, the lesser number of both."""
    first, second = _rank_vectors(one), _rank_vectors(other)
    if not (len(first) and len(second)):
        return 0
    same = np.abs(first @ second.T) >= SAME_DIMENSION
    return int(min(same.any(axis=0).sum(), same.any(axis=1).sum()))


def difference_of_ranks(new: Shape, earlier: Shape) -> tuple[float, float]:
    """How far the ranks of distances are apart, 1 of independent embeddings, and the structure of what differs.

    Both are of the two ways of measuring distances, among those that could be one another's, that agree best: a copy
    whose rows were made 1 long has as its distances those of the other's rows of length 1. Where they are far apart,
    or distances tell nothing, the difference is 1 and the structure 0.
    """
    firsts, seconds = _ranked(new), _ranked(earlier)
    best: tuple[float, Floats, Floats] | None = None
    for first, second in ((0, 0), (1, 1), (2, 2), (0, 1), (1, 0), (0, 2), (2, 0)):
        a, b = firsts[first], seconds[second]
        if a is None or b is None or _mean_difference(a, b) > FAR:
            continue
        kept = _best_rows(_matrix(a), _matrix(b))
        difference = _mean_difference(*kept)
        if best is None or difference < best[0]:
            best = (difference, *kept)
    return (1.0, 0.0) if best is None else (best[0], _structure(_matrix(best[1]), _matrix(best[2])))


@lru_cache(maxsize=500)
def _ranked(shape: Shape) -> tuple[Floats | None, ...]:
    """Ranks of the distances of rows as they are, of length 1, and of length 1 about their mean; None where these
    tell nothing."""
    distances = _numbers(shape.distances)
    lengths = _numbers(shape.lengths).reshape(2, shape.anchors)
    ways = [distances, *(_at_unit_length(distances, each) for each in lengths)]
    return tuple(_ranks(way) if _tells(way) else None for way in ways)


def _at_unit_length(distances: Floats, lengths: Floats) -> Floats:
    """Distances of the same rows when each is 1 long."""
    first, second = (lengths[places] for places in np.triu_indices(len(lengths), 1))
    product = first * second
    squares = (distances**2 - (first - second) ** 2) / np.where(product > 0, product, 1)
    return np.sqrt(np.maximum(squares, 0))


def _tells(distances: Floats) -> bool:
    return len(distances) > 5 and float(distances.std()) >= LEAST_DISTANCE_SPREAD * float(distances.mean()) > 0


def _ranks(values: Floats) -> Floats:
    """Ranks between 0 and 1. What differs by less than float32 can tell is the same."""
    ranks: Floats = stats.rankdata(np.round(values / np.median(values[values > 0]), 5))
    return (ranks - 0.5) / len(values)


def _matrix(pairs: Floats) -> Floats:
    n = round((1 + np.sqrt(1 + 8 * len(pairs))) / 2)
    matrix = np.zeros((n, n))
    matrix[np.triu_indices(n, 1)] = pairs
    return matrix + matrix.T


def _mean_difference(one: Floats, other: Floats) -> float:
    """Mean difference of ranks, in units of that of independent ones, which is 1/3."""
    return 3 * float(np.abs(one - other).mean())


def _best_rows(one: Floats, other: Floats) -> tuple[Floats, Floats]:
    """The ranks anew among the rows that agree best, of each pair; of matrices [n, n]."""
    agreement = np.argsort(np.abs(one - other).mean(axis=1), kind="stable")
    best = np.sort(agreement[: int(np.ceil(KEPT * len(one)))])
    pairs = np.triu_indices(len(best), 1)
    first, second = (_ranks(matrix[np.ix_(best, best)][pairs]) for matrix in (one, other))
    return first, second


def _structure(new: Floats, earlier: Floats) -> float:
    """The correlation of differences with those of the nearest other clips; see the module. [n, n] both."""
    n = len(earlier)
    apart = ~np.eye(n, dtype=bool)
    difference = new - earlier
    # What all pairs of one clip have in common is no structure: it may be one noisy row.
    for _ in range(6):
        difference = (difference - difference.sum(axis=0) / (n - 1)) * apart
        difference = (difference + difference.T) / 2
    # Not by the new ones as well: clips that noise has brought together have noise in common.
    nearest = np.argmin(earlier + 9 * np.eye(n), axis=1)
    of_nearest = difference[np.ix_(nearest, nearest)]
    with_itself = np.eye(n, dtype=np.int64)
    with_itself[np.arange(n), nearest] = 1
    without_common = with_itself @ with_itself.T == 0
    x, y = difference[without_common], of_nearest[without_common]
    scale = float(np.sqrt((x**2).sum() * (y**2).sum()))
    return float((x * y).sum()) / scale if scale > 0 else 0.0


@lru_cache(maxsize=500)
def _rank_vectors(shape: Shape) -> Floats:
    """The remembered dimensions as vectors of length 1, whose products are correlations of ranks, [k, n]."""
    ranks = _raw(shape.dimensions).reshape(-1, max(1, shape.anchors)).astype(np.float64)
    ranks -= ranks.mean(axis=1, keepdims=True)
    lengths = np.linalg.norm(ranks, axis=1, keepdims=True)
    vectors: Floats = ranks / np.where(lengths > 0, lengths, 1)
    return vectors


def is_same_shape(one: Shape, other: Shape) -> bool:
    """Whether two shapes are of the same embeddings: they agree but for what processors round."""
    if (one.anchors, one.dimensions) != (other.anchors, other.dimensions):
        return False
    pairs = ((one.distances, other.distances), (one.lengths, other.lengths))
    return all(np.allclose(_numbers(a), _numbers(b), rtol=1e-4, atol=1e-4) for a, b in pairs)


def _written(numbers: Floats) -> str:
    return base64.b64encode(np.ascontiguousarray(numbers, "<f4").tobytes()).decode()


def _raw(text: str) -> NDArray[np.uint8]:
    return np.frombuffer(base64.b64decode(text, validate=True), np.uint8)


def _numbers(text: str) -> Floats:
    numbers: Floats = _raw(text).view("<f4").astype(np.float64)
    return numbers
