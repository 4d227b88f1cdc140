"""Recordings that have several labels, and the one of them of a hierarchy that nobody wrote down beside them."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence

SUPPORT = 10
"""Recordings of a label from which its place in the hierarchy is taken: of fewer, labels can agree by chance."""


def split_labels(text: str, separator: str) -> tuple[str, ...]:
    """The labels in a text, each once."""
    return tuple(dict.fromkeys(filter(None, (label.strip() for label in text.split(separator)))))


def specific_labels(labels_of_each: Sequence[Sequence[str]], support: int = SUPPORT) -> list[str | None]:
    """The label of each recording that holds one thing, None for the others.

    Where each recording also has the labels above its own (``Guitar,Plucked string instrument,Music``), a label is
    above another where every recording with the other has it. A recording holds one thing where its labels are one that
    is above none, and some that are above that one.

    Args:
        labels_of_each: the labels of each recording.
        support: recordings that a label needs; those of rarer ones are left out.
    """
    sets = [frozenset(labels) for labels in labels_of_each]
    counts: Counter[str] = Counter(label for labels in sets for label in labels)
    above: dict[str, frozenset[str]] = {}
    for labels in sets:
        for label in labels:
            above[label] = above.get(label, labels) & labels
    below: defaultdict[str, set[str]] = defaultdict(set)
    for label, labels in above.items():
        if counts[label] >= support:
            for upper in labels - {label}:
                below[upper].add(label)
    lowest = {label for label, count in counts.items() if count >= support and not below[label]}
    uppers = {label: above[label] for label in lowest}
    return [_only(labels, uppers) for labels in sets]


def _only(labels: frozenset[str], uppers: dict[str, frozenset[str]]) -> str | None:
    """The one label of these that is above none, where all of them are it and those above it."""
    lowest = [label for label in labels if label in uppers]
    return lowest[0] if len(lowest) == 1 and labels <= uppers[lowest[0]] else None
