"""Prompts of questions with options: how a question is put to a model in words, and how it is read back."""

from __future__ import annotations

from collections.abc import Sequence

from audio_compositionality.dataset_builder.questions.templates import is_lettered
from audio_compositionality.support.errors import InputError

PROMPT_VERSION = 1
"""It rises with any change of a prompt's words: answers to other words are other answers."""

LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
"""What the options are called, in their order."""

_LAST_LINE = "Answer with one letter only."


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
    _check(question, options)
    lettered = [f"{letter}. {option}" for letter, option in zip(LETTERS, options, strict=False)]
    return "\n".join([question, *lettered, _LAST_LINE])


def read_prompt(prompt: str) -> tuple[str, list[str]]:
    """The question and the options of a prompt: the inverse of `direct_prompt`.

    Raises:
        InputError: the prompt is none that `direct_prompt` makes.
    """
    question, *lettered, last = prompt.split("\n") if "\n" in prompt else (prompt, "")
    expected = [f"{letter}. " for letter in LETTERS[: len(lettered)]]
    begins = len(expected) == len(lettered) and all(map(str.startswith, lettered, expected))
    if last != _LAST_LINE or not begins:
        raise InputError(f"not a question with lettered options and the last line {_LAST_LINE!r}: {prompt!r}")
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
