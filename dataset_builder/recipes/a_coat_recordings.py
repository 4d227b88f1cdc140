"""Quadruples of scenes of any sounds, in which the same sounds are added to two scenes (after arXiv 2603.13685)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from itertools import product
from typing import Self

import numpy as np
from pydantic import Field, model_validator

from audio_compositionality.support.errors import InputError

from ..data import AUDIO, NUMBER, TEXT, DataColumn, DatasetError, Pcm16, Row
from ..scenes.effects import Samples
from ..scenes.mixing import exact_clips
from ..scenes.pool import PlacedSounds, PlacedSpec, SoundPool, Use
from ..scenes.sources import dealt, random_generator
from ..sounds.entries import Sounds
from .base import Drawn, Recipe

PARTS = ("A", "C", "T")

_SIZES, _QUADRUPLES, _PLACES = 24, 25, 26
"""The random streams."""


class RecordedQuadrupleSpec(PlacedSpec):
    """Everything that decides the quadruples and their samples.

    Raises:
        InputError: a value out of its range.
    """

    eq_db: float = Field(0.0, ge=0, le=20, description=PlacedSpec.model_fields["eq_db"].description)
    quadruples: int = Field(500, ge=1, le=100_000, description="How many.")
    part_sources: int = Field(
        2, ge=1, le=4, description="Most sources of each of A, C and T; a scene has at most twice as many."
    )
    level_range: tuple[float, float] = Field(
        (-12.0, 0.0), description="Of a source, in dB, from the lowest to the highest; it is drawn uniformly."
    )

    @model_validator(mode="after")
    def _check_levels(self) -> Self:
        low, high = self.level_range
        if not -40 <= low <= high <= 40:
            raise InputError(f"level_range is ({low:g}, {high:g}); it goes up, within -40 to 40 dB")
        return self


@dataclass(frozen=True)
class RecordedQuadruple:
    """A quadruple.

    Attributes:
        number: of the quadruple.
        sounds: numbers of the sounds of A, of C and of T.
        gains: linear gain of each.
    """

    number: int
    sounds: Mapping[str, tuple[int, ...]]
    gains: Mapping[str, tuple[float, ...]]


def draw_recorded_quadruples(pool: SoundPool, spec: RecordedQuadrupleSpec) -> Iterator[RecordedQuadruple]:
    """The quadruples of a spec, one after the other; more of them change none of the earlier ones.

    All sources of a quadruple have different labels. Labels are used as evenly as they can be, in T and in A and C, and
    so are their sounds and the numbers of sources. The random numbers of a quadruple depend on the seed and its number
    alone.

    Raises:
        DatasetError: there are too few labels.
    """
    needed = 3 * spec.part_sources
    count = len(pool.by_label)
    if count < needed:
        nearest = f": --set part_sources={count // 3}" if count >= 3 else "; 3 are the least (--set part_sources=1)"
        raise DatasetError(
            f"{pool.source} has {count} labels; {spec.part_sources} sources in each of A, C and T need "
            f"{needed}{nearest}"
        )
    use, in_parts = Use(), {"T": Counter[str](), "AC": Counter[str]()}
    for number in range(spec.quadruples):
        sizes = dict(zip(PARTS, _sizes(number, spec), strict=True))
        rng = random_generator(spec.seed, _QUADRUPLES, number)
        added = pool.draw_labels(sizes["T"], (), in_parts["T"], rng)
        beside = pool.draw_labels(sizes["A"] + sizes["C"], added, in_parts["AC"], rng)
        labels = {"A": beside[: sizes["A"]], "C": beside[sizes["A"] :], "T": added}
        levels = {part: rng.uniform(*spec.level_range, sizes[part]) for part in PARTS}
        yield RecordedQuadruple(
            number,
            {part: pool.draw_recordings(of_part, use, rng) for part, of_part in labels.items()},
            {part: tuple(float(10 ** (level / 20)) for level in levels[part]) for part in PARTS},
        )


def _sizes(number: int, spec: RecordedQuadrupleSpec) -> tuple[int, ...]:
    """The numbers of sources of A, C and T: all combinations in turn, in an order drawn anew for each turn."""
    combinations: list[tuple[int, ...]] = list(product(range(1, spec.part_sources + 1), repeat=len(PARTS)))
    sizes: tuple[int, ...] = dealt(combinations, number, spec.seed, _SIZES)
    return sizes


def _row(quadruple: RecordedQuadruple, pool: SoundPool, spec: RecordedQuadrupleSpec) -> Row:
    entries = {part: [pool.entries[number] for number in numbers] for part, numbers in quadruple.sounds.items()}
    return {
        "id": f"{RECIPE.name}-{quadruple.number:05d}",
        "metadata": {
            part: [{"label": entry.label, "instance": entry.id} for entry in of_part]
            for part, of_part in entries.items()
        },
        "gains": {part: list(gains) for part, gains in quadruple.gains.items()},
        "domain": spec.domain_name,
    }


def _clips(placed: PlacedSounds, quadruple: RecordedQuadruple) -> Sequence[Pcm16]:
    """The clips A, B, C, D."""
    a, c, t = (_layer(placed, quadruple, place) for place in range(len(PARTS)))
    return exact_clips([a, c, t], [(0,), (0, 2), (1,), (1, 2)])


def _layer(placed: PlacedSounds, quadruple: RecordedQuadruple, place: int) -> Samples:
    layer = np.zeros(placed.spec.num_samples)
    part = PARTS[place]
    for n, (number, gain) in enumerate(zip(quadruple.sounds[part], quadruple.gains[part], strict=True)):
        layer += gain * placed.source(number, _PLACES, quadruple.number, place, n)
    return layer


class RecordedQuadruples(Recipe[RecordedQuadrupleSpec]):
    """Quadruples of scenes of any sounds; ``metadata`` and ``gains`` nest as those of the scenes of tones."""

    name = "a_coat_recordings"

    @cached_property
    def presets(self) -> Mapping[str, RecordedQuadrupleSpec]:
        """Specs by the name of a preset, of the timbres of the project's own voices."""
        return {"mini": RecordedQuadrupleSpec(quadruples=64), "full": RecordedQuadrupleSpec()}

    def columns(self, spec: RecordedQuadrupleSpec) -> Sequence[DataColumn]:
        """Clips, and their sources."""
        source = {"label": TEXT, "instance": TEXT}
        return (
            DataColumn("id", TEXT, "name of the row"),
            DataColumn("A", AUDIO, "a scene"),
            DataColumn("B", AUDIO, "A and T together"),
            DataColumn("C", AUDIO, "another scene"),
            DataColumn("D", AUDIO, "C and T together"),
            DataColumn(
                "metadata",
                {part: [source] for part in PARTS},
                "the sources of A, C and T, each with `label` and `instance`, the name of the recording",
                least=1,
            ),
            DataColumn("gains", {part: [NUMBER] for part in PARTS}, "linear gain of each source"),
            DataColumn("domain", TEXT, "domain of the recordings"),
        )

    def draw(self, spec: RecordedQuadrupleSpec, sounds: Sounds) -> Iterator[Drawn]:
        """The quadruples, with their clips A, B, C, D."""
        pool = SoundPool(sounds)
        placed = PlacedSounds(spec, pool)
        for quadruple in draw_recorded_quadruples(pool, spec):
            yield Drawn(_row(quadruple, pool, spec), partial(_clips, placed, quadruple))

    def check_row(self, row: Row) -> None:
        """Refuse a row without the gains of its sources."""
        super().check_row(row)
        for part in PARTS:
            sources, gains = (row[column][part] for column in ("metadata", "gains"))
            if len(gains) != len(sources) or not all(gain > 0 for gain in gains):
                raise DatasetError(f"row {row['id']}: the gains of {part} are {gains!r}; each source has one, above 0")


RECIPE = RecordedQuadruples()
