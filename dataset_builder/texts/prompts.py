"""Prompts: the texts that say of a clip that a class is heard in it."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping, Sequence
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any

import yaml

from audio_compositionality.support.errors import InputError
from audio_compositionality.support.text import first_line, nearest

from .expressions import Leaf

Templates = tuple[str, ...]
"""Templates of prompts: whole sentences, with commas where they have some."""

SLOT = "{label}"
"""Where the words of a class go."""

DEFAULT = "default"
"""Name of the set that is taken where nobody names one."""


@cache
def _sets() -> dict[str, Any]:
    sets: dict[str, Any] = yaml.safe_load(files(__package__).joinpath("prompts.yaml").read_text("utf-8"))
    return sets


def load_templates(name: str = DEFAULT) -> Templates:
    """The templates of prompts of a set.

    Args:
        name: of a set of ``prompts.yaml``; or path of a YAML file that lists templates.

    Raises:
        InputError: there is neither, or the file lists no templates.
    """
    if name in _sets():
        return check_templates(_sets()[name])
    path = Path(name)
    if path.suffix not in (".yaml", ".yml"):
        raise InputError(
            f"unknown prompts {name!r}: neither a YAML file that lists some nor a name; {nearest(name, _sets())}"
        )
    try:
        values = yaml.safe_load(path.read_text("utf-8"))
    except (OSError, ValueError, yaml.YAMLError) as error:
        raise InputError(f"prompts cannot be read from {name!r}: {first_line(error)}") from error
    if not isinstance(values, list):
        raise InputError(f"{name!r} lists no templates of prompts; each is a text with {SLOT} in it")
    return check_templates(values)


def check_templates(templates: Sequence[Any]) -> Templates:
    """Templates, each once.

    Raises:
        InputError: there is none, or one that is no text with the slot in it once.
    """
    for template in templates:
        if not isinstance(template, str) or template.count(SLOT) != 1:
            raise InputError(f"the template of a prompt is {template!r}; it is a text with {SLOT} in it, once")
    if not templates:
        raise InputError(f"there are no templates of prompts; one is the least, a text with {SLOT} in it")
    return tuple(dict.fromkeys(templates))


def words_of(label: str) -> str:
    """A label as words: ``dog_bark`` and ``Dog bark`` as ``dog bark``."""
    return " ".join(label.replace("_", " ").split()).lower()


def prompts_of(label: str, templates: Sequence[str]) -> list[str]:
    """The prompts of a class, one a template."""
    return [template.replace(SLOT, words_of(label)) for template in templates]


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
