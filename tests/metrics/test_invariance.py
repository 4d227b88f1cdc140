"""Invariance against SciPy, brute force and the properties that its definition implies."""

from typing import Any, ClassVar

import numpy as np
import pytest
from scipy.spatial.distance import cdist, cosine
from scipy.stats import ortho_group

from audio_compositionality.metrics import invariance as module
from audio_compositionality.metrics.invariance import invariance, selectivity

from .contract import MetricContract


def example() -> dict[str, Any]:
    """Return arguments of `invariance`: 20 originals in 8 dimensions, two copies of each, moved by their parameter."""
    rng = np.random.default_rng(0)
    originals = rng.normal(size=(20, 8)) + 1
    owners = np.repeat(np.arange(20), 2)
    parameters = rng.uniform(0, 1, 40)
    copies = originals[owners] + parameters[:, None] * rng.normal(size=(40, 8))
    return {
        "embeddings": np.vstack([originals, copies]).round(3),
        "base": np.concatenate([np.full(20, -1), owners]),
        "parameters": np.concatenate([np.full(20, np.nan), parameters.round(3)]),
        "blocks": np.concatenate([np.arange(20), owners]) // 2,
    }


class TestContract(MetricContract):
    name = "invariance"
    embeddings = ("embeddings",)
    origin = ("cosine", "cosine_null")
    at_constant: ClassVar = {"invariance": 0, "centred_cosine": 0, "centred_cosine_null": 0, "quarter_1": 0}

    def movable(self, example):
        # Originals are named by their row.
        return np.flatnonzero(example["base"] >= 0)


def noisy(originals=30, copies=3, dim=10, noise=0.7, seed=0):
    """Arguments: clips far from the origin, and copies that are the farther from them the larger their parameter."""
    rng = np.random.default_rng(seed)
    z = rng.normal(size=(originals, dim)) + 2
    owners = rng.permutation(np.repeat(np.arange(originals), copies))
    parameters = rng.uniform(size=len(owners))
    moved = z[owners] + noise * parameters[:, None] * rng.normal(size=(len(owners), dim))
    return {
        "embeddings": np.vstack([z, moved]),
        "base": [-1] * originals + owners.tolist(),
        "parameters": [None] * originals + parameters.tolist(),
        "blocks": [f"speaker {row // 2}" for row in range(originals)] + [f"speaker {owner // 2}" for owner in owners],
    }


def split(given):
    """Originals, copies, the original of each copy, its parameter, and the blocks of originals."""
    z, base = np.asarray(given["embeddings"]), np.asarray(given["base"])
    first = int((base == -1).sum())
    return z[:first], z[first:], base[first:], given["parameters"][first:], given["blocks"][:first]


def by_original(values, owners):
    return np.array([np.mean(values[owners == owner]) for owner in range(owners.max() + 1)])


def test_score_and_contributions_equal_a_double_loop():
    given = noisy(noise=1.5)
    originals, copies, owners, _, blocks = split(given)
    own = by_original(np.square(copies - originals[owners]).sum(axis=1), owners)
    apart = np.array(
        [
            np.mean([np.square(z - y).sum() for y, other in zip(originals, blocks, strict=True) if other != block])
            for z, block in zip(originals, blocks, strict=True)
        ]
    )
    ratio = own.mean() / apart.mean()
    result = invariance(**given, return_scores=True)
    assert 0.2 < ratio < 0.8  # the case is neither chance nor trivial
    assert result["invariance"] == pytest.approx(1 - ratio, abs=1e-13)
    deviations = own - own.mean() - 2 * ratio * (apart - apart.mean())
    np.testing.assert_allclose(result["scores"], 1 - ratio - deviations / apart.mean(), atol=1e-13)
    assert result["n"] == 30


def test_spread_of_contributions_is_that_of_the_jackknife():
    given = noisy(originals=60, copies=1, dim=3, noise=2.0) | {"blocks": range(60)}
    originals, copies, owners, _, _ = split(given)
    scores = np.array(invariance(given["embeddings"], given["base"], return_scores=True)["scores"])
    left = []
    for out in range(60):
        kept = np.arange(60) != out
        pairs = np.square(copies - originals[owners]).sum(axis=1)[owners != out]
        left.append(1 - pairs.mean() / (cdist(originals[kept], originals[kept], "sqeuclidean").sum() / (59 * 58)))
    jackknife = np.sqrt(59 / 60 * np.square(left - np.mean(left)).sum())
    assert scores.std(ddof=1) / np.sqrt(60) == pytest.approx(jackknife, rel=0.03)


def test_cosines_equal_scipy():
    given = noisy()
    originals, copies, owners, _, blocks = split(given)
    for name, shift in (("cosine", 0.0), ("centred_cosine", originals.mean(axis=0))):
        own = np.array([1 - cosine(z - shift, originals[o] - shift) for z, o in zip(copies, owners, strict=True)])
        null = [
            np.mean(
                [1 - cosine(originals[i] - shift, originals[j] - shift) for j in range(30) if blocks[i] != blocks[j]]
            )
            for i in range(30)
        ]
        result = invariance(**given)
        assert result[name] == pytest.approx(by_original(own, owners).mean(), abs=1e-12)
        assert result[f"{name}_null"] == pytest.approx(np.mean(null), abs=1e-12)


def test_nearest_equals_scipy(monkeypatch):
    given = noisy(noise=3.0)
    originals, copies, owners, _, _ = split(given)
    nearest = cdist(copies, originals).argmin(axis=1) == owners
    result = invariance(**given)
    assert result["top1"] == pytest.approx(by_original(nearest, owners).mean())
    assert 0.1 < result["top1"] < 0.9
    assert result["top1_chance"] == 1 / 30
    monkeypatch.setattr(module, "ROWS_COMPARED", 7)
    assert invariance(**given) == result
    z = [[0.0], [0.0], [1.0], [2.0], [3.0]]
    assert invariance(z + z, [-1] * 5 + list(range(5)))["top1"] == pytest.approx((1 / 2 + 1 / 2 + 3) / 5)  # ties


def test_quarters_are_by_order_whatever_the_scale():
    given = noisy(originals=40, copies=2)
    originals, copies, owners, parameters, blocks = split(given)
    order = np.argsort(parameters)
    apart = np.mean(
        [np.square(originals[i] - originals[j]).sum() for i in range(40) for j in range(40) if blocks[i] != blocks[j]]
    )
    result = invariance(**given)
    for number, rows in enumerate(np.split(order, 4), 1):
        expected = 1 - np.square(copies[rows] - originals[owners[rows]]).sum(axis=1).mean() / apart
        assert result[f"quarter_{number}"] == pytest.approx(expected, abs=1e-12)
    assert result["quarter_1"] > result["quarter_2"] > result["quarter_3"] > result["quarter_4"]
    logarithmic = [None if value is None else 500 * 16**value for value in given["parameters"]]
    assert invariance(**given | {"parameters": logarithmic}) == result
    backwards = [None if value is None else -value for value in given["parameters"]]
    assert invariance(**given | {"parameters": backwards})["quarter_4"] == result["quarter_1"]


def test_equal_parameters_stay_together():
    given = noisy(originals=20, copies=2)
    steps = [None] * 20 + np.repeat([10.0, 20.0, 30.0, 40.0], 10).tolist()
    result = invariance(**given | {"parameters": steps})
    originals, copies, owners, _, _ = split(given)
    moved = np.square(copies - originals[owners]).sum(axis=1).reshape(4, 10).mean(axis=1)
    found = np.array([result[f"quarter_{number}"] for number in (1, 2, 3, 4)])
    np.testing.assert_allclose((1 - found) / (1 - found[0]), moved / moved[0], atol=1e-12)
    two = invariance(**given | {"parameters": [None] * 20 + [0.0, 1.0] * 20})
    assert [two[f"quarter_{number}"] is None for number in (1, 2, 3, 4)] == [True, False, True, False]


def test_selectivity_compares_steps():
    given = noisy()
    originals, copies, owners, _, _ = split(given)
    steps = np.random.default_rng(3).normal(size=(17, 10))
    own = by_original(np.square(copies - originals[owners]).sum(axis=1), owners).mean()
    result = invariance(**given, steps=steps)
    assert result["selectivity"] == pytest.approx(np.square(steps).sum(axis=1).mean() / own)
    assert invariance(**given)["selectivity"] is None
    still = given | {"embeddings": np.vstack([originals, originals[owners]])}
    assert invariance(**still, steps=steps)["selectivity"] == 1e15
    assert invariance(**still, steps=0 * steps)["selectivity"] == 0
    z = np.random.default_rng(4).normal(size=(40, 10))
    both = invariance(z, [-1] * 20 + list(range(20)), steps=steps)
    assert selectivity(steps, z[20:] - z[:20]) == pytest.approx(both["selectivity"])
    with pytest.raises(ValueError, match="steps must have the 9 columns of moves"):
        selectivity(steps, z[:, :9])


def test_abx_equals_a_double_loop():
    given = noisy(noise=1.5)
    originals, copies, owners, _, _ = split(given)
    rng = np.random.default_rng(8)
    same, different = originals + rng.normal(size=originals.shape), rng.normal(size=originals.shape) + 2
    different[3] = same[3]
    wins = [
        0.5 if owner == 3 else float(np.linalg.norm(z - same[owner]) < np.linalg.norm(z - different[owner]))
        for z, owner in zip(copies, owners, strict=True)
    ]
    result = invariance(**given, same=same, different=different, return_scores=True)
    shares = 2 * by_original(np.array(wins), owners) - 1
    np.testing.assert_allclose(result["scores_abx"], shares, atol=1e-12)
    assert result["abx"] == pytest.approx(shares.mean())
    assert 0.2 < result["abx"] < 0.9  # the case is neither chance nor trivial
    assert result["scores_abx"][3] == 0
    assert invariance(**given, same=different, different=same)["abx"] == pytest.approx(-result["abx"])
    rotation = ortho_group.rvs(10, random_state=5)
    for moved in (lambda z: 1e3 * z, lambda z: z + 100, lambda z: z @ rotation):
        changed = given | {"embeddings": moved(np.asarray(given["embeddings"]))}
        assert invariance(**changed, same=moved(same), different=moved(different))["abx"] == result["abx"]
    assert invariance(**given, return_scores=True)["scores_abx"] is None
    assert invariance(**given, same=originals, different=originals * (1 + 1e-7))["abx"] == 0  # tied


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"base": [-1] * 5 + [0, 1, 2, 3, 3.5]}, "base must hold row numbers"),
        ({"base": [-1] * 5 + [0, 1, 2, 3, 10]}, "base of row 9 is 10; rows are 0 to 9, and −1 is an original"),
        ({"base": [-1] * 5 + [0, 1, 2, 3, 8]}, "base of row 9 is 8, which is not an original but a copy of row 3"),
        ({"base": [-1] * 5 + [0, 1, 2, 2, 3]}, "row 4 is −1, an original, but no row is a copy of it; 1 of 5"),
        ({"base": [-1] * 4 + [0, 1, 2, 3, 0, 1]}, "There are 4 originals; at least 5"),
        ({"blocks": [*"abcde", *"bacde"]}, "Row 5 is in block 'b', but its original, row 0, is in 'a'"),
        ({"blocks": ["a", "b", "c", "d", "d"] * 2}, r"blocks has 4 different values, .*; at least 5"),
        ({"parameters": ["x"] * 10}, r"parameters must be numbers, one per embedding \(10\)"),
        ({"parameters": [None] * 5 + [3.0] * 5}, "All parameters are 3; they must differ. Leave them out"),
        ({"same": [[1.0]] * 5}, "different is missing. Give both same and different"),
        ({"same": [[1.0]] * 5, "different": [[np.inf]] * 5}, "different must be finite"),
    ],
)
def test_refuses_what_does_not_fit(changes, message):
    given = {"embeddings": np.arange(10.0)[:, None], "base": [-1] * 5 + [0, 1, 2, 3, 4]}
    assert invariance(**given)["n"] == 5
    with pytest.raises(ValueError, match=message):
        invariance(**given | changes)
