"""Checks, dials and simulations against hand-worked cases."""

import math

import numpy as np
import pytest
from scipy import stats

from studies.validity import theory
from studies.validity.checks import monotone
from studies.validity.constructed import Material, Plan, additive, noisy
from studies.validity.dials import sampling_error
from studies.validity.simulation import (
    COMMON,
    DIM,
    SIZES,
    coverage_band,
    make_clusters,
    simulate_coverage,
    simulate_false_positives,
    simulate_scores,
    student_interval,
)
from studies.validity.theory import expected_population_a_coat

SMALL = Plan(quadruples=40, train=40, test=20, candidates=(500, 2_000), max_steps=2, replicates=2)


@pytest.fixture(autouse=True, scope="module")
def _quick(one_thread):
    """Small fits are slower in several threads."""


# ----- the parts


def test_a_score_that_rises_with_its_dial_has_correlation_one():
    levels = [0.0, 0.5, 0.8, 1.0]
    assert monotone(levels, [0.1, 0.2, 0.3, 0.9]) == pytest.approx(1)
    assert monotone(levels, [0.9, 0.3, 0.2, 0.1], falls=True) == pytest.approx(-1)
    assert monotone(levels, [0.2, 0.1, 0.3, 0.9]) == pytest.approx(1 - 6 * 2 / (4 * 15))  # two neighbours exchanged
    assert monotone(levels, [0.5] * 4) == 0


def test_ties_count_against_a_score_except_at_its_ceiling():
    levels = [0.0, 0.5, 0.8, 1.0]
    assert monotone(levels, [0.1, 0.2, 1.0, 1.0]) == pytest.approx(1)
    assert monotone(levels, [1.0, 1.0, 0.4, 0.1], falls=True) == pytest.approx(-1)
    assert monotone(levels, [0.1, 0.1, 0.3, 1.0]) < 0.99
    assert monotone(levels, [1.0, 0.2, 0.4, 1.0]) < 0.9  # it was at the ceiling, and left it


def test_sampling_error_is_half_the_interval_of_the_score():
    scores = np.random.default_rng(0).normal(size=30)
    result = {"n": 30, "scores": scores.tolist(), "scores_centred": (2 * scores).tolist(), "top1": 0.0}
    low, high = student_interval(scores)
    assert sampling_error("a_tre", "a_tre", result) == pytest.approx((high - low) / 2)
    assert sampling_error("a_tre", "ridge_r2", result) == pytest.approx(high - low)
    assert sampling_error("a_tre", "top1", result) == pytest.approx(1.96 * math.sqrt(2 / 34 * 32 / 34 / 34))


def test_coverage_band_is_the_wider_one():
    assert coverage_band(1_000) == (0.93, 0.97)
    low, high = coverage_band(100)
    assert stats.binom.cdf(round(100 * low) - 1, 100, 0.95) < 0.005 <= stats.binom.cdf(round(100 * low), 100, 0.95)
    assert low < 0.93 < 0.97 < high


def test_simulated_scores_have_the_truth_and_the_clusters_that_they_claim():
    rng = np.random.default_rng(1)
    clusters = make_clusters(4_000, 1_000, rng)
    assert np.bincount(clusters).min() == 1
    assert len(np.bincount(clusters)) == 1_000
    scores = simulate_scores(clusters, 0.5, 2, rng)
    means = np.stack([np.bincount(clusters, column) / np.bincount(clusters) for column in scores.T])
    truth = expected_population_a_coat(0.5, DIM, SIZES)
    assert np.abs(means.mean(axis=1) - truth).max() < 4 * stats.sem(means, axis=1).max()
    pairs = np.flatnonzero(np.diff(clusters) == 0)[::2]
    within = np.corrcoef(scores[pairs, 0], scores[pairs + 1, 0])[0, 1]
    assert within > COMMON / 2
    single = simulate_scores(np.arange(2_000), 0.5, 1, rng)[:, 0]
    assert abs(np.corrcoef(single[:-1], single[1:])[0, 1]) < 0.1


@pytest.mark.slow
def test_simulations_repeat_themselves():
    assert simulate_coverage(20, 100, 5, False) == simulate_coverage(20, 100, 5, False)
    first = simulate_false_positives(20, 5, False)
    assert first == simulate_false_positives(20, 5, False)
    assert first != simulate_false_positives(20, 6, False)


def test_data_are_those_of_the_plan_and_no_t_occurs_twice():
    data = Material(SMALL, seed=0)
    assert (len(data.rows["train"]), len(data.rows["test"])) == (40, 20)
    added = np.sort(data.quadruples.t.codes, axis=1)
    assert len(np.unique(added, axis=0)) == len(added) <= 40
    result = data.a_coat(additive())
    assert result["a_coat"] == pytest.approx(1, abs=1e-12)
    assert result["top1"] == 1
    half = data.a_coat(additive(), 0.5)["scores"]
    assert np.sum(np.abs(np.array(half) - 1) > 1e-9) == round(0.5 * len(added))


def test_a_fit_is_kept_and_depends_on_the_permutation():
    data = Material(SMALL, seed=0)
    result = data.a_tre(noisy(0.5))
    assert data.a_tre(noisy(0.5)) is result
    assert data.a_tre(noisy(0.5), 1.0)["ridge_centred"] < result["ridge_centred"] - 0.2


def test_a_score_that_is_not_what_theory_expects_is_seen(monkeypatch):
    data = Material(SMALL, seed=0)
    assert all(check.holds for check in theory.compare_with_theory(data) if "A-TRE" not in check.score)
    right = theory.a_coat_scores
    monkeypatch.setattr(theory, "a_coat_scores", lambda *steps: right(*steps) - 0.2)
    failed = {check.subject for check in theory.compare_with_theory(data) if not check.holds}
    assert {"additive + noise, signal 0.9", "maximum of independent tokens"} <= failed
    bound = next(check for check in theory.compare_with_theory(data) if check.expected.startswith("≤"))
    assert bound.low == -math.inf
