"""What is asked about a sample of a report, and who took which of the options."""

from __future__ import annotations

from dataclasses import dataclass

from audio_compositionality.encoders.base import LETTERS
from audio_compositionality.evaluator.compare.comparison import Comparison


@dataclass(frozen=True)
class HeardOption:
    """An option of a question.

    Attributes:
        letter: that stands before it.
        text: of the option.
        is_right: whether it is the answer.
        models: labels of those that took it.
    """

    letter: str
    text: str
    is_right: bool
    models: tuple[str, ...]


@dataclass(frozen=True)
class HeardQuestion:
    """A question with its options.

    Attributes:
        question: what is asked.
        options: in the order in which they were shown.
        without_choice: labels of the models that took none, by why, in words.
    """

    question: str
    options: tuple[HeardOption, ...]
    without_choice: dict[str, tuple[str, ...]]


def heard_question(comparison: Comparison, index: int) -> HeardQuestion | None:
    """The question about a sample, by its place; None where nothing is known to be asked."""
    samples, profile = comparison.samples, comparison.info.profile
    if samples is None or not samples.asked:
        return None
    asked = samples.asked[index]
    takers: dict[int, list[str]] = {}
    for result in comparison.results:
        column = result.samples.columns.get(profile.choices) if profile is not None else None
        if column is not None:
            takers.setdefault(int(column[index]), []).append(result.label)
    options = tuple(
        HeardOption(LETTERS[place], text, text == asked.answer, tuple(takers.get(place, ())))
        for place, text in enumerate(asked.options)
    )
    no_choice = {} if profile is None else profile.no_choice
    without_choice = {words: tuple(takers[number]) for number, words in no_choice.items() if number in takers}
    return HeardQuestion(asked.question, options, without_choice)
