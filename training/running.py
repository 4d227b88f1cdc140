"""A training from its settings to a folder with a model: data, features, the loop, what is written at the end."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from audio_compositionality.dataset_builder.data import Data

from .batches import Features
from .checkpoints import Position
from .computing import Computing, join_training
from .data import TrainingData, TrainingSplits, open_source, open_training, training_recipes
from .errors import TrainingError
from .features import prepare_features
from .finishing import finish
from .log import check_programs
from .loop import Trainer, TrainingRun, Validate
from .model import TwoTowers, open_towers
from .record import check_out
from .settings import ALIGN, TrainingSettings


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
        settings: what decides it.
        out: folder, which is made: the model of the last step, `best/`, `settings.yaml`, `training.json`, `log.csv`,
            `evaluations.csv`, README.md and `checkpoint/`.
        data: what to learn from, opened; by default what the settings name.
        data_arguments: what names such data on the command line, beside the settings, for the card; None of data that
            no command opens.
        validate: scores models while they are trained; by default items of validation of the data's recipe.
        device: torch device; by default a GPU where there is one.
        workers: threads that prepare features.
        progress: show bars, or lines where there is no terminal.
        on_step: called behind each step with its number.

    Returns:
        what came of it; of a folder whose training is finished, nothing is done.

    Raises:
        TrainingError: the folder holds another training, or the settings cannot be used.
        AudioCompositionalityError: the data, the model or the device cannot be had.
    """
    # What is wrong is said before minutes of rendering.
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
    from .align import open_aligned

    name = settings.init.removeprefix(ALIGN)
    return open_aligned(name, seed=settings.seed, device=computing.device, train=settings.train)


def _features(
    towers: TwoTowers, data: TrainingData, settings: TrainingSettings, workers: int | None, progress: bool
) -> Features:
    """What the towers take of each clip."""
    if settings.init.startswith(ALIGN):
        from .align import AlignedTowers, frozen_features

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
    """What scores models; None where nothing is to, or where nothing can and nobody asked for it."""
    if not settings.validation_items:
        return None
    from .validation import open_validation

    try:
        validation = open_validation(splits, most=settings.validation_items, progress=progress)
    except TrainingError as error:
        if settings.evaluate_every:
            raise
        warnings.warn(f"there will be no scores of validation: {error}", stacklevel=2)
        return None
    towers.tokeniser.check(validation.texts)
    return validation


def _finished(record: Mapping[str, Any], settings: TrainingSettings) -> Position:
    """Where a training stands that its record says is finished: its checkpoint is not needed any more."""
    best = record.get("best") or {}
    return Position(
        len(settings.stages), total=int(record["steps"]), best=best.get("score"), best_step=best.get("step")
    )
