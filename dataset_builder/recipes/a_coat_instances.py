"""Blocks of scenes: each of K classes is added to two contexts, by a different instance in each."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any, ClassVar

from pydantic import Field

from ..data import AUDIO, NUMBER, TEXT, DataColumn, DatasetError, Pcm16, Row
from ..scenes.mixing import exact_clips
from ..scenes.pool import PLACED_COLUMNS, PlacedSounds, PlacedSpec, Sides, SoundPool, Use
from ..scenes.sources import random_generator
from ..sounds.entries import Sounds
from .base import Drawn, Recipe

_BLOCKS, _PLACES = 20, 21
"""The random streams."""

_CONTEXT_A, _CONTEXT_C, _SIDE_B, _SIDE_D = range(4)
"""Numbers of a block's sources in its random streams."""

_FEW = 4
"""Classes for which smaller contexts are not advised."""


class BlockSpec(PlacedSpec):
    """Everything that decides the blocks and their samples. Defaults suit recordings.

    Raises:
        InputError: a value out of its range.
    """

    blocks: int = Field(96, ge=1, le=100_000, description="How many.")
    classes: int = Field(8, ge=2, le=64, description="K, the labels of a block to distinguish.")
    context_sources: int = Field(2, ge=1, le=8, description="Sources of each of the two contexts.")
    snr_db: float = Field(0.0, ge=-40, le=40, description="Level of the added source relative to its context, in dB.")
    unrelated: bool = Field(
        True,
        description=(
            "Whether the conditions of the two sides are not related, as two voices of one synthesiser are. Where they "
            "may be, a linear map can tell classes by what such conditions have in common."
        ),
    )


@dataclass(frozen=True)
class InstanceBlock:
    """The sounds of a block, by number.

    Attributes:
        number: of the block.
        sides: an instance of each class under either condition.
        context_a, context_c: sources of the two contexts.
    """

    number: int
    sides: Sides
    context_a: tuple[int, ...]
    context_c: tuple[int, ...]


def draw_blocks(pool: SoundPool, spec: BlockSpec) -> Iterator[InstanceBlock]:
    """The blocks of a spec, one after the other; more of them change none of the earlier ones.

    Labels are used as evenly as the conditions allow, as classes and as contexts, and so are conditions and sounds.
    The random numbers of a block depend on the seed and its number alone.

    Raises:
        DatasetError: the sounds do not suffice: says what there is, what is needed, and the nearest that works.
    """
    if len(pool.by_label) < spec.classes + 2 * spec.context_sources:
        raise DatasetError(_too_few_labels(pool, spec))
    use, contexts = Use(), Counter[str]()
    for number in range(spec.blocks):
        rng = random_generator(spec.seed, _BLOCKS, number)
        sides = pool.draw_sides(spec.classes, use, rng, unrelated=spec.unrelated)
        if sides is None:
            raise DatasetError(pool.why_no_sides(spec.classes, unrelated=spec.unrelated))
        labels = pool.draw_labels(2 * spec.context_sources, sides.labels, contexts, rng)
        drawn = pool.draw_recordings(labels, use, rng)
        yield InstanceBlock(number, sides, drawn[: spec.context_sources], drawn[spec.context_sources :])


def _too_few_labels(pool: SoundPool, spec: BlockSpec) -> str:
    count, classes, context = len(pool.by_label), spec.classes, spec.context_sources
    text = (
        f"{pool.source} has {count} labels; {classes} classes and 2 × {context} context sources need "
        f"{classes + 2 * context}"
    )
    if count - 2 * context >= _FEW:
        return f"{text}: --set classes={count - 2 * context}"
    if count >= 4:
        return f"{text}: --set classes={min(classes, count - 2)} --set context_sources=1"
    return f"{text}; 4 are the least (--set classes=2 --set context_sources=1)"


def _row(block: InstanceBlock, pool: SoundPool, spec: BlockSpec) -> Row:
    sides = block.sides
    return {
        "id": f"{RECIPE.name}-{block.number:05d}",
        "labels": list(sides.labels),
        "condition_b": sides.conditions[0],
        "condition_d": sides.conditions[1],
        "instances_b": pool.ids(sides.first),
        "instances_d": pool.ids(sides.second),
        "context_a": pool.labels_of(block.context_a),
        "context_c": pool.labels_of(block.context_c),
        "context_a_instances": pool.ids(block.context_a),
        "context_c_instances": pool.ids(block.context_c),
        "level_db": spec.snr_db,
        **spec.of_row,
    }


def _clips(placed: PlacedSounds, block: InstanceBlock, snr_db: float) -> Sequence[Pcm16]:
    """The clips A, C, all B, all D, and the added sources alone: those of B, then those of D."""
    a = placed.together(block.context_a, _PLACES, block.number, _CONTEXT_A)
    c = placed.together(block.context_c, _PLACES, block.number, _CONTEXT_C)
    gain = 10 ** (snr_db / 20)
    added = [
        gain * placed.source(number, _PLACES, block.number, side, k)
        for side, numbers in ((_SIDE_B, block.sides.first), (_SIDE_D, block.sides.second))
        for k, number in enumerate(numbers)
    ]
    places = range(2, 2 + len(added))
    of_b, of_d = places[: len(block.sides.labels)], places[len(block.sides.labels) :]
    scenes = [(0,), (1,), *((0, place) for place in of_b), *((1, place) for place in of_d)]
    return exact_clips([a, c, *added], [*scenes, *((place,) for place in places)])


class Blocks(Recipe[BlockSpec]):
    """Blocks of scenes across instances of their classes."""

    name = "a_coat_instances"
    suiting: ClassVar[Mapping[str, Any]] = {"classes": 8, "context_sources": 2}

    @cached_property
    def presets(self) -> Mapping[str, BlockSpec]:
        """Specs by the name of a preset, of the timbres of the project's own voices."""
        of_timbres: dict[str, Any] = {"classes": 6, "context_sources": 1}
        return {"mini": BlockSpec(blocks=24, **of_timbres), "full": BlockSpec(blocks=96, **of_timbres)}

    def columns(self, spec: BlockSpec) -> Sequence[DataColumn]:
        """The columns with sound are in the order of `clip_names`."""
        return (
            DataColumn("id", TEXT, "name of the row"),
            DataColumn("A", AUDIO, "the first context"),
            DataColumn("C", AUDIO, "the second context"),
            DataColumn("B", [AUDIO], "for each class the first context and the instance", per="labels"),
            DataColumn("D", [AUDIO], "for each class the second context and the instance", per="labels"),
            DataColumn("alone_b", [AUDIO], "for each class the instance alone, as it is in B", per="labels"),
            DataColumn("alone_d", [AUDIO], "for each class the instance alone, as it is in D", per="labels"),
            DataColumn("labels", [TEXT], "labels of the classes", least=2),
            DataColumn("condition_b", TEXT, "condition of the instances of B; empty where there are none"),
            DataColumn("condition_d", TEXT, "condition of the instances of D"),
            DataColumn("instances_b", [TEXT], "names of the recordings of B, class by class", per="labels"),
            DataColumn("instances_d", [TEXT], "names of the recordings of D", per="labels"),
            DataColumn("context_a", [TEXT], "labels of the sources of A", least=1),
            DataColumn("context_c", [TEXT], "labels of the sources of C", least=1),
            DataColumn("context_a_instances", [TEXT], "names of the recordings of A", per="context_a"),
            DataColumn("context_c_instances", [TEXT], "names of the recordings of C", per="context_c"),
            DataColumn("level_db", NUMBER, "level of an instance over that of its context"),
            *PLACED_COLUMNS,
        )

    def draw(self, spec: BlockSpec, sounds: Sounds) -> Iterator[Drawn]:
        """The blocks with their clips."""
        pool = SoundPool(sounds)
        placed = PlacedSounds(spec, pool)
        for block in draw_blocks(pool, spec):
            yield Drawn(_row(block, pool, spec), partial(_clips, placed, block, spec.snr_db))

    def check_row(self, row: Row) -> None:
        """Refuse a row without its classes and contexts."""
        super().check_row(row)
        if len(set(row["labels"])) < len(row["labels"]):
            raise DatasetError(f"row {row['id']}: labels are {row['labels']!r}; those of a block differ")


RECIPE = Blocks()
