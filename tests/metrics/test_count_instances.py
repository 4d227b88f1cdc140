"""Counting against cases worked by hand, scikit-learn's ridge, and what the definition implies."""

from __future__ import annotations

from itertools import permutations
from typing import Any, ClassVar

import numpy as np
import pytest
from sklearn.linear_model import Ridge

from audio_compositionality.metrics.count_instances import HELD, count_instances

from .contract import MetricContract


class TestContract(MetricContract):
    name = "count_instances"
    embeddings = ("embeddings",)
    origin = ()
    at_constant: ClassVar = {"worst": 0.5, "order_energy": 0.5, "order_up": 0.5, "order_down": 0.5, "exact": None}


def ladders_of(counts: list[int], labels: int, each: int, held: tuple[str, ...] = tuple(HELD)) -> dict[str, Any]:
    """Columns of `each` ladders of every label for all that is held."""
    ladders = np.arange(len(held) * labels * each)
    columns = {"ladders": ladders, "held": np.array(held)[ladders % len(held)], "labels": ladders // len(held) % labels}
    return {"counts": np.tile(counts, len(ladders))} | {k: np.repeat(v, len(counts)) for k, v in columns.items()}


def test_a_count_is_counted_and_a_count_up_to_three_is_at_chance_beyond() -> None:
    columns = ladders_of([1, 2, 3, 4, 5], 4, 3)
    exact = count_instances(columns["counts"][:, None], **columns)
    assert exact["worst"] == exact["order_up"] == exact["order_down"] == 1
    assert exact["error"] < 0.2 < exact["error_constant"] == pytest.approx((1 + 2 + 3 + 2 + 1) / 5)
    saturated = count_instances(np.minimum(columns["counts"], 3)[:, None], **columns)
    # High counts are one; a probe that is trained on them learns nothing.
    assert (saturated["order_up"], saturated["order_down"]) == (0.5, 0.5)


def test_a_part_in_which_nothing_is_told_is_the_worst() -> None:
    columns = ladders_of([2, 3, 4, 5], 3, 40)
    told = np.where(columns["held"] == "span", 0, columns["counts"])
    noise = np.random.default_rng(0).normal(size=(len(told), 2)) * 1e-3
    result = count_instances(np.column_stack([told, noise]), **columns)
    assert [result[f"order_{name}"] for name in ("energy", "density", "activity")] == [1, 1, 1]
    # Each of the 120 ladders has one pair up and one down, each right by chance.
    assert abs(result["order_span"] - 0.5) < 3 * np.sqrt(0.25 / 2 / 120)
    assert result["worst"] == result["order_span"]


def test_probe_is_that_of_scikit_learn() -> None:
    rng = np.random.default_rng(3)
    columns = ladders_of([1, 2, 3, 4, 5], 3, 2, ("density",))
    counts, labels = columns["counts"], columns["labels"]
    z = rng.normal(size=(len(counts), 4)) + np.outer(counts, [0.5, 0.2, 0, 0])
    x = (z - z.mean(axis=0)) / np.sqrt(z.var(axis=0).mean())
    predictions = np.zeros(len(counts))
    for test in range(3):
        for trained in (counts <= 3, counts > 3):
            fit, held_out = ((labels == (test + step) % 3) & trained for step in (2, 1))
            scale = np.sqrt(x[fit].var(axis=0).mean())
            probes = [Ridge(penalty).fit(x[fit] / scale, counts[fit]) for penalty in np.logspace(-2, 6, 17)]
            losses = [np.square(probe.predict(x[held_out] / scale) - counts[held_out]).mean() for probe in probes]
            tested = (labels == test) & ~trained
            predictions[tested] = probes[int(np.argmin(losses))].predict(x[tested] / scale)
    result = count_instances(z, **columns, return_scores=True)
    assert result["error"] == pytest.approx(np.abs(predictions - counts).mean(), abs=1e-9)
    by_ladder = predictions.reshape(-1, 5)
    up = by_ladder[:, 4] > by_ladder[:, 3]
    down = np.mean([by_ladder[:, j] > by_ladder[:, i] for i, j in ((0, 1), (0, 2), (1, 2))], axis=0)
    np.testing.assert_allclose(result["scores"], (up + down) / 2, atol=1e-12)
    assert 0.5 < result["worst"] < 1


def test_captions_are_matched_pair_by_pair() -> None:
    columns = ladders_of([1, 2, 3], 1, 1, ("span",))
    # Cosines of clips (rows) with unit captions: the first and the second are exchanged.
    clips = np.array([[0, 1, 0], [1, 0, 0], [0, 0, 1]])
    result = count_instances(clips, **columns, texts=np.eye(3))
    assert (result["order_span"], result["exact"], result["exact_chance"]) == pytest.approx((2 / 3, 1 / 3, 1 / 3))
    assert result["order_up"] is result["error"] is result["order_energy"] is None
    # Of the 6 orders of 3 words one is right in all pairs: the floor is the best of 6.
    assert result["floor"] == 1
    same = count_instances(clips, **columns, texts=np.ones((3, 3)))
    assert (same["worst"], same["exact"]) == (0.5, pytest.approx(1 / 3))


def test_one_of_24_orders_of_the_words_is_above_the_floor() -> None:
    columns = ladders_of([1, 2, 3, 4], 1, 1, ("span",))
    rng = np.random.default_rng(0)
    for clips in rng.normal(size=(20, 4, 4)):
        orders = [list(order) for order in permutations(range(4))]
        results = [count_instances(clips, **columns, texts=np.eye(4)[order]) for order in orders]
        assert len({result["floor"] for result in results}) == 1
        assert sum(result["worst"] > result["floor"] for result in results) <= 1
        assert sum(result["worst"] >= result["floor"] for result in results) >= 2


def test_captions_that_differ_by_rounding_are_tied() -> None:
    columns = ladders_of([2, 3, 4, 5], 1, 6)
    rng = np.random.default_rng(0)
    texts = rng.normal(size=8) + rng.normal(size=(len(columns["counts"]), 8)) * 1e-8
    result = count_instances(rng.normal(size=texts.shape), **columns, texts=texts.astype(np.float32))
    assert (result["worst"], result["exact"], result["floor"]) == (0.5, 0.25, 0.5)


@pytest.mark.parametrize("labels", [2, 3, 7])
def test_few_labels_suffice(labels: int) -> None:
    columns = ladders_of([2, 3, 4, 5], labels, 1)
    assert count_instances(columns["counts"][:, None], **columns)["worst"] == 1


def test_no_label_is_tested_that_was_trained() -> None:
    """What tells the count of one label only, by a sign for itself, is of no use for the others."""
    columns = ladders_of([2, 3, 4, 5], 4, 25)
    z = np.zeros((len(columns["counts"]), 4))
    z[np.arange(len(z)), columns["labels"]] = columns["counts"]
    assert count_instances(z, **columns)["worst"] < 0.6


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"held": ["level"] * 8}, "held must be one of .* row 0 has 'level'"),
        ({"counts": [2, 3, 4, 4] * 2}, r"Ladder 0 has the counts \[2, 3, 4, 4\]"),
        ({"counts": [1, 2, 3, 4] * 2}, "2 or more up to 3 and 2 or more above it"),
        ({"labels": [0, 0, 0, 1, 1, 1, 1, 1]}, "Ladder 0 lies in two labels"),
        ({"labels": [0] * 8}, "where span is held, all ladders are of 0"),
        ({"texts": np.ones((8, 3))}, r"texts must have the shape of embeddings, \(8, 2\); got \(8, 3\)"),
    ],
)
def test_refuses_what_is_no_ladder(change: dict[str, Any], message: str) -> None:
    columns = ladders_of([2, 3, 4, 5], 2, 1, ("span",))
    with pytest.raises(ValueError, match=message):
        count_instances(np.ones((8, 2)), **columns | change)
