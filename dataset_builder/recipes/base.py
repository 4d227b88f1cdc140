"""What a recipe is: one configuration of the data set, from its settings to its rows and their sound."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
from numpy.typing import NDArray

from ..data import Row

if TYPE_CHECKING:
    from datasets import Features

Pcm16 = NDArray[np.int16]


class RecipeSettings(Protocol):
    """Everything that decides the samples of a configuration, as a frozen dataclass."""

    def values(self) -> dict[str, Any]:
        """The settings as JSON values; the fingerprint is made of them."""
        ...


class Rendering(Protocol):
    """The rows of a configuration and their sound, made as they are asked for.

    Attributes:
        rows: as `Configuration.rows`.
        sample_rate: Hz.
    """

    sample_rate: int

    @property
    def rows(self) -> Sequence[Row]: ...  # noqa: D102

    def clips(self, index: int) -> Sequence[Pcm16]:
        """The clips of a row, each int16 [samples], in the order of `Recipe.clip_names`."""
        ...


class Recipe(Protocol):
    """A recipe: a module in this folder, or of an installed package, has one by the name ``RECIPE``.

    Attributes:
        name: of the configuration: ``load_dataset(folder, name)``.
        version: of the code that decides rows and samples; it rises with any change that alters one of them.
        presets: settings by the name of a preset.
        splits: those that the configuration has.
    """

    name: str
    version: int
    presets: Mapping[str, RecipeSettings]
    splits: tuple[str, ...]

    def features(self, settings: RecipeSettings) -> Features:
        """The columns of the configuration, ``id`` first, those with sound among them."""
        ...

    def clip_names(self, row: Row) -> Sequence[str]:
        """The clips of a row: names of its columns with sound, or ``column/0``, ``column/1`` … for a list of clips."""
        ...

    def render(self, settings: RecipeSettings) -> Rendering:
        """Draw the rows; nothing is written."""
        ...

    def check_row(self, row: Row) -> None:
        """Refuse a stored row that is not of this recipe.

        Raises:
            DatasetError: names the row and what is wrong.
        """
        ...

    def describe(self, settings: RecipeSettings) -> str:
        """Markdown of the card: what the rows are and how they sound; begins with no heading."""
        ...


def fingerprint_of(recipe: str, version: int, values: Mapping[str, Any]) -> str:
    """SHA-256 over a recipe's name, its version and its settings as JSON: equal fingerprints mean equal samples."""
    named = {"recipe": recipe, "version": version, "settings": values}
    return hashlib.sha256(json.dumps(named, sort_keys=True).encode()).hexdigest()
