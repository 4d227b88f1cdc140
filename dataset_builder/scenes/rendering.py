"""What the renderings of recipes have in common: their settings, and of scenes the tones that clips are mixed from."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar, Generic, Protocol, Self, TypeVar
from weakref import WeakValueDictionary

from .sources import SceneSettings

if TYPE_CHECKING:
    from .tone_bank import ToneBank


class _Settings(Protocol):
    @property
    def sample_rate(self) -> int: ...


AnySettings = TypeVar("AnySettings", bound=_Settings)
Settings = TypeVar("Settings", bound=SceneSettings)


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


class SceneRendering(SharedRendering[Settings]):
    """A rendering of scenes; a subclass adds rows and clips, see `Rendering`."""

    @cached_property
    def tone_bank(self) -> ToneBank:
        """The tones that every clip is mixed from."""
        from .tone_bank import render_tone_bank

        return render_tone_bank(self.settings)
