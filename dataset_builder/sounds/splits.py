"""Checks, splits and folds of sounds; a group of sounds is never on two sides."""

from __future__ import annotations

import hashlib
import math
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Hashable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, TypeVar

import numpy as np
from numpy.typing import NDArray

from audio_compositionality.support.errors import InputError

from ..data import DatasetError
from .entries import Sound, Sounds, label_text

if TYPE_CHECKING:
    from .recordings import Decoded

Item = TypeVar("Item")

SHORTEST_RECORDING = 0.25
"""Seconds; if a transform reads twice the length of a clip, half of this is the shortest possible clip."""

SOFTEST = -60.0
"""Root mean square, in dB below full scale, of the middle of a recording; for a softer one, 16 bits contain little more
than their rounding."""

MIDDLE = 10
"""Seconds of the middle, which must be audible."""

_FULL_SCALE = 2**15


class UnlabelledError(DatasetError):
    """No sound has a class; the caller that opened the sounds can say how to give classes."""

    def __init__(self, sounds: Sounds, use: str) -> None:
        """State what the sounds have instead of classes.

        Args:
            sounds: sounds without classes.
            use: what classes are needed for.
        """
        number = next((entry.label for entry in sounds.entries if entry.number is not None), None)
        what = "no labels" if number is None else f"numbers as labels, e.g. {number}, which are not classes"
        super().__init__(f"{sounds.source} has {what}; {use} from classes: names or whole numbers")


def classified(sounds: Sounds, use: str) -> list[int]:
    """Return the indices of the sounds that have a class: one label, which is not a number.

    Args:
        sounds: of any kind.
        use: what classes are needed for, for the message.

    Raises:
        UnlabelledError: no sound has one.
    """
    numbers = [number for number, entry in enumerate(sounds.entries) if entry.label and entry.number is None]
    if not numbers:
        raise UnlabelledError(sounds, use)
    return numbers


def sound_fault(recording: Decoded) -> str | None:
    """Return why a sound is unusable (too short, or nearly silent in its middle); None if it is usable."""
    samples, rate = recording.samples, recording.rate
    if len(samples) < SHORTEST_RECORDING * rate:
        return f"lasts {len(samples) / rate:.3f} s; the minimum is {SHORTEST_RECORDING:g} s"
    length = min(len(samples), MIDDLE * rate)
    start = (len(samples) - length) // 2
    power = float(np.mean(samples[start : start + length].astype(np.float64) ** 2))
    if power < 10 ** (SOFTEST / 10):
        loud = f"{10 * math.log10(power):.0f} dB" if power else "no sound at all"
        return f"is nearly silent in its middle ({loud}; the minimum is {SOFTEST:.0f} dB relative to full scale)"
    return None


def is_silent(samples: NDArray[np.float32]) -> bool:
    """Return whether some samples are all 0 in 16 bits."""
    return not np.any(np.abs(samples) * _FULL_SCALE > 0.5)


def copies_of(items: Iterable[Item], content: Callable[[Item], Hashable]) -> list[list[Item]]:
    """Return groups of two or more items with the same content, in their order."""
    by_content: dict[Hashable, list[Item]] = defaultdict(list)
    for item in items:
        by_content[content(item)].append(item)
    return [copies for copies in by_content.values() if len(copies) > 1]


def check_apart(entries: Sequence[Sound], sides: Sequence[Hashable], what: str) -> None:
    """Raise an error if the same sound is on two sides.

    Args:
        entries: the sounds.
        sides: the side of each: a split, a fold.
        what: name of the sides, in the plural.

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
    """Return two different labels that read alike; None if there are none.

    Args:
        labels: labels in the order of appearance.
        read: returns the spoken form of a label.
    """
    first: dict[str, str] = {}
    return next(
        ((before, label) for label in labels if (before := first.setdefault(read(label), label)) != label), None
    )


FOLDS = 5


def split_of_sounds(entries: Sequence[Sound], shares: Mapping[str, float], *, seed: int | None = None) -> list[str]:
    """Return the split of each sound: whole groups, with given shares of each label, drawn by content alone.

    If no group has sounds of several labels, the groups of each label are divided separately; otherwise all together,
    e.g. speakers who say all words: each speaker is on one side with all words. Every split has a group of each label
    that has as many groups as there are splits; a label with fewer is in the splits with the largest shares, and labels
    with a single group are assigned to the splits in turn.

    Args:
        entries: the sounds; sounds without a group are each a separate group.
        shares: share of the groups, by name of the split; they add up to 1. Splits alternate in this order.
        seed: another seed gives another draw; None for the single draw without a seed.

    Returns:
        The name of the split of each entry.

    Raises:
        InputError: a share is not positive, or they do not add up to 1.
        DatasetError: one sound is in two groups, in two splits.
    """
    check_shares(shares)
    units = [entry.group or entry.sha256 for entry in entries]
    labels: dict[str, set[str]] = defaultdict(set)
    for entry, unit in zip(entries, units, strict=True):
        labels[unit].add(label_text(entry.label))
    are_shared = any(len(of_unit) > 1 for of_unit in labels.values())
    members: dict[str, set[str]] = defaultdict(set)
    for entry, unit in zip(entries, units, strict=True):
        members["" if are_shared else label_text(entry.label)].add(unit)
    splits: dict[str, str] = {}
    alone = 0
    for label in sorted(members, key=lambda label: _draw(label, seed)):
        ordered = sorted(members[label], key=lambda unit: _draw(unit, seed))
        if len(ordered) == 1:
            splits[ordered[0]] = list(shares)[alone % len(shares)]
            alone += 1
        else:
            splits |= _dealt(ordered, shares, fills_all=True)
    of_entries = [splits[unit] for unit in units]
    check_apart(entries, of_entries, "splits")
    return of_entries


def by_split_and_name(
    placed: Iterable[tuple[str, str, int]], splits: Sequence[str]
) -> dict[str, dict[str, tuple[int, ...]]]:
    """Return indices of sounds by name in each split, names in alphabetical order.

    Args:
        placed: split, name and index of each sound.
        splits: all names.
    """
    numbers: dict[str, dict[str, list[int]]] = {split: defaultdict(list) for split in splits}
    for split, name, number in placed:
        numbers[split][name].append(number)
    return {split: {name: tuple(of_split[name]) for name in sorted(of_split)} for split, of_split in numbers.items()}


def split_of_groups(groups: Iterable[str], shares: Mapping[str, float], *, seed: int) -> dict[str, str]:
    """Return the split of each group by its name: adding or removing groups only moves the borders.

    Args:
        groups: names of the groups.
        shares: share of the groups, by name of the split; they add up to 1.
        seed: another seed gives another draw.

    Raises:
        InputError: a share is not positive, or they do not add up to 1.
    """
    check_shares(shares)
    ordered = sorted(set(groups), key=lambda group: _draw(group, seed))
    return _dealt(ordered, shares)


def check_shares(shares: Mapping[str, float]) -> None:
    """Raise an error if shares are not all positive, or do not add up to 1."""
    if not shares or min(shares.values()) <= 0 or not math.isclose(sum(shares.values()), 1):
        raise InputError(f"shares are {dict(shares)}; each must be above 0, and their sum 1")


def _dealt(ordered: Sequence[str], shares: Mapping[str, float], *, fills_all: bool = False) -> dict[str, str]:
    """Return the split of each item; the borders between splits are rounded.

    Args:
        ordered: the items.
        shares: by name of the split.
        fills_all: each split gets at least one item; fewer items than splits go to the splits with the largest shares.
    """
    count = len(ordered)
    if fills_all and count < len(shares):
        largest = sorted(shares, key=lambda name: -shares[name])[:count]
        return dict(zip(ordered, [name for name in shares if name in largest], strict=True))
    counts, first, share = {}, 0, 0.0
    for name, of_name in shares.items():
        share += of_name
        last = round(share * count)
        counts[name], first = last - first, last
    for name in shares if fills_all else ():
        if not counts[name]:
            counts[max(counts, key=lambda name: counts[name])] -= 1
            counts[name] = 1
    return dict(zip(ordered, [name for name, number in counts.items() for _ in range(number)], strict=True))


def _draw(text: str, seed: int | None) -> str:
    """Return the sort key of a random order of groups that depends only on their names."""
    return hashlib.sha256((text if seed is None else f"{seed}:{text}").encode()).hexdigest()


def select_recordings(entries: Sequence[Sound], count: int, seed: int) -> list[int]:
    """Return indices of at most `count` recordings, in increasing order, as evenly over the labels as possible.

    Which of two recordings of a label is drawn first depends only on the two and on the seed.
    """
    of_label: dict[str, list[int]] = defaultdict(list)
    for index, entry in enumerate(entries):
        of_label[entry.label].append(index)
    places = {
        index: place
        for indices in of_label.values()
        for place, index in enumerate(sorted(indices, key=lambda index: (_order(seed, entries[index].sha256), index)))
    }
    first = sorted(places, key=lambda index: (places[index], _order(seed, entries[index].label), index))
    return sorted(first[:count])


def folds_of(entries: Sequence[Sound], seed: int, transformed: Collection[int] = ()) -> list[int]:
    """Return the fold of each recording, 0 to 4: whole groups, largest first, so that labels and sizes are even.

    Args:
        entries: the recordings.
        seed: seed of the order of groups of equal size.
        transformed: indices of recordings that are also spread evenly among themselves.

    Raises:
        DatasetError: there are fewer groups than folds, or two folds with the same recording.
    """
    groups: dict[str, list[int]] = defaultdict(list)
    for index, entry in enumerate(entries):
        groups[f"group {entry.group}" if entry.group else f"recording {index}"].append(index)
    if len(groups) < FOLDS:
        raise DatasetError(
            f"there are {len(entries)} recordings in {len(groups)} groups; the {FOLDS} folds need at least one each"
        )
    labels = [Counter[tuple[str, bool]]() for _ in range(FOLDS)]
    sizes = [0] * FOLDS
    folds = [0] * len(entries)
    special = frozenset(transformed)
    order = sorted(
        groups,
        key=lambda name: (
            -len(groups[name]),
            special.isdisjoint(groups[name]),
            _order(seed, entries[groups[name][0]].sha256),
            name,
        ),
    )
    for name in order:
        added = Counter((entries[index].label, False) for index in groups[name])
        added += Counter((entries[index].label, True) for index in groups[name] if index in special)
        loads = [sum(count * labels[fold][label] for label, count in added.items()) for fold in range(FOLDS)]
        fold = min(range(FOLDS), key=lambda fold: (loads[fold], sizes[fold], fold))
        labels[fold] += added
        sizes[fold] += len(groups[name])
        for index in groups[name]:
            folds[index] = fold
    check_apart(entries, folds, "folds")
    return folds


def other_recording(entries: Sequence[Sound], index: int, among: Sequence[int], seed: int) -> int:
    """Return the index of another recording, drawn by the two and the seed alone.

    It has another label if possible, otherwise another group, otherwise any other content.

    Args:
        entries: the recordings.
        index: index of the recording that gets another one.
        among: indices of the candidates.
        seed: seed of the draw.

    Raises:
        DatasetError: there is no other one.
    """
    entry = entries[index]
    pool = [number for number in among if entries[number].sha256 != entry.sha256]
    if not pool:
        raise DatasetError(f"there is no recording to compare with {entry.id}")
    of_label = [number for number in pool if entries[number].label != entry.label]
    of_group = [number for number in pool if not entry.group or entries[number].group != entry.group]
    return min(
        of_label or of_group or pool,
        key=lambda number: (_order(seed, f"{entry.sha256} {entries[number].sha256}"), number),
    )


def _order(seed: int, text: str) -> str:
    """Return the sort key of a random order of texts that depends only on them."""
    return hashlib.sha256(f"{seed} {text}".encode()).hexdigest()
