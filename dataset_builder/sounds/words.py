"""Words for sounds: how a label is said, which kind of sound it is of, who makes it and how; and words for tones."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping, Sequence
from functools import cache
from importlib.resources import files
from itertools import pairwise
from typing import Any

import yaml

from audio_compositionality.support.errors import InputError

_PUNCTUATION = re.compile(r"[^\w\s'-]+")

READING_ORDER = ("amplitude", "rate", "pitch")
"""In which the words of a tone are read: "a loud slow high bell"."""

FEWEST_CLASSES = 6
"""With fewer classes an attribute there is none left between two words."""


LOUDNESS = ("amplitude", "dynamics", "loudness")
"""Attributes whose words say how loud a sound is."""


@cache
def word_places() -> Mapping[str, Mapping[str, tuple[float, float]]]:
    """The words of each attribute, each with both ends of its part of the range, from 0 to 1; from ``words.yaml``."""
    content = _table("words.yaml")
    return {attribute: {word: tuple(ends) for word, ends in words.items()} for attribute, words in content.items()}


@cache
def words_of_classes(attribute: str, num_classes: int) -> Mapping[str, tuple[int, ...]]:
    """The classes that each word of an attribute names, from low to high.

    Args:
        attribute: pitch, rate or amplitude.
        num_classes: K.

    Raises:
        InputError: K classes leave none between two words, or none to a word.
    """
    words = {
        word: tuple(number for number in range(num_classes) if low < (number + 0.5) / num_classes < high)
        for word, (low, high) in word_places()[attribute].items()
    }
    crowded = any(second[0] - first[-1] < 2 for first, second in pairwise(filter(None, words.values())))
    if num_classes < FEWEST_CLASSES or crowded or not all(words.values()):
        raise InputError(
            f"{num_classes} classes of {attribute} leave no gap between {', '.join(words)}; captions need "
            f"{FEWEST_CLASSES} classes or more"
        )
    return words


@cache
def dimension_of(word: str) -> str:
    """The attribute that a word for tones is of, empty for others; two words of one attribute exclude each other."""
    return next((attribute for attribute, words in word_places().items() if word in words), "")


def words_of(label: str) -> str:
    """A label as words: ``dog_bark`` and ``Dog bark`` as ``dog bark``."""
    return " ".join(label.replace("_", " ").split()).lower()


@cache
def _tables() -> tuple[Mapping[str, Sequence[str]], Mapping[str, Sequence[str]]]:
    return _table("categories.yaml"), _table("nouns.yaml")


@cache
def tables_digest() -> str:
    """SHA-256 of the tables: they decide which labels meet, and what captions call them."""
    return hashlib.sha256(json.dumps(_tables(), sort_keys=True).encode()).hexdigest()


@cache
def spoken(label: str) -> str:
    """A label as it is said: in lower case, without punctuation."""
    return words_of(_PUNCTUATION.sub(" ", label))


@cache
def category_of(label: str) -> str:
    """The kind of sounds that a label is of; its words where the table has none for it."""
    words = f" {spoken(label)} "
    for category, of_category in _tables()[0].items():
        if any(f" {word} " in words for word in of_category):
            return category
    return words.strip()


def categories_in(text: str) -> tuple[str, ...]:
    """The kinds of sounds of which a text has a word, by their letters; none where the table has none for it."""
    words = f" {spoken(text)} "
    return tuple(
        sorted(name for name, of_name in _tables()[0].items() if any(f" {word} " in words for word in of_name))
    )


@cache
def noun_of(label: str) -> tuple[str, str] | None:
    """Who makes a sound and how, ``("man", "speaking")``; None where a label does not say both."""
    words = spoken(label)
    entry = _tables()[1].get(words)
    if entry is not None:
        return entry[0], entry[1]
    noun, _, attribute = words.rpartition(" ")
    return (noun, attribute) if noun and attribute.endswith("ing") else None


@cache
def _table(name: str) -> Any:
    return yaml.safe_load(files(__package__).joinpath(name).read_text("utf-8"))
