"""Whether two models' answers to the same questions are one thing, told from the options that they take.

How an answer is written does not count: a letter, a text, another case or a phrase around it are one choice. Answers
are nearly the same in two ways:

- all choices are the same, of enough questions. Where all are right, this is no evidence beyond that accuracy; yet two
  perfect models are so rare that people are asked. Who always takes one position is exempt;
- the wrong ones are the same, more often than what explains it. Of the questions that both answer wrongly, with wrong
  options p that they take with the shares a_p and b_p, chance alone gives the same on Σ a_p b_p: a position that both
  prefer, and of two options always. This is Cohen's kappa of wrong choices, (agreement − chance) / (1 − chance).
  Honest models err alike, since what misleads one misleads another: those of Kim et al. (arXiv 2506.07962) agree on
  60 % of what both have wrong, where 1/3 is chance with four options, a kappa of 0.4. The margin is wide: up to
  `HONEST` models count as different.
"""

from __future__ import annotations

from typing import Annotated

import numpy as np
from numpy.typing import NDArray
from pydantic import StringConstraints, model_validator

from audio_compositionality.evaluator.results.result import SampleTable
from audio_compositionality.evaluator.results.strict import ResultError, Strict
from audio_compositionality.evaluator.run.opened import OpenedTask
from audio_compositionality.tasks.base import TaskInfo

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]

NO_CHOICE = "-"
"""In place of a choice that an answer does not make."""

LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
"""Of the positions of options."""

LEAST_SAME = 30
"""Questions of which all choices have to be the same."""

HONEST = 0.75
"""Kappa of wrong choices up to which models are taken for different."""

COPIED = 0.9
"""Kappa from which on they are taken for one, where chance does not explain it."""

CHANCE_AGREEMENT = 1e-4
"""Probability that models whose kappa is `HONEST` agree as often, above which agreement proves nothing."""

Letters = Annotated[str, StringConstraints(strict=True, pattern="^[A-Z-]*$", max_length=20_000)]


class Choices(Strict):
    """What is chosen of the options of each question, a character each.

    Attributes:
        taken: letter of the option that is taken; ``-`` of an answer that names none.
        right: letter of the one that is right.
        last: letter of the last one.
    """

    taken: Letters
    right: Letters
    last: Letters

    @model_validator(mode="after")
    def _check(self) -> Choices:
        if not len(self.taken) == len(self.right) == len(self.last):
            raise ResultError("it has other numbers of choices, right ones and questions")
        if any(NO_CHOICE in letters for letters in (self.right, self.last)):
            raise ResultError("a question has no right option")
        if any(max(one) > last for *one, last in zip(self.taken, self.right, self.last, strict=True)):
            raise ResultError("an option comes after the last one")
        return self


def choices_of(samples: SampleTable, opened: OpenedTask) -> Choices | None:
    """The choices in the samples of a task; None of one whose samples do not say them, or that has too many options.

    Args:
        samples: of answers that were scored.
        opened: the task with its data.
    """
    asked, taken = opened.samples.asked, taken_in(samples, opened.task.info)
    if taken is None or len(asked) != len(taken) or any(len(one.options) > len(LETTERS) for one in asked):
        return None
    right = "".join(LETTERS[one.options.index(one.answer)] for one in asked)
    return Choices(taken=taken, right=right, last="".join(LETTERS[len(one.options) - 1] for one in asked))


def taken_in(samples: SampleTable, info: TaskInfo) -> str | None:
    """The letters of the options that the samples of a task say are taken; None where they say none."""
    column = None if info.profile is None else samples.columns.get(info.profile.choices)
    if column is None:
        return None
    return "".join(LETTERS[int(place)] if 0 <= place < len(LETTERS) else NO_CHOICE for place in column)


def are_nearly_same_choices(one: Choices, other: Choices) -> bool:
    """Whether answers to the same questions are nearly the same; see the module."""
    if (one.right, one.last) != (other.right, other.last):
        return False
    if one.taken == other.taken and len(one.taken) >= LEAST_SAME and not is_constant(one):
        return True
    kappa, probability = agreement_of_errors(one, other)
    return kappa >= COPIED and probability <= CHANCE_AGREEMENT


def is_constant(choices: Choices) -> bool:
    """Whether one position is taken of all questions with as many options: who submits such answers copies nobody."""
    taken: dict[str, set[str]] = {}
    for letter, last in zip(choices.taken, choices.last, strict=True):
        taken.setdefault(last, set()).add(letter)
    return all(len(letters - {NO_CHOICE}) <= 1 for letters in taken.values())


def agreement_of_errors(one: Choices, other: Choices) -> tuple[float, float]:
    """Kappa of the choices that are wrong in both; and how probable as much agreement is where kappa is `HONEST`.

    Questions with two options tell nothing: both wrong choices are the same one. Without any other the kappa is 0, and
    the probability 1.
    """
    first, second, right, last = (_positions(letters) for letters in (one.taken, other.taken, one.right, one.last))
    wrong = (first >= 0) & (second >= 0) & (first != right) & (second != right) & (last >= 2)
    if not wrong.any():
        return 0.0, 1.0
    chance = np.zeros(int(wrong.sum()))
    for count in np.unique(last[wrong]):
        places = last[wrong] == count
        habits, other_habits = (_habits(taken[wrong][places], int(count) + 1) for taken in (first, second))
        chance[places] = _chance(habits, other_habits, right[wrong][places])
    same = first[wrong] == second[wrong]
    expected = float(chance.mean())
    kappa = (float(same.mean()) - expected) / (1 - expected) if expected < 1 - 1e-9 else 0.0
    return kappa, _tail(chance + HONEST * (1 - chance), int(same.sum()))


def _positions(letters: str) -> Ints:
    """Places of options from 0; −1 of none."""
    return np.array([LETTERS.find(letter) for letter in letters], np.int64)


def _habits(taken: Ints, options: int) -> Floats:
    """How often each position is taken where the answer is wrong, with one more answer spread over all, [options]."""
    counts = np.bincount(taken, minlength=options).astype(np.float64)
    return counts + 1 / options


def _chance(first: Floats, second: Floats, right: Ints) -> Floats:
    """Probability that two models with such habits take the same option of each question, neither the right one."""
    allowed = np.ones((len(right), len(first)))
    allowed[np.arange(len(right)), right] = 0
    shares = [habits * allowed / (habits * allowed).sum(axis=1, keepdims=True) for habits in (first, second)]
    return np.asarray((shares[0] * shares[1]).sum(axis=1))


def _tail(probabilities: Floats, least: int) -> float:
    """Probability that at least so many of independent events come true: the Poisson binomial distribution, by
    convolution."""
    distribution = np.zeros(len(probabilities) + 1)
    distribution[0] = 1
    for probability in probabilities:
        distribution[1:] = distribution[1:] * (1 - probability) + distribution[:-1] * probability
        distribution[0] *= 1 - probability
    return float(min(1.0, distribution[least:].sum()))
