"""The loop: stages in order, steps, evaluations, and a state from which a killed run resumes."""

from __future__ import annotations

import json
import math
import os
import shutil
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, closing, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import fmean
from typing import TYPE_CHECKING

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from audio_compositionality.encoders.inference import resolve_device
from audio_compositionality.encoders.loading.beside_weights import RECORD, STATES_RECORD
from audio_compositionality.evaluator.run.processes import Processes, join_launched
from audio_compositionality.support.checked_files import digests_of
from audio_compositionality.support.files import locked, partial_path, read_file, sha256_of_json, write_whole
from audio_compositionality.support.progress import make_bar

from .batches import Batch, Batches, BatchSettings, FeatureSource, TextSettings, check_neighbours, nearest_rows
from .data import TrainingData
from .embedding import BatchEmbedder, Embeddings, cached_step
from .log import STEP_COLUMNS, RunLog
from .losses import StageLoss, processes, stage_loss
from .model import TwoTowers
from .run_folder import DataFacts, TrainingRecord, check_out, write_record
from .settings import FREE, HARD, MODULAR, Stage, TrainingError, TrainingSettings
from .state import FILE, Position, TrainingState, find_checkpoint, load_checkpoint, save_checkpoint

if TYPE_CHECKING:
    from audio_compositionality.encoders.base import Model


_joined: Processes | None = None


def join_training(device: str | None) -> Processes:
    """Join the processes that a launcher has started, which share gradients; without a launcher, a single process.

    They are joined by NCCL if each has a GPU, else by gloo; messages pass through gloo, so that all may wait as long
    as the main process evaluates.

    Args:
        device: requested torch device; None for a GPU if available.

    Raises:
        InputError: variables of the launcher are missing.
        ProcessError: the others cannot be reached.
    """
    global _joined
    if _joined is None:
        on_gpu = torch.cuda.is_available() and (device is None or device.startswith("cuda"))
        _joined = join_launched(cpu=not on_gpu) if int(os.environ.get("WORLD_SIZE") or 1) > 1 else Processes()
    return _joined


class Computing:
    """The device and the precision of one process.

    Attributes:
        processes: the processes that work together.
        device: device of this process.
        precision: ``no`` (float32), ``bf16`` or ``fp16``.
    """

    def __init__(self, device: str | None, precision: str, processes: Processes | None = None) -> None:
        """Choose the device, and what ``auto`` means on it.

        Raises:
            ModelError: there is no such device.
            TrainingError: the device does not compute in this precision.
        """
        self.processes = processes or Processes()
        self.device = resolve_device(self.processes.device(device))
        on_gpu = self.device.type == "cuda"
        if precision == "auto":
            precision = "bf16" if on_gpu and torch.cuda.is_bf16_supported() else "no"
        if precision == "fp16" and not on_gpu:
            raise TrainingError(f"precision fp16 needs a GPU, and the device is {self.device}; take no or bf16")
        self.precision = precision
        self.scaler = torch.amp.GradScaler(self.device.type, enabled=precision == "fp16")

    def mixed(self) -> AbstractContextManager[object]:
        """Return the context in which models compute."""
        kind = torch.float16 if self.precision == "fp16" else torch.bfloat16
        return torch.autocast(self.device.type, kind, enabled=self.precision != "no")


MAX_GRADIENT = 1.0
"""Maximum norm of the gradient of all weights together; larger ones are scaled down."""


BETAS = (0.9, 0.98)
"""Settings of AdamW (Radford et al., 2021, arXiv 2103.00020, table 18)."""

LAST_RATE = 0.1
"""Last learning rate of a stage, as a share of the highest."""


def make_optimizer(towers: TwoTowers, weight_decay: float) -> torch.optim.AdamW:
    """Return AdamW over the trained weights, in the order of their names in the model.

    Biases, the weights of norms and the scale do not decay; they have fewer than two dimensions.
    """
    weights = [weight for _, weight in towers.named_trained()]
    groups = [
        {"params": [weight for weight in weights if weight.ndim > 1], "weight_decay": weight_decay},
        {"params": [weight for weight in weights if weight.ndim < 2], "weight_decay": 0.0},
    ]
    return torch.optim.AdamW([group for group in groups if group["params"]], lr=0.0, betas=BETAS)


def learning_rate_at(stage: Stage, step: int) -> float:
    """Return the learning rate of a step of a stage, from 0: a linear rise, then half a cosine down to a tenth."""
    if step < stage.warm_up:
        return stage.learning_rate * (step + 1) / stage.warm_up
    share = (step - stage.warm_up) / max(stage.steps - stage.warm_up, 1)
    return stage.learning_rate * (LAST_RATE + (1 - LAST_RATE) * (1 + math.cos(math.pi * share)) / 2)


@torch.no_grad()
def average_gradients(weights: Sequence[nn.Parameter]) -> None:
    """Replace the gradients of every process by their mean; no effect on a single process."""
    _, count = processes()
    gradients = [weight.grad for weight in weights if weight.grad is not None]
    if count == 1 or not gradients:
        return
    # In one message: the order of summation is the same in every process, so that weights stay equal.
    flat = nn.utils.parameters_to_vector(gradients)
    torch.distributed.all_reduce(flat)
    nn.utils.vector_to_parameters(flat / count, gradients)


_AT_ONCE = 32


Validate = Callable[["Model", int], Mapping[str, float]]
"""Returns the scores of a model at a step, by name; the first decides which model is the best."""

BEST = "best"
"""Folder of the model with the highest score."""

NORM_CLIPS = 256
"""Number of clips on which the norm of fresh weights is measured."""

_FLUSHED = 10
"""Number of steps whose losses are fetched from the device together: one by one, they would make a GPU wait."""


@dataclass(frozen=True)
class TrainingRun:
    """The outcome of a training.

    Attributes:
        out: its folder.
        position: its position, after all stages.
        resumed: the step from which it resumed; None for a new training.
    """

    out: Path
    position: Position
    resumed: int | None


class Trainer:
    """A training in one process, carried out by `run`."""

    def __init__(
        self,
        towers: TwoTowers,
        data: TrainingData,
        features: FeatureSource,
        settings: TrainingSettings,
        out: Path,
        *,
        computing: Computing | None = None,
        validate: Validate | None = None,
        on_step: Callable[[int], None] | None = None,
        progress: bool = False,
    ) -> None:
        """Set the model, the data and the settings. Nothing is written yet.

        Args:
            towers: the initial model; it is trained in place.
            data: the training rows.
            features: features of their clips, as the towers take them.
            settings: settings, the same in every process.
            out: folder of the run, on a file system that all processes share.
            computing: device, precision and processes; by default of a single process, on a GPU if available.
            validate: scores a model; called in the main process alone.
            on_step: called after each step with its number, counted from 1 over all stages.
            progress: show a progress bar, or lines without a terminal.

        Attributes:
            log: log of the run, in the main process; None before it runs.
        """
        self.settings, self.out, self.data, self.features = settings, Path(out), data, features
        self.computing = computing or Computing(None, settings.precision)
        self.processes = self.computing.processes
        self.towers = towers.to(self.computing.device)
        self._embedder = BatchEmbedder(self.towers)
        self._weights = [weight for _, weight in self.towers.named_trained()]
        self._validate = validate if self.processes.is_main else None
        self._on_step, self._progress = on_step, progress
        self._waiting: list[tuple[int, float, torch.Tensor]] = []
        self._near: NDArray[np.int64] | None = None
        self._score = ""
        self.log: RunLog | None = None
        self.position = Position()
        described = f"{len(data.rows):,} rows of {data.recipe}, {data.source}"
        self.facts = DataFacts(data.source, data.recipe, data.fingerprint, len(data.rows), described)
        owned = {name: value for name, value in settings.values().items() if name not in FREE}
        self.owner = sha256_of_json({"settings": owned, "fingerprint": data.fingerprint})

    def run(self) -> TrainingRun:
        """Run all stages, from the state in the folder; afterwards the towers have the last weights.

        Raises:
            TrainingError: the folder holds another training, or a loss is not a number.
        """
        with ExitStack() as stack:
            if self.processes.is_main:
                check_out(self.out, self.settings, self.facts)
                self._check_batches()
                self.out.mkdir(parents=True, exist_ok=True)
                if not stack.enter_context(locked(self.out / ".lock")):
                    raise TrainingError(f"another process is training in {self.out}")
                write_record(self.out, TrainingRecord(self.settings.values(), self.facts), self.settings)
            self._validates = json.loads(self.processes.from_main(json.dumps(self._validate is not None)))
            state = find_checkpoint(self.out, self.owner)
            # From here on the folder is written to; no process reads a state any more.
            self.processes.wait()
            if state is None:
                # Fresh weights may need a norm; the state before the first step is saved.
                if self.towers.needs_norm:
                    # Evenly spaced over the rows, since adjacent rows may be alike.
                    last, count = len(self.data.rows) - 1, min(NORM_CLIPS, len(self.data.rows))
                    places = np.linspace(0, last, count).round().astype(int)
                    clips = np.unique([self.data.rows[place].clip for place in places.tolist()])
                    self.towers.measure_norm(self._features_of(clips))
                self._keep(None)
            else:
                if self.processes.is_main and state.path.name != FILE:
                    # A damaged file must not replace an intact one.
                    state.path.replace(state.path.with_name(FILE))
                self.processes.wait()
                self.position, self._near = state.position, state.neighbours
                load_checkpoint(self.out, self.towers, None)
            resumed = self.position
            self._began = time.monotonic() - resumed.seconds
            if self.processes.is_main:
                tables = {} if state is None else state.tables
                self.log = RunLog(self.out, self.settings.log_to, resumed.total, tables)
                stack.callback(self.log.close)
            shown = self._progress and self.processes.is_main
            self._bar = make_bar("training", "step", self.settings.steps, shown=shown, done=resumed.total)
            stack.callback(self._bar.close)
            for number in range(resumed.stage, len(self.settings.stages)):
                self._run_stage(number, is_resumed=number == resumed.stage and resumed.step > 0)
        return TrainingRun(self.out, self.position, None if state is None else resumed.total)

    def _features_of(self, clips: NDArray[np.int64]) -> Iterator[Tensor]:
        """Yield the features of clips, some at a time."""
        return (self.features.gather(clips[start : start + _AT_ONCE]) for start in range(0, len(clips), _AT_ONCE))

    def _run_stage(self, number: int, *, is_resumed: bool) -> None:
        settings, stage = self.settings, self.settings.stages[number]
        optimizer = make_optimizer(self.towers, settings.weight_decay)
        if is_resumed:
            load_checkpoint(self.out, self.towers, optimizer, self.computing.scaler)
        if not settings.neighbours or stage.kind not in (HARD, MODULAR):
            self._near = None
        elif not is_resumed:
            # In the embedding at the start of the stage.
            near: list[list[int]] = []
            if self.processes.is_main:
                clips = np.array([row.clip for row in self.data.rows], np.int64)
                with torch.no_grad():
                    parts = [
                        self.towers.embed_audio(batch.to(self.towers.device)).float().cpu().numpy()
                        for batch in self._features_of(clips)
                    ]
                near = nearest_rows(np.concatenate(parts), self.data.rows, settings.neighbours).tolist()
            self._near = np.array(json.loads(self.processes.from_main(json.dumps(near))), np.int64)
        loss = stage_loss(
            stage.kind,
            settings.form,
            weights=(settings.text_to_audio, settings.audio_to_text),
            modular_weight=settings.modular_weight,
        )
        each = settings.accumulate
        batches = self._batches(number, self._near)
        # However the stage ends, the threads of the stream end as well.
        with closing(batches.stream(self.position.step * each, stage.steps * each)) as stream:
            while self.position.step < stage.steps:
                self._step(stage, stream, loss, optimizer)
                if self._is_due(stage, settings.evaluate_every) and self._validate_and_stop(stage):
                    break
                if self.position.step < stage.steps and self._is_due(stage, settings.checkpoint_every):
                    self._keep(optimizer)
        self._flush(stage)
        self._bar.update(stage.steps - self.position.step)
        self.position = replace(self.position, stage=number + 1, step=0, stage_best=None, stale=0)
        self._keep(None)

    def _step(self, stage: Stage, stream: Iterator[Batch], loss: StageLoss, optimizer: torch.optim.Optimizer) -> None:
        """Do one step of the optimizer, on all accumulated batches."""
        rate = learning_rate_at(stage, self.position.step)
        for group in optimizer.param_groups:
            group["lr"] = rate
        optimizer.zero_grad(set_to_none=True)
        scaler, accumulate, losses = self.computing.scaler, self.settings.accumulate, []

        def backward(value: Tensor) -> None:
            scaler.scale(value / accumulate).backward()  # type: ignore[no-untyped-call]

        for _ in range(accumulate):
            batch = next(stream).to(self.computing.device)
            losses.append(cached_step(self._embed, batch, loss, self.settings.chunk, backward=backward))
        average_gradients(self._weights)
        scaler.unscale_(optimizer)
        norm = nn.utils.clip_grad_norm_([one for one in self._weights if one.grad is not None], MAX_GRADIENT)
        scaler.step(optimizer)
        scaler.update()
        self.towers.limit_scale()
        self.position = replace(self.position, step=self.position.step + 1, total=self.position.total + 1)
        numbers = torch.stack([torch.stack(losses).mean().float(), norm.float(), self.towers.scale().detach().float()])
        self._waiting.append((self.position.step, rate, numbers))
        if len(self._waiting) >= _FLUSHED or self.position.step == stage.steps:
            self._flush(stage)
        if self._on_step is not None:
            self._on_step(self.position.total)

    def _embed(self, batch: Batch) -> Embeddings:
        with self.computing.mixed():
            embeddings: Embeddings = self._embedder(batch)
        return embeddings

    def _check_batches(self) -> None:
        """Raise an error before training if the data cannot fill the batches of a stage."""
        near = self.settings.neighbours
        for number, stage in enumerate(self.settings.stages):
            has_near = near > 0 and stage.kind in (HARD, MODULAR)
            if has_near:
                check_neighbours(self.data.rows, near)
            self._batches(number, np.zeros((len(self.data.rows), near), np.int64) if has_near else None)

    def _batches(self, number: int, neighbours: NDArray[np.int64] | None) -> Batches:
        stage, settings = self.settings.stages[number], self.settings
        most = settings.modular_negatives if stage.kind == MODULAR else settings.negatives
        how = BatchSettings(
            texts=TextSettings.of(stage.kind, most, settings.positives),
            batch_size=settings.batch_size,
            seed=settings.seed,
            stage=number,
            process=self.processes.rank,
            processes=self.processes.count,
        )
        return Batches(self.data, self.features, self.towers.tokeniser, how, neighbours)

    def _is_due(self, stage: Stage, every: int) -> bool:
        return self.position.step == stage.steps or (bool(every) and self.position.step % every == 0)

    def _flush(self, stage: Stage) -> None:
        """Fetch the numbers of the last steps, and report them."""
        if not self._waiting:
            return
        of_process = torch.stack([values for _, _, values in self._waiting])
        if self.processes.count > 1:
            torch.distributed.all_reduce(of_process)
        numbers = (of_process / self.processes.count).tolist()
        seconds = time.monotonic() - self._began
        for (step, rate, _), (loss, norm, scale) in zip(self._waiting, numbers, strict=True):
            total = self.position.total - self.position.step + step
            if not math.isfinite(loss):
                raise TrainingError(
                    f"the loss of step {step} of the stage {stage.kind} is {loss}: the learning rate {rate:g} may be "
                    "too high. The last state in the folder is an earlier one; to use a lower rate, pass another --out"
                )
            if self.log is not None:
                values = (total, stage.kind, step, loss, rate, scale, norm, round(seconds, 3))
                self.log.step(dict(zip(STEP_COLUMNS, values, strict=True)))
        self._bar.set_description_str(stage.kind, refresh=False)
        self._bar.set_postfix_str(f"loss {fmean(loss for loss, _, _ in numbers):.3f}{self._score}", refresh=False)
        self._bar.update(len(numbers))
        self._waiting.clear()

    def _validate_and_stop(self, stage: Stage) -> bool:
        """Evaluate, and save a model that is better than all before; return whether the stage must end."""
        if not self._validates:
            return False
        self._flush(stage)
        score = 0.0
        if self._validate is not None:
            values = self._validate(self.towers.open_encoder(), self.position.total)
            if not values:
                raise TrainingError("the evaluation returned no score")
            score = float(next(iter(values.values())))
            assert self.log is not None
            self.log.evaluation(self.position.total, stage.kind, values)
        # Only the main process has evaluated; the consequences are the same in all.
        score = float(json.loads(self.processes.from_main(json.dumps(score))))
        best, stage_best = self.position.best, self.position.stage_best
        # Without anything to score the score is NaN, and no model is saved as the best.
        is_number = not math.isnan(score)
        is_best = is_number and (best is None or score > best)
        is_better = is_number and (stage_best is None or score > stage_best)
        self._score = f", score {score:.3f}"
        if is_best and self.processes.is_main:
            folder = self.out / BEST
            with saved_beside(self.towers, folder) as (partial, files):
                record = TrainingRecord(self.settings.values(), self.facts, files=files)
                write_whole(partial / RECORD, record.to_json())
                if folder.exists():
                    shutil.rmtree(folder)
                partial.replace(folder)
        self.position = replace(
            self.position,
            best=score if is_best else best,
            best_step=self.position.total if is_best else self.position.best_step,
            stage_best=score if is_better else stage_best,
            stale=0 if is_better else self.position.stale + 1,
        )
        return bool(self.settings.patience) and self.position.stale >= self.settings.patience

    def _keep(self, optimizer: torch.optim.Optimizer | None) -> None:
        """Write the state to disk."""
        if optimizer is not None:
            self._flush(self.settings.stages[self.position.stage])
        if hasattr(self, "_began"):
            self.position = replace(self.position, seconds=round(time.monotonic() - self._began, 3))
        if self.processes.is_main:
            tables = {} if self.log is None else self.log.tables
            state = TrainingState(self.position, tables, self._near if self.position.step else None)
            save_checkpoint(self.out, state, self.towers, optimizer, self.computing.scaler, owner=self.owner)
        # No process continues before the state is complete on disk.
        self.processes.wait()


@contextmanager
def saved_beside(towers: TwoTowers, folder: Path) -> Iterator[tuple[Path, dict[str, str]]]:
    """Save a model in a temporary folder next to another for the length of a block; yield it with its files'
    digests."""
    partial = partial_path(folder)
    shutil.rmtree(partial, ignore_errors=True)
    try:
        towers.save(partial)
        # Without the record, nothing would show that a file next to it has changed.
        path = partial / "config.json"
        write_whole(path, json.dumps({**json.loads(read_file(path)), STATES_RECORD: RECORD}, indent=2) + "\n")
        yield partial, digests_of(partial, partial.iterdir())
    finally:
        shutil.rmtree(partial, ignore_errors=True)
