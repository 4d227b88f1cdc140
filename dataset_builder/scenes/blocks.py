"""Which recordings a block has: K classes under two conditions, and two contexts of other labels."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

from audio_compositionality.support.text import listed

from ..data import DatasetError
from .pool import RecordingPool, Sides, Use
from .recorded import BlockSettings
from .sources import random_generator

_BLOCKS = 20
"""The random stream."""

_FEW = 4
"""Classes for which smaller contexts are not advised."""


@dataclass(frozen=True)
class Block:
    """The recordings of a block, by number.

    Attributes:
        number: of the block.
        sides: its classes: an instance of each under either condition.
        context_a, context_c: sources of the two contexts.
    """

    number: int
    sides: Sides
    context_a: tuple[int, ...]
    context_c: tuple[int, ...]


def draw_blocks(pool: RecordingPool, settings: BlockSettings) -> Iterator[Block]:
    """The blocks of some settings, one after the other; further ones change none of those before.

    Labels are used as evenly as the conditions allow, as classes and as contexts, and so are conditions and recordings.
    The random numbers of a block depend on the seed and its number alone.

    Raises:
        DatasetError: the recordings do not suffice: says what there is, what is needed, and the nearest that works.
    """
    if len(pool.by_label) < settings.classes + 2 * settings.context_sources:
        raise DatasetError(_too_few_labels(pool, settings))
    use, contexts = Use(), Counter[str]()
    for number in range(settings.blocks):
        rng = random_generator(settings.seed, _BLOCKS, number)
        sides = pool.draw_sides(settings.classes, use, rng, unrelated=settings.unrelated)
        if sides is None:
            raise DatasetError(why_no_sides(pool, settings.classes, unrelated=settings.unrelated))
        labels = pool.draw_labels(2 * settings.context_sources, sides.labels, contexts, rng)
        drawn = pool.draw_recordings(labels, use, rng)
        yield Block(number, sides, drawn[: settings.context_sources], drawn[settings.context_sources :])


def _too_few_labels(pool: RecordingPool, settings: BlockSettings) -> str:
    count, classes, context = len(pool.by_label), settings.classes, settings.context_sources
    text = (
        f"{pool.source} has {count} labels; {classes} classes and 2 × {context} context sources need "
        f"{classes + 2 * context}"
    )
    if count - 2 * context >= _FEW:
        return f"{text}: --set classes={count - 2 * context}"
    if count >= 4:
        return f"{text}: --set classes={min(classes, count - 2)} --set context_sources=1"
    return f"{text}; 4 are the least (--set classes=2 --set context_sources=1)"


def why_no_sides(pool: RecordingPool, count: int, *, unrelated: bool) -> str:
    """Why there are no two conditions or groups with so many classes, and the nearest that works.

    Args:
        pool: the recordings.
        count: of the classes.
        unrelated: see `RecordingPool.pairs`.
    """
    if not pool.has_conditions:
        return _too_few_groups(pool, count)
    best, pair = pool.best_pair(unrelated=unrelated)
    if best >= count:
        return (
            f"{pool.source}: {count} classes need recordings under two conditions, and no group under both; the groups "
            f"of these recordings do not allow that: --set classes={max(2, count - 1)}, or other groups"
        )
    if pair is not None:
        names = " and ".join(map(repr, pair))
        nearest = f": --set classes={best}" if best >= 2 else ""
        text = (
            f"{pool.source} has no two {'unrelated ' if unrelated else ''}conditions that share {count} labels; "
            f"{names} share most, {best}{nearest}"
        )
        return f"{text}; or leave conditions out: LABEL/file" if best < 2 else text
    names = listed([repr(name) for name in pool.by_condition])
    if unrelated and len(pool.by_condition) > 1:
        return (
            f"{pool.source} has {len(pool.by_condition)} conditions, all related ({names}): the two sides of a block "
            "need two that have nothing in common, such as another engine; --set unrelated=false allows related ones"
        )
    return f"{pool.source} has one condition ({names}); two are needed"


def _too_few_groups(pool: RecordingPool, count: int) -> str:
    single = [label for label in pool.by_label if pool.groups(label) < 2]
    serving = len(pool.by_label) - len(single)
    text = f"{pool.source}: {count} classes need labels with two recordings each, of different groups; "
    if serving >= count:
        nearest = f"--set classes={max(2, count - 1)}"
        return f"{text}the groups of these recordings do not allow that: {nearest}, or other groups"
    names = f"{listed([repr(label) for label in single])} {'has' if len(single) == 1 else 'have'} one only"
    nearest = f": --set classes={serving}" if serving >= 2 else ""
    return f"{text}{serving} of {len(pool.by_label)} have them, {names}{nearest}"
