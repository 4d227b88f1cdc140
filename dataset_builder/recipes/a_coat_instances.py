"""Blocks of scenes: each of K classes is added to two contexts, as a different instance in each."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property, partial
from typing import Any, ClassVar

from pydantic import Field

from ..data import AUDIO, NUMBER, TEXT, DataColumn, DatasetError, Pcm16, Row
from ..scenes.mixing import exact_clips
from ..scenes.pool import PLACED_COLUMNS, PlacedSounds, PlacedSpec, Use
from ..scenes.sources import random_generator
from ..sounds.entries import Sounds
from .base import Drawn, Recipe

_BLOCKS, _PLACES = 20, 21
"""Random streams."""

_CONTEXT_A, _CONTEXT_C, _SIDE_B, _SIDE_D = range(4)
"""Numbers of a block's sources in its random streams."""

_FEW = 4
"""Least number of classes for which smaller contexts are suggested."""


class BlockSpec(PlacedSpec):
    """Everything that determines the blocks and their samples. Defaults suit recordings.

    Raises:
        InputError: a value is out of range.
    """

    blocks: int = Field(96, ge=1, le=100_000, description="Number of blocks.")
    classes: int = Field(8, ge=2, le=64, description="K, the number of labels to distinguish in a block.")
    context_sources: int = Field(2, ge=1, le=8, description="Sources of each of the two contexts.")
    snr_db: float = Field(0.0, ge=-40, le=40, description="Level of the added source relative to its context, in dB.")
    unrelated: bool = Field(
        True,
        description=(
            "Whether the two sides have unrelated conditions (two voices of one synthesiser are related). If they "
            "may be related, a linear map can separate classes by what the conditions have in common."
        ),
    )


def _clips(
    pool: PlacedSounds,
    snr_db: float,
    number: int,
    contexts: Sequence[Sequence[int]],
    instances: Sequence[Sequence[int]],
) -> Sequence[Pcm16]:
    """Return the clips A, C, all B, all D, and the added sources alone: first for B, then for D.

    Args:
        pool: the sounds.
        snr_db: level of an added source relative to its context.
        number: number of the block.
        contexts: sounds of A and of C.
        instances: sounds added to A, one per class, and to C.
    """
    layers = [
        pool.together(context, _PLACES, number, source)
        for source, context in zip((_CONTEXT_A, _CONTEXT_C), contexts, strict=True)
    ]
    gain = 10 ** (snr_db / 20)
    for source, of_side in zip((_SIDE_B, _SIDE_D), instances, strict=True):
        layers += [gain * pool.placed(sound, _PLACES, number, source, k) for k, sound in enumerate(of_side)]
    added, count = range(2, len(layers)), len(instances[0])
    scenes = [(0,), (1,), *((0, place) for place in added[:count]), *((1, place) for place in added[count:])]
    return exact_clips(layers, [*scenes, *((place,) for place in added)])


class Blocks(Recipe[BlockSpec]):
    """Blocks of scenes with different instances of the same classes."""

    name = "a_coat_instances"
    suiting: ClassVar[Mapping[str, Any]] = {"classes": 8, "context_sources": 2}

    @cached_property
    def presets(self) -> Mapping[str, BlockSpec]:
        """Return the settings of each preset, by name, for timbres of the project's own voices."""
        of_timbres: dict[str, Any] = {"classes": 6, "context_sources": 1}
        return {"mini": BlockSpec(blocks=24, **of_timbres), "full": BlockSpec(blocks=96, **of_timbres)}

    def columns(self, spec: BlockSpec) -> Sequence[DataColumn]:
        """Return the columns; audio columns are in the order of `clip_names`."""
        return (
            DataColumn("id", TEXT, "name of the row"),
            DataColumn("A", AUDIO, "the first context"),
            DataColumn("C", AUDIO, "the second context"),
            DataColumn("B", [AUDIO], "for each class: the first context with the instance", per="labels"),
            DataColumn("D", [AUDIO], "for each class: the second context with the instance", per="labels"),
            DataColumn("alone_b", [AUDIO], "for each class: the instance alone, as in B", per="labels"),
            DataColumn("alone_d", [AUDIO], "for each class: the instance alone, as in D", per="labels"),
            DataColumn("labels", [TEXT], "labels of the classes", least=2),
            DataColumn("condition_b", TEXT, "condition of the instances of B; empty without conditions"),
            DataColumn("condition_d", TEXT, "condition of the instances of D"),
            DataColumn("instances_b", [TEXT], "names of the recordings in B, class by class", per="labels"),
            DataColumn("instances_d", [TEXT], "names of the recordings of D", per="labels"),
            DataColumn("context_a", [TEXT], "labels of the sources of A", least=1),
            DataColumn("context_c", [TEXT], "labels of the sources of C", least=1),
            DataColumn("context_a_instances", [TEXT], "names of the recordings of A", per="context_a"),
            DataColumn("context_c_instances", [TEXT], "names of the recordings of C", per="context_c"),
            DataColumn("level_db", NUMBER, "level of an instance relative to its context, in dB"),
            *PLACED_COLUMNS,
        )

    def draw(self, spec: BlockSpec, sounds: Sounds) -> Iterator[Drawn]:
        """Yield the blocks with their clips.

        Labels are used as evenly as the conditions permit, as classes and as contexts, and so are conditions and
        sounds. The random numbers of a block depend only on the seed and the block's number.
        """
        pool = PlacedSounds(spec, sounds)
        there, classes, size = len(pool.by_label), spec.classes, spec.context_sources
        if there < classes + 2 * size:
            text = f"{pool.source} has {there} labels; {classes} classes and 2 × {size} context sources require "
            nearest = "; at least 4 are needed (--set classes=2 --set context_sources=1)"
            if there - 2 * size >= _FEW:
                nearest = f": --set classes={there - 2 * size}"
            elif there >= 4:
                nearest = f": --set classes={min(classes, there - 2)} --set context_sources=1"
            raise DatasetError(f"{text}{classes + 2 * size}{nearest}")
        use, in_contexts = Use(), Counter[str]()
        for number in range(spec.blocks):
            rng = random_generator(spec.seed, _BLOCKS, number)
            sides = pool.draw_sides(classes, use, rng, unrelated=spec.unrelated)
            if sides is None:
                raise DatasetError(pool.why_no_sides(classes, unrelated=spec.unrelated))
            conditions, pairs = sides
            drawn = pool.draw_recordings(pool.draw_labels(2 * size, tuple(pairs), in_contexts, rng), use, rng)
            a, c, b, d = drawn[:size], drawn[size:], *zip(*pairs.values(), strict=True)
            row = {
                "id": f"{self.name}-{number:05d}",
                "labels": list(pairs),
                "condition_b": conditions[0],
                "condition_d": conditions[1],
                "instances_b": pool.ids(b),
                "instances_d": pool.ids(d),
                "context_a": pool.labels_of(a),
                "context_c": pool.labels_of(c),
                "context_a_instances": pool.ids(a),
                "context_c_instances": pool.ids(c),
                "level_db": spec.snr_db,
                **spec.of_row,
            }
            yield Drawn(row, partial(_clips, pool, spec.snr_db, number, (a, c), (b, d)))

    def check_row(self, row: Row) -> None:
        """Raise an error if a row lacks its classes and contexts."""
        super().check_row(row)
        if len(set(row["labels"])) < len(row["labels"]):
            raise DatasetError(f"row {row['id']}: labels are {row['labels']!r}; the labels of a block must differ")


RECIPE = Blocks()
