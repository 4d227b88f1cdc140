"""Composed retrieval against SciPy and plain loops, and cases worked by hand."""

from __future__ import annotations

from math import comb
from typing import Any

import numpy as np
import pytest
from scipy.spatial.distance import cdist
from scipy.stats import ortho_group, rankdata

from audio_compositionality.metrics.composed_retrieval import KINDS, composed_retrieval

from .contract import MetricContract


def example() -> dict[str, Any]:
    """Return arguments of `composed_retrieval`: a model that composes some of 30 queries, in 8 dimensions."""
    rng = np.random.default_rng(0)
    kinds = [KINDS[row % 3] for row in range(30)]
    candidates = [rng.normal(size=(6 if kind == "without" else 8, 8)).round(3) for kind in kinds]
    target = rng.integers(6, size=30)
    source, noise = rng.normal(size=(2, 30, 8))
    change = np.stack([x[place] for x, place in zip(candidates, target, strict=True)]) - source + noise
    arrays = {"source": source.round(3), "change": change.round(3), "target": target}
    return {**arrays, "candidates": [x.tolist() for x in candidates], "kinds": kinds}


class TestContract(MetricContract):
    name = "composed_retrieval"
    embeddings = ("source", "change")
    turns = False  # the candidates would have to turn along, see below


def queries(n: int = 60, dim: int = 7, seed: int = 0) -> dict[str, Any]:
    """A model that partly composes, with 2 to 9 candidates a query."""
    rng = np.random.default_rng(seed)
    source, change, noise = rng.normal(size=(3, n, dim))
    candidates = [rng.normal(size=(int(size), dim)) for size in rng.integers(2, 10, size=n)]
    target = np.array([int(rng.integers(len(x))) for x in candidates])
    for x, place, one in zip(candidates, target, source + change + noise, strict=True):
        x[place] = one
    return {"source": source, "change": change, "candidates": candidates, "target": target}


def ranks(query: np.ndarray, candidates: list[np.ndarray], target: np.ndarray) -> np.ndarray:
    rows = zip(query, candidates, target, strict=True)
    return np.array([rankdata(cdist([one], x, "cosine")[0])[place] for one, x, place in rows])


def test_ranks_are_scipy_s() -> None:
    given = queries()
    source, change, (candidates, target) = given["source"], given["change"], list(given.values())[2:]
    result = composed_retrieval(**given)
    query = sum(x / np.linalg.norm(x, axis=1, keepdims=True) for x in (source, change))
    expected = ranks(query, candidates, target)
    alone = [ranks(query, candidates, target) for query in (source, change)]
    assert result["r1"] == pytest.approx(np.mean(expected == 1))
    assert result["mrr"] == pytest.approx(np.mean(1 / expected))
    assert result["source_only_r1"] == pytest.approx(np.mean(alone[0] == 1))
    assert result["change_only_r1"] == pytest.approx(np.mean(alone[1] == 1))
    assert result["chance"] < result["change_only_r1"] < result["r1"] < 1  # the case is neither chance nor trivial


def test_trivial_is_the_greatest_of_three_and_gain_is_paired() -> None:
    given = queries()
    result = composed_retrieval(**given, return_scores=True)
    greatest = "source_only_r1" if result["source_only_r1"] > result["change_only_r1"] else "change_only_r1"
    assert result["trivial"] == result[greatest] > result["chance"]
    paired = np.subtract(result["scores"], result[f"scores_{greatest}"])
    np.testing.assert_array_equal(result["scores_gain"], paired)
    nothing = composed_retrieval(**{**given, "source": 0 * given["source"], "change": 0 * given["change"]})
    sizes = np.array([len(x) for x in given["candidates"]])
    assert nothing["r1"] == nothing["trivial"] == pytest.approx(np.mean(1 / sizes), abs=1e-12)
    assert nothing["gain"] == pytest.approx(0, abs=1e-12)
    # The mean of 1/rank over all orders: (1/K) Σ 1/k, by a sum of binomials as another form.
    harmonic = [sum((-1) ** (k + 1) * comb(size, k) / k for k in range(1, size + 1)) for size in sizes.tolist()]
    assert nothing["mrr"] == nothing["chance_mrr"] == pytest.approx(np.mean(harmonic / sizes), abs=1e-9)


def test_ties_are_shared() -> None:
    twice = [[1.0, 1.0], [1.0, 1.0], [1.0, -1.0], [-1.0, -1.0]]
    result = composed_retrieval([[1.0, 0.0]], [[0.0, 1.0]], [twice], [1])
    assert (result["r1"], result["mrr"]) == (0.5, 0.75)
    assert (result["source_only_r1"], result["change_only_r1"]) == (pytest.approx(1 / 3), 0.5)


def test_kinds_are_means_of_their_rows() -> None:
    given, names = queries(), [KINDS[place % 2] for place in range(60)]
    result = composed_retrieval(**given, kinds=names, return_scores=True)
    first = np.array(result["scores"])
    assert result["r1_then"] == pytest.approx(first[::2].mean())
    assert result["r1_without"] == pytest.approx(first[1::2].mean())
    assert result["r1_attribute"] is result["scores_r1_attribute"] is None
    assert "r1_then" in composed_retrieval(**given)


def test_all_turned_together_is_the_same() -> None:
    given, turn = queries(), ortho_group.rvs(7, random_state=1)
    turned = {"source": given["source"] @ turn, "change": given["change"] @ turn}
    moved = composed_retrieval(**{**given, **turned, "candidates": [3 * x @ turn for x in given["candidates"]]})
    assert moved == composed_retrieval(**given)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"target": [2]}, r"0 to 1; row 0 has 2"),
        ({"target": [-1]}, r"row 0 has -1"),
        ({"candidates": [[[1.0, 1.0]]]}, r"2 or more candidates.*candidates\[0\] is \[1, 2\]"),
        ({"candidates": [[[1.0], [2.0]]]}, r"2 and 2 columns, and candidates\[0\] is \[2, 1\]"),
        ({"candidates": [[[1.0, np.nan], [2.0, 1.0]]]}, r"candidates\[0\] must be finite"),
        ({"candidates": [[[1.0, 1.0], [2.0]]]}, r"candidates\[0\] must be an array .* equal length"),
        ({"kinds": ["them"]}, r"'them'. Did you mean then"),
    ],
)
def test_refuses_what_it_cannot_score(changes: dict[str, Any], message: str) -> None:
    good = {"source": [[1.0, 0.0]], "change": [[0.0, 1.0]], "candidates": [[[1.0, 1.0], [1.0, -1.0]]], "target": [0]}
    with pytest.raises(ValueError, match=message):
        composed_retrieval(**good | changes)
