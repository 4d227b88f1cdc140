"""Bars of shares of questions: what a model has, with what needs no listening and what somebody printed beside it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from .base import Floats, Number
from .printed import Printed

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_BAR, _EDGE, _CHANCE, _MAJORITY, _STRICT = "#80B9D9", "#0072B2", "#555555", "#D55E00", "#000000"
"""Of Okabe and Ito 2008, "Color universal design", and grey."""

_PRINTED = "#888888"


@dataclass(frozen=True)
class QuestionBar:
    """A bar.

    Attributes:
        measure: name of the measure that it shows.
        name: what stands in it.
        chance, majority: names of measures that are dashed and dotted lines; empty for none.
        strict: name of the measure that is a diamond; likewise.
    """

    measure: str
    name: str
    chance: str = ""
    majority: str = ""
    strict: str = ""


def draw_question_bars(
    axes: Axes,
    columns: Mapping[str, Floats],
    measures: Mapping[str, Number],
    bars: Sequence[QuestionBar],
    printed: Printed | None = None,
) -> None:
    """Draw one model's shares with 95 % intervals; what the result does not state is left out.

    Args:
        axes: an empty panel.
        columns: the ends of the interval of each bar's measure, by its name.
        measures: of the result.
        bars: from left to right.
        printed: what is marked in grey beside them.
    """
    from matplotlib.patheffects import withStroke

    outline = [withStroke(linewidth=1.5, foreground="white", alpha=0.8)]
    for place, bar in enumerate(bars):
        value = measures.get(bar.measure)
        axes.text(
            place, 0.03, bar.name, rotation=90, ha="center", va="bottom", fontsize="small", zorder=4,
            path_effects=outline,
        )  # fmt: skip
        if value is None:
            continue
        low, high = columns[bar.measure]
        axes.bar(place, float(value), width=0.66, color=_BAR, edgecolor=_EDGE, linewidth=0.6)
        if np.isfinite([low, high]).all():
            axes.vlines(place + 0.2, low, high, color=_EDGE, linewidth=1.0)
        for name, colour, style in ((bar.chance, _CHANCE, "--"), (bar.majority, _MAJORITY, ":")):
            beside = measures.get(name)
            if beside is not None:
                axes.hlines(float(beside), place - 0.42, place + 0.42, color=colour, linestyle=style, linewidth=1.2)
        strict = measures.get(bar.strict)
        if strict is not None:
            axes.plot(place - 0.2, float(strict), "D", color=_STRICT, markersize=2.5)
        marks = () if printed is None else printed.of_measure(bar.measure)
        axes.plot([place + 0.41] * len(marks), marks, "_", color=_PRINTED, markersize=4, markeredgewidth=0.9)
    axes.set_xticks([])
    axes.set(xlim=(-0.6, len(bars) - 0.4), ylim=(0, 1.02))
