"""Theoretical expectations of the scores of constructed encoders.

>>> round(mean_resultant_length(np.array([3.0]), 2).item(), 4)  # a point 3 standard deviations from the origin
0.9374
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace

import numpy as np
from numpy.typing import ArrayLike
from scipy import integrate, special, stats

from audio_compositionality.metrics.a_coat import a_coat, a_coat_scores

from . import constructed as make
from .checks import Check, near
from .constructed import BASE_SHARE, ConstructedEncoder, Floats, Material, Quadruples, Scenes

_GRID = np.linspace(-12, 12, 9_601)  # standard deviations; beyond them lies less than 1e-32 of a normal variable


def mean_resultant_length(strength: ArrayLike, dim: int) -> Floats:
    """Return E[û · ŝ] for u = s + τ g, g ~ N(0, I) in `dim` dimensions; û and ŝ are u and s scaled to length 1.

    It is the mean resultant length of the projected normal distribution (Mardia and Jupp 2000, "Directional
    Statistics", sections 3.5.6 and 9.2 for the terms). With λ = |s| / τ and D dimensions

        E[û · ŝ] = (λ / √2) Γ((D + 1) / 2) / Γ(D / 2 + 1) · 1F1(1/2; D/2 + 1; −λ² / 2)

    Derivation: 1/|u| = π^(-1/2) ∫_0^∞ x^(-1/2) exp(−x |u|²) dx; the expectation of u · ŝ exp(−x |u|²) is a Gaussian
    integral, λ (1 + 2x)^(-(D+2)/2) exp(−x λ² / (1 + 2x)) for τ = 1; with y = 2x / (1 + 2x) the integral over x is
    Kummer's (NIST Digital Library of Mathematical Functions, equation 13.4.1).

    Args:
        strength: λ ≥ 0, of any shape; infinite without noise.
        dim: D.
    """
    ratio = np.asarray(strength, np.float64)
    finite = np.where(np.isfinite(ratio), ratio, 1.0)
    scale = math.exp(special.gammaln((dim + 1) / 2) - special.gammaln(dim / 2 + 1)) / math.sqrt(2)
    length = scale * finite * special.hyp1f1(0.5, dim / 2 + 1, -(finite**2) / 2)
    return np.asarray(np.where(np.isfinite(ratio), length, 1.0))


def expected_a_coat(encoder: ConstructedEncoder, quadruples: Quadruples) -> Floats:
    """Return E cos(z_B − z_A, z_D − z_C) of each quadruple, [n]; the expectation is over the encoder's noise.

    The steps are u = s + n₁ and v = s′ + n₂, n₁ and n₂ independent N(0, τ² I): τ² is twice the noise's variance in a
    dimension, since a step is a difference of two clips. As u and v are independent, E[û · v̂] = E[û] · E[v̂], which is
    ŝ · ŝ′ times the `mean_resultant_length` of each.
    """
    a, b, c, d = replace(encoder, noise=0).embed_quadruples(quadruples)
    cosines = a_coat_scores(a, b, c, d)
    deviation = encoder.noise * math.sqrt(2 / encoder.dim)
    return cosines * _alignment(b - a, deviation) * _alignment(d - c, deviation)


def expected_oracle(encoder: ConstructedEncoder, scenes: Scenes) -> Floats:
    """Return E cos(z, E z) of each scene, [n]: the score of a prediction equal to the encoder's noise-free embedding.

    No prediction from metadata scores more: E[û] points along s, and E[û · p] ≤ |E[û]| for every p of length 1.
    """
    return _alignment(replace(encoder, noise=0).embed(scenes), encoder.noise / math.sqrt(encoder.dim))


def _alignment(signal: Floats, deviation: float) -> Floats:
    norms = np.linalg.norm(signal, axis=1)
    with np.errstate(divide="ignore"):
        return mean_resultant_length(norms / deviation if deviation else np.full_like(norms, np.inf), signal.shape[1])


def expected_population_a_coat(share: float, dim: int, sizes: ArrayLike) -> float:
    """Return the mean A-COAT of the noisy encoder over a population of quadruples.

    Args:
        share: share of signal; see `noisy`.
        dim: number of dimensions.
        sizes: |T|, each value equally frequent; the sources of T have orthogonal tokens of length 1.
    """
    with np.errstate(divide="ignore"):
        strength = np.sqrt(np.asarray(sizes, np.float64) * share / (2 * (1 - share) / dim))
    return float((mean_resultant_length(strength, dim) ** 2).mean())


def expected_maximum_a_coat(a: int, c: int, t: int) -> float:
    """Return A-COAT of a quadruple of different sources, with independent Gaussian tokens that mix by the maximum.

    In the limit of many dimensions: with α, γ and θ the largest of `a`, `c` and `t` standard normal variables, a step
    is (θ − α)⁺ in each dimension, so that the cosine is E[(θ−α)⁺(θ−γ)⁺] / sqrt(E[(θ−α)⁺²] E[(θ−γ)⁺²]). Given θ = x,
    E(x − α)⁺ = ∫_−∞^x Φ(u)^a du and E(x − α)⁺² = 2 ∫_−∞^x E(u − α)⁺ du. In D dimensions the mean cosine differs by
    O(1/D).
    """
    below = stats.norm.cdf(_GRID)
    density = t * stats.norm.pdf(_GRID) * below ** (t - 1)
    first, second = (integrate.cumulative_simpson(below**k, x=_GRID, initial=0) for k in (a, c))
    squares = [2 * integrate.cumulative_simpson(step, x=_GRID, initial=0) for step in (first, second)]
    product = integrate.simpson(density * first * second, x=_GRID)
    norms = [integrate.simpson(density * square, x=_GRID) for square in squares]
    return float(product / math.sqrt(norms[0] * norms[1]))


def expected_constant(train: Scenes, test: Scenes, share: float) -> float:
    """Return the exact `constant` of A-TRE for the additive encoder with a shared mean and no noise, from class counts.

    Two scenes of x and y sources have the inner product share + (1 − share) Σ_attributes (Σ_k x_k y_k − x y / K) /
    (attributes (1 − 1/K)): as for simplex corners, see `ConstructedEncoder`. The constant is the mean over test scenes
    of cos(z, mean of the unit training embeddings), which depends on inner products only.
    """
    attributes, number = train.classes.shape[2], train.num_classes
    x, y = (scenes.counts.reshape(len(scenes), -1) for scenes in (train, test))

    def products(p: Floats, q: Floats) -> Floats:
        sizes = p.sum(axis=1)[:, None] * q.sum(axis=1) / attributes  # Σ_attributes of x y
        simplex = (p @ q.T - sizes / number) / attributes / (1 - 1 / number)
        return np.asarray(share + (1 - share) * simplex)

    outer, inner, cross = (products(p, q) for p, q in ((y, y), (x, x), (y, x)))
    weights = 1 / np.sqrt(np.diag(inner)) / len(x)
    return float((cross @ weights / np.sqrt(np.diag(outer))).mean() / math.sqrt(weights @ inner @ weights))


def expected_noise_constant(share: float, dim: int, training: int) -> float:
    """Return A-TRE's `constant` for embeddings of only a shared mean and noise (`anisotropic` of ``noisy(0)``).

    With r the `mean_resultant_length` at λ = sqrt(share / ((1 − share) / D)), two unit embeddings have the expected
    product r², and the mean of N of them the expected squared length r² + (1 − r²)/N: the constant is r² divided by the
    square root of the latter, up to terms of O(1/N) because that length is sampled.
    """
    r2 = float(mean_resultant_length(math.sqrt(share * dim / (1 - share)), dim)) ** 2
    return r2 / math.sqrt(r2 + (1 - r2) / training)


MAXIMUM_DIM = 4_096
"""Dimensions for the theory of the maximum, which is exact in the limit of many: its error of O(1/D) is about
0.0002."""

Sampled = tuple[str, str, Floats, Floats | float, bool]
"""The encoder, the score, its values of n samples, their expectations, and whether theory gives an upper bound only."""


def compare_with_theory(data: Material) -> list[Check]:
    """Check every score with a known expectation: exact ones within rounding, means over samples within intervals.

    The intervals are Student's t over the differences of single samples; with probability 95 %, all of them contain the
    theoretical value (Bonferroni).
    """
    sampled = [*_sampled_a_coat(data), *_sampled_a_tre(data), *_sampled_constants(data)]
    level = 1 - 0.05 / len(sampled)
    checks = _exact(data)
    for subject, score, values, expected, at_most in sampled:
        n, mean = len(values), float(np.mean(np.broadcast_to(expected, values.shape)))
        half = float(stats.t.ppf((1 + level) / 2, n - 1) * stats.sem(values - expected))
        check = near(subject, f"{score}, n = {n:,}", mean, float(values.mean()), half)
        checks.append(replace(check, expected=f"≤ {mean + half:.4g}", low=-math.inf) if at_most else check)
    return checks


def _exact(data: Material) -> list[Check]:
    """Check scores that theory gives exactly, without sampling."""
    seed = data.seed
    encoders = {"additive": make.additive(seed=seed)}
    encoders |= {f"bound, {share:g}": make.bound(share, seed=seed) for share in (0.5, 1.0)}
    checks = [near(subject, "A-COAT", 1, data.a_coat(encoder)["a_coat"]) for subject, encoder in encoders.items()]
    train, test = (data.scenes[data.rows[split]] for split in ("train", "test"))
    for share in (0.5, 0.9, 0.99):
        encoder = make.anisotropic(share, make.additive(seed=seed))
        value = data.fit(encoder.embed(data.scenes), max_steps=1)["constant"]
        subject = f"additive + shared mean, {share:g}"
        checks.append(near(subject, "A-TRE: constant", expected_constant(train, test, share), value))
    encoder = make.constant(seed=seed)
    quadruples, scenes = data.a_coat(encoder), data.a_tre(encoder)
    return [
        *checks,
        near("constant", "A-COAT", 0, quadruples["a_coat"]),
        near("constant", "degenerate / n", 1, quadruples["degenerate"] / quadruples["n"]),
        near("constant", "A-TRE", 1, scenes["a_tre"]),
        near("constant", "A-TRE: gain", 0, scenes["gain"]),
        near("constant", "A-TRE: centred", 0, scenes["a_tre_centred"]),
        near("constant", "A-TRE: collapsed", 1, float(scenes["collapsed"])),
    ]


def _sampled_a_coat(data: Material) -> list[Sampled]:
    seed, n = data.seed, len(data.quadruples)
    sampled: list[Sampled] = []
    encoders: list[tuple[str, Callable[..., ConstructedEncoder], tuple[float, ...]]] = [
        ("additive + noise, signal", make.noisy, (0.1, 0.3, 0.6, 0.9)),
        ("number only,", make.counting, (0.2, 0.5, 0.9)),
        ("loudness only,", make.loud, (0.5, 0.9)),
    ]
    for title, factory, shares in encoders:
        for share in shares:
            encoder = factory(share, seed=seed + 3 + len(sampled))  # each with noise of its own
            scores, expected = a_coat_scores(*data.steps(encoder)), expected_a_coat(encoder, data.quadruples)
            sampled.append((f"{title} {share:g}", "A-COAT", scores, expected, False))
    # With steps of one length, the residual from the mean is unrelated noise.
    single = data.quadruples[np.flatnonzero(data.quadruples.t.sizes == 1)]
    steps = make.counting(0.9, seed=seed).embed_quadruples(single)
    centred = np.asarray(a_coat(*steps, return_scores=True)["scores_centred"])
    sampled.append(("number only, 0.9, |T| = 1", "A-COAT: centred", centred, 0.0, False))
    null = data.a_coat(make.additive(seed=seed))["null"]
    for share in (0.25, 0.5, 1.0):
        moved = round(share * n) / n
        scores = np.asarray(data.a_coat(make.additive(seed=seed), share)["scores"])
        sampled.append((f"additive, {share:g} permuted", "A-COAT", scores, 1 - moved + moved * null, False))
    disjoint = data.quadruples[np.flatnonzero(data.quadruples.disjoint)[:128]]
    sizes = zip(disjoint.a.sizes.tolist(), disjoint.c.sizes.tolist(), disjoint.t.sizes.tolist(), strict=True)
    expected = np.array([expected_maximum_a_coat(*size) for size in sizes])
    maximum = make.saturating(1, binding=1, dim=MAXIMUM_DIM, seed=seed)
    scores = a_coat_scores(*maximum.embed_quadruples(disjoint))
    return [*sampled, ("maximum of independent tokens", "A-COAT", scores, expected, False)]


def _sampled_a_tre(data: Material) -> list[Sampled]:
    test = data.scenes[data.rows["test"]]
    sampled: list[Sampled] = []
    for share in (0.2, 0.4, 0.7):
        encoder = make.noisy(share, seed=data.seed)
        expected = expected_oracle(encoder, test)
        z, truth = (e.embed(data.scenes)[data.rows["test"]] for e in (encoder, replace(encoder, noise=0)))
        cosines = (z * truth).sum(axis=1) / np.linalg.norm(z, axis=1) / np.linalg.norm(truth, axis=1)
        subject = f"additive + noise, signal {share:g}"
        sampled.append((subject, "cosine with the truth", cosines, expected, False))
        if share == BASE_SHARE:
            sampled.append((subject, "A-TRE", np.asarray(data.a_tre(encoder)["scores"]), expected, True))
    return sampled


def _sampled_constants(data: Material) -> list[Sampled]:
    train, test = data.rows["train"], data.rows["test"]
    sampled: list[Sampled] = []
    for share in (0.5, 0.9, 0.99):
        encoder = make.anisotropic(share, make.noisy(0, seed=data.seed))
        z = encoder.embed(data.scenes)
        unit = z / np.linalg.norm(z, axis=1, keepdims=True)
        mean = unit[train].mean(axis=0)
        cosines = unit[test] @ mean / np.linalg.norm(mean)
        # Shift the cosines so that their mean is the metric's own constant; the two should be equal.
        cosines += data.fit(z, max_steps=1)["constant"] - cosines.mean()
        expected = expected_noise_constant(share, encoder.dim, len(train))
        sampled.append((f"noise + shared mean, {share:g}", "A-TRE: constant", cosines, expected, False))
    return sampled
