"""Scale and rotation: what no score should see."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import stats
from tqdm.auto import tqdm

from audio_compositionality.metrics.a_coat import a_coat

from .constructed import noisy
from .data import BASE_SHARE, EXACT, SCORES, Floats, Material, Score


@dataclass(frozen=True)
class Invariance:
    """How far a transformation of all embeddings moves a score: `change` is the largest; `reason` of the tolerance."""

    transformation: str
    score: Score
    change: float
    tolerance: float
    reason: str

    @property
    def holds(self) -> bool:
        """Whether the score stays put."""
        return self.change <= self.tolerance


def transform(data: Material, progress: bool) -> tuple[Invariance, ...]:
    """Scale and rotation of the noisy encoder; the shared mean is a dial."""
    base = noisy(BASE_SHARE, seed=data.seed)
    steps, embeddings = data.steps(base), base.embed(data.scenes)
    rng = np.random.default_rng([data.seed, 1])
    moves: dict[str, list[Callable[[Floats], Floats]]] = {
        "scale × 1,000": [lambda z: 1_000 * z],
        "rotation": [_rotation(base.dim, rng) for _ in range(data.plan.rotations)],
    }
    steps_of_bar = data.plan.seeds - 1 + sum(map(len, moves.values()))
    with tqdm(desc="scale and rotation", total=steps_of_bar, disable=not progress) as bar:

        def fit(z: Floats, fit_seed: int = 0) -> dict[str, Any]:
            bar.update()
            return data.fit(z, fit_seed=fit_seed)

        plain = {"a_coat": data.a_coat(base), "a_tre": data.a_tre(base)}
        fits_of_seeds = [plain["a_tre"], *(fit(embeddings, seed) for seed in range(1, data.plan.seeds))]
        moved = {
            name: [
                {
                    "a_coat": a_coat(*(move(z) for z in steps), **data.quadruples.matching),
                    "a_tre": fit(move(embeddings)),
                }
                for move in variants
            ]
            for name, variants in moves.items()
        }
    invariances = []
    for name, results in moved.items():
        for task, score in SCORES:
            if score == "collapsed":
                continue
            reference, tolerance, reason = plain[task][score], EXACT, "rounding"
            if task == "a_tre" and score in ("a_tre", "gain", "a_tre_centred", "top1"):
                seeds = [fitted[score] for fitted in fits_of_seeds]
                reference = float(np.mean(seeds))
                spread = math.sqrt(1 + 1 / len(seeds)) * float(np.std(seeds, ddof=1))
                # A rate over n scenes moves in steps of 1/n, which the spread of a few fits can miss.
                step = 1 / plain[task]["n"] if score == "top1" else 0.0
                tolerance = max(float(stats.t.ppf(1 - 0.005 / len(results), len(seeds) - 1)) * spread, step)
                reason = "another seed"
            change = max(abs(result[task][score] - reference) for result in results)
            invariances.append(Invariance(name, (task, score), change, tolerance, reason))
    return tuple(invariances)


def _rotation(dim: int, rng: np.random.Generator) -> Callable[[Floats], Floats]:
    matrix = stats.ortho_group.rvs(dim, random_state=rng)
    return lambda z: z @ matrix
