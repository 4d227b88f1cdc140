"""A-COAT against SciPy, brute force and the properties that its definition implies."""

from typing import Any, ClassVar

import numpy as np
import pytest
from scipy.spatial.distance import cosine
from scipy.stats import rankdata

from audio_compositionality.metrics import a_coat as module
from audio_compositionality.metrics import arrays
from audio_compositionality.metrics.a_coat import a_coat, a_coat_scores

from .contract import MetricContract


def example() -> dict[str, Any]:
    """Return arguments of `a_coat`: a partly additive encoder of 40 quadruples in 8 dimensions."""
    rng = np.random.default_rng(0)
    size, level = rng.integers(1, 4, 40), rng.uniform(-20, 0, 40)
    energy, t = rng.normal(size=8), rng.normal(size=(40, 8))
    step = t + 0.5 * size[:, None] * energy
    a, c = rng.normal(size=(2, 40, 8))
    b, d = (x + step + rng.normal(0, 0.5, (40, 8)) for x in (a, c))
    arrays = {"a": a, "b": b, "c": c, "d": d, "t_size": size, "t_level": level}
    return {name: x.round(3) for name, x in arrays.items()}


class TestContract(MetricContract):
    name = "a_coat"
    embeddings = ("a", "b", "c", "d")
    origin = ()
    at_constant: ClassVar = {"a_coat": 0, "null": 0, "centred": 0, "adjusted": 0}


def quadruples(n=40, dim=12, noise=0.5, seed=0):
    """Embeddings whose D − C is a noisy copy of B − A, all steps sharing one direction."""
    rng = np.random.default_rng(seed)
    a, c, step, error = rng.normal(size=(4, n, dim))
    step += 1.0
    return a, a + step, c, c + step + noise * error


def brute_cosines(a, b, c, d):
    """[n, n]: cosine of B_i − A_i and D_j − C_j, one SciPy call each."""
    n = len(a)
    return np.array([[1 - cosine(b[i] - a[i], d[j] - c[j]) for j in range(n)] for i in range(n)])


def test_scores_and_their_statistics_equal_scipy():
    z = quadruples()
    expected = np.diag(brute_cosines(*z))
    result = a_coat(*z, return_scores=True)
    np.testing.assert_allclose(a_coat_scores(*z), expected, atol=1e-13)
    np.testing.assert_allclose(result["scores"], expected, atol=1e-13)
    assert result["a_coat"] == pytest.approx(expected.mean(), abs=1e-13)
    assert result["std"] == pytest.approx(expected.std(ddof=1), abs=1e-13)
    assert (result["n"], result["degenerate"]) == (40, 0)
    assert "scores" not in a_coat(*z)


def test_null_is_the_mean_over_mismatched_pairs_and_adjusts_the_score():
    z = quadruples()
    all_pairs = brute_cosines(*z)
    null = np.mean([all_pairs[i, j] for i in range(40) for j in range(40) if i != j])
    result = a_coat(*z)
    assert result["null"] == pytest.approx(null, abs=1e-13)
    assert null > 0.3  # the shared direction that the control is there to show
    assert result["adjusted"] == pytest.approx((np.diag(all_pairs).mean() - null) / (1 - null), abs=1e-12)
    assert result["matched_null"] is None


def test_matched_null_shares_tied_levels_whatever_the_order_of_rows():
    z = quadruples(n=60)
    rng = np.random.default_rng(2)
    size, level = np.full(60, 2), rng.choice([-6.0, -3.0], 60)
    result = a_coat(*z, t_size=size, t_level=level)["matched_null"]
    pairs = brute_cosines(*z)
    same = [np.mean([pairs[i, j] for j in range(60) if j != i and level[j] == level[i]]) for i in range(60)]
    assert result == pytest.approx(np.mean(same), abs=1e-12)  # all ties at distance 0: the mean over them
    order = rng.permutation(60)
    again = a_coat(*(x[order] for x in z), t_size=size[order], t_level=level[order])["matched_null"]
    assert again == pytest.approx(result, abs=1e-12)


def test_adjusted_scores_are_each_against_the_null_of_their_own_step():
    """That of the ten steps of the same size whose level is nearest, by a double loop."""
    z = quadruples(n=60)
    rng = np.random.default_rng(1)
    size, level = rng.integers(1, 4, 60), rng.normal(size=60)
    size[7] = 9  # nobody else has nine sources: it has no partner, and the mean null stands in
    pairs, nulls = brute_cosines(*z), np.full(60, np.nan)
    for i in range(60):
        others = sorted((j for j in range(60) if j != i and size[j] == size[i]), key=lambda j: abs(level[j] - level[i]))
        nulls[i] = np.mean(pairs[i, others[:10]]) if others else np.nan
    mean = np.nanmean(nulls)
    expected = (np.diag(pairs) - np.where(np.isnan(nulls), mean, nulls)) / (1 - mean)
    result = a_coat(*z, t_size=size, t_level=level, return_scores=True)
    assert result["matched_null"] == pytest.approx(mean, abs=1e-12)
    np.testing.assert_allclose(result["scores_adjusted"], expected, atol=1e-12)
    assert result["adjusted"] == pytest.approx((result["a_coat"] - mean) / (1 - mean), abs=1e-12)
    alone = a_coat(*z, t_size=np.arange(1, 61), t_level=level)
    assert alone["matched_null"] is None
    assert alone["adjusted"] == a_coat(*z)["adjusted"]


def test_ranks_equal_scipy_rankdata():
    z = quadruples(noise=2.0)
    similarity = brute_cosines(*z)
    ranks = np.array([rankdata(-row)[i] for i, row in enumerate(similarity)])
    result = a_coat(*z)
    assert 1 / 40 < (ranks == 1).mean() < 1  # the case is neither chance nor trivial
    assert result["top1"] == pytest.approx((ranks == 1).mean())
    assert result["mrr"] == pytest.approx((1 / ranks).mean())
    assert result["top1_chance"] == 1 / 40
    assert result["mrr_chance"] == pytest.approx(sum(1 / k for k in range(1, 41)) / 40)


def test_tied_ranks_are_shared():
    a = c = np.zeros((3, 2))
    d = np.array([[1.0, 0.0], [2.0, 0.0], [0.0, 1.0]])  # the first two steps point the same way
    result = a_coat(a, d, c, d)
    assert result["top1"] == pytest.approx((1 / 2 + 1 / 2 + 1) / 3)
    assert result["mrr"] == pytest.approx((3 / 4 + 3 / 4 + 1) / 3)  # (1 + 1/2)/2 for each of the two


def test_centred_equals_its_definition():
    a, b, c, d = quadruples()
    others = [np.arange(40) != i for i in range(40)]
    first = [b[i] - a[i] - (b - a)[others[i]].mean(axis=0) for i in range(40)]
    second = [d[i] - c[i] - (d - c)[others[i]].mean(axis=0) for i in range(40)]
    expected = np.array([1 - cosine(u, v) for u, v in zip(first, second, strict=True)])
    result = a_coat(a, b, c, d, return_scores=True)
    np.testing.assert_allclose(result["scores_centred"], expected, atol=1e-12)
    assert result["centred"] == pytest.approx(expected.mean(), abs=1e-12)
    assert result["centred_std"] == pytest.approx(expected.std(ddof=1), abs=1e-12)


def test_blocks_do_not_show(monkeypatch):
    z = quadruples()
    extra = {"t_size": np.arange(40) % 2 + 1, "t_level": np.sin(np.arange(40))}
    whole = a_coat(*z, **extra)
    for room in (module, arrays):
        monkeypatch.setattr(room, "ROWS_COMPARED", 7)
    assert a_coat(*z, **extra) == pytest.approx(whole)


def test_one_zero_step_scores_zero_and_is_counted():
    a, b, c, d = quadruples()
    d[3] = c[3] * (1 + 1e-12)  # rounding noise of a float64 encoder
    result = a_coat(a, b, c, d, return_scores=True)
    assert result["degenerate"] == 1
    assert result["scores"][3] == result["scores_centred"][3] == 0
    one = np.full((1, 1), 1.0, dtype=np.float32)
    next_one = np.nextafter(one, np.float32(2))
    assert a_coat(one, next_one, one, next_one)["degenerate"] == 0


def test_single_quadruple_has_no_null():
    z = [[0.0, 0.0]], [[1.0, 0.0]], [[0.0, 0.0]], [[1.0, 1.0]]
    result = a_coat(*z, t_size=[1], t_level=[0.0], return_scores=True)
    assert result["a_coat"] == pytest.approx(np.sqrt(0.5))
    assert (result["std"], result["n"], result["top1"], result["mrr"]) == (0.0, 1, 1.0, 1.0)
    for name in ("null", "matched_null", "adjusted", "centred", "centred_std", "scores_centred"):
        assert result[name] is None


@pytest.mark.parametrize(
    ("extra", "message"),
    [
        ({"t_size": [1, 1, 1]}, "t_size is given without t_level"),
        ({"t_level": [0.0, 0.0, 0.0]}, "t_level is given without t_size"),
        (
            {"t_size": [1, 1], "t_level": np.zeros(3)},
            r"t_size must have .* quadruple \(3\); got shape \(2,\)",
        ),
        ({"t_size": [1, 1, 1], "t_level": [0, np.nan, 0]}, "t_level must be finite; row 1 is nan"),
        ({"t_size": [1, 0, 1], "t_level": np.zeros(3)}, "integer ≥ 1; row 1 is 0"),
        ({"t_size": [1, 1, 1.5], "t_level": np.zeros(3)}, "integer ≥ 1; row 2 is 1.5"),
    ],
)
def test_refuses(extra, message):
    with pytest.raises(ValueError, match=message):
        a_coat(**dict(zip("abcd", quadruples(n=3), strict=True)) | extra)
