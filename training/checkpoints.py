"""Where a training stands, in one file that is always whole: a run that was killed goes on from it."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file

from audio_compositionality.support.files import partial_path, permit_as_new, remove_partial_files
from audio_compositionality.support.text import first_line, shown

from .errors import TrainingError
from .model import TwoTowers

FOLDER = "checkpoint"
FILE = "state.safetensors"
VERSION = "1"
"""Of the file's content; another is refused."""

WEIGHT, MOMENT = "weight/", "optimizer/"
"""What stands in front of the names of weights and buffers, and of what the optimizer keeps of each weight."""


@dataclass(frozen=True)
class Position:
    """Where a training stands, between two steps.

    Attributes:
        stage: number of the stage that comes next or goes on, from 0; that of stages where all are done.
        step: steps of it that are done.
        total: steps of the optimizer that were made in all stages.
        best: the highest score of all evaluations; None before the first.
        best_step: `total` at that time.
        stage_best: the highest score in this stage.
        stale: evaluations of this stage since.
        seconds: that the training has taken.
    """

    stage: int = 0
    step: int = 0
    total: int = 0
    best: float | None = None
    best_step: int | None = None
    stage_best: float | None = None
    stale: int = 0
    seconds: float = 0.0


def save_checkpoint(
    out: Path,
    position: Position,
    towers: TwoTowers,
    optimizer: torch.optim.Optimizer | None,
    scaler: torch.amp.GradScaler | None = None,
) -> None:
    """Write the state; the one before stays until this one is on the disk.

    Args:
        out: folder of the run.
        position: where it stands.
        towers: with all weights, also those that are not trained: what a run began with may be gone when it goes on.
        optimizer: None between two stages.
        scaler: of float16, whose scale is then to be had again.
    """
    tensors = {WEIGHT + name: tensor.detach().cpu().contiguous() for name, tensor in _unique(towers).items()}
    names = {id(weight): name for name, weight in towers.named_trained()}
    for weight, state in optimizer.state.items() if optimizer is not None else ():
        for key, value in state.items():
            tensors[f"{MOMENT}{key}/{names[id(weight)]}"] = torch.as_tensor(value).detach().cpu().contiguous()
    path = out / FOLDER / FILE
    path.parent.mkdir(parents=True, exist_ok=True)
    remove_partial_files(path.parent)
    partial = partial_path(path)
    scale = scaler.state_dict() if scaler is not None else {}
    metadata = {"version": VERSION, "position": json.dumps(asdict(position)), "scaler": json.dumps(scale)}
    try:
        save_file(tensors, partial, metadata)
        permit_as_new(partial)
        with partial.open("rb+") as stream:
            os.fsync(stream.fileno())
        partial.replace(path)
    except (OSError, SafetensorError) as error:
        if isinstance(error, OSError):
            raise
        raise OSError(f"cannot write {path}: {first_line(error)}") from error
    finally:
        partial.unlink(missing_ok=True)


def read_position(out: Path) -> Position | None:
    """Where the training in a folder stands; None where it has not begun.

    Raises:
        TrainingError: the file cannot be read, or is of another version.
    """
    path = out / FOLDER / FILE
    if not path.exists():
        return None
    try:
        with safe_open(path, "pt") as stored:
            metadata = stored.metadata() or {}
        if metadata.get("version") != VERSION:
            raise TrainingError(
                f"{path} has the version {metadata.get('version')}, and this program reads {VERSION}: go on with the "
                "version that began the training, or begin again in another folder"
            )
        return _checked(json.loads(metadata["position"]))
    except (OSError, SafetensorError, KeyError, TypeError, ValueError, RecursionError) as error:
        if isinstance(error, TrainingError):
            raise
        raise TrainingError(_unreadable(path, error)) from error


def load_checkpoint(
    out: Path,
    towers: TwoTowers,
    optimizer: torch.optim.Optimizer | None,
    scaler: torch.amp.GradScaler | None = None,
) -> None:
    """Give the towers, the optimizer and the scaler the state in a folder, bit for bit.

    Args:
        out: folder of the run.
        towers: of the model that it began with.
        optimizer: made for them; None between two stages.
        scaler: of float16.

    Raises:
        TrainingError: the file cannot be read, or is not of this model.
    """
    path = out / FOLDER / FILE
    trained = dict(towers.named_trained())
    moments: dict[str, dict[str, torch.Tensor]] = {}
    try:
        with safe_open(path, "pt") as stored:
            names = set(stored.keys())
            expected = _unique(towers)
            strange = sorted({WEIGHT + name for name in expected} ^ {name for name in names if name.startswith(WEIGHT)})
            if strange:
                raise TrainingError(f"{path} is of another model: {shown(strange)} does not stand in both")
            with torch.no_grad():
                for name, tensor in expected.items():
                    tensor.copy_(_shaped(stored.get_tensor(WEIGHT + name), tensor, name))
            for name in names if optimizer is not None else ():
                if name.startswith(MOMENT):
                    key, _, of_weight = name.removeprefix(MOMENT).partition("/")
                    moment = stored.get_tensor(name)
                    like = moment.new_zeros(()) if key == "step" else trained[of_weight]
                    moments.setdefault(of_weight, {})[key] = _shaped(moment, like, name)
            scale = json.loads((stored.metadata() or {})["scaler"])
            if scaler is not None and scale:
                scaler.load_state_dict(scale)
    except (OSError, SafetensorError, RuntimeError, KeyError, TypeError, ValueError) as error:
        if isinstance(error, TrainingError):
            raise
        raise TrainingError(_unreadable(path, error)) from error
    if optimizer is not None:
        for name, state in moments.items():
            weight = trained[name]
            # The optimizer counts its steps on the CPU.
            optimizer.state[weight] = {k: v if k == "step" else v.to(weight.device) for k, v in state.items()}


def _checked(values: Mapping[str, Any]) -> Position:
    """A position whose values are of the right types.

    Raises:
        TypeError: they are not.
    """
    position = Position(**values)
    for name in ("stage", "step", "total", "stale"):
        value = getattr(position, name)
        if not isinstance(value, int) or value < 0:
            raise TypeError(f"{name} is {value!r}")
    for name in ("best", "best_step", "stage_best", "seconds"):
        value = getattr(position, name)
        if not isinstance(value, int | float) and not (value is None and name != "seconds"):
            raise TypeError(f"{name} is {value!r}")
    return position


def _shaped(tensor: torch.Tensor, like: torch.Tensor, name: str) -> torch.Tensor:
    """A tensor that has the shape of another.

    Raises:
        TypeError: it has not.
    """
    if tensor.shape != like.shape:
        raise TypeError(f"{name} has the shape {list(tensor.shape)}, but must have {list(like.shape)}")
    return tensor


def _unique(towers: TwoTowers) -> dict[str, torch.Tensor]:
    """Weights and buffers by their names, each once where modules share it."""
    state: dict[str, torch.Tensor] = dict(towers.named_parameters())
    return {**state, **dict(towers.named_buffers())}


def _unreadable(path: Path, error: Exception) -> str:
    return (
        f"cannot read the state of the training in {path}: {first_line(error)}. Delete the folder {path.parent} "
        "to begin again, or give another --out"
    )
