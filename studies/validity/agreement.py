"""Scores beside what theory expects of them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy import stats

from audio_compositionality.metrics.a_coat import a_coat, a_coat_scores

from . import constructed as make
from .constructed import ConstructedEncoder
from .data import BASE_SHARE, EXACT, Floats, Material
from .theory import (
    expected_a_coat,
    expected_constant,
    expected_maximum_a_coat,
    expected_noise_constant,
    expected_oracle,
)

MAXIMUM_DIM = 4_096
"""Dimensions for the theory of the maximum, which holds for many: its error of O(1/D) is then about 0.0002."""


@dataclass(frozen=True)
class Agreement:
    """A score beside what theory expects of it.

    Attributes:
        encoder, score: what was measured.
        n: samples.
        expected, measured: means over samples.
        error: standard error of the difference, from the differences of single samples; None where theory is exact.
        at_most: whether theory gives an upper bound only.
        level: of the interval that decides: such that all intervals together hold theory with 95 % (Bonferroni).
    """

    encoder: str
    score: str
    n: int
    expected: float
    measured: float
    error: float | None = None
    at_most: bool = False
    level: float = 0.95

    @property
    def interval(self) -> tuple[float, float] | None:
        """95 % interval of measured - expected, Student's t; None where theory is exact."""
        return self._interval(0.95)

    @property
    def holds(self) -> bool:
        """Whether measurement and theory agree: within `EXACT`, or within the interval that decides."""
        decisive = self._interval(self.level)
        if decisive is None:
            return abs(self.measured - self.expected) <= EXACT
        return decisive[0] <= 0 and (self.at_most or decisive[1] >= 0)

    def _interval(self, level: float) -> tuple[float, float] | None:
        if self.error is None:
            return None
        half = float(stats.t.ppf((1 + level) / 2, self.n - 1)) * self.error
        difference = self.measured - self.expected
        return difference - half, difference + half


def compare_with_theory(data: Material) -> tuple[Agreement, ...]:
    """Every score whose expectation is known, with intervals that hold together."""
    agreements = [*_a_coat_agreements(data), *_a_tre_agreements(data), *_constant_agreements(data)]
    level = 1 - 0.05 / sum(item.error is not None for item in agreements)
    return tuple(replace(item, level=level) for item in agreements)


def _compared(encoder: str, score: str, expected: Floats | float, scores: ArrayLike, **more: Any) -> Agreement:
    """Scores of samples beside their expectations."""
    values = np.asarray(scores, np.float64)
    differences = values - expected
    mean = float(np.mean(np.broadcast_to(expected, values.shape)))
    error = float(stats.sem(differences))
    return Agreement(encoder, score, len(values), mean, float(values.mean()), error, **more)


def _a_coat_agreements(data: Material) -> list[Agreement]:
    seed, n = data.seed, len(data.quadruples)
    plain = data.a_coat(make.additive(seed=seed))
    agreements = [Agreement("additive", "A-COAT", n, 1.0, plain["a_coat"])]
    for share in (0.5, 1.0):
        value = data.a_coat(make.bound(share, seed=seed))["a_coat"]
        agreements.append(Agreement(f"bound, {share:g}", "A-COAT", n, 1.0, value))
    encoders: list[tuple[str, Callable[..., ConstructedEncoder], tuple[float, ...]]] = [
        ("additive + noise, signal", make.noisy, (0.1, 0.3, 0.6, 0.9)),
        ("number only,", make.counting, (0.2, 0.5, 0.9)),
        ("loudness only,", make.loud, (0.5, 0.9)),
    ]
    for title, factory, shares in encoders:
        for share in shares:
            encoder = factory(share, seed=seed + len(agreements))  # rows with noise of their own
            scores = a_coat_scores(*data.steps(encoder))
            agreements.append(
                _compared(f"{title} {share:g}", "A-COAT", expected_a_coat(encoder, data.quadruples), scores)
            )
    # With steps of one length, what the mean leaves is unrelated noise.
    single = data.quadruples[np.flatnonzero(data.quadruples.t.sizes == 1)]
    steps = make.counting(0.9, seed=seed).embed_quadruples(single)
    centred = a_coat(*steps, return_scores=True)["scores_centred"]
    agreements.append(_compared("number only, 0.9, |T| = 1", "centred", 0.0, centred))
    for share in (0.25, 0.5, 1.0):
        moved = round(share * n) / n
        scores = data.a_coat(make.additive(seed=seed), share)["scores"]
        expected = 1 - moved + moved * plain["null"]
        agreements.append(_compared(f"additive, {share:g} permuted", "A-COAT", expected, scores))
    disjoint = data.quadruples[np.flatnonzero(data.quadruples.disjoint)[:128]]
    sizes = zip(disjoint.a.sizes.tolist(), disjoint.c.sizes.tolist(), disjoint.t.sizes.tolist(), strict=True)
    expected = np.array([expected_maximum_a_coat(*size) for size in sizes])
    maximum = make.saturating(1, binding=1, dim=MAXIMUM_DIM, seed=seed)
    agreements.append(
        _compared(
            "maximum of independent tokens", "A-COAT", expected, a_coat_scores(*maximum.embed_quadruples(disjoint))
        )
    )
    return agreements


def _a_tre_agreements(data: Material) -> list[Agreement]:
    test = data.scenes[data.rows["test"]]
    agreements = []
    for share in (0.2, 0.4, 0.7):
        encoder = make.noisy(share, seed=data.seed)
        expected = expected_oracle(encoder, test)
        z, truth = (e.embed(data.scenes)[data.rows["test"]] for e in (encoder, replace(encoder, noise=0)))
        cosines = (z * truth).sum(axis=1) / np.linalg.norm(z, axis=1) / np.linalg.norm(truth, axis=1)
        name = f"additive + noise, signal {share:g}"
        agreements.append(_compared(name, "cosine with the truth", expected, cosines))
        if share == BASE_SHARE:
            agreements.append(_compared(name, "A-TRE", expected, data.a_tre(encoder)["scores"], at_most=True))
    return agreements


def _constant_agreements(data: Material) -> list[Agreement]:
    train, test = data.rows["train"], data.rows["test"]
    agreements = []
    for share in (0.5, 0.9, 0.99):
        encoder = make.anisotropic(share, make.additive(seed=data.seed))
        value = data.fit(encoder.embed(data.scenes), max_steps=1)["constant"]
        expected = expected_constant(data.scenes[train], data.scenes[test], share)
        agreements.append(Agreement(f"additive + shared mean, {share:g}", "constant", len(test), expected, value))
    for share in (0.5, 0.9, 0.99):
        encoder = make.anisotropic(share, make.noisy(0, seed=data.seed))
        z = encoder.embed(data.scenes)
        unit = z / np.linalg.norm(z, axis=1, keepdims=True)
        mean = unit[train].mean(axis=0)
        expected = expected_noise_constant(share, encoder.dim, len(train))
        cosines = unit[test] @ mean / np.linalg.norm(mean)
        row = _compared(f"noise + shared mean, {share:g}", "constant", expected, cosines)
        agreements.append(replace(row, measured=data.fit(z, max_steps=1)["constant"]))
    encoder = make.constant(seed=data.seed)
    quadruples, scenes = data.a_coat(encoder), data.a_tre(encoder)
    exact = {
        "A-COAT": (0.0, quadruples["a_coat"]),
        "degenerate / n": (1.0, quadruples["degenerate"] / quadruples["n"]),
        "A-TRE": (1.0, scenes["a_tre"]),
        "gain": (0.0, scenes["gain"]),
        "A-TRE centred": (0.0, scenes["a_tre_centred"]),
        "collapsed": (1.0, float(scenes["collapsed"])),
    }
    for score, (expected, value) in exact.items():
        n = len(data.quadruples) if score in ("A-COAT", "degenerate / n") else len(test)
        agreements.append(Agreement("constant", score, n, expected, value))
    return agreements
