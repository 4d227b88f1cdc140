"""A task with a fit that gives other numbers each time, for tests of what is allowed to differ."""

from __future__ import annotations

import numpy as np
from pydantic import Field

from audio_compositionality.encoders.base import ENCODER
from audio_compositionality.support.spec import Spec
from audio_compositionality.tasks.base import Inputs, Measure, Scores, independent_samples, settings_among

from ..run.toys import Task

JITTER = 1e-4
"""Standard deviation of what differs between two computations of the same score."""


class GuessSpec(Spec):
    """Nothing but the seeds that it has anyway."""

    seeds: int = Field(3, ge=3, le=3, description="Of the fit.")


class Guess(Task):
    """Cosines of two clips of a quadruple, once exact, and once with a fit's noise."""

    spec = GuessSpec

    def __init__(self):
        measures = (
            Measure("guess", "guess", "mean cosine, with noise", column="score", fitted=True, spread="seed_std"),
            Measure("seed_std", "seed sd", "spread over seeds", fitted=True),
            Measure("luck", "luck", "any number", fitted=True),
            Measure("exact", "exact", "mean cosine", column="exact"),
            Measure("absent", "absent", "not defined here"),
        )
        super().__init__(name="guess", recipe="a_coat", needs=ENCODER, measures=measures, ranks_by="guess")
        self.seed_std = 2e-3
        self.needs = Inputs(clips=("A", "C"))

    def inputs(self, row, settings):
        return self.needs

    def settings(self, rows, requested):
        settings_among(self.spec, {name: value for name, value in requested.items() if value != [0, 1, 2]})
        return {"seeds": [0, 1, 2], "share": 0.5}

    def score(self, rows, outputs, settings, device, progress):
        z = np.asarray(outputs.clips, np.float64)
        z = (z - z.mean(axis=0)).reshape(len(rows), 2, -1)
        with np.errstate(invalid="ignore"):
            cosines = (z[:, 0] * z[:, 1]).sum(1) / np.linalg.norm(z[:, 0], axis=1) / np.linalg.norm(z[:, 1], axis=1)
        rng = np.random.default_rng()
        scores = np.clip(cosines / 2 + JITTER * rng.normal(), -1, 1)
        measures = {
            "guess": float(scores.mean()),
            "seed_std": self.seed_std,
            "luck": float(rng.normal()),
            "exact": float(cosines.mean()),
            "absent": None,
        }
        columns = {"score": scores, "exact": cosines, "drawn": rng.normal(size=len(rows))}
        return Scores(measures, tuple(row["id"] for row in rows), columns, {"steps": [1, 2, 3]})

    def samples(self, rows):
        return independent_samples(rows)
