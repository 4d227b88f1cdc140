"""The wordings of the grammar of captions, from ``templates.yaml``."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Literal

import yaml

from audio_compositionality.support.errors import InputError
from audio_compositionality.support.text import nearest

_FILES = ("lexicon.yaml", "templates.yaml")

Meaning = Literal["sequence", "together", "throughout"]
Mention = Literal["forward", "reverse", ""]


@dataclass(frozen=True)
class Template:
    """One way to put two parts into words.

    Attributes:
        name: of its own among all.
        meaning: ``sequence``, ``together``, ``throughout``.
        text: with ``{first}`` and ``{second}``, each once.
        mention: of a sequence, whether the first heard is named first (``forward``) or last (``reverse``).
        chains: whether it may join more than two parts.
        held_out: whether it is kept from training.
    """

    name: str
    meaning: Meaning
    text: str
    mention: Mention = ""
    chains: bool = False
    held_out: bool = False

    def join(self, first: str, second: str) -> str:
        """Two parts as one text."""
        return self.text.format(first=first, second=second)


@cache
def language_digest() -> str:
    """SHA-256 of what the lexicon and the templates say: texts are part of the data, and so of their fingerprint."""
    contents = [yaml.safe_load(files(__package__).joinpath(name).read_text("utf-8")) for name in _FILES]
    return hashlib.sha256(json.dumps(contents, sort_keys=True).encode()).hexdigest()


@cache
def templates() -> Mapping[Meaning, tuple[Template, ...]]:
    """All templates, by meaning."""
    content = yaml.safe_load(files(__package__).joinpath("templates.yaml").read_text("utf-8"))
    return {
        meaning: tuple(Template(meaning=meaning, **entry) for entry in entries) for meaning, entries in content.items()
    }


def template_of(name: str) -> Template:
    """The template of a name.

    Raises:
        InputError: there is none.
    """
    every = {template.name: template for of_meaning in templates().values() for template in of_meaning}
    if name not in every:
        raise InputError(f"unknown template {name!r}; {nearest(name, every)}")
    return every[name]
