"""Shared code of answerers: their cards, and parsed prompts."""

from __future__ import annotations

import hashlib
import math
from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from audio_compositionality.dataset_builder.texts.questions import QuestionWording, read_wording
from audio_compositionality.encoders.base import LETTERS, By, Model, ModelCard

from ..shapes.asking import read_prompt

SAMPLE_RATE = 32_000
"""Rate in Hz to which answerers that listen resample a clip; the rate of the project's own scenes."""

UNPARSED = "unparsed"
"""The answer to a question that cannot be parsed: a text that names no option."""


def answerer_card(name: str, paradigm: str, revision: str = "v1", *, kind: str = "baseline") -> ModelCard:
    """Return the card of an answerer; the paradigm begins with the word by which comparisons know its kind.

    A ``baseline`` is part of the criterion for scores. A ``control`` is not: it gets more information than a model, or
    was made for these very data, and shows the score that this allows.
    """
    return ModelCard(name, revision, SAMPLE_RATE, None, paradigm=f"{kind} ({paradigm})", licence="Apache-2.0")


@dataclass(frozen=True)
class Prompted:
    """A parsed prompt.

    Attributes:
        options: in the order of the prompt.
        wording: wording of the question, and what it asks; None if it cannot be parsed.
    """

    options: tuple[str, ...]
    wording: QuestionWording | None

    @property
    def kind(self) -> str:
        """Return task and variant; empty if the question cannot be parsed."""
        return "" if self.wording is None else f"{self.wording.asked.task}/{self.wording.asked.variant}"


def asked_in(question: str, options: Sequence[str]) -> Prompted:
    """Parse a question with its options."""
    return Prompted(tuple(options), read_wording(question, options))


@lru_cache(maxsize=4096)
def prompted(prompt: str) -> Prompted:
    """Parse a prompt.

    Raises:
        InputError: it is not a question with lettered options.
    """
    return asked_in(*read_prompt(prompt))


def letters(places: Iterable[int | None]) -> list[str]:
    """Return the letters of chosen options, given by their indices; `UNPARSED` for None, if no option is chosen."""
    return [UNPARSED if place is None else LETTERS[place] for place in places]


def certain(texts: Sequence[str], options: Sequence[Sequence[str]]) -> list[list[float]]:
    """Return log-likelihoods of options for certain choices: 0 for the choice, minus infinity for others.

    All are NaN if no option is chosen.
    """
    return [
        [0.0 if letter == text else -math.inf for letter, _ in zip(LETTERS, of_prompt, strict=False)]
        if text != UNPARSED
        else [math.nan] * len(of_prompt)
        for text, of_prompt in zip(texts, options, strict=True)
    ]


class Chooser(Model, ABC):
    """An answerer that writes only the letter of its option, so that every scoring gives the same result."""

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
    """Return a pseudo-random number below `count`, determined by the words."""
    digest = hashlib.blake2b("\0".join(words).encode(), digest_size=8).digest()
    return int.from_bytes(digest, "little") % count
