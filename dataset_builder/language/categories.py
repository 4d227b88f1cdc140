"""What labels of recordings say: words, a kind of sounds, and of some who makes a sound and how."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping, Sequence
from functools import cache
from importlib.resources import files
from typing import Any

import yaml

from .expressions import Leaf
from .prompts import words_of

_FILES = ("categories.yaml", "nouns.yaml")

_PUNCTUATION = re.compile(r"[^\w\s'-]+")


@cache
def _tables() -> tuple[Mapping[str, Sequence[str]], Mapping[str, Sequence[str]]]:
    contents: list[Any] = [yaml.safe_load(files(__package__).joinpath(name).read_text("utf-8")) for name in _FILES]
    return contents[0], contents[1]


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


def recorded_phrase(leaf: Leaf) -> str:
    """What a leaf of recordings is called in a caption: ``rain``, ``man speaking``."""
    return " ".join((leaf.label, *leaf.attributes))
