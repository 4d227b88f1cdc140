"""What is learnt from: rows of texts that are true and false of clips, and the clips, wherever they come from."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from audio_compositionality.dataset_builder.data import Clip, Configuration, Data, Row
from audio_compositionality.dataset_builder.open_data import open_data
from audio_compositionality.dataset_builder.recipes import list_recipes, load_recipe
from audio_compositionality.dataset_builder.rendered import preset_names, rendered_preset
from audio_compositionality.support.text import listed

from .errors import TrainingError

if TYPE_CHECKING:
    from audio_compositionality.dataset_builder.sounds.entries import Sounds

TRAIN, VALIDATION = "train", "validation"

_TEXTS = ("captions", "parts", "negatives")
"""Columns that rows are known by to be learnt from."""


@dataclass(frozen=True)
class TrainingRow:
    """What is said of one clip.

    Attributes:
        id: of the row, unlike any other's.
        captions: of the whole clip, each of which says the same; one at least.
        parts: texts that are true of a part of it.
        negatives: texts that are false of it, each with its kind, which is empty where nobody says it.
        expression: what the captions say; equal for rows that say the same.
        clip: number of the clip in `Configuration.clip_ids`.
    """

    id: str
    captions: tuple[str, ...]
    parts: tuple[str, ...]
    negatives: tuple[tuple[str, str], ...]
    expression: str
    clip: int

    @property
    def texts(self) -> tuple[str, ...]:
        """All texts."""
        return (*self.captions, *self.parts, *(text for text, _ in self.negatives))

    @property
    def says(self) -> int:
        """The expression as a whole number of 64 bits, the same in every process."""
        digest = hashlib.blake2b(self.expression.encode(), digest_size=8).digest()
        return int.from_bytes(digest, "little", signed=True)


@dataclass(frozen=True)
class TrainingData:
    """The rows of one split, and the clips of all.

    Attributes:
        configuration: the opened data, which have the clips; `embed_configuration` takes it, too.
        split: of the rows.
        rows: what is said of the clips.
    """

    configuration: Configuration
    split: str
    rows: Sequence[TrainingRow]

    @property
    def source(self) -> str:
        """What the data were opened from."""
        return self.configuration.source

    @property
    def recipe(self) -> str:
        """The name of the recipe."""
        return self.configuration.recipe

    @property
    def fingerprint(self) -> str:
        """Names the clips of all splits: equal fingerprints mean equal samples."""
        return self.configuration.fingerprint

    @property
    def num_clips(self) -> int:
        """Clips of all splits."""
        return len(self.configuration.clip_ids)

    def clips(self, wanted: range | None = None) -> Iterator[Clip]:
        """Clips by their numbers, consecutive, each at the rate that it has; see `Configuration.clips`."""
        return self.configuration.clips(wanted)

    def take(self, count: int) -> TrainingData:
        """The first rows alone, of the same clips."""
        return replace(self, rows=self.rows[:count])


@dataclass(frozen=True)
class TrainingSplits:
    """Data to learn from, and to choose by.

    Attributes:
        train: learnt from.
        validation: what is never learnt from; None where there is too little.
    """

    train: TrainingData
    validation: TrainingData | None


def training_recipes() -> tuple[str, ...]:
    """Names of the recipes whose rows can be learnt from: there is a split for it, and texts that are false."""
    names = []
    for name in list_recipes():
        recipe = load_recipe(name)
        preset = next(iter(recipe.presets.values()), None)
        if TRAIN in recipe.splits and preset is not None and set(_TEXTS) <= set(recipe.features(preset)):
            names.append(name)
    return tuple(names)


def open_training(
    source: str | Path | Data | TrainingSplits,
    *,
    preset: str = "mini",
    recipe: str | None = None,
    revision: str | None = None,
    **changes: Any,
) -> TrainingSplits:
    """Open data to learn from.

    Args:
        source: the name of a recipe, rendered on the fly at the size of `preset`; a preset, such as ``full``; a folder
            that `build_dataset` wrote (one of such a name is ``./full``), or the Hub id of such data; or data that are
            opened already, such as what `recorded` makes of recordings, or their splits, which are given back.
        preset: size of a recipe that is named.
        recipe: the one to take of data with several that can be learnt from.
        revision: branch, tag or commit of a Hub id.
        changes: to the recipe's settings, such as ``train_rows=1000``.

    Raises:
        TrainingError: none of the data can be learnt from, several can and `recipe` is not given, or changes are asked
            for of what is not rendered.
        InputError: an unknown preset or setting.
        DatasetError: see `open_data`.
    """
    if isinstance(source, TrainingSplits):
        return source
    data = open_source(source, preset, recipe, revision, changes)
    recipes = training_recipes()
    names = [name for name in data.recipes if name in recipes] if recipe is None else [recipe]
    if len(names) != 1:
        has = "nothing that can be learnt from" if not names else f"{listed(names)}: name one of them"
        raise TrainingError(
            f"{data.source} has {has}; its data are of {listed(data.recipes)}, and recipes to learn from are "
            f"{listed(recipes)}"
        )
    return splits_of(data.configuration(names[0]))


def open_source(
    source: str | Path | Data, preset: str, recipe: str | None, revision: str | None, changes: dict[str, Any]
) -> Data:
    """The data of `open_training`, of all their recipes."""
    if isinstance(source, str) and source in list_recipes():
        return rendered_preset(preset, recipes=[source], **changes)
    if isinstance(source, str) and source in preset_names():
        return rendered_preset(source, recipes=training_recipes() if recipe is None else [recipe], **changes)
    if changes:
        raise TrainingError(f"{listed(list(changes))} cannot be changed: only what is rendered on the fly has settings")
    return open_data(source, revision=revision) if isinstance(source, (str, Path)) else source


def splits_of(configuration: Configuration) -> TrainingSplits:
    """The rows of opened data, by their splits; each has one clip.

    Raises:
        TrainingError: no row is there to be learnt from, or one is none: names it.
    """
    rows: dict[str, list[TrainingRow]] = {TRAIN: [], VALIDATION: []}
    for row, number in zip(configuration.rows, _clips_of_rows(configuration), strict=True):
        if row["split"] in rows:
            rows[row["split"]].append(_training_row(row, number))
    return _splits(configuration, rows)


def recorded_training(recordings: Sounds, *, preset: str = "mini", **changes: Any) -> TrainingSplits:
    """Scenes of recordings of a user's own, which `open_recordings` reads of a folder, a data set or strong labels.

    Args:
        recordings: what the clips are mixed of.
        preset: how many rows: ``mini`` or ``full``.
        changes: to the recipe's settings.

    Raises:
        DatasetError: they cannot serve: says what there is and what is needed.
        InputError: an unknown preset or setting, or a value out of its range.
    """
    from audio_compositionality.dataset_builder.recorded import recorded, recorded_recipes

    recipes = [name for name in training_recipes() if name in recorded_recipes()]
    return open_training(recorded(recordings, preset=preset, recipes=recipes, **changes))


def _splits(configuration: Configuration, rows: dict[str, list[TrainingRow]]) -> TrainingSplits:
    if not rows[TRAIN]:
        raise TrainingError(f"{configuration.source} has no row of the split {TRAIN!r} to learn from")
    train, validation = (TrainingData(configuration, split, tuple(rows[split])) for split in (TRAIN, VALIDATION))
    return TrainingSplits(train, validation if validation.rows else None)


def _clips_of_rows(configuration: Configuration) -> list[int]:
    """The number of each row's clip, of which there is one."""
    numbers: dict[str, list[int]] = {}
    for number, clip_id in enumerate(configuration.clip_ids):
        # The name of a clip has no slash, unless it is one of a list.
        numbers.setdefault(clip_id.rpartition("/")[0], []).append(number)
    clips = []
    for row in configuration.rows:
        of_row = numbers.get(row["id"], [])
        if len(of_row) != 1:
            raise TrainingError(f"{configuration.source}: row {row['id']} has {len(of_row)} clips; it must have one")
        clips += of_row
    return clips


def _training_row(row: Row, clip: int) -> TrainingRow:
    """A row of a recipe whose texts are its columns."""
    try:
        captions, parts = tuple(row["captions"]), tuple(row["parts"])
        negatives = tuple((one["text"], one["kind"] or "") for one in row["negatives"])
    except (KeyError, TypeError) as error:
        raise TrainingError(f"row {row['id']} has no {listed(_TEXTS)} as rows to learn from have: {error}") from error
    if not captions:
        raise TrainingError(f"row {row['id']} has no caption")
    expression = row.get("expression") or plain_caption(captions[0])
    return TrainingRow(row["id"], captions, parts, negatives, expression, clip)


def plain_caption(caption: str) -> str:
    """What a caption says where no expression does: its words, whatever their case and what stands between them."""
    return " ".join(caption.lower().rstrip(".!").split())
