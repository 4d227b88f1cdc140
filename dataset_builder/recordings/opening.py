"""Recordings opened by name, and the data that recipes make of them."""

from __future__ import annotations

import warnings
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

from audio_compositionality.support.errors import InputError
from audio_compositionality.support.text import nearest

from ..data import DatasetError
from ..recipes import list_recipes, load_recipe
from ..recipes.base import RecordedRecipe
from ..rendered import RenderedData
from .makers import list_makers, load_maker
from .makers.base import Maker
from .named_sets import NamedSet, list_named_sets, load_named_set
from .offline import made_folder
from .protocol import Recordings
from .reading import ReadRecordings
from .sound_files import RecordingError

RECORDINGS_OF = "recordings of "
"""What the source of data begins with that were made of recordings: no preset or folder that can be opened."""


def open_recordings(
    folder: str | Path | None = None,
    *,
    dataset: str | Path | None = None,
    label: str | None = None,
    group: str | None = None,
    condition: str | None = None,
    captions: str | Sequence[str] | None = None,
    separator: str | None = None,
    strong_labels: str | Path | None = None,
    split: str | None = None,
    config: str | None = None,
    revision: str | None = None,
    skip_invalid: bool = False,
    progress: bool = True,
) -> ReadRecordings:
    """Open recordings of your own: of a folder, or of a data set that `datasets` reads.

    All are read once: their fingerprint is that of their samples, labels, groups and conditions, wherever they lie.

    Args:
        folder: with ``LABEL[/CONDITION]/file.wav``, or with ``metadata.csv``; see `folder_recordings`. Or the name of
            sounds that are made of what is installed, of which `list_makers` has the list: they are made once.
        dataset: Hub id or folder of a data set with a column of audio, instead; see `hub_recordings`. Or the name of
            one, of which `list_named_sets` has the list: the arguments below are as its file has them, where they are
            not given, and what cannot be used is left out; ``NAME=FOLDER`` reads a copy of it.
        label: column with labels.
        group: column whose values say which recordings belong together: they are never on both sides of a fold.
        condition: column with what recordings of several labels share and what says nothing of these, such as the
            voice that says words.
        captions: column with captions, or several, also as one text with commas between them; by default those that are
            called so: ``captions``, ``caption``, ``caption_1`` …
        separator: between several labels of a recording, where it can have several.
        strong_labels: table that says what is heard in the files of a folder from when to when, in place of their
            labels: each part is a recording, see `strong_recordings`.
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
        columns = {"label": label, "group": group, "condition": condition, "captions": captions, "separator": separator}
        if strong_labels is not None:
            return _of_parts(folder, strong_labels, columns, skip_invalid=skip_invalid, progress=progress)
        return _of_folder(folder, columns, skip_invalid=skip_invalid, progress=progress)
    if strong_labels is not None:
        raise InputError("strong labels (strong_labels=...) are of the files in a folder; a data set has none")
    asked = {
        "label": label,
        "group": group,
        "condition": condition,
        "captions": captions,
        "separator": separator,
        "split": split,
        "config": config,
        "revision": revision,
    }
    return _of_data_set(str(dataset), asked, skip_invalid=skip_invalid, progress=progress)


def _of_parts(
    folder: str | Path, table: str | Path, columns: Mapping[str, Any], *, skip_invalid: bool, progress: bool
) -> ReadRecordings:
    """Those that are parts of the files in a folder."""
    from .strong_labels import strong_recordings

    for name, column in columns.items():
        if column is not None:
            raise InputError(f"{name} is not needed: the table of strong labels says all that is said of a part")
    return strong_recordings(folder, table, skip_invalid=skip_invalid, progress=progress)


def _of_folder(folder: str | Path, columns: Mapping[str, Any], *, skip_invalid: bool, progress: bool) -> ReadRecordings:
    """Those of a folder, or of sounds that are made here."""
    from .folder import folder_recordings

    maker = maker_of(folder)
    return folder_recordings(
        folder if maker is None else made_folder(maker, progress=progress),
        **columns,
        source=None if maker is None else maker.name,
        suggested=None if maker is None else {"domain": maker.name},
        skip_invalid=skip_invalid,
        progress=progress,
    )


def _of_data_set(dataset: str, asked: Mapping[str, Any], *, skip_invalid: bool, progress: bool) -> ReadRecordings:
    """Those of a data set.

    Args:
        dataset: its name, Hub id or folder.
        asked: columns and so on, of which a named data set states those that are None.
        skip_invalid: leave out what cannot be used, as is done in a named one, which nobody here can mend.
        progress: show progress bars.
    """
    from .hub import hub_recordings

    named, place = named_set_of(dataset)
    if named is None:
        return hub_recordings(place, **asked, skip_invalid=skip_invalid, progress=progress)
    stated = {name: getattr(named, name) if value is None else value for name, value in asked.items()}
    # Labels that are none, and several of them, are those of the column that it states; and so of captions.
    its_own = stated["label"] == named.label
    if asked["separator"] is None and not its_own:
        stated["separator"] = None
    return hub_recordings(
        place,
        **stated,
        caption_separator=named.caption_separator if asked["captions"] is None else None,
        without=named.without if its_own else (),
        files=named.files,
        audio=named.audio,
        source=named.name,
        suggested=named.suggested,
        skip_invalid=True,
        progress=progress,
    )


def maker_of(name: str | Path) -> Maker | None:
    """The maker of sounds that is called so; None where a folder is.

    Raises:
        RecordingError: there is neither.
    """
    if Path(name).is_dir():
        return None
    makers = list_makers()
    if str(name) not in makers:
        raise RecordingError(
            f"{str(name)!r} is not a folder, nor the name of sounds that are made here; {nearest(str(name), makers)}"
        )
    return load_maker(str(name))


def named_set_of(text: str) -> tuple[NamedSet | None, str]:
    """The named data set that is meant, ``NAME`` or ``NAME=FOLDER``, if one is, and where it lies."""
    name, equals, folder = text.partition("=")
    if name not in list_named_sets() or (not equals and Path(name).is_dir()):
        return None, text
    named = load_named_set(name)
    return named, folder if equals else named.dataset


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
    offer = offered(recordings, preset=preset, recipes=recipes, required=recipes or (), **changes)
    for name, reason in offer.left_out.items():
        warnings.warn(f"{name} is left out: {reason}", stacklevel=2)
    return offer.data


def offered(
    recordings: Recordings,
    *,
    preset: str = "mini",
    recipes: Iterable[str] | None = None,
    required: Collection[str] = (),
    **changes: Any,
) -> Offer:
    """As `recorded`, with the reasons instead of warnings; an error only where one of `required` cannot be served.

    All rows are drawn: what cannot be had of these recordings is told before anything is rendered.
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
    presets = {name: every[name].presets[preset] for name in names if name not in left_out}
    settings = {name: {field.name for field in fields(of_recipe)} for name, of_recipe in presets.items()}
    _check_changes(changes, settings)
    wanted = {**recordings.suggested, **changes}
    source = f"{RECORDINGS_OF}{recordings.source}"
    served: dict[str, RenderedData] = {}
    for name, of_recipe in presets.items():
        requested = {change: value for change, value in wanted.items() if change in settings[name]}
        try:
            data = RenderedData(source, {name: every[name].of_recordings(of_recipe, recordings, requested)})
            _ = data.configuration(name).rows
            served[name] = data
        except DatasetError as error:
            if name in required:
                raise
            left_out[name] = str(error)
    if not served:
        reasons = "; ".join(f"{name}: {reason}" for name, reason in left_out.items())
        raise DatasetError(f"{recordings.source} can serve no recipe: {reasons}")
    return Offer(RenderedData(source, {name: data.settings[name] for name, data in served.items()}), left_out)


def _check_changes(changes: Mapping[str, Any], settings: Mapping[str, Collection[str]]) -> None:
    """Refuse a change that no recipe has a setting of.

    Args:
        changes: by the name of a setting.
        settings: names of those of each recipe.
    """
    for change in changes:
        if not any(change in of_recipe for of_recipe in settings.values()):
            valid = sorted({name for of_recipe in settings.values() for name in of_recipe} - {"recordings"})
            raise InputError(f"recordings have no setting {change!r}; {nearest(change, valid)}")
