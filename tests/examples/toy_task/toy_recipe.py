"""A recipe of a third party: sines and their octaves, two clips of different lengths a row."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from pydantic import Field

from audio_compositionality.dataset_builder.data import (
    AUDIO,
    NUMBER,
    TEXT,
    DataColumn,
    DatasetError,
    Pcm16,
    Rendering,
    Row,
)
from audio_compositionality.dataset_builder.recipes.base import Recipe
from audio_compositionality.support.spec import Spec

SECONDS = {"low": 0.5, "high": 0.25}


class PairSpec(Spec):
    """How many pairs, from which seed, at which rate."""

    pairs: int = Field(12, ge=1, description="How many rows.")
    seed: int = Field(0, ge=0, description="Of the pitches.")
    sample_rate: int = Field(16_000, ge=8_000, description="Hz of the clips.")


class RenderedPairs(Rendering):
    """The rows, and their clips as they are asked for."""

    def __init__(self, spec: PairSpec) -> None:
        self.sample_rate = spec.sample_rate
        self.pitches = np.random.default_rng(spec.seed).uniform(110, 880, spec.pairs)

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


class Pairs(Recipe[PairSpec]):
    """Sines and their octaves."""

    name = "toy_pairs"
    one_length = False

    @property
    def presets(self) -> Mapping[str, PairSpec]:
        """One."""
        return {"mini": PairSpec()}

    def columns(self, spec: PairSpec) -> Sequence[DataColumn]:
        """Two clips and a number."""
        return (
            DataColumn("id", TEXT, "name of the row"),
            DataColumn("low", AUDIO, "a sine"),
            DataColumn("high", AUDIO, "the sine an octave above"),
            DataColumn("pitch", NUMBER, "Hz of the lower one"),
        )

    def render(self, spec: PairSpec) -> RenderedPairs:
        """Draw the rows; these are no sounds of anybody, so that events are not needed."""
        return RenderedPairs(spec)

    def check_row(self, row: Row) -> None:
        """A pitch is above 0."""
        super().check_row(row)
        if not row["pitch"] > 0:
            raise DatasetError(f"row {row['id']!r} has the pitch {row['pitch']!r}; it must be above 0")


RECIPE = Pairs()
