"""A-COAT across instances: is the same class, in another instance and another context, the nearest of K?

A block has two contexts A and C and K classes. B_k = A ∪ T_k and D_k = C ∪ T′_k, where T_k and T′_k are two instances
of one class under two conditions, for example one word in two voices. All K candidates of a side share context and
condition, so that only the class tells them apart. The score is a forced choice: which D_l − mean D lies nearest to B_k
− mean B?

Additivity is not required, and a step towards "more energy" does not help, since all K candidates have it. A constant
encoder scores exactly at chance. If embeddings of the sources alone are given too, the forced choice is also reported
without any context (recognition) and with one context. Only one control is trained. All in float64.

>>> rng = np.random.default_rng(0)
>>> a, c, classes = rng.normal(size=(20, 6)), rng.normal(size=(20, 6)), rng.normal(size=(20, 4, 6))
>>> voice = rng.normal(size=(20, 1, 6))
>>> result = a_coat_instances(a, a[:, None] + classes, c, c[:, None] + classes + voice)
>>> result["top1"], result["top1_chance"], result["pairwise"]
(1.0, 0.25, 1.0)
>>> deaf = a_coat_instances(a, a[:, None].repeat(4, 1), c, c[:, None] + voice.repeat(4, 1))
>>> deaf["top1"], deaf["pairwise"], deaf["step"]
(0.25, 0.5, 0.0)
"""

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .arrays import NO_STEP, TIE, Floats, Ints, above_share, adjusted_scores, check_together, read_matrix
from .columns import result_of
from .evaluated import COAT as _CITATION
from .evaluated import count, measure, metric_class, ratio, share

MARGIN = 0.1
"""`kept` divides by the distance of `alone_top1` from chance, so its interval must lie more than this above chance."""

SHRINKAGE = 0.1
"""Share of the mean eigenvalue that is added to every eigenvalue of the fitted map's covariance."""

FEWEST_FITTED = 5
"""The smallest number of blocks on which the map of a block is fitted."""

_CHUNK = 1 << 22  # numbers of replacements held at once
_RESOLUTION = 1e-10  # squares of lengths from inner products are exact to about this times the largest


def a_coat_instances(
    a: ArrayLike,
    b: ArrayLike,
    c: ArrayLike,
    d: ArrayLike,
    alone_b: ArrayLike | None = None,
    alone_d: ArrayLike | None = None,
    labels: Any = None,
    conditions: Any = None,
    *,
    return_scores: bool = False,
) -> dict[str, Any]:
    """Return how often the right class is the nearest across instances, in n blocks of K classes, and the controls.

    - `a`, `c` [n, dim]: embeddings of the contexts; `b`, `d` [n, K, dim]: of the contexts with an instance of class k
      added to each; candidate k of `d` has the class of candidate k of `b`;
    - `alone_b`, `alone_d` [n, K, dim], together or not at all: embeddings of the sources T_k and T′_k alone;
    - `labels` n × K (all different within a block) and `conditions` n × 2, strings or integers, together or not at all:
      the classes, and the condition shared by the candidates of a side; None or an empty text is a condition that no
      other block has.

    x̃_k is x_k minus the mean of its K candidates, and a zero vector (see `NO_STEP`) has a cosine of 0 with every
    other. Results are means over the blocks of:

    - `top1`: is d̃_k the nearest by cosine of all d̃_l to b̃_k, and b̃_k of all b̃_l to d̃_k; mean over both and over
      k. Each of t tied candidates counts as the nearest by 1/t, so that `top1_chance`, 1/K, is exact;
    - `pairwise`: share of the pairs k < l with cos(b_k − b_l, d_k − d_l) > 0, ties half; `pairwise_chance` is exactly
      1/2, since exchanging two labels in D flips the sign. `replacement_cosine` is the mean of that cosine, chance 0:
      reported, never to rank by, since smooth maps of energy make it high;
    - `part_top1`, `part_pairwise`: top1 and pairwise between alone_b and d, and between b and alone_d; mean of both;
    - `alone_top1`, `alone_pairwise`: top1 and pairwise between alone_b and alone_d: recognition without composition.
      All four are None without `alone_b` and `alone_d`;
    - `kept` = (top1 − 1/K)/(alone_top1 − 1/K): the share of recognition that survives in scenes. None if Student's 95 %
      interval of alone_top1 over the blocks reaches down to 1/K + MARGIN, with a single block, and without alone_top1;
    - with s_kl = cos(b_k − a, d_l − c): `step`, mean over k = l; `step_null`, mean over k ≠ l: equal contexts,
      conditions and levels, another class; `step_adjusted` = (step − step_null)/(1 − step_null), 0 when 1 − step_null <
      1e-12; `step_top1`, as top1;
    - `conflict`: share of k ≠ l with s_kk > cos(b_k − a, b_l − a), and vice versa for d; ties half, mean of both. Below
      1/2 context and condition weigh more than the class;
    - `n` blocks, `classes` K;
    - `fitted_top1`, `fitted_part_top1`, `fitted_alone_top1`, `fitted_pairwise`: controls, never to rank by. These
      numbers after a linear map that is fitted with labels: x̃ ↦ (S + λI)^(−1/2) x̃, where S is the covariance of b̃_k
      − d̃_k and λ is SHRINKAGE times its mean eigenvalue. For each block the map is fitted on the blocks that share no
      condition with it, using only classes that are not in the block (means are over these). Only equal conditions
      count as shared, not related ones: another voice of the same synthesiser is fitted on. None if labels and
      conditions are not given, or if a block has fewer than FEWEST_FITTED such blocks with at least two such classes.

    With return_scores, lists of n whose means are the results: `scores` of top1, `scores_NAME` of every other result
    except chances and counts; None if the result is None. `scores_step_adjusted` are (step_i − step_null_i)/(1 −
    step_null). `scores_kept` are linearised contributions: kept + ((top1_i − 1/K) − kept·(alone_top1_i −
    1/K))/(alone_top1 − 1/K).

    Adding one vector to all embeddings, rotating or scaling them, and exchanging (a, b) with (c, d) leave the results
    unchanged. For a linear encoder alone = part = scene, since b_k − b_l equals alone_b_k − alone_b_l.

    Raises ValueError if an argument is not finite [n, dim] or [n, K, dim] with K ≥ 2, shapes do not fit each other,
    only one of two paired arguments is given, or the labels of a block are not all different.

    >>> a_coat_instances([[0, 0]], [[[1, 0], [0, 1]]], [[9, 9]], [[[9, 5], [5, 9]]])["top1"]
    1.0
    """
    contexts, scenes, alone = _arrays(a, b, c, d, alone_b, alone_d)
    n, k = scenes[0].shape[:2]
    names = _names(labels, conditions, n, k)
    chunks = []
    size = max(1, _CHUNK // (k * (k - 1) // 2 * scenes[0].shape[2]))
    for start in range(0, n, size):
        few = [[x[start : start + size] for x in arrays] for arrays in (contexts, scenes, alone)]
        chunks.append({**_choice_scores(few[1], few[2]), **_step_scores(few[0], few[1])})
    columns = {name: np.concatenate([chunk[name] for chunk in chunks]) for name in chunks[0]}
    columns["step_adjusted"] = adjusted_scores(columns["step"], columns["step_null"])
    if alone and _surely_above(columns["alone_top1"], 1 / k + MARGIN):
        above = float(columns["alone_top1"].mean()) - 1 / k
        kept = (float(columns["top1"].mean()) - 1 / k) / above
        columns["kept"] = kept + ((columns["top1"] - 1 / k) - kept * (columns["alone_top1"] - 1 / k)) / above
    if names is not None:
        columns |= _fitted_scores(scenes, alone, *names)
    numbers = {"top1_chance": 1 / k, "pairwise_chance": 0.5, "n": n, "classes": k}
    return result_of(MEASURES, columns, numbers, return_scores)


ACoatInstances = metric_class(
    a_coat_instances,
    {"a": "numbers", "b": "vectors", "c": "numbers", "d": "vectors"},
    citation=_CITATION,
)


# ----- inputs
def _arrays(
    a: Any, b: Any, c: Any, d: Any, alone_b: Any, alone_d: Any
) -> tuple[list[Floats], list[Floats], list[Floats]]:
    """Return contexts A and C [n, dim], scenes B and D [n, K, dim], and the sources alone or nothing.

    All are scaled by one power of two, to values of about 1.
    """
    check_together({"alone_b": alone_b, "alone_d": alone_d}, "part and alone need both")
    arrays = {"a": read_matrix("a", a), "b": _candidates("b", b), "c": read_matrix("c", c), "d": _candidates("d", d)}
    if alone_b is not None:
        arrays |= {"alone_b": _candidates("alone_b", alone_b), "alone_d": _candidates("alone_d", alone_d)}
    n, k, dim = arrays["b"].shape
    if any(x.shape != ((n, dim) if x.ndim == 2 else (n, k, dim)) for x in arrays.values()):
        shapes = ", ".join(f"{name} {x.shape}" for name, x in arrays.items())
        raise ValueError(f"a and c must be [n, dim] and all others [n, K, dim], with one n, K and dim; got {shapes}.")
    # Scale by a power of two, which is exact.
    exponent = math.frexp(max(float(np.abs(x).max()) for x in arrays.values()))[1]
    a, b, c, d, *alone = (np.ldexp(x, -exponent) for x in arrays.values())
    return [a, c], [b, d], alone


def _candidates(name: str, x: Any) -> Floats:
    if hasattr(x, "detach"):
        x = x.detach().cpu().double()
    try:
        raw = np.asarray(x)
    except ValueError as error:
        raise ValueError(
            f"{name} must be an array [n, K, dim] with equal numbers of candidates of equal length: {error}"
        ) from None
    if raw.dtype.kind not in "fiu" and raw.size:
        raise ValueError(f"{name} must hold real numbers; got an array of {raw.dtype}, shape {raw.shape}.")
    if raw.ndim != 3 or 0 in raw.shape or raw.shape[1] < 2:
        raise ValueError(f"{name} must be [n, K, dim] with n ≥ 1, K ≥ 2 and dim ≥ 1; got shape {raw.shape}.")
    return read_matrix(name, raw.reshape(len(raw), -1)).reshape(raw.shape)


def _names(labels: Any, conditions: Any, n: int, k: int) -> tuple[Ints, Ints] | None:
    """Return integer codes of the labels [n, K] and of the conditions [n, 2]; None if neither is given."""
    check_together({"labels": labels, "conditions": conditions}, "the fitted map needs both")
    if labels is None:
        return None
    classes = _numbered("labels", labels, n, k)
    for row, numbers in enumerate(classes):
        if len(np.unique(numbers)) < k:
            raise ValueError(f"labels of a block must be {k} different values; row {row} is {list(labels[row])}.")
    return classes, _numbered("conditions", conditions, n, 2)


def _numbered(name: str, x: Any, n: int, width: int) -> Ints:
    """Return integer codes [n, width], equal for equal entries; each empty text or None has a code of its own."""
    rows = x.tolist() if hasattr(x, "tolist") else list(x)
    sizes = [len(row) if isinstance(row, list | tuple | np.ndarray) else None for row in rows]
    if sizes != [width] * n:
        wrong = next((row for row, size in enumerate(sizes) if size != width), None)
        what = f"got {len(rows)} rows" if wrong is None else f"row {wrong} is {rows[wrong]!r}"
        raise ValueError(f"{name} must have {n} rows, one per block, with {width} entries each; {what}.")
    entries = [entry for row in rows for entry in row]
    for place, entry in enumerate(entries):
        if entry is not None and (isinstance(entry, bool) or not isinstance(entry, str | int | np.integer)):
            raise ValueError(f"{name} must be strings or integers; row {place // width} has {entry!r}.")
    keys = [(place,) if entry is None or entry == "" else entry for place, entry in enumerate(entries)]
    numbers = {key: number for number, key in enumerate(dict.fromkeys(keys))}
    return np.array([numbers[key] for key in keys]).reshape(n, width)


# ----- scores of blocks
def _choice_scores(scenes: list[Floats], alone: list[Floats]) -> dict[str, Floats]:
    """Return the scores of the forced choice between classes, without and with contexts."""
    arrays = [*scenes, *alone]
    centred = [_unit_steps(_centred(x), _largest_norms(x)) for x in arrays]
    first, second = np.triu_indices(scenes[0].shape[1], 1)
    swapped = [_unit_steps(x[:, first] - x[:, second], _largest_norms(x)) for x in arrays]  # all pairs of candidates

    def scores(one: int, other: int) -> tuple[Floats, Floats, Floats]:
        cosines = np.einsum("npi,npi->np", swapped[one], swapped[other])
        return _nearest_share(_products(centred[one], centred[other])), _positive_share(cosines), cosines

    result: dict[str, Floats] = {}
    result["top1"], result["pairwise"], cosines = scores(0, 1)
    result["replacement_cosine"] = np.clip(cosines, -1.0, 1.0).mean(axis=1)
    if alone:
        parts = scores(2, 1), scores(0, 3)
        result["part_top1"], result["part_pairwise"] = ((parts[0][place] + parts[1][place]) / 2 for place in (0, 1))
        result["alone_top1"], result["alone_pairwise"], _ = scores(2, 3)
    return result


def _step_scores(contexts: list[Floats], scenes: list[Floats]) -> dict[str, Floats]:
    """Return the scores of the steps from the contexts to the scenes."""
    k = scenes[0].shape[1]
    steps = []
    for context, scene in zip(contexts, scenes, strict=True):
        scale = np.maximum(_largest_norms(scene), _largest_norms(context[:, None]))
        steps.append(_unit_steps(scene - context[:, None], scale))
    cosines = np.clip(_products(*steps), -1.0, 1.0)
    same = np.einsum("nkk->nk", cosines)
    apart = ~np.eye(k, dtype=bool)
    conflicts = [above_share(same[:, :, None], _products(step, step))[:, apart] for step in steps]
    return {
        "step": same.mean(axis=1),
        "step_null": cosines[:, apart].mean(axis=1),
        "step_top1": _nearest_share(cosines),
        "conflict": np.mean(conflicts, axis=(0, 2)),
    }


def _largest_norms(x: Floats) -> Floats:
    """Return the norm of the longest embedding of each block [m, dim]."""
    norms: Floats = np.sqrt(np.einsum("nmi,nmi->nm", x, x).max(axis=1))
    return norms


def _centred(x: Floats) -> Floats:
    """Return the candidates minus their mean; differences are taken first, so that a large mean costs no precision."""
    differences = x - x[:, :1]
    centred: Floats = differences - differences.mean(axis=1, keepdims=True)
    return centred


def _unit_steps(x: Floats, scale: Floats) -> Floats:
    """Return the rows of [n, m, dim] at length 1, or zero if at most NO_STEP times the scale of their block [n]."""
    norms = np.sqrt(np.einsum("nmi,nmi->nm", x, x))
    long = norms > NO_STEP * scale[:, None]
    directions: Floats = x * np.where(long, 1 / np.where(long, norms, 1.0), 0.0)[:, :, None]
    return directions


def _products(u: Floats, v: Floats) -> Floats:
    """Return the products u_k·v_l within each block, [n, K, K]."""
    products: Floats = u @ v.transpose(0, 2, 1)
    return products


def _nearest_share(cosines: Floats) -> Floats:
    """Return how often entry k of row k is the largest of its row and of its column, for [n, K, K].

    Ties share the count.
    """
    shares = []
    for axis in (1, 2):
        nearest = cosines >= cosines.max(axis=axis, keepdims=True) - TIE
        shares.append((np.einsum("nkk->nk", nearest) / nearest.sum(axis=axis)).mean(axis=1))
    share: Floats = (shares[0] + shares[1]) / 2
    return share


def _positive_share(cosines: Floats) -> Floats:
    """Return the share of values above 0 for each row of [n, pairs], ties half."""
    share: Floats = above_share(cosines, np.zeros(1)).mean(axis=1)
    return share


def _surely_above(values: Floats, bound: float) -> bool:
    """Return whether Student's 95 % interval of the mean lies above a bound; False for a single value."""
    from scipy.special import stdtrit

    n, distance = len(values), float(values.mean()) - bound
    if n == 1 or distance <= 0:
        return False
    return distance > float(stdtrit(n - 1, 0.975)) * float(values.std(ddof=1)) / math.sqrt(n)


# ----- the control of a fitted map
def _fitted_scores(scenes: list[Floats], alone: list[Floats], classes: Ints, conditions: Ints) -> dict[str, Floats]:
    """Return the scores after the map fitted without the block's classes and conditions.

    Only equal conditions are left out, not related ones. The result is empty if there are too few blocks.
    """
    n, k, _ = scenes[0].shape
    scales = [_largest_norms(x) for x in (*scenes, *alone)]
    centred = [_cleared(_centred(x), scale) for x, scale in zip((*scenes, *alone), scales, strict=True)]
    material = _Material(_cleared(centred[0] - centred[1], np.maximum(scales[0], scales[1])))
    candidates = np.concatenate(centred, axis=1)
    products = np.empty((n, candidates.shape[1], candidates.shape[1]))
    for block in range(n):
        shared = (conditions[:, :, None] == conditions[block]).any(axis=(1, 2))
        usable = ~np.isin(classes, classes[block]) & ~shared[:, None]
        usable &= usable.sum(axis=1, keepdims=True) > 1
        if usable.any(axis=1).sum() < FEWEST_FITTED:
            return {}
        products[block] = material.mapped_products(usable, candidates[block])

    def scores(first: int, second: int) -> tuple[Floats, Floats]:
        return _product_scores(products, slice(first * k, first * k + k), slice(second * k, second * k + k))

    result: dict[str, Floats] = {}
    result["fitted_top1"], result["fitted_pairwise"] = scores(0, 1)
    if alone:
        result["fitted_part_top1"] = (scores(2, 1)[0] + scores(0, 3)[0]) / 2
        result["fitted_alone_top1"] = scores(2, 3)[0]
    return result


def _cleared(x: Floats, scale: Floats) -> Floats:
    """Return the rows, set to zero where `_unit_steps` is zero."""
    norms = np.sqrt(np.einsum("nmi,nmi->nm", x, x))
    return np.where((norms > NO_STEP * scale[:, None])[:, :, None], x, 0.0)


@dataclass(frozen=True)
class _Material:
    """Data on which the maps are fitted.

    Attributes:
        steps: b̃_k − d̃_k of every block, [n, K, dim].
    """

    steps: Floats

    @cached_property
    def rows(self) -> Floats:
        return self.steps.reshape(-1, self.steps.shape[2])

    @cached_property
    def products(self) -> Floats:
        return self.rows @ self.rows.T

    def mapped_products(self, usable: NDArray[np.bool_], x: Floats) -> Floats:
        """Return the inner products of the rows of x [m, dim] after the map, up to a common factor.

        With F the usable steps (minus their mean in each block) and r their number, S = FᵀF/r, so that S + λI is (FᵀF +
        μI)/r with μ = SHRINKAGE·tr(FᵀF)/dim. Mapped by its inverse square root, x and y have the product xᵀ(FᵀF +
        μI)⁻¹y, and μ(FᵀF + μI)⁻¹ = I − Fᵀ(FFᵀ + μI)⁻¹F: the smaller of the two systems is solved, exactly.
        """
        place = np.flatnonzero(usable)
        starts = np.flatnonzero(np.diff(place // usable.shape[1], prepend=-1))
        dim = self.rows.shape[1]
        if dim <= len(place):
            steps = _without_means(self.rows[place], starts)
            covariance = steps.T @ steps
            shift = SHRINKAGE * float(np.trace(covariance)) / dim
            covariance[np.diag_indices(dim)] += shift
            return shift * x @ np.linalg.solve(covariance, x.T) if shift > 0 else x @ x.T
        gram = _without_means(_without_means(self.products[np.ix_(place, place)], starts).T, starts)
        shift = SHRINKAGE * float(np.trace(gram)) / dim
        if shift <= 0:
            return x @ x.T
        gram[np.diag_indices(len(place))] += shift
        crossed = _without_means((self.rows @ x.T)[place], starts)
        return x @ x.T - crossed.T @ np.linalg.solve(gram, crossed)


def _without_means(x: Floats, starts: Ints) -> Floats:
    """Subtract from each row the mean of its group; a group is a run of rows from each start to the next."""
    counts = np.diff(starts, append=len(x))
    means = np.add.reduceat(x, starts, axis=0) / counts[:, None]
    return x - means.repeat(counts, axis=0)


def _product_scores(products: Floats, first: slice, second: slice) -> tuple[Floats, Floats]:
    """Return top1 and pairwise of each block, for vectors with the inner products [n, m, m]."""
    across = products[:, first, second]
    squares = [products[:, part, part] for part in (first, second)]
    single = [np.einsum("nkk->nk", square) for square in squares]
    cosines = _over_lengths(across, single[0][:, :, None], single[1][:, None])
    k, m = np.triu_indices(across.shape[1], 1)
    apart = [square[:, k, k] + square[:, m, m] - 2 * square[:, k, m] for square in squares]
    crossed = across[:, k, k] + across[:, m, m] - across[:, k, m] - across[:, m, k]
    return _nearest_share(cosines), _positive_share(_over_lengths(crossed, *apart))


def _over_lengths(products: Floats, first: Floats, second: Floats) -> Floats:
    """Return the products divided by the roots of the two squares; 0 if a square is negligible within its block."""
    axes = tuple(range(1, products.ndim))
    long = [square > _RESOLUTION * square.max(axis=axes, keepdims=True) for square in (first, second)]
    lengths = [np.sqrt(np.where(where, square, 1.0)) for where, square in zip(long, (first, second), strict=True)]
    return np.where(long[0] & long[1], products / (lengths[0] * lengths[1]), 0.0)


VERSION = 1
"""Increases with every change of code or constants that can change a number."""

MEASURES = {
    "top1": share(
        "A-COAT instances",
        "top-1 in scenes: how often the right class is nearest across instances, contexts and conditions",
        null="top1_chance",
        column="score",
    ),
    "top1_chance": share(
        "top-1 chance", "top-1 of a constant encoder: exactly 1 over the number of classes", shown=False
    ),
    "pairwise": share(
        "pairwise",
        "share of pairs of classes whose replacement points the same way in both contexts",
        null="pairwise_chance",
        column="score_pairwise",
    ),
    "pairwise_chance": share("pairwise chance", "pairwise of a constant encoder: exactly 1/2", shown=False),
    "part_top1": share(
        "part top-1",
        "top-1 if one of the two sides is the source alone, without a context",
        null="top1_chance",
        column="score_part_top1",
    ),
    "part_pairwise": share(
        "part pairwise",
        "pairwise if one of the two replacements is of sources alone, without a context",
        null="pairwise_chance",
        column="score_part_pairwise",
        shown=False,
    ),
    "alone_top1": share(
        "alone top-1",
        "top-1 of the sources alone: recognition across instances, no composition; if it is at chance, "
        "top-1 in scenes cannot measure composition",
        null="top1_chance",
        column="score_alone_top1",
    ),
    "alone_pairwise": share(
        "alone pairwise",
        "pairwise of the sources alone: recognition, no composition",
        null="pairwise_chance",
        column="score_alone_pairwise",
        shown=False,
    ),
    "kept": measure(
        "kept",
        "(top-1 − chance) / (alone top-1 − chance): the share of recognition that remains in scenes; "
        "none unless the 95 % interval of alone top-1 is more than .1 above chance",
        range=(-5.0, 10.0),
        column="score_kept",
        outside="The kept share is a ratio of two means. Values of single blocks are linearised contributions with "
        "this mean and can lie outside the range of the ratio.",
    ),
    "replacement_cosine": measure(
        "replacement cosine",
        "mean cosine of the two replacements, chance 0; smooth maps of energy raise it: never rank by it",
        column="score_replacement_cosine",
        shown=False,
    ),
    "step": measure(
        "step",
        "mean cosine of the steps from the contexts to the scenes of one class",
        null="step_null",
        column="score_step",
        shown=False,
    ),
    "step_null": measure(
        "step null",
        "mean cosine between two classes of a block, with the same contexts, conditions and levels",
        column="score_step_null",
        shown=False,
    ),
    "step_adjusted": ratio(
        "step adjusted",
        "(step − step null) / (1 − step null)",
        column="score_step_adjusted",
        shown=False,
        outside="Adjusted steps of single blocks can lie above 1, if a block's own null "
        "is below the mean: all are divided by 1 − the mean null. The mean over all cannot.",
    ),
    "step_top1": share(
        "step top-1",
        "how often the step to the scene of the same class is the nearest of K",
        null="top1_chance",
        column="score_step_top1",
        shown=False,
    ),
    "conflict": share(
        "conflict",
        "how often the step of the same class in another context and condition is nearer than the step of another "
        "class in the same ones, ties half; below 1/2 context and condition weigh more than the class",
        column="score_conflict",
    ),
    "n": count("n", "number of blocks"),
    "classes": count("classes", "number of classes to choose from, K", 2.0),
    "fitted_top1": share(
        "fitted top-1",
        "control, never to rank by: top-1 after a linear map that is fitted with labels on other classes "
        "and conditions",
        null="top1_chance",
        column="score_fitted_top1",
        shown=False,
    ),
    "fitted_part_top1": share(
        "fitted part top-1",
        "control, never to rank by: part top-1 after the map that is fitted with labels",
        null="top1_chance",
        column="score_fitted_part_top1",
        shown=False,
    ),
    "fitted_alone_top1": share(
        "fitted alone top-1",
        "control, never to rank by: alone top-1 after the map that is fitted with labels",
        null="top1_chance",
        column="score_fitted_alone_top1",
        shown=False,
    ),
    "fitted_pairwise": share(
        "fitted pairwise",
        "control, never to rank by: pairwise after the map that is fitted with labels",
        null="pairwise_chance",
        column="score_fitted_pairwise",
        shown=False,
    ),
}
"""Description of each number that `a_coat_instances` returns, by name, the score first."""
