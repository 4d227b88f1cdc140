"""A training step of the small models in the loop, against the bare forward and backward passes on ready inputs.

The bare passes run the towers on the same clips and texts, and nothing else: no loss, no optimizer. The loop
draws the rows and their texts, reads log-mels, computes the loss, cuts the gradient, takes the step and writes its log.
"""

from __future__ import annotations

import argparse
import os
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median
from typing import Any

from _measure import line

from audio_compositionality.support.files import CACHE_VARIABLE

STEPS, WARM_UP, PAIRS = 24, 4, 5
"""Steps of a run, warm-up steps before timing, and the number of turns of the loop and of the bare passes."""

BATCH_SIZE = 32
CHUNK = 8


def run(_: argparse.Namespace) -> None:
    with tempfile.TemporaryDirectory() as folder:
        before = os.environ.get(CACHE_VARIABLE)
        os.environ[CACHE_VARIABLE] = folder
        try:
            for init in ("tiny", "tiny-clap"):
                for kind in ("contrastive", "hard", "modular"):
                    _stage(init, kind, Path(folder))
                _stage(init, "hard", Path(folder), chunk=CHUNK)
        finally:
            os.environ.pop(CACHE_VARIABLE)
            if before is not None:
                os.environ[CACHE_VARIABLE] = before


def _stage(init: str, kind: str, folder: Path, chunk: int | None = None) -> None:
    from audio_compositionality.training.batches import Batches, BatchSettings, TextSettings
    from audio_compositionality.training.data import open_training, training_recipes
    from audio_compositionality.training.features import prepare_features
    from audio_compositionality.training.loop import Trainer
    from audio_compositionality.training.model import open_towers
    from audio_compositionality.training.settings import TrainingSettings

    recipe = training_recipes()[0]
    stages = f"{kind}:{STEPS}"
    settings = TrainingSettings(stages=stages, data=recipe, init=init, batch_size=BATCH_SIZE, chunk=chunk)
    towers = open_towers(init)
    data = open_training(recipe, train_rows=256, validation_rows=1).train
    features = prepare_features(data, towers.open_front_end())
    most = settings.modular_negatives if kind == "modular" else settings.negatives
    texts = TextSettings.of(kind, most, settings.positives)
    batches = Batches(data, features, towers.tokeniser, BatchSettings(texts=texts, batch_size=BATCH_SIZE))
    bare = _bare(towers, [batches.batch(step) for step in range(WARM_UP)])

    def ours() -> tuple[float, float]:
        clock: list[tuple[float, float]] = []
        with tempfile.TemporaryDirectory(dir=folder) as out:
            trainer = Trainer(
                towers, data, features, settings, Path(out),
                on_step=lambda step: clock.append((time.perf_counter(), time.process_time())),
            )  # fmt: skip
            trainer.run()
        (wall, cpu), (first_wall, first_cpu) = clock[-1], clock[WARM_UP - 1]
        return (wall - first_wall) / (STEPS - WARM_UP), (cpu - first_cpu) / (STEPS - WARM_UP)

    bare()
    # In turns: a machine whose speed drifts slows both of a pair.
    pairs = [(ours(), bare()) for _ in range(PAIRS)]
    times = [(median(a[clock] for a, _ in pairs), median(b[clock] for _, b in pairs)) for clock in range(2)]
    name = f"training step, {init}, {kind}, {BATCH_SIZE} rows" + (f" in chunks of {chunk}" if chunk else "")
    for clock, (step, passes) in zip(("", ", CPU time"), times, strict=True):
        line(name + clock, 1e3 * step, "forward and backward, ready inputs", 1e3 * passes, "ms")
    print("    ratios of the pairs, CPU time:", *(f"{b[1] / a[1]:.2f}" for a, b in sorted(pairs, key=_ratio)))


def _ratio(pair: tuple[tuple[float, float], tuple[float, float]]) -> float:
    return pair[1][1] / pair[0][1]


def _bare(towers: Any, batches: list[Any]) -> Callable[[], tuple[float, float]]:
    """Return a function that runs forward and backward on batches; it returns wall and CPU seconds per batch."""
    from audio_compositionality.training.batches import join_tokens

    texts = [join_tokens([one.captions, one.negatives, one.positives], towers.pad_token) for one in batches]

    def passes() -> tuple[float, float]:
        started, cpu = time.perf_counter(), time.process_time()
        for step in range(STEPS - WARM_UP):
            place = step % len(batches)
            (towers.embed_audio(batches[place].audio).sum() + towers.embed_text(texts[place]).sum()).backward()
            towers.zero_grad(set_to_none=True)
        count = STEPS - WARM_UP
        return (time.perf_counter() - started) / count, (time.process_time() - cpu) / count

    return passes
