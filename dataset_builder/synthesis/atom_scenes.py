"""Our own scenes with atomic questions: their settings, rows and sound."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from ..annotations.base import Annotation
from ..questions.atoms import ATOMS, atoms_digest
from ..questions.base import Question
from .atom_twins import atom_questions, draw_atoms
from .rows import random_generator
from .twin_groups import SPLITS, TwinGroup
from .twin_scenes import TwinScenes, TwinSettings

_PITCHES = 77
"""The random stream."""


@dataclass(frozen=True, kw_only=True)
class AtomSettings(TwinSettings):
    """Everything that decides scenes with atomic questions and their samples; see `TwinSettings`.

    A set of groups is four clips with two questions each: two about presence and two about a sequence.
    """

    def values(self) -> dict[str, Any]:
        """The settings as JSON values, and what questions are worded by."""
        return {**super().values(), "templates": atoms_digest()}


class AtomScenes(TwinScenes):
    """Atomic questions about scenes and their sound; see `Rendering`."""

    @cached_property
    def groups(self) -> tuple[TwinGroup, ...]:
        """The groups of twins, split by split."""
        sets = (self.settings.train_sets, self.settings.test_sets)
        return tuple(
            group
            for split, count in zip(SPLITS, sets, strict=True)
            for group in draw_atoms(self.labels, split, count, self.settings.seed)
        )

    def questions(self, group: TwinGroup, annotations: Sequence[Annotation]) -> tuple[Question, ...]:
        """See `atom_twins.atom_questions`."""
        return atom_questions(group, annotations)

    def _pitches(self, group: TwinGroup) -> Sequence[int]:
        place = (SPLITS.index(group.split), ATOMS.index(group.task), group.number)
        order: list[int] = (
            random_generator(self.settings.seed, _PITCHES, *place).permutation(self.settings.num_classes).tolist()
        )
        return order
