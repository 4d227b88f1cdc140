"""The base of a recipe: one configuration of the data set, from its spec to its rows and their sound."""

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
        row: the columns without sound; the split is ``test`` where the row names none.
        clips: the events of each clip, in the order of `Recipe.clip_names`; the clips of a row share one gain. Where
            events alone do not decide how a row sounds, a function that makes its clips, each int16 [samples].
        mixed: the function that mixes events; by default all are as loud as full scale allows, see `mixing.mix`.
    """

    row: Row
    clips: Sequence[Clip] | Callable[[], Sequence[Pcm16]]
    mixed: Callable[[Sequence[Clip]], Sequence[Pcm16]] | None = None


class Recipe(Generic[AnySpec]):
    """A recipe: a module of this folder, or of an installed package, has one under the name ``RECIPE``.

    A subclass states its name, presets and columns, and draws rows; sound, features, the check of stored rows and the
    card follow. A card is the Jinja template ``NAME.md`` beside the module, where there is one.

    Attributes:
        name: of the configuration: ``load_dataset(folder, name)``.
        version: of the code that decides rows and samples; it rises with any change to one of them.
        splits: of the configuration, in the order of its rows.
        one_length: whether all clips have one length, so that a stored clip of another is refused.
        presets: specs by the name of a preset; none where rows are read and never drawn.
        suiting: defaults for sounds that a user brings, where no other value is requested; those of `presets` suit
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
        """The columns, ``id`` first; the columns with sound are in the order of `clip_names`."""
        raise NotImplementedError(f"{type(self).__name__} has no columns")

    def draw(self, spec: AnySpec, sounds: Sounds) -> Iterator[Drawn]:
        """The rows of a spec, one after the other; more rows change none of the earlier ones.

        Args:
            spec: of the rows.
            sounds: of which clips are made.

        Raises:
            InputError: no such rows are possible with this spec.
            DatasetError: the sounds cannot serve the recipe: says what there is and what is needed.
        """
        raise NotImplementedError(f"{type(self).__name__} does not draw rows")

    def random(self, spec: AnySpec, *place: int) -> np.random.Generator:
        """The random numbers of a place, such as a row's number: from the spec's ``seed``, for this recipe alone."""
        stream = int(hashlib.sha256(self.name.encode()).hexdigest()[:8], 16)
        return random_generator(getattr(spec, "seed", 0), stream, *place)

    @property
    def takes_sounds(self) -> bool:
        """Whether a user's sounds can take the place of the tones."""
        spec = next(iter(self.presets.values()), None)
        return isinstance(spec, HeardSpec) and "sounds" in type(spec).model_fields

    def of_sounds(self, spec: AnySpec, sounds: Sounds, requested: Mapping[str, Any]) -> AnySpec:
        """A spec with a user's sounds in place of the tones.

        Args:
            spec: of a preset of this recipe.
            sounds: of which clips are made.
            requested: values that the user set, by the names of fields.

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
        """The features of the columns, as `datasets` calls them."""
        return features_of(self.columns(spec), self.sample_rate(spec))

    @cached_property
    def _stored_columns(self) -> Sequence[DataColumn]:
        """The columns of rows whose spec is unknown: made once, since there are many rows."""
        # A recipe without presets has the same columns whatever the spec.
        return self.columns(next(iter(self.presets.values()), cast(Any, None)))

    def clip_names(self, row: Row) -> Sequence[str]:
        """The clips of a row: names of its columns with sound, or ``column/0``, ``column/1`` … of a list of clips."""
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
        """Further values for the card's template, by their names there."""
        return {}

    def describe(self, spec: AnySpec) -> str:
        """Markdown of the card: the rows and their sound; begins with no heading."""
        from ..manifest import card_section

        return card_section(self, spec)


@runtime_checkable
class AnnotatedRecipe(Protocol[Made]):
    """A recipe that can also be made of recordings with strong labels as they are: it is offered for all such
    recordings."""

    def of_annotated(self, recordings: AnnotatedRecordings, requested: Mapping[str, Any]) -> Made:
        """A spec whose sound is that of recordings, and whose facts are their labels.

        Args:
            recordings: with labels.
            requested: values that the user set, by the names of fields.

        Raises:
            InputError: a value out of its range, or no such field.
        """
        ...


@runtime_checkable
class ValidatedRecipe(Protocol):
    """A recipe of test items that also draws a validation split, by which training selects models: disjoint from the
    test items and from the training rows."""

    def render_validation(self, scenes: Any, items: int) -> Rendering:
        """Draw items of the split ``validation``; nothing is written.

        Args:
            scenes: spec of the training rows; the clips of the items sound like theirs.
            items: how many.

        Raises:
            InputError: the recipe has no items like these scenes, or fewer different ones.
            DatasetError: their sounds do not suffice; drawing the rows may raise it as well.
        """
        ...
