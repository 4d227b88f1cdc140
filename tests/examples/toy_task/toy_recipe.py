"""A recipe of a third party: tones and their octaves, two clips of different lengths a row."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from audio_compositionality.dataset_builder.data import DatasetError, Pcm16, Row

if TYPE_CHECKING:
    from datasets import Features

SECONDS = {"low": 0.5, "high": 0.25}


@dataclass(frozen=True)
class PairSettings:
    """How many pairs, from which seed, at which rate in Hz."""

    pairs: int = 12
    seed: int = 0
    sample_rate: int = 16_000

    def values(self) -> dict[str, Any]:
        """The settings as JSON values."""
        return asdict(self)


class RenderedPairs:
    """The rows, and their clips as they are asked for."""

    def __init__(self, settings: PairSettings) -> None:
        self.sample_rate = settings.sample_rate
        self.pitches = np.random.default_rng(settings.seed).uniform(110, 880, settings.pairs)

    @property
    def rows(self) -> Sequence[Row]:
        """A row a pair."""
        return [{"id": f"pair-{i:03d}", "split": "test", "pitch": float(hz)} for i, hz in enumerate(self.pitches)]

    def clips(self, index: int) -> Sequence[Pcm16]:
        """The tone, and the tone an octave above, int16 [samples] each."""
        return [
            np.rint(16_000 * np.sin(2 * np.pi * hz * np.arange(int(seconds * self.sample_rate)) / self.sample_rate))
            .astype(np.int16)
            for hz, seconds in zip(self.pitches[index] * np.array([1, 2]), SECONDS.values(), strict=True)
        ]  # fmt: skip


class Pairs:
    """The recipe; see `audio_compositionality.dataset_builder.recipes.base.Recipe`."""

    name = "toy_pairs"
    version = 1
    splits = ("test",)
    one_length = False
    presets: Mapping[str, PairSettings] = {"mini": PairSettings()}

    def features(self, settings: PairSettings) -> Features:
        """The columns."""
        from datasets import Audio, Features, Value

        audio = Audio(sampling_rate=settings.sample_rate)
        return Features({"id": Value("string"), "low": audio, "high": audio, "pitch": Value("float64")})

    def clip_names(self, row: Row) -> Sequence[str]:
        """Both."""
        return tuple(SECONDS)

    def render(self, settings: PairSettings) -> RenderedPairs:
        """Draw the rows."""
        return RenderedPairs(settings)

    def check_row(self, row: Row) -> None:
        """A row has a pitch."""
        if not row.get("pitch", 0) > 0:
            raise DatasetError(f"row {row['id']!r} has the pitch {row.get('pitch')!r}; it must be above 0")

    def describe(self, settings: PairSettings) -> str:
        """Markdown of the card."""
        return f"{settings.pairs} sines of `pitch` Hz (`low`), and of twice that (`high`).\n"


RECIPE = Pairs()
