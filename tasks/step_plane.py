"""The steps B − A and D − C of A-COAT on their first two principal axes: what a figure of them shows."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from .base import Number

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Floats = NDArray[np.floating]

STEP_COLUMNS = ("ab_1", "ab_2", "cd_1", "cd_2")
"""Columns of samples: the steps B − A and D − C on the first two principal axes of all steps."""

ROUNDING = 1e-12
"""An axis whose share of the variance is at most this has none: the eigenvalues of a Gram matrix are rounded at about
1e-15 of the largest. So have steps that lie no farther from their mean than this times their own length."""


MOST_JOINED = 64
"""Quadruples whose two steps are joined by a line in a drawing."""


@dataclass(frozen=True)
class StepPlane:
    """Principal coordinates of steps.

    Attributes:
        ab, cd: coordinates [n, 2] of the steps B − A and D − C on the two axes, about the mean of all 2n steps.
        variance: the axes' shares of the steps' variance, each in 0…1, the larger first; 0 where there is none.
    """

    ab: NDArray[np.float64]
    cd: NDArray[np.float64]
    variance: tuple[float, float]


def step_plane(ab: Floats, cd: Floats) -> StepPlane:
    """Principal component analysis of the steps of n quadruples, in float64.

    The axes are the first two right singular vectors of all 2n steps minus their mean, each with the sign that makes
    its largest entry positive. An axis without variance has coordinates of 0.

    Args:
        ab: the steps B − A, [n, dim].
        cd: the steps D − C, [n, dim].
    """
    steps = np.concatenate([ab, cd]).astype(np.float64, copy=False)
    centred = steps - steps.mean(axis=0)
    total = float(np.einsum("ij,ij->", centred, centred))
    coordinates = np.zeros((len(steps), 2))
    variance = [0.0, 0.0]
    if total > ROUNDING**2 * float(np.einsum("ij,ij->", steps, steps)):
        for axis, (share, vector) in enumerate(_leading_axes(centred, total)):
            coordinates[:, axis], variance[axis] = centred @ vector, share
    return StepPlane(coordinates[: len(ab)], coordinates[len(ab) :], (variance[0], variance[1]))


def _leading_axes(centred: NDArray[np.float64], total: float) -> list[tuple[float, NDArray[np.float64]]]:
    """Share of the variance and unit vector [dim] of at most two axes."""
    from scipy import linalg

    # Both Gram matrices have the same eigenvalues; the smaller costs less, above all at 2,000 quadruples.
    wide = centred.shape[0] < centred.shape[1]
    gram = centred @ centred.T if wide else centred.T @ centred
    size = len(gram)
    values, vectors = linalg.eigh(gram, subset_by_index=[max(size - 2, 0), size - 1])
    axes = []
    for value, vector in zip(values[::-1], vectors.T[::-1], strict=True):
        share = float(value) / total
        if share <= ROUNDING:
            break
        direction = centred.T @ vector if wide else vector
        direction = direction / np.linalg.norm(direction)
        axes.append((min(share, 1.0), direction * np.sign(direction[np.argmax(np.abs(direction))])))
    return axes


def draw_panel(axes: Axes, columns: Mapping[str, NDArray[np.float64]], measures: Mapping[str, Number]) -> None:
    """Draw the steps of one model.

    The two steps of a quadruple are joined by a line, of `MOST_JOINED` quadruples at even distances in the order of the
    data; all others are pale. The axes' shares of the steps' variance stand beside them; both have one scale.

    Args:
        axes: an empty panel.
        columns: `STEP_COLUMNS`, each [n].
        measures: with ``step_variance_1`` and ``step_variance_2``.
    """
    from matplotlib.collections import LineCollection

    ab = np.stack([columns["ab_1"], columns["ab_2"]], axis=1)
    cd = np.stack([columns["cd_1"], columns["cd_2"]], axis=1)
    joined = np.unique(np.linspace(0, len(ab) - 1, MOST_JOINED).astype(np.int64))
    axes.plot(*np.concatenate([ab, cd]).T, ".", color="#DDDDDD", markersize=1.5, markeredgewidth=0, rasterized=True)
    pairs = np.stack([ab[joined], cd[joined]], axis=1)
    axes.add_collection(LineCollection(list(pairs), colors="#555555", linewidths=0.3, rasterized=True))
    # Blue and orange of Okabe and Ito 2008, "Color universal design".
    for steps, colour, marker, label in ((ab, "#0072B2", "o", "B − A"), (cd, "#E69F00", "^", "D − C")):
        first, second = steps[joined].T
        points = axes.scatter(first, second, s=6, c=colour, marker=marker, linewidths=0, label=label, zorder=3)
        points.set_rasterized(True)
    _finish(axes, measures)


def draw_one(
    axes: Axes, columns: Mapping[str, NDArray[np.float64]], measures: Mapping[str, Number], sample: int
) -> None:
    """Draw the two steps of one quadruple as arrows from the mean of all steps, over all steps of one model.

    Args:
        axes: an empty panel.
        columns: `STEP_COLUMNS`, each [n].
        measures: with ``step_variance_1`` and ``step_variance_2``.
        sample: place of the quadruple.
    """
    points = [np.concatenate([columns[f"ab_{axis}"], columns[f"cd_{axis}"]]) for axis in (1, 2)]
    axes.plot(*points, ".", color="#AAAAAA", markersize=2, markeredgewidth=0, rasterized=True)
    # Blue and orange of Okabe and Ito 2008, "Color universal design".
    for name, colour, style, label in (("ab", "#0072B2", "-", "B − A"), ("cd", "#E69F00", "--", "D − C")):
        end = (columns[f"{name}_1"][sample], columns[f"{name}_2"][sample])
        arrow = {"arrowstyle": "-|>", "color": colour, "linewidth": 1.4, "linestyle": style, "shrinkA": 0, "shrinkB": 0}
        axes.annotate("", end, (0, 0), arrowprops=arrow)
        axes.plot([], [], style, color=colour, label=label)
    axes.plot(0, 0, "+", color="#555555", markersize=4, linestyle="", label="mean of all steps")
    _finish(axes, measures)


def _finish(axes: Axes, measures: Mapping[str, Number]) -> None:
    """One scale for both axes, and their shares of the steps' variance beside them."""
    axes.set_aspect("equal", adjustable="datalim")
    shares = [measures.get(f"step_variance_{number}") or 0.0 for number in (1, 2)]
    labels = [f"axis {number} ({100 * share:.0f} %)" for number, share in enumerate(shares, 1)]
    axes.set(xticks=[], yticks=[], xlabel=labels[0], ylabel=labels[1])
