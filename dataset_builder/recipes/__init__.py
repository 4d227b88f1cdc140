"""The recipes of the data set, one per file; rendering and storage are elsewhere."""

from __future__ import annotations

from typing import Any

from audio_compositionality.support.discovery import Registry
from audio_compositionality.support.text import nearest

from ..data import DatasetError
from .base import Recipe

_registry: Registry[Recipe[Any]] = Registry(
    __name__,
    "RECIPE",
    "audio_compositionality.recipes",
    lambda recipe: recipe.name,
    helpers=("base", "captioned_items", "question_rows", "whole_clips"),
)


def list_recipes() -> tuple[str, ...]:
    """Return the names of all recipes: in this folder, in installed packages, and registered ones."""
    return _registry.names()


def load_recipe(name: str) -> Recipe[Any]:
    """Return a recipe by name; for a recipe in this folder, only its own module is imported.

    Raises:
        DatasetError: there is no recipe of this name.
    """
    recipe = _registry.find(name)
    if recipe is None:
        raise DatasetError(f"unknown recipe {name!r}; {nearest(name, list_recipes())}")
    return recipe


def has_preset(name: str) -> bool:
    """Return whether any recipe has a preset of this name."""
    return any(name in recipe.presets for recipe in _registry.each())


def register_recipe(recipe: Recipe[Any]) -> None:
    """Make a recipe known in this process; it replaces any recipe of the same name."""
    _registry.add(recipe)
