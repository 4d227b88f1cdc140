"""What the figures of a comparison have in common: kinds of encoders, their order, names of scores."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from audio_compositionality.encoders.families.baselines import Downsample, LogMelStatistics, RandomVector
from audio_compositionality.encoders.loading.registry import UNTRAINED

from audio_compositionality.evaluator.compare.comparison import MEASURES, Comparison, Entry
from audio_compositionality.evaluator.compare.statistics import Interval
from audio_compositionality.evaluator.compare.table import TITLES

Floats = NDArray[np.float64]

_BASELINES = {encoder.id for encoder in (Downsample, RandomVector, LogMelStatistics)}


class FigureError(ValueError):
    """A figure that cannot be drawn of these results: says why."""


@dataclass(frozen=True)
class Kind:
    """How encoders of one kind look.

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


TRAINED = Kind("encoder", "#0072B2", "#80B9D9", "", "o")
UNTRAINED_NETWORK = Kind("untrained network", "#E69F00", "#F3CF80", "//////", "^")
BASELINE = Kind("baseline", "#555555", "#DDDDDD", "xxxxxx", "s")

CLOUD, FIT = "#555555", "#D55E00"
"""Colours of clouds of points, and of lines through them; the latter is of Okabe and Ito as well."""


@dataclass(frozen=True)
class Ranked:
    """The entries of a comparison by a measure, the highest mean first.

    Attributes:
        order: places of the entries in the comparison.
        entries: themselves.
        values: of each sample, [n, entries].
        intervals: of the means.
    """

    order: list[int]
    entries: list[Entry]
    values: Floats
    intervals: list[Interval | None]

    @property
    def labels(self) -> list[str]:
        """Of the entries."""
        return [entry.label for entry in self.entries]

    @property
    def kinds(self) -> list[Kind]:
        """Of the entries."""
        return [kind_of(entry.result.encoder_id) for entry in self.entries]


def ranked(comparison: Comparison, measure: str) -> Ranked:
    """The entries by ``score`` or ``centred``.

    Raises:
        FigureError: no such measure, or not all results have centred scores.
    """
    if measure not in MEASURES:
        raise FigureError(f"measure {measure!r} is unknown; it is one of {', '.join(MEASURES)}")
    values = comparison.values(measure)
    if values is None:
        raise FigureError(f"not all results of {comparison.task} have centred scores")
    order = np.argsort(-values.mean(axis=0), kind="stable").tolist()
    intervals = comparison.intervals if measure == "score" else comparison.centred_intervals
    return Ranked(order, [comparison.entries[k] for k in order], values[:, order], [intervals[k] for k in order])


def kind_of(encoder_id: str) -> Kind:
    """Whether an encoder is a baseline, an untrained network or any other, by its id."""
    if encoder_id in _BASELINES:
        return BASELINE
    return UNTRAINED_NETWORK if encoder_id.startswith(UNTRAINED) else TRAINED


def distinct(kinds: Iterable[Kind]) -> list[Kind]:
    """Each kind once, in the order of legends."""
    found = set(kinds)
    return [kind for kind in (TRAINED, UNTRAINED_NETWORK, BASELINE) if kind in found]


def score_name(comparison: Comparison, measure: str) -> str:
    """Of the axis of a score."""
    return ("centred " if measure == "centred" else "") + TITLES[comparison.task]
