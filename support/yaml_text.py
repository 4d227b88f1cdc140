"""Safe reading of untrusted YAML: settings, data files, cards and files on the Hub.

A YAML text of 400 bytes can mean 10^10 values by aliases, be nested without end, or contain a number with a million
digits. Therefore its size, its number of values with all aliases expanded, its depth and the length of its numbers are
limited, and checked before any value is created. Plain values follow the core schema of YAML 1.2: ``1e-3`` is a number,
and ``yes``, ``1:30`` and ``2026-11-28`` are texts.
"""

from __future__ import annotations

import re
from functools import cache
from typing import Any, ClassVar

from .errors import InputError
from .text import first_line, shortened

LARGEST = 2**20
"""Most bytes of a text."""

MOST_VALUES = 200_000
"""Most keys and values in a text, with all aliases expanded."""

DEEPEST = 50
"""Deepest nesting of lists and mappings."""

_LONGEST_NUMBER = 300


def parse_yaml(content: bytes | str, name: str) -> Any:
    """Return the value of a YAML text.

    Args:
        content: the text, in UTF-8.
        name: name of its file, for messages.

    Raises:
        InputError: the text is not YAML, exceeds a limit, or has tags of other programs.
    """
    import yaml

    if len(content) > LARGEST:
        raise InputError(f"{name} has more than {LARGEST:,} bytes, the limit for YAML")
    try:
        text = content.decode() if isinstance(content, bytes) else content
        _check(text, name)
        return yaml.load(text, _loader())  # it is a SafeLoader
    except InputError:
        raise
    except (yaml.YAMLError, ValueError, LookupError, TypeError, AttributeError, RecursionError) as error:
        reason = shortened(str(getattr(error, "problem", None) or first_line(error)), 200)
        raise InputError(f"{name} is not YAML: {reason}") from error


def _check(text: str, name: str) -> None:
    """Raise an error for too many values, too deep nesting, or an alias inside its own value."""
    import yaml

    # Values so far; values before each open list or mapping, with its anchor; number of values of each anchor.
    count, sizes = 0, dict[str, int]()
    opened: list[tuple[str | None, int]] = []
    for event in yaml.parse(text, _loader()):
        anchor = getattr(event, "anchor", None)
        if isinstance(event, yaml.AliasEvent):
            if anchor not in sizes:
                raise InputError(f"{name} is not YAML: the alias {shortened(str(anchor), 60)!r} has no full value")
            count += sizes[anchor]
        elif isinstance(event, yaml.ScalarEvent):
            count += 1
            if anchor is not None:
                sizes[anchor] = 1
        elif isinstance(event, yaml.CollectionStartEvent):
            opened.append((anchor, count))
            # From here on, a repeated anchor means the new value.
            sizes.pop(anchor or "", None)
            count += 1
        elif isinstance(event, yaml.CollectionEndEvent):
            anchor, before = opened.pop()
            if anchor is not None:
                sizes[anchor] = count - before
        if len(opened) > DEEPEST:
            raise InputError(f"{name} is nested more than {DEEPEST} deep")
        if count > MOST_VALUES:
            raise InputError(f"{name} has more than {MOST_VALUES:,} values with all aliases expanded")


@cache
def _loader() -> Any:
    """Return a loader of plain YAML 1.2, based on libyaml if available."""
    import yaml

    class Loader(getattr(yaml, "CSafeLoader", yaml.SafeLoader)):  # type: ignore[misc]
        yaml_implicit_resolvers: ClassVar[dict[str, Any]] = {}
        yaml_constructors: ClassVar[dict[str | None, Any]] = {}

    def number(loader: Any, node: Any) -> int | float:
        value = loader.construct_scalar(node)
        if len(value) > _LONGEST_NUMBER:
            raise yaml.constructor.ConstructorError(problem=f"it has a number of {len(value):,} characters")
        if re.fullmatch(r"0[ox].*", value):
            return int(value[2:], 8 if value[1] == "o" else 16)
        if node.tag.endswith(":float"):
            return float(re.sub(r"\.(inf|nan)", r"\1", value.lower()))
        return int(value)

    core = yaml.SafeLoader.yaml_constructors
    for kind, start, pattern in (
        ("null", "~nN\0", r"~|null|Null|NULL|"),
        ("bool", "tTfF", r"true|True|TRUE|false|False|FALSE"),
        ("int", "-+0123456789", r"[-+]?[0-9]+|0o[0-7]+|0x[0-9a-fA-F]+"),
        (
            "float",
            "-+.0123456789",
            r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?|[-+]?\.(inf|Inf|INF)|\.(nan|NaN|NAN)",
        ),
        ("str", "", ""),
        ("seq", "", ""),
        ("map", "", ""),
        (None, "", ""),
    ):
        tag = None if kind is None else f"tag:yaml.org,2002:{kind}"
        if pattern:
            Loader.add_implicit_resolver(tag, re.compile(f"(?:{pattern})$"), [*start.replace("\0", ""), ""])
        Loader.add_constructor(tag, number if kind in ("int", "float") else core[tag])
    return Loader
