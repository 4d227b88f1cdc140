"""Pairs of scenes with the same parts, bound differently: two labels exchange their conditions."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property, partial
from itertools import chain

import numpy as np
from pydantic import Field

from audio_compositionality.support.text import listed

from ..data import AUDIO, TEXT, DataColumn, DatasetError, Pcm16, Row
from ..scenes.mixing import exact_clips
from ..scenes.pool import PLACED_COLUMNS, PlacedSounds, PlacedSpec, SoundPool, Use, evenly
from ..scenes.sources import random_generator
from ..sounds.entries import Sounds, related
from .base import Drawn, Recipe

_TRIALS, _PLACES = 22, 23
"""Random streams."""

CLIPS = ("X1", "Y1", "X2", "Y2")

ACROSS = ("X3", "Y3")
"""Columns with a list of one clip or none."""


class BindingSpec(PlacedSpec):
    """Everything that determines the trials and their samples."""

    trials: int = Field(360, ge=1, le=100_000, description="Number of rows.")


def _draw_across(
    pool: SoundPool, pair: tuple[str, str], labels: Sequence[str], use: Counter[str], rng: np.random.Generator
) -> tuple[str, ...]:
    """Draw two other conditions with both labels: one related to the first condition of a pair, one to the second.

    The relation says which condition corresponds to which; without it, the sign of X3 − Y3 would have no meaning.
    """
    if related(*pair):
        return ()
    across = []
    cells = [pool.by_condition[condition][label] for condition in pair for label in labels]
    groups = {pool.group(number) for cell in cells for number in cell}
    for condition in pair:
        candidates = [
            name
            for name, cell in pool.by_condition.items()
            if name != condition
            and related(name, condition)
            and all(label in cell for label in labels)
            and not any(pool.group(number) in groups for label in labels for number in cell[label])
        ]
        across += evenly(candidates, use, rng)[:1]
    return tuple(across) if len(across) == 2 else ()


def _clips(
    pool: PlacedSounds, number: int, instances: Sequence[int], instances_across: Sequence[int]
) -> Sequence[Pcm16]:
    """Return the clips X1, Y1, X2, Y2, and X3, Y3 if there are other conditions; X has the first two of four sounds."""
    layers = [
        pool.placed(sound, _PLACES, number, scene, place)
        for scene, four in enumerate((instances, instances, instances_across))
        for place, sound in enumerate(four)
    ]
    return exact_clips(layers, [(first, first + 1) for first in range(0, len(layers), 2)])


class Bindings(Recipe[BindingSpec]):
    """Scenes that combine the same labels and the same conditions in different ways."""

    name = "binding"

    @cached_property
    def presets(self) -> Mapping[str, BindingSpec]:
        """Return the settings of each preset, by name, for timbres of the project's own voices."""
        return {"mini": BindingSpec(trials=90), "full": BindingSpec()}

    def columns(self, spec: BindingSpec) -> Sequence[DataColumn]:
        """Return the columns; X3 and Y3 are lists, empty if there are no other conditions."""
        return (
            DataColumn("id", TEXT, "name of the row"),
            *(DataColumn(name, AUDIO, f"the scene {name[0]}, placed and filtered anew") for name in CLIPS),
            *(DataColumn(name, [AUDIO], f"{name[0]} with other conditions; one clip or none") for name in ACROSS),
            DataColumn("labels", [TEXT], "w and w′", count=2),
            DataColumn("conditions", [TEXT], "u and v", count=2),
            DataColumn("conditions_across", [TEXT], "conditions of X3 and Y3, or none"),
            DataColumn("instances", [TEXT], "names of the recordings (u, w), (v, w′), (u, w′), (v, w)", count=4),
            DataColumn("instances_across", [TEXT], "recordings of X3 and Y3, or none"),
            *PLACED_COLUMNS,
        )

    def draw(self, spec: BindingSpec, sounds: Sounds) -> Iterator[Drawn]:
        """Yield the trials with their clips: two labels w and w′, and two conditions u and v.

        Conditions, labels and sounds are used as evenly as possible. The random numbers of a row depend only on the
        seed and the row's number.
        """
        pool, use = PlacedSounds(spec, sounds), Use()
        for number in range(spec.trials):
            rng = random_generator(spec.seed, _TRIALS, number)
            # Use related conditions if there are no others, e.g. two voices of the only synthesiser.
            pairs = chain.from_iterable(pool.pairs(2, use, rng, unrelated=unrelated) for unrelated in (True, False))
            pair = next(pairs, None) if pool.has_conditions else None
            if pair is None:
                needed = "trials need two conditions with recordings of the same two labels"
                if not pool.has_conditions:
                    needed += ": LABEL/CONDITION/file, or a column of conditions"
                    raise DatasetError(f"{pool.source} has no conditions, and {needed}")
                best, nearest = pool.best_pair(unrelated=False)
                if nearest is None:
                    only = listed([repr(name) for name in pool.by_condition])
                    raise DatasetError(f"{pool.source} has only one condition ({only}); {needed}")
                names = " and ".join(map(repr, nearest))
                raise DatasetError(f"{pool.source}: {needed}; {names} share the most labels, {best}")
            first, second = (pool.by_condition[condition] for condition in pair)
            labels = tuple(evenly([label for label in first if label in second], use.labels, rng)[:2])
            # In the order (u, w), (v, w′), (u, w′), (v, w).
            crossed = (*labels, *reversed(labels))
            instances = pool.draw_recordings(crossed, use, rng, pair * 2)
            across = _draw_across(pool, pair, labels, use.conditions, rng)
            use.labels.update(labels)
            use.conditions.update((*pair, *across))
            use.pairs[frozenset(pair)] += 1
            instances_across = pool.draw_recordings(crossed, use, rng, across * 2) if across else ()
            row = {
                "id": f"{self.name}-{number:05d}",
                "labels": list(labels),
                "conditions": list(pair),
                "conditions_across": list(across),
                "instances": pool.ids(instances),
                "instances_across": pool.ids(instances_across),
                **spec.of_row,
            }
            yield Drawn(row, partial(_clips, pool, number, instances, instances_across))

    def clip_names(self, row: Row) -> Sequence[str]:
        """Return X1, Y1, X2, Y2, and X3/0, Y3/0 if there are other conditions."""
        return (*CLIPS, *(f"{name}/0" for name in ACROSS if row["conditions_across"]))

    def check_row(self, row: Row) -> None:
        """Raise an error if X3 and Y3 have no conditions, or other recordings than the row states."""
        super().check_row(row)
        across = 2 if row["conditions_across"] else 0
        for name, count in (("conditions_across", across), ("instances_across", 2 * across)):
            if len(row[name]) != count:
                raise DatasetError(f"row {row['id']}: {name} is {row[name]!r}; it must have {count}")


RECIPE = Bindings()
