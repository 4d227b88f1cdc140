"""The loop: stages one after the other, steps, evaluations, and a state that a run which was killed goes on from."""

from __future__ import annotations

import json
import math
import shutil
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import torch
from numpy.typing import NDArray

from audio_compositionality.encoders.loading.records import RECORD
from audio_compositionality.support.checked_files import digests_of
from audio_compositionality.support.files import locked, partial_path, write_whole

from .batch import Batch
from .batches import Batches, BatchSettings, Features, check_neighbours
from .caching import cached_step
from .checkpoints import Checkpoint, Position, find_checkpoint, keep_checkpoint, load_checkpoint, save_checkpoint
from .computing import Computing
from .data import TrainingData
from .embedding import Embedder, Embeddings
from .errors import TrainingError
from .log import COLUMNS, Progress, RunLog
from .model import TwoTowers
from .neighbours import stage_neighbours
from .objectives import StageLoss, stage_loss
from .optimisation import average_gradients, cut_gradients, learning_rate, make_optimizer, set_learning_rate
from .record import DataFacts, Record, check_out, write_record
from .settings import HARD, MODULAR, Stage, TrainingSettings
from .texts import TextSettings

if TYPE_CHECKING:
    from audio_compositionality.encoders.base import Model

Validate = Callable[["Model", int], Mapping[str, float]]
"""Scores of a model at a step, by name; the first decides which model is the best."""

BEST = "best"
"""Folder of the model with the highest score."""

NORM_CLIPS = 256
"""Clips that the norm of fresh weights is measured on."""

_AT_ONCE = 32
_FLUSHED = 10
"""Steps whose losses are fetched from the device together: fetching each would make a GPU wait."""


@dataclass(frozen=True)
class TrainingRun:
    """What came of a training.

    Attributes:
        out: its folder.
        position: where it stands: behind all stages.
        resumed: step that it went on from; None for one that began.
    """

    out: Path
    position: Position
    resumed: int | None


class Trainer:
    """A training, of one process; `run` goes through it."""

    def __init__(
        self,
        towers: TwoTowers,
        data: TrainingData,
        features: Features,
        settings: TrainingSettings,
        out: Path,
        *,
        computing: Computing | None = None,
        validate: Validate | None = None,
        on_step: Callable[[int], None] | None = None,
        progress: bool = False,
    ) -> None:
        """Take what is trained, on what, and how. Nothing is written yet.

        Args:
            towers: the model that is begun with; it is trained in place.
            data: rows to learn from.
            features: of their clips, as the towers take them.
            settings: the same in every process.
            out: folder of the run, on a file system that all processes see.
            computing: device, precision and processes; by default those of a single process, on a GPU if there is one.
            validate: scores a model; called in the main process alone.
            on_step: called behind each step with its number, counted from 1 over all stages.
            progress: show a bar, or lines where there is no terminal.

        Attributes:
            log: of the run, in the main process; None before it runs.
        """
        self.settings, self.out, self.data, self.features = settings, Path(out), data, features
        self.computing = computing or Computing(None, settings.precision)
        self.processes = self.computing.processes
        self.towers = towers.to(self.computing.device)
        self._embedder = Embedder(self.towers)
        self._weights = [weight for _, weight in self.towers.named_trained()]
        self._validate = validate if self.processes.is_main else None
        self._on_step, self._progress = on_step, progress
        self._waiting: list[tuple[int, float, torch.Tensor]] = []
        self._near: NDArray[np.int64] | None = None
        self.log: RunLog | None = None
        self.position = Position()
        described = f"{len(data.rows):,} rows of {data.recipe}, {data.source}"
        self.facts = DataFacts(data.source, data.recipe, data.fingerprint, len(data.rows), described)

    def run(self) -> TrainingRun:
        """Go through all stages, from where the folder stands; afterwards the towers have the last weights.

        Raises:
            TrainingError: the folder holds another training, or a loss is no number.
        """
        if self.processes.is_main:
            check_out(self.out, self.settings, self.facts)
            self._check_batches()
            self.out.mkdir(parents=True, exist_ok=True)
            with locked(self.out / ".lock") as is_free:
                if not is_free:
                    raise TrainingError(f"another process is training in {self.out}")
                return self._run()
        return self._run()

    def _run(self) -> TrainingRun:
        if self.processes.is_main:
            write_record(self.out, Record(self.settings.values(), self.facts), self.settings)
        self._validates = json.loads(self.processes.tell(json.dumps(self._validate is not None)))
        state = find_checkpoint(self.out)
        # What follows writes into the folder: none looks for a state any more.
        self.processes.wait()
        self._begin() if state is None else self._go_on(state)
        first = self.position.total
        self._began = time.monotonic() - self.position.seconds
        tables = {} if state is None else state.tables
        self.log = RunLog(self.out, self.settings, first, tables) if self.processes.is_main else None
        self._bar = Progress(self.settings.steps, first, shown=self._progress and self.processes.is_main)
        try:
            resumed = self.position
            for number in range(resumed.stage, len(self.settings.stages)):
                self._run_stage(number, is_resumed=number == resumed.stage and resumed.step > 0)
        finally:
            self._bar.close()
            if self.log is not None:
                self.log.close()
        return TrainingRun(self.out, self.position, first if state is not None else None)

    @property
    def embedding_dim(self) -> int:
        """Length of an embedding."""
        with torch.no_grad():
            return int(self.towers.embed_text(self.towers.tokeniser(["a"]).to(self.computing.device)).shape[1])

    def _go_on(self, state: Checkpoint) -> None:
        """Take a state that was found."""
        if self.processes.is_main:
            keep_checkpoint(state)
        self.processes.wait()
        self.position, self._near = state.position, state.neighbours
        load_checkpoint(self.out, self.towers, None)

    def _begin(self) -> None:
        """Measure what fresh weights need, and keep the state before the first step."""
        if self.towers.needs_norm:
            # Evenly spaced over the rows, of which neighbours may be alike.
            places = np.linspace(0, len(self.data.rows) - 1, min(NORM_CLIPS, len(self.data.rows))).round().astype(int)
            clips = np.unique([self.data.rows[place].clip for place in places.tolist()])
            self.towers.measure_norm(
                self.features.gather(clips[start : start + _AT_ONCE]) for start in range(0, len(clips), _AT_ONCE)
            )
        self._keep(None)

    def _run_stage(self, number: int, *, is_resumed: bool) -> None:
        stage = self.settings.stages[number]
        optimizer = make_optimizer(self.towers, self.settings.weight_decay)
        if is_resumed:
            load_checkpoint(self.out, self.towers, optimizer, self.computing.scaler)
        self._near = self._neighbours(number)
        batches = self._batches(number, self._near)
        each = self.settings.accumulate
        weights = (self.settings.text_to_audio, self.settings.audio_to_text)
        loss = stage_loss(
            stage.kind,
            self.settings.form,
            weights=weights,
            modular_weight=self.settings.modular_weight,
        )
        stream = batches.stream(self.position.step * each, stage.steps * each)
        with _closing(stream):
            while self.position.step < stage.steps:
                self._step(stage, stream, loss, optimizer)
                position = self.position
                if self._is_due(stage, self.settings.evaluate_every) and self._validate_and_stop(stage):
                    break
                if position.step < stage.steps and self._is_due(stage, self.settings.checkpoint_every):
                    self._keep(optimizer)
        self._flush(stage)
        self._bar.skip(stage.steps - self.position.step)
        self.position = replace(self.position, stage=number + 1, step=0, stage_best=None, stale=0)
        self._keep(None)

    def _step(self, stage: Stage, stream: Iterator[Batch], loss: StageLoss, optimizer: torch.optim.Optimizer) -> None:
        """One step of the optimizer, on as many batches as are accumulated."""
        rate = learning_rate(stage, self.position.step)
        set_learning_rate(optimizer, rate)
        optimizer.zero_grad(set_to_none=True)
        scaler, losses = self.computing.scaler, []
        for _ in range(self.settings.accumulate):
            batch = next(stream).to(self.computing.device)
            backward = self.computing.backward(self.settings.accumulate)
            losses.append(cached_step(self._embed, batch, loss, self.settings.chunk, backward=backward))
        average_gradients(self._weights)
        scaler.unscale_(optimizer)
        norm = cut_gradients(self._weights)
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
        """Refuse what a stage cannot make batches of, before an earlier one has been trained."""
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

    def _neighbours(self, number: int) -> NDArray[np.int64] | None:
        count = self.settings.neighbours
        if not count or self.settings.stages[number].kind not in (HARD, MODULAR):
            return None
        kept = self._near if self.position.step else None
        return stage_neighbours(self.towers, self.data, self.features, count, self.out, self.processes, kept)

    def _is_due(self, stage: Stage, every: int) -> bool:
        return self.position.step == stage.steps or (bool(every) and self.position.step % every == 0)

    def _flush(self, stage: Stage) -> None:
        """Fetch the numbers of the last steps, and say them."""
        if not self._waiting:
            return
        numbers = self.computing.mean(torch.stack([values for _, _, values in self._waiting])).tolist()
        seconds = time.monotonic() - self._began
        for (step, rate, _), (loss, norm, scale) in zip(self._waiting, numbers, strict=True):
            total = self.position.total - self.position.step + step
            if not math.isfinite(loss):
                raise TrainingError(
                    f"the loss of step {step} of the stage {stage.kind} is {loss}: the learning rate {rate:g} may be "
                    "too high. The last state in the folder is from before; a lower rate needs another --out"
                )
            if self.log is not None:
                values = (total, stage.kind, step, loss, rate, scale, norm, round(seconds, 3))
                self.log.step(dict(zip(COLUMNS, values, strict=True)))
        self._bar.advance(stage.kind, [loss for loss, _, _ in numbers])
        self._waiting.clear()

    def _validate_and_stop(self, stage: Stage) -> bool:
        """Evaluate, keep a model that is better than all before; returns whether the stage is to end."""
        if not self._validates:
            return False
        self._flush(stage)
        score = 0.0
        if self._validate is not None:
            values = self._validate(self.towers.open_encoder(), self.position.total)
            if not values:
                raise TrainingError("the evaluation gave no score")
            score = float(next(iter(values.values())))
            assert self.log is not None
            self.log.evaluation(self.position.total, stage.kind, values)
        # The main process alone has evaluated; what follows from it is the same in all.
        score = float(json.loads(self.processes.tell(json.dumps(score))))
        best, stage_best = self.position.best, self.position.stage_best
        # What has nothing to score is no number, and no model is the best by it.
        is_number = not math.isnan(score)
        is_best = is_number and (best is None or score > best)
        is_better = is_number and (stage_best is None or score > stage_best)
        self._bar.evaluated(stage.kind, score, is_best)
        if is_best and self.processes.is_main:
            save_model(self.towers, self.out / BEST, Record(self.settings.values(), self.facts))
        self.position = replace(
            self.position,
            best=score if is_best else best,
            best_step=self.position.total if is_best else self.position.best_step,
            stage_best=score if is_better else stage_best,
            stale=0 if is_better else self.position.stale + 1,
        )
        return bool(self.settings.patience) and self.position.stale >= self.settings.patience

    def _keep(self, optimizer: torch.optim.Optimizer | None) -> None:
        """Write the state to the disk."""
        if optimizer is not None:
            self._flush(self.settings.stages[self.position.stage])
        if hasattr(self, "_began"):
            self.position = replace(self.position, seconds=round(time.monotonic() - self._began, 3))
        if self.processes.is_main:
            tables = {} if self.log is None else self.log.tables
            state = Checkpoint(self.position, tables, self._near if self.position.step else None)
            save_checkpoint(self.out, state, self.towers, optimizer, self.computing.scaler)
        # None goes on before there is a state to go back to, and none reads it before it is whole.
        self.processes.wait()


def save_model(towers: TwoTowers, folder: Path, record: Record) -> None:
    """Write a model into a folder of its own, in the place of what is there, with a record that has its digests."""
    partial = partial_path(folder)
    shutil.rmtree(partial, ignore_errors=True)
    try:
        towers.save(partial)
        files = digests_of(partial, partial.iterdir())
        write_whole(partial / RECORD, replace(record, files=files).to_json())
        if folder.exists():
            shutil.rmtree(folder)
        partial.replace(folder)
    finally:
        shutil.rmtree(partial, ignore_errors=True)


@contextmanager
def _closing(stream: Iterator[Batch]) -> Iterator[None]:
    """End the threads of a stream, however the stage ends."""
    try:
        yield
    finally:
        close = getattr(stream, "close", None)
        if close is not None:
            close()
