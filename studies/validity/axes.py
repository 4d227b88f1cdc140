"""The four axes on the page of `validate`: what theory expects of constructed encoders, dials, and intervals."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tqdm.auto import tqdm

from . import axes_theory as theory
from .axes_cheats import cheats
from .axes_coverage import FEWEST_CONTEXTS, simulate_informativeness, simulate_invariance
from .axes_data import FULL, SMALL, AxesMaterial
from .axes_dials import turn_entanglement, turn_noise
from .axes_encoders import DIM
from .axes_levels import read_from_levels
from .chapters import Chapter
from .families import Check, Part

_NAME = "four axes"
_part = Chapter("axes.yaml", _NAME).part

_ENCODERS: tuple[tuple[str, Callable[[AxesMaterial], list[Check]]], ...] = (
    ("perfect", theory.perfect),
    ("entangled", theory.entangled),
    ("energy", theory.energy_only),
    ("deaf", theory.deaf),
    ("blind", theory.blind),
    ("random", theory.random),
    ("constant", theory.constant),
)

_DIALS = (("noise", turn_noise), ("entanglement", turn_entanglement))


class Axes:
    """The family; see `Family`."""

    name = _NAME

    def run(self, *, quick: bool, simulations: int, seed: int, progress: bool) -> tuple[Part, ...]:
        """Check the four axes; see `Family`."""
        plan = SMALL if quick else FULL
        data = AxesMaterial(plan, seed)
        rows: dict[str, Any] = {name: len(clips) for name, clips in data.clips.items()}
        parts = [_part("chapter", level=2, dim=DIM, **rows)]
        for key, check in tqdm(_ENCODERS, desc="axes: encoders", disable=not progress):
            parts.append(_part(key, check(data)))
        parts.append(_part("levels", read_from_levels(plan, seed)))
        parts.append(_part("cheats", cheats(seed)))
        parts.append(_part("space", theory.moved_in_space(plan, seed)))
        for key, turn in _DIALS:
            dial, checks = turn(data, progress)
            parts.append(_part(key, checks, dial))
        # A coverage of 93.6 %, as of 32 blocks, would seem to be below 93 % in a fifth of all runs of 1,000.
        count = simulations if quick else 4 * simulations
        parts.append(_part("coverage", simulate_invariance(count, seed, progress), simulations=count))
        probed = simulate_informativeness(simulations, seed, progress)
        parts.append(_part("probed", probed, simulations=simulations, fewest=FEWEST_CONTEXTS))
        return tuple(parts)


FAMILY = Axes()
