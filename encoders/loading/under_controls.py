"""What is asked of the model that controls stand around."""

from __future__ import annotations

from typing import cast

from ..protocols import Model, Writer
from .controls import Controlled, control


def innermost(model: Model) -> Model:
    """The model that controls stand around, or the model itself."""
    while isinstance(model, Controlled):
        model, _ = model.inner
    return model


def with_new_tokens(model: Model, count: int) -> Model:
    """A model whose answers may have so many tokens at least, under the same controls; one that knows of no such number
    as it is.

    Args:
        model: to be asked.
        count: tokens of an answer.
    """
    if isinstance(model, Controlled):
        inside, kind = model.inner
        longer = with_new_tokens(inside, count)
        return model if longer is inside else cast(Model, control(longer, kind))
    return model.with_new_tokens(count) if isinstance(model, Writer) and model.new_tokens < count else model
