"""`--set NAME=VALUE`: every field of every spec that a command has, by its name."""

from __future__ import annotations

import argparse
import difflib
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from audio_compositionality.support.errors import InputError
from audio_compositionality.support.table import print_table

if TYPE_CHECKING:
    from pydantic.fields import FieldInfo

HELP = "help"
"""What stands in place of ``NAME=VALUE`` to list all settings."""


@dataclass(frozen=True)
class Group:
    """Settings of one thing.

    Attributes:
        title: what they are settings of.
        fields: by name; what has them is imported when they are asked for.
        shown: names of those that are listed; None for all.
    """

    title: str
    fields: Callable[[], Mapping[str, FieldInfo]]
    shown: Collection[str] | None = None


class ListedError(Exception):
    """The settings were listed, as was asked for: there is nothing else to do."""


def add_settings(parser: argparse.ArgumentParser) -> None:
    """Add `options.set`."""
    parser.add_argument(
        "--set",
        action="append",
        default=[],
        metavar="NAME=VALUE",
        help="any other setting, as often as you like; --set help lists all with their values",
    )


def pairs(texts: Sequence[str]) -> dict[str, str]:
    """The texts by the names of the settings.

    Raises:
        InputError: one is no ``NAME=VALUE``, or names one twice.
    """
    named: dict[str, str] = {}
    for text in texts:
        name, equals, _ = (part.strip() for part in text.partition("="))
        if not equals or not name:
            raise InputError(f"--set is {text!r}; it takes NAME=VALUE, such as seed=1, and --set help lists all")
        if name in named:
            raise InputError(f"--set has {name} twice; a setting has one value")
        named[name] = text
    return named


def divided(texts: Sequence[str], groups: Sequence[Group]) -> list[dict[str, Any]]:
    """The values of settings, those of each group by themselves.

    Args:
        texts: as they were typed.
        groups: in the order in which they are looked through; those behind the last one that is needed are not asked.

    Raises:
        ListedError: the settings were asked for, and have been printed.
        InputError: a text is no ``NAME=VALUE``, names no setting, or its value is none that the setting can have.
    """
    from audio_compositionality.support.spec import read_values, settings_table

    if HELP in texts:
        for group in groups:
            every = group.fields()
            shown = {name: every[name] for name in every if group.shown is None or name in group.shown}
            if shown:
                print_table(settings_table(shown, f"Settings of {group.title} (--set NAME=VALUE)"))
                print()
        raise ListedError
    left = pairs(texts)
    values: list[dict[str, Any]] = []
    for group in groups:
        fields = group.fields() if left else {}
        of_group = [left.pop(name) for name in [*left] if name in fields]
        values.append(read_values(of_group, fields, group.title))
    for name in left:
        raise InputError(f"there is no setting {name!r}; {hint(name, groups)}")
    return values


def hint(name: str, groups: Sequence[Group]) -> str:
    """The nearest setting, and how to see all."""
    close = difflib.get_close_matches(name.lower(), [*_names(groups)], n=1, cutoff=0.5)
    nearest = f"did you mean {close[0]!r}? " if close else ""
    return f"{nearest}--set {HELP} lists all"


def _names(groups: Sequence[Group]) -> Iterator[str]:
    for group in groups:
        yield from group.fields()
