"""Prompts: the texts that say of a clip that a class is heard in it."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any

import yaml

from audio_compositionality.support.errors import InputError
from audio_compositionality.support.text import first_line, nearest

from ..sounds.words import words_of

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


def prompts_of(label: str, templates: Sequence[str]) -> list[str]:
    """The prompts of a class, one a template."""
    return [template.replace(SLOT, words_of(label)) for template in templates]
