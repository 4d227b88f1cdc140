"""What the renderings of recipes of several recordings a clip have in common."""

from __future__ import annotations

from functools import cached_property
from typing import TypeVar

from ..data import DatasetError
from ..recordings.protocol import Recordings
from .instances import mix_together, place_recording
from .pool import RecordingPool
from .recorded_settings import RecordedSettings
from .rendering import SharedRendering
from .rows import random_generator
from .transforms.base import Samples

Settings = TypeVar("Settings", bound=RecordedSettings)


class RecordedRendering(SharedRendering[Settings]):
    """A rendering of recordings; a subclass adds rows and clips, see `Rendering`."""

    @cached_property
    def recordings(self) -> Recordings:
        """What clips are made of."""
        return self.settings.sources

    @cached_property
    def pool(self) -> RecordingPool:
        """The recordings by label and condition."""
        return RecordingPool(self.recordings)

    def ids(self, numbers: tuple[int, ...]) -> list[str]:
        """The names of recordings."""
        return [self.recordings.entries[number].id for number in numbers]

    def labels(self, numbers: tuple[int, ...]) -> list[str]:
        """The labels of recordings."""
        return [self.recordings.entries[number].label for number in numbers]

    def placed(self, number: int, stream: int, *place: int) -> Samples:
        """A recording as a source over a clip, float64 [samples], at a level of 1.

        Args:
            number: of the recording.
            stream: of random numbers; see `random_generator`.
            place: of the source, which has random numbers of its own.

        Raises:
            DatasetError: it is silent.
        """
        settings = self.settings
        waveform, rate = self.recordings.waveform(number)
        rng = random_generator(settings.seed, stream, *place)
        try:
            return place_recording(waveform, rate, settings.num_samples, self.sample_rate, settings.eq_db, rng)
        except DatasetError as error:
            name = self.recordings.entries[number].id
            raise DatasetError(f"{self.recordings.source}: recording {name!r} {error}") from error

    def together(self, numbers: tuple[int, ...], stream: int, *place: int) -> Samples:
        """Recordings together, at a level of 1: the n-th has the random numbers of `place` and n."""
        sources = [self.placed(number, stream, *place, n) for n, number in enumerate(numbers)]
        try:
            return mix_together(sources)
        except DatasetError as error:
            raise DatasetError(f"{self.recordings.source}: {', '.join(self.ids(numbers))} {error}") from error
