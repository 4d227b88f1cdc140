"""Data rendered on the fly: presets, with or without changes, and configurations of any recipe."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache, cached_property
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from audio_compositionality.support.errors import InputError
from audio_compositionality.support.spec import Spec, read_values
from audio_compositionality.support.text import nearest

from .data import (
    Clip,
    DatasetError,
    HeldData,
    Rendering,
    Row,
    check_range,
    digest_of_rows,
    recipe_fingerprint,
    to_waveform,
)
from .recipes import has_preset, list_recipes, load_recipe
from .recipes.base import Recipe

if TYPE_CHECKING:
    from datasets import Features
    from pydantic.fields import FieldInfo


class RenderedConfiguration:
    """The data of one recipe, rendered on demand; see `Configuration`.

    Attributes:
        recipe: name of the recipe.
        source: what the data were opened from.
        settings: settings of the recipe.
        fingerprint: fingerprint of the recipe's name, version and settings.
    """

    def __init__(self, source: str, recipe: str, settings: Spec) -> None:
        self.source = source
        self.recipe = recipe
        self.settings = settings
        self._recipe: Recipe[Any] = load_recipe(recipe)
        self.fingerprint = recipe_fingerprint(recipe, self._recipe.version, settings.values())

    @cached_property
    def rendering(self) -> Rendering:
        """Return the recipe's rendering of the settings."""
        return self._recipe.render(self.settings)

    @property
    def rows(self) -> Sequence[Row]:
        """Return all rows without their audio."""
        return self.rendering.rows

    @cached_property
    def rows_digest(self) -> str:
        """Return the SHA-256 of the rows and of what determines their sound; see `digest_of_rows`."""
        return digest_of_rows(self.rows, map(self.rendering.plan, range(len(self.rows))))

    @property
    def values(self) -> dict[str, Any]:
        """Return everything that determines the rows and their samples, as JSON values; input of the fingerprint."""
        return self.settings.values()

    @property
    def features(self) -> Features:
        """Return the columns of the built folder."""
        return self._recipe.features(self.settings)

    @property
    def description(self) -> str:
        """Return Markdown for the card."""
        return self._recipe.describe(self.settings)

    @cached_property
    def clip_ids(self) -> Sequence[str]:
        """Return the ids of all clips, row by row."""
        return tuple(clip_id for ids in self._ids_of_rows for clip_id in ids)

    @cached_property
    def _ids_of_rows(self) -> tuple[tuple[str, ...], ...]:
        return tuple(tuple(f"{row['id']}/{name}" for name in self._recipe.clip_names(row)) for row in self.rows)

    def clips(self, wanted: range | None = None, *, keep_invalid: bool = False) -> Iterator[Clip]:
        """Yield clips in the order of `clip_ids`, all of them valid; see `Configuration.clips`."""
        wanted = check_range(wanted, len(self.clip_ids))
        first = 0
        for index, ids in enumerate(self._ids_of_rows):
            places = range(max(wanted.start - first, 0), min(wanted.stop - first, len(ids)))
            first += len(ids)
            if not places:
                continue
            samples = self.rendering.clips(index)
            if len(samples) != len(ids):
                raise DatasetError(f"recipe {self.recipe!r} renders {len(samples)} clips of a row that has {len(ids)}")
            for place in places:
                yield Clip(ids[place], to_waveform(samples[place]), self.rendering.rate(index))


class RenderedData(HeldData[RenderedConfiguration]):
    """Data of any recipes, rendered on the fly; see `Data`. A built folder has the same samples."""

    def __init__(self, source: str, configurations: Mapping[str, Spec | RenderedConfiguration]) -> None:
        """Draw nothing until it is needed.

        Args:
            source: name of the data, e.g. of the preset.
            configurations: by the name of the recipe: settings, or a configuration whose drawn rows are reused.

        Raises:
            DatasetError: a recipe is unknown, or none is given.
        """
        if not configurations:
            raise DatasetError(f"give at least one recipe of {', '.join(list_recipes())}")
        held = {
            name: one if isinstance(one, RenderedConfiguration) else RenderedConfiguration(source, name, one)
            for name, one in configurations.items()
        }
        super().__init__(source, held)

    @property
    def settings(self) -> dict[str, Spec]:
        """Return the settings of each recipe, by name."""
        return {name: configuration.settings for name, configuration in self._configurations.items()}

    @property
    def renderings(self) -> list[Rendering]:
        """Return the rendering of every configuration."""
        return [configuration.rendering for configuration in self._configurations.values()]

    def only(self, recipes: Sequence[str]) -> RenderedData:
        """Return the data of some recipes, or raise DatasetError if one is missing."""
        return RenderedData(self.source, {name: self.configuration(name) for name in recipes})


def preset_names() -> tuple[str, ...]:
    """Return the names of all recipes' presets."""
    return tuple(dict.fromkeys(preset for name in list_recipes() for preset in load_recipe(name).presets))


@cache
def setting_names() -> frozenset[str]:
    """Return the names of all recipes' settings."""
    specs = [spec for name in list_recipes() for spec in load_recipe(name).presets.values()]
    return frozenset(name for spec in specs for name in type(spec).model_fields)


def rendered_preset(name: str, *, recipes: Sequence[str] | None = None, **changes: Any) -> RenderedData:
    """Return the data of a preset, rendered on the fly.

    Args:
        name: name of the preset.
        recipes: names of recipes; by default all recipes that have the preset.
        changes: changed settings, applied to every recipe that has the setting.

    Raises:
        InputError: a preset is unknown, a recipe lacks it, or no recipe has a changed setting or one refuses its value.
        DatasetError: a recipe is unknown.
    """
    presets = {recipe: load_recipe(recipe).presets for recipe in (list_recipes() if recipes is None else recipes)}
    settings: dict[str, Spec] = {recipe: those[name] for recipe, those in presets.items() if name in those}
    if not settings and not has_preset(name):
        valid = [preset for preset in preset_names() if all(preset in presets[one] for one in recipes or ())]
        raise InputError(f"unknown preset {name!r}; {nearest(name, valid)}")
    if recipes is not None and len(settings) < len(presets):
        without = next(recipe for recipe in presets if recipe not in settings)
        hint = nearest(name, presets[without]) if presets[without] else "its rows are read from a file: give that file"
        raise InputError(f"recipe {without!r} has no preset {name!r}; {hint}")
    names = {recipe: set(type(of_recipe).model_fields) for recipe, of_recipe in settings.items()}
    for change in changes:
        if not any(change in of_recipe for of_recipe in names.values()):
            every = sorted(set().union(*names.values()))
            raise InputError(f"no recipe of the preset {name!r} has a setting {change!r}; {nearest(change, every)}")
    changed = {
        recipe: of_recipe.changed(**{key: value for key, value in changes.items() if key in names[recipe]})
        for recipe, of_recipe in settings.items()
    }
    made = {
        change: value
        for change, value in changes.items()
        if any(change in names[recipe] and getattr(settings[recipe], change) != value for recipe in settings)
    }
    # For example ``mini with seed=7``, which `opened_preset` reads.
    typed = ", ".join(f"{change}={_typed(value)}" for change, value in made.items())
    return RenderedData(f"{name}{_WITH}{typed}" if made else name, changed)


_WITH = " with "


def _typed(value: Any) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, list | tuple):
        # Voices and the like cannot be typed; the fingerprint distinguishes them.
        return ",".join(map(str, value)) if all(isinstance(part, str | int | float) for part in value) else "others"
    return str(value) if isinstance(value, str | int | float) else "other"


def is_preset(source: str) -> bool:
    """Return whether data have the name of a preset, with or without changes."""
    return has_preset(source.partition(_WITH)[0])


def preset_fields(preset: str, recipes: Iterable[str] | None = None) -> dict[str, FieldInfo]:
    """Return the settings of a preset that can be typed, by name.

    Args:
        preset: name of the preset, with or without changes.
        recipes: see `rendered_preset`.

    Raises:
        InputError: see `rendered_preset`.
    """
    names = None if recipes is None else list(recipes)
    settings = rendered_preset(preset.partition(_WITH)[0], recipes=names).settings.values()
    return {name: field for of_recipe in settings for name, field in of_recipe.settable().items()}


def opened_preset(
    source: str, changes: Mapping[str, Any] = MappingProxyType({}), recipes: Sequence[str] | None = None
) -> RenderedData:
    """Return the data of a preset by name, e.g. ``mini with seed=7``, with further changes.

    Raises:
        InputError: see `rendered_preset`.
    """
    preset, _, made = source.partition(_WITH)
    named: dict[str, Any] = {}
    if made:
        named = read_values(made.split(", "), preset_fields(preset, recipes), f"the preset {preset!r}")
    kept = {name: value for name, value in named.items() if name not in changes}
    if kept:
        # Choose the recipes that accept the changes in the name: the changes may have been made for other recipes.
        accepting, refusals = [], []
        every = rendered_preset(preset, recipes=recipes).settings
        for recipe, settings in every.items():
            try:
                settings.changed(**{name: value for name, value in kept.items() if name in type(settings).model_fields})
            except InputError as error:
                refusals.append(error)
            else:
                accepting.append(recipe)
        if refusals and not any(name in type(every[recipe]).model_fields for recipe in accepting for name in kept):
            raise refusals[0]
        recipes = accepting
    return rendered_preset(preset, recipes=recipes, **{**named, **changes})


HUB_ID = re.compile(r"[\w-][\w.-]*/[\w-][\w.-]*")
"""Pattern of a Hub id."""
