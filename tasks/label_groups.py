"""Samples by what their labels say: the kinds of sounds that meet, and how often they are met (arXiv 2310.08753, its
Tables 11 and 12)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

import numpy as np

from audio_compositionality.dataset_builder.data import Row
from audio_compositionality.dataset_builder.sounds.entries import categories_in, category_of, spoken

CATEGORY = "category"
BY_WORDS = "category by the words of captions"
FREQUENCY = "items that have the rarer sound"

LEAST_RATIO = 2
"""A set in which no sound is met so many times as often as another has no frequent ones and no rare ones."""

PARTS = 3
"""Groups of about as many samples each, of the rarest sounds to the most frequent ones."""


def labels_of(row: Row) -> tuple[str, ...]:
    """The labels of what is heard in the clips of a row, each once; none where its events are not known."""
    clips = row.get("events") or ()
    return tuple(dict.fromkeys(event["label"] for events in clips for event in events if event.get("label")))


def label_groupings(rows: Sequence[Row]) -> dict[str, tuple[str, ...]]:
    """Groupings of samples by their labels; those of published items, which state none, by the words of captions.

    Args:
        rows: of the samples.

    Returns:
        the group of each sample by the name of a grouping: the kinds of sounds that meet in it, and in how many of
        these samples the rarer one of its labels is heard, where that differs by `LEAST_RATIO` or more. Empty where
        labels are not known of all.
    """
    labels = [labels_of(row) for row in rows]
    if rows and all(labels):
        counts = Counter(label for of_row in labels for label in of_row)
        groupings = {CATEGORY: tuple(_joined(sorted(map(category_of, of_row))) for of_row in labels)}
        if max(counts.values()) >= LEAST_RATIO * min(counts.values()):
            groupings[FREQUENCY] = spans([min(counts[label] for label in of_row) for of_row in labels], "items")
        return groupings
    if rows and all(row.get("origin") == "published" for row in rows):
        # Captions of an item have the same words, but for the preposition of a third.
        return {BY_WORDS: tuple(_joined(categories_in(row["captions"][0])) for row in rows)}
    return {}


def frequency_groups(rows: Sequence[Row], captions: Sequence[str]) -> tuple[str, ...]:
    """The group of each sample by how often the rarer one of its labels is said in some captions.

    Args:
        rows: of the samples; empty groups where one has no label.
        captions: of a training, each text counted once for a label that it names.
    """
    labels = [labels_of(row) for row in rows]
    if not all(labels):
        return ()
    counts = said_in({label for of_row in labels for label in of_row}, captions)
    return spans([min(counts[label] for label in of_row) for of_row in labels], "captions")


def said_in(labels: set[str], captions: Sequence[str]) -> Mapping[str, int]:
    """In how many captions each label is said, its words one after the other and whole."""
    words = {label: f" {spoken(label)} " for label in labels}
    counts = dict.fromkeys(labels, 0)
    for caption in captions:
        text = f" {spoken(caption)} "
        for label in labels:
            counts[label] += words[label] in text
    return counts


def spans(counts: Sequence[int], unit: str) -> tuple[str, ...]:
    """Names of up to `PARTS` groups of numbers by what they span, ``3 to 9 captions``; equal ones are in one group.

    Args:
        counts: [n].
        unit: of what, a plural.
    """
    values = np.asarray(counts, np.int64)
    different = np.unique(values)
    edges = different[:-1] if len(different) <= PARTS else np.quantile(values, np.arange(1, PARTS) / PARTS)
    parts = np.searchsorted(edges, values)
    names = {}
    for part in np.unique(parts).tolist():
        low, high = values[parts == part].min(), values[parts == part].max()
        units = unit.removesuffix("s") if high == 1 else unit
        names[part] = f"{low} {units}" if low == high else f"{low} to {high} {units}"
    return tuple(names[part] for part in parts.tolist())


def _joined(names: Sequence[str]) -> str:
    return " + ".join(names) or "–"
