"""What `train` has written beside weights: what they were trained on, and the digests of their files."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from audio_compositionality.support.checked_files import DamagedError, parsed_sealed_json
from audio_compositionality.support.files import sha256_of_file
from audio_compositionality.support.text import shortened

from ..base import ModelError

RECORD = "training.json"

RECORD_VERSION = 2
"""Of the record; another has other names in it."""

LONGEST = 300
"""Characters that a card takes of it."""

Find = Callable[[str], Path | None]
"""The local path of a file beside the weights, None where there is none; see `Checkpoint.find`."""


def recorded_data(find: Find, *, fresh: bool = False) -> str | None:
    """What weights were trained on, in words, with the name of the recipe of the rows; None where nothing is recorded.

    Args:
        find: files beside the weights.
        fresh: whether the stored weights are not going to be used.

    Raises:
        ModelError: the record cannot be read, or a file of the model is not the one that was written with it.
    """
    try:
        path = find(RECORD)
    except ModelError:
        # Without network, what is in the cache is run all the same.
        return None
    if path is None:
        return None
    try:
        values = read_values(path)
        data, recipe = str(values["trained_on"]), values.get("recipe")
    except DamagedError as error:
        raise ModelError(f"{error}; get the model again, or train it again") from error
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise ModelError(f"{path} does not say what the weights beside it were trained on: {error!r}") from error
    check_recorded_files(values, find, path.parent, fresh=fresh)
    return shortened(data if not recipe or str(recipe) in data else f"{data} ({recipe})", LONGEST)


def read_values(path: Path) -> dict[str, Any]:
    """The values of a record.

    Raises:
        DamagedError: it is not what was written.
        OSError: it cannot be read.
    """
    return parsed_sealed_json(path.read_bytes(), path)


def check_recorded_files(values: Mapping[str, Any], find: Find, folder: Path, *, fresh: bool = False) -> None:
    """Refuse files of a model that are not those that were written with its record.

    Args:
        values: of the record.
        find: files beside it.
        folder: where it lies, for messages.
        fresh: leave out weights, which are not going to be used.

    Raises:
        ModelError: one was changed, or is missing.
    """
    for name, digest in values.get("files", {}).items():
        if fresh and name.endswith(".safetensors"):
            continue
        path = find(name)
        if path is None or sha256_of_file(path) != digest:
            what = "is not there" if path is None else f"is damaged or was changed: its SHA-256 is not that in {RECORD}"
            raise ModelError(
                f"{folder / name} {what}; get the model again or train it again, or remove {RECORD} where the change "
                "is meant"
            )
