"""Scenes of labelled sources by chance, and the embeddings of an encoder that adds up what it hears."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

NAMES = ("timbre_label", "pitch_label", "rate_label", "amplitude_label")

Scene = list[dict[str, str]]


def make_scenes(n: int, classes: Sequence[int] = (3, 3, 3, 3), sources: int = 3, seed: int = 0) -> list[Scene]:
    rng = np.random.default_rng(seed)
    return [
        [
            {name: f"{name[0]}{rng.integers(count)}" for name, count in zip(NAMES, classes, strict=True)}
            for _ in range(rng.integers(1, sources + 1))
        ]
        for _ in range(n)
    ]


def additive(scenes: Sequence[Scene], dim: int = 24, seed: int = 0) -> np.ndarray:
    """Sums of one random vector for each label."""
    rng = np.random.default_rng(seed)
    vectors: dict = {}
    return np.array(
        [
            sum(vectors.setdefault(pair, rng.normal(size=dim)) for source in scene for pair in source.items())
            for scene in scenes
        ]
    )
