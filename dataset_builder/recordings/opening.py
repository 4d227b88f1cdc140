"""Recordings opened by name, and the data that a recipe makes of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

from audio_compositionality.support.errors import InputError
from audio_compositionality.support.text import nearest

from ..recipes.transforms import RECIPE
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
    split: str | None = None,
    config: str | None = None,
    revision: str | None = None,
    skip_invalid: bool = False,
    progress: bool = True,
) -> ReadRecordings:
    """Open recordings of your own: of a folder, or of a data set that `datasets` reads.

    All are read once: their fingerprint is that of their samples, labels and groups, wherever they lie.

    Args:
        folder: with ``LABEL/file.wav``, or with ``metadata.csv``; see `folder_recordings`.
        dataset: Hub id or folder of a data set with a column of audio, instead; see `hub_recordings`.
        label: column with labels.
        group: column whose values say which recordings belong together: they are never on both sides of a fold.
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

        return folder_recordings(folder, label=label, group=group, skip_invalid=skip_invalid, progress=progress)
    from .hub import hub_recordings

    return hub_recordings(
        str(dataset),
        label=label,
        group=group,
        split=split,
        config=config,
        revision=revision,
        skip_invalid=skip_invalid,
        progress=progress,
    )


def transformed(
    recordings: Recordings, *, preset: str = "mini", transforms: Sequence[str] | None = None, **changes: Any
) -> RenderedData:
    """The data that transforms make of recordings, rendered as they are read.

    Args:
        recordings: at least five, in five groups where they have groups.
        preset: ``mini``, of which 48 recordings are transformed and 208 further ones taken as they are, or ``full``,
            400 and 1,600; as far as there are so many. Those of ``paper-`` have the paper's transforms and ranges.
        transforms: names; by default those of the preset. ``pitch`` and ``stretch`` need the extra ``transforms``.
        changes: to settings of the recipe, such as ``seed``, ``bases``, ``untransformed``, ``per_quarter``.

    Raises:
        InputError: an unknown preset, transform or setting, or a value out of its range.
    """
    presets = RECIPE.presets
    if preset not in presets:
        raise InputError(f"unknown preset {preset!r}; {nearest(preset, presets)}")
    settings = presets[preset]
    names = [field.name for field in fields(settings)]
    for change in changes:
        if change not in names:
            raise InputError(f"recordings have no setting {change!r}; {nearest(change, names)}")
    # The paper's are four, of which scenes allow two.
    usual = [name for name, _ in settings.ranges] or settings.transforms
    changed = replace(
        settings, recordings=recordings, transforms=tuple(usual if transforms is None else transforms), **changes
    )
    return RenderedData(f"{RECORDINGS_OF}{recordings.source}", {RECIPE.name: changed})
