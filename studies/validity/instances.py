"""Scores across instances on the page of `validate`: what theory expects of constructed encoders, and dials."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tqdm.auto import tqdm

from . import instances_binding, instances_dials, instances_held_out, instances_theory
from .chapters import Chapter
from .families import Check, DialTable, Part
from .instances_data import BINDING, BLOCKS, CLASSES, FULL, SMALL, InstancesMaterial
from .instances_encoders import DIM

_NAME = "instances"
_part = Chapter("instances.yaml", _NAME).part

_ENCODERS: tuple[tuple[str, Callable[[InstancesMaterial], list[Check]]], ...] = (
    ("oracle", instances_theory.perfect),
    ("deaf", instances_theory.deaf),
    ("calls", instances_theory.calls),
    ("random", instances_theory.random),
    ("linear", instances_theory.linear),
    ("space", instances_theory.moved_in_space),
    ("bound", instances_binding.theory),
    ("held out", instances_held_out.theory),
)

_DIALS: tuple[tuple[str, Callable[[InstancesMaterial, bool], tuple[DialTable, list[Check]]]], ...] = (
    ("noise", instances_dials.turn_noise),
    ("strength", instances_dials.turn_strength),
    ("masking", instances_dials.turn_masking),
    ("nuisance", instances_dials.turn_common_nuisance),
    ("binding", instances_binding.turn_binding),
    ("by heart", instances_held_out.turn_heart),
)


class Instances:
    """The family; see `Family`."""

    name = _NAME

    def run(self, *, quick: bool, simulations: int, seed: int, progress: bool) -> tuple[Part, ...]:
        """Check the scores across instances; see `Family`. Nothing is simulated."""
        data = InstancesMaterial(SMALL if quick else FULL, seed)
        rows: dict[str, Any] = {"scenes": len(data.scenes), "dim": DIM, "classes": CLASSES}
        rows |= {"blocks": len(data.clips[BLOCKS].rows), "trials": len(data.clips[BINDING].rows)}
        parts = [_part("chapter", level=2, **rows)]
        for key, check in tqdm(_ENCODERS, desc="instances: encoders", disable=not progress):
            parts.append(_part(key, check(data)))
        for key, turn in _DIALS:
            dial, checks = turn(data, progress)
            parts.append(_part(key, checks, dial))
        return tuple(parts)


FAMILY = Instances()
