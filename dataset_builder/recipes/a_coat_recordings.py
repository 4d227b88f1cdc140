"""Quadruples of scenes of any sounds, in which the same sounds are added to two scenes (after arXiv 2603.13685)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property, partial
from itertools import product
from typing import Self

import numpy as np
from pydantic import Field, model_validator

from audio_compositionality.support.errors import InputError

from ..data import AUDIO, NUMBER, TEXT, DataColumn, DatasetError, Pcm16, Row
from ..scenes.mixing import exact_clips
from ..scenes.pool import PlacedSounds, PlacedSpec, Use
from ..scenes.sources import dealt, random_generator
from ..sounds.entries import Sounds
from .base import Drawn, Recipe

PARTS = ("A", "C", "T")

_SIZES, _QUADRUPLES, _PLACES = 24, 25, 26
"""Random streams."""


class RecordedQuadrupleSpec(PlacedSpec):
    """Everything that determines the quadruples and their samples.

    Raises:
        InputError: a value is out of range.
    """

    eq_db: float = Field(0.0, ge=0, le=20, description=PlacedSpec.model_fields["eq_db"].description)
    quadruples: int = Field(500, ge=1, le=100_000, description="Number of quadruples.")
    part_sources: int = Field(
        2, ge=1, le=4, description="Most sources of each of A, C and T; a scene has at most twice as many."
    )
    level_range: tuple[float, float] = Field(
        (-12.0, 0.0), description="Range of the level of a source in dB, lowest and highest; drawn uniformly."
    )

    @model_validator(mode="after")
    def _check_levels(self) -> Self:
        low, high = self.level_range
        if not -40 <= low <= high <= 40:
            raise InputError(f"level_range is ({low:g}, {high:g}); it must increase, within -40 to 40 dB")
        return self


def _clips(pool: PlacedSounds, number: int, parts: Sequence[tuple[Sequence[int], Sequence[float]]]) -> Sequence[Pcm16]:
    """Return the clips A, B, C, D of a quadruple, from the sounds and gains of A, C and T."""
    layers = []
    for place, (entries, gains) in enumerate(parts):
        layer = np.zeros(pool.spec.num_samples)
        for n, (entry, gain) in enumerate(zip(entries, gains, strict=True)):
            layer += gain * pool.placed(entry, _PLACES, number, place, n)
        layers.append(layer)
    return exact_clips(layers, [(0,), (0, 2), (1,), (1, 2)])


class RecordedQuadruples(Recipe[RecordedQuadrupleSpec]):
    """Quadruples of scenes of any sounds; ``metadata`` and ``gains`` are nested as for scenes of tones."""

    name = "a_coat_recordings"

    @cached_property
    def presets(self) -> Mapping[str, RecordedQuadrupleSpec]:
        """Return the settings of each preset, by name, for timbres of the project's own voices."""
        return {"mini": RecordedQuadrupleSpec(quadruples=64), "full": RecordedQuadrupleSpec()}

    def columns(self, spec: RecordedQuadrupleSpec) -> Sequence[DataColumn]:
        """Return the columns: clips and their sources."""
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
        """Yield the quadruples with their clips A, B, C, D; all sources of a quadruple have different labels.

        Labels are used as evenly as possible in T and in A and C, and so are their sounds and the numbers of sources.
        The random numbers of a quadruple depend only on the seed and the quadruple's number.
        """
        pool = PlacedSounds(spec, sounds)
        there, needed = len(pool.by_label), 3 * spec.part_sources
        if there < needed:
            nearest = (
                f": --set part_sources={there // 3}" if there >= 3 else "; at least 3 are needed (--set part_sources=1)"
            )
            raise DatasetError(
                f"{pool.source} has {there} labels; {spec.part_sources} sources in each of A, C and T require "
                f"{needed}{nearest}"
            )
        use, in_t, in_others = Use(), Counter[str](), Counter[str]()
        combinations = list(product(range(1, spec.part_sources + 1), repeat=len(PARTS)))
        for number in range(spec.quadruples):
            a, c, t = dealt(combinations, number, spec.seed, _SIZES)
            rng = random_generator(spec.seed, _QUADRUPLES, number)
            added = pool.draw_labels(t, (), in_t, rng)
            others = pool.draw_labels(a + c, added, in_others, rng)
            levels = [rng.uniform(*spec.level_range, size) for size in (a, c, t)]
            parts = [
                (pool.draw_recordings(labels, use, rng), [float(10 ** (level / 20)) for level in of_part])
                for labels, of_part in zip((others[:a], others[a:], added), levels, strict=True)
            ]
            row = {
                "id": f"{self.name}-{number:05d}",
                "metadata": {
                    part: [{"label": pool.entries[n].label, "instance": pool.entries[n].id} for n in entries]
                    for part, (entries, _) in zip(PARTS, parts, strict=True)
                },
                "gains": {part: gains for part, (_, gains) in zip(PARTS, parts, strict=True)},
                "domain": spec.domain_name,
            }
            yield Drawn(row, partial(_clips, pool, number, parts))

    def check_row(self, row: Row) -> None:
        """Raise an error if a row lacks the gains of its sources."""
        super().check_row(row)
        for part in PARTS:
            sources, gains = (row[column][part] for column in ("metadata", "gains"))
            if len(gains) != len(sources) or not all(gain > 0 for gain in gains):
                raise DatasetError(
                    f"row {row['id']}: the gains of {part} are {gains!r}; each source must have one gain above 0"
                )


RECIPE = RecordedQuadruples()
