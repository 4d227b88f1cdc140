"""Asking questions: the words of prompts, the orders of options, and the scoring of answers."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

from pydantic import Field, model_validator

from audio_compositionality.dataset_builder.data import Row
from audio_compositionality.dataset_builder.texts.questions import is_lettered
from audio_compositionality.encoders.base import LETTERS
from audio_compositionality.support.errors import InputError
from audio_compositionality.support.spec import Spec
from audio_compositionality.support.text import nearest

from ..base import GENERATE, Scoring


@dataclass(frozen=True)
class PromptStyle:
    """One way to ask for an answer.

    Attributes:
        last_line: instruction below the options.
        version: increases with any change of the prompt's words, since answers depend on them.
        reasons: whether the model writes its reasoning first, so that its answer is long.
        scorings: the scorings that fit the words; see `Inputs.scoring`.
    """

    last_line: str
    version: int = 1
    reasons: bool = False
    scorings: tuple[str, ...] = ("generate",)


DIRECT: Literal["direct"] = "direct"
TEXT: Literal["text"] = "text"

PROMPTS = {
    DIRECT: PromptStyle("Answer with one letter only.", scorings=("generate", "letters")),
    # For the likelihood of an option's text, the prompt must not ask for a letter.
    TEXT: PromptStyle("Answer with the text of one option only, without its letter.", scorings=("generate", "options")),
    "reason": PromptStyle("Explain, then <answer>letter</answer>.", reasons=True),
}
"""Every prompt style, by name."""

ONE_ORDER: Literal[1] = 1
CYCLIC: Literal["cyclic"] = "cyclic"
"""Orders of a question's options: as given, or rotated until each option has been at each position."""


def prompt_style(name: object) -> PromptStyle:
    """Return a prompt style by its name.

    Raises:
        InputError: there is no style with that name.
    """
    style = PROMPTS.get(name) if isinstance(name, str) else None
    if style is None:
        raise InputError(f"unknown prompt {name!r}; {nearest(str(name), list(PROMPTS))}")
    return style


def direct_prompt(question: str, options: Sequence[str]) -> str:
    """Return the question, its options with a letter each, and the request for one letter, on one line each.

    >>> print(direct_prompt("Which of these is heard longest in total?", ["dog", "rain"]))
    Which of these is heard longest in total?
    A. dog
    B. rain
    Answer with one letter only.

    Args:
        question: one line.
        options: 2 to 26 different texts of one line each.

    Raises:
        InputError: a text is empty or has more than one line; an option starts with a letter of its own, such as ``B.
            dog``; there are too few options, too many, or two that are equal.
    """
    return question_prompt(question, options, DIRECT)


def question_prompt(question: str, options: Sequence[str], style: str) -> str:
    """Return the question, its options with a letter each, and the instruction, on one line each; see `direct_prompt`.

    Args:
        question: one line.
        options: 2 to 26 different texts of one line each.
        style: one of `PROMPTS`.

    Raises:
        InputError: there is no such style, or for the reasons of `direct_prompt`.
    """
    last_line = prompt_style(style).last_line
    _check(question, options)
    lettered = [f"{letter}. {option}" for letter, option in zip(LETTERS, options, strict=False)]
    return "\n".join([question, *lettered, last_line])


def cyclic_orders(options: Sequence[str]) -> list[tuple[str, ...]]:
    """Return the options rotated by 0, 1 and so on, so that each is once at each position.

    >>> cyclic_orders(["dog", "rain", "bell"])
    [('dog', 'rain', 'bell'), ('rain', 'bell', 'dog'), ('bell', 'dog', 'rain')]
    """
    return [(*options[turns:], *options[:turns]) for turns in range(len(options))]


def shown_orders(options: Sequence[str], orders: int | str) -> list[tuple[str, ...]]:
    """Return the orders in which the options of a question are shown, the given order first.

    Args:
        options: options of the question.
        orders: `ONE_ORDER` or `CYCLIC`.
    """
    return cyclic_orders(options) if orders == CYCLIC else [tuple(options)]


def read_prompt(prompt: str) -> tuple[str, list[str]]:
    """Return the question and the options of a prompt: the inverse of `question_prompt`.

    Raises:
        InputError: the prompt was not made by `question_prompt`.
    """
    question, *lettered, last = prompt.split("\n") if "\n" in prompt else (prompt, "")
    expected = [f"{letter}. " for letter in LETTERS[: len(lettered)]]
    begins = len(expected) == len(lettered) and all(map(str.startswith, lettered, expected))
    lines = [style.last_line for style in PROMPTS.values()]
    if last not in lines or not begins:
        wanted = " or ".join(map(repr, lines))
        raise InputError(f"expected a question with lettered options and the last line {wanted}; got {prompt!r}")
    options = [line[len("A. ") :] for line in lettered]
    _check(question, options)
    return question, options


def _check(question: str, options: Sequence[str]) -> None:
    if not 2 <= len(options) <= len(LETTERS):
        raise InputError(f"a question needs 2 to {len(LETTERS)} options, not {len(options)}: {question!r}")
    for text in (question, *options):
        # The appended letter makes a line break at the end of the text count too.
        if not text.strip() or len(f"{text}x".splitlines()) > 1:
            raise InputError(f"a question and its options must be one line of text each; got {text!r}")
    for option in options:
        if is_lettered(option):
            raise InputError(f"an option must not start with a letter of its own: {option!r}")
    if len(set(options)) < len(options):
        raise InputError(f"options must differ, but two are equal: {list(options)}")


class AskingSpec(Spec):
    """How questions are asked."""

    prompt: Literal["direct", "text", "reason"] = Field(
        DIRECT,
        description="direct asks for one letter only; text asks for the text of an option, the default of the scoring "
        "options; reason asks for an explanation and then the letter, with up to 1,024 tokens.",
    )
    orders: Literal[1, "cyclic"] = Field(
        ONE_ORDER,
        description="1 shows the options in the order of the data; cyclic asks each question once per order, rotating "
        "its options until each has been at each position, which separates a habit of letters from knowledge.",
    )
    scoring: Scoring = Field(
        GENERATE,
        description="generate reads what the model writes, as in the paper; letters takes the likeliest letter as "
        "its first token, options the likeliest text of an option; then every answer is readable.",
    )

    @model_validator(mode="before")
    @classmethod
    def _of_options(cls, values: Any) -> Any:
        """Set the prompt that asks for an option's text if the scoring uses its likelihood."""
        return {"prompt": TEXT, **values} if values.get("scoring") == "options" else values

    @model_validator(mode="after")
    def _agree(self) -> AskingSpec:
        if self.style.reasons and self.scoring != GENERATE:
            raise InputError(
                f"the prompt {self.prompt!r} asks for reasoning first, but with the scoring {self.scoring!r} the model "
                f"writes nothing: set the prompt to {DIRECT!r}, or the scoring to {GENERATE!r}"
            )
        if self.scoring not in self.style.scorings:
            other = next(name for name, one in PROMPTS.items() if self.scoring in one.scorings)
            raise InputError(
                f"the prompt {self.prompt!r} does not ask for the answers that the scoring {self.scoring!r} compares "
                f"by likelihood: set the prompt to {other!r}, or the scoring to "
                f"{' or '.join(map(repr, self.style.scorings))}"
            )
        return self

    @property
    def style(self) -> PromptStyle:
        """Return the prompt style."""
        return PROMPTS[self.prompt]

    @property
    def stored(self) -> dict[str, Any]:
        """Return everything that scores depend on, as JSON values, with the version of the prompt."""
        values = {name: value for name, value in self.values().items() if value is not None}
        return {"prompt": self.prompt, "prompt_version": self.style.version, **values}


class FreeAnswerTask(ABC):
    """Base class for tasks of questions without options whose single answers are scored, as in other suites; see
    `Task`."""

    @abstractmethod
    def answer_of(self, row: Row) -> str:
        """Return the right answer, in words that score 1."""

    @abstractmethod
    def score_of(self, row: Row, answer: str) -> float:
        """Return the score of one answer, from 0 to 1; its mean over all rows is the first measure."""
