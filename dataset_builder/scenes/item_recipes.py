"""What the recipes of items with captions have in common, of our scenes and of recordings."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import fields
from typing import TYPE_CHECKING, Any, ClassVar, Generic, TypeVar

from audio_compositionality.support.errors import InputError

from ..data import Row
from ..texts.caption_rows import check_item, clip_names, item_features
from .captioned import CaptionedSettings, RenderedItems, scene_item_features
from .natural import NaturalSettings
from .natural_items import EVENT_TEXTS, NaturalItems, NaturalItemSettings
from .scene_settings import settings_of_recordings

if TYPE_CHECKING:
    from datasets import Features

    from ..sounds.entries import Sounds


Settings = TypeVar("Settings", bound=CaptionedSettings)
Natural = TypeVar("Natural", bound=NaturalItemSettings)


class ItemRecipe(Generic[Settings, Natural]):
    """A recipe of items, see `Recipe` and `RecordedRecipe`; a subclass has a version, presets and a card.

    Attributes:
        of_scenes, of_natural: what renders items of our scenes, and of recordings.
        natural: type of the settings of the latter.
    """

    of_scenes: type[RenderedItems[Settings]]
    of_natural: type[NaturalItems[Natural]]
    natural: type[Natural]

    splits: ClassVar = ("test",)
    one_length: ClassVar = True

    @property
    def presets(self) -> Mapping[str, Settings]:
        """Settings by the name of a preset."""
        raise NotImplementedError

    @property
    def name(self) -> str:
        """Of the recipe, and in the ids of its rows."""
        return self.of_scenes.name

    def of_recordings(self, settings: Settings | Natural, recordings: Sounds, requested: Mapping[str, Any]) -> Natural:
        """Scenes of recordings in place of tones; see `RecordedRecipe`."""
        return settings_of_recordings(self.natural, settings, recordings, requested, what="scenes of recordings")

    def features(self, settings: Settings | Natural) -> Features:
        """See `rows.item_features`; an event has the labels of its classes beside its words."""
        if isinstance(settings, NaturalItemSettings):
            return item_features(settings.sample_rate, EVENT_TEXTS)
        return scene_item_features(settings.sample_rate)

    def clip_names(self, row: Row) -> Sequence[str]:
        """audio/0, audio/1, and audio/2 of a triplet."""
        return clip_names(row)

    def render(self, settings: Settings | Natural) -> RenderedItems[Settings] | NaturalItems[Natural]:
        """Draw the rows; nothing is written."""
        if isinstance(settings, NaturalItemSettings):
            return self.of_natural.of(settings)
        return self.of_scenes.of(settings)

    def render_validation(self, scenes: Any, items: int) -> RenderedItems[Settings] | NaturalItems[Natural]:
        """Items of the split ``validation``, that sound as other scenes do; see `ValidatedRecipe`."""
        natural = isinstance(scenes, NaturalSettings)
        if not natural and not isinstance(scenes, CaptionedSettings):
            raise InputError(f"{self.name} makes no items like scenes of {type(scenes).__name__}")
        kind: Any = self.natural if natural else type(next(iter(self.presets.values())))
        # How many sources a scene of training has is no matter of items.
        names = {field.name for field in fields(kind)} - {"max_sources"}
        settings = kind(**{name: getattr(scenes, name) for name in names if hasattr(scenes, name)} | {"items": items})
        return (self.of_natural if natural else self.of_scenes).for_validation(settings)

    def check_row(self, row: Row) -> None:
        """Refuse a row that is no item with captions."""
        check_item(row)
