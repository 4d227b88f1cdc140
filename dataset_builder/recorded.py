"""Recipes made of a user's recordings, as isolated sounds or with strong labels, instead of our tones."""

from __future__ import annotations

import warnings
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pydantic.fields import FieldInfo

from audio_compositionality.support.errors import InputError
from audio_compositionality.support.spec import check_values
from audio_compositionality.support.text import nearest

from .data import DatasetError
from .recipes import list_recipes, load_recipe
from .recipes.base import AnnotatedRecipe, Recipe
from .rendered import RenderedConfiguration, RenderedData
from .sounds.entries import Sounds
from .sounds.recordings import ReadRecordings
from .sounds.splits import UnlabelledError
from .sounds.tones import HeardSpec, default_timbres

if TYPE_CHECKING:
    from .sounds.strong_labels import AnnotatedRecordings

RECORDINGS = "a recipe for recordings"

RECORDINGS_OF = "recordings of "
"""Prefix of the source of data from recordings; no preset or folder has it."""


def recorded_recipes() -> dict[str, Recipe[Any]]:
    """Return the recipes that take a user's sounds, by name."""
    every = {name: load_recipe(name) for name in list_recipes()}
    return {name: recipe for name, recipe in every.items() if recipe.takes_sounds}


def changeable(preset: str = "mini", recipes: Iterable[str] | None = None) -> dict[str, FieldInfo]:
    """Return the settings that `recorded` takes as changes, by name.

    Args:
        preset: see `recorded`.
        recipes: names; by default all.

    Raises:
        InputError: a preset is unknown, or a recipe takes no recordings.
    """
    fields: dict[str, FieldInfo] = {}
    for spec in _of_any_sounds(_presets(preset, recipes)[0]).values():
        deciding = spec.values().keys() - spec.of_tones
        fields |= {name: field for name, field in spec.settable().items() if name in deciding}
    return fields


def takers(change: str, preset: str = "mini", recipes: Iterable[str] | None = None) -> list[str]:
    """Return the recipes of a preset that have a setting, even one that only code can change; see `changeable`."""
    specs = _of_any_sounds(_presets(preset, recipes)[0])
    return [name for name, spec in specs.items() if change in set(type(spec).model_fields) - spec.of_tones]


def _of_any_sounds(presets: Mapping[str, Any]) -> dict[str, HeardSpec]:
    """Return specs of presets for sounds instead of scenes of tones; their fields can differ."""
    every = recorded_recipes()
    return {name: every[name].of_sounds(spec, default_timbres(), {}) for name, spec in presets.items()}


@dataclass(frozen=True)
class Offer:
    """The data that can be made of recordings.

    Attributes:
        data: data of the recipes that can be made.
        left_out: why each other recipe cannot be made, by name.
    """

    data: RenderedData
    left_out: Mapping[str, str]


def recorded(
    recordings: Sounds, *, preset: str = "mini", recipes: Sequence[str] | None = None, **changes: Any
) -> RenderedData:
    """Return the data that recipes make of recordings, rendered on the fly.

    Args:
        recordings: result of `open_recordings`.
        preset: ``mini``, ``full`` or another preset of a recipe, as far as there are enough recordings.
        recipes: names; by default all that can be made of these recordings. A warning gives the reason for each other
            recipe.
        changes: changed settings, applied to every recipe that has the setting, e.g. ``seed``, ``transforms``,
            ``classes``. The transforms ``pitch`` and ``stretch`` need the extra ``transforms``.

    Raises:
        InputError: a preset or setting is unknown, a recipe takes no recordings, or a value is out of range.
        DatasetError: a named recipe, or none at all, can be made of the recordings.
    """
    offer = offered(recordings, preset=preset, recipes=recipes, required=recipes or (), **changes)
    for name, reason in offer.left_out.items():
        warnings.warn(f"{name} is left out: {reason}", stacklevel=2)
    return offer.data


def offered(
    recordings: Sounds,
    *,
    preset: str = "mini",
    recipes: Iterable[str] | None = None,
    required: Collection[str] = (),
    **changes: Any,
) -> Offer:
    """Return the data of `recorded`, with reasons instead of warnings.

    An error is raised only if one of `required` cannot be made. All rows are drawn, so that impossible ones are
    reported before anything is rendered.
    """
    every = recorded_recipes()
    presets, left_out = _presets(preset, recipes, required)
    fields = changeable(preset, presets)
    has = {name: set(type(spec).model_fields) - spec.of_tones for name, spec in _of_any_sounds(presets).items()}
    # Settings that only code can change, e.g. ranges of parameters.
    further = set().union(*has.values()) - {"sounds", *fields}
    check_values({name: value for name, value in changes.items() if name not in further}, fields, RECORDINGS)
    wanted = {**recordings.suggested, **changes}
    source = f"{RECORDINGS_OF}{recordings.source}"
    served: dict[str, RenderedConfiguration] = {}
    for name, of_recipe in presets.items():
        requested = {change: value for change, value in wanted.items() if change in has[name]}
        try:
            configuration = RenderedConfiguration(source, name, every[name].of_sounds(of_recipe, recordings, requested))
            _ = configuration.rows
            served[name] = configuration
        except DatasetError as error:
            reason = str(error)
            if isinstance(error, UnlabelledError) and isinstance(recordings, ReadRecordings) and recordings.labelling:
                # Append how to give classes.
                reason = f"{reason}; {recordings.labelling}"
            if name in required:
                raise DatasetError(reason) from error
            left_out[name] = reason
    if not served:
        names = {reason: [name for name in left_out if left_out[name] == reason] for reason in left_out.values()}
        reasons = "; ".join(f"{', '.join(of_reason)}: {reason}" for reason, of_reason in names.items())
        raise DatasetError(f"{recordings.source} cannot be used for any recipe: {reasons}")
    data = RenderedData(source, served)
    data.left_out = left_out
    return Offer(data, left_out)


def _presets(
    preset: str, recipes: Iterable[str] | None, required: Collection[str] = ()
) -> tuple[dict[str, Any], dict[str, str]]:
    """Return the settings of a preset by recipe, and the reasons why other named recipes are left out.

    Raises:
        InputError: a recipe takes no recordings, no recipe has the preset, or one of `required` lacks it.
    """
    every = recorded_recipes()
    names = tuple(dict.fromkeys(every if recipes is None else recipes))
    for name in names:
        if name not in every:
            raise InputError(f"the recipe {name!r} takes no recordings; {nearest(name, every)}")
    left_out = {name: f"it has no preset {preset!r}" for name in names if preset not in every[name].presets}
    if len(left_out) == len(names) or any(name in left_out for name in required):
        valid = dict.fromkeys(one for name in names for one in every[name].presets)
        raise InputError(f"unknown preset {preset!r}; {nearest(preset, valid)}")
    return {name: every[name].presets[preset] for name in names if name not in left_out}, left_out


def annotated_recipes() -> dict[str, AnnotatedRecipe[Any]]:
    """Return the recipes that can be made of recordings with strong labels, by name."""
    every = {name: load_recipe(name) for name in list_recipes()}
    return {name: recipe for name, recipe in every.items() if isinstance(recipe, AnnotatedRecipe)}


def annotated_data(
    recordings: AnnotatedRecordings, *, recipes: Iterable[str] | None = None, changes: Mapping[str, Any] | None = None
) -> RenderedData:
    """Return the data that recipes make of recordings with strong labels, rendered on the fly.

    Args:
        recordings: result of `open_annotated`.
        recipes: names; by default all that can be made of these recordings.
        changes: changed settings, applied to each recipe.

    Raises:
        InputError: a recipe cannot be made of them, a setting is unknown, or a value is out of range.
    """
    names = check_recipes(recipes)
    every = annotated_recipes()
    settings = {name: every[name].of_annotated(recordings, dict(changes or {})) for name in names}
    return RenderedData(f"{RECORDINGS_OF}{recordings.source}", settings)


def check_recipes(recipes: Iterable[str] | None) -> tuple[str, ...]:
    """Return the names of recipes that can be made of recordings with strong labels; by default all.

    Raises:
        InputError: a recipe cannot be made of them.
    """
    every = annotated_recipes()
    names = tuple(dict.fromkeys(every if recipes is None else recipes))
    for name in names:
        if name not in every:
            raise InputError(
                f"the recipe {name!r} cannot be made of recordings with strong labels; {nearest(name, every)}"
            )
    return names
