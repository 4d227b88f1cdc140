"""Constructed encoders and their theory, against closed forms, hand-worked values and Monte Carlo."""

import math
from dataclasses import replace

import numpy as np
import pytest
from scipy import special, stats

from audio_compositionality.metrics.a_coat import a_coat_scores
from audio_compositionality.support.errors import InputError
from studies.validity.constructed import (
    NONE,
    ConstructedEncoder,
    Quadruples,
    Scenes,
    additive,
    anisotropic,
    counting,
    noisy,
    permuted,
    read_scenes,
    saturating,
)
from studies.validity.theory import (
    expected_a_coat,
    expected_constant,
    expected_maximum_a_coat,
    expected_noise_constant,
    expected_oracle,
    expected_population_a_coat,
    mean_resultant_length,
)

K, DIM = 3, 24


def scenes(n: int, sources: int, seed: int) -> Scenes:
    """Random scenes of one to `sources` sources with four attributes of K classes."""
    rng = np.random.default_rng(seed)
    classes = rng.integers(0, K, (n, sources, 4))
    absent = np.arange(sources) >= rng.integers(1, sources + 1, n)[:, None]
    classes[absent] = NONE
    return Scenes(classes, np.where(absent, 0.0, rng.uniform(0.1, 1, absent.shape)), K)


@pytest.fixture(scope="module")
def quadruples() -> Quadruples:
    return Quadruples(scenes(60, 3, 1), scenes(60, 3, 2), scenes(60, 2, 3))


# ----- what the encoders are made from


def test_rows_become_scenes(small_data):
    rows = small_data.configuration("a_tre").rows
    read = read_scenes(rows)
    assert read.num_classes == 3
    assert read.sizes.tolist() == [len(row["metadata"]) for row in rows]
    for row, level, codes in zip(rows, read.levels, read.codes, strict=True):
        power = sum(gain**2 for gain in row["gains"])
        assert level == pytest.approx(10 * math.log10(power))
        assert len(set(codes[codes != NONE])) == len(row["metadata"])
    assert read.counts.sum(axis=(1, 2)).tolist() == [4 * len(row["metadata"]) for row in rows]
    assert read_scenes([{"metadata": row["metadata"]} for row in rows]).gains.max() == 1


# ----- the encoders


def test_tokens_have_length_one_and_no_direction_in_common():
    every = np.stack(np.meshgrid(*[np.arange(K)] * 4, indexing="ij"), axis=-1).reshape(-1, 1, 4)
    z = additive(dim=DIM).embed(Scenes(every, np.ones((len(every), 1)), K))
    np.testing.assert_allclose(np.linalg.norm(z, axis=1), 1, atol=1e-12)
    np.testing.assert_allclose(z.mean(axis=0), 0, atol=1e-12)
    # One other attribute of four costs the corner's 1/4, and two corners of a triangle have the cosine -1/2.
    assert z[0] @ z[1] == pytest.approx(3 / 4 - 1 / 4 / 2)


def test_noise_has_the_stated_length():
    many = scenes(4_000, 2, 5)
    noise = noisy(0.36, dim=DIM).embed(many) - ConstructedEncoder(signal=0.6, dim=DIM).embed(many)
    assert stats.kstest(noise.ravel() / math.sqrt(0.64 / DIM), "norm").pvalue > 1e-3


def test_permutation_moves_a_share_within_groups():
    groups = ["train"] * 40 + ["test"] * 20
    order = permuted(groups, 0.5, seed=3)
    assert sorted(order) == list(range(60))
    moved = order != np.arange(60)
    assert (moved[:40].sum(), moved[40:].sum()) == (20, 10)
    assert order[:40].max() < 40
    np.testing.assert_array_equal(order, permuted(groups, 0.5, seed=3))
    assert (order != permuted(groups, 0.5, seed=4)).any()
    np.testing.assert_array_equal(permuted(groups, 0, seed=3), np.arange(60))
    assert (permuted(groups, 1, seed=3) != np.arange(60)).all()


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"binding": 1.1}, r"binding is 1.1; it must be from 0 to 1"),
        ({"noise": -0.1}, r"noise is -0.1; it must be finite and at least 0"),
        ({"shared_mean": math.inf}, r"shared_mean is inf"),
    ],
)
def test_weights_out_of_range_are_refused(changes, message):
    with pytest.raises(InputError, match=message):
        ConstructedEncoder(**changes)


# ----- the theory


@pytest.mark.parametrize("strength", [0.01, 0.5, 1.0, 3.0, 20.0])
def test_mean_resultant_length_equals_closed_forms(strength):
    # On the line û is a sign; on the circle see Presnell, Morrison and Littell 1998, "Projected multivariate linear
    # models for directional data", with Bessel functions.
    line = special.erf(strength / math.sqrt(2))
    x = strength**2 / 4
    circle = math.sqrt(math.pi / 8) * strength * (special.ive(0, x) + special.ive(1, x))
    assert mean_resultant_length(strength, 1) == pytest.approx(line, rel=1e-10)
    assert mean_resultant_length(strength, 2) == pytest.approx(circle, rel=1e-10)


@pytest.mark.parametrize("dim", [3, 16, 128])
@pytest.mark.parametrize("strength", [0.3, 3.0, 12.0])
def test_mean_resultant_length_equals_monte_carlo(dim, strength):
    u = np.random.default_rng(6).standard_normal((40_000, dim))
    u[:, 0] += strength
    cosines = u[:, 0] / np.linalg.norm(u, axis=1)
    assert mean_resultant_length(strength, dim) == pytest.approx(cosines.mean(), abs=4 * stats.sem(cosines))


@pytest.mark.parametrize("dim", [1, 2, 16, 128, 4_096])
def test_mean_resultant_length_keeps_its_limits(dim):
    strength = np.concatenate([[0.0], np.logspace(-6, 7, 200), [np.inf]])
    length = mean_resultant_length(strength, dim)
    assert np.isfinite(length).all()
    assert (length[0], length[-1]) == (0, 1)
    assert (np.diff(length) > -1e-10).all()
    assert length.max() <= 1 + 1e-12
    # To first order in 1/λ², 1 - (D - 1) / (2 λ²): the part of the noise that is orthogonal to s.
    assert 1 - mean_resultant_length(1e4 * math.sqrt(dim), dim) == pytest.approx((dim - 1) / 2e8 / dim, abs=1e-10)


@pytest.mark.parametrize("encoder", [noisy(0.5, dim=DIM), counting(0.5, dim=DIM), saturating(0.7, dim=DIM, noise=0.4)])
def test_expected_a_coat_equals_monte_carlo(quadruples, encoder):
    few = quadruples[:8]
    expected = expected_a_coat(encoder, few)
    rng = np.random.default_rng(7)
    still = replace(encoder, noise=0).embed_quadruples(few)
    deviation = encoder.noise / math.sqrt(DIM)
    scores = np.stack(
        [a_coat_scores(*(z + deviation * rng.standard_normal(z.shape) for z in still)) for _ in range(4_000)]
    )
    assert np.abs(scores.mean(axis=0) - expected).max() < 4.5 * stats.sem(scores, axis=0).max()
    assert np.ptp(expected) > 0.05  # the quadruples differ, so that a single number would not do
    own = a_coat_scores(*encoder.embed_quadruples(quadruples)) - expected_a_coat(encoder, quadruples)
    assert abs(own.mean()) < 4 * stats.sem(own)


def test_oracle_is_what_the_truth_scores():
    many, encoder = scenes(3_000, 4, 8), noisy(0.3, dim=DIM)
    z, truth = encoder.embed(many), additive(dim=DIM).embed(many)
    cosines = (z * truth).sum(axis=1) / np.linalg.norm(z, axis=1) / np.linalg.norm(truth, axis=1)
    differences = cosines - expected_oracle(encoder, many)
    assert abs(differences.mean()) < 4 * stats.sem(differences)


def test_population_mean_is_that_of_its_quadruples():
    # One source of T: |s|² = 0.3, and τ² = 2 · 0.7 / D.
    one = mean_resultant_length(math.sqrt(0.3 / (1.4 / 16)), 16) ** 2
    three = mean_resultant_length(math.sqrt(0.9 / (1.4 / 16)), 16) ** 2
    assert expected_population_a_coat(0.3, 16, [1]) == pytest.approx(float(one))
    assert expected_population_a_coat(0.3, 16, [1, 3]) == pytest.approx(float(one + three) / 2)
    assert expected_population_a_coat(1, 16, [1, 2, 3]) == 1
    assert expected_population_a_coat(0, 16, [1, 2, 3]) == 0


def test_maximum_of_single_sources_equals_the_hand_worked_value():
    # θ - α and θ - γ are normal of variance 2 with correlation 1/2: E X⁺Y⁺ = σ²/2π (sin β + (π - β) cos β), β = π/3.
    by_hand = (math.sin(math.pi / 3) + (math.pi - math.pi / 3) / 2) / math.pi
    assert expected_maximum_a_coat(1, 1, 1) == pytest.approx(by_hand, abs=1e-10)


@pytest.mark.parametrize("sizes", [(1, 3, 1), (2, 2, 2), (1, 1, 3)])
def test_maximum_equals_monte_carlo(sizes):
    a, c, t = sizes
    rng = np.random.default_rng(9)
    alpha, gamma, theta = (rng.standard_normal((500_000, k)).max(axis=1) for k in (a, c, t))
    first, second = np.maximum(theta - alpha, 0), np.maximum(theta - gamma, 0)
    simulated = (first * second).mean() / math.sqrt((first**2).mean() * (second**2).mean())
    assert expected_maximum_a_coat(a, c, t) == pytest.approx(simulated, abs=0.005)
    assert expected_maximum_a_coat(a, c, t) == pytest.approx(expected_maximum_a_coat(c, a, t), abs=1e-12)


def test_maximum_of_independent_tokens_meets_its_theory(quadruples):
    chosen = quadruples[np.flatnonzero(quadruples.disjoint)[:30]]
    # Sources that a scene has twice, or shares with T, are not independent.
    codes = np.concatenate([chosen.a.codes, chosen.c.codes, chosen.t.codes], axis=1)
    distinct = [len(set(row[row != NONE])) == (row != NONE).sum() for row in codes]
    chosen = chosen[np.flatnonzero(distinct)]
    assert len(chosen) > 10
    scores = a_coat_scores(*saturating(1, binding=1, dim=4_096).embed_quadruples(chosen))
    sizes = np.stack([chosen.a.sizes, chosen.c.sizes, chosen.t.sizes], axis=1).tolist()
    expected = np.array([expected_maximum_a_coat(*size) for size in sizes])
    assert np.abs(scores - expected).max() < 5 / math.sqrt(4_096)
    assert abs((scores - expected).mean()) < 4 * stats.sem(scores - expected) + 1 / 4_096


@pytest.mark.parametrize("share", [0.0, 0.5, 0.99])
def test_constant_of_a_shared_mean_is_exact(share):
    train, test = scenes(50, 4, 10), scenes(20, 4, 11)
    encoder = anisotropic(share, additive(dim=DIM, seed=3))
    x, y = (z / np.linalg.norm(z, axis=1, keepdims=True) for z in (encoder.embed(train), encoder.embed(test)))
    mean = x.mean(axis=0)
    measured = (y @ mean / np.linalg.norm(mean)).mean()
    assert expected_constant(train, test, share) == pytest.approx(measured, abs=1e-12)


def test_constant_of_noise_about_a_mean():
    train, test = scenes(200, 2, 12), scenes(4_000, 2, 13)
    encoder = anisotropic(0.6, noisy(0, dim=DIM))
    x, y = (z / np.linalg.norm(z, axis=1, keepdims=True) for z in (encoder.embed(train), encoder.embed(test, clip=1)))
    cosines = y @ x.mean(axis=0) / np.linalg.norm(x.mean(axis=0))
    assert cosines.mean() == pytest.approx(expected_noise_constant(0.6, DIM, 200), abs=4 * stats.sem(cosines))
