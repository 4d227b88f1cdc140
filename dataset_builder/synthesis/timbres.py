"""The eight default voices, kept as text that a person can read and edit: ``timbres.yaml``."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from importlib.resources import files
from typing import Any

import yaml

from .dx7.voice import Operator, Voice


@cache
def default_voices() -> tuple[Voice, ...]:
    """The eight voices that the project ships, in the order of their classes."""
    return tuple(_voice(entry) for entry in _entries())


@cache
def default_nouns() -> Mapping[str, str]:
    """What a listener calls the default voices, by their names."""
    return {entry["name"]: entry["noun"] for entry in _entries()}


@cache
def _entries() -> list[dict[str, Any]]:
    entries: list[dict[str, Any]] = yaml.safe_load(files(__package__).joinpath("timbres.yaml").read_text("utf-8"))
    return entries


def _voice(entry: dict[str, Any]) -> Voice:
    one, two, three, four, five, six = (_operator(fields) for fields in entry["operators"])
    return Voice(
        name=entry["name"],
        algorithm=entry["algorithm"],
        feedback=entry["feedback"],
        operators=(one, two, three, four, five, six),
    )


def _operator(fields: dict[str, Any]) -> Operator:
    values: dict[str, Any] = {
        name: tuple(value) if isinstance(value, list) else value for name, value in fields.items()
    }
    return Operator(**values)
