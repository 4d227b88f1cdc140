"""Steps between scenes: quadruples, in which the same sources are added to two scenes, and a figure of the steps."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from audio_compositionality.dataset_builder.data import Row
from audio_compositionality.encoders.base import ENCODER

from ..base import (
    Drawing,
    Inputs,
    Measure,
    Number,
    Outputs,
    PlainTask,
    Samples,
    Scores,
    TaskInfo,
    differing_attributes,
    entropies,
    labels_for_people,
    same_scenes,
    scores_from,
    source_counts,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes

STEP_COLUMNS = ("ab_1", "ab_2", "cd_1", "cd_2")
"""Columns of samples: the steps B − A and D − C on the first two principal axes of all steps."""

_COLUMNS = ("score", "score_centred", "score_adjusted", "score_top1")
"""Columns of samples from the metric, in the order of results."""

ROUNDING = 1e-12
"""Share of the variance up to which an axis counts as having none: eigenvalues of a Gram matrix have rounding errors of
about 1e-15 of the largest. Steps no farther from their mean than this times their length count as equal to it."""

MOST_JOINED = 64
"""Largest number of quadruples whose two steps are joined by a line in a drawing."""


STEP_VARIANCES = tuple(
    Measure(
        f"step_variance_{number}",
        f"variance on step axis {number}",
        f"share of the steps' variance on their principal axis {number}",
        range=(0.0, 1.0),
        shown=False,
    )
    for number in (1, 2)
)
"""Measures of a task of quadruples in addition to the metric's."""


@dataclass(frozen=True)
class StepPlane:
    """Principal coordinates of steps.

    Attributes:
        ab, cd: coordinates [n, 2] of the steps B − A and D − C on the two axes, about the mean of all 2n steps.
        variance: the axes' shares of the steps' variance, each in 0…1, the larger first; 0 if there is none.
    """

    ab: NDArray[np.float64]
    cd: NDArray[np.float64]
    variance: tuple[float, float]


def step_plane(ab: NDArray[np.floating], cd: NDArray[np.floating]) -> StepPlane:
    """Compute principal coordinates of the steps of n quadruples, in float64.

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
    """Return share of the variance and unit vector [dim] of at most two axes."""
    from scipy import linalg

    # Both Gram matrices have the same eigenvalues; the smaller one costs less, especially with 2,000 quadruples.
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


def draw_plane(axes: Axes, columns: Mapping[str, NDArray[np.float64]], measures: Mapping[str, Number]) -> None:
    """Draw the steps of one model.

    A line joins the two steps of `MOST_JOINED` quadruples, evenly spaced in the order of the data; all others are pale.
    The axis labels show the axes' shares of the steps' variance; both axes have one scale.

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


def draw_one_plane(
    axes: Axes, columns: Mapping[str, NDArray[np.float64]], measures: Mapping[str, Number], sample: int
) -> None:
    """Draw the two steps of one quadruple as arrows from the mean of all steps, over all steps of one model.

    Args:
        axes: an empty panel.
        columns: `STEP_COLUMNS`, each [n].
        measures: with ``step_variance_1`` and ``step_variance_2``.
        sample: index of the quadruple.
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
    """Use one scale for both axes, and add their shares of the steps' variance to the labels."""
    axes.set_aspect("equal", adjustable="datalim")
    shares = [measures.get(f"step_variance_{number}") or 0.0 for number in (1, 2)]
    labels = [f"axis {number} ({100 * share:.0f} %)" for number, share in enumerate(shares, 1)]
    axes.set(xticks=[], yticks=[], xlabel=labels[0], ylabel=labels[1])


STEP_PLANE = Drawing(
    name="step_plane",
    title="The steps B − A and D − C on the first two principal axes of all steps of a model.",
    alternative="The steps of the quadruples on their first two principal axes, one panel per model.",
    columns=STEP_COLUMNS,
    panel=draw_plane,
    one=draw_one_plane,
)


QUADRUPLES: dict[str, Any] = {
    "benchmark": "coat",
    "needs": ENCODER,
    "samples": "quadruples",
    "ranks_by": "adjusted",
    "trusted": {"adjusted": 0.0, "top1": "top1_chance"},
    "captions": {
        "A": "one scene",
        "B": "A and the added sources T",
        "C": "another scene",
        "D": "C and the same T",
        "T alone": "B − A, whose samples equal D − C",
    },
    "derived": {"T alone": ("B", "-A")},
}
"""Facts of the tasks of quadruples; see `TaskInfo`."""


class QuadrupleTask(PlainTask):
    """A task of quadruples A, B = A ∪ T, C and D = C ∪ T, scored by the metric `a_coat`; see `Task`."""

    drawings: tuple[Drawing, ...] = (STEP_PLANE,)

    def __init__(self, info: TaskInfo, *, added: str, has_attributes: bool) -> None:
        """Store the facts and the properties of the data.

        Args:
            info: the facts of the task; its measures are the metric's and `STEP_VARIANCES`.
            added: plural noun for the added sources T.
            has_attributes: whether each source has a class of several attributes, whose entropy is a diversity.
        """
        super().__init__(info)
        self._added = added
        self._has_attributes = has_attributes

    def inputs(self, row: Row, settings: Mapping[str, Any]) -> Inputs:
        """Return the four clips of a quadruple."""
        return Inputs(clips=("A", "B", "C", "D"))

    def score(
        self, rows: Sequence[Row], outputs: Outputs, settings: Mapping[str, Any], device: str, progress: bool
    ) -> Scores:
        """Score the embeddings [4 n, dim] of n quadruples; nothing is fitted."""
        # Imported here, so that a task loads its metric only in the process that scores.
        from audio_compositionality.metrics.a_coat import a_coat

        a, b, c, d = outputs.clips.reshape(len(rows), 4, -1).transpose(1, 0, 2)
        # The matching variables of the matched null, if the rows state the gains of their sources: the number of
        # sources of T, and its level in dB, from the sum of the powers of its sources, each the square of its gain.
        matching: dict[str, Any] = {}
        if all(row.get("gains") for row in rows):
            gains = [row["gains"]["T"] for row in rows]
            levels = [10 * math.log10(sum(gain**2 for gain in source_gains)) for source_gains in gains]
            matching = {"t_size": [len(source_gains) for source_gains in gains], "t_level": levels}
        values = a_coat(a, b, c, d, **matching, return_scores=True)
        exact = [part.astype(np.float64, copy=False) for part in (a, b, c, d)]
        plane = step_plane(exact[1] - exact[0], exact[3] - exact[2])
        values |= dict(zip((measure.name for measure in STEP_VARIANCES), plane.variance, strict=True))
        scores = scores_from(values, self.info, rows)
        columns = {name: scores.columns[name] for name in _COLUMNS if name in scores.columns}
        columns |= dict(zip(STEP_COLUMNS, (*plane.ab.T, *plane.cd.T), strict=True))
        return Scores(scores.measures, scores.ids, columns)

    def samples(self, rows: Sequence[Row]) -> Samples:
        """Return all quadruples; quadruples with the same T are not independent.

        If sources have no attributes, whose entropy could be a diversity, numbers of sources are held fixed: the chance
        level of a model that represents only these rises with them too.
        """
        parts = {part: [row["metadata"][part] for row in rows] for part in ("A", "C", "T")}
        counts = {part: source_counts(sources) for part, sources in parts.items()}
        groups = {
            "|T|, the number of sources that are added": tuple(map(str, counts["T"])),
            "the number of sources": tuple(map(str, counts["A"] + counts["C"] + counts["T"])),
        }
        if self._has_attributes:
            groups["the attributes whose classes differ between A and C"] = tuple(
                differing_attributes(a, c) for a, c in zip(parts["A"], parts["C"], strict=True)
            )
        return Samples(
            rows=tuple(rows),
            clusters=same_scenes(parts["T"]),
            clustered_by=f"the sets of added {self._added} T",
            diversity=entropies(rows, list(parts.values())) if self._has_attributes else {},
            diversity_name="H^quad" if self._has_attributes else "",
            held_fixed={f"number of sources of {part}": count for part, count in counts.items()},
            groups=groups,
            contents=tuple({part: labels_for_people(row["metadata"][part]) for part in parts} for row in rows),
        )
