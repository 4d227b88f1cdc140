"""What is written when all stages are done: the model, its card, what came of the training."""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from dataclasses import replace
from itertools import groupby
from pathlib import Path
from statistics import fmean
from typing import Any

from audio_compositionality.encoders.loading.records import RECORD
from audio_compositionality.support.checked_files import digests_of
from audio_compositionality.support.files import partial_path, write_whole

from .card import CARD, model_card
from .errors import TrainingError
from .log import EVALUATIONS, STEPS, rows_of
from .loop import BEST, Trainer
from .record import Record, check_model, read_record, write_record
from .settings import TrainingSettings

POINTS = 200
"""Losses in the record, at most: each the mean of some steps; the log has all."""

_LAST = 20
"""Steps whose mean is a stage's last loss."""


def finish(trainer: Trainer, data_arguments: str | None = "") -> None:
    """Write the model of the last step, the record and the cards, in the main process.

    Args:
        trainer: behind its last step.
        data_arguments: see `train_model`; empty where the settings say what the data are.
    """
    trainer.processes.wait()
    if trainer.processes.is_main:
        out, settings, best = trainer.out, trainer.settings, trainer.out / BEST
        # Before the record says that all is done: a damaged one would be shown no more.
        best_files = _checked_files(best) if best.is_dir() else {}
        files = _write_model(trainer)
        outcome = {**_outcome(trainer), **_where(trainer), "data_arguments": data_arguments}
        record = Record(settings.values(), trainer.facts, True, outcome, files)
        write_record(out, record, settings)
        values = record.values()
        dim, is_clap = int(trainer.embedding_dim), trainer.towers.model.config.model_type == "clap"
        for folder in (out, best):
            if folder.is_dir():
                title = folder.resolve().name if folder is out else f"{out.resolve().name}/{BEST}"
                write_whole(folder / CARD, model_card(title, settings, values, dim, is_clap=is_clap))
        if best.is_dir():
            # A folder with weights says by itself what they were trained on; its digests are those of its own files.
            write_whole(best / RECORD, replace(record, files=best_files).to_json())
    trainer.processes.wait()


def _checked_files(folder: Path) -> dict[str, str]:
    """The digests in the record of a model, whose files they are those of.

    Raises:
        TrainingError: a file was changed, or it or the record is missing.
    """
    values = read_record(folder)
    if values is None:
        raise TrainingError(
            f"{folder / RECORD} is not there, and nothing else has the digests of the model beside it: remove "
            f"{folder}, and the training is finished without it"
        )
    check_model(folder, values)
    return dict(values["files"])


def _write_model(trainer: Trainer) -> dict[str, str]:
    """Write the files of the model beside those of the run, each in one go; returns their digests."""
    partial = partial_path(trainer.out / "model")
    shutil.rmtree(partial, ignore_errors=True)
    try:
        trainer.towers.save(partial)
        files = digests_of(partial, partial.iterdir())
        for path in sorted(partial.iterdir()):
            path.replace(trainer.out / path.name)
        return files
    finally:
        shutil.rmtree(partial, ignore_errors=True)


def _where(trainer: Trainer) -> dict[str, Any]:
    import torch

    device = trainer.computing.device
    name = torch.cuda.get_device_name(device) if device.type == "cuda" else str(device)
    count = trainer.processes.count
    return {
        "device": name if count == 1 else f"{count} × {name}",
        "processes": count,
        "precision": {"no": "float32"}.get(trainer.computing.precision, trainer.computing.precision),
    }


def _outcome(trainer: Trainer) -> dict[str, Any]:
    assert trainer.log is not None
    settings, position, tables = trainer.settings, trainer.position, trainer.log.tables
    rows = rows_of(tables[STEPS])
    losses = [(int(row["step"]), float(row["loss"])) for row in rows]
    each = max(-(-len(losses) // POINTS), 1)
    thinned = [losses[start : start + each] for start in range(0, len(losses), each)]
    return {
        "steps": position.total,
        "seconds": position.seconds,
        "stages": _stages(rows, settings),
        "best": None if position.best is None else {"score": position.best, "step": position.best_step},
        "evaluations": _evaluations(rows_of(tables[EVALUATIONS])),
        "losses": {
            "step": [part[-1][0] for part in thinned],
            "loss": [round(fmean(loss for _, loss in part), 6) for part in thinned],
        },
    }


def _stages(rows: list[dict[str, str]], settings: TrainingSettings) -> list[dict[str, Any]]:
    """Of each stage what it was and its last loss. A stage begins where its steps are counted from 1 again."""
    runs: list[list[Mapping[str, str]]] = []
    for row in rows:
        if row["stage_step"] == "1":
            runs.append([])
        runs[-1].append(row)
    return [
        {
            "kind": stage.kind,
            "steps": len(steps),
            "learning_rate": stage.learning_rate,
            "loss": fmean(float(row["loss"]) for row in steps[-_LAST:]),
        }
        for stage, steps in zip(settings.stages, runs, strict=True)
    ]


def _evaluations(rows: list[dict[str, str]]) -> list[dict[str, Any]]:
    return [
        {"step": int(step), "scores": {row["name"]: float(row["value"]) for row in of_step}}
        for step, of_step in groupby(rows, key=lambda row: row["step"])
    ]
