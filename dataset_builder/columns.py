"""Columns of a configuration, declared once: their features, the check of a stored row, their table on the card."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from .data import DatasetError, Row

if TYPE_CHECKING:
    from datasets import Features

TEXT, NUMBER, WHOLE, AUDIO = "string", "float64", "int32", "audio"
"""Kinds of values; a list of a kind is ``[kind]``, a structure ``{"name": kind}``."""

Kind = str | list[Any] | Mapping[str, Any]

_WORDS = {TEXT: ("a text", "texts"), NUMBER: ("a number", "numbers"), WHOLE: ("a whole number", "whole numbers")}


@dataclass(frozen=True)
class Column:
    """A column.

    Attributes:
        name: of the column.
        kind: `TEXT`, `NUMBER`, `WHOLE` or `AUDIO`, a list of one in brackets, or a structure by names.
        meaning: what it holds, for the card; Markdown.
        choices: of texts and whole numbers, those that there are; empty where there can be any.
        optional: whether a value may be missing.
        least: of a list, or of each that a structure has, how many it has at least.
        count: of a list, how many it has; 0 for any number.
        filled: of a list of texts, whether none of them is empty.
        per: of a list, another one that is as long: it has one value for each of that column's.
    """

    name: str
    kind: Kind
    meaning: str
    choices: tuple[Any, ...] = ()
    optional: bool = False
    least: int = 0
    count: int = 0
    filled: bool = False
    per: str = ""

    @property
    def is_audio(self) -> bool:
        """Whether it has sound."""
        return self.kind in (AUDIO, [AUDIO])

    def fault(self, value: Any) -> str | None:
        """What a value has to be, where it is not that."""
        if value is None and self.optional:
            return None
        if self.choices and not isinstance(self.kind, list):
            if isinstance(value, str | int) and value in self.choices:
                return None
            return f"it is one of {', '.join(map(repr, self.choices))}"
        if not _fits(value, self.kind) or not all(map(self._is_long_enough, _lists(value))):
            many = f"{self.count} " if self.count else f"{self.least} or more " if self.least else ""
            return f"it {'has' if isinstance(self.kind, Mapping) else 'is'} {_words(self.kind, many)}"
        if self.choices and not all(part in self.choices for part in value):
            return f"each is one of {', '.join(map(repr, self.choices))}"
        if self.filled and not all(value):
            return "none of them is empty"
        return None

    def _is_long_enough(self, values: Sequence[Any]) -> bool:
        return len(values) >= self.least and self.count in (0, len(values))


def features_of(columns: Sequence[Column], sample_rate: int | None) -> Features:
    """What `datasets` calls the features of columns; their sound has a rate in Hz, None where each clip has its own."""
    from datasets import Audio, Features, List, Value

    def feature(kind: Kind) -> Any:
        if isinstance(kind, list):
            return List(feature(kind[0]))
        if isinstance(kind, Mapping):
            return {name: feature(of_name) for name, of_name in kind.items()}
        return Audio(sampling_rate=sample_rate) if kind == AUDIO else Value(kind)

    return Features({column.name: feature(column.kind) for column in columns})


def check_columns(row: Row, columns: Sequence[Column]) -> None:
    """Refuse a stored row in which a column without sound is missing, or holds what it must not.

    Raises:
        DatasetError: the row, the column, the value and the rule.
    """
    for column in columns:
        if column.is_audio:
            continue
        fault = column.fault(row.get(column.name))
        if fault is not None:
            raise DatasetError(f"row {row.get('id')}: {column.name} is {row.get(column.name)!r}; {fault}")
    for column in columns:
        if column.per and not column.is_audio and len(row[column.name]) != len(row[column.per]):
            raise DatasetError(
                f"row {row['id']}: {column.name} is {row[column.name]!r}; it has one for each of {column.per}, "
                f"{row[column.per]!r}"
            )


def column_table(columns: Sequence[Column]) -> str:
    """The columns as a table of Markdown, for the card."""
    rows = "\n".join(f"| `{column.name}` | {column.meaning} |" for column in columns)
    return f"| column | content |\n|---|---|\n{rows}"


def _fits(value: Any, kind: Kind) -> bool:
    if isinstance(kind, list):
        return isinstance(value, list) and all(_fits(part, kind[0]) for part in value)
    if isinstance(kind, Mapping):
        return isinstance(value, dict) and all(_fits(value.get(name), of_name) for name, of_name in kind.items())
    if kind == TEXT:
        return isinstance(value, str)
    if isinstance(value, bool):
        return False
    return isinstance(value, int) if kind == WHOLE else isinstance(value, int | float) and math.isfinite(value)


def _lists(value: Any) -> list[list[Any]]:
    """The lists of a value: itself, or those that a structure has."""
    parts = value.values() if isinstance(value, Mapping) else (value,)
    return [part for part in parts if isinstance(part, list)]


def _words(kind: Kind, many: str = "") -> str:
    if isinstance(kind, list):
        inner = kind[0]
        if isinstance(inner, Mapping):
            several = f"structures of {', '.join(inner)}"
        else:
            several = _WORDS[inner][1] if isinstance(inner, str) else "lists"
        return f"a list of {many}{several}"
    if isinstance(kind, Mapping):
        return ", ".join(f"{name} ({_words(of_name, many)})" for name, of_name in kind.items())
    return _WORDS[kind][0]
