"""A training from its settings to a folder with a model: data, features, the loop, the final files."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable, Mapping
from dataclasses import replace
from itertools import groupby
from pathlib import Path
from statistics import fmean
from typing import Any

from audio_compositionality.dataset_builder.data import Data
from audio_compositionality.encoders.loading.beside_weights import RECORD
from audio_compositionality.support.files import write_whole

from .batches import FeatureSource
from .data import TrainingData, TrainingSplits, open_source, open_training, training_recipes
from .features import prepare_features
from .log import EVALUATIONS, STEPS, check_programs, log_rows
from .loop import BEST, Computing, Trainer, TrainingRun, Validate, join_training, saved_beside
from .model import TwoTowers, open_towers
from .run_folder import CARD, TrainingRecord, check_model_files, check_out, model_card, read_record, write_record
from .settings import ALIGN, TrainingError, TrainingSettings
from .state import Position

POINTS = 200
"""Most losses in the record, each the mean of some steps; the log has all."""

_LAST = 20
"""Steps whose mean is a stage's last loss."""


def finish(trainer: Trainer, data_arguments: str | None = "") -> None:
    """Write the model of the last step, the record and the cards, in the main process.

    Args:
        trainer: after its last step.
        data_arguments: see `train_model`; empty where the settings name the data.
    """
    trainer.processes.wait()
    if trainer.processes.is_main:
        out, settings, best = trainer.out, trainer.settings, trainer.out / BEST
        # Checked before the record says that all is done: after that no damage would be noticed.
        best_files = _checked_files(best) if best.is_dir() else {}
        files = _write_model(trainer)
        outcome = {**_outcome(trainer), **_where(trainer), "data_arguments": data_arguments}
        record = TrainingRecord(settings.values(), trainer.facts, True, outcome, files)
        write_record(out, record, settings)
        values = record.values()
        dim, is_clap = int(trainer.embedding_dim), trainer.towers.model.config.model_type == "clap"
        for folder in (out, best):
            if folder.is_dir():
                title = folder.resolve().name if folder is out else f"{out.resolve().name}/{BEST}"
                write_whole(folder / CARD, model_card(title, settings, values, dim, is_clap=is_clap))
        if best.is_dir():
            # A folder with weights states by itself what they were trained on, with digests of its own files.
            write_whole(best / RECORD, replace(record, files=best_files).to_json())
    trainer.processes.wait()


def _checked_files(folder: Path) -> dict[str, str]:
    """The digests in the record of a model, checked against its files.

    Raises:
        TrainingError: a file was changed, or it or the record is missing.
    """
    values = read_record(folder)
    if values is None:
        raise TrainingError(
            f"{folder / RECORD} is not there, and nothing else has the digests of the model beside it: remove "
            f"{folder}, and the training is finished without it"
        )
    check_model_files(folder, values)
    return dict(values["files"])


def _write_model(trainer: Trainer) -> dict[str, str]:
    """Write the files of the model beside those of the run, each in one go; returns their digests."""
    with saved_beside(trainer.towers, trainer.out / "model") as (partial, files):
        for path in sorted(partial.iterdir()):
            path.replace(trainer.out / path.name)
    return files


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
    rows = log_rows(tables[STEPS])
    losses = [(int(row["step"]), float(row["loss"])) for row in rows]
    each = max(-(-len(losses) // POINTS), 1)
    thinned = [losses[start : start + each] for start in range(0, len(losses), each)]
    return {
        "steps": position.total,
        "seconds": position.seconds,
        "stages": _stages(rows, settings),
        "best": None if position.best is None else {"score": position.best, "step": position.best_step},
        "evaluations": _evaluations(log_rows(tables[EVALUATIONS])),
        "losses": {
            "step": [part[-1][0] for part in thinned],
            "loss": [round(fmean(loss for _, loss in part), 6) for part in thinned],
        },
    }


def _stages(rows: list[dict[str, str]], settings: TrainingSettings) -> list[dict[str, Any]]:
    """Each stage with its last loss. A stage begins where steps are counted from 1 again."""
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


def train_model(
    settings: TrainingSettings,
    out: Path,
    *,
    data: Data | TrainingSplits | None = None,
    data_arguments: str | None = None,
    validate: Validate | None = None,
    device: str | None = None,
    workers: int | None = None,
    progress: bool = False,
    on_step: Callable[[int], None] | None = None,
) -> TrainingRun:
    """Train a model, or go on where a run in the folder was stopped.

    Args:
        settings: of the training.
        out: folder, which is made: the model of the last step, `best/`, `settings.yaml`, `training.json`, `log.csv`,
            `evaluations.csv`, README.md and `checkpoint/`.
        data: training data, opened; by default those that the settings name.
        data_arguments: arguments that name such data on the command line, beside the settings, for the card; None for
            data that no command opens.
        validate: scores models during training; by default on validation items of the data's recipe.
        device: torch device; by default a GPU where there is one.
        workers: threads that prepare features.
        progress: show bars, or lines where there is no terminal.
        on_step: called after each step with its number.

    Returns:
        the outcome; in a folder whose training is finished, nothing is done.

    Raises:
        TrainingError: the folder holds another training, or the settings cannot be used.
        AudioCompositionalityError: the data, the model or the device cannot be had.
    """
    # Errors are raised before minutes of rendering.
    record = check_out(out, settings)
    check_programs(settings.log_to)
    if record is not None and record.get("finished"):
        return TrainingRun(out, _finished(record, settings), int(record["steps"]))
    processes = join_training(device)
    if settings.batch_size % processes.count:
        raise TrainingError(
            f"batch_size is {settings.batch_size}, which {processes.count} processes cannot share in equal parts"
        )
    computing = Computing(device, settings.precision, processes)
    with processes.one_first():
        towers = _towers(settings, computing)
    splits = _splits(_source(settings) if data is None else data, settings)
    towers.tokeniser.check(text for row in splits.train.rows for text in row.texts)
    bars = progress and processes.is_main and sys.stderr.isatty()
    features = _features(towers, splits.train, settings, workers, bars)
    if validate is None and processes.is_main:
        validate = _validation(splits, settings, towers, bars)
    trainer = Trainer(
        towers,
        splits.train,
        features,
        settings,
        out,
        computing=computing,
        validate=validate,
        on_step=on_step,
        progress=progress,
    )
    run = trainer.run()
    finish(trainer, "" if data is None else data_arguments)
    return run


def _towers(settings: TrainingSettings, computing: Computing) -> TwoTowers:
    if not settings.init.startswith(ALIGN):
        return open_towers(settings.init, train=settings.train, seed=settings.seed)
    from .towers.small_towers import open_aligned

    name = settings.init.removeprefix(ALIGN)
    return open_aligned(name, seed=settings.seed, device=computing.device, train=settings.train)


def _features(
    towers: TwoTowers, data: TrainingData, settings: TrainingSettings, workers: int | None, progress: bool
) -> FeatureSource:
    """The features of each clip, as the towers take them."""
    if settings.init.startswith(ALIGN):
        from .towers.small_towers import AlignedTowers, frozen_features

        assert isinstance(towers, AlignedTowers)
        return frozen_features(towers, data, progress=progress)
    return prepare_features(data, towers.open_front_end(), workers=workers, progress=progress)


def _source(settings: TrainingSettings) -> Data:
    changes: dict[str, Any] = {}
    if settings.rows is not None and settings.data in training_recipes():
        changes["train_rows"] = settings.rows
    return open_source(settings.data, settings.preset, settings.recipe, None, changes)


def _splits(data: Data | TrainingSplits, settings: TrainingSettings) -> TrainingSplits:
    splits = open_training(data, recipe=settings.recipe)
    if settings.rows is None or len(splits.train.rows) <= settings.rows:
        return splits
    return replace(splits, train=splits.train.take(settings.rows))


def _validation(
    splits: TrainingSplits, settings: TrainingSettings, towers: TwoTowers, progress: bool
) -> Validate | None:
    """The validation; None where none is wanted, or where none is possible and none was requested."""
    if not settings.validation_items:
        return None
    from .validation import open_validation

    try:
        validation = open_validation(splits, most=settings.validation_items, progress=progress)
    except TrainingError as error:
        if settings.evaluate_every:
            raise
        warnings.warn(f"there will be no validation scores: {error}", stacklevel=2)
        return None
    towers.tokeniser.check(validation.texts)
    return validation


def _finished(record: Mapping[str, Any], settings: TrainingSettings) -> Position:
    """The position of a training that its record calls finished: its checkpoint is not needed any more."""
    best = record.get("best") or {}
    return Position(
        len(settings.stages), total=int(record["steps"]), best=best.get("score"), best_step=best.get("step")
    )
