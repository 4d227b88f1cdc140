"""The figure of A-COAT across instances: what is recognised alone, with one context, and with two."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np

from .base import Floats, Number

if TYPE_CHECKING:
    from matplotlib.axes import Axes

LADDER = {"score_alone_top1": "alone", "score_part_top1": "part", "score": "scene"}
"""Columns of the samples, from none of two contexts to both, and what they are called."""

INTERVALS = ("alone_top1", "part_top1", "top1")
"""The measures that are their means."""

_COLOUR = "#0072B2"
"""Blue of Okabe and Ito 2008, "Color universal design"."""


def draw_ladder(axes: Axes, columns: Mapping[str, Floats], measures: Mapping[str, Number]) -> None:
    """Draw one model's means with their intervals, and the chance.

    Args:
        axes: an empty panel.
        columns: those of `LADDER`, each [n], and the ends of `INTERVALS`, each [2].
        measures: with ``top1_chance``.
    """
    means = np.array([columns[name].mean() for name in LADDER])
    low, high = np.stack([columns[name] for name in INTERVALS], axis=1)
    # Rounding may put an end on the wrong side of a mean that is the same for all blocks.
    lengths = np.maximum([means - low, high - means], 0)
    axes.errorbar(range(len(LADDER)), means, lengths, color=_COLOUR, marker="o", markersize=4, capsize=2)
    _finish(axes, measures)


def draw_one_ladder(axes: Axes, columns: Mapping[str, Floats], measures: Mapping[str, Number], sample: int) -> None:
    """Draw the three numbers of one block over those of all.

    Args:
        axes: an empty panel.
        columns: those of `LADDER`, each [n].
        measures: with ``top1_chance``.
        sample: place of the block.
    """
    every = np.stack([columns[name] for name in LADDER])
    axes.plot(every, color="#AAAAAA", linewidth=0.4)
    axes.plot(every[:, sample], color=_COLOUR, marker="o", markersize=4, label="this block")
    _finish(axes, measures)


def _finish(axes: Axes, measures: Mapping[str, Number]) -> None:
    chance = measures.get("top1_chance")
    if chance is not None:
        axes.axhline(float(chance), color="#555555", linestyle="--", linewidth=0.8)
    axes.set_xticks(range(len(LADDER)), list(LADDER.values()))
    axes.set(xlim=(-0.4, len(LADDER) - 0.6), ylim=(0, 1.02))
