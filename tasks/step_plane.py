"""The steps B − A and D − C of A-COAT on their first two principal axes: what a figure of them shows."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import linalg

Floats = NDArray[np.floating]

ROUNDING = 1e-12
"""An axis whose share of the variance is at most this has none: the eigenvalues of a Gram matrix are rounded at about
1e-15 of the largest. So have steps that lie no farther from their mean than this times their own length."""


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
