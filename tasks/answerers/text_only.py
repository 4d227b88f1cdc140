"""Text-only answerers: they show how much the words alone give away.

`majority` and `blind` learn from the questions of the split ``train`` and their answers. Where the questions are
balanced, all of them are at chance level.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from audio_compositionality.dataset_builder.texts.question_controls import FAMILIES, Features, option_features
from audio_compositionality.dataset_builder.texts.questions import Question

from .chooser import Chooser, Prompted, answerer_card, asked_in, drawn, letters

if TYPE_CHECKING:
    from sklearn.feature_extraction import DictVectorizer
    from sklearn.linear_model import LogisticRegression


class First(Chooser):
    """Takes the first option."""

    card = answerer_card("first", "takes the first option")

    def answer(self, clips: Sequence[Sequence[Any]], prompts: Sequence[str]) -> list[str]:
        """See `Model.answer`."""
        return letters(prompts, lambda asked, prompt: 0)


class Longest(Chooser):
    """Takes the option with most characters; in a tie the first."""

    card = answerer_card("longest", "takes the longest option")

    def answer(self, clips: Sequence[Sequence[Any]], prompts: Sequence[str]) -> list[str]:
        """See `Model.answer`."""
        return letters(prompts, lambda asked, prompt: max(range(len(asked.options)), key=_length(asked.options)))


def _length(options: Sequence[str]) -> Any:
    return lambda place: len(options[place])


class Majority(Chooser):
    """Gives the text that was right most often among questions of the same kind with the same options.

    Where no question had these options, it gives the text with the highest share of right answers among its appearances
    in options of the kind; where none of them ever appeared, the place that was right most often.
    """

    card = answerer_card("majority", "the text that was right most often among questions to learn from")

    def __init__(self) -> None:
        """It has yet to learn."""
        self._sets: dict[tuple[str, frozenset[str]], Counter[str]] = {}
        self._right: dict[str, Counter[str]] = {}
        self._there: dict[str, Counter[str]] = {}
        self._places: dict[tuple[str, int], Counter[int]] = {}

    def learn(self, rows: Sequence[Mapping[str, Any]], clips: Iterable[Any]) -> None:
        """See `Model.learn`; no clip is asked for."""
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
        return letters(prompts, self._place)

    def _place(self, asked: Prompted, prompt: str) -> int:
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


class Blind(Chooser):
    """Logistic regression over text features of each option of a question.

    The features are those of the control that questions have to pass (`question_controls.option_features`), with one
    model for each kind of question; it takes the likeliest option, and draws one of several that are equally likely.
    """

    card = answerer_card("blind", "logistic regression over the text of questions")

    def __init__(self) -> None:
        """It has yet to learn."""
        self._models: dict[str, tuple[DictVectorizer, LogisticRegression]] = {}

    def learn(self, rows: Sequence[Mapping[str, Any]], clips: Iterable[Any]) -> None:
        """See `Model.learn`; no clip is asked for."""
        from sklearn.feature_extraction import DictVectorizer
        from sklearn.linear_model import LogisticRegression

        features: dict[str, list[Features]] = defaultdict(list)
        right: dict[str, list[bool]] = defaultdict(list)
        for row in rows:
            asked = asked_in(row["question"], row["options"])
            features[asked.kind] += text_features(asked)
            right[asked.kind] += [option == row["answer"] for option in asked.options]
        self._models = {}
        for kind in features:
            vectorizer = DictVectorizer()
            model = LogisticRegression(max_iter=200).fit(vectorizer.fit_transform(features[kind]), right[kind])
            self._models[kind] = vectorizer, model

    def answer(self, clips: Sequence[Sequence[Any]], prompts: Sequence[str]) -> list[str]:
        """See `Model.answer`."""
        return letters(prompts, self._place)

    def _place(self, asked: Prompted, prompt: str) -> int:
        if asked.kind not in self._models:
            return drawn(len(asked.options), prompt)
        vectorizer, model = self._models[asked.kind]
        return most_likely(model.decision_function(vectorizer.transform(text_features(asked))), prompt)


def text_features(asked: Prompted, families: Iterable[str] = FAMILIES) -> list[Features]:
    """Text features of each option, by families; fewer for a question that cannot be read."""
    template, anchor, polarity = "", "", ""
    if asked.wording is not None:
        template = asked.wording.template.name
        anchor, polarity = asked.wording.asked.anchor, asked.wording.asked.polarity
    question = Question("", "", "", "", asked.options, "", anchor, template, "", "", polarity)
    return option_features(question, families)


def most_likely(scores: Any, prompt: str) -> int:
    """The place of the highest score; one drawn for the prompt where several differ by less than a fit's precision."""
    rounded = np.round(np.asarray(scores, np.float64), 3)
    best = np.flatnonzero(rounded == rounded.max())
    return int(best[drawn(len(best), prompt)])
