"""The data that recipes make of recordings with strong labels."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from audio_compositionality.support.errors import InputError
from audio_compositionality.support.text import nearest

from ..recipes import list_recipes, load_recipe
from ..recipes.base import AnnotatedRecipe
from ..rendered import RenderedData
from .annotated import AnnotatedRecordings
from .opening import RECORDINGS_OF


def annotated_recipes() -> dict[str, AnnotatedRecipe[Any]]:
    """The recipes that can be made of recordings with strong labels, by their names."""
    every = {name: load_recipe(name) for name in list_recipes()}
    return {name: recipe for name, recipe in every.items() if isinstance(recipe, AnnotatedRecipe)}


def annotated_data(
    recordings: AnnotatedRecordings, *, recipes: Iterable[str] | None = None, changes: Mapping[str, Any] | None = None
) -> RenderedData:
    """The data that recipes make of recordings with strong labels, rendered as they are read.

    Args:
        recordings: as `open_annotated` gives them.
        recipes: names; by default all that can be made of such recordings.
        changes: to settings, made in each recipe.

    Raises:
        InputError: a recipe that cannot be made of them, no such setting, or a value out of its range.
    """
    names = check_recipes(recipes)
    every = annotated_recipes()
    settings = {name: every[name].of_annotated(recordings, dict(changes or {})) for name in names}
    return RenderedData(f"{RECORDINGS_OF}{recordings.source}", settings)


def check_recipes(recipes: Iterable[str] | None) -> tuple[str, ...]:
    """Names of recipes that can be made of recordings with strong labels; all where none are named.

    Raises:
        InputError: one cannot.
    """
    every = annotated_recipes()
    names = tuple(dict.fromkeys(every if recipes is None else recipes))
    for name in names:
        if name not in every:
            raise InputError(f"the recipe {name!r} cannot be made of recordings with labels; {nearest(name, every)}")
    return names
