"""Checks of sounds, wherever they come from: loud enough, copies on one side, labels that are written one way."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Hashable, Iterable, Sequence
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from ..data import DatasetError
from .entries import Sound, Sounds
from .sound_files import Decoded

Item = TypeVar("Item")

SHORTEST_RECORDING = 0.25
"""Seconds: half of it, where a transform reads as much as twice a clip, is the shortest clip that there is."""

SOFTEST = -60.0
"""Root mean square in dB below full scale of the middle of a recording: of a softer one, 16 bits hold little more than
their rounding."""

MIDDLE = 10
"""Seconds of the middle, which has to be heard."""

_FULL_SCALE = 2**15


class UnlabelledError(DatasetError):
    """No sound has a class: whoever opened them can say where classes would come from."""

    def __init__(self, sounds: Sounds, use: str) -> None:
        """Say what they have in place of classes.

        Args:
            sounds: without any.
            use: what classes are for.
        """
        number = next((entry.label for entry in sounds.entries if entry.number is not None), None)
        what = "no labels" if number is None else f"numbers as labels, such as {number}, which are no classes"
        super().__init__(f"{sounds.source} has {what}; {use} of classes: names or whole numbers")


def classified(sounds: Sounds, use: str) -> list[int]:
    """The numbers of the sounds that have a class: one label, and it is no number.

    Args:
        sounds: to look at.
        use: what classes are for, for the message.

    Raises:
        UnlabelledError: none has.
    """
    numbers = [number for number, entry in enumerate(sounds.entries) if entry.label and entry.number is None]
    if not numbers:
        raise UnlabelledError(sounds, use)
    return numbers


def fault_of(recording: Decoded, *, is_loop: bool = False) -> str | None:
    """Why an isolated sound cannot be used: it is too short, or nearly silent in its middle; None where it can.

    A loop, which goes on, can be of any length.
    """
    samples, rate = recording.samples, recording.rate
    if not is_loop and len(samples) < SHORTEST_RECORDING * rate:
        return f"lasts {len(samples) / rate:.3f} s; {SHORTEST_RECORDING:g} s are the least"
    length = min(len(samples), MIDDLE * rate)
    start = (len(samples) - length) // 2
    power = float(np.mean(samples[start : start + length].astype(np.float64) ** 2))
    if power < 10 ** (SOFTEST / 10):
        loud = f"{10 * math.log10(power):.0f} dB" if power else "no sound at all"
        return f"is nearly silent in its middle ({loud}; {SOFTEST:.0f} dB below full scale are the least)"
    return None


def is_silent(samples: NDArray[np.float32] | NDArray[np.float64]) -> bool:
    """Whether nothing of some samples is left in 16 bits."""
    return not np.any(np.abs(samples) * _FULL_SCALE > 0.5)


def copies_of(items: Iterable[Item], content: Callable[[Item], Hashable]) -> list[list[Item]]:
    """Those that have the same content, where there are two or more of it, in their order."""
    by_content: dict[Hashable, list[Item]] = defaultdict(list)
    for item in items:
        by_content[content(item)].append(item)
    return [copies for copies in by_content.values() if len(copies) > 1]


def check_apart(entries: Sequence[Sound], sides: Sequence[Hashable], what: str) -> None:
    """Refuse one sound on two sides.

    Args:
        entries: the sounds.
        sides: the side of each: a split, a fold.
        what: what a side is called, in the plural.

    Raises:
        DatasetError: names two copies.
    """
    for copies in copies_of(zip(entries, sides, strict=True), lambda pair: pair[0].sha256):
        (first, side), *more = copies
        twin = next((entry for entry, other in more if other != side), None)
        if twin is not None:
            raise DatasetError(
                f"{first.id} and {twin.id} are the same recording, in two {what}; leave one out, or give both one group"
            )


def alike(labels: Iterable[str], read: Callable[[str], str]) -> tuple[str, str] | None:
    """Two different labels that read alike; None where there are none.

    Args:
        labels: in the order in which they are met.
        read: how a label reads.
    """
    first: dict[str, str] = {}
    return next(
        ((before, label) for label in labels if (before := first.setdefault(read(label), label)) != label), None
    )
