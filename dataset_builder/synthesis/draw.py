"""The quadruples and scenes of a configuration: candidates, balanced selection, splits, onsets."""

from __future__ import annotations

import enum
from collections.abc import Sequence
from typing import Any

import numpy as np

from .config import BenchmarkConfig
from .scenes import (ATTRIBUTES, EMPTY, Codes, Quadruple, Scene, Source, sample_quadruples, sample_scenes)
from .selection import entropy_bins, quadruple_entropy, scene_entropy, select_balanced, split_balanced


class _Stream(enum.IntEnum):
    """Independent random streams of one seed, so that a change in one use leaves the others alone."""

    QUADRUPLES = 1
    QUADRUPLE_SELECTION = 2
    QUADRUPLE_ONSETS = 3
    SCENES = 4
    SCENE_SELECTION = 5
    SCENE_ONSETS = 6


def _generator(config: BenchmarkConfig, stream: _Stream) -> np.random.Generator:
    return np.random.Generator(np.random.PCG64(np.random.SeedSequence([config.seed, stream])))


def draw_quadruples(config: BenchmarkConfig) -> list[Quadruple]:
    """The quadruples of a configuration: same configuration, same quadruples in the same order."""
    candidates = sample_quadruples(
        _generator(config, _Stream.QUADRUPLES),
        config.quadruple_candidates,
        config.num_classes,
        config.max_sources,
    )
    rng = _generator(config, _Stream.QUADRUPLE_SELECTION)
    bins = entropy_bins(quadruple_entropy(candidates, config.num_classes))
    chosen = candidates[rng.permutation(select_balanced(bins, config.quadruples, rng))]
    rng = _generator(config, _Stream.QUADRUPLE_ONSETS)
    quadruples = []
    for index, sets in enumerate(chosen):
        a, c, t = (_sources(codes, config) for codes in sets)
        onsets = [_onsets(sources, config, rng) for sources in (a, c, t)]
        quadruples.append(Quadruple(f"a_coat-test-{index:05d}", a, c, t, *onsets))
    return quadruples


def draw_scenes(config: BenchmarkConfig) -> list[Scene]:
    """The scenes of a configuration, train, validation, test in this order; no set of sources occurs twice."""
    candidates = sample_scenes(
        _generator(config, _Stream.SCENES), config.scene_candidates, config.num_classes, config.max_sources
    )
    rng = _generator(config, _Stream.SCENE_SELECTION)
    bins = entropy_bins(scene_entropy(candidates, config.num_classes))
    chosen = select_balanced(bins, config.scenes, rng)
    parts = split_balanced(bins[chosen], list(config.split_sizes.values()), rng)
    rng = _generator(config, _Stream.SCENE_ONSETS)
    scenes = []
    for split, part in zip(config.split_sizes, parts, strict=True):
        for index, codes in enumerate(candidates[chosen[part]]):
            sources = _sources(codes, config)
            scenes.append(Scene(f"a_tre-{split}-{index:05d}", split, sources, _onsets(sources, config, rng)))
    return scenes


def _sources(codes: Codes, config: BenchmarkConfig) -> tuple[Source, ...]:
    return tuple(Source.from_code(int(code), config.num_classes) for code in codes if code != EMPTY)


def _onsets(sources: Sequence[Source], config: BenchmarkConfig, rng: np.random.Generator) -> tuple[int, ...]:
    """Samples before each source's first tone, uniform within its period."""
    draws = rng.random(len(sources))
    if config.onset == "locked":
        return (0,) * len(sources)
    return tuple(int(u * config.periods[source.rate]) for u, source in zip(draws, sources, strict=True))


def scene_row(scene: Scene, config: BenchmarkConfig) -> dict[str, Any]:
    """The row of a scene, without its audio: id, metadata, onsets, entropy."""
    entropy = scene_entropy(_codes([scene.sources], config), config.num_classes)[0]
    return {
        "id": scene.id,
        "metadata": _labels(scene.sources, config),
        "onsets": list(scene.onsets),
        "entropy": dict(zip(ATTRIBUTES, map(float, entropy), strict=True)),
    }


def quadruple_row(quadruple: Quadruple, config: BenchmarkConfig) -> dict[str, Any]:
    """The row of a quadruple, without its audio: id, metadata, onsets and entropy H(A) + H(C) + H(T)."""
    q = quadruple
    entropy = quadruple_entropy(_codes([q.a, q.c, q.t], config)[None], config.num_classes)[0]
    return {
        "id": q.id,
        "metadata": {name: _labels(sources, config) for name, sources in (("A", q.a), ("C", q.c), ("T", q.t))},
        "onsets": {"A": list(q.a_onsets), "C": list(q.c_onsets), "T": list(q.t_onsets)},
        "entropy": dict(zip(ATTRIBUTES, map(float, entropy), strict=True)),
    }


def _codes(sets: Sequence[Sequence[Source]], config: BenchmarkConfig) -> Codes:
    codes = np.full((len(sets), config.max_sources), EMPTY, np.int32)
    for row, sources in zip(codes, sets, strict=True):
        row[: len(sources)] = [source.code(config.num_classes) for source in sources]
    return codes


def _labels(sources: Sequence[Source], config: BenchmarkConfig) -> list[dict[str, str]]:
    return [
        {f"{attribute}_label": config.labels[attribute][getattr(source, attribute)] for attribute in ATTRIBUTES}
        for source in sources
    ]
