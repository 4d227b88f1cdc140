"""The base class of recipes: one configuration of the data set, from its settings to its rows and their sound."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar, Generic, Protocol, TypeVar, cast, runtime_checkable

import numpy as np

from audio_compositionality.support.spec import Spec

from ..data import DataColumn, Pcm16, Rendering, Row, check_columns, features_of
from ..scenes.sources import random_generator
from ..sounds.tones import HeardSpec

if TYPE_CHECKING:
    from datasets import Features

    from ..scenes.mixing import Clip
    from ..sounds.entries import Sounds
    from ..sounds.strong_labels import AnnotatedRecordings

AnySpec = TypeVar("AnySpec", bound=Spec)

Made = TypeVar("Made", covariant=True)


@dataclass(frozen=True)
class Drawn:
    """A drawn row.

    Attributes:
        row: the columns without sound; the split is ``test`` unless the row names one.
        clips: the events of each clip, in the order of `Recipe.clip_names`; the clips of a row share one gain. If
            events do not fully determine the sound of a row: a function that returns its clips, each int16 [samples].
        mixed: the function that mixes events; by default clips are as loud as full scale permits, see `mixing.mix`.
    """

    row: Row
    clips: Sequence[Clip] | Callable[[], Sequence[Pcm16]]
    mixed: Callable[[Sequence[Clip]], Sequence[Pcm16]] | None = None


class Recipe(Generic[AnySpec]):
    """A recipe: a module in this folder, or in an installed package, defines one under the name ``RECIPE``.

    A subclass defines its name, presets and columns, and draws rows; sound, features, the check of stored rows and the
    card are derived. The card is the Jinja template ``NAME.md`` next to the module, if it exists.

    Attributes:
        name: name of the configuration: ``load_dataset(folder, name)``.
        version: version of the code that determines rows and samples; raised with every change to either.
        splits: splits of the configuration, in the order of its rows.
        one_length: whether all clips have the same length; if so, a stored clip of another length is refused.
        presets: settings by preset; empty if rows are read and never drawn.
        suiting: defaults for a user's sounds, used unless a value is requested; the settings in `presets` suit tones.
    """

    name: ClassVar[str]
    version: ClassVar[int] = 1
    splits: ClassVar[tuple[str, ...]] = ("test",)
    one_length: ClassVar[bool] = True
    suiting: ClassVar[Mapping[str, Any]] = {}

    @property
    def presets(self) -> Mapping[str, AnySpec]:
        """Return the settings of each preset, by name."""
        raise NotImplementedError(f"{type(self).__name__} has no presets")

    def columns(self, spec: AnySpec) -> Sequence[DataColumn]:
        """Return the columns, ``id`` first; audio columns are in the order of `clip_names`."""
        raise NotImplementedError(f"{type(self).__name__} has no columns")

    def draw(self, spec: AnySpec, sounds: Sounds) -> Iterator[Drawn]:
        """Yield the rows of a spec; if more rows are requested, the earlier ones stay the same.

        Args:
            spec: settings of the rows.
            sounds: the sounds to make clips from.

        Raises:
            InputError: such rows are impossible with these settings.
            DatasetError: the recipe cannot use the sounds; the message says what was found and what is needed.
        """
        raise NotImplementedError(f"{type(self).__name__} does not draw rows")

    def random(self, spec: AnySpec, *place: int) -> np.random.Generator:
        """Return this recipe's random generator for a place, e.g. a row number, seeded by the spec's ``seed``."""
        stream = int(hashlib.sha256(self.name.encode()).hexdigest()[:8], 16)
        return random_generator(getattr(spec, "seed", 0), stream, *place)

    @property
    def takes_sounds(self) -> bool:
        """Return whether a user's sounds can be used instead of tones."""
        spec = next(iter(self.presets.values()), None)
        return isinstance(spec, HeardSpec) and "sounds" in type(spec).model_fields

    def of_sounds(self, spec: AnySpec, sounds: Sounds, requested: Mapping[str, Any]) -> AnySpec:
        """Return a spec with a user's sounds instead of tones.

        Args:
            spec: settings of a preset of this recipe.
            sounds: the sounds to make clips from.
            requested: values set by the user, by field name.

        Raises:
            InputError: a field is unknown, or a value is out of range.
            DatasetError: the recipe cannot use the sounds. Drawing the rows can also raise this error.
        """
        return spec.changed(**{**self.suiting, **requested, "sounds": sounds})

    def render(self, spec: AnySpec) -> Rendering:
        """Draw the rows without writing anything."""
        from ..scenes.mixing import DrawnRendering

        return DrawnRendering.of_recipe(self, spec)

    def sample_rate(self, spec: AnySpec) -> int | None:
        """Return the sample rate in Hz, from the spec or its sounds (``clip_rate``); None if clips differ."""
        rate: int | None = getattr(spec, "clip_rate", getattr(spec, "sample_rate", None))
        return rate

    def features(self, spec: AnySpec) -> Features:
        """Return the `datasets` features of the columns."""
        return features_of(self.columns(spec), self.sample_rate(spec))

    @cached_property
    def _stored_columns(self) -> Sequence[DataColumn]:
        """Return the columns of rows whose spec is unknown; computed once, because there are many rows."""
        # Without presets, the columns do not depend on the spec.
        return self.columns(next(iter(self.presets.values()), cast(Any, None)))

    def clip_names(self, row: Row) -> Sequence[str]:
        """Return the names of a row's clips: its audio columns, or ``column/0``, ``column/1`` … for a list of clips."""
        names: list[str] = []
        for column in self._stored_columns:
            if column.is_audio and column.per:
                names += (f"{column.name}/{place}" for place in range(len(row[column.per])))
            elif column.is_audio:
                names.append(column.name)
        return tuple(names)

    def check_row(self, row: Row) -> None:
        """Raise an error if a stored row does not belong to this recipe.

        Raises:
            DatasetError: names the row and what is wrong.
        """
        check_columns(row, self._stored_columns)

    def card(self, spec: AnySpec) -> Mapping[str, Any]:
        """Return further values for the card's template, by name."""
        return {}

    def describe(self, spec: AnySpec) -> str:
        """Return Markdown for the card that describes the rows and their sound; it does not begin with a heading."""
        from ..manifest import card_section

        return card_section(self, spec)


@runtime_checkable
class AnnotatedRecipe(Protocol[Made]):
    """A recipe that can also be made of recordings with strong labels as they are; it is available for all such
    recordings."""

    def of_annotated(self, recordings: AnnotatedRecordings, requested: Mapping[str, Any]) -> Made:
        """Return a spec for questions about recordings, based on their labels.

        Args:
            recordings: recordings with labels.
            requested: values set by the user, by field name.

        Raises:
            InputError: a field is unknown, or a value is out of range.
        """
        ...


@runtime_checkable
class ValidatedRecipe(Protocol):
    """A recipe of test items that also draws a validation split, for model selection in training.

    The validation split shares no sounds with the test items or the training rows.
    """

    def render_validation(self, scenes: Any, items: int) -> Rendering:
        """Draw items of the split ``validation`` without writing anything.

        Args:
            scenes: settings of the training rows; the items' clips sound like theirs.
            items: number of items.

        Raises:
            InputError: the recipe has no items like these scenes, or not as many different ones.
            DatasetError: there are too few sounds. Drawing the rows can also raise this error.
        """
        ...
