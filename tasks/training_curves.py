"""How the fits of a task went, as lists of numbers of a result, and what a figure of them shows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from .base import Number

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Curve = Mapping[str, Sequence[float]]

KINDS = ("", "_centred")
"""Ends of the names of the lists: of the fits to the embeddings, and of those to the centred ones."""

CURVES = tuple(
    f"{name}{kind}" for kind in KINDS for name in ("steps", "curve_steps", "curve_training", "curve_validation")
)
"""Lists of `Scores.training`: the step that was kept of each seed, and all points of the first seed, then those of the
next: a curve begins where the step is no larger than the one before."""

_DECIMALS = 5
"""Enough for a figure; a result with three seeds and 20 validations stays below 20 kB."""


def flat_curves(raw: Sequence[Mapping[str, Any]], centred: Sequence[Mapping[str, Any]]) -> dict[str, list[int | float]]:
    """The curves of all seeds as `CURVES`, without the steps that were kept.

    Args:
        raw, centred: for each seed lists of equal length by the names ``steps``, ``training`` and ``validation``.
    """
    lists: dict[str, list[int | float]] = {}
    for kind, curves in zip(KINDS, (raw, centred), strict=True):
        lists[f"curve_steps{kind}"] = [step for curve in curves for step in curve["steps"]]
        for name in ("training", "validation"):
            values = [round(value, _DECIMALS) for curve in curves for value in curve[name]]
            lists[f"curve_{name}{kind}"] = values
    return lists


def seed_curves(columns: Mapping[str, NDArray[np.float64]], kind: str) -> list[dict[str, NDArray[np.float64]]]:
    """The curves of each seed, of `CURVES`: ``steps``, ``training``, ``validation``, each [points], and ``kept`` [1].

    Args:
        columns: `CURVES` as arrays.
        kind: one of `KINDS`.
    """
    steps = columns[f"curve_steps{kind}"]
    if not len(steps):
        return []
    begins = np.flatnonzero(np.diff(steps) <= 0) + 1
    parts = {name: np.split(columns[f"curve_{name}{kind}"], begins) for name in ("steps", "training", "validation")}
    parts["kept"] = np.split(columns[f"steps{kind}"], len(parts["steps"]))
    return [dict(zip(parts, values, strict=True)) for values in zip(*parts.values(), strict=True)]


def draw_curves(axes: Axes, columns: Mapping[str, NDArray[np.float64]], measures: Mapping[str, Number]) -> None:
    """Draw the curves of one model's fits: training dashed, validation full, a dot at the step that was kept.

    Args:
        axes: an empty panel.
        columns: `CURVES`.
        measures: not used.
    """
    # Blue and orange of Okabe and Ito 2008, "Color universal design".
    for kind, colour, words in zip(KINDS, ("#0072B2", "#E69F00"), ("raw", "centred"), strict=True):
        for seed, curve in enumerate(seed_curves(columns, kind)):
            style: dict[str, Any] = {"color": colour, "linewidth": 0.8, "markersize": 2}
            # One point is no line.
            marker = "." if len(curve["steps"]) == 1 else None
            names = (f"{words}, training", f"{words}, validation") if seed == 0 else (None, None)
            axes.plot(curve["steps"], curve["training"], "--", marker=marker, label=names[0], **style)
            axes.plot(curve["steps"], curve["validation"], "-", marker=marker, label=names[1], **style)
            kept = np.isin(curve["steps"], curve["kept"])
            axes.plot(curve["steps"][kept], curve["validation"][kept], "o", **style)
    axes.locator_params(axis="both", nbins=3)
    axes.margins(y=0.15)
