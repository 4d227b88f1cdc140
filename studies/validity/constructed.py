"""Constructed encoders: embeddings made from the metadata of scenes, so that their truth is known.

No audio is involved. A scene's embedding is a weighted sum of its sources' tokens, of components that should earn
nothing (energy, a shared mean), and of noise:

    z = signal · [(1 − saturation) Σ token + saturation · max token]
        + (counting · number of sources + loudness · level) e + shared_mean · m + noise · g

Each weight is a departure from the perfectly additive encoder, z = Σ token, whose A-COAT is 1. `theory` has their
expected scores.

>>> sources = [[[0, 0], [1, 2]], [[2, 1], [-1, -1]]]  # two scenes of two sources and of one, with two attributes
>>> scenes = Scenes(np.array(sources), np.array([[1.0, 0.5], [1.0, 0.0]]), num_classes=3)
>>> additive(dim=16).embed(scenes).shape
(2, 16)
>>> scenes.sizes.tolist()
[2, 1]
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from audio_compositionality.dataset_builder.rendered import rendered_preset
from audio_compositionality.metrics.a_coat import a_coat
from audio_compositionality.metrics.a_tre import a_tre
from audio_compositionality.support.errors import InputError

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

NONE = -1
"""Class of every attribute of a missing source."""

_VECTORS, _COMBINATIONS, _NOISE = 1, 2, 3  # independent random streams of one seed


@dataclass(frozen=True)
class Scenes:
    """Scenes, described by the classes of their sources.

    Attributes:
        classes: [n, sources, attributes], 0 to num_classes - 1, `NONE` where a scene has no such source.
        gains: linear gain of each source, [n, sources], 0 for no source.
        num_classes: K ≥ 2, of each attribute.
    """

    classes: Integers
    gains: Floats
    num_classes: int

    def __len__(self) -> int:
        return len(self.classes)

    def __getitem__(self, rows: Integers | slice) -> Scenes:
        return Scenes(self.classes[rows], self.gains[rows], self.num_classes)

    def __or__(self, other: Scenes) -> Scenes:
        """Return each scene with the sources of its counterpart added."""
        classes = np.concatenate([self.classes, other.classes], axis=1)
        return Scenes(classes, np.concatenate([self.gains, other.gains], axis=1), self.num_classes)

    @property
    def present(self) -> NDArray[np.bool_]:
        """Which sources are present, [n, sources]."""
        return np.asarray((self.classes != NONE).all(axis=2))

    @property
    def sizes(self) -> Integers:
        """Number of sources, [n]."""
        return np.asarray(self.present.sum(axis=1))

    @property
    def levels(self) -> Floats:
        """Level in dB, [n]: 10 log10 of the sum of the sources' squared gains."""
        return np.asarray(10 * np.log10((self.gains**2).sum(axis=1)))

    @property
    def counts(self) -> Floats:
        """Number of sources of each class, [n, attributes, K]."""
        has_class = self.classes[..., None] == np.arange(self.num_classes)
        return np.asarray(has_class.sum(axis=1), np.float64)

    @property
    def codes(self) -> Integers:
        """One number for each source's combination of classes, [n, sources]; `NONE` for no source."""
        radix = self.num_classes ** np.arange(self.classes.shape[2])[::-1]
        return np.where(self.present, self.classes @ radix, NONE)


@dataclass(frozen=True)
class Quadruples:
    """Scenes A and C and the added sources T, n of each; B = A ∪ T, D = C ∪ T."""

    a: Scenes
    c: Scenes
    t: Scenes

    def __len__(self) -> int:
        return len(self.t)

    def __getitem__(self, rows: Integers | slice) -> Quadruples:
        return Quadruples(self.a[rows], self.c[rows], self.t[rows])

    @property
    def matching(self) -> dict[str, Any]:
        """Inputs of A-COAT's matched null: number and level of the added sources."""
        return {"t_size": self.t.sizes, "t_level": self.t.levels}

    @property
    def disjoint(self) -> NDArray[np.bool_]:
        """Whether A and C have no source in common, [n]."""
        a, c = self.a.codes[:, :, None], self.c.codes[:, None, :]
        return np.asarray(~((a == c) & (a != NONE)).any(axis=(1, 2)))


def read_scenes(rows: Sequence[Mapping[str, Any]]) -> Scenes:
    """Return the scenes of the rows of a_tre; labels become classes in the order of their names.

    Args:
        rows: with ``metadata`` and ``gains`` of their sources; gains that a row does not state are 1.
    """
    return _read([row["metadata"] for row in rows], [row.get("gains") for row in rows])


def read_quadruples(rows: Sequence[Mapping[str, Any]]) -> Quadruples:
    """Return the quadruples of the rows of a_coat; see `read_scenes`."""
    sets = [row["metadata"][name] for name in "ACT" for row in rows]
    gains = [(row.get("gains") or {}).get(name) for name in "ACT" for row in rows]
    scenes, n = _read(sets, gains), len(rows)
    return Quadruples(*(scenes[start : start + n] for start in (0, n, 2 * n)))


def _read(sets: Sequence[Sequence[Mapping[str, str]]], gains: Sequence[Sequence[float] | None]) -> Scenes:
    attributes = sorted(sets[0][0])
    labels = [sorted({source[name] for sources in sets for source in sources}) for name in attributes]
    numbers = [{label: number for number, label in enumerate(names)} for names in labels]
    shape = len(sets), max(map(len, sets))
    classes, loudness = np.full((*shape, len(attributes)), NONE, np.int64), np.zeros(shape)
    for row, (sources, stated) in enumerate(zip(sets, gains, strict=True)):
        loudness[row, : len(sources)] = 1.0 if stated is None else stated
        for place, source in enumerate(sources):
            classes[row, place] = [numbers[k][source[name]] for k, name in enumerate(attributes)]
    return Scenes(classes, loudness, max(map(len, labels)))


@dataclass(frozen=True)
class ConstructedEncoder:
    """An encoder with known embeddings: see the formula at the head of the module.

    The token of a source is sqrt(1 - binding) · (the sum of its classes' vectors) + sqrt(binding) · (a vector of its
    own for each combination of classes). The vectors of an attribute's K classes are the corners of a regular simplex
    about the origin; simplices of different attributes, e and m are orthogonal, and all are randomly rotated: the class
    part of a token has length 1 and adds no direction common to all scenes. A combination's vector is N(0, I / dim).
    The noise g is N(0, I / dim), new for every clip: its squared length is 1 on average.

    Attributes:
        signal: weight of the tokens of the scene, ≥ 0.
        binding: 0, tokens are sums over attributes; 1, one vector per combination, so that other combinations do not
            help.
        saturation: 0, tokens are added; 1, their element-wise maximum is taken.
        counting: weight of the number of sources, along one direction, ≥ 0.
        loudness: weight of the level in units of 10 dB, along the same direction, ≥ 0.
        shared_mean: length of a vector added to every embedding, ≥ 0.
        noise: root mean square length of the noise, ≥ 0.
        dim: number of dimensions, at least attributes · K + 2.
        seed: seed of all random choices.

    Raises:
        InputError: a weight out of its range.
    """

    signal: float = 1.0
    binding: float = 0.0
    saturation: float = 0.0
    counting: float = 0.0
    loudness: float = 0.0
    shared_mean: float = 0.0
    noise: float = 0.0
    dim: int = 128
    seed: int = 0

    def __post_init__(self) -> None:
        for field in fields(self):
            value = getattr(self, field.name)
            high = 1.0 if field.name in ("binding", "saturation") else math.inf
            if not 0 <= value <= high or not math.isfinite(value):
                rule = "from 0 to 1" if high == 1 else "finite and at least 0"
                raise InputError(f"{field.name} is {value}; it must be {rule}")

    def embed(self, scenes: Scenes, clip: int = 0) -> Floats:
        """Embed scenes: float64 [n, dim].

        Args:
            scenes: the scenes.
            clip: another number gives other clips of the same scenes, with noise of their own.

        Raises:
            InputError: too few dimensions for the number of classes.
        """
        vectors, energy, shared = self._vectors(scenes)
        embeddings = self.shared_mean * shared + np.zeros((len(scenes), self.dim))
        if self.signal:
            embeddings += self.signal * self._mixture(scenes, vectors)
        if self.counting or self.loudness:
            amounts = self.counting * scenes.sizes + self.loudness * scenes.levels / 10
            embeddings += amounts[:, None] * energy
        if self.noise:
            drawn = self._generator(_NOISE, clip).standard_normal((len(scenes), self.dim))
            embeddings += self.noise / math.sqrt(self.dim) * drawn
        return embeddings

    def embed_quadruples(self, quadruples: Quadruples) -> tuple[Floats, Floats, Floats, Floats]:
        """Embed A, B, C and D of quadruples: float64 [n, dim] each."""
        q = quadruples
        return self.embed(q.a, 1), self.embed(q.a | q.t, 2), self.embed(q.c, 3), self.embed(q.c | q.t, 4)

    def _generator(self, *stream: int) -> np.random.Generator:
        return np.random.default_rng([self.seed, *stream])

    def _vectors(self, scenes: Scenes) -> tuple[Floats, Floats, Floats]:
        """Vectors of the classes [attributes, K, dim], of energy [dim] and of the shared mean [dim]."""
        attributes, number = scenes.classes.shape[2], scenes.num_classes
        needed = attributes * number + 2
        if self.dim < needed:
            raise InputError(
                f"dim is {self.dim}; {attributes} attributes of {number} classes, energy and the shared mean need at "
                f"least {needed} dimensions"
            )
        drawn = self._generator(_VECTORS).standard_normal((self.dim, needed))
        axes = np.linalg.qr(drawn)[0].T
        vectors = axes[:-2].reshape(attributes, number, self.dim)
        # Orthonormal vectors less their mean are a simplex of squared radius 1 - 1/K.
        vectors = (vectors - vectors.mean(axis=1, keepdims=True)) / math.sqrt(attributes * (1 - 1 / number))
        return vectors, axes[-2], axes[-1]

    def _mixture(self, scenes: Scenes, vectors: Floats) -> Floats:
        """Tokens of the sources, added or their maximum taken: [n, dim]."""
        total = np.zeros((len(scenes), self.dim))
        largest = np.full_like(total, -np.inf)
        bound_vectors = self._combination_vectors(scenes) if self.binding else {}
        # Source by source: n × sources × dim numbers at once would be most of the memory.
        for place in range(scenes.classes.shape[1]):
            rows = np.flatnonzero(scenes.present[:, place])
            classes = scenes.classes[rows, place]
            tokens = math.sqrt(1 - self.binding) * vectors[np.arange(len(vectors)), classes].sum(axis=1)
            if bound_vectors:
                codes = scenes.codes[rows, place].tolist()
                tokens += math.sqrt(self.binding) * np.stack([bound_vectors[code] for code in codes])
            total[rows] += tokens
            largest[rows] = np.maximum(largest[rows], tokens)
        return (1 - self.saturation) * total + self.saturation * largest if self.saturation else total

    def _combination_vectors(self, scenes: Scenes) -> dict[int, Floats]:
        codes = np.unique(scenes.codes[scenes.present]).tolist()
        scale = 1 / math.sqrt(self.dim)
        return {code: scale * self._generator(_COMBINATIONS, code).standard_normal(self.dim) for code in codes}


def additive(**weights: Any) -> ConstructedEncoder:
    """Return the perfectly additive encoder; ``weights`` are fields of `ConstructedEncoder`, here and below."""
    return ConstructedEncoder(**weights)


def noisy(share: float, **weights: Any) -> ConstructedEncoder:
    """Return an additive encoder with noise: ``share`` of the mean squared length of a one-source scene is signal."""
    return ConstructedEncoder(signal=math.sqrt(share), noise=math.sqrt(1 - share), **weights)


def anisotropic(share: float, encoder: ConstructedEncoder) -> ConstructedEncoder:
    """Return ``encoder`` scaled by sqrt(1 - share), plus a shared mean of length sqrt(share)."""
    weight = math.sqrt(1 - share)
    return replace(
        encoder,
        signal=weight * encoder.signal,
        counting=weight * encoder.counting,
        loudness=weight * encoder.loudness,
        noise=weight * encoder.noise,
        shared_mean=math.sqrt(share),
    )


def bound(share: float, **weights: Any) -> ConstructedEncoder:
    """Return an encoder that is additive over sources; its attributes are bound.

    ``share`` of a token's mean squared length belongs to its combination of attributes.
    """
    return ConstructedEncoder(binding=share, **weights)


def saturating(share: float, **weights: Any) -> ConstructedEncoder:
    """Return an encoder that mixes the sum of tokens (share 0) with their element-wise maximum (share 1)."""
    return ConstructedEncoder(saturation=share, **weights)


def counting(share: float, **weights: Any) -> ConstructedEncoder:
    """Return an encoder of the number of sources alone, with weight sqrt(share), plus noise of weight sqrt(1 -
    share)."""
    return ConstructedEncoder(signal=0, counting=math.sqrt(share), noise=math.sqrt(1 - share), **weights)


def loud(share: float, **weights: Any) -> ConstructedEncoder:
    """Return an encoder of the level alone, with weight sqrt(share) per 10 dB, plus noise of weight sqrt(1 - share)."""
    return ConstructedEncoder(signal=0, loudness=math.sqrt(share), noise=math.sqrt(1 - share), **weights)


def constant(**weights: Any) -> ConstructedEncoder:
    """Return an encoder with the same embedding for everything."""
    return ConstructedEncoder(signal=0, shared_mean=1, **weights)


def permuted(groups: Sequence[str] | NDArray[Any], share: float, seed: int) -> Integers:
    """Return row numbers [n] with a random share of the rows exchanged within their groups.

    No drawn row stays in place, unless it is the only drawn row of its group.

    Args:
        groups: [n], such as the split of each scene.
        share: 0 to 1.
        seed: of the choice.
    """
    rng, names = np.random.default_rng(seed), np.asarray(groups)
    order = np.arange(len(names))
    for name in np.unique(names):
        members = np.flatnonzero(names == name)
        moved = rng.permutation(members)[: round(share * len(members))]
        order[moved] = np.roll(moved, 1)
    return order


Score = tuple[str, str]
"""Task, and name of a score in the result of the task's metric."""

A_COAT = ("a_coat", "adjusted", "centred", "top1")
A_TRE = ("a_tre", "constant", "gain", "a_tre_centred", "ridge_centred", "ridge_r2", "top1", "collapsed")

SCORES: tuple[Score, ...] = (*(("a_coat", name) for name in A_COAT), *(("a_tre", name) for name in A_TRE))
"""The scores under study."""

BASE_SHARE = 0.2
"""Share of signal of the noisy encoder whose scores should stay: none of them is near its ceiling there."""


@dataclass(frozen=True)
class Plan:
    """The amount of measurement.

    Attributes:
        quadruples, train, test: samples, drawn as the preset mini is; its 64 scenes validate.
        candidates: quadruples and scenes for the selection.
        max_steps: training steps of A-TRE.
        every: step between the measured levels of a dial, whose ends are always measured.
        replicates: averaged encoders (seeds) of energy alone.
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
        """Return embeddings of A, B, C and D, with a share of the steps D - C exchanged."""
        a, b, c, d = encoder.embed_quadruples(self.quadruples)
        order = permuted(np.zeros(len(a)), share, self.seed)
        return a, b, c, c + (d - c)[order]

    def a_coat(self, encoder: ConstructedEncoder, share: float = 0) -> dict[str, Any]:
        """Return A-COAT of an encoder."""
        return a_coat(*self.steps(encoder, share), **self.quadruples.matching, return_scores=True)

    def a_tre(self, encoder: ConstructedEncoder, share: float = 0) -> dict[str, Any]:
        """Return A-TRE of an encoder, with a share of the scenes' labels exchanged within each split."""
        key = (encoder, share)
        if key not in self._fits:
            scenes = self.scenes[permuted(self.splits, share, self.seed)]
            self._fits[key] = self.fit(encoder.embed(scenes))
        return self._fits[key]

    def fit(self, embeddings: Floats, *, fit_seed: int = 0, max_steps: int | None = None) -> dict[str, Any]:
        """Return A-TRE of embeddings of the scenes."""
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
