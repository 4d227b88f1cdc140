"""The wordings of questions, from ``wordings.yaml``; and what a question asks, from its words alone: the inverse."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any, NamedTuple

import yaml

from audio_compositionality.support.errors import InputError
from audio_compositionality.support.text import nearest

_GAP = re.compile(r"\{([ab])\}")

_LETTERED = re.compile(r"[(\[]?[A-Z][.:)\]](\s|$)")


@dataclass(frozen=True)
class Template:
    """A wording.

    Attributes:
        name: of its own among all, such as ``counting-kinds-07``.
        text: with ``{a}`` where the anchor stands, and ``{b}`` where the label does that it is compared with.
        polarity: of a question that is answered by Yes or No, what Yes says, such as ``overlap``; else empty.
    """

    name: str
    text: str
    polarity: str = ""

    def question(self, anchor: str = "", other: str = "") -> str:
        """The question about an anchor, which is a label, or about two labels."""
        return self.text.format(a=spoken(anchor), b=spoken(other))


def spoken(label: str) -> str:
    """A label within a sentence: in small letters, but for abbreviations."""
    return " ".join(word if word.isupper() and len(word) > 1 else word.lower() for word in label.split())


def is_lettered(option: str) -> bool:
    """Whether a text starts as options do in a prompt, such as ``B. dog``: nobody could tell what letter it has."""
    return _LETTERED.match(option.lstrip()) is not None


@cache
def _content() -> Mapping[str, Any]:
    content: Mapping[str, Any] = yaml.safe_load(files(__package__).joinpath("wordings.yaml").read_text("utf-8"))
    return content


@cache
def templates_digest() -> str:
    """SHA-256 of what the file says: wordings are part of the data, and so of their fingerprint."""
    return hashlib.sha256(json.dumps(_content(), sort_keys=True).encode()).hexdigest()


@cache
def all_templates() -> Mapping[tuple[str, str], tuple[Template, ...]]:
    """All wordings, by task and variant."""
    wordings: dict[tuple[str, str], tuple[Template, ...]] = {}
    for task, variants in _content().items():
        for variant, entries in variants.items():
            by_polarity = entries if isinstance(entries, dict) else {"": entries}
            texts = [(text, polarity) for polarity, of_polarity in by_polarity.items() for text in of_polarity]
            wordings[task, variant] = tuple(
                Template(f"{task}-{variant}-{number:02d}", text, polarity)
                for number, (text, polarity) in enumerate(texts, 1)
            )
    return wordings


def templates(task: str, variant: str) -> tuple[Template, ...]:
    """The wordings of a kind of question.

    Raises:
        InputError: there is no such kind.
    """
    wordings = all_templates()
    if (task, variant) not in wordings:
        hint = nearest(f"{task}/{variant}", [f"{name}/{of}" for name, of in wordings])
        raise InputError(f"there are no questions {f'{task}/{variant}'!r}; {hint}")
    return wordings[task, variant]


def template_of(name: str) -> Template:
    """The wording of a name.

    Raises:
        InputError: there is none.
    """
    task, _, rest = name.partition("-")
    wordings = {template.name: template for template in templates(task, rest.rpartition("-")[0])}
    if name not in wordings:
        raise InputError(f"there is no wording {name!r}; {nearest(name, wordings)}")
    return wordings[name]


class Asked(NamedTuple):
    """What a question asks.

    Attributes:
        task: such as ``counting``.
        variant: of the task, such as ``kinds``.
        anchor: the sound that is asked about, as it is spoken; empty where the whole clip is.
        polarity: of Yes and No, what Yes says, such as ``overlap``; else empty.
        compared: the sound that the anchor is compared with, as it is spoken; empty where it is with none.
    """

    task: str
    variant: str
    anchor: str
    polarity: str
    compared: str = ""


class Wording(NamedTuple):
    """A question in its wording.

    Attributes:
        asked: what it asks.
        template: the wording.
    """

    asked: Asked
    template: Template


def read_question(question: str, options: Sequence[str] = ()) -> Asked | None:
    """What a question asks; None where it is in none of the wordings.

    >>> read_question("What overlaps with the brass section?")
    Asked(task='classification', variant='overlap', anchor='brass section', polarity='', compared='')

    Args:
        question: as it was asked.
        options: where there are any, and what is asked is answered by Yes or No, they have to be these two.
    """
    wording = read_wording(question, options)
    return None if wording is None else wording.asked


def read_wording(question: str, options: Sequence[str] = ()) -> Wording | None:
    """As `read_question`, with the wording.

    The words of a label may be read as those of a wording. Of several readings that with most words of the wording, so
    the shortest label, is taken.
    """
    readings = []
    for (task, variant), template, pattern in _patterns():
        match = pattern.fullmatch(question)
        if match is not None:
            labels = match.groupdict(default="")
            asked = Asked(task, variant, labels.get("a", ""), template.polarity, labels.get("b", ""))
            readings.append(Wording(asked, template))
    if not readings:
        return None
    best = min(readings, key=lambda reading: len(reading.asked.anchor) + len(reading.asked.compared))
    if best.asked.polarity and options and {option.casefold() for option in options} != {"yes", "no"}:
        return None
    return best


@cache
def _patterns() -> tuple[tuple[tuple[str, str], Template, re.Pattern[str]], ...]:
    """Each wording with the kind of question and a pattern of its text, in which labels are ``a`` and ``b``."""
    return tuple(
        (kind, template, re.compile(_pattern(template.text)))
        for kind, wordings in all_templates().items()
        for template in wordings
    )


def _pattern(text: str) -> str:
    """A regular expression of a wording; a label that is named twice is the same twice."""
    # Texts and names of labels take turns.
    parts, named = _GAP.split(text), set()
    pattern = ""
    for place, part in enumerate(parts):
        if place % 2 == 0:
            pattern += re.escape(part)
        elif part in named:
            pattern += f"(?P={part})"
        else:
            named.add(part)
            pattern += rf"(?P<{part}>\S(?:.*\S)?)"
    return pattern
