"""Coverage of the intervals and false positives of the tests, on simulated data sets with a known truth."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray
from scipy import stats
from tqdm.auto import tqdm

from audio_compositionality.evaluator.compare.statistics import compare_pairs, mean_intervals, paired_t_test
from audio_compositionality.metrics.a_coat import a_coat_scores

from .checks import Check, at_most
from .theory import expected_population_a_coat

Floats = NDArray[np.float64]
Clusters = NDArray[np.int64]

DIM = 16
"""Dimensions of the simulated embeddings. The statistics depend on the scores alone, so few suffice."""

SIZES = (1, 2, 3)
"""Numbers of added sources |T|, all equally frequent."""

COMMON = 0.5
"""Share of the noise's variance common to the quadruples of a cluster."""

ENCODERS = 7
"""Number of equally good encoders that are compared with each other, as in the paper."""

NOMINAL, LOWEST, HIGHEST = 0.95, 0.93, 0.97
"""Nominal coverage of the intervals, and the range accepted in 1,000 simulations or more."""


def coverage_band(simulations: int) -> tuple[float, float]:
    """Return the accepted range of coverage: 93 to 97 %, or the central 99 % of the binomial of 95 % if that is
    wider."""
    low, high = stats.binom.ppf([0.005, 0.995], simulations, NOMINAL) / simulations
    return min(LOWEST, float(low)), max(HIGHEST, float(high))


def make_clusters(n: int, number: int, rng: np.random.Generator) -> Clusters:
    """Return the cluster of each of n samples, in order; each of the `number` clusters has at least one sample."""
    return np.sort(np.concatenate([np.arange(number), rng.integers(0, number, n - number)]))


def simulate_scores(
    clusters: Clusters, share: float, encoders: int, rng: np.random.Generator, dim: int = DIM
) -> Floats:
    """Return A-COAT scores of one data set, [n, encoders]; the true mean of each is `expected_population_a_coat`.

    The quadruples of a cluster share T: |T|, drawn from `SIZES`, and the step of the noise-free encoder, of length
    sqrt(|T|). If clusters have several samples, these also share `COMMON` of the noise of A, B, C and D. Noise is
    independent between encoders.

    Args:
        clusters: [n], numbered from 0.
        share: of signal, see `constructed.noisy`.
        encoders: number of columns.
        rng: random generator.
        dim: dimensions.
    """
    n, number = len(clusters), int(clusters.max()) + 1
    length = np.sqrt(share * rng.choice(SIZES, number))[clusters]
    noise = rng.standard_normal((4, encoders, n, dim))
    if number < n:
        common = rng.standard_normal((4, encoders, number, dim))[:, :, clusters]
        noise = math.sqrt(1 - COMMON) * noise + math.sqrt(COMMON) * common
    embeddings = math.sqrt((1 - share) / dim) * noise
    # A score does not depend on the direction of the step.
    embeddings[[1, 3], ..., 0] += length
    a, b, c, d = embeddings.reshape(4, encoders * n, dim)
    return a_coat_scores(a, b, c, d).reshape(encoders, n).T


def student_interval(scores: Floats) -> tuple[float, float]:
    """Return the 95 % interval of the mean of scores [n], n ≥ 2, by Student's t with n - 1 degrees of freedom."""
    half = float(stats.t.ppf(0.975, len(scores) - 1) * stats.sem(scores))
    mean = float(scores.mean())
    return mean - half, mean + half


def simulate_coverage(simulations: int, large: int, seed: int, progress: bool) -> list[Check]:
    """Check the coverage of Student's t and of the clustered BCa bootstrap, on data of 64 samples and of `large`."""
    settings = [(64, 64), (large, large), (64, 32), (large, large // 5), (64, 16)]
    checks = []
    total = 2 * simulations * len(settings)
    with tqdm(desc="coverage", total=total, disable=not progress) as bar:
        for number, (n, count) in enumerate(settings):
            for share in (0.3, 0.8):
                rng = np.random.default_rng([seed, 2, number, round(10 * share)])
                clusters = make_clusters(n, count, rng)
                truth = expected_population_a_coat(share, DIM, SIZES)
                scores = np.empty((n, simulations))
                for column in range(simulations):
                    scores[:, column] = simulate_scores(clusters, share, 1, rng)[:, 0]
                    bar.update()
                subject = f"{n:,} samples in {count:,} clusters, {100 * share:g} % signal"
                # All data sets have the same clusters, so one call returns for each the interval of a separate call.
                for name, intervals, claimed in (
                    ("Student's t", [student_interval(column) for column in scores.T], count == n),
                    ("BCa", mean_intervals(scores, clusters), count >= 32),
                ):
                    checks.append(
                        _covers(subject, f"A-COAT of {truth:.3f}, covered by {name}", intervals, truth, claimed)
                    )
    return checks


def simulate_false_positives(simulations: int, seed: int, progress: bool) -> list[Check]:
    """Check how often tests of all pairs of 7 equally good encoders find a difference, on 64 samples with and without
    clusters; for contrast also with a test that ignores the clusters."""
    checks = []
    # The upper end of the central 95 % of the binomial. The tests of one data set may depend on each other fully, so
    # each data set counts as one trial.
    highest = float(stats.binom.ppf(0.975, simulations, 0.05)) / simulations
    n, share = 64, 0.5
    with tqdm(desc="false positives", total=2 * simulations, disable=not progress) as bar:
        for number, count in enumerate((64, 32)):
            rng = np.random.default_rng([seed, 3, number])
            clusters = make_clusters(n, count, rng)
            alone, ignoring, excluded, corrected = np.empty((4, simulations))
            for k in range(simulations):
                scores = simulate_scores(clusters, share, ENCODERS, rng)
                tests = compare_pairs(scores, clusters)
                alone[k] = np.mean([test.p is not None and test.p <= 0.05 for test in tests])
                corrected[k] = any(test.significant for test in tests)
                intervals = [test.interval for test in tests]
                excluded[k] = np.mean([pair is not None and not pair[0] <= 0 <= pair[1] for pair in intervals])
                differences = [scores[:, test.first] - scores[:, test.second] for test in tests]
                ignoring[k] = np.mean([paired_t_test(d, np.arange(n))[1] <= 0.05 for d in differences])
                bar.update()
            rows = [
                ("paired t-test, p ≤ 0.05", alone, True),
                ("95 % BCa interval of the difference without 0", excluded, True),
                ("any of the 21 tests of a data set, corrected", corrected, True),
            ]
            if count < n:
                rows.append(("paired t-test that ignores the clusters", ignoring, False))
            for test, rates, claimed in rows:
                subject = f"{n} samples in {count} clusters"
                rate = float(rates.mean())
                checks.append(at_most(subject, f"false positives: {test}", highest, rate, claimed=claimed))
    return checks


AXIS_DIM = 8
"""Dimensions of the simulated embeddings."""

COPIES = 4
"""Copies of each original."""

SETTINGS = ((32, 32), (64, 64), (64, 32), (400, 80), (16, 16))
"""Numbers of originals, and of their blocks."""

FEWEST = 32
"""Fewest blocks for which the coverage is claimed."""

TRUTHS = (0.8, 0.3)

CONTEXTS = (32, 128, 512)
"""Numbers of blocks of clips for probes; a block has one clip of each level."""

LEVELS = 4

FEWEST_CONTEXTS = 512
"""Fewest blocks for which the coverage of a score with a fitted probe is claimed, give or take `FITTED`."""

FITTED = 0.03
"""Additional share of misses of the interval, which does not cover the draw of a probe's training clips."""

FOLDS = 5


def simulate_invariance(simulations: int, seed: int, progress: bool) -> list[Check]:
    """Check the coverage of the clustered BCa interval of the score `invariance`."""
    from audio_compositionality.metrics.invariance import invariance

    checks = []
    total = simulations * len(SETTINGS) * len(TRUTHS)
    with tqdm(desc="axes: coverage", total=total, disable=not progress) as bar:
        for number, (originals, count) in enumerate(SETTINGS):
            for truth in TRUTHS:
                rng = np.random.default_rng([seed, 7, number, round(10 * truth)])
                blocks = np.arange(originals) % count
                scores = np.empty((originals, simulations))
                for column in range(simulations):
                    embeddings, base = simulate_copies(blocks, truth, rng)
                    owners = np.concatenate([blocks, np.repeat(blocks, COPIES)])
                    result = invariance(embeddings, base, blocks=owners.tolist(), return_scores=True)
                    scores[:, column] = result["scores"]
                    bar.update()
                subject, score = f"{originals} originals in {count} blocks", f"Invariance of {truth:g}, covered"
                checks.append(_covers(subject, score, mean_intervals(scores, blocks), truth, count >= FEWEST))
    return checks


def simulate_informativeness(simulations: int, seed: int, progress: bool) -> list[Check]:
    """Check the coverage of the clustered BCa interval of the score `informativeness`, by ridge regression.

    The value to cover is the expected score of probes trained on the same number of clips: the mean over the simulated
    data sets.
    """
    from audio_compositionality.metrics.informativeness import informativeness

    checks = []
    total = simulations * len(CONTEXTS) * len(TRUTHS)
    with tqdm(desc="axes: coverage of probes", total=total, disable=not progress) as bar:
        for number, count in enumerate(CONTEXTS):
            blocks = np.repeat(np.arange(count), LEVELS)
            for share in TRUTHS:
                rng = np.random.default_rng([seed, 8, number, round(10 * share)])
                scores = np.empty((len(blocks), simulations))
                for column in range(simulations):
                    embeddings, labels = simulate_levels(count, share, rng)
                    folds = (rng.permutation(count) % FOLDS)[blocks]
                    result = informativeness(embeddings, labels, folds, blocks, probes=("ridge",), return_scores=True)
                    scores[:, column] = result["scores"]
                    bar.update()
                truth, claimed = float(scores.mean()), count >= FEWEST_CONTEXTS
                subject = f"{len(blocks):,} clips in {count} blocks, {100 * share:g} % signal"
                score = f"Informativeness of {truth:.2f}, covered"
                slack = FITTED if claimed else 0.0
                checks.append(_covers(subject, score, mean_intervals(scores, blocks), truth, claimed, slack))
    return checks


def _covers(
    subject: str,
    score: str,
    intervals: Sequence[tuple[float, float] | None],
    truth: float,
    claimed: bool,
    slack: float = 0.0,
) -> Check:
    """Check how many of the intervals of simulated data sets cover the truth."""
    low, high = coverage_band(len(intervals))
    low -= slack
    covered = float(np.mean([pair is not None and pair[0] <= truth <= pair[1] for pair in intervals]))
    return Check(subject, score, f"{100 * low:.1f} to {100 * high:.1f} %", covered, low, high, claimed)


def simulate_copies(
    blocks: NDArray[np.int64], truth: float, rng: np.random.Generator
) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """Return originals and copies [n, AXIS_DIM] whose population invariance is `truth`, and the original of each row.

    Originals of a block share `COMMON` of their variance. The squared distance of copies from their originals differs
    between blocks: half of it is constant, half exponentially distributed.

    Args:
        blocks: block of each original, from 0.
        truth: 1 - E|z′ - z|²/E|z_i - z_j|², for z_i and z_j of different blocks.
        rng: random generator.
    """
    n, count = len(blocks), int(blocks.max()) + 1
    common = rng.standard_normal((count, AXIS_DIM))[blocks]
    z = math.sqrt(COMMON) * common + math.sqrt(1 - COMMON) * rng.standard_normal((n, AXIS_DIM))
    # The mean squared distance of two originals is 2 · AXIS_DIM.
    scale = 2 * (1 - truth) * (1 + rng.exponential(size=count))[blocks] / 2
    steps = np.sqrt(np.repeat(scale, COPIES))[:, None] * rng.standard_normal((n * COPIES, AXIS_DIM))
    owners = np.repeat(np.arange(n), COPIES)
    return np.concatenate([z, z[owners] + steps]), np.concatenate([np.full(n, -1), owners])


def simulate_levels(
    count: int, share: float, rng: np.random.Generator
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return embeddings [count * LEVELS, AXIS_DIM] of all levels of a factor in each block, and standardised levels.

    The factor moves embeddings along one coordinate and has `share` of the variance there; the rest is noise. Clips of
    a block share `COMMON` of their noise, like clips of one context.
    """
    levels = np.arange(LEVELS) - (LEVELS - 1) / 2
    labels = np.tile(levels / levels.std(), count)
    common = np.repeat(rng.standard_normal((count, AXIS_DIM)), LEVELS, axis=0)
    noise = math.sqrt(COMMON) * common + math.sqrt(1 - COMMON) * rng.standard_normal((len(labels), AXIS_DIM))
    embeddings = math.sqrt(1 - share) * noise
    embeddings[:, 0] += math.sqrt(share) * labels
    return embeddings, labels
