"""Equivariance against scikit-learn on explicit pairs, formulas by hand and the properties that follow from both."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
import pytest
from scipy.spatial.distance import cosine
from scipy.stats import ortho_group

from audio_compositionality.metrics import orbits, probing, steps
from audio_compositionality.metrics.equivariance import equivariance

from .contract import MetricContract
from .probes_by_hand import KERNELS, PENALTIES, best_of_folds, folds_of, kernel_fit, ridge_fit

ORIGIN = ("r_cosine", "identity_cosine")
"""What depends on the origin of embeddings."""


def example() -> dict[str, Any]:
    """Return arguments of `equivariance`: a noisy encoder of 20 contexts, each at four levels of one parameter."""
    rng = np.random.default_rng(0)
    orbits, parameters = np.repeat(np.arange(20), 4), np.tile([0.0, 2.0, 4.0, 6.0], 20)
    context, direction = rng.normal(size=(20, 6)), rng.normal(size=6)
    z = context[orbits] + parameters[:, None] / 4 * direction + rng.normal(0, 0.4, (80, 6))
    names = [f"context-{orbit}" for orbit in orbits]
    return {"embeddings": z.round(3), "orbits": names, "parameters": parameters, "folds": orbits % 5, "blocks": orbits}


class TestContract(MetricContract):
    name = "equivariance"
    embeddings = ("embeddings",)
    drawn = ("shuffled_p",)
    quick: ClassVar = {"probes": "ridge"}
    origin = ORIGIN
    at_constant: ClassVar = {"r_equivariance": 0, "r_explained": 0, "p": 0, "p_gain": 0, "shuffled_p": 0, "r_mse": 0}


def crossed(
    orbits: int = 30, levels: int = 4, dim: int = 10, noise: float = 0.5, bend: float = 0.3, seed: int = 0
) -> dict[str, Any]:
    """Arguments: contexts, each at all levels of a factor that moves the embedding along a bent line."""
    rng = np.random.default_rng(seed)
    orbit, level = np.repeat(np.arange(orbits), levels), np.tile(np.arange(levels) * 1.5, orbits)
    directions = rng.normal(size=(2, dim))
    z = rng.normal(size=(orbits, dim))[orbit] + np.stack([level, bend * level**2], axis=1) @ directions / levels
    z += noise * rng.normal(size=z.shape) + 2
    return {"embeddings": z, "orbits": orbit, "parameters": level, "folds": orbit % 5, "blocks": orbit}


def copies(
    orbits: int = 40, count: int = 3, dim: int = 10, noise: float = 0.3, seed: int = 0
) -> tuple[dict[str, Any], np.ndarray]:
    """Arguments: originals and copies that are moved by a step which grows with a parameter; and who is an original."""
    rng = np.random.default_rng(seed)
    orbit = np.repeat(np.arange(orbits), count + 1)
    base = np.tile([True] + [False] * count, orbits)
    parameter = rng.uniform(-3, 1, len(orbit))
    directions = rng.normal(size=(2, dim))
    moved = np.stack([parameter, np.square(parameter)], axis=1) @ directions / 2 + 1
    z = rng.normal(size=(orbits, dim))[orbit] + np.where(base[:, None], 0, moved + noise * rng.normal(size=moved.shape))
    given = [None if original else value for original, value in zip(base, parameter, strict=True)]
    return {"embeddings": z, "orbits": orbit, "parameters": given, "folds": orbit % 5, "blocks": orbit}, base


def perfect(orbits: int, levels: int, contexts: int = 12) -> dict[str, Any]:
    """Arguments: embeddings that are sums of a context and a level, each in dimensions of its own, then rotated."""
    rng = np.random.default_rng(0)
    orbit, level = np.repeat(np.arange(orbits), levels), np.tile(np.arange(levels), orbits)
    z = np.hstack([rng.normal(size=(orbits, contexts))[orbit], level[:, None]])
    z = z @ ortho_group.rvs(z.shape[1], random_state=1)
    return {"embeddings": z, "orbits": orbit, "parameters": level, "folds": orbit % 5, "blocks": orbit}


def named(data: dict[str, Any]) -> dict[str, Any]:
    return data | {"parameters": [f"level {level}" for level in data["parameters"]]}


def pairs_of(orbit: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """All ordered pairs of different rows of one orbit."""
    both = [(i, j) for i in range(len(orbit)) for j in range(len(orbit)) if i != j and orbit[i] == orbit[j]]
    start, end = np.array(both).T
    return start, end


def features_by_hand(
    z: np.ndarray,
    start: np.ndarray,
    fold: np.ndarray,
    columns: np.ndarray,
    powers: list[np.ndarray],
    rows: np.ndarray,
    weighted: bool = True,
) -> list[list[np.ndarray]]:
    """For each fold z, features of the parameter, and products of its powers with principal components."""
    everything = []
    for train, _, _ in folds_of(fold):
        weight = np.sqrt(z[start[train]].var(axis=0).sum() / columns[train].var(axis=0).sum()) if weighted else 1.0
        trained = z[np.isin(rows, rows[start[train]])]
        axes = np.linalg.svd(trained - trained.mean(axis=0), full_matrices=False)[2][:24]
        components = (z - trained.mean(axis=0)) @ axes.T
        standard = [(p - p[train].mean()) / p[train].std() for p in powers]
        everything.append([z[start], weight * columns, *(p[:, None] * components[start] for p in standard)])
    return everything


def by_fold(fit: Any, settings: Any, features: list[np.ndarray], y: np.ndarray, fold: np.ndarray) -> np.ndarray:
    """`best` where each fold has features of its own."""
    predictions = np.empty_like(y)
    for k, x in enumerate(features):
        predictions[fold == k] = best_of_folds(fit, settings, x, y, fold, only=k)[fold == k]
    return predictions


@pytest.mark.parametrize(
    ("kind", "dim", "probe"),
    [
        ("numbers", 10, "ridge"),
        pytest.param("numbers", 100, "ridge", marks=pytest.mark.slow),
        pytest.param("numbers", 10, "kernel", marks=pytest.mark.slow),
        ("classes", 30, "ridge"),
        ("copies", 10, "ridge"),
    ],
)
def test_r_equals_scikit_learn_on_explicit_pairs(kind: str, dim: int, probe: str) -> None:
    """Also in more dimensions than rows train, where the metric fits within their span."""
    data, base = copies(dim=dim) if kind == "copies" else (crossed(dim=dim, orbits=25), None)
    level = np.array([0.0 if value is None else value for value in data["parameters"]])
    start, end = pairs_of(data["orbits"])
    if base is not None:
        start, end = start[base[start]], end[base[start]]
    z = probing.standardised_rows(data["embeddings"])
    fold, steps = data["folds"][start], z[end] - z[start]
    change = level[end] - level[start]
    powers = [change, change**2]
    if kind == "copies":  # of many values
        columns = np.stack([change, change**2, np.abs(change)], axis=1)
        columns = columns / columns.std(axis=0)
    else:
        told = level[end] if kind == "classes" else np.round(change, 9)
        columns = (told[:, None] == np.unique(told)).astype(float)
    if kind == "classes":
        data, powers = named(data), []
    parts = features_by_hand(z, start, fold, columns, powers, data["orbits"])
    if probe == "ridge":
        known = by_fold(ridge_fit, PENALTIES, [np.hstack(part) for part in parts], steps, fold)
        # To fit the mean step of each row is to fit the steps of its three pairs with thrice the penalty.
        blind = best_of_folds(ridge_fit, 3 * PENALTIES, z[start], steps, fold)
    else:
        known = by_fold(kernel_fit, KERNELS, [np.hstack(part[:2]) for part in parts], steps, fold)
        means = np.stack([steps[start == row].mean(axis=0) for row in range(len(z))])
        blind = best_of_folds(kernel_fit, KERNELS, z, means, data["folds"])[start]
    mean = sum(np.square(steps[train].mean(axis=0) - steps[test]).sum() for train, _, test in folds_of(fold))
    error, without = np.square(known - steps).sum(), np.square(blind - steps).sum()
    still = np.square(steps).sum()
    result = equivariance(**data, base=base, probes=probe)
    assert result["r_explained"] == pytest.approx(1 - error / still, abs=1e-6)
    assert result["r_equivariance"] == pytest.approx(1 - error / min(still, without, mean), abs=1e-6)
    assert result[f"r_{probe}"] == pytest.approx(result["r_equivariance"], abs=1e-12)
    assert 0.2 < result["r_equivariance"] < 0.999  # the case is neither chance nor trivial
    assert (result["r_mse"], result["identity_mse"]) == pytest.approx(
        (error / steps.size, still / steps.size), abs=1e-6
    )
    if kind != "numbers":
        return
    raw, unit = data["embeddings"], np.sqrt(data["embeddings"].var(axis=0).mean())
    foretold = raw[start] + known * unit
    cosines = [1 - cosine(one, other) for one, other in zip(foretold, raw[end], strict=True)]
    assert result["r_cosine"] == pytest.approx(np.mean(cosines), abs=1e-6)
    # The paper's code took the cosine of [b, 1, d] along the axis of length 1, which is the share of equal signs.
    signs = np.mean(np.sign(foretold) * np.sign(raw[end]))
    assert abs(result["r_cosine"] - signs) > 0.01
    assert result["identity_cosine"] == pytest.approx(
        np.mean([1 - cosine(one, other) for one, other in zip(raw[start], raw[end], strict=True)]), abs=1e-12
    )
    check_nearest(result, data, z, start, end, known)


def check_nearest(
    result: dict[str, Any], data: dict[str, Any], z: np.ndarray, start: np.ndarray, end: np.ndarray, steps: np.ndarray
) -> None:
    """Top-1 in orbits and among contexts, by brute force."""
    levels, contexts = [], []
    for i, j, step in zip(start, end, steps, strict=True):
        distances = np.square(z - z[i] - step).sum(axis=1)
        orbit = np.flatnonzero((data["orbits"] == data["orbits"][i]) & (np.arange(len(z)) != i))
        same = (data["parameters"] == data["parameters"][j]) & (data["folds"] == data["folds"][j])
        levels.append(distances[j] == distances[orbit].min())
        contexts.append(distances[j] == distances[same].min())
    assert (result["r_level_top1"], result["r_context_top1"]) == (np.mean(levels), np.mean(contexts))
    assert (result["r_level_chance"], result["r_context_chance"]) == pytest.approx((1 / 3, 5 / 25))
    assert 0.4 < np.mean(levels) < 1


@pytest.mark.parametrize("dim", [100])
def test_p_equals_scikit_learn_on_explicit_pairs(dim: int) -> None:
    data = crossed(dim=dim, orbits=25, noise=1.0)
    z, level = probing.standardised_rows(data["embeddings"]), data["parameters"]
    start, end = pairs_of(data["orbits"])
    fold, p = data["folds"][start], (level[end] - level[start])[:, None]
    errors = {
        name: np.square(best_of_folds(ridge_fit, settings, x, p, fold) - p).sum()
        for name, settings, x in (
            ("p", PENALTIES, np.hstack([z[start], z[end]])),
            ("p_difference", PENALTIES, z[end] - z[start]),
            ("p_start", 3 * PENALTIES, z[start]),
            ("p_end", 3 * PENALTIES, z[end]),
        )
    }
    read = best_of_folds(ridge_fit, PENALTIES, z, level[:, None], data["folds"])
    errors["p_from_labels"] = np.square(read[end] - read[start] - p).sum()
    result = equivariance(**data, probes="ridge")
    for name, error in errors.items():
        assert result[name] == pytest.approx(1 - error / np.square(p).sum(), abs=1e-6), name
    assert result["p_gain"] == pytest.approx(1 - errors["p"] / errors["p_start"], abs=1e-6)
    assert result["p_ridge"] == result["p"]
    assert 0.3 < result["p"] < 0.99


def test_translation_is_the_mean_step_of_each_parameter() -> None:
    data = crossed()
    z = probing.standardised_rows(data["embeddings"])
    start, end = pairs_of(data["orbits"])
    fold, steps = data["folds"][start], z[end] - z[start]
    kinds = np.round(data["parameters"][end] - data["parameters"][start], 9)
    predicted = np.empty_like(steps)
    for train, _, test in folds_of(fold):
        for kind in np.unique(kinds):
            predicted[test & (kinds == kind)] = steps[train & (kinds == kind)].mean(axis=0)
    result = equivariance(**data)
    error = 1 - np.square(predicted - steps).sum() / np.square(steps).sum()
    reference = (1 - result["r_explained"]) / (1 - result["r_equivariance"])  # blind SSE / SSE of z
    assert result["r_translate"] == pytest.approx(1 - (1 - error) / reference, abs=1e-9)


def test_with_originals_pairs_lead_to_copies() -> None:
    data, base = copies()
    z = probing.standardised_rows(data["embeddings"])
    end = np.flatnonzero(~base)
    start = end - (end % 4)
    p = np.array([data["parameters"][row] for row in end])[:, None]
    fold, steps = data["folds"][start], z[end] - z[start]
    means = np.concatenate([np.full((test.sum(), 1), p[train].mean()) for train, _, test in folds_of(fold)])
    reference = np.square(p[np.concatenate([np.flatnonzero(test) for _, _, test in folds_of(fold)])] - means).sum()
    result = equivariance(**data, base=base, probes="ridge", return_scores=True)
    for name, x in (("p", np.hstack([z[start], z[end]])), ("p_end", z[end]), ("p_difference", steps)):
        error = np.square(best_of_folds(ridge_fit, PENALTIES, x, p, fold) - p).sum()
        assert result[name] == pytest.approx(1 - error / reference, abs=1e-6), name
    assert result["p_from_labels"] is None
    assert abs(result["p_start"]) < 0.1
    assert result["rows"] == end.tolist()
    assert (result["pairs"], result["n"]) == (120, 120)
    # 120 different values: P, P² and |P| in place of indicators, of which the step is a combination.
    assert result["r_equivariance"] > 0.7
    assert result["r_translate"] > 0.7
    # What moves all copies alike is known without the parameter.
    assert result["r_explained"] > result["r_equivariance"]
    other = equivariance(**data | {"parameters": [99 if x is None else x for x in data["parameters"]]}, base=base)
    assert other == equivariance(**data, base=base)


def test_shuffled_parameters_of_a_perfect_encoder_tell_nothing() -> None:
    result = equivariance(**perfect(160, 4), probes="ridge")
    assert result["p"] > 0.99
    assert abs(result["shuffled_p"]) < 0.05


def test_scores_are_of_rows_whatever_the_size_of_orbits() -> None:
    rng = np.random.default_rng(0)
    orbit = np.repeat(np.arange(40), rng.integers(2, 6, 40))
    level = rng.normal(size=len(orbit))
    z = rng.normal(size=(40, 8))[orbit] + level[:, None] * rng.normal(size=8) + 0.3 * rng.normal(size=(len(orbit), 8))
    result = equivariance(z, orbit, level, orbit % 5, orbit, return_scores=True)
    counts = np.bincount(orbit)
    assert result["pairs"] == (counts * (counts - 1)).sum()
    assert result["rows"] == list(range(len(orbit)))
    for name, scores in (("r_equivariance", "scores"), ("p", "scores_p"), ("p_gain", "scores_p_gain")):
        assert np.mean(result[scores]) == pytest.approx(result[name], abs=1e-12)
    assert np.mean(1 / np.where(counts > 2, counts - 1, 2)[orbit]) != result["r_level_chance"]  # pairs, not rows
    chances = np.repeat(1 / np.where(counts > 2, counts - 1, 2), counts * (counts - 1))
    assert result["r_level_chance"] == pytest.approx(chances.mean())


def test_of_many_pairs_an_even_part_is_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    orbit = np.repeat(np.arange(20), 6)
    monkeypatch.setattr(orbits, "MOST_PAIRS", 200)
    start, end = orbits._pairs(orbit, None, 0)
    assert len(start) == 200
    assert set(zip(start, end, strict=True)) == set(zip(end, start, strict=True))
    assert len(set(zip(start, end, strict=True))) == 200
    assert set(np.bincount(orbit[start])) == {10}
    base = np.tile([True] + [False] * 5, 20)
    monkeypatch.setattr(orbits, "MOST_PAIRS", 60)
    start, end = orbits._pairs(orbit, base, 0)
    assert set(np.bincount(orbit[start])) == {3}
    assert base[start].all()
    assert not base[end].any()


def test_contexts_are_at_most_so_many(monkeypatch: pytest.MonkeyPatch) -> None:
    data = crossed(orbits=60)
    assert equivariance(**data, probes="ridge")["r_context_chance"] == pytest.approx(1 / 12)
    monkeypatch.setattr(steps, "MOST_CONTEXTS", 5)
    chance = equivariance(**data, probes="ridge")["r_context_chance"]
    assert 1 / 6 <= chance <= 1 / 5  # the own one is among them, or beside them


# ----- probes by gradient descent


@pytest.mark.slow
def test_trained_probes_are_given_alone_with_their_spread_and_raw_ones_depend_on_the_scale(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(probing, "EPOCHS", 2)
    data = perfect(15, 3, contexts=5)
    large = data | {"embeddings": 14 * data["embeddings"]}
    both, closed = equivariance(**data, probes=("slp", "ridge")), equivariance(**data, probes="ridge")
    assert (both["r_ridge"], both["p_ridge"]) == pytest.approx((closed["r_ridge"], closed["p_ridge"]))
    assert both["r_kernel"] is both["p_mlp"] is closed["spread"] is closed["p_spread"] is None
    assert both["r_slp"] < both["r_ridge"]
    assert both["spread"] >= 0
    assert both["p_spread"] >= 0
    assert equivariance(**large, probes="slp")["p_slp"] == pytest.approx(both["p_slp"], abs=1e-3)
    raw, raw_large = (equivariance(**given, probes="slp", scaled=False) for given in (data, large))
    assert abs(raw_large["p"] - raw["p"]) > 0.1
    monkeypatch.setattr(probing, "EPOCHS", 1)
    result = equivariance(**named(crossed(orbits=10, dim=4)), probes="slp", scaled=False)
    assert result["p"] is None
    assert result["r_slp"] is not None


# ----- what is refused


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"parameters": [1.0] * 120}, r"parameters are all 1\.0; at least two different values are needed"),
        ({"parameters": np.repeat(np.arange(30.0), 4)}, "parameters are the same in all rows of each orbit"),
        (
            {"parameters": np.where(np.isin(np.arange(120) // 4, (0, 5)), "a", "b")},
            "parameters of row 0 is 'a', a class missing from the training rows",
        ),
        ({"orbits": np.r_[np.arange(116) // 4, 29, 29, 29, 77]}, "Orbit 77 has one row, 119; a change needs two"),
        ({"orbits": np.arange(120) // 8}, "Orbit 0 lies in two folds: row 0 in 0, row 4 in 1"),
        ({"base": [True] * 120}, "Orbit 0 has 4 originals in base; it must have one"),
        ({"base": ["yes"] * 120}, "base must be true for an original and false for a copy; row 0 has 'yes'"),
    ],
)
def test_refuses_bad_input(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        equivariance(**crossed() | changes)


# ----- as a metric
