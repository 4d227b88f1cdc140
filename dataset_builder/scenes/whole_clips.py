"""Clips that are recordings as they are: as long, as loud and at the rate that they have."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, field, fields
from functools import cached_property
from typing import Any, TypeVar

import numpy as np

from audio_compositionality.support.errors import InputError

from ..data import DatasetError, Pcm16, Row
from ..sounds.entries import LONGEST_RECORDING, Sound, Sounds
from ..sounds.splits import select_recordings
from .mixing import resampled
from .rendering import SharedRendering
from .transforms.base import Samples

FEWEST = 2
"""Clips: with one there is nothing to tell apart."""


@dataclass(frozen=True, kw_only=True)
class WholeClipSettings:
    """Everything that decides rows of whole recordings and their samples.

    Attributes:
        seed: of the draw, where there are more recordings than clips, from 0 to 2^63 - 1.
        clips: at most so many.
        duration: seconds of a clip at most: of longer recordings it is the middle.
        sample_rate: Hz to which recordings of different rates are brought; where all have one, they keep it.
        domain: what the recordings are, in a word; by default ``recordings``, or ``timbres`` where they are ours.
        recordings: what the clips are; by default tones of the project's own voices.

    Raises:
        InputError: a value out of its range.
    """

    seed: int = 0
    clips: int = 100_000
    duration: float = float(LONGEST_RECORDING)
    sample_rate: int = 48_000
    domain: str = ""
    recordings: Sounds | None = field(default=None, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "duration", float(self.duration))
        for name, value, low, high in (
            ("seed", self.seed, 0, 2**63 - 1),
            ("clips", self.clips, FEWEST, 1_000_000),
            ("duration", self.duration, 0.25, LONGEST_RECORDING),
            ("sample_rate", self.sample_rate, 8_000, 192_000),
        ):
            if not low <= value <= high:
                raise InputError(f"{name} is {value:,}; it must be from {low:,} to {high:,}")

    @property
    def sources(self) -> Sounds:
        """The recordings that the clips are."""
        if self.recordings is not None:
            return self.recordings
        from ..sounds.tones import captioned_timbres

        return captioned_timbres()

    @property
    def clip_rate(self) -> int:
        """Hz of every clip."""
        return self.sources.sample_rate or self.sample_rate

    @property
    def domain_name(self) -> str:
        """The domain; where none is given ``recordings``, or ``timbres`` where they are ours."""
        return self.domain or ("timbres" if self.recordings is None else "recordings")

    def values(self) -> dict[str, Any]:
        """The settings as JSON values; of the recordings, or of the timbres in their place, the fingerprint."""
        values = {f.name: getattr(self, f.name) for f in fields(self) if f.name != "recordings"}
        return {**values, "timbres" if self.recordings is None else "recordings": self.sources.fingerprint}


Settings = TypeVar("Settings", bound=WholeClipSettings)


class WholeClipRendering(SharedRendering[Settings]):
    """Rows of whole recordings; a subclass says which serve, and what a row says of one. See `Rendering`."""

    def __init__(self, settings: Settings) -> None:
        """Nothing is drawn before it is asked for."""
        super().__init__(settings)
        self.sample_rate = settings.clip_rate

    @abstractmethod
    def serves(self, entry: Sound) -> bool:
        """Whether a recording can be a row."""

    @abstractmethod
    def said_of(self, entry: Sound) -> Row:
        """What a row says of its recording, beside the common columns."""

    needed = ""
    """What recordings have to have, for messages."""

    name = ""
    """Of the recipe."""

    @cached_property
    def numbers(self) -> tuple[int, ...]:
        """Numbers of the recordings, in the order of `rows`.

        Raises:
            DatasetError: too few can be rows.
        """
        entries = self.settings.sources.entries
        usable = [number for number, entry in enumerate(entries) if self.serves(entry)]
        if len(usable) < FEWEST:
            source = self.settings.sources.source
            raise DatasetError(f"{source} has {len(usable)} recordings with {self.needed}; {FEWEST} are the least")
        selected = select_recordings([entries[number] for number in usable], self.settings.clips, self.settings.seed)
        return tuple(usable[place] for place in selected)

    @cached_property
    def rows(self) -> tuple[Row, ...]:
        """Rows without their audio."""
        entries, domain = self.settings.sources.entries, self.settings.domain_name
        return tuple(
            {
                "id": f"{self.name}-{place:05d}",
                "split": "test",
                **self.said_of(entries[number]),
                "recording": entries[number].id,
                "group": entries[number].group,
                "domain": domain,
            }
            for place, number in enumerate(self.numbers)
        )

    def clips(self, index: int) -> Sequence[Pcm16]:
        """The recording, int16 [samples]."""
        settings = self.settings
        waveform, rate = settings.sources.waveform(self.numbers[index])
        return (whole_clip(resampled(waveform, rate, self.sample_rate), round(settings.duration * self.sample_rate)),)


def whole_clip(samples: Samples, length: int) -> Pcm16:
    """Samples as they are, in 16 bits: the middle of more than `length`; lowered where they would pass full scale."""
    if len(samples) > length:
        start = (len(samples) - length) // 2
        samples = samples[start : start + length]
    peak = max(1.0, float(np.abs(samples).max()))
    # What was 16-bit before is the same samples.
    return np.clip(np.rint(samples / peak * 2**15), -(2**15), 2**15 - 1).astype(np.int16)


def describe_whole_clips(settings: WholeClipSettings) -> str:
    """What a clip is."""
    return (
        f"A clip is a recording as it is ({settings.domain_name}), mono, at {settings.clip_rate:,} Hz; of one of more "
        f"than {settings.duration:g} s it is the middle."
    )
