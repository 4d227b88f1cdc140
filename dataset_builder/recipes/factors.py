"""Clips that differ in one factor of one source, and single sources of all combinations (after arXiv 2505.06224)."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from itertools import groupby, product
from typing import Any, Self

from pydantic import Field, model_validator

from audio_compositionality.support.errors import InputError

from ..columns import AUDIO, NUMBER, TEXT, Column
from ..data import DatasetError, Pcm16, Row
from ..scenes.sources import (
    LEVELS,
    SOURCE_LABELS,
    SOURCES,
    VALUES,
    SceneSpec,
    Source,
    ToneBank,
    gains_of,
    labels_of,
    levels_of,
    random_generator,
    values_of,
)
from ..sounds.entries import Sounds
from ..sounds.tones import ATTRIBUTES
from .base import Drawn, Recipe

STAR, CROSSED = KINDS = ("star", "crossed")

ONSET = "onset"
"""The factor of the clip whose onsets were redrawn."""

_TARGETS, _STARS, _CROSSED, _LEVELS = 7, 8, 9, 10
"""The random streams."""

NEAREST, FARTHEST = 1 / 6, 1 / 3
"""How far, in widths of a bin, the levels of a draw of their own lie from the centres of the bins."""


class FactorSpec(SceneSpec):
    """Everything that decides the clips and their samples. Defaults are the sizes of the preset ``full``.

    With the seed 0, that of the presets, levels are the centres of their bins. Any other seed moves all levels of the
    pitch, of the rate and of the amplitude by one step of its own each, so that no single source of the crossed part,
    which has all combinations, is one of the presets'; they stay in their bins, and as evenly spaced. Voices stay.

    Raises:
        InputError: see `SceneSpec`.
    """

    max_sources: int = Field(
        3, ge=2, description="N, most sources of a star: a target and up to N - 1 others behind it."
    )
    stars: int = Field(300, ge=1, description="How many stars there are.")
    crossed_levels: tuple[int, int, int, int] = Field(
        (8, 8, 8, 8),
        description=(
            "How many classes of timbre, pitch, rate and amplitude the crossed part keeps at most, spread as evenly as "
            "they can be, the first and the last among them."
        ),
    )

    @model_validator(mode="after")
    def _check_sizes(self) -> Self:
        sources = self.num_classes ** len(ATTRIBUTES)
        versions = 1 + len(ATTRIBUTES) * (self.num_classes - 1)
        for name, most in (("max_sources", 1 + sources - versions), ("stars", sources)):
            if getattr(self, name) > most:
                raise InputError(f"{name} is {getattr(self, name)}; K = {self.num_classes} classes allow {most:,}")
        for attribute, count in zip(ATTRIBUTES, self.crossed_levels, strict=True):
            if not 2 <= count <= 49:
                raise InputError(f"crossed_levels of {attribute} is {count}; it must be from 2 to 49")
        return self

    @cached_property
    def moves(self) -> tuple[int, float, float]:
        """How far this draw's levels lie from the centres of their bins: semitones, and shares of a bin of the rate and
        of the amplitude. 0, 0, 0 with the seed 0; no semitone where a bin has fewer than three."""
        if self.seed == 0:
            return 0, 0.0, 0.0
        rng = random_generator(self.seed, _LEVELS)
        most = int((self.pitch_range[1] - self.pitch_range[0]) / self.num_classes * FARTHEST)
        signs, shares = rng.choice([-1, 1], 3), rng.uniform(NEAREST, FARTHEST, 2)
        semitones = int(rng.integers(1, most + 1)) if most else 0
        return int(signs[0]) * semitones, float(signs[1] * shares[0]), float(signs[2] * shares[1])

    @cached_property
    def pitches(self) -> tuple[int, ...]:
        """MIDI note of each class of pitch."""
        return tuple(pitch + self.moves[0] for pitch in super().pitches)

    @cached_property
    def rates(self) -> tuple[float, ...]:
        """Repetitions a second of each class of rate."""
        low, high = self.rate_range
        step = (high / low) ** (self.moves[1] / self.num_classes)
        return tuple(rate * step for rate in super().rates)

    @cached_property
    def decibels(self) -> tuple[float, ...]:
        """Gain in dB of each class of amplitude."""
        low, high = self.amplitude_range
        step = self.moves[2] * (high - low) / self.num_classes
        return tuple(level + step for level in super().decibels)

    @property
    def crossed_classes(self) -> dict[str, tuple[int, ...]]:
        """The classes of each attribute that the crossed part keeps, in increasing order."""
        return {
            attribute: _spread(self.num_classes, min(count, self.num_classes))
            for attribute, count in zip(ATTRIBUTES, self.crossed_levels, strict=True)
        }

    def values(self) -> dict[str, Any]:
        """The values as JSON, the moves among them where there are some."""
        return {**super().values(), **({"moves": list(self.moves)} if self.seed else {})}


def _spread(classes: int, count: int) -> tuple[int, ...]:
    """So many of the classes 0..classes-1, with both ends, as evenly as they can be; halves are rounded up."""
    gaps = count - 1
    return tuple((2 * number * (classes - 1) + gaps) // (2 * gaps) for number in range(count))


@dataclass(frozen=True)
class FactorClip:
    """A clip as it is drawn.

    Attributes:
        id: of its row.
        block: name of its star; empty for a crossed clip.
        factor: what was changed of the star's base: an attribute of the target, or `ONSET`; empty where nothing was.
        sources: the target and those behind it.
        shares: onset of each source as a share of its period, in [0, 1).
    """

    id: str
    block: str
    factor: str
    sources: tuple[Source, ...]
    shares: tuple[float, ...]

    def onsets(self, spec: SceneSpec) -> tuple[int, ...]:
        """First sample of each source."""
        return tuple(
            int(share * spec.periods[source.rate]) for share, source in zip(self.shares, self.sources, strict=True)
        )


def draw_stars(spec: FactorSpec) -> Iterator[FactorClip]:
    """The clips of all stars: the base, every other class of each factor of the target, onsets redrawn.

    Targets are different from star to star. A star is the same in specs that differ in the number of stars alone.
    """
    classes = spec.num_classes
    codes = random_generator(spec.seed, _TARGETS).permutation(classes ** len(ATTRIBUTES))
    for number, code in enumerate(codes[: spec.stars]):
        rng = random_generator(spec.seed, _STARS, number)
        target = Source.from_code(int(code), classes)
        versions = [
            (attribute, level, replace(target, **{attribute: level}))
            for attribute in ATTRIBUTES
            for level in range(classes)
            if level != getattr(target, attribute)
        ]
        background: list[Source] = []
        taken = {target, *(version for *_, version in versions)}
        count = int(rng.integers(spec.max_sources))
        while len(background) < count:
            source = Source.from_code(int(rng.integers(classes ** len(ATTRIBUTES))), classes)
            if source not in taken:
                taken.add(source)
                background.append(source)
        shares, redrawn = (tuple(map(float, rng.random(1 + count))) for _ in range(2))
        if spec.onset == "locked":
            shares = (0.0,) * len(shares)
        block = f"{STAR}-{number:05d}"
        name = f"{RECIPE.name}-{block}"
        yield FactorClip(f"{name}-base", block, "", (target, *background), shares)
        for attribute, level, version in versions:
            yield FactorClip(f"{name}-{attribute}-{level}", block, attribute, (version, *background), shares)
        yield FactorClip(f"{name}-{ONSET}", block, ONSET, (target, *background), redrawn)


def draw_crossed(spec: FactorSpec) -> Iterator[FactorClip]:
    """Single sources of all combinations of the classes that are kept; a source has one onset, whichever others are."""
    classes = spec.num_classes
    shares = random_generator(spec.seed, _CROSSED).random(classes ** len(ATTRIBUTES))
    for number, levels in enumerate(product(*spec.crossed_classes.values())):
        source = Source(*levels)
        share = 0.0 if spec.onset == "locked" else float(shares[source.code(classes)])
        yield FactorClip(f"{RECIPE.name}-{CROSSED}-{number:05d}", "", "", (source,), (share,))


def _row(clip: FactorClip, gain: float, spec: FactorSpec) -> Row:
    return {
        "id": clip.id,
        "kind": STAR if clip.block else CROSSED,
        "block": clip.block,
        "factor": clip.factor,
        "levels": levels_of(clip.sources[0]),
        "values": values_of(clip.sources[0], spec),
        "metadata": labels_of(clip.sources, spec),
        "onsets": list(clip.shares),
        "gains": gains_of(clip.sources, spec),
        "gain": gain,
    }


def _clips(bank: ToneBank, clip: FactorClip, gain: float) -> Sequence[Pcm16]:
    """The clip, int16 [samples].

    The target and what is behind it are rounded to 16 bits before they are added: two clips of a star that differ in
    the target differ by the same samples as the two targets alone.
    """
    onsets = clip.onsets(bank.spec)
    layers = [(clip.sources[part], onsets[part]) for part in (slice(1), slice(1, None))]
    return (bank.layered_clip(layers, gain),)


class Factors(Recipe[FactorSpec]):
    """Stars of clips around a base, and crossed clips."""

    name = "factors"

    @cached_property
    def presets(self) -> Mapping[str, FactorSpec]:
        """Specs by the name of a preset; those of ``paper-`` are the same, since the paper has no such clips."""
        mini, full = FactorSpec(stars=32, crossed_levels=(8, 4, 4, 4)), FactorSpec()
        return {"mini": mini, "full": full, "paper-mini": mini, "paper-full": full}

    def columns(self, spec: FactorSpec) -> Sequence[Column]:
        """``metadata`` and ``gains`` as of the other recipes of scenes; onsets are shares of a period."""
        factors = ("", *ATTRIBUTES, ONSET)
        changed = (
            "what was changed of the star's base: `timbre`, `pitch`, `rate`, `amplitude`, `onset`; empty for the base"
        )
        return (
            Column("id", TEXT, "name of the row"),
            Column("audio", AUDIO, "the clip"),
            Column("kind", TEXT, "`star` or `crossed`", choices=KINDS),
            Column("block", TEXT, "the star that the clip is of; empty for a crossed clip"),
            Column("factor", TEXT, changed, choices=factors),
            Column("levels", LEVELS, "class of each factor of the target, from 0"),
            Column("values", VALUES, "of the target: `pitch` as a MIDI note, `rate` in Hz, `amplitude` in dB"),
            Column("metadata", SOURCES, f"the sources, the target first: {SOURCE_LABELS}", least=1),
            Column("onsets", [NUMBER], "onset of each source as a share of its period"),
            Column("gains", [NUMBER], "linear gain of each source"),
            Column("gain", NUMBER, "linear gain of the whole clip"),
        )

    def draw(self, spec: FactorSpec, sounds: Sounds) -> Iterator[Drawn]:
        """Star by star, then the crossed clips; the gain of a star is 1 / max(1, largest peak of its clips)."""
        bank = ToneBank(spec)
        drawn = (*draw_stars(spec), *draw_crossed(spec))
        for _, block in groupby(drawn, key=lambda clip: clip.block or clip.id):
            clips = list(block)
            gain = 1 / max(1.0, *(bank.peak(clip.sources, clip.onsets(spec)) for clip in clips))
            for clip in clips:
                yield Drawn(_row(clip, gain, spec), partial(_clips, bank, clip, gain))

    def check_row(self, row: Row) -> None:
        """Refuse a row that does not say what its target is, or of which star it is and what was changed."""
        super().check_row(row)
        name, is_star = row["id"], row["kind"] == STAR
        if row["factor"] and not is_star:
            raise DatasetError(f"row {name}: factor is {row['factor']!r}; that of a crossed clip is ''")
        if bool(row["block"]) != is_star:
            raise DatasetError(f"row {name}: block is {row['block']!r}; it is a star's name, empty for a crossed clip")

    def card(self, spec: FactorSpec) -> Mapping[str, Any]:
        """How many clips there are."""
        in_star = 2 + len(ATTRIBUTES) * (spec.num_classes - 1)
        return {"in_star": in_star, "crossed": math.prod(map(len, spec.crossed_classes.values()))}


RECIPE = Factors()
