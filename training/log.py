"""The log of a training: a table of its steps, events for programs that plot them, a bar for people."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Iterable, Mapping, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any, Protocol

from audio_compositionality.support.files import write_whole
from audio_compositionality.support.progress import make_bar

from .settings import Stage, TrainingError, TrainingSettings

STEPS, EVALUATIONS = "log.csv", "evaluations.csv"
STEP_COLUMNS = ("step", "stage", "stage_step", "loss", "learning_rate", "scale", "gradient_norm", "seconds")
"""Of the table of steps; steps are counted from 1, over all stages and within one."""

EVALUATION_COLUMNS = ("step", "stage", "name", "value")
_SMOOTHED = 0.98


class Program(Protocol):
    """A program that plots curves."""

    def write(self, values: Mapping[str, float], step: int) -> None:
        """Take the numbers of a step."""

    def close(self) -> None:
        """Write what is left."""


class TensorBoard:
    """Events in a folder, for `tensorboard --logdir`."""

    def __init__(self, out: Path, step: int) -> None:
        """Open the folder; events that a killed run wrote after `step` are hidden."""
        try:
            from torch.utils.tensorboard import SummaryWriter
        except ImportError as error:
            raise _missing("tensorboard", error) from error
        make: Any = SummaryWriter
        self._writer = make(str(out / "tensorboard"), purge_step=step + 1)

    def write(self, values: Mapping[str, float], step: int) -> None:
        """See `Program`."""
        for name, value in values.items():
            self._writer.add_scalar(name, value, step)

    def close(self) -> None:
        """See `Program`."""
        self._writer.close()


class Trackio:
    """A run of trackio, whose project is the folder's parent and whose name is the folder's."""

    def __init__(self, out: Path, step: int) -> None:
        """Begin the run, or go on with it."""
        try:
            trackio: Any = import_module("trackio")
        except ImportError as error:
            raise _missing("trackio", error) from error
        folder = out.resolve()
        self._trackio = trackio
        trackio.init(project=folder.parent.name or "training", name=folder.name, resume="allow")

    def write(self, values: Mapping[str, float], step: int) -> None:
        """See `Program`."""
        self._trackio.log(dict(values), step=step)

    def close(self) -> None:
        """See `Program`."""
        self._trackio.finish()


PROGRAMS: Mapping[str, Callable[[Path, int], Program]] = {"tensorboard": TensorBoard, "trackio": Trackio}


def check_programs(names: Sequence[str]) -> None:
    """Refuse programs that are not installed, before anything is computed.

    Raises:
        TrainingError: names the extra that has it.
    """
    for name in names:
        try:
            import_module(name)
        except ImportError as error:
            raise _missing(name, error) from error


def _missing(extra: str, error: ImportError) -> TrainingError:
    return TrainingError(f"log_to={extra} needs {extra}: pip install 'audio-compositionality[{extra}]' ({error})")


class RunLog:
    """The log of a run, written by its main process. Its tables are in every checkpoint, and are not read back."""

    def __init__(self, out: Path, settings: TrainingSettings, step: int, tables: Mapping[str, str]) -> None:
        """Write the tables, without the rows that a killed run wrote after its last checkpoint.

        Args:
            out: folder of the run.
            settings: of the run.
            step: that it goes on from.
            tables: of its checkpoint, see `tables`; empty where the run begins.

        Raises:
            TrainingError: a program that is to draw is not installed.
        """
        self.programs: list[Program] = [PROGRAMS[name](out, step) for name in settings.log_to]
        self._steps = _Table(out / STEPS, STEP_COLUMNS, tables.get(STEPS))
        self._evaluations = _Table(out / EVALUATIONS, EVALUATION_COLUMNS, tables.get(EVALUATIONS))

    @property
    def tables(self) -> dict[str, str]:
        """The text of both tables, by the names of their files."""
        return {STEPS: self._steps.text, EVALUATIONS: self._evaluations.text}

    def step(self, values: Mapping[str, float | int | str]) -> None:
        """Write a step: a value for each of `STEP_COLUMNS`."""
        self._steps.add([[_text(values[name]) for name in STEP_COLUMNS]])
        curves = {f"train/{k}": float(values[k]) for k in ("loss", "learning_rate", "scale", "gradient_norm")}
        for program in self.programs:
            program.write(curves, int(values["step"]))

    def evaluation(self, step: int, stage: str, values: Mapping[str, float]) -> None:
        """Write an evaluation."""
        self._evaluations.add([str(step), stage, name, _text(value)] for name, value in values.items())
        for program in self.programs:
            program.write({f"validation/{name}": value for name, value in values.items()}, step)

    def close(self) -> None:
        """Close everything."""
        for table in (self._steps, self._evaluations):
            table.close()
        for program in self.programs:
            program.close()


class _Table:
    """A table in a file that rows are added to, and its text."""

    def __init__(self, path: Path, columns: Sequence[str], text: str | None) -> None:
        """Write its content so far: its columns, or the text of a checkpoint."""
        self._kept = io.StringIO(newline="")
        if text is None:
            csv.writer(self._kept).writerow(columns)
        else:
            self._kept.write(text)
        write_whole(path, self.text)
        # Each line is flushed when it is written.
        self._stream = path.open("a", encoding="utf-8", newline="", buffering=1)

    @property
    def text(self) -> str:
        return self._kept.getvalue()

    def add(self, rows: Iterable[Sequence[str]]) -> None:
        """Write rows."""
        lines = io.StringIO(newline="")
        csv.writer(lines).writerows(rows)
        self._kept.write(lines.getvalue())
        self._stream.write(lines.getvalue())

    def close(self) -> None:
        """Close the file; the text stays."""
        self._stream.close()


def log_rows(text: str) -> list[dict[str, str]]:
    """The rows of a table of a log."""
    return list(csv.DictReader(io.StringIO(text, newline="")))


def _text(value: float | int | str) -> str:
    return repr(value) if isinstance(value, float) else str(value)


class TrainingProgress:
    """The bar of a training, with its loss and its last score."""

    def __init__(self, stages: Sequence[Stage], first: int, *, shown: bool) -> None:
        """Begin, with so many steps done."""
        steps = sum(stage.steps for stage in stages)
        self._bar = make_bar("training", "step", steps, shown=shown, done=first)
        self._loss: float | None = None
        self._score = ""

    def made(self, stage: str, losses: Sequence[float]) -> None:
        """Count steps of a stage with their losses."""
        for loss in losses:
            self._loss = loss if self._loss is None else _SMOOTHED * self._loss + (1 - _SMOOTHED) * loss
        self._bar.set_description_str(stage, refresh=False)
        self._bar.set_postfix_str(f"loss {self._loss:.3f}{self._score}", refresh=False)
        self._bar.update(len(losses))

    def skip(self, steps: int) -> None:
        """Leave out steps that will not be made."""
        self._bar.update(steps)

    def evaluated(self, score: float) -> None:
        """Report the score of an evaluation."""
        self._score = f", score {score:.3f}"

    def close(self) -> None:
        """Remove the bar."""
        self._bar.close()
