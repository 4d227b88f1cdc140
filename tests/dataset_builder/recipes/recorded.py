"""What the tests of recipes of recordings share: made recordings of labels under conditions, and a linear encoder."""

from itertools import product

import numpy as np

from audio_compositionality.dataset_builder.sounds.entries import Sound

from ..sounds.made import MadeRecordings

ENGINES = ("flite/awb", "flite/slt", "espeak/f1", "espeak/m1")
"""Conditions of two kinds."""


def labels_of(count):
    return tuple(f"label {number:02d}" for number in range(count))


def instances(labels=12, conditions=ENGINES, *, each=1, seconds=0.4, rate=8_000, without=()):
    """So many recordings of each of so many labels under each condition, but for pairs of a label and a condition."""
    cells = [
        (label, condition, number)
        for label, condition, number in product(labels_of(labels), conditions, range(each))
        if (label, condition) not in without
    ]
    entries = tuple(
        Sound(f"{label}/{condition}/{number}.wav", label, condition, f"{place + 1:064x}", condition=condition)
        for place, (label, condition, number) in enumerate(cells)
    )
    return MadeRecordings(entries, (seconds,) * len(entries), (rate,) * len(entries))


def unconditioned(counts, groups=None, *, seconds=0.4, rate=8_000):
    """Recordings without conditions: so many of each label; groups by number of the recording."""
    labels = [label for label, count in zip(labels_of(len(counts)), counts, strict=True) for _ in range(count)]
    entries = tuple(
        Sound(f"{place}.wav", label, "" if groups is None else groups[place], f"{place + 1:064x}")
        for place, label in enumerate(labels)
    )
    return MadeRecordings(entries, (seconds,) * len(entries), (rate,) * len(entries))


def level(clip):
    """Root mean square in decibels."""
    return 10 * np.log10(np.mean(np.square(clip.astype(float))))
