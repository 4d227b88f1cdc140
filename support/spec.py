"""Settings as one frozen pydantic model: each field has bounds or choices, and a description.

Validation, fingerprint, ``NAME=VALUE``, YAML, the table in the docs and error messages are all derived from it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, Self, Union, get_args, get_origin

from pydantic import BaseModel, ConfigDict, TypeAdapter, ValidationError
from pydantic.fields import FieldInfo

from .errors import InputError
from .files import open_file, sha256_of_json
from .table import Column, Table, rows_of
from .text import closest, listed, nearest
from .yaml_text import LARGEST, parse_yaml

_WORDS: Mapping[Any, str] = {int: "a whole number", float: "a number", bool: "true or false", str: "a text"}
"""Types of values that can be typed, in words."""

DEEPEST = 2
"""Deepest nesting of lists and mappings in a setting: the stages of a training are a list of mappings."""

_NOTHING = object()
"""A value that no type accepts."""

_COMMAS = " with commas between them"

_BOUNDS = (("ge", "least"), ("gt", "above"), ("le", "most"), ("lt", "below"))
"""Attributes of pydantic's bounds, and their names here."""


@dataclass(frozen=True)
class TypedAs:
    """Annotation of a field that a validator reads from text: its written form, e.g. ``KIND:STEPS``."""

    words: str


class Spec(BaseModel):
    """Settings: a frozen model whose fields have bounds and a description; equal settings are interchangeable.

    A subclass defines fields, e.g. ``items: int = Field(400, ge=1, le=20_000, description="Number of items.")``. A rule
    about two fields is a ``model_validator(mode="after")`` that raises `InputError`.

    Raises:
        InputError: a field is unknown, or a value is out of range or has another type. Names value, rule and nearest
            name.
    """

    model_config = ConfigDict(
        frozen=True, extra="forbid", arbitrary_types_allowed=True, validate_default=True, allow_inf_nan=False
    )

    def __init__(self, **values: Any) -> None:
        """Check all values; lists are accepted for tuples, and NumPy scalars for numbers."""
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
        """Return every setting that has an effect, as JSON values; the fingerprint is computed from them."""
        return self.model_dump(mode="json")

    def changed(self, **changes: Any) -> Self:
        """Return a copy with other values, which are checked."""
        kept = {name: getattr(self, name) for name in type(self).model_fields if name not in changes}
        return type(self)(**kept, **changes)

    @classmethod
    def settable(cls) -> dict[str, FieldInfo]:
        """Return the fields that a user can set on the command line, by name."""
        return {
            name: field
            for name, field in cls.model_fields.items()
            if _is_typable(field.annotation) or _typed_as(field) is not None
        }

    @classmethod
    def read(cls, texts: Sequence[str]) -> dict[str, Any]:
        """Parse texts like ``classes=6`` into a dict of field name to value.

        Raises:
            InputError: a text is not ``NAME=VALUE``, its name is unknown or given twice, or its value has another type.
        """
        return read_values(texts, cls.settable(), cls.__name__)

    @classmethod
    def from_yaml(cls, path: Path) -> Self:
        """Return the settings in a YAML file with a line ``name: value`` for each field.

        Raises:
            InputError: the file cannot be read, a field is unknown or a value is out of range. Names file, field and
                rule.
        """
        values = read_yaml(path)
        try:
            return cls(**values)
        except InputError as error:
            raise InputError(f"{path}: {error}") from error

    def to_yaml(self) -> str:
        """Return all values as YAML that `from_yaml` reads."""
        import yaml

        return yaml.safe_dump(self.values(), sort_keys=False, allow_unicode=True, width=120)

    @classmethod
    def table(cls) -> Table:
        """Return a table of the fields that a user can set: name, default, rule and description."""
        return settings_table(cls.settable())


def settings_table(fields: Mapping[str, FieldInfo], title: str = "Settings") -> Table:
    """Return a table of name, default, rule and description of each field, of one or several specs."""
    columns = (
        Column("name", "Name of the setting.", numeric=False),
        Column("default", "Value unless it is set.", numeric=False),
        Column("rule", "Allowed values.", numeric=False),
        Column("meaning", "Effect of the setting.", numeric=False),
    )
    rows = rows_of((name, default_of(field), rule_of(field), field.description or "") for name, field in fields.items())
    return Table(title, columns, rows, (), "settings")


def default_of(field: FieldInfo) -> str:
    """Return a field's default as a user types it: ``none`` for an optional value, ``needed`` if there is no
    default."""
    if field.is_required():
        return "needed"
    return as_typed(field.get_default(call_default_factory=True))


def as_typed(value: Any, *, quoted: bool = False) -> str:
    """Return a value as a user types it, the inverse of reading; in messages, text is quoted."""
    if value is None or isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, list | tuple):
        return ", ".join(map(str, value)) or "empty"
    return repr(value) if isinstance(value, str) and (quoted or not value) else f"{value}"


def fingerprint_of(**named: Any) -> str:
    """Return the SHA-256 of named JSON values: equal for equal values."""
    return sha256_of_json(named)


def read_values(texts: Sequence[str], fields: Mapping[str, FieldInfo], owner: str) -> dict[str, Any]:
    """Parse ``NAME=VALUE`` texts into a dict of field name to value.

    Args:
        texts: one text a value.
        fields: all fields, of one or several specs.
        owner: what the fields belong to, for messages.

    Raises:
        InputError: see `Spec.read`.
    """
    values: dict[str, Any] = {}
    for text in texts:
        name, equals, value = (part.strip() for part in text.partition("="))
        if not equals or not name:
            raise InputError(f"--set is {text!r}; give NAME=VALUE, e.g. seed=1")
        if name not in fields:
            raise InputError(f"{owner} has no setting {name!r}; {nearest(name, sorted(fields))}")
        if name in values:
            raise InputError(f"--set gives {name} twice; give each setting once")
        values[name] = _read(name, value, fields[name])
    return values


def check_values(values: Mapping[str, Any], fields: Mapping[str, FieldInfo], owner: str) -> dict[str, Any]:
    """Return values after checking that each belongs to a field and is of its type and within its range.

    Args:
        values: by name.
        fields: all fields, of one or several specs.
        owner: what the fields belong to, for messages.

    Returns:
        The values; lists written as text are parsed.

    Raises:
        InputError: names the value and the rule, or the nearest name.
    """
    read: dict[str, Any] = {}
    for name, value in values.items():
        if name not in fields:
            raise InputError(f"{owner} has no setting {name!r}; {nearest(name, sorted(fields))}")
        try:
            read[name] = _unread(value, fields[name])
            _adapter(_bounded(fields[name])).validate_python(read[name])
        except ValidationError:
            near = _closest(value, fields[name])
            raise InputError(f"{name} is {as_typed(value, quoted=True)}; it is {rule_of(fields[name])}{near}") from None
    return read


def read_yaml(path: Path) -> dict[str, Any]:
    """Return the values in a YAML file of settings.

    Raises:
        InputError: the file cannot be read, is too large, or is not a mapping of values that settings can have. A YAML
            file can repeat one list many times and be endless when printed.
    """
    try:
        with open_file(path) as stream:
            content = stream.read(LARGEST + 1)
    except OSError as error:
        raise InputError(f"cannot read the settings in {path}: {error.strerror or error}") from error
    return parse_settings(content, str(path))


def parse_settings(content: bytes | str, path: str) -> dict[str, Any]:
    """Return the values in the content of a YAML settings file; see `read_yaml`."""
    values = parse_yaml(content, path)
    if not isinstance(values, dict):
        raise InputError(f"{path} must have lines like 'seed: 1', but contains a {type(values).__name__}")
    check_depth(values, path)
    return {str(name): value for name, value in values.items()}


def check_depth(values: Mapping[str, Any], path: str | Path) -> None:
    """Raise an error if a value is nested more deeply than any setting.

    Raises:
        InputError: names the setting.
    """
    for name, value in values.items():
        if _is_deeper(value, DEEPEST):
            raise InputError(f"{path}: {name!r} is nested more deeply than any setting")


def _is_deeper(value: Any, most: int) -> bool:
    if not isinstance(value, dict | list | tuple | set):
        return False
    parts = value.values() if isinstance(value, dict) else value
    return most == 0 or any(_is_deeper(part, most - 1) for part in parts)


def rule_of(field: FieldInfo) -> str:
    """Return a field's rule in words: ``a whole number from 1 to 20,000``."""
    typed_as = _typed_as(field)
    if typed_as is not None:
        return typed_as.words
    choices, is_list = _choices(field.annotation), get_origin(_without_none(field.annotation)) is tuple
    if choices:
        return f"{'some' if is_list else 'one'} of {', '.join(map(str, choices))}{_COMMAS if is_list else ''}"
    several = "one or more " if is_list and any(getattr(one, "min_length", None) for one in field.metadata) else ""
    return f"{several}{_kind(field.annotation)}{_range(field)}"


def _typed_as(field: FieldInfo) -> TypedAs | None:
    return next((one for one in field.metadata if isinstance(one, TypedAs)), None)


def _read(name: str, text: str, field: FieldInfo) -> Any:
    """Parse a typed value; parts of lists are separated by commas."""
    annotation = _without_none(field.annotation)
    given: Any = text
    if annotation is not field.annotation and text == "none":
        return None
    if _typed_as(field) is not None:
        return text
    if get_origin(annotation) in (tuple, list):
        given = _parts(text)
    elif get_origin(annotation) is Literal:
        given = {str(choice): choice for choice in get_args(annotation)}.get(text, text)
    elif annotation is str and text == "''":
        given = ""
    try:
        return _adapter(_bounded(field)).validate_python(given)
    except ValidationError:
        raise InputError(f"{name} is {text!r}; it is {rule_of(field)}{_closest(text, field)}") from None


def _unread(value: Any, field: FieldInfo) -> Any:
    """Return a value for pydantic; text or a truth value given for a number becomes invalid, not converted.

    Text given for a list is parsed like a typed list.
    """
    kind = _without_none(field.annotation)
    if get_origin(kind) is tuple and isinstance(value, str) and _is_typable(kind) and _typed_as(field) is None:
        try:
            return _adapter(kind).validate_python(_parts(value))
        except ValidationError:
            return value
    if get_origin(kind) is tuple and isinstance(value, list | tuple):
        return _NOTHING if any(_is_other(part, get_args(kind)[0]) for part in value) else value
    return _NOTHING if _is_other(value, kind) else value


def _is_other(value: Any, kind: Any) -> bool:
    if isinstance(value, str):
        return kind in (int, float, bool)
    if kind is bool:
        return not isinstance(value, bool)
    return isinstance(value, bool) and (kind in (int, float) or get_origin(kind) is Literal)


def _parts(text: str) -> tuple[str, ...]:
    return () if text == "empty" else tuple(part.strip() for part in text.split(",") if part.strip())


@cache
def _adapter(annotation: Any) -> TypeAdapter[Any]:
    return TypeAdapter(annotation, config=ConfigDict(allow_inf_nan=False, arbitrary_types_allowed=True))


def _bounded(field: FieldInfo) -> Any:
    """Return the type of a field's values with their bounds, without validators."""
    bounds = [one for one in field.metadata if any(hasattr(one, name) for name, _ in (*_BOUNDS, ("min_length", "")))]
    kind = _without_none(field.annotation)
    return Annotated[(kind, *bounds)] if bounds else kind


def _plain(value: Any) -> Any:
    """Return a NumPy scalar as a Python value; any other value unchanged."""
    return value.item() if getattr(value, "ndim", None) == 0 and hasattr(value, "item") else value


def _first_fault(spec: type[Spec], error: ValidationError, values: Mapping[str, Any]) -> InputError:
    details = error.errors()
    detail = next((one for one in details if one["type"] == "extra_forbidden"), details[0])
    raised = detail.get("ctx", {}).get("error")
    if isinstance(raised, InputError):
        return raised
    name = str(detail["loc"][0])
    if detail["type"] == "extra_forbidden":
        return InputError(f"there is no setting {name!r}; {nearest(name, spec.settable())}")
    field = spec.model_fields[name]
    missing = [str(one["loc"][0]) for one in details if one["type"] == "missing" and one["loc"][0] not in values]
    if name in missing:
        several = f"{listed(missing)} are missing"
        return InputError(f"{name} is missing; it is {rule_of(field)}" if len(missing) == 1 else several)
    value = values[name]
    return InputError(f"{name} is {as_typed(value, quoted=True)}; it must be {rule_of(field)}{_closest(value, field)}")


def _closest(value: Any, field: FieldInfo) -> str:
    """Return the end of an error about an invalid choice: the nearest choice, if any is near."""
    choices = [str(choice) for choice in _choices(field.annotation)]
    wrong = [str(part) for part in (value if isinstance(value, list | tuple) else [value]) if str(part) not in choices]
    close = closest(wrong[0].lower(), choices) if wrong else None
    return "" if close is None else f": did you mean {close!r}?"


def _without_none(annotation: Any) -> Any:
    """Return the type of an optional value without None."""
    if get_origin(annotation) in (Union, UnionType):
        kinds = [kind for kind in get_args(annotation) if kind is not NoneType]
        if len(kinds) == 1:
            return kinds[0]
    return annotation


def _is_typable(annotation: Any) -> bool:
    kind = _without_none(annotation)
    if kind in _WORDS or get_origin(kind) is Literal:
        return True
    return get_origin(kind) is tuple and all(
        part in _WORDS or part is ... or get_origin(part) is Literal for part in get_args(kind)
    )


def _choices(annotation: Any) -> tuple[Any, ...]:
    kind = _without_none(annotation)
    if get_origin(kind) is tuple:
        kind = get_args(kind)[0]
    return get_args(kind) if get_origin(kind) is Literal else ()


def _kind(annotation: Any) -> str:
    kind = _without_none(annotation)
    if get_origin(kind) in (dict, Mapping):
        return "values by their names"
    if kind is Path:
        return "a path"
    if get_origin(kind) is not tuple:
        return _WORDS.get(kind, "one of its kind")
    parts = get_args(kind)
    plural = {int: "whole numbers", float: "numbers", str: "names"}.get(parts[0], "values")
    count = "" if ... in parts else f"{len(parts)} "
    return f"{count}{plural}{_COMMAS}"


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
