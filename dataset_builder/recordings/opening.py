"""Recordings opened by name, and the data that recipes make of them."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

from audio_compositionality.support.errors import InputError
from audio_compositionality.support.text import nearest

from ..data import DatasetError
from ..recipes import list_recipes, load_recipe
from ..recipes.base import RecordedRecipe
from ..rendered import RenderedData
from .protocol import Recordings
from .reading import ReadRecordings

RECORDINGS_OF = "recordings of "
"""What the source of data begins with that were made of recordings: no preset or folder that can be opened."""


def open_recordings(
    folder: str | Path | None = None,
    *,
    dataset: str | Path | None = None,
    label: str | None = None,
    group: str | None = None,
    condition: str | None = None,
    split: str | None = None,
    config: str | None = None,
    revision: str | None = None,
    skip_invalid: bool = False,
    progress: bool = True,
) -> ReadRecordings:
    """Open recordings of your own: of a folder, or of a data set that `datasets` reads.

    All are read once: their fingerprint is that of their samples, labels, groups and conditions, wherever they lie.

    Args:
        folder: with ``LABEL[/CONDITION]/file.wav``, or with ``metadata.csv``; see `folder_recordings`.
        dataset: Hub id or folder of a data set with a column of audio, instead; see `hub_recordings`.
        label: column with labels.
        group: column whose values say which recordings belong together: they are never on both sides of a fold.
        condition: column with what recordings of several labels share and what says nothing of these, such as the
            voice that says words.
        split: of the data set, such as ``test`` or ``train[:1000]``.
        config: configuration of the data set.
        revision: of the data set: branch, tag or commit.
        skip_invalid: leave out what cannot be used; `ReadRecordings.skipped` lists it.
        progress: show progress bars.

    Raises:
        InputError: not one of `folder` and `dataset` is given, or what is for a data set alone.
        DatasetError: they cannot be read, or one of them cannot be used.
    """
    if (folder is None) == (dataset is None):
        raise InputError("give recordings as a folder or as a data set: one of the two")
    if folder is not None:
        for name, value in (("split", split), ("config", config), ("revision", revision)):
            if value is not None:
                raise InputError(f"{name} is of a data set (dataset=...); a folder has none")
        from .folder import folder_recordings

        return folder_recordings(
            folder, label=label, group=group, condition=condition, skip_invalid=skip_invalid, progress=progress
        )
    from .hub import hub_recordings

    return hub_recordings(
        str(dataset),
        label=label,
        group=group,
        condition=condition,
        split=split,
        config=config,
        revision=revision,
        skip_invalid=skip_invalid,
        progress=progress,
    )


def recorded_recipes() -> dict[str, RecordedRecipe[Any]]:
    """The recipes whose sound can be that of recordings, by their names."""
    every = {name: load_recipe(name) for name in list_recipes()}
    return {name: recipe for name, recipe in every.items() if isinstance(recipe, RecordedRecipe)}


@dataclass(frozen=True)
class Offer:
    """What recordings can be made into.

    Attributes:
        data: of the recipes that they can serve.
        left_out: why they cannot serve the others, by the name of the recipe.
    """

    data: RenderedData
    left_out: Mapping[str, str]


def recorded(
    recordings: Recordings, *, preset: str = "mini", recipes: Sequence[str] | None = None, **changes: Any
) -> RenderedData:
    """The data that recipes make of recordings, rendered as they are read.

    Args:
        recordings: as `open_recordings` gives them.
        preset: ``mini`` or ``full``, or one that a recipe has besides; as far as there are so many recordings.
        recipes: names; by default all that these recordings can serve. Of the others a warning says why they cannot.
        changes: to settings: each is made in every recipe that has a setting of that name, such as ``seed``,
            ``transforms``, ``classes``. ``pitch`` and ``stretch`` of the transforms need the extra ``transforms``.

    Raises:
        InputError: an unknown preset or setting, a recipe that takes no recordings, or a value out of its range.
        DatasetError: the recordings cannot serve a recipe that is named, or any recipe.
    """
    offer = offered(recordings, preset=preset, recipes=recipes, **changes)
    for name, reason in offer.left_out.items():
        warnings.warn(f"{name} is left out: {reason}", stacklevel=2)
    return offer.data


def offered(
    recordings: Recordings, *, preset: str = "mini", recipes: Sequence[str] | None = None, **changes: Any
) -> Offer:
    """As `recorded`, with the reasons instead of warnings. All rows are drawn: what cannot be is known from then on."""
    every = recorded_recipes()
    presets = _presets(every, preset, recipes)
    names = {recipe: {field.name for field in fields(settings)} for recipe, settings in presets.items()}
    for change in changes:
        if not any(change in of_recipe for of_recipe in names.values()):
            valid = sorted(set().union(*names.values()) - {"recordings"})
            raise InputError(f"recordings have no setting {change!r}; {nearest(change, valid)}")
    source = f"{RECORDINGS_OF}{recordings.source}"
    served: dict[str, RenderedData] = {}
    left_out: dict[str, str] = {}
    for recipe, settings in presets.items():
        requested = {name: value for name, value in changes.items() if name in names[recipe]}
        try:
            data = RenderedData(source, {recipe: every[recipe].of_recordings(settings, recordings, requested)})
            _ = data.configuration(recipe).rows
            served[recipe] = data
        except DatasetError as error:
            if recipes is not None:
                raise
            left_out[recipe] = str(error)
    if not served:
        reasons = "; ".join(f"{recipe}: {reason}" for recipe, reason in left_out.items())
        raise DatasetError(f"{recordings.source} can serve no recipe: {reasons}")
    return Offer(RenderedData(source, {name: data.settings[name] for name, data in served.items()}), left_out)


def _presets(every: Mapping[str, RecordedRecipe[Any]], preset: str, recipes: Sequence[str] | None) -> dict[str, Any]:
    """Settings of a preset, by the name of the recipe: of those that are named, or of all that have it.

    Raises:
        InputError: there is none, or a recipe is named that lacks it or takes no recordings.
    """
    for name in recipes or ():
        if name not in every:
            raise InputError(f"the recipe {name!r} takes no recordings; {nearest(name, every)}")
    presets = {name: every[name].presets for name in dict.fromkeys(every if recipes is None else recipes)}
    lacking = [name for name, of_recipe in presets.items() if preset not in of_recipe]
    if len(lacking) == len(presets) or (lacking and recipes is not None):
        valid = dict.fromkeys(name for of_recipe in presets.values() for name in of_recipe)
        raise InputError(f"unknown preset {preset!r}; {nearest(preset, valid)}")
    return {name: of_recipe[preset] for name, of_recipe in presets.items() if preset in of_recipe}
