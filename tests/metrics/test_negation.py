"""Negation against loops over SciPy's cosines, models whose knowledge is known, and what its definition implies."""

from __future__ import annotations

import math
from typing import Any, ClassVar

import numpy as np
import pytest
from scipy.spatial.distance import cosine

from audio_compositionality.metrics.negation import KINDS, negation

from .contract import MetricContract

NEAR = 1e-6


def example() -> dict[str, Any]:
    """Return arguments of `negation`: a model that is right in most of 24 items, in 6 dimensions."""
    rng = np.random.default_rng(0)
    item, place = np.arange(48) // 2, np.arange(24)
    scene, twin = rng.normal(size=(24, 6))[item], rng.normal(size=(48, 6))
    audio, text = scene + twin, scene + twin + 0.8 * rng.normal(size=(48, 6))
    names = [f"item {number}" for number in item]
    kinds = [KINDS[number] for number in place % 4]
    negated = np.where(place % 4 == 2, -1, place // 4 % 2).tolist()
    return {"audio": audio.round(3), "text": text.round(3), "item": names, "negated": negated, "kinds": kinds}


class TestContract(MetricContract):
    name = "negation"
    embeddings = ("audio", "text")
    needed = ("audio", "text", "item")
    at_constant: ClassVar = {"match": 0.5, "negated": 0.5, "affirmed": 0.5, "match_order": 0.5}

    def test_order_of_samples_does_not_matter(self) -> None:
        example = self.example()
        place = np.random.default_rng(1).permutation(24)
        rows = np.stack([2 * place, 2 * place + 1], axis=1).ravel()
        moved = {name: self.rows(values, rows if len(values) == 48 else place) for name, values in example.items()}
        assert self.numbers(**moved) == pytest.approx(self.numbers(), abs=1e-9)


def points(step: float) -> float:
    return 1.0 if step > NEAR else 0.5 if step >= -NEAR else 0.0


def test_scores_equal_loops_over_scipy() -> None:
    rng = np.random.default_rng(2)
    audio, text = rng.normal(size=(2, 120, 4))
    text[:8] = text[[0, 0, 2, 2, 4, 4, 6, 6]]  # equal captions are tied
    negated, kinds = rng.integers(-1, 2, size=60).tolist(), [KINDS[number] for number in rng.integers(3, size=60)]
    expected: dict[str, list[float]] = {name: [] for name in ("match", "negated", "affirmed", *KINDS)}
    for item, (place, kind) in enumerate(zip(negated, kinds, strict=True)):
        s = [[1 - cosine(text[2 * item + c], audio[2 * item + a]) for a in (0, 1)] for c in (0, 1)]
        match = points(s[0][0] + s[1][1] - s[0][1] - s[1][0])
        expected["match"].append(match)
        expected[kind].append(match)
        if place >= 0:
            other = 1 - place
            expected["negated"].append(points(s[place][place] - s[place][other]))
            expected["affirmed"].append(points(s[other][other] - s[other][place]))
    result = negation(audio, text, np.arange(120) // 2, negated=negated, kinds=kinds, return_scores=True)
    for name in ("match", "negated", "affirmed"):
        assert result[name] == pytest.approx(np.mean(expected[name]), abs=1e-12)
        assert [x for x in result["scores" if name == "match" else f"scores_{name}"] if x is not None] == expected[name]
    for kind in KINDS[:3]:
        assert result[f"match_{kind}"] == pytest.approx(np.mean(expected[kind]), abs=1e-12)
    assert result["match_order"] is None  # there are none
    assert 0 < result["match"] < 1
    assert 0.5 in result["scores"]


def facts(*names: str) -> list[float]:
    return [float(fact in names) for fact in ("dog", "bell", "drum", "no bell", "no drum")]


@pytest.mark.parametrize(
    ("denied", "expected"),
    [
        (facts("dog", "no bell"), (1.0, 1.0, 1.0)),  # understands the word
        (facts("dog", "bell"), (0.5, 0.0, 1.0)),  # is blind to it
        (facts("dog"), (1.0, 0.5, 1.0)),  # leaves out what is denied, whichever clip that fits
        (facts("dog", "bell", "bell"), (0.5, 0.0, 1.0)),
    ],
)
def test_a_model_is_told_by_what_it_makes_of_the_word(denied: list[float], expected: tuple[float, ...]) -> None:
    audio = [facts("dog", "drum", "no bell"), facts("dog", "bell", "no drum")]
    text = [denied, facts("dog", "bell")]
    result = negation(audio, text, ["a", "a"], negated=[0])
    assert (result["match"], result["negated"], result["affirmed"]) == expected
    turned = negation(audio[::-1], text[::-1], ["a", "a"], negated=[1])
    assert {**turned} == result


def test_independent_similarities_are_at_chance() -> None:
    n = 40_000
    s = np.random.default_rng(3).normal(size=(n, 2, 2))
    result = negation(similarity=s, negated=np.arange(n) % 2)
    for name in ("match", "negated", "affirmed"):
        assert abs(result[name] - 0.5) < 4 * math.sqrt(0.25 / n)


NOTHING: dict[str, Any] = {"audio": None, "text": None, "item": None}


def test_a_clip_that_is_near_to_everything_leaves_match_alone() -> None:
    s = np.random.default_rng(4).normal(size=(50, 2, 2)) + np.eye(2)
    hub = negation(similarity=s + np.array([9, 0]), negated=[0] * 50)
    assert hub["match"] == negation(similarity=s)["match"]
    assert (hub["negated"], hub["affirmed"]) == (1.0, 0.0)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"item": ["a", "b", "b", "a"]}, "2 consecutive rows; item 'a' at row 0"),
        ({"item": ["a", "a", "a", "a"]}, "2 consecutive rows; item 'a' at row 0"),
        ({"negated": [0]}, r"negated must have one entry per item \(2\); got 1"),
        ({"negated": [0, 2]}, "item 1 has 2. Did you mean"),
        ({"kinds": ["only", "orders"]}, "item 1 has 'orders'. Did you mean order"),
        ({"similarity": np.zeros((2, 2, 2))}, "similarity is given together with audio, text"),
        (NOTHING | {"similarity": np.zeros((2, 3, 3))}, r"similarity must be \[n, 2, 2\] .* shape \(2, 3, 3\)"),
        (NOTHING | {"similarity": [[["x", "y"], ["z", "w"]]]}, "similarity must hold real numbers"),
        (
            NOTHING | {"similarity": [np.eye(2), [[0.0, 1.0], [np.nan, 1.0]]]},
            "similarity must be finite .* the first is row 1 with nan",
        ),
    ],
)
def test_refuses_what_does_not_fit(given: dict[str, Any], message: str) -> None:
    rows = np.eye(4)
    with pytest.raises(ValueError, match=message):
        negation(**{"audio": rows, "text": rows, "item": ["a", "a", "b", "b"], **given})
