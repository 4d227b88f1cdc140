"""R-equivariance: predicting the step between two embeddings of an orbit from the first and the parameter.

Probes predict with or without the parameter. They are reported with steps that need no probe: no step, the mean step,
and one step for each parameter.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from .arrays import TIE, Floats, Ints, nearest_shares, row_cosines, unit_rows
from .orbits import Paired, PairFold, ProbeSettings, Starts, Trials, means_by
from .probing import STATES, Part, descend, fit_groups, linear_layers

R_HIDDEN, PROJECTED = (512, 512), 32
"""R as in arXiv 2505.06224: hidden layers of the MLP, and size of the linear projection of the parameter."""

MOST_CONTEXTS = 100
"""Limit on the orbits searched for the true one, drawn evenly from a fold."""


def _closed_steps(fold: PairFold, name: str) -> tuple[Floats, float]:
    """Return predictions of z′ − z of test pairs by a closed form with the parameter, [m, dim], and its loss."""

    def features(pairs: Ints) -> Floats:
        columns = [fold.x[fold.data.start[pairs]], fold.weighted(pairs)]
        # A kernel includes products of features.
        return np.hstack([*columns, fold.products(pairs)] if name == "ridge" else columns)

    train, held = ((features(pairs), fold.steps(pairs)) for pairs in fold.parts[:2])
    tested, count = features(fold.parts[2]), train[1].shape[1]
    dim = fold.dim + train[0].shape[1] - fold.x.shape[1]
    (steps,), losses = fit_groups(name, train, held, tested, (count,), True, 0, dim)
    return fold.whole(steps[0]), float(losses[0]) * count + fold.outside


def _trained_steps(fold: PairFold, name: str, knows: bool, settings: ProbeSettings) -> tuple[Floats, float]:
    """Return predictions [states, m, dim] by `slp` or `mlp`, with or without the parameter, and their loss."""
    if not settings.scaled:
        return _paper_steps(fold, name, knows, settings)
    data = fold.data

    def part(pairs: Ints) -> Part:
        x, y = data.z[data.start[pairs]], data.z[data.end[pairs]]
        return np.hstack([x, fold.weighted(pairs)]) if knows else x, y - x

    train, held, (tested, _) = (part(pairs) for pairs in fold.parts)
    (steps,), losses = fit_groups(name, train, held, tested, (fold.dim,), True, settings.seed)
    return steps, float(losses[0]) * fold.dim


def _paper_steps(fold: PairFold, name: str, knows: bool, settings: ProbeSettings) -> tuple[Floats, float]:
    """Return predictions of the direction of z′ by the probes of arXiv 2505.06224.

    They use z of length 1 and P in 0…1, or the class. Predictions g are scaled to length 1, so that |z′ − g|² is 2·(1 −
    cosine).
    """
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
    """Return the R probe of arXiv 2505.06224 as a torch module, from z ⊕ P [m, dim + columns] to z′ [m, dim].

    A linear layer maps P to PROJECTED values, and linear layers with ReLU between them predict z′ from z and these;
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
    """Return 1 − the mean cosine of the rows of two tensors [m, dim]."""
    import torch

    return 1 - torch.nn.functional.cosine_similarity(foretold, wanted, dim=-1).mean()


@dataclass(frozen=True)
class Foretold:
    """Squared errors of z′ over all pairs, for probes with and without the parameter.

    Attributes:
        controls: [pairs], squared errors of the steps without a probe, and other numbers of the best probe.
    """

    knowing: Trials
    blind: Trials
    controls: dict[str, Floats]


_CONTROLS = (
    "still", "mean", "translate", "cosine", "identity_cosine", "level", "level_chance", "context", "context_chance"
)  # fmt: skip


def foretell_steps(
    data: Paired, folds: Sequence[PairFold], starts: Sequence[dict[str, Starts]], settings: ProbeSettings
) -> Foretold:
    """Predict the steps of all pairs, each in the fold that tests it; return the errors."""
    count = len(data.start)
    knowing, blind = (Trials(settings.probes, settings.states, count) for _ in range(2))
    controls = {name: np.zeros(count) for name in _CONTROLS}
    for fold, start in zip(folds, starts, strict=True):
        tested = fold.parts[2]
        steps = data.z[data.end[tested]] - data.z[data.start[tested]]
        best = steps[None]
        for name in settings.probes:
            if name in start:
                predictions, loss = _closed_steps(fold, name)
                means, blind_loss = start[name].steps
                informed, uninformed = predictions[None], fold.whole(means)[None, start[name].start]
            else:
                informed, loss = _trained_steps(fold, name, True, settings)
                uninformed, blind_loss = _trained_steps(fold, name, False, settings)
            if knowing.enter(name, tested, np.square(informed - steps).sum(axis=2), loss):
                best = informed
            errors = np.square(uninformed - steps).sum(axis=2)
            blind.enter(name, tested, errors, blind_loss)
            # One penalty serves z and the features of the parameter: a probe that learns from z also fits noise to
            # these, so the probe without the parameter may be the best of those allowed to use it.
            if knowing.choose(tested, errors, blind_loss):
                best = uninformed
        for name, values in {**_plain_steps(fold, steps), **_places(fold, best)}.items():
            controls[name][tested] = values
    return Foretold(knowing, blind, controls)


def _plain_steps(fold: PairFold, steps: Floats) -> dict[str, Floats]:
    """Return squared errors of steps [m, dim] without a probe: no step, the mean step, one step for each parameter."""
    data, (train, _, tested) = fold.data, fold.parts
    trained = fold.steps(train)
    mean = trained.mean(axis=0)
    if len(data.kinds):
        kinds, codes = np.unique(data.kinds[train], return_inverse=True)
        means, places = means_by(codes, trained), np.searchsorted(kinds, data.kinds[tested])
        places = np.minimum(places, len(kinds) - 1)
        # Use the mean step for parameters unseen in training.
        translated = np.where((kinds[places] == data.kinds[tested])[:, None], means[places], mean)
    else:
        columns = np.hstack([np.ones((len(data.columns), 1)), data.columns])
        translated = columns[tested] @ np.linalg.lstsq(columns[train], trained)[0]
    return {
        "still": np.square(steps).sum(axis=1),
        "mean": np.square(steps - fold.whole(mean)).sum(axis=1),
        "translate": np.square(steps - fold.whole(translated)).sum(axis=1),
    }


def _places(fold: PairFold, steps: Floats) -> dict[str, Floats]:
    """Return where predictions of z′ − z [states, m, dim] lead: cosines with z′, and whether z′ is the nearest."""
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
    """Return for each pair whether the true end is the nearest of its orbit, shared among ties, and its chance.

    The start is a candidate only if there are no others, so that predicting no step can be right.
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
        nearest[pairs] = nearest_shares(distances, truth, rounding)
        chance[pairs] = 1 / (len(rows) - (len(rows) > 2))
    return nearest, chance


def _nearest_contexts(data: Paired, start: Ints, end: Ints, predicted: Floats) -> tuple[Floats, Floats]:
    """Return nearest shares among the rows of all orbits, each by its row nearest in parameter to the true end."""
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
    return nearest_shares(candidates, truth, rounding), 1 / np.isfinite(candidates).sum(axis=1)


def _distances_to(predicted: Floats, rows: Floats) -> tuple[Floats, Floats]:
    """Return squared distances [m, rows], and a bound of their rounding errors [m, 1]."""
    sizes = np.square(predicted).sum(axis=1)[:, None] + np.square(rows).sum(axis=1)
    return sizes - 2 * predicted @ rows.T, TIE * sizes.max(axis=1, keepdims=True)
