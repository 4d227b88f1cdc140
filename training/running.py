"""A training from its settings to a folder with a model: data, features, the loop, the final files."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable
from dataclasses import replace
from itertools import groupby, pairwise
from pathlib import Path
from statistics import fmean
from typing import Any

from audio_compositionality.dataset_builder.data import Data
from audio_compositionality.encoders.loading.beside_weights import RECORD
from audio_compositionality.support.files import write_whole

from .batches import FeatureSource
from .data import TrainingSplits, open_source, open_training, training_recipes
from .features import prepare_features
from .log import EVALUATIONS, STEPS, check_trackers, log_rows
from .loop import BEST, Computing, Trainer, TrainingRun, Validate, join_training, saved_beside
from .model import TwoTowers, open_towers
from .run_folder import CARD, TrainingRecord, check_model_files, check_out, model_card, read_record, write_record
from .settings import ALIGN, TrainingError, TrainingSettings
from .state import Position

POINTS = 200
"""Maximum number of losses in the record, each the mean of some steps; the log has all."""

_LAST = 20
"""Number of steps over which a stage's last loss is averaged."""


def finish(trainer: Trainer, data_arguments: str | None = "") -> None:
    """Write the model of the last step, the record and the cards, in the main process.

    Args:
        trainer: trainer after its last step.
        data_arguments: see `train_model`; empty if the settings name the data.
    """
    import torch

    trainer.processes.wait()
    if trainer.processes.is_main:
        out, settings, best = trainer.out, trainer.settings, trainer.out / BEST
        # Checked before the record states that all is done: after that no damage would be noticed.
        best_files: dict[str, str] = {}
        if best.is_dir():
            of_best = read_record(best)
            if of_best is None:
                raise TrainingError(
                    f"{best / RECORD} is missing, so the model next to it cannot be verified: remove "
                    f"{best}, and the training will finish without it"
                )
            check_model_files(best, of_best)
            best_files = dict(of_best["files"])
        with saved_beside(trainer.towers, out / "model") as (partial, files):
            for path in sorted(partial.iterdir()):
                path.replace(out / path.name)
        outcome = {**_outcome(trainer), "data_arguments": data_arguments}
        record = TrainingRecord(settings.values(), trainer.facts, True, outcome, files)
        write_record(out, record, settings)
        values = record.values()
        towers, device = trainer.towers, trainer.computing.device
        with torch.no_grad():
            dim = int(towers.embed_text(towers.tokeniser(["a"]).to(device)).shape[1])
        is_clap = towers.model.config.model_type == "clap"
        for folder in (out, best):
            if folder.is_dir():
                title = folder.resolve().name if folder is out else f"{out.resolve().name}/{BEST}"
                write_whole(folder / CARD, model_card(title, settings, values, dim, is_clap=is_clap))
        if best.is_dir():
            # A folder with weights states what they were trained on, with digests of its own files.
            write_whole(best / RECORD, replace(record, files=best_files).to_json())
    trainer.processes.wait()


def _outcome(trainer: Trainer) -> dict[str, Any]:
    """Return the results of a training by name, as in its record."""
    import torch

    assert trainer.log is not None
    settings, position, tables = trainer.settings, trainer.position, trainer.log.tables
    device, precision, count = trainer.computing.device, trainer.computing.precision, trainer.processes.count
    name = torch.cuda.get_device_name(device) if device.type == "cuda" else str(device)
    rows = log_rows(tables[STEPS])
    # A stage begins where steps are counted from 1 again.
    starts = [number for number, row in enumerate(rows) if row["stage_step"] == "1"]
    of_stages = [rows[start:stop] for start, stop in pairwise([*starts, len(rows)])]
    each = max(-(-len(rows) // POINTS), 1)
    parts = [rows[start : start + each] for start in range(0, len(rows), each)]
    evaluations = groupby(log_rows(tables[EVALUATIONS]), key=lambda row: row["step"])
    return {
        "steps": position.total,
        "seconds": position.seconds,
        "stages": [
            {
                "kind": stage.kind,
                "steps": len(steps),
                "learning_rate": stage.learning_rate,
                "loss": fmean(float(row["loss"]) for row in steps[-_LAST:]),
            }
            for stage, steps in zip(settings.stages, of_stages, strict=True)
        ],
        "best": None if position.best is None else {"score": position.best, "step": position.best_step},
        "evaluations": [
            {"step": int(step), "scores": {row["name"]: float(row["value"]) for row in of_step}}
            for step, of_step in evaluations
        ],
        "losses": {
            "step": [int(part[-1]["step"]) for part in parts],
            "loss": [round(fmean(float(row["loss"]) for row in part), 6) for part in parts],
        },
        "device": name if count == 1 else f"{count} × {name}",
        "processes": count,
        "precision": "float32" if precision == "no" else precision,
    }


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
    """Train a model, or resume a stopped run in the folder.

    Args:
        settings: settings of the training.
        out: folder, created if needed: the model of the last step, `best/`, `settings.yaml`, `training.json`,
            `log.csv`, `evaluations.csv`, README.md and `checkpoint/`.
        data: opened training data; by default those that the settings name.
        data_arguments: arguments that name the data on the command line, in addition to the settings, for the card;
            None for data that no command opens.
        validate: scores models during training; by default on validation items of the data's recipe.
        device: torch device; by default a GPU if available.
        workers: number of threads that prepare features.
        progress: show progress bars, or lines without a terminal.
        on_step: called after each step with its number.

    Returns:
        the outcome; for a folder whose training is finished, nothing is done.

    Raises:
        TrainingError: the folder holds another training, or the settings cannot be used.
        AudioCompositionalityError: the data, the model or the device is not available.
    """
    # Errors are raised before minutes of rendering.
    record = check_out(out, settings)
    check_trackers(settings.log_to)
    if record is not None and record.get("finished"):
        # Its checkpoint is no longer needed.
        steps, best = int(record["steps"]), record.get("best") or {}
        position = Position(len(settings.stages), total=steps, best=best.get("score"), best_step=best.get("step"))
        return TrainingRun(out, position, steps)
    processes = join_training(device)
    if settings.batch_size % processes.count:
        raise TrainingError(
            f"batch_size is {settings.batch_size}, which {processes.count} processes cannot share in equal parts"
        )
    computing = Computing(device, settings.precision, processes)
    aligned = settings.init.removeprefix(ALIGN) if settings.init.startswith(ALIGN) else None
    towers: TwoTowers
    with processes.one_first():
        if aligned is None:
            towers = open_towers(settings.init, train=settings.train, seed=settings.seed)
        else:
            from .towers.small_towers import AlignedTowers, frozen_features, open_aligned

            towers = open_aligned(aligned, seed=settings.seed, device=computing.device, train=settings.train)
    source = data
    if source is None:
        is_counted = settings.rows is not None and settings.data in training_recipes()
        changes = {"train_rows": settings.rows} if is_counted else {}
        source = open_source(settings.data, settings.preset, settings.recipe, changes)
    splits = open_training(source, recipe=settings.recipe)
    if settings.rows is not None and len(splits.train.rows) > settings.rows:
        splits = replace(splits, train=splits.train.take(settings.rows))
    towers.tokeniser.check(text for row in splits.train.rows for text in row.texts)
    bars = progress and processes.is_main and sys.stderr.isatty()
    features: FeatureSource
    if aligned is None:
        features = prepare_features(splits.train, towers.open_front_end(), workers=workers, progress=bars)
    else:
        assert isinstance(towers, AlignedTowers)
        features = frozen_features(towers, splits.train, progress=bars)
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


def _validation(
    splits: TrainingSplits, settings: TrainingSettings, towers: TwoTowers, progress: bool
) -> Validate | None:
    """Return the validation; None if it is turned off, or is impossible and was not requested."""
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
