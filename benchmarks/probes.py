"""Probes of the four axes: closed forms against the paper's, which are trained by gradient descent, at equal data.

Each probe reads pitch, rate and amplitude from log-mel statistics of the single sources of the preset mini, and
predicts the embedding of the next pitch. Embeddings, folds and the choice by validation are equal for all; the
paper's probes are fitted to features scaled as for closed forms, and to raw features. Seconds are CPU time of one core.
"""

from __future__ import annotations

import argparse
import itertools
import time
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from audio_compositionality.dataset_builder.rendered import rendered_preset
from audio_compositionality.tasks.shapes.designs import (
    CLASSES,
    FACTORS,
    FOLDS,
    contexts_of,
    dealt_folds,
    factor_levels,
    is_crossed,
)

Floats = NDArray[np.float64]

Fold = tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]
"""Training, validation and test rows."""


def run(_: argparse.Namespace) -> None:
    import torch

    torch.set_num_threads(1)
    rows, z = _single_sources()
    contexts = {factor: contexts_of(rows, factor) for factor in FACTORS}
    problems = [
        (factor, z, np.array(factor_levels(rows, factor))[:, None], _folds(dealt_folds(contexts[factor])))
        for factor in FACTORS
        if factor not in CLASSES
    ]
    problems.append(("z′", *_next_pitch(z, np.array(factor_levels(rows, "pitch")), contexts["pitch"])))
    probes = [("ridge", True), ("kernel", True), ("slp", True), ("mlp", True), ("slp", False), ("mlp", False)]
    seconds: dict[tuple[str, bool], dict[str, float]] = {}
    print(f"{len(z)} clips, {z.shape[1]} dimensions, {FOLDS} folds; seconds of a fit, R²")
    for probe in probes:
        times, scores = {}, {}
        for name, x, y, folds in problems:
            times[name], scores[name] = _fitted(*probe, x, y, folds)
        seconds[probe] = times
        told = "  ".join(f"{name} {times[name]:7.3f} s R² {scores[name]:6.3f}" for name in times)
        print(f"{probe[0]:<7} {'scaled' if probe[1] else 'raw':<7} {told}", flush=True)
    for trained in probes[2:]:
        for closed in probes[:2]:
            ratios = [seconds[trained][name] / seconds[closed][name] for name, *_ in problems]
            print(
                f"{trained[0]} {'scaled' if trained[1] else 'raw'} / {closed[0]}: a factor "
                f"{min(ratios[:-1]):.0f} to {max(ratios[:-1]):.0f}, z′ {ratios[-1]:.0f}"
            )


def _single_sources() -> tuple[list[Any], Floats]:
    """Return the rows of the single sources, and their embeddings."""
    from audio_compositionality.encoders.loading.registry import load_model
    from audio_compositionality.evaluator.run.embeddings import embed_configuration
    from audio_compositionality.evaluator.run.options import RunOptions

    configuration = rendered_preset("mini", recipes=["factors"], stars=1).configuration("factors")
    model: Any = load_model("log-mel-statistics")
    cache = embed_configuration(model, configuration, RunOptions(progress=False))
    rows = [row for row in configuration.rows if is_crossed(row)]
    places = {row["id"]: place for place, row in enumerate(configuration.rows)}
    return rows, np.asarray(cache.load().embeddings, np.float64)[[places[row["id"]] for row in rows]]


def _folds(fold: NDArray[np.int64]) -> list[Fold]:
    """Each fold is tested once, the next validates, the others train, as in the metrics."""
    parts = [(fold == k, fold == (k + 1) % FOLDS) for k in range(FOLDS)]
    return [(np.flatnonzero(~(a | b)), np.flatnonzero(b), np.flatnonzero(a)) for a, b in parts]


def _next_pitch(z: Floats, pitch: Floats, contexts: Sequence[Any]) -> tuple[Floats, Floats, list[Fold]]:
    """Return z with the one-hot level of each clip; the step to the next pitch; and one fold."""
    place = {(context, level): row for row, (context, level) in enumerate(zip(contexts, pitch, strict=True))}
    levels = np.unique(pitch)
    start, end = np.array(
        [
            (place[context, level], place[context, following])
            for context in dict.fromkeys(contexts)
            for level, following in itertools.pairwise(levels)
        ]
    ).T
    known = (pitch[start][:, None] == levels) * np.sqrt(z.var(axis=0).sum())
    folds = _folds(dealt_folds([contexts[row] for row in start]))
    return np.hstack([z[start], known]), z[end] - z[start], folds[:1]


def _fitted(name: str, scaled: bool, x: Floats, y: Floats, folds: Sequence[Fold]) -> tuple[float, float]:
    """Return the seconds of one core per fit (of one random state), and R² over all test rows."""
    from audio_compositionality.metrics.probing import fit_probe

    seconds = error = total = 0.0
    for train, validation, test in folds:
        started = time.process_time()
        answers, _ = fit_probe(name, (x[train], y[train]), (x[validation], y[validation]), x[test], scaled=scaled)
        seconds += time.process_time() - started
        error += float(np.square(answers - y[test]).sum())
        total += float(np.square(y[train].mean(axis=0) - y[test]).sum())
    return seconds / len(folds), 1 - error / total
