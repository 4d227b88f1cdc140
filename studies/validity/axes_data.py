"""What the encoders of the four axes are scored on, how much of it, and their scores by the tasks themselves."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from audio_compositionality.tasks.base import Outputs, Scores
from audio_compositionality.tasks.registry import load_task

from .axes_encoders import Clips, render

Encoder = Callable[[Clips], NDArray[np.float64]]

RIDGE = ("ridge",)

BOTH = ("ridge", "kernel")
"""The probes that tasks use unless others are asked for."""

CONSTRUCTED = ("factors", "transforms")
"""Recipes from whose rows embeddings are made."""

UNPROBED = ("onset_invariance", "invariance")
"""Tasks in which nothing is fitted."""


@dataclass(frozen=True)
class AxesPlan:
    """How much is measured.

    Attributes:
        factors, transforms: what differs from the preset mini of the recipe.
        every: each how many levels of a dial are measured; the ends always are.
        tolerance: of a score that theory puts at 0, where embeddings are random.
        many: whether what few clips bias is measured on as many as the preset full has, too.
        turned_by: probes that have to be blind to rotation, scale and shift.
    """

    factors: Mapping[str, Any]
    transforms: Mapping[str, Any]
    every: int
    tolerance: float
    many: bool
    turned_by: tuple[str, ...]


FULL = AxesPlan({}, {}, 1, 0.05, True, BOTH)

MANY = AxesPlan({"crossed_levels": (8, 8, 8, 8)}, {"bases": 400}, 1, 0.05, False, RIDGE)
"""All combinations of levels and 400 clips with copies, as in the presets full."""

SMALL = AxesPlan(
    {"stars": 12, "crossed_levels": (8, 3, 3, 3)}, {"bases": 40, "untransformed": 100}, 2, 0.15, False, RIDGE
)
"""A look at whether everything works, in seconds: chance moves scores more, and the bands are wider accordingly."""


class AxesMaterial:
    """Rows of both recipes and what tasks say of encoders on them."""

    def __init__(self, plan: AxesPlan, seed: int) -> None:
        self.plan, self.seed = plan, seed
        self.clips = render(
            {"factors": {"seed": seed, **plan.factors}, "transforms": {"seed": seed, **plan.transforms}}
        )

    def scores(self, task: str, encoder: Encoder, probes: tuple[str, ...] = RIDGE) -> Scores:
        """What a task gives for an encoder."""
        scored = load_task(task)
        clips = self.clips[scored.info.recipe]
        asked = [place for place, row in enumerate(clips.rows) if scored.inputs(row, {}).clips]
        requested = {} if task in UNPROBED else {"probes": list(probes)}
        settings = scored.settings(clips.rows, requested)
        return scored.score(clips.rows, Outputs(clips=encoder(clips)[asked]), settings, "cpu", False)

    def measures(self, task: str, encoder: Encoder, probes: tuple[str, ...] = RIDGE) -> dict[str, float]:
        """The numbers of a task for an encoder; those that it has not are left out."""
        measures = self.scores(task, encoder, probes).measures
        return {name: float(value) for name, value in measures.items() if value is not None}


def heading(task: str, name: str) -> str:
    """A number of a task as people read it."""
    info = load_task(task).info
    measure = info.measure(name)
    return info.title if measure == info.score else f"{info.title}: {measure.heading}"
