"""Intervals and tests against SciPy, statsmodels and numbers worked by hand."""

from __future__ import annotations

import math
from itertools import combinations

import networkx
import numpy as np
import pytest
import statsmodels.api as sm
from scipy import stats
from statsmodels.stats.multitest import multipletests

from audio_compositionality.evaluator.compare import statistics
from audio_compositionality.evaluator.compare.comparison import View
from audio_compositionality.evaluator.compare.diversity import fit_line
from audio_compositionality.support.errors import InputError
from audio_compositionality.tasks.registry import list_tasks


@pytest.fixture
def scores() -> np.ndarray:
    """Skewed scores of four encoders on the same 40 samples, [40, 4]."""
    rng = np.random.default_rng(5)
    shared = rng.normal(size=(40, 1))
    return np.tanh(0.5 * shared + 0.4 * rng.gamma(2, size=(40, 4)) + [0.0, 0.1, 0.5, 0.55])


@pytest.fixture
def clusters() -> np.ndarray:
    """Clusters of one to four of the 40 samples."""
    return np.random.default_rng(6).integers(0, 18, 40)


# ----- bootstrap


def test_bca_interval_is_that_of_scipy(scores):
    found = statistics.bootstrap_means(scores, np.arange(40), resamples=1_500, seed=11)
    for k in range(4):
        # The same generator draws the same indices, so that nothing but the arithmetic can differ.
        expected = stats.bootstrap(
            (scores[:, k],), np.mean, n_resamples=1_500, method="BCa", rng=np.random.default_rng(11)
        ).confidence_interval
        interval = statistics.bca_interval(float(found.estimate[k]), found.resampled[:, k], found.jackknifed[:, k])
        assert interval == pytest.approx((expected.low, expected.high), abs=1e-9)


def test_clustered_bootstrap_is_scipys_of_paired_sums_and_sizes(scores, clusters):
    names = np.unique(clusters)
    sums = np.array([scores[clusters == name, 0].sum() for name in names])
    sizes = np.array([(clusters == name).sum() for name in names])
    expected = stats.bootstrap(
        (sums, sizes),
        lambda s, n, axis=-1: s.sum(axis=axis) / n.sum(axis=axis),
        n_resamples=2_000,
        method="BCa",
        paired=True,
        vectorized=True,
        rng=np.random.default_rng(2),
    ).confidence_interval
    found = statistics.bootstrap_means(scores[:, :1], clusters, resamples=2_000, seed=2)
    interval = statistics.bca_interval(float(found.estimate[0]), found.resampled[:, 0], found.jackknifed[:, 0])
    assert interval == pytest.approx((expected.low, expected.high), abs=1e-9)


def test_intervals_are_scipys_at_the_expanded_level(scores):
    # The quantile of Student's t with 19 degrees of freedom is 2.093.
    assert statistics.expanded_level(20) == pytest.approx(
        1 - 2 * stats.norm.cdf(-math.sqrt(20 / 19) * 2.093024), abs=1e-6
    )
    expected = stats.bootstrap(
        (scores[:, 0],),
        np.mean,
        n_resamples=statistics.BOOTSTRAP_RESAMPLES,
        method="BCa",
        confidence_level=statistics.expanded_level(40),
        rng=np.random.default_rng(0),
    ).confidence_interval
    assert statistics.mean_intervals(scores[:, :1], np.arange(40))[0] == pytest.approx(
        (expected.low, expected.high), abs=1e-9
    )


def test_a_difference_is_bootstrapped_on_the_same_resamples(scores):
    difference = statistics.bootstrap_means(scores[:, :1] - scores[:, 1:2], np.arange(40), seed=3).resampled
    both = statistics.bootstrap_means(scores[:, :2], np.arange(40), seed=3).resampled
    np.testing.assert_allclose(both[:, :1] - both[:, 1:], difference, atol=1e-12)


def test_order_of_columns_and_names_of_clusters_do_not_matter(scores, clusters):
    expected = statistics.mean_intervals(scores, clusters)
    assert statistics.mean_intervals(scores[:, ::-1], clusters)[::-1] == expected
    assert statistics.mean_intervals(scores, [f"T{chr(65 + c)}" for c in clusters]) == expected
    assert statistics.mean_intervals(np.full((20, 1), 0.25), np.arange(20)) == [(0.25, 0.25)]


def test_too_few_clusters_get_no_interval_and_no_test(scores):
    few = statistics.MIN_SAMPLES - 1
    assert statistics.mean_intervals(scores, np.arange(40) % few) == [None] * 4
    for test in statistics.compare_pairs(scores, np.arange(40) % few):
        assert (test.interval, test.t, test.p, test.p_adjusted, test.effect_size) == (None,) * 5
        assert not test.significant
    assert None not in statistics.mean_intervals(scores, np.arange(40) % statistics.MIN_SAMPLES)


@pytest.mark.parametrize(
    ("values", "clusters", "message"),
    [
        (np.zeros(4), np.arange(4), r"must be \[n, m\]"),
        (np.zeros((4, 0)), np.arange(4), r"must be \[n, m\]"),
        (np.zeros((4, 1)), np.arange(3), r"clusters have shape \(3,\), but must be \(4,\)"),
        (np.array([[0.0], [math.nan]]), np.arange(2), "row 1, column 0 is nan"),
    ],
)
def test_wrong_arrays_are_refused(values, clusters, message):
    with pytest.raises(InputError, match=message):
        statistics.mean_intervals(values, clusters)


# ----- paired tests


def test_paired_tests_are_those_of_scipy_and_statsmodels(scores, clusters):
    tests = statistics.compare_pairs(scores, np.arange(40))
    assert [(test.first, test.second) for test in tests] == list(combinations(range(4), 2))
    expected = [stats.ttest_rel(scores[:, test.first], scores[:, test.second]) for test in tests]
    assert [test.t for test in tests] == pytest.approx([e.statistic for e in expected], abs=1e-9)
    assert [test.p for test in tests] == pytest.approx([e.pvalue for e in expected], abs=1e-9)
    corrected = multipletests([e.pvalue for e in expected], method="fdr_bh")[1]
    assert [test.p_adjusted for test in tests] == pytest.approx(corrected, abs=1e-9)
    assert [tests.between(test.first, test.second) for test in tests] == list(tests)
    difference = scores[:, 0] - scores[:, 2]
    clustered = sm.OLS(difference, np.ones(40)).fit(cov_type="cluster", cov_kwds={"groups": clusters}, use_t=True)
    assert statistics.paired_t_test(difference, clusters) == pytest.approx(
        (clustered.tvalues[0], clustered.pvalues[0]), abs=1e-9
    )


def test_effect_size_is_the_mean_over_the_deviation_of_differences(scores):
    test = statistics.compare_pairs(scores[:, [0, 2]], np.arange(40)).between(0, 1)
    difference = scores[:, 0] - scores[:, 2]
    assert test.effect_size == pytest.approx(np.mean(difference) / np.std(difference, ddof=1))
    assert test.difference == pytest.approx(np.mean(difference))
    assert test.interval[0] < test.difference < test.interval[1]


def test_equal_scores_a_constant_difference_and_one_encoder(scores):
    values = np.ones((20, 2))
    values[:, 1] -= np.random.default_rng(0).random(20) * 1e-15 + 1e-15
    (test,) = statistics.compare_pairs(values, np.arange(20))
    assert (test.t, test.p, test.effect_size) == (0.0, 1.0, 0.0)
    values = np.random.default_rng(0).random((20, 1)) + np.array([[0.0, 0.5]])
    (test,) = statistics.compare_pairs(values, np.arange(20))
    assert (test.t, test.p, test.effect_size) == (-math.inf, 0.0, -math.inf)
    assert test.significant
    assert test.interval == pytest.approx((-0.5, -0.5))
    assert not len(statistics.compare_pairs(scores[:, :1], np.arange(40)))


# ----- letters


def _tests(means: list[float], different: set[tuple[int, int]]) -> statistics.PairedTests:
    tests = statistics.compare_pairs(np.random.default_rng(0).random((20, len(means))), np.arange(20))
    tests.difference = np.asarray(means)[tests.first] - np.asarray(means)[tests.second]
    tests.p_adjusted = np.array([0.01 if pair in different else 0.5 for pair in combinations(range(len(means)), 2)])
    return tests


@pytest.mark.parametrize(
    ("means", "different", "letters"),
    [
        ([3, 2, 1], {(0, 1), (0, 2), (1, 2)}, ["a", "b", "c"]),
        ([3, 2, 1], set(), ["a", "a", "a"]),
        ([3, 2, 1], {(0, 2)}, ["a", "ab", "b"]),
        ([1, 2, 3], {(0, 2)}, ["b", "ab", "a"]),
        ([4, 3, 2, 1], {(0, 2), (0, 3), (1, 3)}, ["a", "ab", "bc", "c"]),
        ([7], set(), ["a"]),
    ],
)
def test_letters_worked_by_hand(means, different, letters):
    assert statistics.compact_letters(means, _tests(means, different)) == letters


@pytest.mark.parametrize(
    ("means", "different", "ranks"),
    [
        # 0.5 is above all; 0.4 and 0.3 cannot be told apart; 0.1 is below all.
        ([0.3, 0.5, 0.1, 0.4], {(0, 1), (1, 2), (1, 3), (0, 2), (2, 3)}, [2, 1, 4, 2]),
        # A chain: the second is alike both, the third is below the first alone.
        ([0.5, 0.4, 0.3], {(0, 2)}, [1, 1, 2]),
        # The third is alike the first, but not above the second, which is below the first.
        ([0.5, 0.4, 0.3], {(0, 1)}, [1, 2, 2]),
        ([0.5], set(), [1]),
    ],
)
def test_ranks_worked_by_hand(means, different, ranks):
    assert statistics.shared_ranks(means, _tests(means, different)) == ranks


def test_two_share_a_letter_where_they_are_not_distinguishable_and_nowhere_else():
    rng = np.random.default_rng(9)
    for m, share in ((1, 0.5), (3, 0.5), (8, 0.8), (12, 0.5), (12, 0.2)):
        graph = networkx.gnp_random_graph(m, share, seed=int(rng.integers(99)))
        different = {pair for pair in combinations(range(m), 2) if not graph.has_edge(*pair)}
        means = rng.random(m).tolist()
        letters = statistics.compact_letters(means, _tests(means, different))
        shared = {(i, j) for i, j in combinations(range(m), 2) if set(letters[i]) & set(letters[j])}
        assert shared == set(combinations(range(m), 2)) - different
    for m, expected in ((52, [*statistics.LETTERS]), (53, None)):
        means = (-np.arange(float(m))).tolist()
        assert statistics.compact_letters(means, _tests(means, set(combinations(range(m), 2)))) == expected


# ----- lines and groups


def test_line_with_clusters_and_covariates_is_that_of_statsmodels(scores):
    rng = np.random.default_rng(2)
    x, held = rng.random(40), rng.normal(size=(40, 2))
    fit = fit_line(x, scores[:, 0], covariates=held)
    expected = sm.OLS(scores[:, 0], np.column_stack([np.ones(40), x, held])).fit(cov_type="HC3", use_t=True)
    assert (fit.slope, fit.p, fit.r2) == pytest.approx((expected.params[1], expected.pvalues[1], expected.rsquared))
    assert fit.slope_interval == pytest.approx(tuple(expected.conf_int()[1]), abs=1e-9)
    at_means = expected.get_prediction(np.concatenate([[1, 0.3], held.mean(axis=0)])[None]).summary_frame(alpha=0.05)
    columns = ["mean", "mean_ci_lower", "mean_ci_upper"]
    np.testing.assert_allclose(np.ravel(fit.band([0.3])), at_means[columns].iloc[0], atol=1e-9)
    rng = np.random.default_rng(1)
    scores, clusters = np.tile(scores, (3, 1)) + 0.1 * rng.normal(size=(120, 4)), rng.integers(0, 60, 120)
    x, held = rng.random(120), rng.integers(0, 2, (120, 2)).astype(float)
    fit = fit_line(x, scores[:, 0], clusters=clusters, covariates=held)
    design = np.column_stack([np.ones(120), x, held])
    expected = sm.OLS(scores[:, 0], design).fit(cov_type="cluster", cov_kwds={"groups": clusters}, use_t=True)
    assert (fit.slope, fit.p) == pytest.approx((expected.params[1], expected.pvalues[1]), abs=1e-9)
    assert fit.slope_interval == pytest.approx(tuple(expected.conf_int()[1]), abs=1e-9)
    at_means = expected.get_prediction(np.concatenate([[1, 0.3], held.mean(axis=0)])[None]).summary_frame(alpha=0.05)
    mean, low, high = fit.band([0.3])
    # statsmodels' own interval of a prediction takes n - k degrees of freedom where its slope takes K - 1.
    half = stats.t.ppf(0.975, len(np.unique(clusters)) - 1) * at_means["mean_se"].iloc[0]
    expected_mean = at_means["mean"].iloc[0]
    assert (mean[0], high[0] - mean[0], mean[0] - low[0]) == pytest.approx((expected_mean, half, half), abs=1e-9)


def test_no_line_where_there_is_nothing_to_fit_and_a_flat_one_of_constant_scores():
    for x, covariates in (
        (np.ones(40), None),
        (np.arange(40.0), np.arange(40.0)[:, None] * 2 + 1),
        (np.arange(9.0), None),
    ):
        assert fit_line(x, np.sin(np.arange(len(x))), covariates=covariates) is None
    fit = fit_line(np.arange(20.0), np.full(20, 0.7))
    assert fit.slope == pytest.approx(0, abs=1e-12)
    assert (fit.p, fit.r2) == (1.0, 0.0)
    # Few clusters of several samples.
    x = np.random.default_rng(0).random(78)
    assert fit_line(x, np.sin(9 * x), clusters=np.arange(78) // 2) is None
    assert fit_line(x, np.sin(9 * x)) is not None


def test_covariates_that_others_make_up_and_samples_that_stand_alone_do_not_matter():
    rng = np.random.default_rng(0)
    x, y, held = rng.random(40), rng.normal(size=40), rng.integers(0, 2, 40).astype(float)
    plain = fit_line(x, y, covariates=held[:, None])
    doubled = fit_line(x, y, covariates=np.column_stack([held, 1 - held, held]))
    assert (doubled.slope, doubled.p) == pytest.approx((plain.slope, plain.p), abs=1e-9)
    # A sample that is the only one of its category is gone through exactly.
    alone = np.zeros((41, 2))
    alone[:40, 0], alone[40, 1] = held, 1
    more = fit_line(np.append(x, 0.7), np.append(y, 5.0), covariates=alone)
    assert (more.n, more.slope, more.p) == pytest.approx((40, plain.slope, plain.p), abs=1e-9)


def test_group_means(scores):
    labels = ["two"] * 25 + ["three"] * 6 + ["one"] * 9
    first, *_, last = statistics.group_means(scores, labels, np.arange(40))
    assert [(group.label, group.n) for group in first] == [("one", 9), ("three", 6), ("two", 25)]
    assert [group.interval is None for group in first] == [True, True, False]
    assert last[2].mean == pytest.approx(scores[:25, 3].mean())
    assert last[2].interval == statistics.mean_intervals(scores[:25], np.arange(25))[3]


def test_differences_that_cancel_out_in_every_cluster_are_none():
    # Of yes to all questions and no to all, of twins with one answer of each: 0.1 + 0.2 - 0.3 is not 0 in floats.
    differences = np.tile([0.1 + 0.2, -0.3, 1.0, -1.0], 12)
    assert statistics.paired_t_test(differences, np.repeat(np.arange(12), 4)) == (0.0, 1.0)
    assert statistics.paired_t_test(differences + 0.5, np.repeat(np.arange(12), 4))[1] < 1e-9


RANGES = {measure.range: measure for task in list_tasks() for measure in task.info.with_intervals}


class TestBounds:
    """Ends of intervals lie in the range of their measure, whatever the samples."""

    @pytest.mark.parametrize("measure", RANGES.values(), ids=lambda measure: measure.name)
    def test_of_every_range_of_a_measure_with_an_interval(self, measure):
        low, high = (float(np.clip(end, -3, 3)) for end in measure.range)
        rng = np.random.default_rng(0)
        for spread in (0.1, 3.0, 1e3):
            # Contributions to a ratio: their mean lies in the range, and a few of them far outside.
            columns = rng.standard_cauchy((40, 3)) * spread
            columns += rng.uniform(low, high, 3) - columns.mean(axis=0)
            view = View(measure, ("a", "b", "c"), columns, np.arange(40))
            for interval in view.intervals:
                assert measure.range[0] <= interval[0] <= interval[1] <= measure.range[1]
            widest = measure.range[1] - measure.range[0]
            assert all(-widest <= test.interval[0] <= test.interval[1] <= widest for test in view.tests)

    def test_worked_by_hand(self):
        assert statistics.bounded_interval((0.2, 0.9), 0.5, (0.0, 1.0)) == (0.2, 0.9)
        # [-1705, 737] of a score of at most 1 was printed once.
        low, high = statistics.bounded_interval((-1705.0, 737.0), -484.0, (-1e15, 1.0))
        assert (low, high) == pytest.approx((-1705, 1 - 485 * np.exp(-1221 / 485)))
        assert -50 < high < 1
        # One group of sixty is right: an upper end within is not stretched by a lower one outside.
        low, high = statistics.bounded_interval((-0.01, 0.09), 1 / 60, (0.0, 1.0))
        assert 0 < low < 1 / 60
        assert high == 0.09
        # A mean that is a bound or beyond is cut.
        assert statistics.bounded_interval((0.9, 1.2), 1.0, (0.0, 1.0)) == (0.9, 1.0)
        assert statistics.bounded_interval((1.1, 1.2), 1.15, (0.0, 1.0)) == (1.0, 1.0)

    @pytest.mark.parametrize("bounds", [(0.0, 1.0), (-1e15, 1.0), (0.0, 1e15)])
    def test_near_the_estimate_both_scales_are_the_same(self, bounds):
        estimate = 0.001 if bounds[0] == 0 else 0.999
        outside = bounds[0] - 1e-4 if bounds[0] == 0 else bounds[1] + 1e-4
        near = estimate + 1e-7
        ends = sorted((near, outside))
        moved = statistics.bounded_interval((ends[0], ends[1]), estimate, bounds)
        assert min(abs(end - near) for end in moved) < 1e-9
        assert bounds[0] < moved[0] < moved[1] < bounds[1]
