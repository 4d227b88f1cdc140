"""A-COAT across instances against plain loops, SciPy and the properties that its definition implies."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import permutations
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from scipy.linalg import inv, sqrtm
from scipy.stats import ortho_group
from scipy.stats import t as student

from audio_compositionality.metrics import a_coat_instances as module
from audio_compositionality.metrics.a_coat_instances import a_coat_instances

from .contract import MetricContract, load_metric

ARRAYS = ("a", "b", "c", "d", "alone_b", "alone_d")
FITTED = ("fitted_top1", "fitted_part_top1", "fitted_alone_top1", "fitted_pairwise")


class TestContract(MetricContract):
    name = "a_coat_instances"
    embeddings = ARRAYS

    def test_embeddings_that_are_none_are_refused_by_name(self) -> None:
        """As the contract has it, but most of these arguments have three axes."""
        for name in self.embeddings:
            array = self.example()[name]
            bad = array.copy()
            bad[3:, ..., 1] = np.nan
            axes = r"\[n, dim\]" if array.ndim == 2 else r"\[n, K, dim\]"
            ragged: Any = [[1.0, 2.0], [1.0]] if array.ndim == 2 else [[[1.0], [2.0]], [[1.0]]]
            cases = {
                "not finite": (bad, f"{name} must be finite.* the first is row 3 with nan"),
                "infinite": (np.where(np.isnan(bad), -np.inf, bad), f"{name} must be finite.* row 3 with -inf"),
                "too large": (np.where(np.isnan(bad), 1e200, bad), f"{name} must be finite"),
                "an axis less": (array[0], f"{name} must be {axes}"),
                "no rows": (array[:0], rf"{name} must be {axes}.*shape \(0, "),
                "no columns": (array[..., :0], rf"{name} must be {axes}.*, 0\)"),
                "ragged": (ragged, f"{name} must be an array .* equal length"),
                "words": (np.full(array.shape, "x"), f"{name} must hold real numbers"),
                "complex": (array.astype(complex), f"{name} must hold real numbers"),
                "a row less": (array[:-1], r"\b11\b"),
                "a dimension less": (array[..., 1:], rf"must be \[n, dim\] .* got .*{name} \(12, (4, )?5\)"),
            }
            for value, message in cases.values():
                with pytest.raises(ValueError, match=message):
                    self.compute(**{name: value})


# ----- from the definition, in plain Python


def difference(x: Sequence[float], y: Sequence[float]) -> list[float]:
    return [p - q for p, q in zip(x, y, strict=True)]


def cosine(x: Sequence[float], y: Sequence[float]) -> float:
    lengths = math.sqrt(sum(p * p for p in x)) * math.sqrt(sum(q * q for q in y))
    return sum(p * q for p, q in zip(x, y, strict=True)) / lengths if lengths > 0 else 0.0


def share(values: Sequence[float], place: int) -> float:
    """1 where a value is the largest of all, shared among equal ones."""
    return (values[place] == max(values)) / values.count(max(values))


def loop_top1(x: list[list[float]], y: list[list[float]]) -> float:
    total, k = 0.0, len(x)
    for place in range(k):
        total += share([cosine(x[place], other) for other in y], place)
        total += share([cosine(other, y[place]) for other in x], place)
    return total / (2 * k)


def centred(x: list[list[float]]) -> list[list[float]]:
    mean = [sum(column) / len(x) for column in zip(*x, strict=True)]
    return [difference(row, mean) for row in x]


def loop_pairs(x: list[list[float]], y: list[list[float]]) -> list[float]:
    k = len(x)
    return [cosine(difference(x[i], x[j]), difference(y[i], y[j])) for i in range(k) for j in range(i + 1, k)]


def loop_pairwise(x: list[list[float]], y: list[list[float]]) -> float:
    signs = [1.0 if p > 0 else 0.5 if p == 0 else 0.0 for p in loop_pairs(x, y)]
    return sum(signs) / len(signs)


def loop_block(a: Any, b: Any, c: Any, d: Any, alone_b: Any, alone_d: Any) -> dict[str, float]:
    """All numbers of one block but those of the fitted map."""
    k = len(b)
    first, second = [difference(x, a) for x in b], [difference(x, c) for x in d]
    s = [[cosine(x, y) for y in second] for x in first]
    apart = [(i, j) for i in range(k) for j in range(k) if i != j]
    conflicts = [s[i][i] > cosine(side[i], side[j]) for side in (first, second) for i, j in apart]
    parts = [(alone_b, d), (b, alone_d)]
    pairs = loop_pairs(b, d)
    return {
        "top1": loop_top1(centred(b), centred(d)),
        "pairwise": loop_pairwise(b, d),
        "part_top1": sum(loop_top1(centred(x), centred(y)) for x, y in parts) / 2,
        "part_pairwise": sum(loop_pairwise(x, y) for x, y in parts) / 2,
        "alone_top1": loop_top1(centred(alone_b), centred(alone_d)),
        "alone_pairwise": loop_pairwise(alone_b, alone_d),
        "replacement_cosine": sum(pairs) / len(pairs),
        "step": sum(s[i][i] for i in range(k)) / k,
        "step_null": sum(s[i][j] for i, j in apart) / len(apart),
        "step_top1": loop_top1(first, second),
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


def scenes_of(sources: dict[str, Any], encode: Any) -> dict[str, np.ndarray]:
    """Embeddings of blocks of waveforms, of which scenes are sums: contexts a, c and sources alone_b, alone_d."""
    a, c, alone_b, alone_d = (sources[name] for name in ("a", "c", "alone_b", "alone_d"))
    waves = {"a": a, "b": a[:, None] + alone_b, "c": c, "d": c[:, None] + alone_d}
    return {name: encode(x) for name, x in {**waves, "alone_b": alone_b, "alone_d": alone_d}.items()}


def oracle(n: int = 6, k: int = 8, hears: bool = True, seed: int = 0) -> dict[str, np.ndarray]:
    """One-hot class beside strong vectors of the context and of the condition, in dimensions of their own."""
    rng = np.random.default_rng(seed)
    contexts = 1000 * rng.normal(size=(2, n, 16))
    conditions = np.zeros((2, n, 2 * n))
    conditions[0, np.arange(n), np.arange(n)] = conditions[1, np.arange(n), n + np.arange(n)] = 30

    def embedding(context: Any, condition: Any, classes: Any) -> np.ndarray:
        parts = [np.broadcast_to(x, (n, k, x.shape[-1])) for x in (context, condition, classes)]
        return np.concatenate(parts, axis=2)

    classes, nothing = np.eye(k)[None] * hears, np.zeros((1, 1, 1))
    empty = [np.zeros((1, 1, 16)), np.zeros((1, 1, 2 * n)), np.zeros((1, 1, k))]
    result = {}
    for side, (context, scene, alone) in enumerate((("a", "b", "alone_b"), ("c", "d", "alone_d"))):
        where, how = contexts[side][:, None], conditions[side][:, None]
        result[context] = embedding(where, empty[1], empty[2])[:, 0]
        result[scene] = embedding(where, how, classes + nothing)
        result[alone] = embedding(empty[0], how, classes + nothing)
    return result


# ----- tests


def test_every_number_equals_plain_loops() -> None:
    inputs = material()
    result = a_coat_instances(**inputs, return_scores=True)
    blocks = [loop_block(*(inputs[name][row].tolist() for name in ARRAYS)) for row in range(9)]
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


def test_without_sources_alone_their_numbers_are_none() -> None:
    inputs = material()
    few = {name: inputs[name] for name in "abcd"}
    result, whole = a_coat_instances(**few, return_scores=True), a_coat_instances(**inputs, return_scores=True)
    for name in ("part_top1", "part_pairwise", "alone_top1", "alone_pairwise", "kept"):
        assert result[name] is result[f"scores_{name}"] is None
    assert result["scores"] == whole["scores"]
    assert result["scores_conflict"] == whole["scores_conflict"]


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_constant_encoder_is_at_chance_exactly(dtype: type) -> None:
    vector = np.random.default_rng(1).normal(size=16).astype(dtype)
    shapes = [(7, 16) if name in "ac" else (7, 6, 16) for name in ARRAYS]
    names = {"labels": np.arange(42).reshape(7, 6), "conditions": np.arange(14).reshape(7, 2)}
    result = a_coat_instances(*(np.broadcast_to(vector, shape) for shape in shapes), **names)
    for name in ("top1", "part_top1", "alone_top1", "step_top1", *FITTED[:3]):
        assert result[name] == pytest.approx(1 / 6, abs=1e-15), name
    for name in ("pairwise", "part_pairwise", "alone_pairwise", "conflict", "fitted_pairwise"):
        assert result[name] == 0.5, name
    for name in ("replacement_cosine", "step", "step_null", "step_adjusted"):
        assert result[name] == 0, name
    assert result["kept"] is None


@pytest.mark.parametrize("rotated", [False, True])
def test_oracle_scores_one_and_without_the_class_chance(rotated: bool) -> None:
    rotation = ortho_group.rvs(16 + 12 + 8, random_state=2) if rotated else np.eye(36)
    result = a_coat_instances(**{name: x @ rotation for name, x in oracle().items()})
    for name in ("top1", "pairwise", "part_top1", "part_pairwise", "alone_top1", "alone_pairwise", "step_top1", "kept"):
        assert result[name] == pytest.approx(1, abs=1e-12), name
    assert result["replacement_cosine"] == pytest.approx(1)
    assert round(result["step"], 2) == 0.0
    assert result["conflict"] == 0
    deaf = a_coat_instances(**{name: x @ rotation for name, x in oracle(hears=False).items()})
    for name in ("top1", "part_top1", "alone_top1"):
        assert deaf[name] == pytest.approx(1 / 8, abs=1e-12), name
    for name in ("pairwise", "part_pairwise", "alone_pairwise"):
        assert deaf[name] == pytest.approx(1 / 2, abs=1e-12), name


def test_noise_brings_the_oracle_down_to_chance() -> None:
    rng = np.random.default_rng(3)
    tops = []
    for deviation in (0.05, 0.2, 0.4, 5.0):
        noisy = {name: x + deviation * rng.normal(size=x.shape) for name, x in oracle(n=24, seed=4).items()}
        tops.append(a_coat_instances(**noisy)["top1"])
    assert tops == sorted(tops, reverse=True)
    assert tops[0] > 0.95
    assert abs(tops[-1] - 1 / 8) < 0.04


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_linear_encoder_has_alone_equal_part_equal_scene(dtype: type) -> None:
    rng = np.random.default_rng(5)
    weights = rng.normal(size=(400, 32))
    tone = rng.normal(size=(12, 6, 400))
    sources = {"a": 3 * rng.normal(size=(12, 400)), "c": 3 * rng.normal(size=(12, 400))}
    sources |= {name: tone + 2 * rng.normal(size=(12, 6, 400)) for name in ("alone_b", "alone_d")}
    result = a_coat_instances(**scenes_of(sources, lambda waves: (waves @ weights).astype(dtype)))
    assert 1 / 6 < result["top1"] < 1
    for kind in ("top1", "pairwise"):
        assert result[f"alone_{kind}"] == pytest.approx(result[kind], abs=1e-6)
        assert result[f"part_{kind}"] == pytest.approx(result[kind], abs=1e-6)
    assert result["kept"] == pytest.approx(1, abs=1e-6)


def test_random_encoders_are_near_chance() -> None:
    results = []
    for seed in range(25):
        rng = np.random.default_rng(seed)
        names = {
            "labels": np.stack([rng.choice(48, 8, replace=False) for _ in range(24)]),
            "conditions": np.arange(48).reshape(24, 2),
        }
        shapes = [(24, 32) if name in "ac" else (24, 8, 32) for name in ARRAYS]
        results.append(a_coat_instances(*(rng.normal(size=shape) for shape in shapes), **names))
    means = {name: np.mean([result[name] for result in results]) for name in results[0] if name != "kept"}
    for name, mean in means.items():
        if name.endswith("top1"):
            assert abs(mean - 1 / 8) < 0.02, name
            assert max(abs(result[name] - 1 / 8) for result in results) < 0.08, name
        if name.endswith("pairwise"):
            assert abs(mean - 1 / 2) < 0.03, name
            assert max(abs(result[name] - 1 / 2) for result in results) < 0.12, name
    for name in ("replacement_cosine", "step", "step_null", "step_adjusted"):
        assert abs(means[name]) < 0.02, name
    assert all(result["kept"] is None for result in results)


def test_over_all_orders_of_one_side_s_labels_chance_is_exact() -> None:
    inputs = material(n=3, k=4)
    orders = [list(order) for order in permutations(range(4))]
    scores = [
        a_coat_instances(**arrays_of(inputs) | {"d": inputs["d"][:, order], "alone_d": inputs["alone_d"][:, order]})
        for order in orders
    ]
    for name, chance in (("top1", 1 / 4), ("part_top1", 1 / 4), ("alone_top1", 1 / 4), ("step_top1", 1 / 4)):
        assert np.mean([score[name] for score in scores]) == pytest.approx(chance, abs=1e-12), name
    for name in ("pairwise", "part_pairwise", "alone_pairwise"):
        assert np.mean([score[name] for score in scores]) == pytest.approx(1 / 2, abs=1e-12), name
    assert np.mean([score["replacement_cosine"] for score in scores]) == pytest.approx(0, abs=1e-12)


def test_the_same_order_of_both_sides_changes_nothing() -> None:
    inputs, order = material(n=12), [3, 0, 4, 1, 2]
    moved = {name: inputs[name][:, order] for name in ("b", "d", "alone_b", "alone_d")}
    moved["labels"] = [[row[place] for place in order] for row in inputs["labels"]]
    assert a_coat_instances(**inputs | moved) == pytest.approx(a_coat_instances(**inputs), abs=1e-9)


def test_exchanging_the_sides_changes_nothing() -> None:
    inputs = material(n=12)
    a, b, c, d, alone_b, alone_d = arrays_of(inputs).values()
    conditions = [[second, first] for first, second in inputs["conditions"]]
    exchanged = a_coat_instances(c, d, a, b, alone_d, alone_b, inputs["labels"], conditions)
    assert exchanged == pytest.approx(a_coat_instances(**inputs), abs=1e-9)
    assert exchanged["fitted_top1"] is not None


@pytest.mark.parametrize("dim", [7, 300])
def test_rotation_scale_and_translation_change_nothing(dim: int) -> None:
    inputs = material(n=12, dim=dim, noise=0.5 if dim < 10 else 2.0)
    names = {name: inputs[name] for name in ("labels", "conditions")}
    expected = a_coat_instances(**inputs)
    assert None not in expected.values()
    rotation = ortho_group.rvs(dim, random_state=6)
    for moved in (
        lambda x: x @ rotation,
        lambda x: 1e-3 * x @ rotation + 7,
        lambda x: x + 1e8 * np.sin(np.arange(dim)),  # a mean beside which the scores are in the last eight digits
        lambda x: -1e100 * x,
        lambda x: 1e-100 * x,
    ):
        result = a_coat_instances(**{name: moved(x) for name, x in arrays_of(inputs).items()}, **names)
        assert result == pytest.approx(expected, abs=1e-6)


def test_tied_candidates_share_the_choice() -> None:
    # Candidates 0 and 1 of D are one scene; candidate 2 is opposite to both.
    a = c = [[0.0, 0.0]]
    b = [[[1.0, 0.1], [1.0, -0.1], [-2.0, 0.0]]]
    d = [[[1.0, 0.0], [1.0, 0.0], [-2.0, 0.0]]]
    result = a_coat_instances(a, b, c, d)
    # From B: 1/2, 1/2, 1. From D: its two equal ones have b_0 and b_1 equally near: 1/2, 1/2, and 1.
    assert result["top1"] == pytest.approx((1 / 2 + 1 / 2 + 1) / 3)
    assert result["pairwise"] == pytest.approx((1 / 2 + 1 + 1) / 3)  # d_0 − d_1 is nothing


def test_chunks_do_not_show(monkeypatch: pytest.MonkeyPatch) -> None:
    inputs = material(n=12)
    whole = a_coat_instances(**inputs, return_scores=True)
    monkeypatch.setattr(module, "_CHUNK", 5 * 10 * 7)
    assert a_coat_instances(**inputs, return_scores=True) == whole


@pytest.mark.parametrize("freedom", [1, 2, 3, 4, 7, 23, 24, 95, 400])
@pytest.mark.parametrize("t", [0.01, 0.7, 2.0, 12.7, 1e6])
def test_student_s_coverage_is_scipy_s(freedom: int, t: float) -> None:
    expected = student.cdf(t, freedom) - student.cdf(-t, freedom)
    assert module._student_coverage(t, freedom) == pytest.approx(expected, abs=1e-12)


def test_kept_is_none_where_the_interval_of_alone_reaches_the_margin() -> None:
    rng = np.random.default_rng(8)
    for n in (2, 3, 8, 30):
        for _ in range(20):
            values = rng.normal(0.4, 0.15, n)
            low, _ = student.interval(0.95, n - 1, values.mean(), values.std(ddof=1) / math.sqrt(n))
            assert module._surely_above(values, 0.3) == (low > 0.3)
    assert module._surely_above(np.ones(2), 0.3)
    assert not module._surely_above(np.ones(1), 0.3)
    one = {name: x[:1] for name, x in oracle().items()}
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
        b, d, alone_b, alone_d = (
            (np.array(centred(inputs[name][tested].tolist())) @ whitening).tolist()
            for name in ARRAYS
            if name not in "ac"
        )
        results.append(
            {
                "fitted_top1": loop_top1(b, d),
                "fitted_part_top1": (loop_top1(alone_b, d) + loop_top1(b, alone_d)) / 2,
                "fitted_alone_top1": loop_top1(alone_b, alone_d),
                "fitted_pairwise": loop_pairwise(b, d),
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


@pytest.mark.parametrize("dim", [5, 20, 50])
def test_products_after_the_map_are_exact(dim: int) -> None:
    rng = np.random.default_rng(9)
    # A few directions vary much more than others, so that the system is as ill-conditioned as it gets.
    steps = rng.normal(size=(6, 4, dim)) * np.where(np.arange(dim) < 3, 1e3, 1)
    usable = rng.random((6, 4)) < 0.8
    usable &= usable.sum(axis=1, keepdims=True) > 1
    rows = np.concatenate([block[use] - block[use].mean(axis=0) for block, use in zip(steps, usable, strict=True)])
    covariance = rows.T @ rows / len(rows)
    shift = 0.1 * np.trace(covariance) / dim
    x = rng.normal(size=(7, dim))
    expected = x @ np.linalg.inv(covariance + shift * np.eye(dim)) @ x.T
    products = module._Material(steps).mapped_products(usable, x)
    np.testing.assert_allclose(products / products[0, 0], expected / expected[0, 0], rtol=1e-9, atol=1e-9)


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


def test_fitted_map_finds_the_directions_of_the_classes() -> None:
    """A strong difference of instances in one direction drowns the classes, until the map takes it away."""
    inputs = material(n=24, k=6, dim=12, noise=0.1)
    rng = np.random.default_rng(11)
    direction = rng.normal(size=12)
    for name in ("b", "d", "alone_b", "alone_d"):
        inputs[name] = inputs[name] + 3 * rng.normal(size=(24, 6, 1)) * direction
    result = a_coat_instances(**inputs)
    assert result["top1"] < 0.5
    assert result["fitted_top1"] > 0.8


def test_fitted_map_of_steps_that_are_all_alike_is_none_at_all() -> None:
    """No difference of instances: there is nothing to take away, and the scores are those without a map."""
    inputs = material(n=12)
    inputs["d"] = inputs["b"] + 1
    result = a_coat_instances(**inputs, return_scores=True)
    assert result["fitted_top1"] == result["top1"] == 1
    np.testing.assert_allclose(result["scores_fitted_part_top1"], result["scores_part_top1"], atol=1e-12)


def without_enough(kind: str) -> dict[str, Any]:
    inputs = material(n=12)
    if kind == "few blocks":
        return {name: values[:5] for name, values in inputs.items()}
    if kind == "one condition":
        return inputs | {"conditions": [["same voice", block] for block in range(12)]}
    return inputs | {"labels": [list("abcde")] * 12}


@pytest.mark.parametrize("kind", ["few blocks", "one condition", "same classes"])
def test_too_few_blocks_leave_the_fitted_numbers_empty(kind: str) -> None:
    inputs = without_enough(kind)
    result = a_coat_instances(**inputs, return_scores=True)
    plain = a_coat_instances(**arrays_of(inputs), return_scores=True)
    assert all(result[name] is result[f"scores_{name}"] is None for name in FITTED)
    assert result == plain


@pytest.mark.parametrize("empty", ["", None])
def test_conditions_that_are_empty_are_shared_with_nobody(empty: str | None) -> None:
    inputs = material(n=12)
    expected = a_coat_instances(**inputs)
    assert a_coat_instances(**inputs | {"conditions": [[empty, empty]] * 12}) == expected
    assert expected["fitted_top1"] is not None


def test_kinds_of_names_do_not_matter() -> None:
    inputs = material(n=12)
    expected = a_coat_instances(**inputs)
    texts = (lambda rows: [tuple(map(str, row)) for row in rows], lambda rows: np.array(rows).astype(str))
    for kind in (np.array, torch.tensor, *texts):
        names = {name: kind(inputs[name]) for name in ("labels", "conditions")}
        assert a_coat_instances(**inputs | names) == expected


# ----- what is refused


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"alone_b": None}, "alone_d is given without alone_b; part and alone need both"),
        ({"alone_d": None}, "alone_b is given without alone_d"),
        ({"labels": None}, "conditions is given without labels; the fitted map needs both"),
        ({"conditions": None}, "labels is given without conditions"),
        ({"labels": [[1, 2, 3, 4, 1]] * 9}, r"labels of a block must be 5 different ones; row 0 is \[1, 2, 3, 4, 1\]"),
        ({"labels": [[1, 2, 3, 4, 5]] * 8}, "labels must be 9 rows, one for each block, of 5 entries each; got 8 rows"),
        ({"labels": [[1, 2, 3, 4, 5]] * 8 + [[1, 2]]}, r"of 5 entries each; row 8 is \[1, 2\]"),
        ({"labels": ["abcde"] * 9}, "of 5 entries each; row 0 is 'abcde'"),
        ({"labels": [[1, 2, 3, 4, 5.5]] * 9}, "labels must be strings or integers; row 0 has 5.5"),
        ({"conditions": [["g", "h"]] * 8 + [["g", True]]}, "conditions must be strings or integers; row 8 has True"),
        ({"conditions": [["g"]] * 9}, r"conditions must be .* of 2 entries each; row 0 is \['g'\]"),
        ({"b": np.zeros((9, 1, 7))}, r"b must be \[n, K, dim\] with n ≥ 1, K ≥ 2 and dim ≥ 1; got shape \(9, 1, 7\)"),
        ({"d": np.zeros((9, 4, 7))}, r"with one n, K and dim; got .* b \(9, 5, 7\), c \(9, 7\), d \(9, 4, 7\)"),
        ({"a": np.zeros((9, 6))}, r"with one n, K and dim; got a \(9, 6\), b \(9, 5, 7\)"),
    ],
)
def test_refusals(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        a_coat_instances(**material() | changes)


@given(z=hnp.arrays(np.float64, (2, 3, 9, 2), elements=st.floats(-1e6, 1e6)))
def test_any_finite_input_gives_scores_in_range(z: np.ndarray) -> None:
    first, second = z
    arrays = (first[:, 0], first[:, 1:5], second[:, 0], second[:, 1:5], first[:, 5:], second[:, 5:])
    result = a_coat_instances(*arrays, return_scores=True)
    for name, measure in module.MEASURES.items():
        lowest, highest = measure.get("range", (-1.0, 1.0))
        assert result[name] is None or lowest - 1e-9 <= result[name] <= highest + 1e-9, name
    assert all(0 <= score <= 1 for score in result["scores"])


def test_metric_adds_the_arrays_of_compute_to_those_collected(tmp_path: Path) -> None:
    metric, inputs = load_metric("a_coat_instances", tmp_path), material()
    few = {name: inputs[name] for name in "abcd"}
    metric.add_batch(**{name: x[:4] for name, x in few.items()})
    assert metric.compute(**{name: x[4:] for name, x in few.items()}) == a_coat_instances(**few)
