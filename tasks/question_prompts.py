"""Prompts of questions with options: how a question is put to a model in words, and how it is read back."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from audio_compositionality.dataset_builder.texts.questions import is_lettered
from audio_compositionality.encoders.base import LETTERS
from audio_compositionality.support.errors import InputError
from audio_compositionality.support.text import nearest


@dataclass(frozen=True)
class PromptStyle:
    """A way to ask for the answer.

    Attributes:
        last_line: what is asked for below the options.
        version: it rises with any change of the prompt's words: answers to other words are other answers.
        reasons: whether the model writes down its reasons first, so that its answer is long.
        scorings: ways to take an answer that the words go with; see `Inputs.scoring`.
    """

    last_line: str
    version: int = 1
    reasons: bool = False
    scorings: tuple[str, ...] = ("generate",)


DIRECT: Literal["direct"] = "direct"
TEXT: Literal["text"] = "text"

PROMPTS = {
    DIRECT: PromptStyle("Answer with one letter only.", scorings=("generate", "letters")),
    # Where the likelihood of an option's text is taken, a letter must not be what is asked for.
    TEXT: PromptStyle("Answer with the text of one option only, without its letter.", scorings=("generate", "options")),
    "reason": PromptStyle("Explain, then <answer>letter</answer>.", reasons=True),
}
"""Every way to put a question, by its name."""

ONE_ORDER: Literal[1] = 1
CYCLIC: Literal["cyclic"] = "cyclic"
"""In which orders a question's options are shown: as they are, or turned until each has stood at each position."""


def prompt_style(name: object) -> PromptStyle:
    """A way to put a question, by its name.

    Raises:
        InputError: there is none of that name.
    """
    style = PROMPTS.get(name) if isinstance(name, str) else None
    if style is None:
        raise InputError(f"the prompt {name!r} is not known; {nearest(str(name), list(PROMPTS))}")
    return style


def direct_prompt(question: str, options: Sequence[str]) -> str:
    """The question, its options with a letter each, and that one letter is wanted: a line each.

    >>> print(direct_prompt("Which of these is heard longest in total?", ["dog", "rain"]))
    Which of these is heard longest in total?
    A. dog
    B. rain
    Answer with one letter only.

    Args:
        question: one line.
        options: 2 to 26 different texts of one line each.

    Raises:
        InputError: a text is empty or has more than one line; an option starts as if it were lettered itself, such as
            ``B. dog``; there are too few options, too many, or two that are equal.
    """
    return question_prompt(question, options, DIRECT)


def question_prompt(question: str, options: Sequence[str], style: str) -> str:
    """The question, its options with a letter each, and what is wanted: a line each; see `direct_prompt`.

    Args:
        question: one line.
        options: 2 to 26 different texts of one line each.
        style: one of `PROMPTS`.

    Raises:
        InputError: there is no such style, or as `direct_prompt`.
    """
    last_line = prompt_style(style).last_line
    _check(question, options)
    lettered = [f"{letter}. {option}" for letter, option in zip(LETTERS, options, strict=False)]
    return "\n".join([question, *lettered, last_line])


def cyclic_orders(options: Sequence[str]) -> list[tuple[str, ...]]:
    """The options turned by 0, 1 and so on, so that each stands once at each position.

    >>> cyclic_orders(["dog", "rain", "bell"])
    [('dog', 'rain', 'bell'), ('rain', 'bell', 'dog'), ('bell', 'dog', 'rain')]
    """
    return [(*options[turns:], *options[:turns]) for turns in range(len(options))]


def shown_orders(options: Sequence[str], orders: int | str) -> list[tuple[str, ...]]:
    """The orders in which the options of a question are shown, that in which they are given first.

    Args:
        options: of the question.
        orders: `ONE_ORDER` or `CYCLIC`.
    """
    return cyclic_orders(options) if orders == CYCLIC else [tuple(options)]


def read_prompt(prompt: str) -> tuple[str, list[str]]:
    """The question and the options of a prompt: the inverse of `question_prompt`.

    Raises:
        InputError: the prompt is none that `question_prompt` makes.
    """
    question, *lettered, last = prompt.split("\n") if "\n" in prompt else (prompt, "")
    expected = [f"{letter}. " for letter in LETTERS[: len(lettered)]]
    begins = len(expected) == len(lettered) and all(map(str.startswith, lettered, expected))
    lines = [style.last_line for style in PROMPTS.values()]
    if last not in lines or not begins:
        wanted = " or ".join(map(repr, lines))
        raise InputError(f"not a question with lettered options and the last line {wanted}: {prompt!r}")
    options = [line[len("A. ") :] for line in lettered]
    _check(question, options)
    return question, options


def _check(question: str, options: Sequence[str]) -> None:
    if not 2 <= len(options) <= len(LETTERS):
        raise InputError(f"a question has 2 to {len(LETTERS)} options, not {len(options)}: {question!r}")
    for text in (question, *options):
        # A letter behind the text, so that a line end at its own end counts.
        if not text.strip() or len(f"{text}x".splitlines()) > 1:
            raise InputError(f"a question and its options are one line of text each, not {text!r}")
    for option in options:
        if is_lettered(option):
            raise InputError(f"an option must not start with a letter as if it were lettered: {option!r}")
    if len(set(options)) < len(options):
        raise InputError(f"two options are equal: {list(options)}")
