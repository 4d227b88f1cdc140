"""Which rows a step learns from, and its batch, made ready while the model works on the one before."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cached_property
from itertools import chain, count, islice
from typing import Any, Protocol

import numpy as np
import torch
from numpy.typing import NDArray
from pydantic import Field, model_validator

from audio_compositionality.support.errors import InputError
from audio_compositionality.support.spec import Spec

from .batch import Batch
from .data import TrainingData, TrainingRow
from .errors import TrainingError
from .texts import TextSettings, draw_texts, generator_of
from .tokens import Tokens

Rows = NDArray[np.int64]

AHEAD = 2
"""Batches that are made before they are asked for."""

_ROWS_AT_ONCE = 1_024
"""Rows whose similarity to all is in the memory at a time."""


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


class BatchSettings(Spec):
    """What decides the batches of a stage."""

    texts: TextSettings = Field(description="Which texts, and so which rows.")
    batch_size: int = Field(ge=2, description="Rows of a step, over all processes together; a row is told from others.")
    seed: int = Field(0, ge=0, description="Of the training.")
    stage: int = Field(0, ge=0, description="Number of the stage.")
    process: int = Field(0, ge=0, description="Number of this process.")
    processes: int = Field(1, ge=1, description="Processes that share every batch in equal parts.")

    @model_validator(mode="after")
    def _can_be_shared(self) -> BatchSettings:
        if self.process >= self.processes:
            raise InputError(f"process {self.process} of {self.processes}: processes are numbered from 0")
        if self.batch_size % self.processes:
            raise InputError(
                f"batch_size is {self.batch_size}, which {self.processes} processes cannot share in equal parts"
            )
        return self


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
            neighbours: int64 [rows, N], numbers of the rows nearest to each row of the data, see `nearest_rows`, the
                same in every process: half of a batch is then drawn in order, and with each row comes one of these.

        Raises:
            TrainingError: the stage can learn from fewer rows than a batch has.
            InputError: neighbours are not those of the rows, or a batch cannot be halved.
        """
        self._data, self._features, self._tokenise, self.settings = data, features, tokenise, settings
        takes = settings.texts.takes
        self._eligible: Rows = np.array([n for n, row in enumerate(data.rows) if takes(row)], np.int64)
        if len(self._eligible) < settings.batch_size:
            raise TrainingError(
                f"{data.source} has {len(self._eligible):,} rows that a stage {settings.texts.kind!r} can learn from, "
                f"of {len(data.rows):,}; a batch has {settings.batch_size:,}"
            )
        if neighbours is not None:
            if neighbours.shape[:1] != (len(data.rows),) or neighbours.ndim != 2 or not neighbours.shape[1]:
                raise InputError(f"neighbours have shape {neighbours.shape}; they must be [{len(data.rows)}, N]")
            if settings.batch_size % (2 * settings.processes):
                raise InputError(
                    f"batch_size is {settings.batch_size}; half of a batch are neighbours, so each of "
                    f"{settings.processes} processes must have an even part of it"
                )
        self._neighbours = neighbours
        self._order: tuple[int, Rows] | None = None

    @property
    def steps_per_epoch(self) -> int:
        """Batches of an epoch."""
        return len(self._eligible) // self._drawn

    @property
    def _drawn(self) -> int:
        """Rows of a batch that are drawn in order."""
        return self.settings.batch_size // (1 if self._neighbours is None else 2)

    def rows(self, step: int) -> Rows:
        """Numbers of the rows of a step in the data, over all processes, int64 [batch_size]."""
        epoch, place = divmod(step, self.steps_per_epoch)
        drawn = self._order_of(epoch)[place * self._drawn : (place + 1) * self._drawn]
        return drawn if self._neighbours is None else self._with_neighbours(drawn, epoch)

    def batch(self, step: int) -> Batch:
        """The batch of a step of the stage, counted from 0 through all epochs."""
        settings = self.settings
        part = settings.batch_size // settings.processes
        numbers = self.rows(step)[settings.process * part : (settings.process + 1) * part]
        rows = [self._data.rows[number] for number in numbers.tolist()]
        at = {"seed": settings.seed, "stage": settings.stage, "epoch": step // self.steps_per_epoch}
        drawn = [draw_texts(row, settings.texts, **at) for row in rows]
        negatives, negative_row = self._tokens_of([one.negatives for one in drawn])
        positives, positive_row = self._tokens_of([one.positives for one in drawn])
        return Batch(
            audio=self._features.gather(np.array([row.clip for row in rows], np.int64)),
            captions=self._tokenise([one.caption for one in drawn]),
            negatives=negatives,
            negative_row=negative_row,
            positives=positives,
            positive_row=positive_row,
            expressions=torch.tensor([row.says for row in rows], dtype=torch.int64),
            rows=torch.from_numpy(numbers.copy()),
        )

    def stream(self, start: int = 0, stop: int | None = None) -> Iterator[Batch]:
        """The batches of steps from `start` to before `stop`, without end where it is None, made in a thread ahead."""
        steps = count(start) if stop is None else iter(range(start, stop))
        pool = ThreadPoolExecutor(1, thread_name_prefix="batches")
        try:
            ahead = deque(pool.submit(self.batch, step) for step in islice(steps, AHEAD))
            while ahead:
                batch = ahead.popleft().result()
                ahead.extend(pool.submit(self.batch, step) for step in islice(steps, 1))
                yield batch
        finally:
            pool.shutdown(cancel_futures=True)

    def _order_of(self, epoch: int) -> Rows:
        """The rows of an epoch in their order."""
        # One assignment: a thread that makes batches ahead may be at the next epoch already.
        order = self._order
        if order is None or order[0] != epoch:
            rng = generator_of("order", self.settings.seed, self.settings.stage, epoch)
            order = self._order = (epoch, rng.permutation(self._eligible))
        return order[1]

    def _with_neighbours(self, drawn: Rows, epoch: int) -> Rows:
        """Each row, and behind it one of its neighbours that is not in the batch yet; any row where all are."""
        assert self._neighbours is not None
        taken = set(drawn.tolist())
        eligible = self._eligible_set
        rows: list[int] = []
        for row in drawn.tolist():
            rng = generator_of("neighbours", self.settings.seed, self.settings.stage, epoch, row)
            near = (int(one) for one in rng.permutation(self._neighbours[row]))
            neighbour = next((one for one in near if one in eligible and one not in taken), None)
            while neighbour is None:
                any_row = int(self._eligible[rng.integers(len(self._eligible))])
                neighbour = any_row if any_row not in taken else None
            taken.add(neighbour)
            rows += [row, neighbour]
        return np.array(rows, np.int64)

    @cached_property
    def _eligible_set(self) -> frozenset[int]:
        return frozenset(self._eligible.tolist())

    def _tokens_of(self, of_rows: Sequence[Sequence[str]]) -> tuple[Tokens, torch.Tensor]:
        """The texts of all rows one after the other, and the row of each."""
        places = [place for place, texts in enumerate(of_rows) for _ in texts]
        return self._tokenise(list(chain.from_iterable(of_rows))), torch.tensor(places, dtype=torch.int64)


def nearest_rows(embeddings: NDArray[np.floating[Any]], rows: Sequence[TrainingRow], most: int) -> Rows:
    """The rows whose clips are nearest to that of each row by cosine, nearest first, less those that say the same.

    Args:
        embeddings: [rows, D], of the clips of the rows in their order.
        rows: of the data.
        most: N.

    Returns:
        int64 [rows, N].

    Raises:
        InputError: see `check_neighbours`, or there is not an embedding of each.
    """
    if len(embeddings) != len(rows):
        raise InputError(f"there are {len(embeddings):,} embeddings of {len(rows):,} rows")
    check_neighbours(rows, most)
    said = np.array([row.says for row in rows], np.int64)
    units = embeddings / np.linalg.norm(embeddings, axis=1, keepdims=True).clip(1e-12)
    nearest = np.empty((len(rows), most), np.int64)
    for first in range(0, len(rows), _ROWS_AT_ONCE):
        some = slice(first, first + _ROWS_AT_ONCE)
        similarity = units[some] @ units.T
        similarity[said[some, None] == said[None]] = -np.inf
        best = np.argpartition(-similarity, most - 1, axis=1)[:, :most]
        order = np.argsort(-np.take_along_axis(similarity, best, axis=1), axis=1, kind="stable")
        nearest[some] = np.take_along_axis(best, order, axis=1)
    return nearest


def check_neighbours(rows: Sequence[TrainingRow], most: int) -> None:
    """Refuse more neighbours than a row has.

    Raises:
        InputError: a row has not so many others that say something else.
    """
    most_alike = max(Counter(row.says for row in rows).values(), default=0)
    if not 1 <= most <= len(rows) - most_alike:
        raise InputError(
            f"neighbours are {most}; a row has {max(len(rows) - most_alike, 0)} others that say something else"
        )
