"""Orbits of clips under one parameter: pairs of their rows, features of the change, and fits per fold."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .arrays import Floats, Ints
from .columns import check_varied, check_within, read_codes, read_column, read_entries
from .probing import STATES, fit_groups, standardised_rows

MOST_PAIRS = 30_000
"""Limit on pairs: if there are more, this many are drawn evenly from all orbits."""

MOST_VALUES = 16
"""A parameter with at most this many distinct values has one feature per value, else the features P, P² and |P|."""


COMPONENTS = 24
"""Principal components of z; their products with P and P² let the step of ridge regression depend on z."""


# ----- pairs and their features
@dataclass(frozen=True)
class Paired:
    """Embeddings and pairs of their rows.

    Attributes:
        raw: embeddings [n, dim] as given.
        z: embeddings, standardised.
        unit: the size in raw of 1 in z.
        orbit: number of the orbit of each row.
        level: parameter of each row, in units of the range over the pairs, or the number of its class; for an original
            the parameter of one of its copies.
        labels: the classes; empty if parameters are numbers.
        originals: whether a row is the original of its orbit; None if orbits have no original.
        start, end: rows of each pair.
        columns: features of each pair's parameter [pairs, k].
        values: the parameter of each pair, in units of its range; empty if parameters are classes.
        kinds: number of the step of each pair in `r_translate`; empty if there are more than MOST_VALUES.
    """

    raw: Floats
    z: Floats
    unit: float
    orbit: Ints
    level: Floats
    labels: NDArray[Any]
    originals: NDArray[np.bool_] | None
    start: Ints
    end: Ints
    columns: Floats
    values: Floats
    kinds: Ints


def pair_changes(level: Floats, start: Ints, end: Ints, originals: NDArray[np.bool_] | None) -> Floats:
    """Return the parameter of each pair from numbers `level` of rows.

    It is their difference, or with originals the copy's number.
    """
    return level[end] if originals is not None else level[end] - level[start]


def read_pairs(raw: Floats, orbits: Any, parameters: Any, base: Any, rotation: Any, seed: int) -> Paired:
    """Check the inputs and make pairs."""
    orbit, orbit_names = read_codes("orbits", orbits, len(raw))
    single = np.flatnonzero(np.bincount(orbit) == 1)
    if len(single):
        row = int(np.flatnonzero(orbit == single[0])[0])
        raise ValueError(f"Orbit {orbit_names[single[0]]!r} has one row, {row}; a change needs two or more.")
    fold = np.empty(len(orbit), dtype=np.int64)
    for number, (_, _, test) in enumerate(rotation):
        fold[test] = number
    check_within("orbit", orbit_names, orbit, "folds", fold, range(len(rotation)))
    originals = None if base is None else _originals(base, orbit, orbit_names)
    level, labels = _levels(parameters, orbit, originals)
    start, end = _pairs(orbit, originals, seed)
    values, span = np.array([]), 1.0
    if len(labels):
        steps = level[end] if originals is not None else level[start] * len(labels) + level[end]
        kinds = np.unique(steps, return_inverse=True)[1]
        columns = np.eye(len(labels))[level[end].astype(np.int64)]
    else:
        span = float(np.ptp(pair_changes(level, start, end, originals)))
        if span == 0:
            raise ValueError("parameters are the same in all rows of each orbit. They must differ within an orbit.")
        level = level / span
        values = pair_changes(level, start, end, originals)
        # Round, since equal differences of different levels differ by rounding errors.
        different, kinds = np.unique(np.round(values, 9), return_inverse=True)
        if len(different) <= MOST_VALUES:
            columns = np.eye(len(different))[kinds]
        else:
            kinds = np.array([], dtype=np.int64)
            columns = np.stack([values, np.square(values), np.abs(values)], axis=1)
            columns = columns / np.where(np.ptp(columns, axis=0) > 0, columns.std(axis=0), 1.0)
    unit = float(np.sqrt(raw.var(axis=0).mean())) or 1.0
    return Paired(
        raw, standardised_rows(raw), unit, orbit, level, labels, originals, start, end, columns, values, kinds
    )


def _originals(base: Any, orbit: Ints, names: Sequence[Any]) -> NDArray[np.bool_]:
    """Return whether a row is the original of its orbit; raise ValueError if an orbit has no original or several."""
    values = read_entries("base", base, len(orbit))
    for row, value in enumerate(values):
        if value not in (True, False):
            raise ValueError(f"base must be true for an original and false for a copy; row {row} has {value!r}.")
    originals = np.array(values, dtype=bool)
    counts = np.bincount(orbit[originals], minlength=len(names))
    wrong = np.flatnonzero(counts != 1)
    if len(wrong):
        raise ValueError(f"Orbit {names[wrong[0]]!r} has {counts[wrong[0]]} originals in base; it must have one.")
    return originals


def _levels(parameters: Any, orbit: Ints, originals: NDArray[np.bool_] | None) -> tuple[Floats, NDArray[Any]]:
    """Return the parameter of each row, or the number of its class; and the classes, none if parameters are numbers."""
    entries = read_entries("parameters", parameters, len(orbit))
    if originals is not None:
        copies = np.flatnonzero(~originals)
        copy_of = dict(zip(orbit[copies].tolist(), copies.tolist(), strict=True))
        entries = [entries[copy_of[k]] if originals[row] else entries[row] for row, k in enumerate(orbit.tolist())]
    column = read_column("parameters", entries, len(orbit))
    check_varied("parameters", column)
    if column.dtype.kind != "U":
        return column, np.array([])
    labels, codes = np.unique(column, return_inverse=True)
    return codes.astype(np.float64), labels


def _pairs(orbit: Ints, originals: NDArray[np.bool_] | None, seed: int) -> tuple[Ints, Ints]:
    """Return the rows at the start and at the end of each pair; an even part of them above MOST_PAIRS."""
    rng, place = np.random.default_rng(seed), np.argsort(orbit, kind="stable")
    starts, ends = [], []
    for rows in np.split(place, np.cumsum(np.bincount(orbit))[:-1]):
        if originals is None:
            first, second = np.triu_indices(len(rows), 1)
            starts.append(rows[first])
            ends.append(rows[second])
        else:
            ends.append(rows[~originals[rows]])
            starts.append(np.repeat(rows[originals[rows]], len(ends[-1])))
    start, end = np.concatenate(starts), np.concatenate(ends)
    # Evenly from all orbits, and in random order, so that landmarks cover all orbits.
    order = np.lexsort((rng.random(len(start)), orbit[start]))
    most = MOST_PAIRS // 2 if originals is None else MOST_PAIRS
    order = rng.permutation(order[np.linspace(0, len(order) - 1, min(len(order), most)).astype(int)])
    start, end = start[order], end[order]
    # Both directions of each pair of rows are present, so that z and z′ alone are equally informative.
    return (np.concatenate([start, end]), np.concatenate([end, start])) if originals is None else (start, end)


# ----- pairs in folds, and predictions from one embedding
class PairFold:
    """The training, validation and test pairs of one fold, and their features.

    Closed forms use coordinates in the span of the training rows, and one more column with the distance of a row from
    the span: this preserves all distances from training rows, so that predictions are equal, at lower cost.

    Attributes:
        parts: numbers of the training, validation and test pairs.
        x: coordinates of embeddings; `dim` is the number of dimensions that they represent.
        outside: mean of |z′ − z|² outside of the span over the validation pairs.
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
        """Return z and z′ in one row per pair."""
        return np.hstack([self.x[self.data.start[pairs]], self.x[self.data.end[pairs]]])

    def difference(self, pairs: Ints) -> Floats:
        """Return the coordinates of z′ − z."""
        return self._coordinates(self.data.z[self.data.end[pairs]] - self.data.z[self.data.start[pairs]])

    def steps(self, pairs: Ints) -> Floats:
        """Return z′ − z within the span, the only part that can be predicted."""
        inside = self.x if self._basis is None else self.x[:, :-1]
        steps: Floats = inside[self.data.end[pairs]] - inside[self.data.start[pairs]]
        return steps

    def whole(self, steps: Floats) -> Floats:
        """Return steps within the span, in the dimensions of z."""
        return steps if self._basis is None else steps @ self._basis.T

    def weighted(self, pairs: Ints) -> Floats:
        """Return features of the parameter, scaled so that their total variance in training equals z's."""
        return self.data.columns[pairs] * self._weight

    def products(self, pairs: Ints) -> Floats:
        """Return products of P and P² with principal components of z; none if parameters are classes."""
        columns = [np.empty((len(pairs), 0))]
        for power in (self.data.values, np.square(self.data.values)) if len(self.data.values) else ():
            offset, scale = power[self.parts[0]].mean(), float(power[self.parts[0]].std()) or 1.0
            columns.append((power[pairs, None] - offset) / scale * self._components[self.data.start[pairs]])
        return np.hstack(columns)


class Trials:
    """Squared errors of all pairs [states, pairs] for each probe, and as "best" for the best by validation per fold.

    A fold is identified by its test pairs.
    """

    def __init__(self, names: Sequence[str], states: int, count: int) -> None:
        self.errors = {name: np.zeros((states, count)) for name in (*names, "best")}
        self._least: dict[int, float] = {}

    def enter(self, name: str, pairs: Ints, errors: Floats, loss: float) -> bool:
        """Record errors [states, pairs] of a probe on the pairs of a fold; return whether it is the best so far."""
        self.errors[name][:, pairs] = errors
        return self.choose(pairs, errors, loss)

    def choose(self, pairs: Ints, errors: Floats, loss: float) -> bool:
        """Record errors as the best of a fold if they validate better than all before; return whether they do."""
        best = loss < self._least.get(int(pairs[0]), np.inf)
        if best:
            self._least[int(pairs[0])] = loss
            self.errors["best"][:, pairs] = errors
        return best


@dataclass(frozen=True)
class ProbeSettings:
    """Names of the probes, and the settings of `slp` and `mlp`."""

    probes: tuple[str, ...]
    scaled: bool
    seed: int

    @property
    def states(self) -> int:
        """Return the number of random states that scores are averaged over."""
        return STATES if {"slp", "mlp"} & set(self.probes) else 1


def means_by(codes: Ints, values: Floats) -> Floats:
    """Return means of the rows of values [m, targets] with each code, [codes, targets]."""
    order = np.argsort(codes, kind="stable")
    places = np.searchsorted(codes[order], np.arange(int(codes.max()) + 1))
    means: Floats = np.add.reduceat(values[order], places, axis=0) / np.bincount(codes)[:, None]
    return means


@dataclass(frozen=True)
class Starts:
    """Predictions of a probe for test pairs from z alone, each with its loss on the validation pairs.

    Attributes:
        start, end: numbers of the rows of each pair [m] among those where pairs start; `end` is valid only if there are
            no originals.
        steps: z′ − z within the span, for pairs that start in a row [rows, coordinates].
        values: P for pairs that start in a row [rows].
        levels: the level of a row [rows].
    """

    start: Ints
    end: Ints
    steps: tuple[Floats, float]
    values: tuple[Floats, float]
    levels: tuple[Floats, float]


def _from_start(fold: PairFold, name: str) -> Starts:
    """Fit a closed form to z alone, with zeros for values if parameters are classes.

    Fitting the mean target of each start row is equivalent to fitting the targets of all pairs, and costs much less.
    """
    data = fold.data
    rows, targets, rest = [], [], []
    for pairs in fold.parts:
        start, codes = np.unique(data.start[pairs], return_inverse=True)
        values = data.values[pairs] if len(data.values) else np.zeros(len(pairs))
        wanted = np.hstack([fold.steps(pairs), values[:, None]])
        means = means_by(codes, wanted)
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
    return Starts(
        codes,
        np.minimum(np.searchsorted(start, data.end[fold.parts[2]]), len(start) - 1),
        (steps[0], float(losses[0]) * count + rest[1][0] + fold.outside),
        (values[0, :, 0], float(losses[1]) + rest[1][1]),
        (levels[0, :, 0], float(losses[2])),
    )


def fitted_starts(
    data: Paired, rotation: Sequence[tuple[Ints, Ints, Ints]], settings: ProbeSettings
) -> tuple[list[PairFold], list[dict[str, Starts]]]:
    """Return the folds, and the predictions from z alone of each closed form in each fold."""
    parts = [PairFold(data, rows) for rows in rotation]
    closed = [name for name in settings.probes if name not in ("slp", "mlp")]
    return parts, [{name: _from_start(fold, name) for name in closed} for fold in parts]
