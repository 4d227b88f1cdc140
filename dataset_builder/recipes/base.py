"""What a recipe is: one configuration of the data set, from its spec to its rows and their sound."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar, Generic, Protocol, TypeVar, runtime_checkable

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
    """A row as it is drawn.

    Attributes:
        row: its columns without sound; the split is ``test`` where it names none.
        clips: the events of each clip, in the order of `Recipe.clip_names`; the clips of a row share one gain. Where
            events are not all that decides how a row sounds, what makes its clips, each int16 [samples].
        mixed: what mixes events; by default all are as loud as full scale allows, see `mixing.mix`.
    """

    row: Row
    clips: Sequence[Clip] | Callable[[], Sequence[Pcm16]]
    mixed: Callable[[Sequence[Clip]], Sequence[Pcm16]] | None = None


class Recipe(Generic[AnySpec]):
    """A recipe: a module in this folder, or of an installed package, has one by the name ``RECIPE``.

    A subclass states what it is called, its presets and its columns, and draws rows; sound, features, the check of
    stored rows and the card follow. A card is the Jinja template ``NAME.md`` beside the module, where there is one.

    Attributes:
        name: of the configuration: ``load_dataset(folder, name)``.
        version: of the code that decides rows and samples; it rises with any change that alters one of them.
        splits: those that the configuration has, in the order of its rows.
        one_length: whether all clips have one length, so that a stored clip of another is refused.
        presets: specs by the name of a preset.
        suiting: values that suit the sounds that a user brings, where nobody asks for others; those of `presets` suit
            tones.
    """

    name: ClassVar[str]
    version: ClassVar[int] = 1
    splits: ClassVar[tuple[str, ...]] = ("test",)
    one_length: ClassVar[bool] = True
    suiting: ClassVar[Mapping[str, Any]] = {}

    @property
    def presets(self) -> Mapping[str, AnySpec]:
        """Specs by the name of a preset."""
        raise NotImplementedError(f"{type(self).__name__} has no presets")

    def columns(self, spec: AnySpec) -> Sequence[DataColumn]:
        """The columns, ``id`` first, those with sound among them, in the order of `clip_names`."""
        raise NotImplementedError(f"{type(self).__name__} has no columns")

    def draw(self, spec: AnySpec, sounds: Sounds) -> Iterator[Drawn]:
        """The rows of a spec, one after the other: further ones change none of those before.

        Args:
            spec: what is asked for.
            sounds: that clips are made of.

        Raises:
            InputError: the spec allows no such rows.
            DatasetError: the sounds cannot serve the recipe: says what there is and what is needed.
        """
        raise NotImplementedError(f"{type(self).__name__} does not draw rows")

    def random(self, spec: AnySpec, *place: int) -> np.random.Generator:
        """The random numbers of a place, such as a row's number: by the ``seed`` of a spec, for this recipe alone."""
        stream = int(hashlib.sha256(self.name.encode()).hexdigest()[:8], 16)
        return random_generator(getattr(spec, "seed", 0), stream, *place)

    @property
    def takes_sounds(self) -> bool:
        """Whether a user's sounds can take the place of the tones."""
        spec = next(iter(self.presets.values()))
        return isinstance(spec, HeardSpec) and "sounds" in type(spec).model_fields

    def of_sounds(self, spec: AnySpec, sounds: Sounds, requested: Mapping[str, Any]) -> AnySpec:
        """A spec with a user's sounds in place of the tones.

        Args:
            spec: of a preset of this recipe.
            sounds: that clips are made of.
            requested: values that the user asks for, by the names of fields.

        Raises:
            InputError: no such field, or a value out of its range.
            DatasetError: these sounds cannot serve the recipe. Drawing the rows may raise it as well.
        """
        return spec.changed(**{**self.suiting, **requested, "sounds": sounds})

    def render(self, spec: AnySpec) -> Rendering:
        """Draw the rows; nothing is written."""
        from ..scenes.mixing import DrawnRendering

        return DrawnRendering.of_recipe(self, spec)

    def sample_rate(self, spec: AnySpec) -> int | None:
        """Hz of every clip: that of a spec, or of its sounds (``clip_rate``); None where each clip has its own."""
        rate: int | None = getattr(spec, "clip_rate", getattr(spec, "sample_rate", None))
        return rate

    def features(self, spec: AnySpec) -> Features:
        """What `datasets` calls the features of the columns."""
        return features_of(self.columns(spec), self.sample_rate(spec))

    @cached_property
    def _stored_columns(self) -> Sequence[DataColumn]:
        """The columns of rows whose spec nobody knows: made once, since there are many rows."""
        return self.columns(next(iter(self.presets.values())))

    def clip_names(self, row: Row) -> Sequence[str]:
        """The clips of a row: names of its columns with sound, or ``column/0``, ``column/1`` … for a list of clips."""
        names: list[str] = []
        for column in self._stored_columns:
            if column.is_audio and column.per:
                names += (f"{column.name}/{place}" for place in range(len(row[column.per])))
            elif column.is_audio:
                names.append(column.name)
        return tuple(names)

    def check_row(self, row: Row) -> None:
        """Refuse a stored row that is not of this recipe.

        Raises:
            DatasetError: names the row and what is wrong.
        """
        check_columns(row, self._stored_columns)

    def card(self, spec: AnySpec) -> Mapping[str, Any]:
        """Further values that the card's template is filled with, by their names there."""
        return {}

    def describe(self, spec: AnySpec) -> str:
        """Markdown of the card: what the rows are and how they sound; begins with no heading."""
        from ..manifest import card_section

        return card_section(self, spec)


@runtime_checkable
class AnnotatedRecipe(Protocol[Made]):
    """A recipe that can be made of recordings with strong labels as they are: it is offered wherever somebody brings
    some."""

    def of_annotated(self, recordings: AnnotatedRecordings, requested: Mapping[str, Any]) -> Made:
        """A spec with recordings for their sound, and their labels for what is said of it.

        Args:
            recordings: with labels.
            requested: values that the user asks for, by the names of fields.

        Raises:
            InputError: a value out of its range, or no such field.
        """
        ...


@runtime_checkable
class ValidatedRecipe(Protocol):
    """A recipe of test items that also draws validation items, by which training chooses among models: disjoint from
    the test items and from training rows."""

    def render_validation(self, scenes: Any, items: int) -> Rendering:
        """Draw items of the split ``validation``; nothing is written.

        Args:
            scenes: spec of the training rows; items sound as their clips do.
            items: how many.

        Raises:
            InputError: nothing here is like these scenes, or there are not as many different items.
            DatasetError: their sounds do not suffice; drawing the rows may raise it as well.
        """
        ...
