"""A-COAT across instances against plain loops, SciPy and the properties that its definition implies."""

from __future__ import annotations

import math
from itertools import combinations, permutations
from typing import Any, ClassVar

import numpy as np
import pytest
import torch
from scipy.linalg import inv, sqrtm
from scipy.spatial.distance import cdist, cosine
from scipy.stats import t as student

from audio_compositionality.metrics import a_coat_instances as module
from audio_compositionality.metrics.a_coat_instances import a_coat_instances

from .contract import MetricContract

ARRAYS = ("a", "b", "c", "d", "alone_b", "alone_d")
FITTED = ("fitted_top1", "fitted_part_top1", "fitted_alone_top1", "fitted_pairwise")


def example() -> dict[str, Any]:
    """Return arguments of `a_coat_instances`: an encoder that hears classes, 12 blocks of 4 in 6 dimensions."""
    rng = np.random.default_rng(0)
    classes, voices = rng.normal(size=(12, 6)), rng.normal(size=(24, 6))
    labels = np.stack([rng.choice(12, 4, replace=False) for _ in range(12)])
    a, c = rng.normal(size=(2, 12, 6))
    alone = [classes[labels] + voices[side::2, None] + rng.normal(0, 0.4, (12, 4, 6)) for side in (0, 1)]
    b, d = (0.7 * context[:, None] + 0.6 * source for context, source in zip((a, c), alone, strict=True))
    arrays = {"a": a, "b": b + rng.normal(0, 0.2, b.shape), "c": c, "d": d + rng.normal(0, 0.2, d.shape)}
    arrays |= {"alone_b": alone[0], "alone_d": alone[1]}
    return {name: x.round(3) for name, x in arrays.items()} | {
        "labels": [[f"class {label}" for label in row] for row in labels],
        "conditions": [[f"voice {2 * block}", f"voice {2 * block + 1}"] for block in range(12)],
    }


class TestContract(MetricContract):
    name = "a_coat_instances"
    embeddings = ARRAYS
    origin = ()
    at_constant: ClassVar = {
        **dict.fromkeys(("pairwise", "part_pairwise", "alone_pairwise", "conflict", "fitted_pairwise"), 0.5),
        **dict.fromkeys(("top1", "part_top1", "alone_top1", "step_top1", "fitted_top1"), 0.25),
        **dict.fromkeys(("replacement_cosine", "step", "step_null", "step_adjusted"), 0),
        "kept": None,
    }


# ----- from the definition, with SciPy and loops


def centred(x: np.ndarray) -> np.ndarray:
    return x - x.mean(axis=0)


def top1(x: np.ndarray, y: np.ndarray) -> float:
    """How often the own one is the nearest, from either side, shared among equal ones."""
    s = 1 - cdist(x, y, "cosine")
    nearest = [side == side.max(axis=1, keepdims=True) for side in (s, s.T)]
    return float(np.mean([np.diag(best / best.sum(axis=1, keepdims=True)) for best in nearest]))


def replacements(x: np.ndarray, y: np.ndarray) -> list[float]:
    return [1 - cosine(x[i] - x[j], y[i] - y[j]) for i, j in combinations(range(len(x)), 2)]


def pairwise(x: np.ndarray, y: np.ndarray) -> float:
    return float(np.mean(np.heaviside(replacements(x, y), 0.5)))


def numbers_of_block(
    a: np.ndarray, b: np.ndarray, c: np.ndarray, d: np.ndarray, alone_b: np.ndarray, alone_d: np.ndarray
) -> dict[str, float]:
    """All numbers of one block but those of the fitted map."""
    first, second, apart = b - a, d - c, list(permutations(range(len(b)), 2))
    s = 1 - cdist(first, second, "cosine")
    conflicts = [s[i, i] > 1 - cosine(side[i], side[j]) for side in (first, second) for i, j in apart]
    parts = [(alone_b, d), (b, alone_d)]
    return {
        "top1": top1(centred(b), centred(d)),
        "pairwise": pairwise(b, d),
        "part_top1": sum(top1(centred(x), centred(y)) for x, y in parts) / 2,
        "part_pairwise": sum(pairwise(x, y) for x, y in parts) / 2,
        "alone_top1": top1(centred(alone_b), centred(alone_d)),
        "alone_pairwise": pairwise(alone_b, alone_d),
        "replacement_cosine": float(np.mean(replacements(b, d))),
        "step": np.diag(s).mean(),
        "step_null": float(np.mean([s[i, j] for i, j in apart])),
        "step_top1": top1(first, second),
        "conflict": sum(conflicts) / len(conflicts),
    }


# ----- encoders


def material(n: int = 9, k: int = 5, dim: int = 7, seed: int = 0, noise: float = 0.7) -> dict[str, Any]:
    """Embeddings of an encoder that hears classes, conditions and contexts, and labels and conditions of its blocks."""
    rng = np.random.default_rng(seed)
    classes = rng.normal(size=(3 * k, dim))
    labels = np.stack([rng.choice(3 * k, k, replace=False) for _ in range(n)])
    voices = rng.normal(size=(2 * n, dim))
    a, c = rng.normal(size=(2, n, dim))
    alone = [classes[labels] + voices[side::2, None] + noise * rng.normal(size=(n, k, dim)) for side in (0, 1)]
    b, d = (context[:, None] + source + noise * rng.normal(size=source.shape)
            for context, source in zip((a, c), alone, strict=True))  # fmt: skip
    return {
        **dict(zip(ARRAYS, (a, b, c, d, *alone), strict=True)),
        "labels": labels.tolist(),
        "conditions": [[2 * block, 2 * block + 1] for block in range(n)],
    }


def arrays_of(inputs: dict[str, Any]) -> dict[str, np.ndarray]:
    return {name: inputs[name] for name in ARRAYS}


# ----- tests


def test_every_number_equals_plain_loops(monkeypatch: pytest.MonkeyPatch) -> None:
    inputs = material()
    whole = a_coat_instances(**inputs, return_scores=True)
    monkeypatch.setattr(module, "_CHUNK", 5 * 10 * 7)  # so few numbers at a time do not show
    result = a_coat_instances(**inputs, return_scores=True)
    assert result == whole
    blocks = [numbers_of_block(*(inputs[name][row] for name in ARRAYS)) for row in range(9)]
    for name in blocks[0]:
        expected = [block[name] for block in blocks]
        column = result["scores" if name == "top1" else f"scores_{name}"]
        np.testing.assert_allclose(column, expected, atol=1e-12, err_msg=name)
        assert result[name] == pytest.approx(np.mean(expected), abs=1e-12), name
    assert 0.2 < result["top1"] < result["alone_top1"] < 1  # the case is neither chance nor trivial
    assert 0 < result["conflict"] < 1
    adjusted = (result["step"] - result["step_null"]) / (1 - result["step_null"])
    assert result["step_adjusted"] == pytest.approx(adjusted, abs=1e-12)
    kept = (result["top1"] - 1 / 5) / (result["alone_top1"] - 1 / 5)
    assert result["kept"] == pytest.approx(kept, abs=1e-12)
    assert (result["top1_chance"], result["pairwise_chance"], result["n"], result["classes"]) == (0.2, 0.5, 9, 5)
    without = a_coat_instances(**{name: inputs[name] for name in "abcd"}, return_scores=True)
    for name in ("part_top1", "part_pairwise", "alone_top1", "alone_pairwise", "kept"):
        assert without[name] is without[f"scores_{name}"] is None
    assert without["scores"] == result["scores"]


def test_kept_contributions_are_the_change_that_a_block_makes() -> None:
    """The linearised contribution of a block is the derivative of the ratio by the block's weight."""
    inputs = material(n=40)
    result = a_coat_instances(**arrays_of(inputs), return_scores=True)
    scene, alone = np.array(result["scores"]) - 0.2, np.array(result["scores_alone_top1"]) - 0.2
    for row in (0, 7):
        weights = np.full(40, 1 / 40)
        weights = (1 - 1e-6) * weights + 1e-6 * np.eye(40)[row]
        change = (weights @ scene / (weights @ alone) - result["kept"]) / 1e-6
        assert result["scores_kept"][row] - result["kept"] == pytest.approx(change, abs=1e-4)


def test_tied_candidates_share_the_choice() -> None:
    # Candidates 0 and 1 of D are one scene; candidate 2 is opposite to both.
    a = c = [[0.0, 0.0]]
    b = [[[1.0, 0.1], [1.0, -0.1], [-2.0, 0.0]]]
    d = [[[1.0, 0.0], [1.0, 0.0], [-2.0, 0.0]]]
    result = a_coat_instances(a, b, c, d)
    # From B: 1/2, 1/2, 1. From D: its two equal ones have b_0 and b_1 equally near: 1/2, 1/2, and 1.
    assert result["top1"] == pytest.approx((1 / 2 + 1 / 2 + 1) / 3)
    assert result["pairwise"] == pytest.approx((1 / 2 + 1 + 1) / 3)  # d_0 − d_1 is nothing


def test_kept_is_none_where_the_interval_of_alone_reaches_the_margin() -> None:
    rng = np.random.default_rng(8)
    for n in (2, 3, 8, 30):
        for _ in range(20):
            values = rng.normal(0.4, 0.15, n)
            low, _ = student.interval(0.95, n - 1, values.mean(), values.std(ddof=1) / math.sqrt(n))
            assert module._surely_above(values, 0.3) == (low > 0.3)
    assert module._surely_above(np.ones(2), 0.3)
    assert not module._surely_above(np.ones(1), 0.3)
    one = {name: x[:1] for name, x in arrays_of(material()).items()}
    assert a_coat_instances(**one)["kept"] is None


# ----- the fitted map


def loop_fitted(inputs: dict[str, Any]) -> list[dict[str, float]]:
    """The scores of each block after the explicit inverse square root of the shrunk covariance."""
    results = []
    labels, conditions = inputs["labels"], inputs["conditions"]
    for tested in range(len(labels)):
        steps = []
        for block in range(len(labels)):
            if set(conditions[block]) & set(conditions[tested]):
                continue
            place = [k for k, label in enumerate(labels[block]) if label not in labels[tested]]
            if len(place) > 1:
                b, d = inputs["b"][block][place], inputs["d"][block][place]
                steps.append((b - b.mean(axis=0)) - (d - d.mean(axis=0)))
        rows = np.concatenate(steps)
        covariance = np.mean([np.outer(row, row) for row in rows], axis=0)
        shift = 0.1 * np.linalg.eigvalsh(covariance).mean()
        whitening = np.real(inv(sqrtm(covariance + shift * np.eye(len(covariance)))))
        b, d, alone_b, alone_d = (centred(inputs[name][tested]) @ whitening for name in ARRAYS if name not in "ac")
        results.append(
            {
                "fitted_top1": top1(b, d),
                "fitted_part_top1": (top1(alone_b, d) + top1(b, alone_d)) / 2,
                "fitted_alone_top1": top1(alone_b, alone_d),
                "fitted_pairwise": pairwise(b, d),
            }
        )
    return results


@pytest.mark.parametrize("dim", [6, 25, 60])
def test_fitted_map_equals_the_explicit_inverse_square_root(dim: int) -> None:
    """In fewer and in more dimensions than there are steps to fit on, where another system is solved."""
    inputs = material(n=10, k=4, dim=dim, noise=1.5)
    inputs["conditions"] = [[block % 7, 7 + block % 5] for block in range(10)]  # some blocks share one
    result = a_coat_instances(**inputs, return_scores=True)
    expected = loop_fitted(inputs)
    for name in FITTED:
        np.testing.assert_allclose(result[f"scores_{name}"], [block[name] for block in expected], atol=1e-9)
    assert result["scores_fitted_top1"] != result["scores"]


def test_fitted_map_does_not_see_the_block_s_classes_and_conditions() -> None:
    inputs = material(n=12)
    inputs["conditions"] = [[block % 11, 20 + block] for block in range(12)]  # blocks 0 and 11 share one
    expected = a_coat_instances(**inputs, return_scores=True)
    changed = {name: inputs[name].copy() for name in "bd"}
    rng = np.random.default_rng(10)
    for block in range(1, 12):
        for place, label in enumerate(inputs["labels"][block]):
            if block == 11 or label in inputs["labels"][0]:
                for array in changed.values():
                    array[block, place] = 100 * rng.normal(size=7)
    result = a_coat_instances(**inputs | changed, return_scores=True)
    for name in FITTED:
        assert result[f"scores_{name}"][0] == expected[f"scores_{name}"][0], name
        assert result[f"scores_{name}"][1:] != expected[f"scores_{name}"][1:], name


def test_what_the_map_is_fitted_on_decides_whether_there_is_one() -> None:
    inputs = material(n=12)
    expected, plain = a_coat_instances(**inputs), a_coat_instances(**arrays_of(inputs))
    assert expected["fitted_top1"] is not None
    one_voice, one_set = [["same voice", block] for block in range(12)], [list("abcde")] * 12
    for changes in ({"conditions": one_voice}, {"labels": one_set}):
        assert a_coat_instances(**inputs | changes) == plain
    few = a_coat_instances(**{name: values[:5] for name, values in inputs.items()}, return_scores=True)
    assert all(few[name] is few[f"scores_{name}"] is None for name in FITTED)
    # Empty conditions are shared with nobody, and names may be of any kind.
    assert a_coat_instances(**inputs | {"conditions": [["", None]] * 12}) == expected
    names = {name: torch.tensor(inputs[name]) for name in ("labels", "conditions")}
    assert a_coat_instances(**inputs | names) == expected
    # Where instances do not differ, there is nothing to take away.
    inputs["d"] = inputs["b"] + 1
    result = a_coat_instances(**inputs, return_scores=True)
    assert result["fitted_top1"] == result["top1"] == 1
    np.testing.assert_allclose(result["scores_fitted_part_top1"], result["scores_part_top1"], atol=1e-12)


# ----- what is refused


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"alone_b": None}, "alone_d is given without alone_b; part and alone need both"),
        ({"labels": None}, "conditions is given without labels; the fitted map needs both"),
        (
            {"labels": [[1, 2, 3, 4, 1]] * 9},
            r"must be 5 different values; row 0 is \[1, 2, 3, 4, 1\]",
        ),
        ({"labels": [[1, 2, 3, 4, 5]] * 8 + [[1, 2]]}, r"with 5 entries each; row 8 is \[1, 2\]"),
        ({"labels": [[1, 2, 3, 4, 5.5]] * 9}, "labels must be strings or integers; row 0 has 5.5"),
        ({"conditions": [["g", "h"]] * 8 + [["g", True]]}, "conditions must be strings or integers; row 8 has True"),
        ({"b": np.zeros((9, 1, 7))}, r"b must be \[n, K, dim\] with n ≥ 1, K ≥ 2 and dim ≥ 1; got shape \(9, 1, 7\)"),
        ({"d": np.zeros((9, 4, 7))}, r"with one n, K and dim; got .* b \(9, 5, 7\), c \(9, 7\), d \(9, 4, 7\)"),
    ],
)
def test_refusals(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        a_coat_instances(**material() | changes)
