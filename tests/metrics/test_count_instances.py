"""Counting in captions against cases worked by hand, and what the definition implies."""

from __future__ import annotations

from itertools import permutations
from typing import Any, ClassVar

import numpy as np
import pytest

from audio_compositionality.metrics.count_instances import HELD, count_instances

from .contract import MetricContract


def example() -> dict[str, Any]:
    """Return arguments of `count_instances`: a noisy encoder of 24 ladders of 4 clips and captions."""
    rng = np.random.default_rng(0)
    counts, ladders = np.tile([2, 3, 4, 5], 24), np.repeat(np.arange(24), 4)
    words = rng.normal(size=(6, 6))[counts]
    return {
        "embeddings": (words + rng.normal(size=(96, 6))).round(3),
        "texts": (words + rng.normal(0, 0.2, (96, 6))).round(3),
        "counts": counts,
        "ladders": [f"ladder-{ladder}" for ladder in ladders],
        "held": [list(HELD)[ladder % 4] for ladder in ladders],
    }


class TestContract(MetricContract):
    name = "count_instances"
    embeddings = ("embeddings", "texts")
    origin = None
    at_constant: ClassVar = {"worst": 0.5, "trivial": 0.5, "order_energy": 0.5, "exact": 0.25, "exact_chance": 0.25}


def ladders_of(counts: list[int], each: int, held: tuple[str, ...] = tuple(HELD)) -> dict[str, Any]:
    """Columns of `each` ladders for all that is held."""
    ladders = np.repeat(np.arange(len(held) * each), len(counts))
    columns = {"ladders": ladders, "held": np.array(held)[ladders % len(held)]}
    return {"counts": np.tile(counts, len(held) * each), **columns}


def test_a_part_in_which_nothing_is_told_is_the_worst() -> None:
    columns, rng = ladders_of([2, 3, 4, 5], 10), np.random.default_rng(0)
    words = rng.normal(size=(6, 32))
    clips = np.where((columns["held"] == "span")[:, None], words[0], words[columns["counts"]])
    result = count_instances(clips, words[columns["counts"]], **columns, return_scores=True)
    assert [result[f"order_{name}"] for name in ("energy", "density", "activity")] == [1, 1, 1]
    assert result["worst"] == result["order_span"] == pytest.approx(0.5)
    np.testing.assert_array_equal(result["scores"], result["scores_order_span"])
    assert np.mean(result["scores_order_energy"]) == pytest.approx(1)


def test_captions_are_matched_pair_by_pair() -> None:
    columns = ladders_of([1, 2, 3], 1, ("span",))
    # Cosines of clips (rows) with unit captions: the first and the second are exchanged.
    clips = np.array([[0, 1, 0], [1, 0, 0], [0, 0, 1]])
    result = count_instances(clips, np.eye(3), **columns)
    assert (result["order_span"], result["exact"], result["exact_chance"]) == pytest.approx((2 / 3, 1 / 3, 1 / 3))
    assert result["order_energy"] is None
    # Of the 6 orders of 3 words one is right in all pairs: the trivial baseline is the best of 6.
    assert result["trivial"] == 1
    same = count_instances(clips, np.ones((3, 3)), **columns)
    assert (same["worst"], same["exact"]) == (0.5, pytest.approx(1 / 3))


def test_one_of_24_orders_of_the_words_is_above_the_trivial() -> None:
    columns, rng = ladders_of([1, 2, 3, 4], 1, ("span",)), np.random.default_rng(0)
    for clips in rng.normal(size=(20, 4, 4)):
        results = [count_instances(clips, np.eye(4)[list(order)], **columns) for order in permutations(range(4))]
        assert len({result["trivial"] for result in results}) == 1
        assert sum(result["worst"] > result["trivial"] for result in results) <= 1
        assert sum(result["worst"] >= result["trivial"] for result in results) >= 2


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"held": ["level"] * 8}, "held must be one of .* row 0 has 'level'"),
        ({"held": ["span"] * 7 + ["energy"]}, "Ladder 1 lies in two values of held"),
        ({"counts": [2, 3, 4, 4] * 2}, r"Ladder 0 has the counts \[2, 3, 4, 4\]"),
        ({"counts": ["two", "three", "four", "five"] * 2}, "counts must be integers; row 0 has 'two'"),
        ({"texts": np.ones((8, 3))}, r"texts must have the shape of embeddings, \(8, 2\); got \(8, 3\)"),
    ],
)
def test_refuses_what_is_no_ladder(change: dict[str, Any], message: str) -> None:
    columns = {"texts": np.ones((8, 2)), **ladders_of([2, 3, 4, 5], 2, ("span",))}
    with pytest.raises(ValueError, match=message):
        count_instances(np.ones((8, 2)), **columns | change)
