"""Our own scenes together and pulled apart: their settings, rows and sound."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from ..data import Row
from .apart_twins import arrangement_of, draw_pairs
from .twin_groups import SPLITS, TwinGroup
from .twin_scenes import TwinScenes, TwinSettings


@dataclass(frozen=True, kw_only=True)
class ApartSettings(TwinSettings):
    """Everything that decides pairs of scenes and their samples; see `TwinSettings`.

    A set of groups is 14 clips with a question each: four about counting and three about duration, in either
    arrangement.
    """


class ApartScenes(TwinScenes):
    """Questions about scenes in two arrangements and their sound; see `Rendering`."""

    @cached_property
    def groups(self) -> tuple[TwinGroup, ...]:
        """The groups of twins, split by split; those of a pair follow each other."""
        sets = (self.settings.train_sets, self.settings.test_sets)
        return tuple(
            group
            for split, count in zip(SPLITS, sets, strict=True)
            for group in draw_pairs(self.labels, split, count, self.settings.seed)
        )

    @cached_property
    def rows(self) -> tuple[Row, ...]:
        """Rows without their audio; with the arrangement, and what the same question has in both as its pair."""
        rows = []
        for placed in self._placed:
            arrangement, pair = arrangement_of(self.groups[placed.group])
            rows.append({**placed.row, "arrangement": arrangement, "pair": f"{pair}-{placed.clip + 1}"})
        return tuple(rows)
