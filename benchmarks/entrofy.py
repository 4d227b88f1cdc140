"""Selection of 10,000 of 150,000: groups of equal bins, against a greedy step over every candidate."""

from __future__ import annotations

import argparse
from typing import Any

import numpy as np
from _measure import line, shortest

from audio_compositionality.dataset_builder.scenes.selection import (
    entropy_bins,
    objective,
    sample_scenes,
    scene_entropy,
    select_balanced,
    uniform_targets,
)


def run(_: argparse.Namespace) -> None:
    bins = entropy_bins(scene_entropy(sample_scenes(np.random.default_rng(0), 150_000, 8, 4), 8))
    targets = uniform_targets(bins, 10_000)
    selections: dict[str, Any] = {}

    def grouped() -> None:
        selections["grouped"] = select_balanced(bins, 10_000, np.random.default_rng(0))

    def by_candidate() -> None:
        rng = np.random.default_rng(0)
        counts = [np.zeros(len(target), np.int64) for target in targets]
        left = np.zeros(len(bins))
        selected = []
        for _ in range(10_000):
            gains = left.copy()
            for column, target, count in zip(bins.T, targets, counts, strict=True):
                step = np.sqrt(np.minimum(target, count + 1)) - np.sqrt(np.minimum(target, count))
                gains += step[column]
            best = int(rng.choice(np.flatnonzero(gains >= gains.max() - 1e-12)))
            selected.append(best)
            left[best] = -np.inf
            for column, count in zip(bins.T, counts, strict=True):
                count[column[best]] += 1
        selections["by candidate"] = np.array(selected)

    ours = shortest(grouped)
    line("Entrofy 150,000 -> 10,000, grouped", ours, "greedy step over every candidate", shortest(by_candidate, 1))
    best = sum(float(np.sqrt(target).sum()) for target in targets)
    for name, selected in selections.items():
        print(f"    objective, {name}: {objective(bins[selected], targets):.4f} of at most {best:.4f}")
