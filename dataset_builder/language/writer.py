"""A language model as a writer of captions and hard negatives (arXiv 2310.08753): what it is asked, what is taken.

The prompts are those of ``writer.yaml``; `acceptance` decides what becomes of the answers.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from functools import cache
from importlib.resources import files
from string import Template
from typing import Any, Protocol

import yaml

from .acceptance import MOST_WORDS, Judge, Judgement, texts_in
from .expressions import Leaf, leaves
from .lexicon import dimension_of
from .reading import Reading, cues_of, reading_digest
from .truth import Event

NEGATIVES = 3
"""How many are asked for (arXiv 2310.08753)."""


class TextModel(Protocol):
    """What answers prompts; `language_model.LanguageModel` is one."""

    @property
    def identity(self) -> Mapping[str, str]:
        """``model``, ``revision`` and whatever else decides its answers."""
        ...

    def generate(self, prompts: Sequence[str]) -> Sequence[str]:
        """The answer to each prompt."""
        ...


class LanguageModelWriter:
    """Asks a model for texts about clips.

    Attributes:
        model: that is asked.
        in_test: whether it writes rows of the split ``test`` too. Models that are tested should not read what a model
            of their kind wrote, so it has to be asked for.
    """

    def __init__(self, model: TextModel, *, in_test: bool = False) -> None:
        self.model = model
        self.in_test = in_test

    @property
    def identity(self) -> dict[str, Any]:
        """All that decides which texts are taken from which rows, but for the rows themselves, as JSON values."""
        return {**self.model.identity, "prompts": writer_digest(), "in_test": self.in_test}

    def paraphrase(self, judge: Judge) -> Judgement:
        """The judge's caption in other words."""
        return equivalent(self._answer(paraphrase_prompt(judge)), judge)

    def describe(self, judge: Judge) -> Judgement:
        """A caption of less than `MOST_WORDS` words, from the sounds and their times alone.

        It says the same as the judge's caption; where there is none, it names all that is heard and is true.
        """
        return equivalent(self._answer(description_prompt(judge)), judge, most_words=MOST_WORDS - 1)

    def negatives(self, judge: Judge) -> list[Judgement]:
        """`NEGATIVES` texts of the sounds of the judge's caption that are false of the clip."""
        return false_texts(self._answer(negatives_prompt(judge)), judge)

    def _answer(self, prompt: str) -> str:
        return self.model.generate([prompt])[0]


def equivalent(answer: str, judge: Judge, *, most_words: int = MOST_WORDS) -> Judgement:
    """The caption of an answer."""
    texts = texts_in(answer, "caption")
    if texts is None:
        return Judgement(reason="no JSON")
    return judge.equivalent(texts[0] if texts else None, most_words=most_words)


def false_texts(answer: str, judge: Judge) -> list[Judgement]:
    """The first `NEGATIVES` negatives of an answer; none of them comes twice."""
    texts = texts_in(answer, "negatives")
    if texts is None:
        return [Judgement(reason="no JSON")] * NEGATIVES
    judgements: list[Judgement] = []
    for text in [*texts, *[None] * NEGATIVES][:NEGATIVES]:
        judgements.append(judge.negative(text))
        judge = judge.beside(judgements[-1].text)
    return judgements


def paraphrase_prompt(judge: Judge) -> str:
    """What is asked for `LanguageModelWriter.paraphrase`."""
    return _prompt("paraphrase", judge, caption=judge.text)


def description_prompt(judge: Judge) -> str:
    """What is asked for `LanguageModelWriter.describe`."""
    return _prompt("description", judge, sounds="\n".join(_sounds(judge)))


def negatives_prompt(judge: Judge) -> str:
    """What is asked for `LanguageModelWriter.negatives`."""
    return _prompt("negatives", judge, caption=judge.text, count=str(NEGATIVES))


def _prompt(name: str, judge: Judge, **values: str) -> str:
    mention = judge.caption.mention if judge.caption is not None else "forward"
    return Template(_content()[name]).substitute(
        values,
        order=_content()["order"][mention],
        joining=", ".join(_joining(mention)),
        verbs=", ".join(_content()["verbs"]),
    )


@cache
def _joining(mention: str) -> tuple[str, ...]:
    """Words that join sounds, of sequences in one direction; none that is kept from training."""
    sequence = cues_of("reverse") if mention == "reverse" else cues_of("forward")
    every = (*sequence, *cues_of("with", "together", "throughout"))
    return tuple(dict.fromkeys(every))


def _sounds(judge: Judge) -> list[str]:
    """The sounds with their times, a line each, in the order of their beginnings."""
    lines = []
    for leaf in _named(judge.caption, judge.events):
        fitting = [event for event in judge.events if event.is_of(leaf)]
        times = ", ".join(f"{event.start:.1f} to {event.stop:.1f} s" for event in fitting)
        lines.append((min((event.start for event in fitting), default=0.0), f"- {_phrase(leaf)}: {times}"))
    return [line for _, line in sorted(lines)]


def _phrase(leaf: Leaf) -> str:
    """As "slow high bell", "man speaking": words that are none of the lexicon stand behind."""
    before = [word for word in leaf.attributes if dimension_of(word)]
    return " ".join((*before, leaf.label, *(word for word in leaf.attributes if word not in before)))


def _named(caption: Reading | None, events: Sequence[Event]) -> Sequence[Leaf]:
    if caption is not None:
        return leaves(caption.expression)
    return tuple(dict.fromkeys(Leaf(event.label, event.attributes) for event in events))


@cache
def writer_digest() -> str:
    """SHA-256 of the prompts and of the words that can be read: they decide which texts are taken."""
    return hashlib.sha256(json.dumps([_content(), reading_digest()], sort_keys=True).encode()).hexdigest()


@cache
def _content() -> dict[str, Any]:
    content: dict[str, Any] = yaml.safe_load(files(__package__).joinpath("writer.yaml").read_text("utf-8"))
    return content
