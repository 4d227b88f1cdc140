"""What the figures of a comparison have in common: how kinds of models look, views of measures, axes near 1."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Literal

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from numpy.typing import NDArray

from audio_compositionality.evaluator.compare.comparison import Comparison, View
from audio_compositionality.evaluator.compare.kinds import ModelKind
from audio_compositionality.evaluator.results.result import ResultError
from audio_compositionality.support.errors import AudioCompositionalityError
from audio_compositionality.tasks.base import Measure

Floats = NDArray[np.float64]


class FigureError(AudioCompositionalityError):
    """A figure that cannot be drawn of these results: says why."""


@dataclass(frozen=True)
class Described:
    """A figure that can be drawn.

    Attributes:
        name: of its files.
        draw: draws it; raises FigureError where it cannot be drawn.
        alternative: what it shows, for people who cannot see it.
        caption: of it.
    """

    name: str
    draw: Callable[[], Figure]
    alternative: str
    caption: str


@dataclass(frozen=True)
class Look:
    """How models of one kind look.

    Attributes:
        name: of the kind.
        colour: of points. Blue and orange are those of Okabe and Ito 2008, "Color universal design".
        fill: of boxes, half of the colour.
        hatch: of boxes.
        marker: of points.
    """

    name: str
    colour: str
    fill: str
    hatch: str
    marker: str


LOOKS = {
    kind: Look(kind.value, *look)
    for kind, look in (
        (ModelKind.TRAINED, ("#0072B2", "#80B9D9", "", "o")),
        (ModelKind.UNTRAINED, ("#E69F00", "#F3CF80", "//////", "^")),
        (ModelKind.BASELINE, ("#555555", "#DDDDDD", "xxxxxx", "s")),
        (ModelKind.CONTROL, ("#CC79A7", "#E6BCD3", "......", "D")),
    )
}
"""In the order of legends."""

CLOUD, FIT = "#555555", "#D55E00"
"""Colours of clouds of points, and of lines through them; the latter is of Okabe and Ito as well."""

TICKS = (-1.0, -0.5, 0.0, 0.5, 0.9, 0.99, 0.999, 0.9999)
"""Of an axis that is logarithmic in the distance to 1."""

_NEAREST = 1e-4  # to 1, within which scores look the same on such an axis


def drawn_view(comparison: Comparison, measure: str) -> View:
    """The view that is to be drawn.

    Raises:
        FigureError: there is none.
    """
    try:
        return comparison.view(measure)
    except ResultError as error:
        raise FigureError(str(error)) from error


def looks_of(comparison: Comparison, order: Iterable[int]) -> list[Look]:
    """How the results look, in an order of their places."""
    return [LOOKS[comparison.results[place].kind] for place in order]


def distinct(looks: Iterable[Look]) -> list[Look]:
    """Each look once, in the order of legends."""
    present = set(looks)
    return [look for look in LOOKS.values() if look in present]


def measure_name(comparison: Comparison, measure: Measure) -> str:
    """Of the axis of a measure."""
    title = comparison.info.title
    return title if measure is comparison.info.score else f"{title}, {measure.heading}"


def crowds_at_one(measure: Measure, values: Floats) -> bool:
    """Whether some values of a measure that ends at 1 are ten times as near to 1 as others are, 0.99 and 0.9."""
    return measure.range[1] == 1 and bool(values.max() <= 1 and np.ptp(_closeness(values)) >= 1)


def spread_at_one(axes: Axes, which: Literal["x", "y"], values: Floats) -> None:
    """Make an axis logarithmic in the distance to 1, so that 0.99 and 0.999 are told apart; see `crowds_at_one`."""
    low, high = float(_closeness(values).min()), float(_closeness(values).max())
    margin = 0.06 * (high - low)
    ends = _from_closeness(np.array([low - margin, high + margin]))
    getattr(axes, f"set_{which}scale")("function", functions=(_closeness, _from_closeness))
    getattr(axes, f"set_{which}lim")(*ends)
    inside = [tick for tick in TICKS if ends[0] <= tick <= ends[1]]
    getattr(axes, f"set_{which}ticks")(inside, [f"{tick:g}".replace("-", "−") for tick in inside])


def name_at_one(name: str) -> str:
    """Of such an axis."""
    return f"{name} (log scale of the distance to 1)"


def _closeness(values: Floats) -> Floats:
    """How close values are to 1, in decades."""
    return -np.log10(np.maximum(1 + _NEAREST - np.asarray(values), _NEAREST / 2))


def _from_closeness(closeness: Floats) -> Floats:
    return 1 + _NEAREST - 10 ** -np.asarray(closeness)
