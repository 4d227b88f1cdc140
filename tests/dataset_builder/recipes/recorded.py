"""Made recordings for recipes: of labels under conditions, in groups, with captions or words, and a linear encoder."""

from itertools import product

import numpy as np

from audio_compositionality.dataset_builder.sounds.entries import Sound

from ..sounds.made import MadeRecordings

RATE = 8_000

ENGINES = ("flite/awb", "flite/slt", "espeak/f1", "espeak/m1")
"""Conditions of two kinds."""

KINDS = ("dog_bark", "Rain", "church bells", "car horn", "violin", "cat", "rooster", "zebra")

WHO = ("man speaking", "man_singing", "woman speaking", "woman singing", "Rain")

PIANOS = [(label, {"dynamics": word}) for label in ("piano", "violin", "flute") for word in ("soft", "loud")]


def made(sounds, lengths=(0.4,), rate=RATE):
    """Recordings of (name, label, group, further values); their lengths in turns."""
    entries = tuple(
        Sound(name, label, group, f"{place + 1:064x}", **more)
        for place, (name, label, group, more) in enumerate(sounds)
    )
    seconds = tuple(lengths[place % len(lengths)] for place in range(len(entries)))
    return MadeRecordings(entries, seconds, (rate,) * len(entries))


def labels_of(count):
    return tuple(f"label {number:02d}" for number in range(count))


def instances(labels=12, conditions=ENGINES, *, each=1, rate=RATE, without=(), group=None):
    """So many recordings of each of so many labels under each condition, but for pairs of a label and a condition.

    The group of a recording is its condition, or given by its number among those of a label and a condition.
    """
    cells = product(labels_of(labels), conditions, range(each))
    return made(
        [
            (
                f"{label}/{condition}/{number}.wav",
                label,
                condition if group is None else group(number),
                {"condition": condition},
            )
            for label, condition, number in cells
            if (label, condition) not in without
        ],
        rate=rate,
    )


def unconditioned(counts, groups=None):
    """Recordings without conditions: so many of each label; groups by number of the recording."""
    labels = [label for label, count in zip(labels_of(len(counts)), counts, strict=True) for _ in range(count)]
    return made(
        [(f"{place}.wav", label, "" if groups is None else groups[place], {}) for place, label in enumerate(labels)]
    )


def named(labels=KINDS, each=6, groups=lambda label, number: ""):
    """So many recordings of each label, short and long."""
    files = product(labels, range(each))
    return made([(f"{label}/{n}.wav", label, groups(label, n), {}) for label, n in files], (0.5, 1.4, 4.0, 12.0))


def with_words(words, each=6):
    """Recordings of labels whose table has words."""
    files = [(label, said, number) for label, said in words for number in range(each)]
    return made(
        [(f"{label} {'-'.join(said.values())} {number}", label, "", {"words": said}) for label, said, number in files],
        (0.1, 0.5, 1.4, 4.0, 12.0),
    )


def described(count=5):
    """Recordings with captions, with one label, with several, or with neither."""
    labels = (("dog_bark",), ("Rain",), ("dog_bark", "Rain"), (), ("wind",))
    captions = (("a dog", "barking"), ("rain falls",), (), ("it is windy",), ())
    of = [(labels[number % 5], captions[number % 5]) for number in range(count)]
    return made(
        [
            (
                f"{n}.wav",
                "".join(some[:1] * (len(some) == 1)),
                "",
                {"captions": texts, "labels": some[: len(some) // 2 * 2]},
            )
            for n, (some, texts) in enumerate(of)
        ]
    )


def settings_of(recipe, sounds, **changes):
    """A spec of sounds, from the smaller preset."""
    return recipe.of_sounds(recipe.presets["mini"], sounds, {"sample_rate": RATE, **changes})


def level(clip):
    """Root mean square in decibels."""
    return 10 * np.log10(np.mean(np.square(clip.astype(float))))
