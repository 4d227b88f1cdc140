"""What a training says while it works: a table of its steps, events for programs that draw them, a bar for people."""

from __future__ import annotations

import csv
import io
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any, Protocol

from tqdm.auto import tqdm

from audio_compositionality.support.files import write_whole

from .errors import TrainingError
from .settings import TrainingSettings

STEPS, EVALUATIONS = "log.csv", "evaluations.csv"
COLUMNS = ("step", "stage", "stage_step", "loss", "learning_rate", "scale", "gradient_norm", "seconds")
"""Of the table of steps; steps are counted from 1, over all stages and within one."""

EVALUATION_COLUMNS = ("step", "stage", "name", "value")
_SMOOTHED = 0.98
_LINES = 20
"""Lines of progress, at most about, where there is no terminal."""


class Program(Protocol):
    """What draws curves."""

    def write(self, values: Mapping[str, float], step: int) -> None:
        """Take the numbers of a step."""

    def close(self) -> None:
        """Write what is left."""


class TensorBoard:
    """Events in a folder, for `tensorboard --logdir`."""

    def __init__(self, out: Path, step: int) -> None:
        """Open the folder; what a run that was killed wrote behind `step` is hidden."""
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
        """Begin, or go on with, the run."""
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
    return TrainingError(f"--log-to {extra} needs {extra}: pip install 'audio-compositionality[{extra}]' ({error})")


class RunLog:
    """The log of a run, written by its main process."""

    def __init__(self, out: Path, settings: TrainingSettings, step: int) -> None:
        """Open the tables, without what a run that was killed wrote behind its last checkpoint.

        Args:
            out: folder of the run.
            settings: of the run.
            step: that it goes on from.

        Raises:
            TrainingError: a program that is to draw is not installed.
        """
        self.programs: list[Program] = [PROGRAMS[name](out, step) for name in settings.log_to]
        for name, columns in ((STEPS, COLUMNS), (EVALUATIONS, EVALUATION_COLUMNS)):
            _cut(out / name, columns, step)
        # Each line is on its way to the disk when it is written.
        self._steps = (out / STEPS).open("a", encoding="utf-8", newline="", buffering=1)
        self._evaluations = (out / EVALUATIONS).open("a", encoding="utf-8", newline="", buffering=1)

    def step(self, values: Mapping[str, float | int | str]) -> None:
        """Write a step: a value for each of `COLUMNS`."""
        csv.writer(self._steps).writerow([_text(values[name]) for name in COLUMNS])
        curves = {f"train/{k}": float(values[k]) for k in ("loss", "learning_rate", "scale", "gradient_norm")}
        for program in self.programs:
            program.write(curves, int(values["step"]))

    def evaluation(self, step: int, stage: str, values: Mapping[str, float]) -> None:
        """Write an evaluation."""
        writer = csv.writer(self._evaluations)
        writer.writerows([step, stage, name, _text(value)] for name, value in values.items())
        for program in self.programs:
            program.write({f"validation/{name}": value for name, value in values.items()}, step)

    def close(self) -> None:
        """Close everything."""
        for stream in (self._steps, self._evaluations):
            stream.close()
        for program in self.programs:
            program.close()


def read_log(path: Path) -> list[dict[str, str]]:
    """The rows of a table of a log; none where it is not there."""
    if not path.exists():
        return []
    with path.open(encoding="utf-8", newline="") as stream:
        return list(csv.DictReader(stream))


def _cut(path: Path, columns: Sequence[str], step: int) -> None:
    """Leave in a table what is of steps up to one, or make it."""
    kept = [row for row in read_log(path) if str(row.get("step")).isdigit() and int(row["step"]) <= step]
    text = io.StringIO()
    csv.writer(text).writerows([columns, *([row.get(name) or "" for name in columns] for row in kept)])
    write_whole(path, text.getvalue())


def _text(value: float | int | str) -> str:
    return repr(value) if isinstance(value, float) else str(value)


class Progress:
    """A bar in a terminal; elsewhere a line now and then. Both have the loss and how long it will take."""

    def __init__(self, total: int, first: int, *, shown: bool) -> None:
        """Begin.

        Args:
            total: steps of the run.
            first: steps that are done.
            shown: whether anything is said.
        """
        self._total, self._first, self._done = total, first, first
        self._began = time.monotonic()
        self._loss: float | None = None
        self._score = ""
        self._lines = shown and not sys.stderr.isatty()
        self._said = time.monotonic()
        hidden = not shown or self._lines
        self._bar: tqdm[Any] = tqdm(total=total, initial=first, desc="train", unit="step", disable=hidden)

    def advance(self, stage: str, losses: Sequence[float]) -> None:
        """Count steps, by their losses."""
        for loss in losses:
            self._loss = loss if self._loss is None else _SMOOTHED * self._loss + (1 - _SMOOTHED) * loss
        before, self._done = self._done, self._done + len(losses)
        self._bar.set_description(stage, refresh=False)
        self._bar.set_postfix_str(f"loss {self._loss:.3f}{self._score}", refresh=False)
        self._bar.update(len(losses))
        every = max(self._total // _LINES, 1)
        if self._lines and (self._done // every > before // every or self._done == self._total):
            print(self._line(stage), file=sys.stderr, flush=True)

    def skip(self, steps: int) -> None:
        """Leave out steps that will not be made."""
        self._done += steps
        self._bar.update(steps)

    def evaluated(self, stage: str, score: float, best: bool) -> None:
        """Say what an evaluation came to."""
        self._score = f", score {score:.3f}"
        if self._lines:
            mark = ", the best so far" if best else ""
            print(f"step {self._done:,}, {stage}: score {score:.3f}{mark}", file=sys.stderr, flush=True)

    def close(self) -> None:
        """Leave the bar as it is."""
        self._bar.close()

    def _line(self, stage: str) -> str:
        each = (time.monotonic() - self._began) / max(self._done - self._first, 1)
        left = each * (self._total - self._done)
        return (
            f"step {self._done:,} of {self._total:,}, {stage}: loss {self._loss:.3f}, {each:.2f} s a step, "
            f"{duration_text(left)} left"
        )


def duration_text(seconds: float) -> str:
    """A duration in its largest unit, about."""
    if seconds < 90:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"
