"""What is known of the scored samples beside their scores: the added sources, diversity, numbers of sources."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Row = Mapping[str, Any]
Source = Mapping[str, str]

TOTAL = "total"
"""Name of the sum over attributes among the entropies: H^quad of a quadruple, H of a scene."""


@dataclass(frozen=True)
class Samples:
    """The samples of a task: all quadruples of a_coat, the scenes of the split test of a_tre.

    Attributes:
        task: ``a_coat`` or ``a_tre``.
        rows: of each sample, as `Benchmark.rows` gives them.
        clusters: [n], equal for quadruples with the same added sources T; every scene is its own.
        entropy: by attribute and as ``total``, [n]: the entropy of the classes of a scene's sources, for a quadruple
            H(A) + H(C) + H(T), in units of the logarithm of the number of classes (arXiv 2603.13685, section 4.2).
        counts: number of sources, [n]: of ``A``, ``C``, ``T`` and as ``sources`` of all three, or ``sources`` of a
            scene.
        differing: for each quadruple the attributes whose classes in A and in C are not the same ones equally often,
            joined by " + ", or "none"; empty for scenes.
    """

    task: str
    rows: tuple[Row, ...]
    clusters: NDArray[np.int64]
    entropy: Mapping[str, Floats]
    counts: Mapping[str, NDArray[np.int64]]
    differing: tuple[str, ...]

    @property
    def ids(self) -> tuple[str, ...]:
        """Row id of each sample."""
        return tuple(row["id"] for row in self.rows)

    def at(self, index: Sequence[int]) -> Samples:
        """Some of the samples, in the order of the index."""
        chosen = np.asarray(index, np.int64)
        return Samples(
            task=self.task,
            rows=tuple(self.rows[k] for k in chosen),
            clusters=self.clusters[chosen],
            entropy={name: values[chosen] for name, values in self.entropy.items()},
            counts={name: values[chosen] for name, values in self.counts.items()},
            differing=tuple(self.differing[k] for k in chosen) if self.differing else (),
        )


def describe_samples(task: str, rows: Sequence[Row]) -> Samples:
    """Describe the scored samples among the rows of a task.

    Args:
        task: ``a_coat`` or ``a_tre``.
        rows: as `Benchmark.rows` gives them; of a_tre those of the split test are taken.
    """
    chosen = tuple(row for row in rows if task == "a_coat" or row["split"] == "test")
    parts = ("A", "C", "T") if task == "a_coat" else ("sources",)
    sets = {part: [_sources(row, part) for row in chosen] for part in parts}
    counts = {part: np.array([len(sources) for sources in sets[part]], np.int64) for part in parts}
    if task == "a_coat":
        counts["sources"] = counts["A"] + counts["C"] + counts["T"]
        clusters = _numbered([frozenset(tuple(sorted(source.items())) for source in added) for added in sets["T"]])
        differing = tuple(_differing(a, c) for a, c in zip(sets["A"], sets["C"], strict=True))
    else:
        clusters, differing = np.arange(len(chosen)), ()
    return Samples(task, chosen, clusters, _entropies(chosen, list(sets.values())), counts, differing)


def _sources(row: Row, part: str) -> Sequence[Source]:
    sources: Sequence[Source] = row["metadata"] if part == "sources" else row["metadata"][part]
    return sources


def _numbered(names: Sequence[object]) -> NDArray[np.int64]:
    numbers: dict[object, int] = {}
    return np.array([numbers.setdefault(name, len(numbers)) for name in names], np.int64)


def _differing(a: Sequence[Source], c: Sequence[Source]) -> str:
    names = [
        label.removesuffix("_label")
        for label in a[0]
        if Counter(source[label] for source in a) != Counter(source[label] for source in c)
    ]
    return " + ".join(names) or "none"


def _entropies(rows: Sequence[Row], sets: Sequence[Sequence[Sequence[Source]]]) -> dict[str, Floats]:
    """The entropies of the rows where they state them, else from the labels."""
    if not rows:
        return {TOTAL: np.zeros(0)}
    labels = list(sets[0][0][0])
    classes = {label: len({s[label] for part in sets for sources in part for s in sources}) for label in labels}
    found = {}
    for label in labels:
        name = label.removesuffix("_label")
        if all(name in (row.get("entropy") or {}) for row in rows):
            values = [float(row["entropy"][name]) for row in rows]
        else:
            values = [
                sum(_entropy([s[label] for s in part[k]], classes[label]) for part in sets) for k in range(len(rows))
            ]
        found[name] = np.array(values)
    return {TOTAL: np.sum(list(found.values()), axis=0), **found}


def _entropy(labels: Sequence[str], classes: int) -> float:
    shares = [count / len(labels) for count in Counter(labels).values()]
    return abs(sum(share * math.log(share) for share in shares)) / math.log(classes) if classes > 1 else 0.0
