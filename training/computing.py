"""Where and how a training computes: its processes, the device of this one, the precision of its products."""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext

import torch
from torch import Tensor

from audio_compositionality.encoders.inference import resolve_device
from audio_compositionality.evaluator.run.processes import LONGEST_WAIT, Processes
from audio_compositionality.support.errors import InputError

from .errors import TrainingError

_joined: Processes | None = None


def join_training(device: str | None) -> Processes:
    """The processes that a launcher has started, which share gradients; a single one where none has.

    They are joined by NCCL where each has a GPU, else by gloo; what is told in words passes through gloo, so that all
    may wait for as long as the main process evaluates.

    Args:
        device: torch device that is asked for; None for a GPU where there is one.

    Raises:
        InputError: variables of the launcher are missing.
    """
    global _joined
    if _joined is None:
        _joined = _join(device) if int(os.environ.get("WORLD_SIZE") or 1) > 1 else Processes()
    return _joined


def _join(device: str | None) -> Processes:
    missing = [name for name in ("RANK", "MASTER_ADDR", "MASTER_PORT") if name not in os.environ]
    if missing:
        raise InputError(
            f"WORLD_SIZE is {os.environ['WORLD_SIZE']}, but {', '.join(missing)} is not set: start the processes with "
            "torchrun or accelerate launch, or unset WORLD_SIZE for a single one"
        )
    from accelerate import PartialState
    from torch.distributed import new_group

    on_gpu = torch.cuda.is_available() and (device is None or device.startswith("cuda"))
    state = PartialState(cpu=not on_gpu)
    return Processes(state, new_group(timeout=LONGEST_WAIT, backend="gloo"))


class Computing:
    """The device and the precision of one process.

    Attributes:
        processes: those that work together.
        device: of this one.
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
        """The context in which models compute."""
        if self.precision == "no":
            return nullcontext()
        return torch.autocast(self.device.type, torch.bfloat16 if self.precision == "bf16" else torch.float16)

    def backward(self, accumulate: int) -> Callable[[Tensor], object]:
        """What carries a loss back to the weights, where each step has so many batches."""

        def carry(loss: Tensor) -> None:
            self.scaler.scale(loss / accumulate).backward()  # type: ignore[no-untyped-call]

        return carry

    def mean(self, values: Tensor) -> Tensor:
        """The mean over all processes of some numbers that each has."""
        if self.processes.count == 1:
            return values
        total = values.clone()
        torch.distributed.all_reduce(total)
        return total / self.processes.count
