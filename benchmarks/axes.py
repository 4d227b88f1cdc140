"""The four axes: time of one core and memory of scoring cached embeddings, against the goals, and how both grow.

All seven tasks with default probes in a fresh process, on embeddings of noise: the cost of closed forms depends only on
the shape of their input. Seconds are CPU time of one core; peak memory covers the entire process, with rows and
libraries. About a quarter of an hour.
"""

from __future__ import annotations

import argparse
import importlib
import json
import resource
import sys
import time
from typing import Any

from _measure import in_fresh_process, line

DIMS = (384, 768)
"""Length of an embedding of Whisper's tiny and small sizes."""


def run(_: argparse.Namespace) -> None:
    mini = {dim: in_fresh_process(__file__, "mini", str(dim)) for dim in DIMS}
    for dim, cost in mini.items():
        line(f"axes of mini, {cost['clips']} clips, D = {dim}", cost["seconds"], "goal", 60)
        line(f"axes of mini, D = {dim}: peak memory", cost["memory"], "goal", 1.5, "GB")
        print("    " + ", ".join(f"{task} {seconds:.1f} s" for task, seconds in cost["tasks"].items()), flush=True)
    dim = DIMS[-1]
    full = in_fresh_process(__file__, "full", str(dim))
    mine, theirs = (1e3 * cost["seconds"] / cost["clips"] for cost in (full, mini[dim]))
    line(f"axes of full, {full['clips']} clips, D = {dim}: a clip", mine, "a clip of mini", theirs, "ms")
    line(f"axes of full, D = {dim}: peak memory", full["memory"], "goal", 1.5, "GB")
    print("    " + ", ".join(f"{task} {seconds:.1f} s" for task, seconds in full["tasks"].items()), flush=True)


def _measured(preset: str, dim: int) -> dict[str, Any]:
    """Seconds of all and of each task, clips scored, and peak memory in GB."""
    import numpy as np

    from audio_compositionality.dataset_builder.rendered import rendered_preset
    from audio_compositionality.metrics import list_metrics
    from audio_compositionality.tasks.base import Outputs
    from audio_compositionality.tasks.registry import load_benchmark

    for name in list_metrics():  # their imports take seconds, which do not count
        importlib.import_module(f"audio_compositionality.metrics.{name}")
    rows, seconds = {}, {}
    for recipe in ("factors", "transforms"):
        rows[recipe] = rendered_preset(preset, recipes=[recipe]).configuration(recipe).rows
    for task in load_benchmark("axes"):
        given = rows[task.info.recipe]
        count = sum(len(task.inputs(row, {}).clips) for row in given)
        embeddings = np.random.default_rng(0).normal(size=(count, dim)).astype(np.float32)
        started = time.process_time()
        task.score(given, Outputs(clips=embeddings), task.settings(given, {}), "cpu", False)
        seconds[task.info.name] = time.process_time() - started
    return {
        "seconds": sum(seconds.values()),
        "tasks": seconds,
        "clips": sum(map(len, rows.values())),
        "memory": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20,
    }


if __name__ == "__main__":
    print(json.dumps(_measured(sys.argv[1], int(sys.argv[2]))))
