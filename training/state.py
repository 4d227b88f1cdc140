"""The state of a training, in one file that is always complete: a killed run resumes from it.

The file states its digest, and the previous one is kept: if a bit of the last file has changed, the run resumes
from the previous one, with a warning. The state includes the tables of the log and the neighbours.
"""

from __future__ import annotations

import json
import warnings
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from pydantic import NonNegativeInt, TypeAdapter
from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file

from audio_compositionality.support.checked_files import DIGEST, NO_DIGEST, check_sealed_file, write_sealed_file
from audio_compositionality.support.files import remove_partial_files
from audio_compositionality.support.text import first_line, shown

from .model import TwoTowers
from .settings import TrainingError

FOLDER = "checkpoint"
FILE, FILE_BEFORE = "state.safetensors", "state-before.safetensors"
VERSION = 3
"""Version of the file's content; other versions are refused."""

WEIGHT, MOMENT, TABLE = "weight/", "optimizer/", "table/"
"""The prefixes of the names of weights and buffers, of the optimizer's state of each, and of tables."""

NEIGHBOURS = "neighbours"

_STATED = "state"
"""Name of the file's only entry of text, JSON that begins with the digest."""


@dataclass(frozen=True)
class Position:
    """The position of a training, between two steps.

    Attributes:
        stage: number of the current stage, from 0; the number of stages when all are done.
        step: finished steps of the stage.
        total: finished steps of all stages.
        best: highest score of all evaluations; None before the first.
        best_step: `total` at that time.
        stage_best: highest score in this stage.
        stale: evaluations of this stage since.
        seconds: duration of the training so far.
    """

    stage: NonNegativeInt = 0
    step: NonNegativeInt = 0
    total: NonNegativeInt = 0
    best: float | None = None
    best_step: int | None = None
    stage_best: float | None = None
    stale: NonNegativeInt = 0
    seconds: float = 0.0


@dataclass(frozen=True)
class TrainingState:
    """The content of a file apart from the weights and the optimizer's state.

    Attributes:
        position: position of the training.
        tables: tables of the log, text by the names of their files.
        neighbours: of every row in the embedding at the start of the stage, int64 [rows, count]; None if no stage
            that needs them has begun.
        path: path of the file.
    """

    position: Position
    tables: Mapping[str, str] = field(default_factory=dict)
    neighbours: NDArray[np.int64] | None = None
    path: Path = Path(FILE)


def save_checkpoint(
    out: Path,
    checkpoint: TrainingState,
    towers: TwoTowers,
    optimizer: torch.optim.Optimizer | None,
    scaler: torch.amp.GradScaler | None = None,
    *,
    owner: str,
) -> None:
    """Write the state; the previous one is kept.

    Args:
        out: folder of the run.
        checkpoint: position, tables and neighbours; its `path` is ignored.
        towers: towers with all weights, also frozen ones: the initial model may be gone when the run resumes.
        optimizer: None between two stages.
        scaler: scaler of float16, whose scale is kept.
        owner: digest of the settings and the data of the training.
    """
    tensors = {WEIGHT + name: tensor.detach().cpu().contiguous() for name, tensor in _unique(towers).items()}
    names = {id(weight): name for name, weight in towers.named_trained()}
    for weight, state in optimizer.state.items() if optimizer is not None else ():
        for key, value in state.items():
            tensors[f"{MOMENT}{key}/{names[id(weight)]}"] = torch.as_tensor(value).detach().cpu().contiguous()
    for name, text in checkpoint.tables.items():
        tensors[TABLE + name] = torch.from_numpy(np.frombuffer(text.encode(), np.uint8).copy())
    if checkpoint.neighbours is not None:
        tensors[NEIGHBOURS] = torch.from_numpy(np.array(checkpoint.neighbours))
    path = out / FOLDER / FILE
    path.parent.mkdir(parents=True, exist_ok=True)
    remove_partial_files(path.parent)
    scale = scaler.state_dict() if scaler is not None else {}
    stated = {DIGEST: NO_DIGEST, "version": VERSION, "owner": owner, "scaler": scale}
    stated |= {"position": asdict(checkpoint.position)}
    try:
        # A single entry: safetensors writes several in any order.
        write_sealed_file(
            path,
            lambda partial: save_file(tensors, partial, {_STATED: json.dumps(stated)}),
            before=path.with_name(FILE_BEFORE),
        )
    except SafetensorError as error:
        raise OSError(f"cannot write {path}: {first_line(error)}") from error


def find_checkpoint(out: Path, owner: str) -> TrainingState | None:
    """Return the state of the training in a folder; None if it has not begun.

    If the file is damaged, the previous one is taken, with a warning. Each file is read once from end to end.

    Args:
        out: folder of the run.
        owner: digest of its settings and data, see `save_checkpoint`.

    Raises:
        TrainingError: neither file can be read, or they are of another training or version.
    """
    path, before = out / FOLDER / FILE, out / FOLDER / FILE_BEFORE
    if not path.exists() and not before.exists():
        return None
    try:
        return _read(path, owner)
    except _UNREADABLE as error:
        try:
            stored = _read(before, owner)
        except _UNREADABLE:
            raise _unreadable(path, error) from error
        reason = "is missing" if isinstance(error, FileNotFoundError) else f"cannot be used ({first_line(error)})"
        warnings.warn(
            f"the last state of the training, {path}, {reason}: it resumes from the previous one, of step "
            f"{stored.position.total}",
            stacklevel=2,
        )
        return stored


_UNREADABLE = (OSError, SafetensorError, KeyError, TypeError, ValueError, RecursionError)


def _read(path: Path, owner: str) -> TrainingState:
    """Read the checkpoint in a file and verify its digest."""
    check_sealed_file(path)
    with safe_open(path, "np") as stored:
        stated = json.loads((stored.metadata() or {})[_STATED])
        if stated["version"] != VERSION:
            raise TrainingError(
                f"{path} has the version {stated['version']}, but this program reads {VERSION}: resume with the "
                "version that began the training, or start again in another folder"
            )
        if stated["owner"] != owner:
            raise TrainingError(f"{path} belongs to a training with other settings or data")
        names = list(stored.keys())
        tables = {
            name.removeprefix(TABLE): stored.get_tensor(name).tobytes().decode()
            for name in names
            if name.startswith(TABLE)
        }
        neighbours = stored.get_tensor(NEIGHBOURS) if NEIGHBOURS in names else None
    position = TypeAdapter(Position).validate_json(json.dumps(stated["position"]), strict=True)
    return TrainingState(position, tables, neighbours, path)


def load_checkpoint(
    out: Path,
    towers: TwoTowers,
    optimizer: torch.optim.Optimizer | None,
    scaler: torch.amp.GradScaler | None = None,
) -> None:
    """Restore the state of the towers, the optimizer and the scaler from a folder, bit for bit, from the file that
    `find_checkpoint` has verified and renamed to the last one.

    Args:
        out: folder of the run.
        towers: towers of the model with which it began.
        optimizer: optimizer made for them; None between two stages.
        scaler: scaler of float16.

    Raises:
        TrainingError: the file cannot be read, or is of another model.
    """
    path, trained, weights = out / FOLDER / FILE, dict(towers.named_trained()), _unique(towers)
    try:
        with safe_open(path, "pt") as stored, torch.no_grad():
            names = set(stored.keys())
            strange = sorted({WEIGHT + name for name in weights} ^ {name for name in names if name.startswith(WEIGHT)})
            if strange:
                raise TrainingError(f"{path} is of another model: {shown(strange)} is not in both")
            for name, weight in weights.items():
                weight.copy_(_shaped(stored.get_tensor(WEIGHT + name), weight, name))
            for name in sorted(names):
                if optimizer is not None and name.startswith(MOMENT):
                    key, _, of_weight = name.removeprefix(MOMENT).partition("/")
                    weight, moment = trained[of_weight], stored.get_tensor(name)
                    if key != "step":
                        # The optimizer counts its steps on the CPU.
                        moment = _shaped(moment, weight, name).to(weight.device)
                    optimizer.state[weight][key] = moment
            scale = json.loads((stored.metadata() or {})[_STATED])["scaler"]
            if scaler is not None and scale:
                scaler.load_state_dict(scale)
    except (*_UNREADABLE, RuntimeError) as error:
        raise _unreadable(path, error) from error


def _shaped(tensor: torch.Tensor, like: torch.Tensor, name: str) -> torch.Tensor:
    """Return a tensor if it has the shape of another.

    Raises:
        TypeError: the shapes differ.
    """
    if tensor.shape != like.shape:
        raise TypeError(f"{name} has the shape {list(tensor.shape)}, but must have {list(like.shape)}")
    return tensor


def _unique(towers: TwoTowers) -> dict[str, torch.Tensor]:
    """Return weights and buffers by their names, each once if modules share it."""
    state: dict[str, torch.Tensor] = dict(towers.named_parameters())
    return {**state, **dict(towers.named_buffers())}


def _unreadable(path: Path, error: Exception) -> TrainingError:
    return TrainingError(
        f"cannot read the state of the training in {path}: {first_line(error)}. Delete the folder {path.parent} "
        "to start again, or pass another --out"
    )
