"""Several processes in one evaluation, on one machine or many, as torchrun or accelerate start them.

Each embeds its share of the clips into one cache on a file system that all of them share; the main process scores.
Processes exchange only a few lines of text, so they communicate by gloo on the CPU, whatever device they compute on. If
one fails, the launcher ends the others.
"""

from __future__ import annotations

import atexit
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from audio_compositionality.support.errors import AudioCompositionalityError, InputError
from audio_compositionality.support.text import first_line

if TYPE_CHECKING:
    from accelerate import PartialState

LONGEST_WAIT = timedelta(days=7)
"""Longest wait for the slowest process: a process whose share is cached waits while others compute."""


class ProcessError(AudioCompositionalityError):
    """Another process of the same evaluation has failed, or cannot be reached."""


class Processes:
    """The processes of an evaluation; a single one unless a launcher has started more.

    Attributes:
        rank: number of this process, counted from 0 over all machines.
        count: number of processes.
    """

    def __init__(self, state: PartialState | None = None, group: Any = None) -> None:
        """Create the handle of a single process, or of one among several.

        Args:
            state: accelerate's state if there are several processes.
            group: torch's process group of all of them.
        """
        self._state = state
        self._group = group
        self.rank: int = 0 if state is None else state.process_index
        self.count: int = 1 if state is None else state.num_processes

    @property
    def is_main(self) -> bool:
        """Whether this process scores, writes results and prints."""
        return self.rank == 0

    def stretch_of(self, count: int) -> range:
        """Return this process's share of `count` shards: consecutive ones, since neighbours are read together."""
        return range(self.rank * count // self.count, (self.rank + 1) * count // self.count)

    def device(self, requested: str | None) -> str | None:
        """Return the device to compute on; with several processes, each takes the GPU of its local rank.

        Args:
            requested: a torch device; None or ``cuda`` leaves the choice of a GPU open.
        """
        if self._state is None or requested not in (None, "cuda"):
            return requested
        import torch

        if not torch.cuda.is_available():
            return requested
        return f"cuda:{self._state.local_process_index % torch.cuda.device_count()}"

    @contextmanager
    def one_first(self) -> Iterator[None]:
        """Let one process of each machine run first, so that only one downloads."""
        first = self._state is None or self._state.is_local_main_process
        if not first:
            self.wait()
        yield
        if first:
            self.wait()

    def wait(self) -> None:
        """Wait until all processes have reached this point.

        Raises:
            ProcessError: another process has ended.
        """
        if self._state is None:
            return
        from torch.distributed import barrier

        with _connected():
            barrier(self._group)

    def from_main(self, text: str) -> str:
        """Return the main process's text, in every process.

        Raises:
            ProcessError: another process has ended.
        """
        if self._state is None:
            return text
        from torch.distributed import broadcast_object_list

        texts = [text]
        with _connected():
            broadcast_object_list(texts, group=self._group)
        return texts[0]


@contextmanager
def _connected() -> Iterator[None]:
    from torch.distributed import DistError

    try:
        yield
    except RuntimeError as error:
        # gloo raises plain RuntimeErrors.
        if isinstance(error, DistError) or "gloo" in str(error).lower() or "connection" in str(error).lower():
            raise ProcessError(f"another process has ended, or cannot be reached: {first_line(error)}") from error
        raise


_processes: Processes | None = None


def join_processes() -> Processes:
    """Return the processes that torchrun, ``accelerate launch`` or a batch system has started, see ``WORLD_SIZE``.

    The first call in a process waits for the others, half an hour at most.

    Raises:
        InputError: ``WORLD_SIZE`` is above 1 but the other variables of a launcher are missing.
        ProcessError: the others cannot be reached.
    """
    global _processes
    if _processes is None:
        _processes = join_launched(cpu=True) if int(os.environ.get("WORLD_SIZE") or 1) > 1 else Processes()
    return _processes


def join_launched(*, cpu: bool) -> Processes:
    """Return the processes that a launcher has started.

    Args:
        cpu: whether tensors are exchanged by gloo, on CPUs; else by the backend of their GPUs. Texts are always
            exchanged by gloo.

    Raises:
        InputError: variables of the launcher are missing.
        ProcessError: the others cannot be reached.
    """
    missing = [name for name in ("RANK", "MASTER_ADDR", "MASTER_PORT") if name not in os.environ]
    if missing:
        raise InputError(
            f"WORLD_SIZE is {os.environ['WORLD_SIZE']}, but {', '.join(missing)} is not set: start the processes with "
            "torchrun or accelerate launch, or unset WORLD_SIZE for a single one"
        )
    from accelerate import PartialState
    from torch.distributed import new_group

    atexit.register(_leave)
    with _connected():
        state = PartialState(cpu=cpu)
        # A separate group: the default one would wait half an hour at most for the slowest process.
        return Processes(state, new_group(timeout=LONGEST_WAIT, backend="gloo"))


def _leave() -> None:
    """End the groups before the interpreter ends, which sometimes aborts while gloo's threads still run."""
    from torch.distributed import destroy_process_group, is_initialized

    with suppress(RuntimeError):
        if is_initialized():
            destroy_process_group()
