"""Clips that differ in one factor of one source, and single sources of all combinations (after arXiv 2505.06224)."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property, partial
from itertools import groupby
from typing import Any, Self

from pydantic import Field, model_validator

from audio_compositionality.support.errors import InputError

from ..data import AUDIO, NUMBER, TEXT, DataColumn, DatasetError, Row
from ..scenes import sources
from ..sounds.entries import Sounds
from ..sounds.tones import ATTRIBUTES
from .base import Drawn, Recipe

_LEVELS = 10
"""Random stream."""

NEAREST, FARTHEST = 1 / 6, 1 / 3
"""Distance of a draw's levels from the centres of the bins, as a fraction of a bin."""


class FactorSpec(sources.SceneSpec):
    """Everything that determines the clips and their samples. Defaults are the sizes of the preset ``full``.

    With seed 0, as in the presets, levels are the centres of their bins. Any other seed moves all levels of pitch, rate
    and amplitude by one step each. Then no single source in the crossed part, which has all combinations, occurs in the
    presets; levels stay in their bins and as evenly spaced. Voices do not change.

    Raises:
        InputError: see `SceneSpec`.
    """

    max_sources: int = Field(
        3, ge=2, description="N, most sources of a star: a target and up to N - 1 background sources."
    )
    stars: int = Field(300, ge=1, description="Number of stars.")
    crossed_levels: tuple[int, int, int, int] = Field(
        (8, 8, 8, 8),
        description=(
            "Most classes of timbre, pitch, rate and amplitude in the crossed part, spread as evenly as "
            "possible, including the first and the last."
        ),
    )

    @model_validator(mode="after")
    def _check_sizes(self) -> Self:
        sources = self.num_classes ** len(ATTRIBUTES)
        versions = 1 + len(ATTRIBUTES) * (self.num_classes - 1)
        for name, most in (("max_sources", 1 + sources - versions), ("stars", sources)):
            if getattr(self, name) > most:
                raise InputError(
                    f"{name} is {getattr(self, name)}; with K = {self.num_classes} classes it may be at most {most:,}"
                )
        for attribute, count in zip(ATTRIBUTES, self.crossed_levels, strict=True):
            if not 2 <= count <= 49:
                raise InputError(f"crossed_levels of {attribute} is {count}; it must be from 2 to 49")
        return self

    @cached_property
    def moves(self) -> tuple[int, float, float]:
        """Return the distance of this draw's levels from the centres of their bins.

        In semitones for pitch, and in fractions of a bin for rate and amplitude. 0, 0, 0 with seed 0; 0 semitones if a
        bin has fewer than three.
        """
        if self.seed == 0:
            return 0, 0.0, 0.0
        rng = sources.random_generator(self.seed, _LEVELS)
        most = int((self.pitch_range[1] - self.pitch_range[0]) / self.num_classes * FARTHEST)
        signs, shares = rng.choice([-1, 1], 3), rng.uniform(NEAREST, FARTHEST, 2)
        semitones = int(rng.integers(1, most + 1)) if most else 0
        return int(signs[0]) * semitones, float(signs[1] * shares[0]), float(signs[2] * shares[1])

    @cached_property
    def pitches(self) -> tuple[int, ...]:
        """Return the MIDI note of each pitch class."""
        return tuple(pitch + self.moves[0] for pitch in super().pitches)

    @cached_property
    def rates(self) -> tuple[float, ...]:
        """Return the repetitions per second of each rate class."""
        low, high = self.rate_range
        step = (high / low) ** (self.moves[1] / self.num_classes)
        return tuple(rate * step for rate in super().rates)

    @cached_property
    def decibels(self) -> tuple[float, ...]:
        """Return the gain in dB of each amplitude class."""
        low, high = self.amplitude_range
        step = self.moves[2] * (high - low) / self.num_classes
        return tuple(level + step for level in super().decibels)

    @property
    def crossed_classes(self) -> dict[str, tuple[int, ...]]:
        """Return the classes of each attribute in the crossed part, in increasing order."""
        return {
            attribute: sources.spread(self.num_classes, min(count, self.num_classes))
            for attribute, count in zip(ATTRIBUTES, self.crossed_levels, strict=True)
        }

    def values(self) -> dict[str, Any]:
        """Return the values as JSON, including the moves if there are any."""
        return {**super().values(), **({"moves": list(self.moves)} if self.seed else {})}


class Factors(Recipe[FactorSpec]):
    """Stars of clips around a base, and crossed clips."""

    name = "factors"

    @cached_property
    def presets(self) -> Mapping[str, FactorSpec]:
        """Return the settings of each preset, by name; the paper has no such clips, so ``paper-`` presets are equal."""
        mini, full = FactorSpec(stars=32, crossed_levels=(8, 4, 4, 4)), FactorSpec()
        return {"mini": mini, "full": full, "paper-mini": mini, "paper-full": full}

    def columns(self, spec: FactorSpec) -> Sequence[DataColumn]:
        """Return the columns; ``metadata`` and ``gains`` as in other scene recipes; onsets are shares of a period."""
        factors = ("", *ATTRIBUTES, sources.ONSET)
        changed = (
            "factor that differs from the star's base: `timbre`, `pitch`, `rate`, `amplitude`, `onset`; "
            "empty for the base"
        )
        return (
            DataColumn("id", TEXT, "name of the row"),
            DataColumn("audio", AUDIO, "the clip"),
            DataColumn("kind", TEXT, "`star` or `crossed`", choices=sources.KINDS),
            DataColumn("block", TEXT, "the star that the clip belongs to; empty for a crossed clip"),
            DataColumn("factor", TEXT, changed, choices=factors),
            DataColumn("levels", sources.LEVELS, "class of each factor of the target, from 0"),
            DataColumn(
                "values",
                sources.VALUES,
                "values of the target: `pitch` as a MIDI note, `rate` in Hz, `amplitude` in dB",
            ),
            DataColumn("metadata", sources.SOURCES, f"the sources, the target first: {sources.SOURCE_LABELS}", least=1),
            DataColumn("onsets", [NUMBER], "onset of each source as a share of its period"),
            DataColumn("gains", [NUMBER], "linear gain of each source"),
            DataColumn("gain", NUMBER, "linear gain of the whole clip"),
        )

    def draw(self, spec: FactorSpec, sounds: Sounds) -> Iterator[Drawn]:
        """Yield the clips star by star, then the crossed clips; a star's gain is 1 / max(1, largest peak of its clips).

        The target and its background are rounded to 16 bits before they are added: if two clips of a star differ in the
        target, they differ by the same samples as the two targets alone.
        """
        bank = sources.ToneBank(spec)
        drawn = (*sources.draw_stars(spec, spec.stars), *sources.draw_crossed(spec, spec.crossed_classes))
        for _, block in groupby(drawn, key=lambda clip: clip.block or clip.id):
            clips = [(clip, clip.onsets(spec)) for clip in block]
            gain = 1 / max(1.0, *(sources.peak(bank.mix(clip.sources, onsets)) for clip, onsets in clips))
            for clip, onsets in clips:
                row = {
                    "id": f"{self.name}-{clip.id}",
                    "kind": sources.STAR if clip.block else sources.CROSSED,
                    "block": clip.block,
                    "factor": clip.factor,
                    "levels": sources.levels_of(clip.sources[0]),
                    "values": sources.values_of(clip.sources[0], spec),
                    "metadata": sources.labels_of(clip.sources, spec),
                    "onsets": list(clip.shares),
                    "gains": sources.gains_of(clip.sources, spec),
                    "gain": gain,
                }
                layers = [(clip.sources[:1], onsets[:1]), (clip.sources[1:], onsets[1:])]
                yield Drawn(row, partial(bank.clips, layers, [(0, 1)], gain))

    def check_row(self, row: Row) -> None:
        """Raise an error if a row lacks its target, or its star and the changed factor."""
        super().check_row(row)
        name, is_star = row["id"], row["kind"] == sources.STAR
        if row["factor"] and not is_star:
            raise DatasetError(f"row {name}: factor is {row['factor']!r}; it must be '' for a crossed clip")
        if bool(row["block"]) != is_star:
            raise DatasetError(
                f"row {name}: block is {row['block']!r}; it must be a star's name, or empty for a crossed clip"
            )

    def card(self, spec: FactorSpec) -> Mapping[str, Any]:
        """Return the number of clips."""
        in_star = 2 + len(ATTRIBUTES) * (spec.num_classes - 1)
        return {"in_star": in_star, "crossed": math.prod(map(len, spec.crossed_classes.values()))}


RECIPE = Factors()
