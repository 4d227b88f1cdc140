"""Questions in batches: the longest first, sound prepared ahead of the model, fewer at a time where memory is short."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Generic, TypeVar

from audio_compositionality.support.text import first_line

from ..base import FloatArray
from ..memory import free_memory, is_out_of_memory
from .front_end import FrontEnd, Inputs

Outcome = TypeVar("Outcome")


@dataclass(frozen=True)
class Question:
    """A question that is ready to be put.

    Attributes:
        chat: see `FrontEnd.chat`.
        clip: float32 [samples] at the model's rate.
        continuations: tokens of the answers whose likelihood is asked for, of each a list; none where it writes itself.
    """

    chat: str
    clip: FloatArray
    continuations: tuple[list[int], ...] = field(default=())

    @property
    def length(self) -> tuple[int, int]:
        """What it is sorted by: samples, then letters."""
        return len(self.clip), len(self.chat)


class Batches(Generic[Outcome]):
    """Does work on questions, so many at a time.

    Attributes:
        size: how many at a time; it is halved whenever memory does not suffice, and stays so.
    """

    def __init__(self, front_end: FrontEnd, name: str, size: int) -> None:
        """`name` is the model's, for messages."""
        self.size = size
        self._front_end = front_end
        self._name = name

    def run(
        self,
        questions: Sequence[Question],
        work: Callable[[Sequence[Question], Inputs], Sequence[Outcome]],
        on_outcomes: Callable[[Sequence[int], Sequence[Outcome]], object] | None = None,
    ) -> list[Outcome]:
        """The outcomes of work on questions, in their order.

        Questions of similar length go together, the longest first: what memory does not suffice for shows at once.
        A second thread prepares the next batch while the model works; it alone uses the front end meanwhile.

        Args:
            questions: any number.
            work: from a batch and its input to an outcome each.
            on_outcomes: called with the places of a batch and its outcomes when it is done, by the second thread, so
                that the front end may be used.

        Raises:
            MemoryError: a single question is too much.
        """
        order = sorted(range(len(questions)), key=lambda place: questions[place].length, reverse=True)
        outcomes: dict[int, Outcome] = {}
        told: list[Future[object]] = []
        with ThreadPoolExecutor(1) as ahead:
            places = self._first(questions, order)
            prepared = ahead.submit(self._prepare, questions, places)
            while places:
                inputs, following = prepared.result(), self._first(questions, order[len(places) :])
                if following:
                    prepared = ahead.submit(self._prepare, questions, following)
                results = self._within_memory([questions[place] for place in places], inputs, work)
                if results is None:
                    del inputs
                    free_memory()
                    self.size = max(len(places) // 2, 1)
                    places = places[: self.size]
                    prepared = ahead.submit(self._prepare, questions, places)
                    continue
                outcomes.update(zip(places, results, strict=True))
                if on_outcomes is not None:
                    told.append(ahead.submit(on_outcomes, places, results))
                order, places = order[len(places) :], following
        for one in told:
            one.result()
        return [outcomes[place] for place in range(len(questions))]

    def _first(self, questions: Sequence[Question], order: Sequence[int]) -> Sequence[int]:
        """The places of the first batch of those in an order: all of one kind, see `FrontEnd.kind`."""
        kinds = [self._front_end.kind(len(questions[place].clip)) for place in order[: self.size]]
        return [place for place, kind in zip(order, kinds, strict=False) if kind == kinds[0]]

    def _prepare(self, questions: Sequence[Question], places: Sequence[int]) -> Inputs:
        batch = [questions[place] for place in places]
        return self._front_end.encode([one.chat for one in batch], [one.clip for one in batch])

    def _within_memory(
        self,
        batch: Sequence[Question],
        inputs: Inputs,
        work: Callable[[Sequence[Question], Inputs], Sequence[Outcome]],
    ) -> Sequence[Outcome] | None:
        """What work makes of a batch; None, with a warning, where memory does not suffice for it.

        Raises:
            MemoryError: it does not suffice for a single question.
        """
        try:
            return work(batch, inputs)
        except Exception as error:
            if not is_out_of_memory(error):
                raise
            reason = first_line(error)
        # Here the caught error is gone, whose traceback would keep the tensors that have to go.
        if len(batch) == 1:
            raise MemoryError(f"'{self._name}' runs out of memory with a single question: {reason}")
        warnings.warn(
            f"out of memory; '{self._name}' goes on with batches of {max(len(batch) // 2, 1)} ({reason})", stacklevel=2
        )
        return None
