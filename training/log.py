"""The log of a training: tables of its steps and evaluations, and the experiment trackers of accelerate."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from accelerate import PartialState
from accelerate.tracking import LOGGER_TYPE_TO_CLASS, get_available_trackers

from audio_compositionality.support.files import write_whole
from audio_compositionality.support.table import csv_text

from .settings import TrainingError

STEPS, EVALUATIONS = "log.csv", "evaluations.csv"
STEP_COLUMNS = ("step", "stage", "stage_step", "loss", "learning_rate", "scale", "gradient_norm", "seconds")
"""Columns of the table of steps; steps are counted from 1, over all stages and within one."""

_COLUMNS: Mapping[str, Sequence[str]] = {STEPS: STEP_COLUMNS, EVALUATIONS: ("step", "stage", "name", "value")}
_CURVES = ("loss", "learning_rate", "scale", "gradient_norm")


def check_trackers(names: Sequence[str]) -> None:
    """Raise an error for trackers that are not installed, before anything is computed.

    Raises:
        TrainingError: names the package.
    """
    available = [str(name) for name in get_available_trackers()]
    for name in names:
        if name not in available:
            raise TrainingError(f"log_to={name} needs the package of that name, which is not installed")


class RunLog:
    """The log of a run, written by its main process. Every checkpoint holds its tables, which are not read back."""

    def __init__(self, out: Path, log_to: Sequence[str], step: int, tables: Mapping[str, str]) -> None:
        """Write the tables, without the rows that a killed run wrote after its last checkpoint.

        Args:
            out: folder of the run; a tracker that writes files gets a folder of its name in it.
            log_to: names of accelerate's trackers; their project is the folder's parent, their run the folder.
            step: step from which the run continues.
            tables: tables of its checkpoint, see `tables`; empty for a new run.
        """
        self._rows = {name: [tables.get(name, csv_text([columns]))] for name, columns in _COLUMNS.items()}
        for name, text in self.tables.items():
            write_whole(out / name, text)
        # Each line is flushed when it is written.
        self._files = {name: (out / name).open("a", encoding="utf-8", newline="", buffering=1) for name in _COLUMNS}
        run = out.resolve()
        options: Mapping[str, Mapping[str, Any]] = {
            # Events that a killed run wrote after `step` are hidden.
            "tensorboard": {"purge_step": step + 1},
            "trackio": {"name": run.name, "resume": "allow"},
            "wandb": {"name": run.name},
        }
        self._trackers = []
        if log_to:
            # Trackers write to accelerate's log, which needs this state.
            PartialState()
        for name in log_to:
            kind = LOGGER_TYPE_TO_CLASS[name]
            folder = (run / name,) if kind.requires_logging_directory else ()
            tracker = kind(run.parent.name or "training", *folder, **options.get(name, {}))
            tracker.start()
            self._trackers.append(tracker)

    @property
    def tables(self) -> dict[str, str]:
        """The text of both tables, by the names of their files."""
        return {name: "".join(rows) for name, rows in self._rows.items()}

    def step(self, values: Mapping[str, float | int | str]) -> None:
        """Write a step: a value for each of `STEP_COLUMNS`."""
        self._add(STEPS, [[values[name] for name in STEP_COLUMNS]])
        for tracker in self._trackers:
            tracker.log({f"train/{name}": values[name] for name in _CURVES}, step=int(values["step"]))

    def evaluation(self, step: int, stage: str, values: Mapping[str, float]) -> None:
        """Write an evaluation."""
        self._add(EVALUATIONS, ([step, stage, name, value] for name, value in values.items()))
        for tracker in self._trackers:
            tracker.log({f"validation/{name}": value for name, value in values.items()}, step=step)

    def close(self) -> None:
        """Close everything."""
        for file in self._files.values():
            file.close()
        for tracker in self._trackers:
            tracker.finish()

    def _add(self, name: str, rows: Iterable[Sequence[object]]) -> None:
        text = csv_text(rows)
        self._rows[name].append(text)
        self._files[name].write(text)


def log_rows(text: str) -> list[dict[str, str]]:
    """Return the rows of a table of a log."""
    return list(csv.DictReader(io.StringIO(text, newline="")))
