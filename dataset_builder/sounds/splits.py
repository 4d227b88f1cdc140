"""Which recordings are drawn, and in which fold each is."""

from __future__ import annotations

import hashlib
from collections import Counter, defaultdict
from collections.abc import Collection, Sequence

from ..data import DatasetError
from .entries import Sound

FOLDS = 5


def select_recordings(entries: Sequence[Sound], count: int, seed: int) -> list[int]:
    """Numbers of at most `count` recordings, in increasing order, as evenly over the labels as these allow.

    Whether a recording is drawn before another of its label depends on the two and on the seed alone.
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
    """Fold of each recording, 0 to 4: whole groups, largest first, so that labels and sizes are even.

    Args:
        entries: the recordings.
        seed: of the order of groups of one size.
        transformed: numbers of those that are also spread evenly among themselves.

    Raises:
        DatasetError: fewer groups than folds, or two folds with the same recording.
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
    _check_duplicates(entries, folds)
    return folds


def other_recording(entries: Sequence[Sound], index: int, among: Sequence[int], seed: int) -> int:
    """Number of another recording, drawn by the two and the seed alone: of another label where there is one, else of
    another group, else any that is not the same.

    Args:
        entries: the recordings.
        index: number of the one that another is drawn for.
        among: numbers of those that it is drawn from.
        seed: of the draw.

    Raises:
        DatasetError: there is no other one.
    """
    entry = entries[index]
    pool = [number for number in among if entries[number].sha256 != entry.sha256]
    if not pool:
        raise DatasetError(f"there is no other recording than {entry.id}, which it could be told apart from")
    of_label = [number for number in pool if entries[number].label != entry.label]
    of_group = [number for number in pool if not entry.group or entries[number].group != entry.group]
    return min(
        of_label or of_group or pool,
        key=lambda number: (_order(seed, f"{entry.sha256} {entries[number].sha256}"), number),
    )


def _check_duplicates(entries: Sequence[Sound], folds: Sequence[int]) -> None:
    first: dict[str, int] = {}
    for index, entry in enumerate(entries):
        twin = first.setdefault(entry.sha256, index)
        if folds[twin] != folds[index]:
            raise DatasetError(
                f"{entries[twin].id} and {entry.id} are the same recording, in two folds; leave one out, or give both "
                "one group"
            )


def _order(seed: int, text: str) -> str:
    """What puts texts into an order that is random and depends on nothing but them."""
    return hashlib.sha256(f"{seed} {text}".encode()).hexdigest()
