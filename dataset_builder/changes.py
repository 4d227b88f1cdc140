"""Changes to settings of recipes: which settings there are, and how a user writes one."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from numbers import Integral, Real
from typing import Any, cast

from pydantic import TypeAdapter, ValidationError
from pydantic.fields import FieldInfo

from audio_compositionality.support.errors import InputError
from audio_compositionality.support.spec import Spec, read_values, rule_of
from audio_compositionality.support.text import nearest

RECORDINGS = "what is made of recordings here"


@dataclass(frozen=True)
class Kind:
    """A type that a setting can have.

    Attributes:
        words: what a value is.
        read: a value from a text; raises ValueError or KeyError.
        holds: whether something is one.
    """

    words: str
    read: Callable[[str], Any]
    holds: Callable[[Any], bool]


def kinds_of(settings: Any) -> dict[str, Kind]:
    """The settings of a recipe that decide something, by their names: fields that its `values` have.

    Args:
        settings: a dataclass, or a `Spec`.
    """
    if isinstance(settings, Spec):
        return {name: _kind_of_field(name, type(settings).model_fields[name]) for name in type(settings).settable()}
    deciding = settings.values()
    types = {field.name: str(getattr(field.type, "__name__", field.type)) for field in fields(settings)}
    # One that is chosen by name has an annotation of its own, and refuses a wrong name itself.
    types |= {name: "str" for name in types if isinstance(getattr(settings, name), str)}
    return {name: _KINDS[of] for name, of in types.items() if name in deciding and of in _KINDS}


def _kind_of_field(name: str, field: FieldInfo) -> Kind:
    def holds(value: Any) -> bool:
        try:
            adapter: TypeAdapter[Any] = TypeAdapter(cast(Any, field.annotation))
            adapter.validate_python(value)
        except ValidationError:
            return False
        return not isinstance(value, bool) or field.annotation is bool

    return Kind(rule_of(field), lambda text: read_values([f"{name}={text}"], {name: field}, name)[name], holds)


def names_of(settings: Any) -> tuple[str, ...]:
    """The fields of settings."""
    return tuple(type(settings).model_fields) if isinstance(settings, Spec) else tuple(f.name for f in fields(settings))


def with_changes(settings: Any, **changes: Any) -> Any:
    """Settings with other values, checked anew."""
    return settings.changed(**changes) if isinstance(settings, Spec) else replace(settings, **changes)


def read_changes(texts: Sequence[str], kinds: Mapping[str, Kind], of: str = RECORDINGS) -> dict[str, Any]:
    """Changes from ``NAME=VALUE``.

    Args:
        texts: one a change.
        kinds: of all settings that there are.
        of: what has the settings, for messages.

    Raises:
        InputError: a text is none, names no setting or one twice, or its value is of another type.
    """
    changes: dict[str, Any] = {}
    for text in texts:
        name, equals, value = (part.strip() for part in text.partition("="))
        if not equals or not name:
            raise InputError(f"--set is {text!r}; it takes NAME=VALUE, such as classes=6")
        kind = _kind_of(name, kinds, of)
        if name in changes:
            raise InputError(f"--set has {name} twice; a setting has one value")
        try:
            changes[name] = kind.read(value)
        except (ValueError, KeyError):
            raise InputError(f"{name} is {value!r}; it is {kind.words}") from None
    return changes


def check_changes(changes: Mapping[str, Any], kinds: Mapping[str, Kind]) -> None:
    """Refuse a change of what is no setting, or to what is of another type.

    Raises:
        InputError: says which.
    """
    for name, value in changes.items():
        kind = _kind_of(name, kinds)
        if not kind.holds(value):
            raise InputError(f"{name} is {value!r}; it is {kind.words}")


def _kind_of(name: str, kinds: Mapping[str, Kind], of: str = RECORDINGS) -> Kind:
    if name not in kinds:
        raise InputError(f"{of} has no setting {name!r}; {nearest(name, sorted(kinds))}")
    return kinds[name]


def _read_texts(text: str) -> tuple[str, ...]:
    return tuple(part.strip() for part in text.split(",") if part.strip())


def _read_pair(text: str) -> tuple[float, ...]:
    low, high = map(float, text.split(","))
    return low, high


def _read_four(text: str) -> tuple[int, ...]:
    one, two, three, four = map(int, text.split(","))
    return one, two, three, four


def _is_number(value: Any) -> bool:
    return isinstance(value, Real) and not isinstance(value, bool)


def _are_texts(value: Any) -> bool:
    return isinstance(value, list | tuple) and all(isinstance(text, str) for text in value)


_KINDS: Mapping[str, Kind] = {
    "int": Kind("a whole number", int, lambda value: isinstance(value, Integral) and not isinstance(value, bool)),
    "float": Kind("a number", float, _is_number),
    "bool": Kind(
        "true or false",
        lambda text: {"true": True, "false": False}[text.lower()],
        lambda value: isinstance(value, bool),
    ),
    "str": Kind("a text", str, lambda value: isinstance(value, str)),
    "tuple[str, ...]": Kind("names with commas between them", _read_texts, _are_texts),
    **dict.fromkeys(
        ("tuple[int, ...]", "tuple[int, ...] | None"),
        Kind(
            "whole numbers with commas between them, such as 1,2,3",
            lambda text: tuple(int(part) for part in text.split(",")),
            lambda value: isinstance(value, list | tuple) and all(isinstance(number, Integral) for number in value),
        ),
    ),
    "tuple[int, int, int, int]": Kind(
        "four whole numbers with commas between them, such as 8,4,4,4",
        _read_four,
        lambda value: (
            isinstance(value, list | tuple) and len(value) == 4 and all(isinstance(n, Integral) for n in value)
        ),
    ),
    "tuple[float, float]": Kind(
        "two numbers with a comma between them, such as -12,0",
        _read_pair,
        lambda value: isinstance(value, list | tuple) and len(value) == 2 and all(map(_is_number, value)),
    ),
}
"""By the annotation of a field."""
