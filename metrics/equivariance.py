"""Equivariance: can the change of a clip be read from two embeddings, and can the changed embedding be foretold?

Clips of one orbit differ in one factor or one parameter of a transform and in nothing else. For embeddings z and z′ of
two clips of an orbit, P-equivariance is how well a probe reads the parameter p from both, and R-equivariance how well
a probe foretells z′ from z and p (arXiv 2505.06224, section III).

Both mislead when they are read alone. Whoever knows the level of one clip knows half of the difference of two; an
untrained network that hardly moves foretells its embeddings nearly perfectly by leaving them as they are. So P stands
beside what z or z′ alone tells, and R is scored against the best of what does not know the parameter: z itself, z moved
by the mean step, and the same probe without the parameter. Its chance is 0, whatever the encoder. All in float64.

>>> rng = np.random.default_rng(0)
>>> contexts, direction = rng.normal(size=(30, 1, 8)), rng.normal(size=8)
>>> level = np.tile(np.arange(4.0), 30)
>>> z = np.repeat(contexts, 4, axis=1).reshape(120, 8) + level[:, None] * direction
>>> orbits = np.repeat(np.arange(30), 4)
>>> result = equivariance(z, orbits, level, orbits % 5, orbits)
>>> round(result["r_equivariance"], 3), round(result["p"], 3), result["pairs"]
(1.0, 1.0, 360)
>>> blind = np.repeat(contexts[:, 0], 4, axis=0) + rng.normal(size=(120, 8))
>>> abs(equivariance(blind, orbits, level, orbits % 5, orbits)["r_equivariance"]) < 0.05
True
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from .arrays import ROUNDING, TIE, Floats, Ints, read_matrix, row_cosines, unit_rows
from .citations import AXES as _CITATION
from .columns import check_classes, fold_rotation, read_blocks
from .evaluated import metric_class
from .orbits import Paired, pair_changes, read_pairs
from .probing import (
    PROBES,
    SHUFFLES,
    STATES,
    Part,
    block_permutations,
    descend,
    explained_share,
    fit_groups,
    linear_layers,
    probe_names,
    ratio_scores,
    state_spread,
)

COMPONENTS = 24
"""Principal components of z, whose products with P and P² let ridge regression turn the step with the place."""

R_HIDDEN, PROJECTED = (512, 512), 32
"""Of R as arXiv 2505.06224 has it: hidden layers of the MLP, and values that a linear layer makes of the parameter."""

MOST_CONTEXTS = 100
"""Orbits among which the true one is looked for, evenly from those of a fold."""

_DESCRIPTION = """\
Equivariance measures whether embeddings change with a parameter of the sound in a way that a probe can read (P) and
foretell (R), for clips that differ in nothing else. R is scored against the best prediction that does not know the
parameter, P beside what one of the two embeddings alone tells.
"""

_INPUTS = """
Args:
    embeddings: [n, dim], one row for each clip.
    orbits: n strings or integers: clips of one orbit differ in the parameter alone; each has two clips or more.
    parameters: n numbers, or n strings, which are classes (also where they look like numbers).
    folds: n integers, at least 3 different: each fold is tested once, by probes that are trained without it.
    blocks: n strings or integers: what clips share, such as a recording or a speaker; no block is in two folds.
    base: optional, n booleans, true for the one original of each orbit: its parameter is passed over, and pairs go
        from it to its copies. Without it they go from each clip of an orbit to each other.
    probes: the probes to choose from in each fold, of "ridge", "kernel", "slp" and "mlp".
    scaled: False for slp and mlp as those of arXiv 2505.06224: P from embeddings as they come, R from embeddings of
        length 1.
    seed: of the permutations, of the choice among very many pairs, and of slp and mlp.
    return_scores: also return `scores`, `scores_p` and `scores_p_gain`, one for each clip of `rows`.
Returns:
    a dictionary, described at `equivariance` in the module: r_equivariance, r_ridge, r_kernel, r_slp, r_mlp, spread,
    r_explained, r_translate, r_level_top1, r_level_chance, r_context_top1, r_context_chance, r_cosine, identity_cosine,
    r_mse, identity_mse, p, p_ridge, p_kernel, p_slp, p_mlp, p_spread, p_start, p_end, p_difference, p_from_labels,
    p_gain, shuffled_p, pairs, n.
Examples:
    >>> import evaluate
    >>> metric = evaluate.load("equivariance")
    >>> levels, orbits = [float(i % 4) for i in range(80)], [i // 4 for i in range(80)]
    >>> embeddings = [[level, (orbit % 7) / 7, (orbit % 3) / 3] for level, orbit in zip(levels, orbits)]
    >>> data = {"embeddings": embeddings, "orbits": orbits, "parameters": levels, "blocks": orbits}
    >>> result = metric.compute(**data, folds=[orbit % 5 for orbit in orbits])
    >>> round(result["r_equivariance"], 3), round(result["p"], 3), result["pairs"]
    (1.0, 1.0, 240)
"""


def equivariance(
    embeddings: ArrayLike,
    orbits: Any,
    parameters: Any,
    folds: ArrayLike,
    blocks: Any,
    *,
    base: ArrayLike | None = None,
    probes: Sequence[str] = ("ridge", "kernel"),
    scaled: bool = True,
    seed: int = 0,
    return_scores: bool = False,
) -> dict[str, Any]:
    """Return how well a change of clips is read from and foretold in their embeddings, and the controls of that.

    - `embeddings` [n, dim]; `orbits` [n], strings or integers, each of two rows or more and in one fold; `parameters`
      [n], numbers or strings; strings are classes, whatever they say;
    - `base` [n], booleans: true for the one original of each orbit, whose parameter is passed over (None or NaN). Pairs
      go from it to each copy, and P is the copy's parameter. Without it they go from each row of an orbit to each
      other, and P is the difference of their numbers, or the class of the second;
    - `folds`, `blocks`, `probes`, `scaled`, `seed`: as of `informativeness`. With `scaled` False `slp` and `mlp` are
      those of the text of arXiv 2505.06224: of P they see z and P as they come. All of R is then of embeddings of
      length 1: a linear layer projects P (in 0…1, or the class) to 32 values, and the probe, whose `mlp` has hidden
      layers of 512 and 512 units, is trained by the cosine with z′.

    Results, over all pairs, each tested once, those of R first. A probe foretells the step z′ − z from z and features
    of the parameter. How these are weighted is part of the definition, since one penalty serves all of them (with
    `scaled` False `slp` and `mlp` see P in 0…1 as it comes). In each fold, from its training pairs:

    - c(P): one indicator for each class or, of numbers, each different P where these are at most MOST_VALUES; else P,
      P² and |P|, each divided by its standard deviation;
    - they are multiplied by one number w, so that they vary as much in all as z does: w² = Σ var z / Σ var c, sums over
      columns, variances over training pairs, z being that of the pair's start;
    - `ridge` also sees products of ((P − mean)/sd) and of ((P² − mean)/sd) with the first COMPONENTS principal
      components of z over training rows, centred and in the units of z; none for classes;
    - all are then centred, and divided by one number, the root of the mean variance of a feature.

    Without w the indicators would be penalised away where z has many dimensions: an additive encoder of eight classes
    in 64 dimensions, which is at .60, would be at .21 (tests/metrics/test_equivariance_weighting.py).

    - `r_equivariance` = 1 − SSE/min(SSE of z′ = z, of the mean step in training, of the same probe without the
      parameter): what knowing the parameter is worth. In each fold validation chooses the probe, which may be one
      that is not told the parameter, so that nothing is lost where it tells nothing; `r_ridge`, `r_kernel`,
      `r_slp`, `r_mlp`: that of each probe alone, which must use the parameter, None where it was not asked for. Where
      the parameter tells nothing, these are below 0, by about k/n with k features of it and n training clips, as with
      any useless features (7/307 of 8 classes and 512 clips; measured −.02 with random embeddings); `spread`: standard
      deviation over the random states of slp and mlp;
    - `r_explained` = 1 − SSE/Σ|z′ − z|²: 0 for z itself, and .5 for random embeddings, whose mean halves the error;
    - `r_translate`: `r_equivariance` of one step for each parameter, the same wherever z is. Of classes without `base`
      it is one for each pair of classes;
    - `r_level_top1`: how often the prediction is nearer to the true z′ than to the rest of its orbit, but for z where
      there are other rows; `r_context_top1`: how often it is nearer to the true z′ than to the row of each other orbit
      of the fold with the nearest parameter (at most MOST_CONTEXTS). Tied ones share. `r_level_chance` and
      `r_context_chance` are the expectations under a random order;
    - `r_cosine`, `identity_cosine`: mean cosine with z′ of the prediction and of z (over the dimensions of embeddings
      as they come: the only numbers that depend on their origin); `r_mse`, `identity_mse`: mean squared error, in units
      of the mean variance of an embedding's coordinates.

    Those of P, None where parameters are strings. All are R² = 1 − Σ(P − P̂)²/Σ(P − mean in training)²:

    - `p`, from z and z′, or from one of them alone where that validates better; `p_ridge`, `p_kernel`, `p_slp`,
      `p_mlp`, `p_spread`, as above;
    - `p_start`, `p_end`, `p_difference`: from z alone, z′ alone, and z′ − z. With K levels, and all pairs of different
      ones, z alone reaches K/(2(K − 1)) in a perfect encoder: .667 of 4, .571 of 8;
    - `p_from_labels`: f(z′) − f(z), f reading the level of one clip; None with `base`, whose originals have none;
    - `p_gain` = 1 − SSE/min(SSE of `p_start`, of `p_end`);
    - `shuffled_p`: mean `p` where parameters are permuted, blocks of them among blocks, and rows within a block: over 5
      permutations, with slp or mlp over 1;

    and `pairs` (of more than MOST_PAIRS an even part), and `n`, rows in which a pair ends. With return_scores, `rows`:
    the numbers of these, and for each `scores`, `scores_p` and `scores_p_gain`: the linearised contribution of the
    pairs that end in it to `r_equivariance`, `p` and `p_gain`, which is exactly their mean (see `informativeness`).

    Sources: arXiv 2505.06224, section III, for the axes; scores against controls are ours.

    Raises ValueError when embeddings are not finite [n, dim], lengths differ, parameters are neither all numbers nor
    all strings or are all the same, an orbit has one row only, lies in two folds or has not one original, a class is in
    one block only, there are fewer than 3 folds or 5 blocks, a block lies in two folds, or a probe is unknown.

    >>> z, orbits = np.arange(40.0).reshape(20, 2) % 7, np.arange(20) // 2
    >>> result = equivariance(0 * z, orbits, np.arange(20) % 2, orbits % 5, orbits)
    >>> result["r_equivariance"], result["p"], result["r_level_top1"]
    (0.0, 0.0, 0.5)
    """
    raw = read_matrix("embeddings", embeddings)
    settings = _Settings(probe_names(probes), scaled, seed)
    block, block_names = read_blocks(blocks, len(raw))
    rotation = fold_rotation(folds, block, block_names)
    # The text of arXiv 2505.06224 foretells embeddings of length 1, and reads P from those that are as they come.
    data = read_pairs(raw if scaled else unit_rows(raw), orbits, parameters, base, rotation, seed)
    if len(data.labels):
        check_classes("parameters", data.labels, data.level.astype(np.int64), block, block_names, rotation)
    parts, starts = _fitted_starts(data, rotation, settings)
    foretold, scores = _foretold_numbers(data, _foretell(data, parts, starts, settings), settings)
    read: dict[str, Any] = {}
    scores_p = scores_p_gain = None
    if not len(data.labels):
        if not scaled:
            data = read_pairs(raw, orbits, parameters, base, rotation, seed)
            parts, starts = _fitted_starts(data, rotation, settings)
        shuffled = _shuffled_values(data, block, settings)
        read, scores_p, scores_p_gain = _read_numbers(data, *_read(data, parts, starts, shuffled, settings), settings)
    rows = np.unique(data.end)
    numbers = {**foretold, **read, "pairs": len(data.start), "n": len(rows)}
    result = {name: numbers.get(name) for name in MEASURES}
    if return_scores:
        lists = {"scores": scores, "scores_p": scores_p, "scores_p_gain": scores_p_gain, "rows": rows}
        result |= {name: None if values is None else values.tolist() for name, values in lists.items()}
    return result


Equivariance = metric_class(
    equivariance,
    [
        {"embeddings": "numbers", "orbits": orbit, "parameters": value, "folds": "number", "blocks": block}
        for orbit in ("text", "number")
        for value in ("text", "number")
        for block in ("text", "number")
    ],
    texts=(_DESCRIPTION, _CITATION, _INPUTS, ("https://arxiv.org/abs/2505.06224",)),
)


class _Fold:
    """The pairs that train, validate and test in one fold, and their features.

    Closed forms see coordinates in the span of the rows that train, and in one more column how far a row is from it:
    all distances from rows that train are as they were, so that predictions are the same, at less cost.

    Attributes:
        parts: numbers of the pairs that train, validate and test.
        x: coordinates of embeddings; `dim` is the number of dimensions that they stand for.
        outside: mean of |z′ − z|² outside of the span over the pairs that validate.
    """

    def __init__(self, data: Paired, rows: tuple[Ints, Ints, Ints]) -> None:
        self.data, self.dim = data, data.z.shape[1]
        part = np.empty(len(data.z), dtype=np.int64)
        for number, places in enumerate(rows):
            part[places] = number
        self.parts = [np.flatnonzero(part[data.start] == number) for number in range(3)]
        self._basis = np.linalg.qr(data.z[rows[0]].T)[0] if len(rows[0]) < self.dim else None
        self.x = self._coordinates(data.z)
        train, held, _ = self.parts
        moved = np.square(data.z[data.end[held]] - data.z[data.start[held]]).sum()
        self.outside = float(moved - np.square(self.steps(held)).sum()) / len(held)
        parameter, total = (float(x.var(axis=0).sum()) for x in (data.columns[train], self.x[data.start[train]]))
        self._weight = np.sqrt(total / parameter) if parameter > 0 else 1.0
        offset = self.x - self.x[rows[0]].mean(axis=0)
        _, axes = np.linalg.eigh(offset[rows[0]].T @ offset[rows[0]])
        self._components = offset @ axes[:, : -COMPONENTS - 1 : -1]

    def _coordinates(self, z: Floats) -> Floats:
        if self._basis is None:
            return z
        inside = z @ self._basis
        outside = np.square(z).sum(axis=1) - np.square(inside).sum(axis=1)
        return np.hstack([inside, np.sqrt(np.maximum(outside, 0.0))[:, None]])

    def both(self, pairs: Ints) -> Floats:
        """z and z′ side by side."""
        return np.hstack([self.x[self.data.start[pairs]], self.x[self.data.end[pairs]]])

    def difference(self, pairs: Ints) -> Floats:
        """The coordinates of z′ − z."""
        return self._coordinates(self.data.z[self.data.end[pairs]] - self.data.z[self.data.start[pairs]])

    def steps(self, pairs: Ints) -> Floats:
        """z′ − z within the span, which is all of it that can be foretold."""
        inside = self.x if self._basis is None else self.x[:, :-1]
        steps: Floats = inside[self.data.end[pairs]] - inside[self.data.start[pairs]]
        return steps

    def whole(self, steps: Floats) -> Floats:
        """Steps within the span in the dimensions of z."""
        return steps if self._basis is None else steps @ self._basis.T

    def weighted(self, pairs: Ints) -> Floats:
        """Features of the parameter, which together vary as much as those of z do in training."""
        return self.data.columns[pairs] * self._weight

    def products(self, pairs: Ints) -> Floats:
        """Products of P and P² with principal components of z; none where parameters are classes."""
        columns = [np.empty((len(pairs), 0))]
        for power in (self.data.values, np.square(self.data.values)) if len(self.data.values) else ():
            offset, scale = power[self.parts[0]].mean(), float(power[self.parts[0]].std()) or 1.0
            columns.append((power[pairs, None] - offset) / scale * self._components[self.data.start[pairs]])
        return np.hstack(columns)


# ----- what is measured
class _Trials:
    """Squared errors of all pairs [states, pairs] of each probe, and as "best" of that which validates best in a fold.

    What is tested in a fold is told by its pairs.
    """

    def __init__(self, names: Sequence[str], states: int, count: int) -> None:
        self.errors = {name: np.zeros((states, count)) for name in (*names, "best")}
        self._least: dict[int, float] = {}

    def enter(self, name: str, pairs: Ints, errors: Floats, loss: float) -> bool:
        """Enter errors [states, pairs] of a probe on the pairs of a fold; whether it is the best of it so far."""
        self.errors[name][:, pairs] = errors
        return self.choose(pairs, errors, loss)

    def choose(self, pairs: Ints, errors: Floats, loss: float) -> bool:
        """Take errors for the best of a fold where they validate better than all before; whether they do."""
        best = loss < self._least.get(int(pairs[0]), np.inf)
        if best:
            self._least[int(pairs[0])] = loss
            self.errors["best"][:, pairs] = errors
        return best


@dataclass(frozen=True)
class _Settings:
    """Names of the probes, and what `slp` and `mlp` are told."""

    probes: tuple[str, ...]
    scaled: bool
    seed: int

    @property
    def states(self) -> int:
        """Random states of which scores are means."""
        return STATES if {"slp", "mlp"} & set(self.probes) else 1


def _means_by(codes: Ints, values: Floats) -> Floats:
    """Means of the rows of values [m, targets] with each code, [codes, targets]."""
    order = np.argsort(codes, kind="stable")
    places = np.searchsorted(codes[order], np.arange(int(codes.max()) + 1))
    means: Floats = np.add.reduceat(values[order], places, axis=0) / np.bincount(codes)[:, None]
    return means


@dataclass(frozen=True)
class _Starts:
    """What a probe foretells of tested pairs from z alone, each with its loss on the pairs that validate.

    Attributes:
        start, end: numbers of the rows of each pair [m] among those where pairs start; those of `end` are right where
            there are no originals.
        steps: z′ − z within the span, of pairs that start in a row [rows, coordinates].
        values: P of pairs that start in a row [rows].
        levels: the level of a row [rows].
    """

    start: Ints
    end: Ints
    steps: tuple[Floats, float]
    values: tuple[Floats, float]
    levels: tuple[Floats, float]


def _from_start(fold: _Fold, name: str) -> _Starts:
    """Fit a closed form to z alone, with zeros for values where parameters are classes.

    To fit the pairs' targets to the rows where they start is to fit the mean target of each row: it costs much less.
    """
    data = fold.data
    rows, targets, rest = [], [], []
    for pairs in fold.parts:
        start, codes = np.unique(data.start[pairs], return_inverse=True)
        values = data.values[pairs] if len(data.values) else np.zeros(len(pairs))
        wanted = np.hstack([fold.steps(pairs), values[:, None]])
        means = _means_by(codes, wanted)
        within = np.square(wanted - means[codes])
        rows.append((start, codes))
        targets.append(np.hstack([means, data.level[start][:, None]]))
        rest.append((float(within[:, :-1].sum(axis=1).mean()), float(within[:, -1].mean())))
    count = targets[0].shape[1] - 2
    train, validation = ((fold.x[rows[k][0]], targets[k]) for k in (0, 1))
    (steps, values, levels), losses = fit_groups(
        name, train, validation, fold.x[rows[2][0]], (count, 1, 1), True, 0, fold.dim
    )
    start, codes = rows[2]
    return _Starts(
        codes,
        np.minimum(np.searchsorted(start, data.end[fold.parts[2]]), len(start) - 1),
        (steps[0], float(losses[0]) * count + rest[1][0] + fold.outside),
        (values[0, :, 0], float(losses[1]) + rest[1][1]),
        (levels[0, :, 0], float(losses[2])),
    )


def _fitted_starts(
    data: Paired, rotation: Sequence[tuple[Ints, Ints, Ints]], settings: _Settings
) -> tuple[list[_Fold], list[dict[str, _Starts]]]:
    """The folds, and what each closed form foretells in each from z alone."""
    parts = [_Fold(data, rows) for rows in rotation]
    closed = [name for name in settings.probes if name not in ("slp", "mlp")]
    return parts, [{name: _from_start(fold, name) for name in closed} for fold in parts]


def _closed_steps(fold: _Fold, name: str) -> tuple[Floats, float]:
    """What a closed form that knows the parameter foretells of z′ − z of tested pairs, [m, dim], and its loss."""

    def features(pairs: Ints) -> Floats:
        columns = [fold.x[fold.data.start[pairs]], fold.weighted(pairs)]
        # A kernel multiplies by itself.
        return np.hstack([*columns, fold.products(pairs)] if name == "ridge" else columns)

    train, held = ((features(pairs), fold.steps(pairs)) for pairs in fold.parts[:2])
    tested, count = features(fold.parts[2]), train[1].shape[1]
    dim = fold.dim + train[0].shape[1] - fold.x.shape[1]
    (steps,), losses = fit_groups(name, train, held, tested, (count,), True, 0, dim)
    return fold.whole(steps[0]), float(losses[0]) * count + fold.outside


def _trained_steps(fold: _Fold, name: str, knows: bool, settings: _Settings) -> tuple[Floats, float]:
    """The same [states, m, dim] of `slp` or `mlp`, which knows the parameter or not."""
    if not settings.scaled:
        return _paper_steps(fold, name, knows, settings)
    data = fold.data

    def part(pairs: Ints) -> Part:
        x, y = data.z[data.start[pairs]], data.z[data.end[pairs]]
        return np.hstack([x, fold.weighted(pairs)]) if knows else x, y - x

    train, held, (tested, _) = (part(pairs) for pairs in fold.parts)
    (steps,), losses = fit_groups(name, train, held, tested, (fold.dim,), True, settings.seed)
    return steps, float(losses[0]) * fold.dim


def _paper_steps(fold: _Fold, name: str, knows: bool, settings: _Settings) -> tuple[Floats, float]:
    """The same by the probes of arXiv 2505.06224: from z of length 1 and P in 0…1, or the class, to the direction of
    z′. What they foretell is taken at length 1, where |z′ − g|² is 2·(1 − cosine)."""
    import torch

    data = fold.data
    values = data.values[:, None] - data.values.min() if len(data.values) else data.columns
    columns = values.shape[1] if knows else 0

    def part(pairs: Ints) -> tuple[Any, Any]:
        inputs = np.hstack([data.raw[data.start[pairs]], values[pairs, :columns]])
        return (
            torch.tensor(inputs, dtype=torch.float32),
            torch.tensor(data.raw[data.end[pairs]], dtype=torch.float32),
        )

    train, held, (tested, _) = (part(pairs) for pairs in fold.parts)
    ends, losses = [], []
    for state in range(STATES):
        seed = settings.seed + state
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            network = _foretelling(fold.dim, columns, R_HIDDEN if name == "mlp" else ())
        losses.append(descend(network, _cosine_loss, train, held, seed))
        with torch.no_grad():
            ends.append(unit_rows(network(tested).double().numpy()))
    steps = (np.stack(ends) - data.raw[data.start[fold.parts[2]]]) / data.unit
    return steps, 2 * float(np.mean(losses)) / data.unit**2


def _foretelling(dim: int, columns: int, hidden: Sequence[int]) -> Any:
    """The R probe of arXiv 2505.06224 as a module of torch: z ⊕ P [m, dim + columns] to z′ [m, dim].

    A linear layer makes PROJECTED values of P, and linear layers with ReLU between them foretell z′ from z and these;
    without columns of P, from z alone.
    """
    import torch

    class Foretelling(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.parameter = torch.nn.Linear(columns, PROJECTED) if columns else None
            self.probe = linear_layers((dim + PROJECTED if columns else dim, *hidden, dim))

        def forward(self, x: Any) -> Any:
            if self.parameter is not None:
                x = torch.cat([x[:, :dim], self.parameter(x[:, dim:])], dim=1)
            return self.probe(x)

    return Foretelling()


def _cosine_loss(foretold: Any, wanted: Any) -> Any:
    """1 − the mean cosine of the rows of two tensors [m, dim]."""
    import torch

    return 1 - torch.nn.functional.cosine_similarity(foretold, wanted, dim=-1).mean()


@dataclass(frozen=True)
class _Foretold:
    """Squared errors of z′ over all pairs, of probes that know the parameter and of those that do not.

    Attributes:
        controls: [pairs], squared errors and other numbers of what is no probe, or is of the best one.
    """

    knowing: _Trials
    blind: _Trials
    controls: dict[str, Floats]


_CONTROLS = (
    "still", "mean", "translate", "cosine", "identity_cosine", "level", "level_chance", "context", "context_chance"
)  # fmt: skip


def _foretell(
    data: Paired, folds: Sequence[_Fold], starts: Sequence[dict[str, _Starts]], settings: _Settings
) -> _Foretold:
    """Foretell the steps of all pairs, each in the fold that tests it."""
    count = len(data.start)
    knowing, blind = (_Trials(settings.probes, settings.states, count) for _ in range(2))
    controls = {name: np.zeros(count) for name in _CONTROLS}
    for fold, start in zip(folds, starts, strict=True):
        tested = fold.parts[2]
        steps = data.z[data.end[tested]] - data.z[data.start[tested]]
        best = steps[None]
        for name in settings.probes:
            better = _tried_steps(fold, name, start.get(name), steps, (knowing, blind), settings)
            best = best if better is None else better
        for name, values in {**_plain_steps(fold, steps), **_places(fold, best)}.items():
            controls[name][tested] = values
    return _Foretold(knowing, blind, controls)


def _tried_steps(
    fold: _Fold,
    name: str,
    start: _Starts | None,
    steps: Floats,
    trials: tuple[_Trials, _Trials],
    settings: _Settings,
) -> Floats | None:
    """Enter the errors of a probe that knows the parameter and of one that does not into their trials.

    Returns what is foretold of tested steps, [states, m, dim], where that validates better than all before.
    """
    tested, (knowing, blind), best = fold.parts[2], trials, None
    if start is None:
        informed, loss = _trained_steps(fold, name, True, settings)
        uninformed, blind_loss = _trained_steps(fold, name, False, settings)
    else:
        predictions, loss = _closed_steps(fold, name)
        means, blind_loss = start.steps
        informed, uninformed = predictions[None], fold.whole(means)[None, start.start]
    if knowing.enter(name, tested, np.square(informed - steps).sum(axis=2), loss):
        best = informed
    errors = np.square(uninformed - steps).sum(axis=2)
    blind.enter(name, tested, errors, blind_loss)
    # One penalty serves z and the features of the parameter: what learns from z cannot but fit noise to these.
    if knowing.choose(tested, errors, blind_loss):
        best = uninformed
    return best


def _plain_steps(fold: _Fold, steps: Floats) -> dict[str, Floats]:
    """Squared errors of steps [m, dim] that no probe foretells: of none, of the mean one, of one for each parameter."""
    data, (train, _, tested) = fold.data, fold.parts
    trained = fold.steps(train)
    mean = trained.mean(axis=0)
    if len(data.kinds):
        kinds, codes = np.unique(data.kinds[train], return_inverse=True)
        means, places = _means_by(codes, trained), np.searchsorted(kinds, data.kinds[tested])
        places = np.minimum(places, len(kinds) - 1)
        # Of what was not seen in training the mean step.
        translated = np.where((kinds[places] == data.kinds[tested])[:, None], means[places], mean)
    else:
        columns = np.hstack([np.ones((len(data.columns), 1)), data.columns])
        translated = columns[tested] @ np.linalg.lstsq(columns[train], trained)[0]
    return {
        "still": np.square(steps).sum(axis=1),
        "mean": np.square(steps - fold.whole(mean)).sum(axis=1),
        "translate": np.square(steps - fold.whole(translated)).sum(axis=1),
    }


def _places(fold: _Fold, steps: Floats) -> dict[str, Floats]:
    """Where predictions of z′ − z [states, m, dim] lead: cosines with z′, and whether z′ is the nearest."""
    data, tested = fold.data, fold.parts[2]
    start, end = data.start[tested], data.end[tested]
    target, still = unit_rows(data.raw[end]), unit_rows(data.raw[start])
    places = {
        "cosine": [row_cosines(unit_rows(data.raw[start] + data.unit * step), target) for step in steps],
        "identity_cosine": [row_cosines(still, target)],
    }
    for step in steps:
        predicted = data.z[start] + step
        for name, (nearest, chance) in {
            "level": _nearest_levels(data, start, end, predicted),
            "context": _nearest_contexts(data, start, end, predicted),
        }.items():
            places.setdefault(name, []).append(nearest)
            places[f"{name}_chance"] = [chance]
    return {name: np.mean(values, axis=0) for name, values in places.items()}


def _nearest_levels(data: Paired, start: Ints, end: Ints, predicted: Floats) -> tuple[Floats, Floats]:
    """Of each pair whether the true end is the nearest of its orbit, shared among tied ones, and the chance of it.

    The start is none of the candidates where there are others: a prediction that stays there would never be right.
    """
    nearest, chance = np.empty(len(start)), np.empty(len(start))
    place = np.argsort(data.orbit, kind="stable")
    first = np.searchsorted(data.orbit[place], np.arange(int(data.orbit.max()) + 2))
    order = np.argsort(data.orbit[start], kind="stable")
    for pairs in np.split(order, np.flatnonzero(np.diff(data.orbit[start][order])) + 1):
        orbit = data.orbit[start[pairs[0]]]
        rows = place[first[orbit] : first[orbit + 1]]
        distances, rounding = _distances_to(predicted[pairs], data.z[rows])
        if len(rows) > 2:
            distances[start[pairs][:, None] == rows] = np.inf
        truth = distances[end[pairs][:, None] == rows][:, None]
        nearest[pairs] = _nearest_shares(distances, truth, rounding)
        chance[pairs] = 1 / (len(rows) - (len(rows) > 2))
    return nearest, chance


def _nearest_contexts(data: Paired, start: Ints, end: Ints, predicted: Floats) -> tuple[Floats, Floats]:
    """The same among the rows of orbits, of each the row whose parameter is nearest to that of the true end."""
    orbits = np.unique(data.orbit[end])
    orbits = orbits[np.linspace(0, len(orbits) - 1, min(len(orbits), MOST_CONTEXTS)).astype(int)]
    rows = np.unique(end[np.isin(data.orbit[end], orbits)])
    rows = rows[np.argsort(data.orbit[rows], kind="stable")]
    first = np.flatnonzero(np.diff(data.orbit[rows], prepend=-1))
    gaps = np.abs(data.level[end][:, None] - data.level[rows])
    least = np.minimum.reduceat(gaps, first, axis=1)
    if len(data.labels):
        least = np.zeros_like(least)
    distances, rounding = _distances_to(predicted, data.z[rows])
    distances[gaps > np.repeat(least, np.diff(first, append=len(rows)), axis=1)] = np.inf
    distances[data.orbit[end][:, None] == data.orbit[rows]] = np.inf
    truth = np.square(predicted - data.z[end]).sum(axis=1)[:, None]
    candidates = np.hstack([truth, np.minimum.reduceat(distances, first, axis=1)])
    return _nearest_shares(candidates, truth, rounding), 1 / np.isfinite(candidates).sum(axis=1)


def _distances_to(predicted: Floats, rows: Floats) -> tuple[Floats, Floats]:
    """Squared distances [m, rows], and how much of them may be rounding [m, 1]."""
    sizes = np.square(predicted).sum(axis=1)[:, None] + np.square(rows).sum(axis=1)
    return sizes - 2 * predicted @ rows.T, TIE * sizes.max(axis=1, keepdims=True)


def _nearest_shares(distances: Floats, truth: Floats, rounding: Floats) -> Floats:
    """Whether the distance to the true end [m, 1], one of all, is the least; t tied ones are by 1/t each."""
    nearer = (distances < truth - rounding).sum(axis=1)
    tied = (distances <= truth + rounding).sum(axis=1) - nearer
    shares: Floats = (nearer == 0) / tied
    return shares


def _read(
    data: Paired,
    folds: Sequence[_Fold],
    starts: Sequence[dict[str, _Starts]],
    shuffled: Sequence[Floats],
    settings: _Settings,
) -> tuple[dict[str, _Trials], list[Floats]]:
    """Read P of all pairs, each in the fold that tests it: errors by what is read from, and those of the training mean.

    `shuffled` are P of permuted parameters: what is read from both is also tried on these, as "shuffled 1" and so on,
    whose errors of the mean follow those of P.
    """
    count, targets = len(data.start), np.stack([data.values, *shuffled], axis=1)
    kinds = ["both", "start", "end", "difference", "labels", *(f"shuffled {k + 1}" for k in range(len(shuffled)))]
    trials = {kind: _Trials(settings.probes, settings.states, count) for kind in kinds}
    references = [np.zeros(count) for _ in range(targets.shape[1])]
    for fold, start in zip(folds, starts, strict=True):
        train, _, tested = fold.parts
        y, means = targets[tested], targets[train].mean(axis=0)
        for k, reference in enumerate(references):
            reference[tested] = np.square(y[:, k] - means[k])
        for name in settings.probes:
            for kind, (values, loss) in _values_read(fold, name, targets, start.get(name), settings).items():
                k = kinds.index(kind) - 4 if kind.startswith("shuffled") else 0
                errors = np.square(values - y[:, k])
                trials[kind].enter(name, tested, errors, loss)
                if kind in ("start", "end"):
                    # What reads from both embeddings may leave one alone.
                    trials["both"].choose(tested, errors, loss)
    return trials, references


def _values_read(
    fold: _Fold, name: str, targets: Floats, start: _Starts | None, settings: _Settings
) -> dict[str, tuple[Floats, float]]:
    """Predictions [states, m] of P of tested pairs and their losses, by what the probe reads from."""
    data = fold.data
    if start is None:
        inputs = _trained_inputs(fold, settings.scaled)
        y = targets if settings.scaled else targets - data.values.min()
    else:
        inputs, y = {"both": (fold.both, 2 * fold.dim), "difference": (fold.difference, fold.dim)}, targets
        if data.originals is not None:
            inputs["end"] = (lambda pairs: fold.x[data.end[pairs]], fold.dim)
    offset = y[0, 0] - targets[0, 0]
    values: dict[str, tuple[Floats, float]] = {}
    for kind, (features, dim) in inputs.items():
        wanted = y if kind == "both" else y[:, :1]
        train, held = ((features(pairs), wanted[pairs]) for pairs in fold.parts[:2])
        groups = (1,) * wanted.shape[1]
        parts, losses = fit_groups(
            name, train, held, features(fold.parts[2]), groups, settings.scaled, settings.seed, dim
        )
        values[kind] = (parts[0][:, :, 0] - offset, float(losses[0]))
        for k, part in enumerate(parts[1:], 1):
            values[f"shuffled {k}"] = (part[:, :, 0] - offset, float(losses[k]))
    if start is not None:
        values["start"] = (start.values[0][None, start.start], start.values[1])
        if data.originals is None:
            # P of z′ and z is minus that of z and z′.
            values["end"] = (-start.values[0][None, start.end], start.values[1])
            values["labels"] = ((start.levels[0][start.end] - start.levels[0][start.start])[None], start.levels[1])
    elif data.originals is None:
        values["labels"] = _trained_levels(fold, name, settings)
    return values


PairFeatures = tuple[Callable[[Ints], Floats], int]
"""Features of pairs, and the number of dimensions that they stand for."""


def _trained_inputs(fold: _Fold, scaled: bool) -> dict[str, PairFeatures]:
    """What `slp` and `mlp` read P from."""
    data = fold.data
    z = data.z if scaled else data.raw
    return {
        "both": (lambda pairs: np.hstack([z[data.start[pairs]], z[data.end[pairs]]]), 0),
        "start": (lambda pairs: z[data.start[pairs]], 0),
        "end": (lambda pairs: z[data.end[pairs]], 0),
        "difference": (lambda pairs: z[data.end[pairs]] - z[data.start[pairs]], 0),
    }


def _trained_levels(fold: _Fold, name: str, settings: _Settings) -> tuple[Floats, float]:
    """P of tested pairs as the difference of the levels that `slp` or `mlp` reads from single embeddings."""
    data = fold.data
    z = data.z if settings.scaled else data.raw
    level = data.level[:, None] - (0.0 if settings.scaled else data.level.min())
    train, held, tested = (np.unique(data.start[pairs]) for pairs in fold.parts)
    first, second = ((z[rows], level[rows]) for rows in (train, held))
    (levels,), losses = fit_groups(name, first, second, z[tested], (1,), settings.scaled, settings.seed)
    start, end = (np.searchsorted(tested, rows[fold.parts[2]]) for rows in (data.start, data.end))
    return (levels[:, end] - levels[:, start])[:, :, 0], float(losses[0])


# ----- the numbers
def _ends(data: Paired, errors: Floats) -> Floats:
    """Sums of errors [pairs] over the pairs that end in a row, for the rows in which one ends."""
    sums: Floats = np.bincount(data.end, errors).astype(np.float64)[np.unique(data.end)]
    return sums


def _reference(candidates: Sequence[Floats], least: float) -> Floats:
    """Those errors [pairs] whose mean is the least; zeros where that is at most `least`, so that nothing is left."""
    means = [float(errors.mean()) for errors in candidates]
    best = candidates[int(np.argmin(means))]
    return best if min(means) > least else np.zeros_like(best)


def _foretold_numbers(data: Paired, foretold: _Foretold, settings: _Settings) -> tuple[dict[str, Any], Floats]:
    """The numbers of R, and the scores of the rows."""
    controls, dim = foretold.controls, data.z.shape[1]
    # Where no step is longer than rounding makes it there is nothing to foretell.
    still = _reference([controls["still"]], ROUNDING**2 * dim)
    references = {
        name: _reference([still, controls["mean"], errors.mean(axis=0)], ROUNDING * float(still.mean()))
        for name, errors in foretold.blind.errors.items()
    }
    best, reference = foretold.knowing.errors["best"], references["best"]
    scores = ratio_scores(_ends(data, best.mean(axis=0)), _ends(data, reference))
    by_probe = {name: explained_share(foretold.knowing.errors[name], references[name]) for name in settings.probes}
    return {
        "r_equivariance": explained_share(best, reference),
        **{f"r_{name}": by_probe.get(name) for name in PROBES},
        "spread": state_spread(best, reference) if settings.states > 1 else None,
        "r_explained": explained_share(best, still),
        "r_translate": explained_share(controls["translate"], reference),
        "r_level_top1": float(controls["level"].mean()),
        "r_level_chance": float(controls["level_chance"].mean()),
        "r_context_top1": float(controls["context"].mean()),
        "r_context_chance": float(controls["context_chance"].mean()),
        "r_cosine": float(controls["cosine"].mean()),
        "identity_cosine": float(controls["identity_cosine"].mean()),
        "r_mse": float(best.mean()) / dim,
        "identity_mse": float(still.mean()) / dim,
    }, scores


def _read_numbers(
    data: Paired, trials: dict[str, _Trials], references: Sequence[Floats], settings: _Settings
) -> tuple[dict[str, Any], Floats, Floats]:
    """The numbers of P, and the scores of the rows in `p` and in `p_gain`."""
    best = {kind: trial.errors["best"] for kind, trial in trials.items()}
    reference = references[0]
    scores = ratio_scores(_ends(data, best["both"].mean(axis=0)), _ends(data, reference))
    alone = _reference([best[kind].mean(axis=0) for kind in ("start", "end")], ROUNDING * float(reference.mean()))
    gains = ratio_scores(_ends(data, best["both"].mean(axis=0)), _ends(data, alone))
    by_probe = {name: explained_share(trials["both"].errors[name], reference) for name in settings.probes}
    shuffled = [explained_share(best[f"shuffled {k}"], references[k]) for k in range(1, len(references))]
    return (
        {
            "p": explained_share(best["both"], reference),
            **{f"p_{name}": by_probe.get(name) for name in PROBES},
            "p_spread": state_spread(best["both"], reference) if settings.states > 1 else None,
            "p_start": explained_share(best["start"], reference),
            "p_end": explained_share(best["end"], reference),
            "p_difference": explained_share(best["difference"], reference),
            "p_from_labels": None if data.originals is not None else explained_share(best["labels"], reference),
            "p_gain": explained_share(best["both"], alone),
            "shuffled_p": float(np.mean(shuffled)),
        },
        scores,
        gains,
    )


def _shuffled_values(data: Paired, block: Ints, settings: _Settings) -> list[Floats]:
    """P of all pairs where parameters are permuted among blocks."""
    rows = np.arange(len(block)) if data.originals is None else np.flatnonzero(~data.originals)
    values = []
    for order in block_permutations(block[rows], SHUFFLES if settings.states == 1 else 1, settings.seed):
        level = data.level.copy()
        level[rows] = level[rows[order]]
        values.append(pair_changes(level, data.start, data.end, data.originals))
    return values


VERSION = 2
"""It rises with every change of code or constants that can change a number."""

# Read without importing the module, so it is one literal; ±1e15 stands for "no bound".
MEASURES = {
    "r_equivariance": {
        "heading": "Equivariance",
        "meaning": "R: what knowing the parameter adds to foretelling the changed embedding, over what is blind to it",
        "range": (-1e15, 1.0),
        "column": "score",
        "outside": (
            "Scores of single samples can lie above 1: they are contributions to a "
            "ratio, and a sample that is hard to foretell raises its denominator."
        ),
    },
    "r_ridge": {
        "heading": "R ridge",
        "meaning": "R of ridge regression alone",
        "range": (-1e15, 1.0),
        "shown": False,
    },
    "r_kernel": {
        "heading": "R kernel",
        "meaning": "R of kernel ridge regression alone",
        "range": (-1e15, 1.0),
        "shown": False,
    },
    "r_slp": {
        "heading": "R SLP",
        "meaning": "R of a linear layer that is trained by gradient descent",
        "range": (-1e15, 1.0),
        "fitted": True,
        "shown": False,
    },
    "r_mlp": {
        "heading": "R MLP",
        "meaning": "R of a network of two hidden layers that is trained by gradient descent",
        "range": (-1e15, 1.0),
        "fitted": True,
        "shown": False,
    },
    "spread": {
        "heading": "R spread",
        "meaning": "standard deviation of R over random states of probes that are trained by gradient descent",
        "digits": 4,
        "range": (0.0, 1e15),
        "fitted": True,
        "shown": False,
    },
    "r_explained": {
        "heading": "R explained",
        "meaning": "share of the squared step from z to z′ that is foretold; half of it for random embeddings",
        "range": (-1e15, 1.0),
    },
    "r_translate": {
        "heading": "R translation",
        "meaning": "R of one and the same step for each parameter, wherever z is",
        "range": (-1e15, 1.0),
    },
    "r_level_top1": {
        "heading": "R level top-1",
        "meaning": "how often the prediction is nearer to the true z′ than to the other levels of its orbit",
        "range": (0.0, 1.0),
        "null": "r_level_chance",
    },
    "r_level_chance": {
        "heading": "R level chance",
        "meaning": "level top-1 of a random order",
        "range": (0.0, 1.0),
        "shown": False,
    },
    "r_context_top1": {
        "heading": "R context top-1",
        "meaning": "how often the prediction is nearer to the true z′ than to the same level in other contexts",
        "range": (0.0, 1.0),
        "null": "r_context_chance",
    },
    "r_context_chance": {
        "heading": "R context chance",
        "meaning": "context top-1 of a random order",
        "range": (0.0, 1.0),
        "shown": False,
    },
    "r_cosine": {
        "heading": "R cosine",
        "meaning": "mean cosine of the prediction and z′",
        "null": "identity_cosine",
        "shown": False,
    },
    "identity_cosine": {
        "heading": "identity cosine",
        "meaning": "mean cosine of z and z′: what is reached without any prediction",
        "shown": False,
    },
    "r_mse": {
        "heading": "R MSE",
        "meaning": "mean squared error of the prediction, in mean variances of the embedding's coordinates",
        "range": (0.0, 1e15),
        "shown": False,
    },
    "identity_mse": {
        "heading": "identity MSE",
        "meaning": "the same error of z as the prediction of z′",
        "range": (0.0, 1e15),
        "shown": False,
    },
    "p": {
        "heading": "P",
        "meaning": "R² of the parameter as read from z and z′",
        "range": (-1e15, 1.0),
        "null": "shuffled_p",
        "column": "score_p",
        "outside": "Scores of single samples can lie above 1: they are contributions to a ratio.",
    },
    "p_ridge": {
        "heading": "P ridge",
        "meaning": "P of ridge regression alone",
        "range": (-1e15, 1.0),
        "shown": False,
    },
    "p_kernel": {
        "heading": "P kernel",
        "meaning": "P of kernel ridge regression alone",
        "range": (-1e15, 1.0),
        "shown": False,
    },
    "p_slp": {
        "heading": "P SLP",
        "meaning": "P of a linear layer that is trained by gradient descent",
        "range": (-1e15, 1.0),
        "fitted": True,
        "shown": False,
    },
    "p_mlp": {
        "heading": "P MLP",
        "meaning": "P of a network of two hidden layers that is trained by gradient descent",
        "range": (-1e15, 1.0),
        "fitted": True,
        "shown": False,
    },
    "p_spread": {
        "heading": "P spread",
        "meaning": "standard deviation of P over random states of probes that are trained by gradient descent",
        "digits": 4,
        "range": (0.0, 1e15),
        "fitted": True,
        "shown": False,
    },
    "p_start": {
        "heading": "P from z",
        "meaning": "R² of the parameter as read from z alone",
        "range": (-1e15, 1.0),
    },
    "p_end": {
        "heading": "P from z′",
        "meaning": "R² of the parameter as read from z′ alone",
        "range": (-1e15, 1.0),
        "shown": False,
    },
    "p_difference": {
        "heading": "P from z′ − z",
        "meaning": "R² of the parameter as read from the step z′ − z",
        "range": (-1e15, 1.0),
        "shown": False,
    },
    "p_from_labels": {
        "heading": "P from levels",
        "meaning": "R² of the parameter as the difference of the levels that are read from z′ and from z, each alone",
        "range": (-1e15, 1.0),
    },
    "p_gain": {
        "heading": "P gain",
        "meaning": "what reading the parameter from both embeddings adds to reading it from the better one alone",
        "range": (-1e15, 1.0),
        "column": "score_p_gain",
        "outside": "Scores of single samples can lie above 1: they are contributions to a ratio.",
    },
    "shuffled_p": {
        "heading": "P shuffled",
        "meaning": "P of parameters that are permuted among blocks of samples",
        "range": (-1e15, 1.0),
        "shown": False,
    },
    "pairs": {
        "heading": "pairs",
        "meaning": "number of pairs, each of which is tested once",
        "digits": 0,
        "range": (1.0, 1e15),
        "shown": False,
    },
    "n": {
        "heading": "n",
        "meaning": "number of samples in which a pair ends",
        "digits": 0,
        "range": (1.0, 1e15),
        "shown": False,
    },
}
"""What each number of `equivariance` is: fields by name, the score first."""

PAGE = {
    "introduction": """\
# Equivariance: does the embedding move with the sound?

Clips of one orbit differ in one parameter and in nothing else. The score is what knowing the parameter adds to
foretelling the embedding z′ of one clip from z of another (R of
[arXiv 2505.06224](https://arxiv.org/abs/2505.06224)), over the best prediction that is blind to it. Beside it stands P:
how well the parameter is read from both.

Paste embeddings, a line for each clip, numbers separated by commas or spaces. Beside them, line by line, go the orbit,
the parameter, the fold in which the clip is tested (an integer), and its block: what it shares with other clips.
""",
    "warning": """\
**A cosine near 1 is no evidence.** Untrained networks hardly move, so that z itself foretells z′: see
*identity_cosine*. Nor is a high P: of K levels the first clip alone tells K/(2(K − 1)) of the difference, and two
readings of single levels tell the rest. So read *r_equivariance*, and *p_gain* beside *p_from_labels*.
""",
    "inputs": {
        "embeddings": "Embeddings, a clip a line",
        "orbits": "Orbits, a clip a line: words or integers",
        "parameters": "Parameters, a clip a line: all numbers, or words",
        "folds": "Folds, a clip a line: integers, at least 3 different",
        "blocks": "Blocks, a clip a line: words or integers, no block in two folds",
    },
    # So that a page with the largest input answers within minutes on two processors.
    "limits": {"columns": 512},
}
"""What the metric's page says, and how many columns of a matrix it takes."""


def example() -> dict[str, Any]:
    """Return arguments of `equivariance`: a noisy encoder of 20 contexts, each at four levels of one parameter."""
    rng = np.random.default_rng(0)
    orbits, parameters = np.repeat(np.arange(20), 4), np.tile([0.0, 2.0, 4.0, 6.0], 20)
    context, direction = rng.normal(size=(20, 6)), rng.normal(size=6)
    z = context[orbits] + parameters[:, None] / 4 * direction + rng.normal(0, 0.4, (80, 6))
    names = [f"context-{orbit}" for orbit in orbits]
    return {"embeddings": z.round(3), "orbits": names, "parameters": parameters, "folds": orbits % 5, "blocks": orbits}
