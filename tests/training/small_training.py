"""Twelve rows and their features, which a tiny CLAP is trained on in tests of the loop, and a script for processes.

python small_training.py OUT CHANGES [KILLED_AT]: train with changed settings, as JSON, and kill this process behind a
step.
"""

from __future__ import annotations

import json
import os
import signal
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import torch

from audio_compositionality.training.batches import ArrayFeatures
from audio_compositionality.training.data import TrainingData, TrainingRow
from audio_compositionality.training.loop import Computing, Trainer, join_training
from audio_compositionality.training.model import open_towers
from audio_compositionality.training.settings import TrainingSettings

WORDS = ("bell", "organ", "reed", "bass")
STAGES = "contrastive:2,hard:3,modular:2"


def small_data() -> TrainingData:
    pairs = [(x, y) for x in WORDS for y in WORDS if x != y]
    rows = [
        TrainingRow(
            id=str(number),
            captions=(f"a {x} then a {y}", f"a {y} after a {x}"),
            parts=(f"a {x}", f"a {y}"),
            negatives=((f"a {y} then a {x}", "order"), (f"a {x} and a {y}", "relation")),
            expression=f"{x} + {y}",
            clip=number,
        )
        for number, (x, y) in enumerate(pairs)
    ]
    configuration: Any = SimpleNamespace(source="small", recipe="small", fingerprint="0" * 64, clip_ids=tuple("0" * 12))
    return TrainingData(configuration, "train", rows)


def small_features(init: str = "tiny") -> ArrayFeatures:
    shape = (501, 32) if init == "tiny-clap" else (251, 64)
    noise = np.random.default_rng(0).normal(-40, 15, (12, 1, *shape))
    return ArrayFeatures(noise.astype(np.float32))


def small_settings(**changes: Any) -> TrainingSettings:
    return TrainingSettings(**{"stages": STAGES, "data": "small", "batch_size": 4, "checkpoint_every": 2, **changes})


def small_trainer(out: Path, *, validate=None, on_step=None, **changes: Any) -> Trainer:
    settings = small_settings(**changes)
    towers = open_towers(settings.init, train=settings.train, seed=settings.seed)
    computing = Computing("cpu", settings.precision, join_training("cpu"))
    data, features = small_data(), small_features(settings.init)
    return Trainer(towers, data, features, settings, out, computing=computing, validate=validate, on_step=on_step)


def kill_at(step: int):
    def on_step(number: int) -> None:
        if number == step:
            os.kill(os.getpid(), signal.SIGKILL)

    return on_step


if __name__ == "__main__":
    torch.set_num_threads(1)
    out = Path(sys.argv[1])
    on_step = kill_at(int(sys.argv[3])) if len(sys.argv) > 3 else None
    trainer = small_trainer(out, on_step=on_step, **json.loads(sys.argv[2]))
    trainer.run()
    if trainer.processes.is_main:
        trainer.towers.save(out / "model")
