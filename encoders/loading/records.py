"""What `train` has written beside weights: what they were trained on."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

from audio_compositionality.support.text import shortened

from ..base import ModelError

RECORD = "training.json"

LONGEST = 300
"""Characters that a card takes of it."""


def recorded_data(find: Callable[[str], Path | None]) -> str | None:
    """What weights were trained on, in words, with the name of the recipe of the rows; None where nothing is recorded.

    Args:
        find: the local path of a file beside the weights, None where there is none; see `Checkpoint.find`.

    Raises:
        ModelError: the record cannot be read.
    """
    try:
        path = find(RECORD)
    except ModelError:
        # Without network, what is in the cache is run all the same.
        return None
    if path is None:
        return None
    try:
        values = json.loads(path.read_text("utf-8"))
        data, recipe = str(values["trained_on"]), values.get("recipe")
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise ModelError(f"{path} does not say what the weights beside it were trained on: {error!r}") from error
    return shortened(data if not recipe or str(recipe) in data else f"{data} ({recipe})", LONGEST)
