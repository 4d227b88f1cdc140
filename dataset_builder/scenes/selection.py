"""Candidates, their diversity, and the selection of a balanced subset (arXiv 2603.13685, sections 4.1 and 4.2).

Candidates are drawn as codes of sources. The selection is Entrofy (Huppenkothen et al., 2020, "Entrofy your cohort"):
choose k candidates so that the bins of every attribute are filled close to their targets, by greedy maximisation of
Σ w min(target, count)^0.5. All candidates with the same bins are interchangeable, so the greedy step examines one group
per combination of bins rather than every candidate.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from audio_compositionality.support.errors import InputError

from ..sounds.tones import ATTRIBUTES
from .sources import EMPTY, Codes

NUM_BINS = 5
"""Bins of equal width between 0 and the largest attainable entropy. With K = 8 and up to four sources the entropy of
an attribute takes seven values, 0, .27-.33 (three), .50-.53 (two) and .67: four of the five bins are occupied, and
values that are nearly the same share a bin."""


def count_scenes(num_classes: int, max_sources: int) -> int:
    """Return the number of different scenes of 1 to ``max_sources`` of the K^4 sources: Σ C(K^4, n)."""
    return sum(math.comb(num_classes ** len(ATTRIBUTES), n) for n in range(1, max_sources + 1))


def sample_scenes(rng: np.random.Generator, count: int, num_classes: int, max_sources: int) -> Codes:
    """Draw ``count`` different candidate scenes (paper, section 4.1).

    The number of sources is uniform on 1..max_sources, and each source uniform on the K^4. Scenes with a repeated
    source and scenes that were drawn before are drawn again. There are only K^4 scenes with one source (4,096 for K =
    8), so a pool of 150,000 exhausts them: practically all are in it (2.7 % of the pool), and the rest of their quarter
    goes to the other sizes in equal parts (32.4 % each).

    Returns int32 codes [count, max_sources], rows in increasing order padded with EMPTY.
    Raises InputError if fewer than twice ``count`` scenes exist.
    """
    available = count_scenes(num_classes, max_sources)
    if 2 * count > available:
        raise InputError(
            f"{count:,} candidate scenes were requested, but K = {num_classes} classes and up to {max_sources} "
            f"sources give {available:,} scenes; a pool may contain at most half of them"
        )

    def draw(n: int) -> Codes:
        sizes = rng.integers(1, max_sources + 1, n)
        codes = rng.integers(0, num_classes ** len(ATTRIBUTES), (n, max_sources), dtype=np.int32)
        return _as_sets(codes, sizes)

    return _distinct(draw, count)


def sample_quadruples(rng: np.random.Generator, count: int, num_classes: int, max_sources: int) -> Codes:
    """Draw ``count`` different candidate quadruples (paper, sections 3.2 and 4.1).

    |T| is uniform on 1..N-1, then |A| and |C| independently uniform on 1..N-|T|. A quadruple in which A and T
    or C and T share a source, or in which A = C, is drawn again, as is one drawn before; (A, C, T) and
    (C, A, T) compare the same two steps and count as the same.

    Returns int32 codes [count, 3, max_sources - 1], the sets A, C, T in this order.
    Raises InputError if the pool could not plausibly be filled.
    """
    available = count_scenes(num_classes, max_sources) ** 2
    if 100 * count > available:
        raise InputError(
            f"{count:,} candidate quadruples were requested, but K = {num_classes} classes and up to "
            f"{max_sources} sources give about {available:,}; a pool may contain at most a hundredth of them"
        )
    width = max_sources - 1

    def draw(n: int) -> Codes:
        t_size = rng.integers(1, max_sources, n)
        sizes = np.stack(
            [1 + rng.integers(0, max_sources - t_size), 1 + rng.integers(0, max_sources - t_size), t_size], 1
        )
        codes = rng.integers(0, num_classes ** len(ATTRIBUTES), (n, 3, width), dtype=np.int32)
        sets = _as_sets(codes.reshape(-1, width), sizes.reshape(-1)).reshape(n, 3, width)
        a, c, t = sets[:, 0], sets[:, 1], sets[:, 2]
        valid = (sets[:, :, 0] != EMPTY).all(axis=1) & ~_share(a, t) & ~_share(c, t) & (a != c).any(axis=1)
        swap = _lexicographically_after(a, c)
        sets[swap] = sets[swap][:, [1, 0, 2]]
        sets[~valid] = EMPTY
        return sets.reshape(n, 3 * width)

    candidates = _distinct(draw, count).reshape(count, 3, width)
    # The order of A and C was fixed only to recognise repeats: make it random again.
    swap = rng.random(count) < 0.5
    candidates[swap] = candidates[swap][:, [1, 0, 2]]
    return candidates


def _as_sets(codes: Codes, sizes: NDArray[np.int64]) -> Codes:
    """Keep the first ``sizes`` codes of each row, in increasing order; a row with a repeat becomes all EMPTY."""
    largest = np.iinfo(np.int32).max
    kept = np.where(np.arange(codes.shape[1]) < sizes[:, None], codes, largest)
    kept.sort(axis=1)
    repeated = ((kept[:, 1:] == kept[:, :-1]) & (kept[:, 1:] != largest)).any(axis=1)
    kept[kept == largest] = EMPTY
    kept[repeated] = EMPTY
    return kept.astype(np.int32)


def _share(x: Codes, y: Codes) -> NDArray[np.bool_]:
    equal = (x[:, :, None] == y[:, None, :]) & (x[:, :, None] != EMPTY)
    return np.asarray(equal.any(axis=(1, 2)))


def _lexicographically_after(x: Codes, y: Codes) -> NDArray[np.bool_]:
    """Return whether row x comes after row y in lexicographic order."""
    first = (x != y).argmax(axis=1)
    rows = np.arange(len(x))
    return np.asarray(x[rows, first] > y[rows, first])


def _distinct(draw: Callable[[int], Codes], count: int) -> Codes:
    """Return the first ``count`` different rows of repeated draws; rows that begin with EMPTY are discarded draws."""
    rows = draw(count)
    while True:
        rows = rows[rows[:, 0] != EMPTY]
        _, first = np.unique(rows, axis=0, return_index=True)
        rows = rows[np.sort(first)]
        if len(rows) >= count:
            return np.ascontiguousarray(rows[:count])
        rows = np.concatenate([rows, draw(count)])


def attribute_classes(codes: Codes, num_classes: int) -> NDArray[np.int32]:
    """Return the class of each attribute of each source, EMPTY if none: codes [..., width] -> [..., width, 4]."""
    radix = num_classes ** np.arange(len(ATTRIBUTES) - 1, -1, -1)
    classes = codes[..., None] // radix % num_classes
    return np.where(codes[..., None] == EMPTY, EMPTY, classes).astype(np.int32)


def scene_entropy(codes: Codes, num_classes: int) -> NDArray[np.float64]:
    """Return the normalised entropy of the classes of each attribute in each scene (paper, section 4.2).

    H = -Σ_k p_k log p_k / log K, where p_k is the share of the scene's sources that have class k: 0 if all sources
    agree, log n / log K if n sources all differ.

    Args:
        codes: [scenes, width] source codes, padded with EMPTY.
        num_classes: K.

    Returns:
        float64 [scenes, 4] in 0..1, columns in the order of ATTRIBUTES.
    """
    classes = attribute_classes(codes, num_classes)
    present = codes != EMPTY
    size = present.sum(axis=1)[:, None]
    same = (classes[:, :, None, :] == classes[:, None, :, :]) & (present[:, :, None] & present[:, None, :])[..., None]
    count = np.maximum(same.sum(axis=2), 1)
    # The sum over classes of p log p is the mean over sources of log p(class of the source).
    terms = np.where(present[:, :, None], np.log(count / size[:, :, None]), 0.0)
    return np.asarray(np.abs(terms.sum(axis=1) / size / np.log(num_classes)), np.float64)


def quadruple_entropy(codes: Codes, num_classes: int) -> NDArray[np.float64]:
    """Return H(A) + H(C) + H(T) of each attribute: codes [quadruples, 3, width] -> [quadruples, 4] (section 4.2)."""
    count, parts, width = codes.shape
    return np.asarray(scene_entropy(codes.reshape(-1, width), num_classes).reshape(count, parts, -1).sum(axis=1))


def entropy_bins(entropy: NDArray[np.float64]) -> NDArray[np.int64]:
    """Return the bin of each entropy: NUM_BINS of equal width from 0 to the largest value; [n, 4] -> [n, 4]."""
    top = entropy.max()
    if top == 0:
        return np.zeros(entropy.shape, np.int64)
    return np.asarray(np.minimum((entropy / top * NUM_BINS + 1e-9).astype(np.int64), NUM_BINS - 1))


def objective(bins: NDArray[np.int64], targets: Sequence[NDArray[np.int64]]) -> float:
    """Return Entrofy's objective for a subset: Σ over attributes and bins of min(target, count)^0.5, weights 1.

    Args:
        bins: [chosen, attributes] bin of each chosen candidate.
        targets: the wanted count of each bin, for each attribute.
    """
    counts = [np.bincount(column, minlength=len(target)) for column, target in zip(bins.T, targets, strict=True)]
    return float(sum(np.sqrt(np.minimum(t, c)).sum() for t, c in zip(targets, counts, strict=True)))


def uniform_targets(bins: NDArray[np.int64], count: int) -> list[NDArray[np.int64]]:
    """Return wanted counts for ``count`` choices: equal in every bin that any candidate is in, 0 in the others."""
    targets = []
    for column in bins.T:
        occupied = np.bincount(column) > 0
        targets.append(np.where(occupied, round(count / occupied.sum()), 0))
    return targets


def select_balanced(bins: NDArray[np.int64], count: int, rng: np.random.Generator) -> NDArray[np.int64]:
    """Choose ``count`` candidates with near-uniform bins in every attribute by Entrofy's greedy, group by group.

    Each step adds one candidate from the group with the largest gain in the objective; among ties, the group that comes
    first in an order drawn by ``rng``. Then, as long as that raises the objective, one choice is exchanged for a choice
    from another group; Entrofy instead takes the best of 15 random runs. Which members of a group are chosen is drawn
    by ``rng``.

    Args:
        bins: [candidates, attributes] bin of each candidate.
        count: how many to choose, 1..candidates.
        rng: source of the order of groups and of their members.

    Returns:
        int64 [count] indices into the candidates, in increasing order.

    Raises:
        InputError: more choices than candidates were requested, or none.
    """
    if not 1 <= count <= len(bins):
        raise InputError(f"{count} of {len(bins)} candidates cannot be chosen; choose from 1 to {len(bins)}")
    signatures, group_of = np.unique(bins, axis=0, return_inverse=True)
    group_of = group_of.reshape(-1)
    sizes = np.bincount(group_of)
    targets = uniform_targets(bins, count)
    order = rng.permutation(len(signatures))
    # One flat table for all attributes: cell offset[a] + bin.
    offsets = np.cumsum([0] + [len(target) for target in targets[:-1]])
    cells = (signatures + offsets).astype(np.intp)[order]
    wanted = np.empty(len(signatures), np.int64)
    taken = _greedy(cells, sizes[order], targets, count)
    wanted[order] = _exchange(cells, sizes[order], np.concatenate(targets), taken)

    shuffled = rng.permutation(len(bins))
    by_group = shuffled[np.argsort(group_of[shuffled], kind="stable")]
    starts = np.cumsum(sizes) - sizes
    selected = np.concatenate([by_group[s : s + w] for s, w in zip(starts, wanted, strict=True)])
    return np.sort(selected)


def _greedy(
    cells: NDArray[np.intp], sizes: NDArray[np.int64], targets: Sequence[NDArray[np.int64]], count: int
) -> NDArray[np.int64]:
    """Return the number of greedy choices in each group; ``cells`` [groups, attributes] index the joined targets."""
    target = np.concatenate(targets)
    filled = np.zeros(len(target), np.int64)
    gain = np.where(target > 0, 1.0, 0.0)
    root = np.sqrt(np.arange(target.max() + 2))
    taken = np.zeros(len(cells), np.int64)
    exhausted = np.zeros(len(cells))
    for _ in range(count):
        group = int((gain[cells].sum(axis=1) + exhausted).argmax())
        taken[group] += 1
        if taken[group] == sizes[group]:
            exhausted[group] = -np.inf
        for cell in cells[group]:
            filled[cell] += 1
            now = filled[cell]
            gain[cell] = root[now + 1] - root[now] if now < target[cell] else 0.0
    return taken


def _exchange(
    cells: NDArray[np.intp], sizes: NDArray[np.int64], target: NDArray[np.int64], taken: NDArray[np.int64]
) -> NDArray[np.int64]:
    """Exchange single choices between groups while this raises the objective; return the choices per group."""
    taken = taken.copy()
    filled = np.bincount(cells.ravel(), np.repeat(taken, cells.shape[1]), minlength=len(target)).astype(np.int64)
    same = cells[:, None, :] == cells[None, :, :]

    def value(filled: NDArray[np.int64]) -> NDArray[np.float64]:
        return np.sqrt(np.clip(filled, 0, target))

    while True:
        gain, loss = value(filled + 1) - value(filled), value(filled) - value(filled - 1)
        # [from, to]: if both groups have the same bin in an attribute, its count does not change.
        change = np.where(same, 0.0, gain[cells][None, :, :] - loss[cells][:, None, :]).sum(axis=2)
        change[taken == 0] = -np.inf
        change[:, taken == sizes] = -np.inf
        source, sink = np.unravel_index(change.argmax(), change.shape)
        if not change[source, sink] > 1e-9:
            return taken
        taken[source] -= 1
        taken[sink] += 1
        filled[cells[source]] -= 1
        filled[cells[sink]] += 1


def split_balanced(bins: NDArray[np.int64], sizes: Sequence[int], rng: np.random.Generator) -> list[NDArray[np.int64]]:
    """Divide rows into splits of the given sizes so that each split has the bins in the same proportions.

    Rows are sorted by their bins and assigned in this order at the splits' rates (systematic sampling), so that any run
    of equal bins is divided proportionally, to within one row.

    Args:
        bins: [rows, attributes] bin of each row.
        sizes: rows of each split; their sum is the number of rows.
        rng: source of the order within equal bins.

    Returns:
        For each split, the int64 indices of its rows in random order.
    """
    total = len(bins)
    if sum(sizes) != total:
        raise InputError(f"splits of {list(sizes)} rows do not add up to the {total} rows")
    shuffled = rng.permutation(total)
    ordered = shuffled[np.lexsort(bins[shuffled].T[::-1])]
    # Row i belongs to the split whose quota lags furthest behind at i: the k-th row of a split of size s is due at
    # position (k + 1/2) * total / s.
    due = np.concatenate([(np.arange(size) + 0.5) * total / size for size in sizes if size])
    owner = np.repeat(np.arange(len(sizes)), sizes)[np.argsort(due, kind="stable")]
    return [rng.permutation(ordered[owner == split]) for split in range(len(sizes))]
