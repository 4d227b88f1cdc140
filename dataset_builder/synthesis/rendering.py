"""What the renderings of recipes of scenes have in common: their settings, and the tones that clips are mixed from."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar, Generic, Self, TypeVar
from weakref import WeakValueDictionary

from .settings import SceneSettings

if TYPE_CHECKING:
    from .sound import ToneBank

Settings = TypeVar("Settings", bound=SceneSettings)


class SceneRendering(Generic[Settings]):
    """A rendering of scenes; a subclass adds rows and clips, see `Rendering`."""

    _renderings: ClassVar[WeakValueDictionary[Any, Any]] = WeakValueDictionary()

    @classmethod
    def of(cls, settings: Settings) -> Self:
        """The rendering of some settings; equal settings share it while anybody has it, so that they are drawn once."""
        rendering: Self = cls._renderings.setdefault((cls, settings), cls(settings))
        return rendering

    def __init__(self, settings: Settings) -> None:
        """Nothing is drawn before it is asked for."""
        self.settings = settings
        self.sample_rate = settings.sample_rate

    @cached_property
    def tone_bank(self) -> ToneBank:
        """The tones that every clip is mixed from."""
        from .sound import render_tone_bank

        return render_tone_bank(self.settings)
