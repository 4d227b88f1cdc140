"""The wordings of questions, from ``templates.yaml``."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any

import yaml

from audio_compositionality.support.errors import InputError
from audio_compositionality.support.text import nearest

_LETTERED = re.compile(r"[(\[]?[A-Z][.:)\]](\s|$)")


@dataclass(frozen=True)
class Template:
    """A wording.

    Attributes:
        name: of its own among all, such as ``counting-kinds-07``.
        text: with ``{a}`` where the anchor stands.
        polarity: of a question that is answered by Yes or No, what Yes says: ``overlap`` or ``alone``; else empty.
    """

    name: str
    text: str
    polarity: str = ""

    def question(self, anchor: str = "") -> str:
        """The question about an anchor, which is a label."""
        return self.text.format(a=spoken(anchor))


def spoken(label: str) -> str:
    """A label within a sentence: in small letters, but for abbreviations."""
    return " ".join(word if word.isupper() and len(word) > 1 else word.lower() for word in label.split())


def is_lettered(option: str) -> bool:
    """Whether a text starts as options do in a prompt, such as ``B. dog``: nobody could tell what letter it has."""
    return _LETTERED.match(option.lstrip()) is not None


@cache
def _content() -> Mapping[str, Any]:
    content: Mapping[str, Any] = yaml.safe_load(files(__package__).joinpath("templates.yaml").read_text("utf-8"))
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
