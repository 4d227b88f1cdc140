"""Order and attributes in captions on the page of `validate`: what theory expects of constructed models, and dials."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tqdm.auto import tqdm

from . import comp_a_dials, comp_a_theory
from .chapters import Chapter
from .comp_a_data import ATTRIBUTE, FULL, ORDER, SMALL, CaptionMaterial
from .families import Check, DialTable, Part

_part = Chapter("comp_a.yaml", "captions").part

_MODELS: tuple[tuple[str, Callable[[CaptionMaterial], list[Check]]], ...] = (
    ("oracle", comp_a_theory.perfect),
    ("named", comp_a_theory.as_named),
    ("bag", comp_a_theory.bag),
    ("random", comp_a_theory.random),
    ("space", comp_a_theory.moved),
)

_DIALS: tuple[tuple[str, Callable[[CaptionMaterial, bool], tuple[DialTable, list[Check]]]], ...] = (
    ("noise", comp_a_dials.turn_noise),
    ("twins", comp_a_dials.turn_twins),
    ("favour", comp_a_dials.turn_favour),
)


class Captions:
    """The family; see `Family`."""

    # Families come by their names: after "instances".
    name = "text"

    def run(self, *, quick: bool, simulations: int, seed: int, progress: bool) -> tuple[Part, ...]:
        """Check the scores of captions; see `Family`. Nothing is simulated."""
        data = CaptionMaterial(SMALL if quick else FULL, seed)
        order = data.items[ORDER].rows
        figures: dict[str, Any] = {
            "order": len(order),
            "triplets": sum(len(row["captions"]) == 3 for row in order),
            "attribute": len(data.items[ATTRIBUTE].rows),
            "models": data.plan.models,
        }
        parts = [_part("chapter", level=2, **figures)]
        for key, check in tqdm(_MODELS, desc="captions: models", disable=not progress):
            parts.append(_part(key, check(data)))
        for key, turn in _DIALS:
            dial, checks = turn(data, progress)
            parts.append(_part(key, checks, dial))
        return tuple(parts)


FAMILY = Captions()
