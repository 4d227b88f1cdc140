"""Results made up from random scores, for tests of what is done with results."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from audio_compositionality.dataset_builder import Benchmark, open_benchmark
from audio_compositionality.evaluator.results.result import Result, mean_interval, save_result

WriteResults = Callable[..., Path]

_CONTROLS = {
    "a_coat": {"degenerate": 0, "null": 0.1, "matched_null": 0.12, "adjusted": 0.2, "step_variance_1": 0.4},
    "a_tre": {"seed_std": 0.001, "constant": 0.8, "gain": 0.1, "ridge_r2": 0.3, "ridge_r2_null": 0.01},
}


@cache
def _preset(name: str) -> Benchmark:
    return open_benchmark(name)


def made_up_scores(encoder: int, n: int) -> np.ndarray:
    """Scores [n] within (-1, 1) of the encoder with this number, alike between encoders; the later, the higher."""
    shared = np.random.default_rng(0).normal(size=n)
    own = np.random.default_rng(encoder + 1).normal(size=n)
    return np.tanh(0.3 * shared + 0.3 * own + 0.15 * encoder - 0.2)


def write_made_up_result(
    folder: Path, benchmark: Benchmark, task: str, encoder_id: str, number: int, changes: Mapping[str, Any]
) -> Path:
    ids = [row["id"] for row in benchmark.rows(task) if task == "a_coat" or row["split"] == "test"]
    n = len(ids)
    scores = changes.get("scores", made_up_scores(number, n))
    columns = {"score": scores, "score_centred": np.tanh(scores - 0.1)}
    if task == "a_coat":
        points = np.random.default_rng(number).normal(size=(4, n))
        columns |= dict(zip(("ab_1", "ab_2", "cd_1", "cd_2"), points, strict=True))
    centred = {"a_coat": "centred", "a_tre": "a_tre_centred"}[task]
    controls = {
        **_CONTROLS[task],
        centred: float(columns["score_centred"].mean()),
        "top1": 0.2,
        "top1_chance": 1 / n,
        **({"step_variance_2": 0.2} if task == "a_coat" else {"collapsed": False}),
    }
    values: dict[str, Any] = {
        "task": task,
        "score": float(scores.mean()),
        "std": float(scores.std(ddof=1)),
        "n": n,
        "interval": mean_interval(scores),
        "controls": controls,
        "training": {},
        "settings": {} if task == "a_coat" else {"seeds": [0, 1, 2], "max_steps": 600},
        "encoder_id": encoder_id,
        "encoder_revision": "1",
        "weights_sha256": None,
        "output_dim": 8 * (number + 1),
        "sample_rate": 16_000,
        "parameters": None if "random" in encoder_id else 1_000_000 * (number + 1),
        "paradigm": "made up",
        "licence": None,
        "options": {"layer": None, "pooling": None, "precision": "float32", "compile": False},
        "front_end_version": 1,
        "precision_deviation": None,
        "skipped": [],
        "dataset": benchmark.source,
        "fingerprint": benchmark.fingerprint,
        "versions": {"python": "3.11"},
        "device": "cpu",
        "seconds": {"embed": 1.0},
        "date": "2026-01-01T00:00:00+00:00",
    }
    values |= {name: value for name, value in changes.items() if name != "scores"}
    return save_result(folder, Result(**values), ids, columns)


@pytest.fixture(scope="session")
def write_results() -> WriteResults:
    """`write_results(folder, encoder_ids, benchmark="mini", tasks=("a_coat", "a_tre"), **changes)` -> folder.

    A result of made-up scores for each encoder and task; `changes` replaces fields of `Result`, or the ``scores``.
    """

    def write(
        folder: Path,
        encoder_ids: Sequence[str],
        benchmark: Benchmark | str = "mini",
        tasks: Sequence[str] = ("a_coat", "a_tre"),
        **changes: Any,
    ) -> Path:
        opened = _preset(benchmark) if isinstance(benchmark, str) else benchmark
        for task in tasks:
            for number, encoder_id in enumerate(encoder_ids):
                write_made_up_result(folder, opened, task, encoder_id, number, changes)
        return folder

    return write
