"""What can be set, as one frozen pydantic model: bounds, choices and a description a field.

Validation, the fingerprint, ``NAME=VALUE``, the table of the docs and the words of an error come from that one place.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from functools import cache
from types import NoneType, UnionType
from typing import Any, Literal, Self, Union, get_args, get_origin

from pydantic import BaseModel, ConfigDict, TypeAdapter, ValidationError
from pydantic.fields import FieldInfo

from .errors import InputError
from .table import Cell, Column, Row, Table
from .text import nearest

_WORDS: Mapping[Any, str] = {int: "a whole number", float: "a number", bool: "true or false", str: "a text"}

_NOTHING = object()
"""A value of no type."""

_BOUNDS = (("ge", "least"), ("gt", "above"), ("le", "most"), ("lt", "below"))
"""Attributes of pydantic's bounds, and what they are called here."""


class Spec(BaseModel):
    """Something that can be set: a frozen model whose fields have bounds and a description; two equal ones are one.

    A subclass states fields, such as ``items: int = Field(400, ge=1, le=20_000, description="How many.")``. A rule over
    two fields is a ``model_validator(mode="after")`` that raises `InputError`.

    Raises:
        InputError: no such field, or a value of another type or out of its range: value, rule and nearest name.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", arbitrary_types_allowed=True, validate_default=True)

    def __init__(self, **values: Any) -> None:
        """Check all values; tuples may be given as lists, NumPy's numbers as numbers."""
        try:
            fields = type(self).model_fields
            super().__init__(
                **{
                    name: _unread(_plain(value), fields[name]) if name in fields else value
                    for name, value in values.items()
                }
            )
        except ValidationError as error:
            raise _first_fault(type(self), error, values) from None

    def values(self) -> dict[str, Any]:
        """Everything that decides something, as JSON values; a fingerprint is made of them."""
        return self.model_dump(mode="json")

    def changed(self, **changes: Any) -> Self:
        """The same with other values, checked as new ones are."""
        kept = {name: getattr(self, name) for name in type(self).model_fields if name not in changes}
        return type(self)(**kept, **changes)

    @classmethod
    def settable(cls) -> dict[str, FieldInfo]:
        """The fields that a user can write as a text, by their names."""
        return {name: field for name, field in cls.model_fields.items() if _is_typable(field.annotation)}

    @classmethod
    def read(cls, texts: Sequence[str]) -> dict[str, Any]:
        """Values by the names of fields from texts, such as ``classes=6``.

        Raises:
            InputError: a text is no ``NAME=VALUE``, names no field or one twice, or its value is of another type.
        """
        return read_values(texts, cls.settable(), cls.__name__)

    @classmethod
    def table(cls) -> Table:
        """The fields that a user can write; see `fields_table`."""
        return fields_table(cls.settable(), "Settings")


def fields_table(fields: Mapping[str, FieldInfo], title: str) -> Table:
    """A table of fields: name, default, rule and description."""
    columns = (
        Column("name", "Of the setting.", numeric=False),
        Column("default", "What it is where nobody sets it.", numeric=False),
        Column("rule", "What it may be.", numeric=False),
        Column("meaning", "What it decides.", numeric=False),
    )
    rows = [
        Row((Cell(name), Cell(_written(field.get_default(call_default_factory=True))), Cell(rule_of(field)),
             Cell(field.description or "")))
        for name, field in fields.items()
    ]  # fmt: skip
    return Table(title, columns, tuple(rows), (), "settings")


def fingerprint_of(**named: Any) -> str:
    """SHA-256 over JSON values by name: equal ones mean the same."""
    return hashlib.sha256(json.dumps(named, sort_keys=True).encode()).hexdigest()


def read_values(texts: Sequence[str], fields: Mapping[str, FieldInfo], owner: str) -> dict[str, Any]:
    """Values from ``NAME=VALUE``.

    Args:
        texts: one a value.
        fields: that there are, of one spec or of several.
        owner: what has them, for messages.

    Raises:
        InputError: see `Spec.read`.
    """
    values: dict[str, Any] = {}
    for text in texts:
        name, equals, value = (part.strip() for part in text.partition("="))
        if not equals or not name:
            raise InputError(f"--set is {text!r}; it takes NAME=VALUE, such as seed=1")
        if name not in fields:
            raise InputError(f"{owner} has no setting {name!r}; {nearest(name, sorted(fields))}")
        if name in values:
            raise InputError(f"--set has {name} twice; a setting has one value")
        values[name] = _read(name, value, fields[name])
    return values


def check_values(values: Mapping[str, Any], fields: Mapping[str, FieldInfo], owner: str) -> None:
    """Refuse a value of what is no field, or of another type or out of the field's range.

    Args:
        values: by name.
        fields: that there are, of one spec or of several.
        owner: what has them, for messages.

    Raises:
        InputError: the value and the rule, or the nearest name.
    """
    for name, value in values.items():
        if name not in fields:
            raise InputError(f"{owner} has no setting {name!r}; {nearest(name, sorted(fields))}")
        try:
            _adapter(_without_none(fields[name].annotation)).validate_python(_unread(value, fields[name]))
        except ValidationError:
            raise InputError(f"{name} is {_written(value)}; it is {rule_of(fields[name])}") from None


def rule_of(field: FieldInfo) -> str:
    """What a value of a field may be, in words: ``a whole number from 1 to 20,000``."""
    choices = _choices(field.annotation)
    if choices:
        return f"one of {', '.join(map(str, choices))}"
    return f"{_kind(field.annotation)}{_range(field)}"


def _read(name: str, text: str, field: FieldInfo) -> Any:
    """A value as a user writes it: of lists the parts have commas between them."""
    annotation = _without_none(field.annotation)
    given: Any = text
    if get_origin(annotation) in (tuple, list):
        given = tuple(part.strip() for part in text.split(",") if part.strip())
    try:
        return _adapter(annotation).validate_python(given)
    except ValidationError:
        raise InputError(f"{name} is {text!r}; it is {rule_of(field)}") from None


def _unread(value: Any, field: FieldInfo) -> Any:
    """A value; of a text or a truth value in place of a number, which pydantic would read, nothing that is valid."""
    kind = _without_none(field.annotation)
    is_other = isinstance(value, str) and kind in (int, float, bool)
    is_other |= isinstance(value, bool) and kind in (int, float)
    return _NOTHING if is_other else value


@cache
def _adapter(annotation: Any) -> TypeAdapter[Any]:
    return TypeAdapter(annotation)


def _plain(value: Any) -> Any:
    """A scalar of NumPy as Python's own; anything else as it is."""
    return value.item() if getattr(value, "ndim", None) == 0 and hasattr(value, "item") else value


def _first_fault(spec: type[Spec], error: ValidationError, values: Mapping[str, Any]) -> InputError:
    detail = error.errors()[0]
    raised = detail.get("ctx", {}).get("error")
    if isinstance(raised, InputError):
        return raised
    name = str(detail["loc"][0])
    if detail["type"] == "extra_forbidden":
        return InputError(f"there is no setting {name!r}; {nearest(name, spec.settable())}")
    rule = rule_of(spec.model_fields[name])
    if name not in values:
        return InputError(f"{name} is missing; it is {rule}")
    return InputError(f"{name} is {_written(values[name])}; it must be {rule}")


def _written(value: Any) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, list | tuple):
        return ", ".join(map(str, value)) or "empty"
    return repr(value) if isinstance(value, str) else f"{value}"


def _without_none(annotation: Any) -> Any:
    """The type of a value that can be missing."""
    if get_origin(annotation) in (Union, UnionType):
        kinds = [kind for kind in get_args(annotation) if kind is not NoneType]
        if len(kinds) == 1:
            return kinds[0]
    return annotation


def _is_typable(annotation: Any) -> bool:
    kind = _without_none(annotation)
    if kind in _WORDS or get_origin(kind) is Literal:
        return True
    return get_origin(kind) is tuple and all(part in _WORDS or part is ... for part in get_args(kind))


def _choices(annotation: Any) -> tuple[Any, ...]:
    kind = _without_none(annotation)
    return get_args(kind) if get_origin(kind) is Literal else ()


def _kind(annotation: Any) -> str:
    kind = _without_none(annotation)
    if get_origin(kind) is not tuple:
        return _WORDS.get(kind, "one of its kind")
    parts = get_args(kind)
    plural = {int: "whole numbers", float: "numbers", str: "names"}.get(parts[0], "values")
    count = "" if ... in parts else f"{len(parts)} "
    return f"{count}{plural} with commas between them"


def _range(field: FieldInfo) -> str:
    bounds = {
        words: getattr(one, bound)
        for one in field.metadata
        for bound, words in _BOUNDS
        if getattr(one, bound, None) is not None
    }
    low = bounds.get("least", bounds.get("above"))
    high = bounds.get("most", bounds.get("below"))
    if low is None and high is None:
        return ""
    start = "" if low is None else f" {'from' if 'least' in bounds else 'above'} {low:,}"
    end = (
        ""
        if high is None
        else f" {'to' if 'most' in bounds and low is not None else 'up to' if 'most' in bounds else 'below'} {high:,}"
    )
    return f"{start}{end}{' on' if high is None and 'least' in bounds else ''}"
