"""What tasks read from the rows of clips that differ in one factor of one source."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Any

from audio_compositionality.dataset_builder.data import Row
from audio_compositionality.dataset_builder.scenes.sources import CROSSED
from audio_compositionality.dataset_builder.sounds.tones import ATTRIBUTES

from . import scenes
from .base import Inputs, Samples, TaskError
from .parts import FOLDS

FACTORS = ATTRIBUTES

CLASSES = ("timbre",)
"""The factors whose levels have no order."""

CAPTIONS = {"audio": "one source"}

WARNING = (
    "The sounds are synthetic, far from speech and from most recordings. Read them beside log-mel statistics, levels "
    "alone and an untrained network: what these reach as well was not learnt."
)


def is_crossed(row: Row) -> bool:
    """Whether a row is one of the single sources of all combinations."""
    return bool(row["kind"] == CROSSED)


def crossed_inputs(row: Row) -> Inputs:
    """The clip of a single source; nothing of the other rows."""
    return Inputs(clips=("audio",)) if is_crossed(row) else Inputs()


def crossed_rows(rows: Sequence[Row]) -> list[Row]:
    """The single sources."""
    return [row for row in rows if is_crossed(row)]


def check_crossed(rows: Sequence[Row], task: str) -> None:
    """Refuse rows whose single sources cannot be scored.

    Raises:
        TaskError: a factor has one level, or too few contexts to be tested apart from where it is learnt.
    """
    crossed = crossed_rows(rows)
    for factor in FACTORS:
        levels = {row["levels"][factor] for row in crossed}
        contexts = set(contexts_of(crossed, factor))
        if len(levels) < 2 or len(contexts) < FOLDS:
            raise TaskError(
                f"{task} has {len(levels)} levels of {factor} in {len(contexts)} contexts; it needs at least 2 in "
                f"{FOLDS}"
            )


def labels_of(rows: Sequence[Row], factor: str) -> list[Any]:
    """The level of a factor in each row: a number where levels have an order, else the name of the class.

    Levels are evenly spaced, in semitones, in the logarithm of the rate and in dB, so their number stands for them.
    """
    if factor in CLASSES:
        return [str(row["metadata"][0][f"{factor}_label"]) for row in rows]
    return [float(row["levels"][factor]) for row in rows]


def contexts_of(rows: Sequence[Row], factor: str) -> list[Hashable]:
    """What rows have beside a factor: the levels of all others."""
    return [tuple(row["levels"][other] for other in FACTORS if other != factor) for row in rows]


def crossed_samples(rows: Sequence[Row]) -> Samples:
    """The single sources; those that differ in the timbre alone are not independent."""
    crossed = crossed_rows(rows)
    return Samples(
        rows=tuple(crossed),
        clusters=scenes.numbered(contexts_of(crossed, "timbre")),
        clustered_by="the combinations of pitch, rate and amplitude",
        groups={factor: tuple(str(row["metadata"][0][f"{factor}_label"]) for row in crossed) for factor in FACTORS},
        contents=tuple({"audio": scenes.labels_for_people(row["metadata"])} for row in crossed),
    )


def star_clip(row: Row) -> str:
    """What was changed of a star's base: a factor of its target, ``onset``, or nothing."""
    return str(row["factor"])
