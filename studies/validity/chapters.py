"""A chapter of the page of `validate`: its parts, with titles and texts of a YAML file of its own."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any

import yaml

from .families import Check, DialTable, Part


@dataclass(frozen=True)
class Chapter:
    """What parts of one chapter share.

    Attributes:
        file: name of the YAML file in this folder; of each part it has ``title`` and ``text`` by a key.
        name: of the chapter, in the table of what must hold.
    """

    file: str
    name: str

    def part(
        self, key: str, checks: Sequence[Check] = (), dial: DialTable | None = None, *, level: int = 3, **figures: Any
    ) -> Part:
        """The part of a key; its text is filled with the figures."""
        texts = _texts(self.file)[key]
        title = texts["title"]
        text = texts["text"].format(**figures)
        return Part(f"{self.name}: {title[0].lower()}{title[1:]}", title, text, tuple(checks), dial, level)


@cache
def _texts(file: str) -> dict[str, Any]:
    content: dict[str, Any] = yaml.safe_load(files(__package__).joinpath(file).read_text("utf-8"))
    return content
