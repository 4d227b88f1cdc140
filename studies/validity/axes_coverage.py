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


def simulate_invariance(simulations: int, seed: int, progress: bool) -> list[Check]:
    """Coverage of the clustered BCa interval of the score `invariance`."""
    from audio_compositionality.metrics.invariance.invariance import invariance

    band, checks = coverage_band(simulations), []
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
                intervals = mean_intervals(scores, blocks)
                covered = np.mean([pair is not None and pair[0] <= truth <= pair[1] for pair in intervals])
                checks.append(
                    Check(
                        f"{originals} originals in {count} blocks",
                        f"Invariance of {truth:g}, covered",
                        f"{100 * band[0]:.1f} to {100 * band[1]:.1f} %",
                        float(covered),
                        *band,
                        claimed=count >= FEWEST,
                    )
                )
    return checks


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
