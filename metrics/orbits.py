"""Orbits of clips under one parameter: pairs of their rows, and features of the change."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .arrays import Floats, Ints
from .columns import check_varied, check_within, read_codes, read_column, read_entries
from .probing import standardised_rows

MOST_PAIRS = 30_000
"""Of more pairs, so many are drawn, evenly from all orbits."""

MOST_VALUES = 16
"""Of a parameter with no more different values each is a feature of its own; else P, P² and |P| are the features."""


# ----- pairs and their features
@dataclass(frozen=True)
class Paired:
    """Embeddings, and pairs of their rows.

    Attributes:
        raw: embeddings [n, dim] as they come.
        z: the same, standardised.
        unit: what 1 in z is in raw.
        orbit: number of the orbit of each row.
        level: parameter of each row, in units of the range of the pairs', or the number of its class; of an original
            that of one of its copies.
        labels: the classes; empty where parameters are numbers.
        originals: whether a row is the original of its orbit; None where all rows of an orbit are alike.
        start, end: rows of each pair.
        columns: features of each pair's parameter [pairs, k].
        values: the parameter of each pair, in units of its range; empty where parameters are classes.
        kinds: number of the step of each pair in `r_translate`; empty where there are more than MOST_VALUES.
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
    """The number of each pair where those of rows are `level`: a difference, or with originals that of the copy."""
    return level[end] if originals is not None else level[end] - level[start]


def read_pairs(raw: Floats, orbits: Any, parameters: Any, base: Any, rotation: Any, seed: int) -> Paired:
    """Check what is given, and pair it."""
    orbit, orbit_names = read_codes("orbits", orbits, len(raw))
    _check_orbits(orbit, orbit_names, rotation)
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
            raise ValueError("parameters are the same in all rows of each orbit; there is nothing to read or foretell.")
        level = level / span
        values = pair_changes(level, start, end, originals)
        # The same difference of other levels differs by rounding.
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
    """Whether a row is the original of its orbit; ValueError where an orbit has none, or two."""
    values = read_entries("base", base, len(orbit))
    for row, value in enumerate(values):
        if value not in (True, False):
            raise ValueError(f"base must be true of an original and false of a copy; row {row} has {value!r}.")
    originals = np.array(values, dtype=bool)
    counts = np.bincount(orbit[originals], minlength=len(names))
    wrong = np.flatnonzero(counts != 1)
    if len(wrong):
        raise ValueError(f"Orbit {names[wrong[0]]!r} has {counts[wrong[0]]} originals in base; it must have one.")
    return originals


def _check_orbits(orbit: Ints, names: Sequence[Any], rotation: Sequence[tuple[Ints, Ints, Ints]]) -> None:
    """Raise ValueError where an orbit has one row, or lies in two folds."""
    single = np.flatnonzero(np.bincount(orbit) == 1)
    if len(single):
        row = int(np.flatnonzero(orbit == single[0])[0])
        raise ValueError(f"Orbit {names[single[0]]!r} has one row, {row}; a change takes two or more.")
    fold = np.empty(len(orbit), dtype=np.int64)
    for number, (_, _, test) in enumerate(rotation):
        fold[test] = number
    check_within("orbit", names, orbit, "folds", fold, range(len(rotation)))


def _levels(parameters: Any, orbit: Ints, originals: NDArray[np.bool_] | None) -> tuple[Floats, NDArray[Any]]:
    """The parameter of each row, or the number of its class; and the classes, none where parameters are numbers."""
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
    """Rows at the start and at the end of each pair; an even part of them where there are more than MOST_PAIRS."""
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
    # Evenly from all orbits, and in random order, so that landmarks are of all kinds.
    order = np.lexsort((rng.random(len(start)), orbit[start]))
    most = MOST_PAIRS // 2 if originals is None else MOST_PAIRS
    order = rng.permutation(order[np.linspace(0, len(order) - 1, min(len(order), most)).astype(int)])
    start, end = start[order], end[order]
    # Of each two rows both directions are there, so that z and z′ alone tell the same.
    return (np.concatenate([start, end]), np.concatenate([end, start])) if originals is None else (start, end)
