"""What the constructed encoders are scored on, and how much of it."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from audio_compositionality.dataset_builder.rendered import rendered_preset
from audio_compositionality.metrics.a_coat import a_coat
from audio_compositionality.metrics.a_tre import a_tre

from .constructed import ConstructedEncoder, permuted, read_quadruples, read_scenes

Floats = NDArray[np.float64]
Score = tuple[str, str]
"""Task, and name of a score in what the task's metric returns."""

A_COAT = ("a_coat", "adjusted", "centred", "top1")
A_TRE = ("a_tre", "constant", "gain", "a_tre_centred", "ridge_centred", "ridge_r2", "top1", "collapsed")

SCORES: tuple[Score, ...] = (*(("a_coat", name) for name in A_COAT), *(("a_tre", name) for name in A_TRE))
"""The scores that are looked at."""

EXACT = 1e-9
"""What rounding in float64 may change: far above it, and far below any digit that is printed."""

BASE_SHARE = 0.2
"""Share of signal of the noisy encoder whose scores are to stay put: none of them is near its ceiling there."""


@dataclass(frozen=True)
class Plan:
    """How much is measured.

    Attributes:
        quadruples, train, test: samples, drawn as the preset mini is; its 64 scenes validate.
        candidates: quadruples and scenes that they are selected from.
        max_steps: training steps of A-TRE.
        every: each how many levels of a dial are measured; the ends always are.
        replicates: encoders (seeds) averaged that hear nothing but energy.
        seeds: fits that differ in their seed alone.
        rotations: random rotations.
        simulations: simulated data sets of each setting.
        large: samples of the larger simulated data sets.
    """

    quadruples: int = 500
    train: int = 512
    test: int = 256
    candidates: tuple[int, int] = (50_000, 150_000)
    max_steps: int = 600
    every: int = 1
    replicates: int = 20
    seeds: int = 5
    rotations: int = 3
    simulations: int = 1_000
    large: int = 2_000


QUICK = Plan(
    quadruples=200,
    train=256,
    test=128,
    candidates=(5_000, 20_000),
    max_steps=100,
    every=2,
    replicates=5,
    seeds=3,
    rotations=1,
    simulations=100,
    large=500,
)
"""A look at whether everything works, in less than a minute: the bands of the simulations are wider accordingly."""


class Material:
    """Quadruples and scenes of a plan, and the scores of encoders on them; nothing is fitted twice.

    Attributes:
        quadruples: no two with the same T, so that an encoder whose steps depend on T alone has a top-1 of 1.
        scenes, splits: of a_tre.
    """

    def __init__(self, plan: Plan, seed: int) -> None:
        self.plan, self.seed = plan, seed
        quadruples, scenes = plan.candidates
        rendered = rendered_preset(
            "mini",
            recipes=("a_coat", "a_tre"),
            seed=seed,
            quadruples=plan.quadruples,
            train_scenes=plan.train,
            test_scenes=plan.test,
            quadruple_candidates=quadruples,
            scene_candidates=scenes,
        )
        drawn = read_quadruples(rendered.configuration("a_coat").rows)
        added = np.sort(drawn.t.codes, axis=1)
        self.quadruples = drawn[np.sort(np.unique(added, axis=0, return_index=True)[1])]
        rows = rendered.configuration("a_tre").rows
        self.scenes = read_scenes(rows)
        self.splits = [row["split"] for row in rows]
        self._metadata = [row["metadata"] for row in rows]
        self._gains = [row["gains"] for row in rows]
        self._fits: dict[tuple[ConstructedEncoder, float], dict[str, Any]] = {}

    @cached_property
    def rows(self) -> dict[str, NDArray[np.int64]]:
        """Numbers of the scenes of each split."""
        return {name: np.flatnonzero(np.array(self.splits) == name) for name in ("train", "test")}

    def steps(self, encoder: ConstructedEncoder, share: float = 0) -> tuple[Floats, Floats, Floats, Floats]:
        """Embeddings of A, B, C and D, a share of the steps D - C having changed places."""
        a, b, c, d = encoder.embed_quadruples(self.quadruples)
        order = permuted(np.zeros(len(a)), share, self.seed)
        return a, b, c, c + (d - c)[order]

    def a_coat(self, encoder: ConstructedEncoder, share: float = 0) -> dict[str, Any]:
        """A-COAT of an encoder."""
        return a_coat(*self.steps(encoder, share), **self.quadruples.matching, return_scores=True)

    def a_tre(self, encoder: ConstructedEncoder, share: float = 0) -> dict[str, Any]:
        """A-TRE of an encoder, a share of the scenes' labels having changed places within its split."""
        key = (encoder, share)
        if key not in self._fits:
            scenes = self.scenes[permuted(self.splits, share, self.seed)]
            self._fits[key] = self.fit(encoder.embed(scenes))
        return self._fits[key]

    def fit(self, embeddings: Floats, *, fit_seed: int = 0, max_steps: int | None = None) -> dict[str, Any]:
        """A-TRE of embeddings of the scenes."""
        return a_tre(
            embeddings,
            self._metadata,
            self.splits,
            gains=self._gains,
            seeds=(fit_seed,),
            max_steps=max_steps or self.plan.max_steps,
            device="cpu",
            progress=False,
            return_scores=True,
        )
