"""A-COAT across instances: time of one core and memory of scoring 96 blocks of 8 classes from the cache.

In a fresh process, on embeddings of noise of 768 dimensions: by the task, and by `evaluate`, which reads them from a
filled cache and computes intervals too. Rows are made-up recordings; enough of them share no condition, so that the
fitted map, a control, can be fitted for every block; nothing is rendered. Seconds are CPU time.
"""

from __future__ import annotations

import argparse
import importlib
import json
import resource
import tempfile
import time
from pathlib import Path
from typing import Any

from _measure import in_fresh_process, line

TASK = "a_coat_instances"

BLOCKS, CLASSES, CONTEXT, DIM = 96, 8, 2, 768

GOAL = 5.0


def run(_: argparse.Namespace) -> None:
    cost = in_fresh_process(__file__)
    what = f"{BLOCKS} blocks, {cost['clips']} clips, D = {DIM}"
    line(f"{what}: score", cost["score"], "goal", GOAL)
    line(f"{what}: evaluate from the cache", cost["evaluate"], "goal", GOAL)
    print(f"    peak memory {cost['memory']:.2f} GB, top-1 {cost['top1']:.3f}, fitted {cost['fitted']:.3f}")


def _measured() -> dict[str, Any]:
    """Seconds of the task's `score` and of `evaluate`, clips scored, two scores, and peak memory in GB."""
    import numpy as np

    from audio_compositionality.dataset_builder.recipes import load_recipe
    from audio_compositionality.dataset_builder.rendered import RenderedData
    from audio_compositionality.encoders.base import Model, ModelCard
    from audio_compositionality.evaluator.run.cache import EmbeddingShard
    from audio_compositionality.evaluator.run.embeddings import open_cache
    from audio_compositionality.evaluator.run.evaluate import evaluate
    from audio_compositionality.evaluator.run.options import RunOptions
    from audio_compositionality.tasks.base import Outputs
    from audio_compositionality.tasks.registry import load_task
    from studies.validity.instances_encoders import ImaginedRecordings

    # The imports of the metric take seconds, which do not count.
    importlib.import_module(f"audio_compositionality.metrics.{TASK}")
    task = load_task(TASK)
    changes = {"blocks": BLOCKS, "classes": CLASSES, "context_sources": CONTEXT, "sounds": ImaginedRecordings()}
    settings = load_recipe(task.info.recipe).presets["full"].changed(**changes)

    class Stored(Model):
        """A model whose embeddings are all in the cache."""

        card = ModelCard("noise", "1", settings.sample_rate, DIM)

        def embed(self, *_: Any) -> Any:
            raise AssertionError("a clip is not in the cache")

    data = RenderedData("imagined recordings", {task.info.recipe: settings})
    configuration = data.configuration(task.info.recipe)
    noise = np.random.default_rng(0).standard_normal((len(configuration.clip_ids), DIM), np.float32)

    started = time.process_time()
    scores = task.score(configuration.rows, Outputs(clips=noise), task.settings(configuration.rows, {}), "cpu", False)
    seconds = time.process_time() - started

    with tempfile.TemporaryDirectory() as folder:
        model = Stored()
        options = RunOptions(cache=Path(folder), progress=False)
        cache = open_cache(model, configuration, options)
        for shard in range(cache.num_shards):
            cache.write(shard, EmbeddingShard(noise[list(cache.numbers(shard))], {}))
        started = time.process_time()
        (result,) = evaluate(model, data, tasks=[TASK], options=options)
        evaluated = time.process_time() - started
    assert result.measures["top1"] == scores.measures["top1"]
    return {
        "score": seconds,
        "evaluate": evaluated,
        "clips": len(noise),
        "top1": scores.measures["top1"],
        "fitted": scores.measures["fitted_top1"],
        "memory": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20,
    }


if __name__ == "__main__":
    print(json.dumps(_measured()))
