"""Checks of files that third parties wrote: types of their fields, and JSON without surprises."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Annotated, Any, TypeVar

from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    Field,
    StrictBool,
    StrictFloat,
    StrictInt,
    StringConstraints,
    ValidationError,
)

from audio_compositionality.support.errors import AudioCompositionalityError
from audio_compositionality.support.text import shortened

MAX_TEXT = 500
"""Characters of a text in a result."""


class ResultError(AudioCompositionalityError):
    """A result file that cannot be used, or that would overwrite another: names the file and the remedy."""


def _printable(text: str) -> str:
    if not text.isprintable():
        raise ResultError("it has characters that cannot be printed")
    return text


def _ordered(ends: tuple[float, float]) -> tuple[float, float]:
    if ends[0] > ends[1]:
        raise ResultError("its ends are in the wrong order")
    return ends


# In patterns of pydantic, `$` is the end of the text, not also what stands before a last line end.
Text = Annotated[str, StringConstraints(strict=True, min_length=1, max_length=MAX_TEXT), AfterValidator(_printable)]
Name = Annotated[str, StringConstraints(strict=True, pattern=r"^[a-z][a-z0-9_]{0,63}$")]
Sha256 = Annotated[str, StringConstraints(strict=True, pattern=r"^[0-9a-f]{64}$")]
Count = Annotated[StrictInt, Field(gt=0, lt=2**53)]

NonNegativeCount = Annotated[StrictInt, Field(ge=0, lt=2**53)]
"""A count, possibly zero."""
Finite = Annotated[StrictFloat | StrictInt, Field(ge=-1e300, le=1e300, allow_inf_nan=False)]
Positive = Annotated[StrictFloat | StrictInt, Field(ge=0, le=1e300, allow_inf_nan=False)]
Date = Annotated[str, StringConstraints(strict=True, pattern=r"^[0-9]{4}(-[0-9]{2}){2}T[0-9]{2}(:[0-9]{2}){2}\+00:00$")]
StatedInterval = Annotated[tuple[Finite, Finite], AfterValidator(_ordered)]
Setting = StrictBool | Finite | Text | None
StatedNumber = StrictBool | Finite | None


class Strict(BaseModel):
    """Values of the fields' own types only, no unknown and no missing field, immutable."""

    model_config = ConfigDict(frozen=True, extra="forbid")


Checked = TypeVar("Checked", bound=Strict)


def validated(model: type[Checked], values: Mapping[str, Any]) -> Checked:
    """A third party's values as a model.

    Raises:
        ResultError: names the first field that is missing, unknown, of the wrong type or out of its range.
    """
    try:
        return model.model_validate(values)
    except ValidationError as error:
        first = error.errors(include_url=False, include_context=False)[0]
        place = ".".join(shortened(str(part), 40) for part in first["loc"])
        given = f"is {stated_text(first['input'])}" if place else "is wrong"
        raise ResultError(f"{place or 'it'} {given}: {shortened(first['msg'], 200)}") from None


def stated_text(value: Any) -> str:
    """A third party's value on one line, as an error shows it."""
    try:
        return shortened(repr(value), 80)
    except RecursionError:
        return "nested too deep"


def read_strict_json(text: str | bytes) -> Any:
    """JSON text as values.

    Raises:
        ResultError: it is not UTF-8 or no JSON, nested too deep, or has a name twice, NaN or an infinity.
    """

    def unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        values = dict(pairs)
        if len(values) < len(pairs):
            raise ResultError("not the JSON of this project: it has a name twice")
        return values

    def refuse(constant: str) -> Any:
        raise ResultError(f"not the JSON of this project: it has {constant}")

    try:
        decoded = text.decode("utf-8") if isinstance(text, bytes) else text
        return json.loads(decoded, object_pairs_hook=unique, parse_constant=refuse)
    except RecursionError:
        raise ResultError("not the JSON of this project: nested too deep") from None
    except ResultError:
        raise
    except ValueError as error:
        raise ResultError(f"not JSON: {shortened(str(error), 200)}") from None
