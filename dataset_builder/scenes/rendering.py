"""Rows as recipes draw them, and their sound, made as they are asked for."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar, Generic, Protocol, Self, TypeVar
from weakref import WeakValueDictionary

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ..data import Pcm16, Row
    from ..recipes.base import Drawn, Recipe
    from ..sounds.entries import Sounds
    from .mixing import EventSounds


class _Settings(Protocol):
    @property
    def sample_rate(self) -> int: ...


AnySettings = TypeVar("AnySettings", bound=_Settings)


class SharedRendering(Generic[AnySettings]):
    """A rendering that is drawn once; a subclass adds rows and clips, see `Rendering`."""

    _renderings: ClassVar[WeakValueDictionary[Any, Any]] = WeakValueDictionary()

    @classmethod
    def of(cls, settings: AnySettings) -> Self:
        """The rendering of some settings; equal settings share it while anybody has it, so that they are drawn once."""
        rendering: Self = cls._renderings.setdefault((cls, settings), cls(settings))
        return rendering

    def __init__(self, settings: AnySettings) -> None:
        """Nothing is drawn before it is asked for."""
        self.settings = settings
        self.sample_rate = settings.sample_rate


class DrawnRendering:
    """The rows that a recipe draws, and their sound, mixed as it is asked for; see `Rendering`."""

    _renderings: ClassVar[WeakValueDictionary[Any, Any]] = WeakValueDictionary()

    @classmethod
    def of_recipe(cls, recipe: Recipe[Any], spec: Any) -> Self:
        """The rendering of a spec; equal ones share it while anybody has it, so that they are drawn once."""
        rendering: Self = cls._renderings.setdefault((recipe.name, recipe.version, spec), cls(recipe, spec))
        return rendering

    def __init__(self, recipe: Recipe[Any], spec: Any) -> None:
        """Nothing is drawn before it is asked for."""
        self._recipe, self.spec = recipe, spec
        rate = recipe.sample_rate(spec)
        self.sample_rate: int = spec.sample_rate if rate is None else rate

    @cached_property
    def sounds(self) -> Sounds:
        """That clips are made of: the tones of the recipe, or a user's."""
        given: Sounds | None = getattr(self.spec, "sounds", None)
        return self._recipe.tones(self.spec) if given is None else given

    @cached_property
    def drawn(self) -> tuple[Drawn, ...]:
        """The rows with their events."""
        return tuple(self._recipe.draw(self.spec, self.sounds))

    @cached_property
    def rows(self) -> tuple[Row, ...]:
        """Rows without their audio."""
        split = self._recipe.splits[-1]
        return tuple({"id": one.row["id"], "split": split, **one.row} for one in self.drawn)

    @cached_property
    def _events(self) -> EventSounds:
        from .mixing import EventSounds

        return EventSounds(self.sounds, self.sample_rate)

    def clips(self, index: int) -> Sequence[Pcm16]:
        """The clips of a row, each int16 [samples], under one gain."""
        clips = self.drawn[index].clips
        if callable(clips):
            return clips()
        from .mixing import mix

        return mix(clips, self._events.samples, self.spec.num_samples)
