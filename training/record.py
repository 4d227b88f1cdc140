"""`training.json` and `settings.yaml`: what a run is of, which one that goes on must be of too, and what came of it."""

from __future__ import annotations

import importlib.metadata
import platform
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from audio_compositionality.encoders.base import ModelError
from audio_compositionality.encoders.loading.records import RECORD, RECORD_VERSION, check_recorded_files, read_values
from audio_compositionality.support.checked_files import DamagedError, sealed_json
from audio_compositionality.support.files import write_together
from audio_compositionality.support.spec import check_depth
from audio_compositionality.support.text import first_line

from .errors import TrainingError
from .settings import TrainingSettings, differences

SETTINGS = "settings.yaml"

_LIBRARIES = ("audio-compositionality", "accelerate", "numpy", "torch", "transformers")
_MAY_STAND = {".lock", "slurm.out"}


@dataclass(frozen=True)
class DataFacts:
    """What rows are learnt from.

    Attributes:
        source: where they come from, as their data state it.
        recipe: its name; None where they are of none.
        fingerprint: of the data.
        rows: of the split that is learnt from.
        described: the data in a few words, for cards of models.
    """

    source: str
    recipe: str | None
    fingerprint: str
    rows: int
    described: str


@dataclass(frozen=True)
class Record:
    """What `training.json` says.

    Attributes:
        settings: as `TrainingSettings.values` has them.
        data: what rows are learnt from.
        finished: whether all stages are done.
        outcome: what came of it, by name; empty before the end.
        files: SHA-256 of the files of the model beside the record, by their names.
    """

    settings: Mapping[str, Any]
    data: DataFacts
    finished: bool = False
    outcome: Mapping[str, Any] = field(default_factory=dict)
    files: Mapping[str, str] = field(default_factory=dict)

    def values(self) -> dict[str, Any]:
        """The values, as JSON has them."""
        return {
            "version": RECORD_VERSION,
            "finished": self.finished,
            "recipe": self.data.recipe,
            "data": self.data.source,
            "fingerprint": self.data.fingerprint,
            "rows": self.data.rows,
            "trained_on": self.data.described,
            "settings": dict(self.settings),
            "libraries": library_versions(),
            **self.outcome,
            "files": dict(self.files),
        }

    def to_json(self) -> bytes:
        """The file's text, with a digest of it."""
        return sealed_json(self.values())


def library_versions() -> dict[str, str]:
    """Versions of this package, Python and the libraries that compute."""
    return {"python": platform.python_version(), **{name: importlib.metadata.version(name) for name in _LIBRARIES}}


def write_record(out: Path, record: Record, settings: TrainingSettings) -> None:
    """Write both files."""
    write_together({out / SETTINGS: settings.to_yaml(), out / RECORD: record.to_json()})


def read_record(out: Path) -> dict[str, Any] | None:
    """The values of the record in a folder; None where there is none.

    Raises:
        TrainingError: it cannot be read, or is not what was written.
        InputError: its settings have lists in one another.
    """
    path = out / RECORD
    if not path.exists():
        return None
    try:
        values = read_values(path)
    except DamagedError as error:
        raise TrainingError(f"{error}; put a whole copy in its place, or give another --out") from error
    except (OSError, ValueError, RecursionError) as error:
        raise TrainingError(f"cannot read {path}: {first_line(error)}") from error
    settings = values.get("settings")
    if not isinstance(settings, dict) or (values.get("finished") and not isinstance(values.get("steps"), int)):
        raise TrainingError(f"{path} is no record of a training")
    check_depth(settings, path)
    return dict(values)


def check_model(out: Path, values: Mapping[str, Any]) -> None:
    """Refuse the files of a model that are not those that the training wrote.

    Args:
        out: their folder.
        values: of its record.

    Raises:
        TrainingError: one was changed, or is missing.
    """
    try:
        check_recorded_files(values, lambda name: path if (path := out / name).is_file() else None, out)
    except ModelError as error:
        raise TrainingError(str(error)) from error


def check_out(out: Path, settings: TrainingSettings, data: DataFacts | None = None) -> dict[str, Any] | None:
    """Refuse a folder that holds something else than this training; returns its record, None of a new one.

    Args:
        out: the folder, which need not be there.
        settings: of the training that is asked for.
        data: what it is to learn from; None where that is not open yet.

    Raises:
        TrainingError: a run with other settings or of other data, which are named, or files that no training wrote.
    """
    if out.exists() and not out.is_dir():
        raise TrainingError(f"{out} is a file; --out is a folder")
    values = read_record(out)
    if values is None:
        strange = sorted(path.name for path in out.iterdir() if path.name not in _MAY_STAND) if out.is_dir() else []
        strange = [name for name in strange if not name.endswith(".partial")]
        if strange:
            raise TrainingError(
                f"{out} holds {strange[0]}, but no training; give a folder that is new or empty as --out"
            )
        return None
    differing = differences(values["settings"], settings.values())
    if data is not None and values.get("fingerprint") != data.fingerprint:
        stored = str(values.get("fingerprint"))[:12]
        differing.append(f"the data ({data.source}) have the fingerprint {data.fingerprint[:12]} where it was {stored}")
    if differing:
        raise TrainingError(
            f"{out} holds a training with other settings: {'; '.join(differing)}. Give those to go on with it, or "
            "another --out"
        )
    return values
