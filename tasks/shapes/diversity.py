"""Facts of scenes beside their scores: the diversity and number of their sources, and differences."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Hashable, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from audio_compositionality.dataset_builder.data import Row

from ..base import Floats

Source = Mapping[str, str]
Scene = Sequence[Source]

TOTAL = "total"
"""Name of the sum over attributes among the entropies: H^quad of a quadruple, H of a scene."""


def entropies(rows: Sequence[Row], parts: Sequence[Sequence[Scene]]) -> dict[str, Floats]:
    """Entropy of the classes of the sources of each row, ``total`` first, then by attribute.

    It is the sum over the row's scenes, each in units of the logarithm of the number of classes (arXiv 2603.13685,
    section 4.2). Entropies that rows state are taken; others are computed from the labels.

    Args:
        rows: [n] rows.
        parts: for each part of a row (A, C and T of a quadruple; the scene) its scene in each row.

    Returns:
        float64 [n] by name.
    """
    if not rows:
        return {TOTAL: np.zeros(0)}
    labels = list(parts[0][0][0])
    classes = {label: len({s[label] for part in parts for scene in part for s in scene}) for label in labels}
    by_attribute = {}
    for label in labels:
        attribute = label.removesuffix("_label")
        if all(attribute in (row.get("entropy") or {}) for row in rows):
            values = [float(row["entropy"][attribute]) for row in rows]
        else:
            values = [
                sum(_entropy([source[label] for source in part[k]], classes[label]) for part in parts)
                for k in range(len(rows))
            ]
        by_attribute[attribute] = np.array(values)
    return {TOTAL: np.sum(list(by_attribute.values()), axis=0), **by_attribute}


def _entropy(labels: Sequence[str], classes: int) -> float:
    shares = [count / len(labels) for count in Counter(labels).values()]
    return abs(sum(share * math.log(share) for share in shares)) / math.log(classes) if classes > 1 else 0.0


def counts(scenes: Sequence[Scene]) -> NDArray[np.int64]:
    """Number of sources of each scene, [n]."""
    return np.array([len(scene) for scene in scenes], np.int64)


def same_scenes(scenes: Sequence[Scene]) -> NDArray[np.int64]:
    """A number for each scene, [n], equal for scenes with the same sources."""
    return numbered([frozenset(tuple(sorted(source.items())) for source in scene) for scene in scenes])


def numbered(names: Sequence[Hashable]) -> NDArray[np.int64]:
    """A number for each name, [n], equal for equal names, in the order in which they come first."""
    numbers: dict[Hashable, int] = {}
    return np.array([numbers.setdefault(name, len(numbers)) for name in names], np.int64)


def differing(first: Scene, second: Scene) -> str:
    """The attributes whose counts of classes differ between two scenes, joined by " + "; or "none"."""
    names = [
        label.removesuffix("_label")
        for label in first[0]
        if Counter(source[label] for source in first) != Counter(source[label] for source in second)
    ]
    return " + ".join(names) or "none"


def labels_for_people(scene: Scene) -> list[dict[str, str]]:
    """The sources of a scene with their attributes' names as people read them."""
    return [{label.removesuffix("_label"): value for label, value in source.items()} for source in scene]
