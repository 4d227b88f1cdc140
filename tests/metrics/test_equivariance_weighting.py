"""R-equivariance against a second implementation in plain NumPy, and what the weighting of the parameter is worth.

Nothing of the metric is used: pairs are listed one by one, and ridge regression is solved by least squares on rows that
are lengthened by the penalty. See the docstring of `equivariance` for the definition.
"""

import numpy as np
import pytest

from audio_compositionality.metrics.equivariance import equivariance

PENALTIES = [10 ** (exponent / 2) for exponent in range(-4, 13)]


def ridge(x, y, penalty):
    """A function of features that foretells targets: least squares with sqrt(penalty) times the identity below."""
    middle, offset = x.mean(axis=0), y.mean(axis=0)
    size = np.sqrt(np.mean(np.square(x - middle)))
    rows = np.vstack([(x - middle) / size, np.sqrt(penalty) * np.eye(x.shape[1])])
    weights = np.linalg.lstsq(rows, np.vstack([y - offset, np.zeros((x.shape[1], y.shape[1]))]), rcond=None)[0]
    return lambda other: (other - middle) / size @ weights + offset


def best_ridge(x, y, train, held):
    """The function, and its squared error on the rows that validate, of the penalty that is best there."""
    fits = [ridge(x[train], y[train], penalty) for penalty in PENALTIES]
    errors = [np.square(fit(x[held]) - y[held]).sum(axis=1).mean() for fit in fits]
    return fits[int(np.argmin(errors))], min(errors)


def r_equivariance(z, orbits, parameters, fold, base=None, weighted=True):
    """1 − squared error of what is told the parameter / the least one of what is not, one ridge regression each."""
    z = (z - z.mean(axis=0)) / np.sqrt(z.var(axis=0).mean())
    n, is_class = len(z), isinstance(parameters[-1], str)
    pairs = [
        (i, j)
        for i in range(n)
        for j in range(n)
        if i != j and orbits[i] == orbits[j] and (base is None or (base[i] and not base[j]))
    ]
    start, end = np.array(pairs).T
    steps, fold_of = z[end] - z[start], fold[start]
    if is_class:
        names = sorted(set(parameters))
        change, powers = np.array([names.index(parameters[j]) for j in end]), []
    else:
        change = np.array([parameters[j] - (0.0 if base is not None else parameters[i]) for i, j in pairs])
        change = np.round(change / np.ptp(change), 9)
        powers = [change, change**2]
    different = np.unique(change)
    if len(different) <= 16:
        told = np.array([[float(value == one) for one in different] for value in change])
    else:
        told = np.stack([change, change**2, np.abs(change)], axis=1)
        told = told / told.std(axis=0)
    sums = dict.fromkeys(("told", "blind", "still", "mean"), 0.0)
    for k in range(5):
        tested, held = fold_of == k, fold_of == (k + 1) % 5
        train = ~(tested | held)
        weight = 1.0
        if weighted:
            weight = np.sqrt(z[start[train]].var(axis=0).sum() / told[train].var(axis=0).sum())
        rows = (fold != k) & (fold != (k + 1) % 5)
        values, axes = np.linalg.eigh(np.cov(z[rows].T))
        components = (z - z[rows].mean(axis=0)) @ axes[:, np.argsort(-values)[:24]]
        features = [z[start], weight * told]
        for power in powers:
            standard = (power - power[train].mean()) / power[train].std()
            features.append(standard[:, None] * components[start])
        fit, error = best_ridge(np.hstack(features), steps, train, held)
        guess = fit(np.hstack(features)[tested])
        # What is blind to the parameter foretells the mean step of each row in which pairs start.
        starts = np.unique(start)
        means = np.array([steps[start == row].mean(axis=0) for row in starts])
        rest = np.mean(
            [np.square(steps[p] - means[np.searchsorted(starts, start[p])]).sum() for p in np.where(held)[0]]
        )
        trained = np.isin(starts, start[train])
        validated = np.isin(starts, start[held])
        blind, blind_error = best_ridge(z[starts], means, trained, validated)
        unaware = blind(z[start[tested]])
        sums["told"] += np.square((guess if error <= blind_error + rest else unaware) - steps[tested]).sum()
        sums["blind"] += np.square(unaware - steps[tested]).sum()
        sums["still"] += np.square(steps[tested]).sum()
        sums["mean"] += np.square(steps[train].mean(axis=0) - steps[tested]).sum()
    return 1 - sums["told"] / min(sums["blind"], sums["still"], sums["mean"])


def additive(seed=0, contexts=40, levels=8, dim=64):
    """Contexts and levels of a factor, each with a random vector."""
    rng = np.random.default_rng(seed)
    orbit, level = np.repeat(np.arange(contexts), levels), np.tile(np.arange(levels), contexts)
    return rng, orbit, level, rng.normal(size=(contexts, dim))[orbit], rng.normal(size=(levels, dim)) / 3


def classes():
    rng, orbit, level, context, steps = additive()
    z = context + steps[level] + 0.1 * rng.normal(size=context.shape)
    return z, orbit, [f"level {code}" for code in level], None


def numbers():
    """A step that is multiplied by the context."""
    rng, orbit, level, context, _ = additive(levels=4)
    z = context * (1 + 0.2 * level[:, None]) + 0.1 * rng.normal(size=context.shape)
    return z, orbit, level * 1.5, None


def copies():
    """Originals and copies by a parameter with many values, beyond which the step saturates."""
    rng, orbit, place, context, steps = additive(levels=4, dim=20)
    parameter = np.where(place == 0, 0.0, rng.uniform(-2, 3, len(orbit)))
    z = context + np.tanh(parameter)[:, None] * steps[1] + 0.05 * rng.normal(size=context.shape)
    return z, orbit, parameter, place == 0


@pytest.mark.parametrize("case", [classes, numbers, copies])
def test_a_second_implementation_agrees(case):
    z, orbit, parameters, base = case()
    expected = r_equivariance(z, orbit, parameters, orbit % 5, base)
    result = equivariance(z, orbit, parameters, orbit % 5, orbit, base=base, probes=("ridge",))
    assert result["r_equivariance"] == pytest.approx(expected, abs=1e-9)
    assert 0.2 < expected < 0.999  # the case is neither chance nor trivial


@pytest.mark.slow
def test_without_the_weighting_it_would_be_another_score():
    z, orbit, parameters, base = classes()
    weighted, plain = (r_equivariance(z, orbit, parameters, orbit % 5, base, weighted=one) for one in (True, False))
    assert weighted > 0.6 > 0.25 > plain
