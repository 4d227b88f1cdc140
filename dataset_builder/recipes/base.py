"""What a recipe is: one configuration of the data set, from its settings to its rows and their sound."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol, TypeVar, runtime_checkable

from ..data import Pcm16, Row

if TYPE_CHECKING:
    from datasets import Features

    from audio_compositionality.support.table import Table

    from ..sounds.annotated import AnnotatedRecordings
    from ..sounds.entries import Sounds


class RecipeSettings(Protocol):
    """Everything that decides the samples of a configuration, as a frozen dataclass."""

    def values(self) -> dict[str, Any]:
        """The settings as JSON values; the fingerprint is made of them."""
        ...


Settings = TypeVar("Settings", bound=RecipeSettings)


class Rendering(Protocol):
    """The rows of a configuration and their sound, made as they are asked for.

    Attributes:
        rows: as `Configuration.rows`.
        sample_rate: Hz.
    """

    @property
    def sample_rate(self) -> int: ...  # noqa: D102

    @property
    def rows(self) -> Sequence[Row]: ...  # noqa: D102

    def clips(self, index: int) -> Sequence[Pcm16]:
        """The clips of a row, each int16 [samples], in the order of `Recipe.clip_names`."""
        ...


@runtime_checkable
class RatedRendering(Rendering, Protocol):
    """A rendering whose rows have rates of their own; `sample_rate` is the highest."""

    def rate(self, index: int) -> int:
        """Hz of the clips of a row."""
        ...


def rate_of(rendering: Rendering, index: int) -> int:
    """Hz of the clips of a row."""
    return rendering.rate(index) if isinstance(rendering, RatedRendering) else rendering.sample_rate


@runtime_checkable
class ReportedRendering(Rendering, Protocol):
    """A rendering that says something of its rows, which whoever builds them should read."""

    def reports(self) -> Sequence[Table]:
        """Tables."""
        ...

    def notes(self) -> Sequence[str]:
        """What could not be made, and why; sentences without an end."""
        ...


class Recipe(Protocol[Settings]):
    """A recipe: a module in this folder, or of an installed package, has one by the name ``RECIPE``.

    Attributes:
        name: of the configuration: ``load_dataset(folder, name)``.
        version: of the code that decides rows and samples; it rises with any change that alters one of them.
        splits: those that the configuration has, in the order of its rows.
        one_length: whether all clips have one length, so that a stored clip of another is refused.
        presets: settings by the name of a preset.
    """

    @property
    def name(self) -> str: ...  # noqa: D102

    @property
    def version(self) -> int: ...  # noqa: D102

    @property
    def splits(self) -> tuple[str, ...]: ...  # noqa: D102

    @property
    def one_length(self) -> bool: ...  # noqa: D102

    @property
    def presets(self) -> Mapping[str, Settings]: ...  # noqa: D102

    def features(self, settings: Settings) -> Features:
        """The columns of the configuration, ``id`` first, those with sound among them."""
        ...

    def clip_names(self, row: Row) -> Sequence[str]:
        """The clips of a row: names of its columns with sound, or ``column/0``, ``column/1`` … for a list of clips."""
        ...

    def render(self, settings: Settings) -> Rendering:
        """Draw the rows; nothing is written."""
        ...

    def check_row(self, row: Row) -> None:
        """Refuse a stored row that is not of this recipe.

        Raises:
            DatasetError: names the row and what is wrong.
        """
        ...

    def describe(self, settings: Settings) -> str:
        """Markdown of the card: what the rows are and how they sound; begins with no heading."""
        ...


@runtime_checkable
class RecordedRecipe(Recipe[Settings], Protocol[Settings]):
    """A recipe whose sound can be that of recordings: it is offered wherever somebody brings some."""

    def of_recordings(self, settings: Settings, recordings: Sounds, requested: Mapping[str, Any]) -> Settings:
        """Settings of a preset, with recordings for their sound.

        Args:
            settings: of a preset of this recipe.
            recordings: what the sound is taken from.
            requested: changes that the user asks for, by the names of fields of the settings, all of which these have:
                ``seed``, ``transforms``, ``classes`` … What is not asked for is chosen to suit the recordings.

        Raises:
            InputError: a value out of its range.
            DatasetError: these recordings cannot serve the recipe: says what there is and what is needed. Drawing the
                rows may raise it as well, before anything is rendered.
        """
        ...


@runtime_checkable
class AnnotatedRecipe(Recipe[Settings], Protocol[Settings]):
    """A recipe that can be made of recordings with strong labels: it is offered wherever somebody brings some."""

    def of_annotated(self, recordings: AnnotatedRecordings, requested: Mapping[str, Any]) -> Settings:
        """Settings with recordings for their sound, and their labels for what is said of it.

        Args:
            recordings: with labels.
            requested: changes that the user asks for, by the names of fields of the settings.

        Raises:
            InputError: a value out of its range, or no such field.
        """
        ...


@runtime_checkable
class ValidatedRecipe(Protocol):
    """A recipe of test items that makes others to choose among models in training by: of none of them, and of nothing
    that models are trained on."""

    def render_validation(self, scenes: Any, items: int) -> Rendering:
        """Draw items of the split ``validation``; nothing is written.

        Args:
            scenes: settings of training rows; items sound as their clips do.
            items: how many.

        Raises:
            InputError: nothing here is like these scenes, or there are not as many different items.
            DatasetError: their recordings do not suffice; drawing the rows may raise it as well.
        """
        ...


def fingerprint_of(recipe: str, version: int, values: Mapping[str, Any]) -> str:
    """SHA-256 over a recipe's name, its version and its settings as JSON: equal fingerprints mean equal samples."""
    named = {"recipe": recipe, "version": version, "settings": values}
    return hashlib.sha256(json.dumps(named, sort_keys=True).encode()).hexdigest()
