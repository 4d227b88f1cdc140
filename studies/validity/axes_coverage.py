"""Do the 95 % intervals of an axis cover? Simulated blocks whose truth is known."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray
from tqdm.auto import tqdm

from audio_compositionality.evaluator.compare.statistics import mean_intervals

from .families import Check
from .simulation import COMMON, coverage_band

DIM = 8
"""Dimensions of the simulated embeddings."""

COPIES = 4
"""Copies of each original."""

SETTINGS = ((32, 32), (64, 64), (64, 32), (400, 80), (16, 16))
"""Originals, and blocks that they are in."""

FEWEST = 32
"""Blocks from which on the coverage is claimed."""

TRUTHS = (0.8, 0.3)

CONTEXTS = (32, 128, 512)
"""Blocks of the clips that probes are fitted to; a block has one clip of each level."""

LEVELS = 4

FEWEST_CONTEXTS = 512
"""Blocks from which on the coverage is claimed of a score that a probe is fitted for, give or take `FITTED`."""

FITTED = 0.03
"""By how much more the interval may miss, since it does not know how a probe's own clips move the score."""

FOLDS = 5


def simulate_invariance(simulations: int, seed: int, progress: bool) -> list[Check]:
    """Coverage of the clustered BCa interval of the score `invariance`."""
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
                checks.append(_check(subject, score, scores, blocks, truth, claimed=count >= FEWEST))
    return checks


def simulate_informativeness(simulations: int, seed: int, progress: bool) -> list[Check]:
    """Coverage of the clustered BCa interval of the score `informativeness`, by ridge regression.

    What it has to cover is the score of probes that learn from as many clips: its mean over the simulated data sets.
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
                checks.append(_check(subject, score, scores, blocks, truth, claimed=claimed, slack=slack))
    return checks


def _check(
    subject: str,
    score: str,
    scores: NDArray[np.float64],
    blocks: NDArray[np.int64],
    truth: float,
    *,
    claimed: bool,
    slack: float = 0.0,
) -> Check:
    """How often the intervals of the mean of each column of scores [n, simulations] cover the truth."""
    low, high = coverage_band(scores.shape[1])
    low -= slack
    intervals = mean_intervals(scores, blocks)
    covered = float(np.mean([pair is not None and pair[0] <= truth <= pair[1] for pair in intervals]))
    return Check(subject, score, f"{100 * low:.1f} to {100 * high:.1f} %", covered, low, high, claimed)


def simulate_copies(
    blocks: NDArray[np.int64], truth: float, rng: np.random.Generator
) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """Originals and copies [n, DIM] whose invariance is `truth` in the population, and rows of the originals.

    Originals of a block share `COMMON` of their variance; how far copies move differs from block to block: its square
    has the exponential distribution, half and half with a constant.

    Args:
        blocks: of each original, from 0.
        truth: 1 - E|z′ - z|²/E|z_i - z_j|², for z_i and z_j of different blocks.
        rng: source of chance.
    """
    n, count = len(blocks), int(blocks.max()) + 1
    common = rng.standard_normal((count, DIM))[blocks]
    z = math.sqrt(COMMON) * common + math.sqrt(1 - COMMON) * rng.standard_normal((n, DIM))
    # Two originals are 2 · DIM apart, squared and on average.
    scale = 2 * (1 - truth) * (1 + rng.exponential(size=count))[blocks] / 2
    steps = np.sqrt(np.repeat(scale, COPIES))[:, None] * rng.standard_normal((n * COPIES, DIM))
    owners = np.repeat(np.arange(n), COPIES)
    return np.concatenate([z, z[owners] + steps]), np.concatenate([np.full(n, -1), owners])


def simulate_levels(
    count: int, share: float, rng: np.random.Generator
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Embeddings [count * LEVELS, DIM] of all levels of a factor in each of some blocks, and the levels, standardised.

    The factor moves embeddings along one coordinate; there it has `share` of the variance, and noise the rest. Clips of
    a block have `COMMON` of their noise in common, as those of one context have.
    """
    levels = np.arange(LEVELS) - (LEVELS - 1) / 2
    labels = np.tile(levels / levels.std(), count)
    common = np.repeat(rng.standard_normal((count, DIM)), LEVELS, axis=0)
    noise = math.sqrt(COMMON) * common + math.sqrt(1 - COMMON) * rng.standard_normal((len(labels), DIM))
    embeddings = math.sqrt(1 - share) * noise
    embeddings[:, 0] += math.sqrt(share) * labels
    return embeddings, labels
