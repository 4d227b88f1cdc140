"""The report of 30 models at full size, made in a fresh process on one core from made-up scores."""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
from _measure import line

_REPORT = """
import resource, sys, time

started = time.perf_counter()
from audio_compositionality.evaluator.report.page import write_report

path = write_report([sys.argv[1]], sys.argv[2], progress=False)
peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
print(time.perf_counter() - started, peak, path.stat().st_size / 1e6)
"""


def run(_: argparse.Namespace) -> None:
    with tempfile.TemporaryDirectory() as folder:
        results, out = Path(folder) / "results", Path(folder) / "report.html"
        _make_up_results(results, 30)
        output = subprocess.run(
            [sys.executable, "-c", _REPORT, results, out],
            check=True,
            stdout=subprocess.PIPE,
            text=True,
            env={**os.environ, "OMP_NUM_THREADS": "1", "NUMBA_NUM_THREADS": "1"},
        ).stdout
    seconds, peak, size = map(float, output.split())
    line("report of 30 models, preset full", seconds, "goal", 30)
    line("report: peak memory", peak, "goal", 1, "GB")
    line("report: size of the page", size, "goal", 5, "MB")


def _make_up_results(folder: Path, models: int) -> None:
    from audio_compositionality.dataset_builder.open_data import open_data
    from audio_compositionality.encoders.base import ModelCard
    from audio_compositionality.evaluator.results.result import SampleTable, save_result
    from audio_compositionality.evaluator.run.evaluate import make_result
    from audio_compositionality.evaluator.run.opened import open_task
    from audio_compositionality.tasks.base import Scores
    from audio_compositionality.tasks.registry import default_tasks

    data = open_data("full")
    for task in default_tasks(data.recipes):
        opened = open_task(task, data)
        described = opened.samples
        ids = described.ids
        drawn = {name for drawing in task.drawings for name in drawing.columns}
        for number in range(models):
            rng = np.random.default_rng(number)
            columns = {name: rng.normal(size=len(ids)) for name in sorted(drawn)}
            measures: dict[str, Any] = {m.name: 1 if m.digits == 0 else 0.3 for m in task.info.measures}
            for measure in task.info.sampled:
                if measure.column is not None:
                    columns[measure.column] = np.tanh(rng.normal(number / models, 0.4, len(ids)))
                    measures[measure.name] = float(columns[measure.column].mean())
            name = f"made-up/model-{number}"
            card = ModelCard(name if number % 5 else f"untrained:{name}", "1", sample_rate=16_000, output_dim=768)
            samples = SampleTable(ids, columns)
            scores = Scores(measures, ids, columns)
            result = make_result(opened, scores, described, card, samples, device="cpu", seconds={})
            save_result(folder, result, samples)
