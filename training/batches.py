"""Which rows a step learns from, and its batch, made ready while the model works on the one before."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Protocol

import numpy as np
import torch
from numpy.typing import NDArray

from audio_compositionality.support.errors import InputError

from .batch import Batch
from .data import TrainingData, TrainingRow
from .errors import TrainingError
from .texts import TextSettings, draw_texts, generator_of
from .tokens import Tokens

Rows = NDArray[np.int64]

AHEAD = 2
"""Batches that are made before they are asked for."""


class Features(Protocol):
    """What a model takes of the clips of some data."""

    def gather(self, clips: Rows) -> torch.Tensor:
        """Features [n, ...] of clips by their numbers, float32."""
        ...


@dataclass(frozen=True)
class ArrayFeatures:
    """Features that are in the memory.

    Attributes:
        values: [clips, ...].
    """

    values: NDArray[Any]

    def gather(self, clips: Rows) -> torch.Tensor:
        """See `Features`."""
        return torch.from_numpy(np.asarray(self.values[clips], np.float32))


@dataclass(frozen=True)
class BatchSettings:
    """What decides the batches of a stage.

    Attributes:
        texts: which texts, and so which rows.
        batch_size: rows of a step, over all processes together.
        seed: of the training.
        stage: number of the stage, from 0.
        process: number of this process, from 0, of
        processes: that share every batch in equal parts.

    Raises:
        InputError: sizes that are not positive, or a batch that the processes cannot share.
    """

    texts: TextSettings
    batch_size: int
    seed: int = 0
    stage: int = 0
    process: int = 0
    processes: int = 1

    def __post_init__(self) -> None:
        if self.processes < 1 or not 0 <= self.process < self.processes:
            raise InputError(f"process {self.process} of {self.processes}: processes are numbered from 0")
        if self.batch_size < 2:
            raise InputError(f"batch_size is {self.batch_size}; a row is told from others, so there must be 2 or more")
        if self.batch_size % self.processes:
            raise InputError(
                f"batch_size is {self.batch_size}, which {self.processes} processes cannot share in equal parts"
            )


class Batches:
    """The batches of a stage, of this process: each can be had by its number, whatever was read before.

    The rows of an epoch have an order of their own; those that are left over behind its last whole batch are not learnt
    from in it. The batches of all processes, one behind the other, are that of a single process.
    """

    def __init__(
        self,
        data: TrainingData,
        features: Features,
        tokenise: Callable[[Sequence[str]], Tokens],
        settings: BatchSettings,
        neighbours: Rows | None = None,
    ) -> None:
        """Choose the rows.

        Args:
            data: the split to learn from.
            features: of its clips.
            tokenise: gives the tokens of texts, such as a `Tokeniser`.
            settings: see `BatchSettings`.
            neighbours: int64 [rows, N], numbers of the rows nearest to each row of the data, see `nearest_rows`: half of
                a batch is then drawn in order, and with each row of it comes one of these.

        Raises:
            TrainingError: the stage can learn from fewer rows than a batch has.
        """
        raise NotImplementedError

    @property
    def steps_per_epoch(self) -> int:
        """Batches of an epoch."""
        raise NotImplementedError

    def rows(self, step: int) -> Rows:
        """Numbers of the rows of a step in the data, over all processes, int64 [batch_size]."""
        raise NotImplementedError

    def batch(self, step: int) -> Batch:
        """The batch of a step of the stage, counted from 0 through all epochs."""
        raise NotImplementedError

    def stream(self, start: int = 0, stop: int | None = None) -> Iterator[Batch]:
        """The batches of steps from `start` to before `stop`, without end where it is None, made in a thread ahead."""
        raise NotImplementedError


def nearest_rows(embeddings: NDArray[np.floating[Any]], rows: Sequence[TrainingRow], count: int) -> Rows:
    """The rows whose clips are nearest to that of each row, nearest first, less those that say the same.

    Args:
        embeddings: [rows, D], of the clips of the rows in their order.
        rows: of the data.
        count: N.

    Returns:
        int64 [rows, N].

    Raises:
        InputError: there are not so many others.
    """
    raise NotImplementedError
