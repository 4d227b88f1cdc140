"""Batches of questions: how they are formed and run, likelihoods of given answers, and tolerance between batches."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np

from audio_compositionality.support.text import first_line

from ..base import FloatArray
from ..inference import free_memory, is_out_of_memory
from .listing import FrontEnd, ModelInputs


@dataclass(frozen=True)
class ChatQuestion:
    """A question that is ready for the model.

    Attributes:
        chat: see `FrontEnd.chat`.
        clip: float32 [samples] at the model's rate.
        continuations: token lists of the answers whose likelihood is wanted; none if the model writes its answer.
    """

    chat: str
    clip: FloatArray
    continuations: tuple[list[int], ...] = field(default=())

    @property
    def length(self) -> tuple[int, int]:
        """The sort key: samples, then characters."""
        return len(self.clip), len(self.chat)


class QuestionBatches:
    """Runs questions in batches.

    Attributes:
        size: questions per batch; it is halved permanently whenever memory runs out.
    """

    def __init__(self, front_end: FrontEnd, name: str, size: int) -> None:
        """Set up the batches; `name` is the model's, for messages."""
        self.size = size
        self._front_end = front_end
        self._name = name

    def run(
        self,
        questions: Sequence[ChatQuestion],
        work: Callable[[Sequence[ChatQuestion], ModelInputs], Sequence[Any]],
        read: Callable[[Sequence[ChatQuestion], Sequence[Any]], Sequence[Any]] | None = None,
    ) -> Iterator[tuple[int, Any]]:
        """Yield the outcomes of work on questions, each with the index of its question, a batch at a time.

        Questions of similar length share a batch, the longest first, so that lack of memory shows at once.
        A second thread prepares the next batch while the model works; it alone uses the front end meanwhile.

        Args:
            questions: any number.
            work: takes a batch and its input, returns one outcome per question.
            read: takes a batch and its outcomes, returns what is yielded; run by the second thread, so that it may use
                the front end.

        Raises:
            MemoryError: a single question does not fit into memory.
        """
        order = sorted(range(len(questions)), key=lambda place: questions[place].length, reverse=True)
        with ThreadPoolExecutor(1) as ahead:
            places = self._first(questions, order)
            prepared = ahead.submit(self._prepare, questions, places)
            while places:
                inputs, following = prepared.result(), self._first(questions, order[len(places) :])
                if following:
                    prepared = ahead.submit(self._prepare, questions, following)
                batch, reason = [questions[place] for place in places], None
                try:
                    outcomes = work(batch, inputs)
                except Exception as error:
                    if not is_out_of_memory(error):
                        raise
                    reason = first_line(error)
                # Here the caught error is gone; its traceback would keep alive the tensors to be freed.
                if reason is not None:
                    if len(batch) == 1:
                        raise MemoryError(f"'{self._name}' runs out of memory with a single question: {reason}")
                    self.size = len(batch) // 2
                    warnings.warn(
                        f"out of memory; '{self._name}' continues with batches of {self.size} ({reason})", stacklevel=2
                    )
                    del inputs
                    free_memory()
                    places = places[: self.size]
                    prepared = ahead.submit(self._prepare, questions, places)
                    continue
                if read is not None:
                    outcomes = ahead.submit(read, batch, outcomes).result()
                yield from zip(places, outcomes, strict=True)
                order, places = order[len(places) :], following

    def _first(self, questions: Sequence[ChatQuestion], order: Sequence[int]) -> Sequence[int]:
        """Return the indices of the first batch in an order: all of one kind, see `FrontEnd.kind`."""
        kinds = [self._front_end.kind(len(questions[place].clip)) for place in order[: self.size]]
        return [place for place, kind in zip(order, kinds, strict=False) if kind == kinds[0]]

    def _prepare(self, questions: Sequence[ChatQuestion], places: Sequence[int]) -> ModelInputs:
        batch = [questions[place] for place in places]
        return self._front_end.encode([one.chat for one in batch], [one.clip for one in batch])


class Forward(Protocol):
    """A model that is called with its inputs and returns `logits` [n, tokens, vocabulary] and `past_key_values`."""

    def __call__(self, inputs: ModelInputs, *, only_last: bool) -> Any:
        """See `TransformersLanguageModel`."""


def log_likelihoods(
    forward: Forward, inputs: ModelInputs, continuations: Sequence[Sequence[Sequence[int]]], pad: int
) -> list[list[float]]:
    """Return the mean log-likelihood over the tokens of each continuation of each prompt.

    Args:
        forward: the model.
        inputs: prompts, padded on the left, on the model's device.
        continuations: for each prompt some continuations, each one or more token numbers.
        pad: number of the padding token.

    Returns:
        natural logarithms; for a continuation of one token, its log-likelihood.
    """
    import torch

    mask = inputs["attention_mask"]
    output = forward(inputs, only_last=True)
    first = output.logits[:, -1].float().log_softmax(dim=-1)
    sums = [[float(first[row, tokens[0]]) for tokens in some] for row, some in enumerate(continuations)]
    places = [
        (row, place) for row, some in enumerate(continuations) for place, tokens in enumerate(some) if len(tokens) > 1
    ]
    if places:
        # All tokens of the continuations but the first.
        tails = [continuations[row][place] for row, place in places]
        rows, cache = torch.tensor([row for row, _ in places]), output.past_key_values
        # In a model over several GPUs each layer's part of the cache is on its own; indices on the CPU suit all.
        cache.batch_select_indices(rows)
        before, longest = mask[rows], max(map(len, tails))
        ids = before.new_full((len(tails), longest), pad)
        for row, tokens in enumerate(tails):
            ids[row, : len(tokens)] = ids.new_tensor(tokens)
        there = torch.arange(longest, device=ids.device) < ids.new_tensor([len(tokens) for tokens in tails])[:, None]
        # The last token of a continuation is never an input.
        given, wanted, counted = ids[:, :-1], ids[:, 1:], there[:, 1:]
        steps = torch.arange(longest - 1, device=ids.device)
        output = forward(
            {
                "input_ids": given,
                "attention_mask": torch.cat([before, counted.to(mask.dtype)], dim=1),
                "position_ids": before.long().sum(-1, keepdim=True) + steps,
                "past_key_values": cache,
            },
            only_last=False,
        )
        values = output.logits.float().log_softmax(dim=-1).gather(-1, wanted[..., None])[..., 0]
        rest = values.masked_fill(~counted, 0).sum(-1)
        for (row, place), value in zip(places, rest.tolist(), strict=True):
            sums[row][place] += value
    return [
        [total / len(tokens) for total, tokens in zip(of_row, some, strict=True)]
        for of_row, some in zip(sums, continuations, strict=True)
    ]


SECONDS = (0.5, 2.0, 5.0, 10.0)
"""Lengths of the clips in seconds, at most the model's limit."""

_PROMPTS = (
    "Is anything heard?",
    "Which of these is heard?\nA. dog\nB. rain\nAnswer with one letter only.",
    "How many different kinds of sound can be heard?\nA. one\nB. two\nC. three\nAnswer with one letter only.",
    "What is heard first?",
)


def tolerance(precision: str) -> float:
    """Return the tolerated change of the next token's distribution between a single question and a batch.

    It is a total variation distance, so that at most one answer in 1/tolerance can change. Rounding alone changes about
    1e-6 in float32 and some hundredths in bfloat16; wrongly processed sound changes tenths.
    """
    return {"float32": 1e-3, "float16": 0.02}.get(precision, 0.1)


def difference_alone_and_together(
    front_end: FrontEnd,
    batches: QuestionBatches,
    next_token: Callable[[Sequence[ChatQuestion], ModelInputs], Sequence[Any]],
) -> float:
    """Return the largest total variation distance, over four clips, between the next token alone and in a batch; NaN if
    any is NaN.

    Args:
        front_end: front end of the model.
        batches: batches of the model; their size may be halved on the way.
        next_token: returns the probabilities of the next token of each question of a batch.
    """
    questions = [
        ChatQuestion(front_end.chat(prompt), _clip(min(seconds, front_end.limit_seconds), front_end.sample_rate))
        for prompt, seconds in zip(_PROMPTS, SECONDS, strict=True)
    ]
    together = dict(batches.run(questions, next_token))
    differences = []
    for place, question in enumerate(questions):
        ((_, alone),) = batches.run([question], next_token)
        differences.append(float((alone - together[place]).abs().sum() / 2))
    # Python's own maximum of NaN and a number depends on their order.
    return float(np.max(differences))


def _clip(seconds: float, sample_rate: int) -> FloatArray:
    """Return bursts of noise, three per second."""
    count = round(seconds * sample_rate)
    noise = np.random.Generator(np.random.Philox(count)).standard_normal(count, np.float32)
    bursts = np.maximum(np.sin(2 * np.pi * 3 * np.arange(count) / sample_rate), 0)
    return (0.1 * noise * bursts).astype(np.float32)
