"""Answerers without sound: how much the words alone give away, and one interval for all questions about times.

`majority` and `blind` learn from the questions of the split ``train`` and their answers. If the questions are balanced,
all of them are at chance.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from audio_compositionality.dataset_builder.texts.question_controls import FAMILIES, Features, option_features
from audio_compositionality.encoders.base import Model

from .chooser import Chooser, Prompted, answerer_card, asked_in, drawn, letters, prompted

if TYPE_CHECKING:
    from sklearn.feature_extraction import DictVectorizer
    from sklearn.linear_model import LogisticRegression


class First(Chooser):
    """Takes the first option."""

    card = answerer_card("first", "takes the first option")

    def answer(self, clips: Sequence[Sequence[Any]], prompts: Sequence[str]) -> list[str]:
        """See `Model.answer`."""
        asked = [prompted(prompt) for prompt in prompts]
        return letters([0] * len(asked))


class Longest(Chooser):
    """Takes the option with most characters; the first of equal ones."""

    card = answerer_card("longest", "takes the longest option")

    def answer(self, clips: Sequence[Sequence[Any]], prompts: Sequence[str]) -> list[str]:
        """See `Model.answer`."""
        asked = [prompted(prompt) for prompt in prompts]
        return letters(one.options.index(max(one.options, key=len)) for one in asked)


class Majority(Chooser):
    """Gives the text that was right most often among questions of the same kind with the same options.

    If no question had these options, it gives the text with the highest share of right answers among its appearances in
    options of the kind; if none of them ever appeared, the position that was right most often.
    """

    card = answerer_card("majority", "the text that was right most often among questions to learn from")

    def __init__(self) -> None:
        """Start untrained; `learn` trains."""
        self._sets: dict[tuple[str, frozenset[str]], Counter[str]] = {}
        self._right: dict[str, Counter[str]] = {}
        self._there: dict[str, Counter[str]] = {}
        self._places: dict[tuple[str, int], Counter[int]] = {}

    def learn(self, rows: Sequence[Mapping[str, Any]], clips: Iterable[Any]) -> None:
        """See `Model.learn`; no clip is used."""
        self._sets, self._right = defaultdict(Counter), defaultdict(Counter)
        self._there, self._places = defaultdict(Counter), defaultdict(Counter)
        for row in rows:
            asked, answer = asked_in(row["question"], row["options"]), row["answer"]
            self._sets[asked.kind, frozenset(asked.options)][answer] += 1
            self._right[asked.kind][answer] += 1
            self._there[asked.kind].update(asked.options)
            self._places[asked.kind, len(asked.options)][asked.options.index(answer)] += 1

    def answer(self, clips: Sequence[Sequence[Any]], prompts: Sequence[str]) -> list[str]:
        """See `Model.answer`."""
        return letters(self._place(prompted(prompt)) for prompt in prompts)

    def _place(self, asked: Prompted) -> int:
        options = asked.options
        there = self._there.get(asked.kind, Counter())
        same = self._sets.get((asked.kind, frozenset(options)))
        if same:
            best = max(options, key=lambda option: (same[option], option))
        elif any(there[option] for option in options):
            right = self._right[asked.kind]
            best = max(options, key=lambda option: (right[option] / max(there[option], 1), option))
        else:
            places = self._places.get((asked.kind, len(options)), Counter())
            return max(range(len(options)), key=lambda place: (places[place], -place))
        return options.index(best)


Classifiers = dict[str, tuple["DictVectorizer", "LogisticRegression"]]
"""A classifier per kind of question that gives the log-odds of an option being right, from its features."""


def fitted(examples: Iterable[tuple[Prompted, list[Features], str]], iterations: int) -> Classifiers:
    """Fit a logistic regression over the options for each kind of question.

    Args:
        examples: questions, the features of each of their options, and their right answers.
        iterations: largest number of iterations of the fit.
    """
    from sklearn.feature_extraction import DictVectorizer
    from sklearn.linear_model import LogisticRegression

    features: dict[str, list[Features]] = defaultdict(list)
    right: dict[str, list[bool]] = defaultdict(list)
    for asked, of_options, answer in examples:
        features[asked.kind] += of_options
        right[asked.kind] += [option == answer for option in asked.options]
    classifiers: Classifiers = {}
    for kind in features:
        vectorizer = DictVectorizer()
        model = LogisticRegression(max_iter=iterations).fit(vectorizer.fit_transform(features[kind]), right[kind])
        classifiers[kind] = vectorizer, model
    return classifiers


def likeliest(classifiers: Classifiers, asked: Prompted, features: list[Features], prompt: str) -> int:
    """Return the index of the likeliest option.

    One is drawn for the prompt if several differ by less than a fit's precision, and for kinds of question absent from
    training: an answerer below chance would be no useful baseline.
    """
    if asked.kind not in classifiers:
        return drawn(len(asked.options), prompt)
    vectorizer, model = classifiers[asked.kind]
    rounded = np.round(model.decision_function(vectorizer.transform(features)), 3)
    best = np.flatnonzero(rounded == rounded.max())
    return int(best[drawn(len(best), prompt)])


class Blind(Chooser):
    """Logistic regression over text features of each option of a question.

    The features are those used in the control that questions must pass (`question_controls.option_features`), with one
    model per kind of question; it takes the likeliest option, and draws among equally likely ones.
    """

    card = answerer_card("blind", "logistic regression over the text of questions")

    def __init__(self) -> None:
        """Start untrained; `learn` trains."""
        self._models: Classifiers = {}

    def learn(self, rows: Sequence[Mapping[str, Any]], clips: Iterable[Any]) -> None:
        """See `Model.learn`; no clip is used."""
        given = [(asked_in(row["question"], row["options"]), row["answer"]) for row in rows]
        self._models = fitted([(asked, text_features(asked), answer) for asked, answer in given], 200)

    def answer(self, clips: Sequence[Sequence[Any]], prompts: Sequence[str]) -> list[str]:
        """See `Model.answer`."""
        places = []
        for prompt in prompts:
            asked = prompted(prompt)
            places.append(likeliest(self._models, asked, text_features(asked), prompt))
        return letters(places)


def text_features(asked: Prompted, families: Iterable[str] = FAMILIES) -> list[Features]:
    """Return text features of each option, by families; fewer for a question that cannot be parsed."""
    if asked.wording is None:
        return option_features(asked.options, families)
    what, template = asked.wording
    return option_features(asked.options, families, template.name, what.anchor, what.polarity)


class UsualTimes(Model):
    """Answers every question with the interval that overlaps most with the true intervals in training."""

    card = answerer_card("usual-times", "the interval that overlaps most with those to learn from")

    needs_columns = frozenset({"onset", "offset", "duration"})

    def __init__(self) -> None:
        """Start untrained; `learn` trains."""
        self._answer = ""

    def learn(self, rows: Sequence[Mapping[str, Any]], clips: Iterable[Any]) -> None:
        """See `Model.learn`; no clip is used."""
        from audio_compositionality.metrics.when import best_constant

        truth = np.array([(row["onset"], row["offset"]) for row in rows], np.float64)
        first, last = best_constant(truth, max(float(row["duration"]) for row in rows))[0]
        self._answer = f"{first:.3f} to {last:.3f} s"

    def answer(self, clips: Sequence[Sequence[Any]], prompts: Sequence[str]) -> list[str]:
        """See `Model.answer`."""
        return [self._answer for _ in prompts]
