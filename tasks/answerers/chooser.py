"""The common part of answerers: their cards, and a prompt as they read it."""

from __future__ import annotations

import hashlib
import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from audio_compositionality.dataset_builder.texts.questions import QuestionWording, read_wording
from audio_compositionality.encoders.base import LETTERS, By, Model, ModelCard

from ..shapes.asking import read_prompt

SAMPLE_RATE = 32_000
"""Hz, to which answerers that listen resample a clip; it is the rate of the project's own scenes."""

UNPARSED = "unparsed"
"""The answer to a question that cannot be read: a text that names no option."""


def answerer_card(name: str, paradigm: str, revision: str = "v1", *, kind: str = "baseline") -> ModelCard:
    """The card of an answerer; the paradigm begins with the word by which comparisons know its kind.

    A ``baseline`` is a bar for scores. A ``control`` is none: it is given more than a model is, or was made for these
    very data, and shows what can be reached so.
    """
    return ModelCard(name, revision, SAMPLE_RATE, None, paradigm=f"{kind} ({paradigm})", licence="Apache-2.0")


@dataclass(frozen=True)
class Prompted:
    """A prompt as it is read.

    Attributes:
        options: in the order in which they stand.
        wording: of the question, and what it asks; None where it cannot be read.
    """

    options: tuple[str, ...]
    wording: QuestionWording | None

    @property
    def kind(self) -> str:
        """Task and variant; empty where the question cannot be read."""
        return "" if self.wording is None else f"{self.wording.asked.task}/{self.wording.asked.variant}"


def asked_in(question: str, options: Sequence[str]) -> Prompted:
    """A question with its options, as it is read."""
    return Prompted(tuple(options), read_wording(question, options))


@lru_cache(maxsize=4096)
def prompted(prompt: str) -> Prompted:
    """A prompt as it is read.

    Raises:
        InputError: it is no question with lettered options.
    """
    return asked_in(*read_prompt(prompt))


def letters(prompts: Sequence[str], place_of: Callable[[Prompted, str], int | None]) -> list[str]:
    """The letter of the option that is taken in each prompt; `UNPARSED` where none is.

    Args:
        prompts: to answer.
        place_of: gives the place of an option, counted from 0, or None, for a prompt as read and its text.
    """
    places = [place_of(prompted(prompt), prompt) for prompt in prompts]
    return [UNPARSED if place is None else LETTERS[place] for place in places]


def certain(texts: Sequence[str], options: Sequence[Sequence[str]]) -> list[list[float]]:
    """The log-likelihoods of options where one is taken without a doubt: 0 for it, minus infinity for the others; NaN
    for all where none is taken."""
    return [
        [0.0 if letter == text else -math.inf for letter, _ in zip(LETTERS, of_prompt, strict=False)]
        if text != UNPARSED
        else [math.nan] * len(of_prompt)
        for text, of_prompt in zip(texts, options, strict=True)
    ]


class Chooser(Model, ABC):
    """An answerer that writes only the letter of the option that it takes, so that every scoring gives the same."""

    needs_columns = frozenset({"options"})

    @abstractmethod
    def answer(self, clips: Sequence[Sequence[Any]], prompts: Sequence[str]) -> list[str]:
        """See `Model.answer`."""

    def score_options(
        self, clips: Sequence[Sequence[Any]], prompts: Sequence[str], options: Sequence[Sequence[str]], by: By
    ) -> list[list[float]]:
        """See `Model.score_options`, and `certain`."""
        return certain(self.answer(clips, prompts), options)


def drawn(count: int, *words: str) -> int:
    """A pseudo-random number below `count`, determined by the words."""
    digest = hashlib.blake2b("\0".join(words).encode(), digest_size=8).digest()
    return int.from_bytes(digest, "little") % count
