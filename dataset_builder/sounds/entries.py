"""Sounds, whatever they are read or made from: what is said of each, and the words for it."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from itertools import pairwise
from typing import Annotated, Any, Protocol

import numpy as np
from numpy.typing import NDArray
from pydantic import PlainSerializer, SkipValidation

from audio_compositionality.support.errors import InputError
from audio_compositionality.support.files import packaged_yaml, sha256_of_json

LONGEST_RECORDING = 30
"""Seconds of a recording that are read at most: as much as whole recordings with captions last, and more than twice the
longest clip of others, since a stretch by 2 reads that much."""


@dataclass(frozen=True)
class Sound:
    """What is said of one sound: an FM tone, a file, a row of a data set, a labelled stretch of a recording.

    Attributes:
        id: of its own among its `Sounds`: a path within the folder, a number within the data set.
        label: what it is a sound of; empty where nobody says.
        group: sounds of one group (a speaker, a session) are never on both sides of a fold; empty where it is a group
            of its own.
        sha256: hexadecimal, of its samples or of what decides them.
        number: its label as a number, where labels are numbers and not classes.
        condition: what it shares with sounds of other labels and what says nothing of its own: the voice that says a
            word, the pitch of an instrument; empty where there is none. See `related`.
        captions: what is said of it in sentences.
        labels: all labels, where there are several.
        words: what is said of it by attribute, such as ``{"pitch": "high", "rate": "slow"}``. A sound with one word
            changed is another entry of the same label.
        values: the same in numbers, where there are such: ``{"pitch": 75.0}``. A sound with one of them exchanged is
            another entry as well.
        loop: seconds of its samples, where these are one period of a sound that goes on: repeated as they are, without
            a crossfade; 0 where they are not.
        level: dB at which it is heard beside others; 0 where all are equally loud.
    """

    id: str
    label: str
    group: str
    sha256: str
    number: float | None = None
    condition: str = ""
    captions: tuple[str, ...] = ()
    labels: tuple[str, ...] = ()
    words: Mapping[str, str] = field(default_factory=dict, hash=False)
    values: Mapping[str, float] = field(default_factory=dict, hash=False)
    loop: float = 0.0
    level: float = 0.0

    @property
    def all_labels(self) -> tuple[str, ...]:
        """Its labels, one or several; none where nobody says."""
        return self.labels or ((self.label,) if self.label else ())


def label_text(label: str) -> str:
    """A label in words: underscores are blanks, and blanks stand once."""
    return " ".join(unicodedata.normalize("NFC", label).replace("_", " ").split())


def related(condition: str, other: str) -> bool:
    """Whether two conditions have more in common than two drawn at random: ``flite/awb`` and ``flite/slt``, one engine.

    They are where the first parts of their paths are equal; those without ``/`` are related to themselves alone. Empty
    ones, of recordings without a condition, are related to none.
    """
    first = condition.partition("/")[0]
    return bool(first) and first == other.partition("/")[0]


_FURTHER = ("captions", "labels", "words", "values", "loop", "level")
"""Attributes of a sound that most lack."""


def fingerprint_of_entries(entries: Sequence[Sound]) -> str:
    """SHA-256 over what is said of recordings, in their order, but for their ids: names and places are no content."""
    content = [
        [
            entry.sha256,
            entry.label,
            entry.number,
            entry.group,
            entry.condition,
            # By their names: captions are no labels.
            *filter(None, [{name: value for name in _FURTHER if (value := getattr(entry, name))}]),
        ]
        for entry in entries
    ]
    return sha256_of_json(content)


class Sounds(Protocol):
    """Sounds of one source: tones, a folder, a data set, stretches of recordings with strong labels.

    Attributes:
        source: what they were opened from, for messages; a folder, a Hub id.
        sample_rate: Hz, where all have one; None where they differ.
        entries: what is said of each, in a fixed order.
        fingerprint: names their samples, labels, groups, conditions and captions, whatever they are called and wherever
            they lie.
        suggested: settings that suit them, by names of settings of recipes, where nobody asks for others: ``domain``,
            ``classes`` …
    """

    @property
    def source(self) -> str: ...  # noqa: D102

    @property
    def sample_rate(self) -> int | None: ...  # noqa: D102

    @property
    def entries(self) -> Sequence[Sound]: ...  # noqa: D102

    @property
    def fingerprint(self) -> str: ...  # noqa: D102

    @property
    def suggested(self) -> Mapping[str, Any]: ...  # noqa: D102

    def waveform(self, index: int) -> tuple[NDArray[np.float64], int]:
        """Samples [samples] in [-1, 1], mono, of at most `LONGEST_RECORDING` seconds, and their rate in Hz."""
        ...


SoundsField = Annotated[
    Sounds | None, SkipValidation(), PlainSerializer(lambda sounds: None if sounds is None else sounds.fingerprint)
]
"""The type of a field of a `Spec` that takes a user's sounds: of its values, the fingerprint."""


_PUNCTUATION = re.compile(r"[^\w\s'-]+")

READING_ORDER = ("amplitude", "rate", "pitch")
"""In which the words of a tone are read: "a loud slow high bell"."""

FEWEST_CLASSES = 6
"""With fewer classes an attribute there is none left between two words."""


LOUDNESS = ("amplitude", "dynamics", "loudness")
"""Attributes whose words say how loud a sound is."""


@cache
def word_places() -> Mapping[str, Mapping[str, tuple[float, float]]]:
    """The words of each attribute, each with both ends of its part of the range, from 0 to 1; from ``words.yaml``."""
    content = packaged_yaml(__package__, "words.yaml")
    return {attribute: {word: tuple(ends) for word, ends in words.items()} for attribute, words in content.items()}


@cache
def words_of_classes(attribute: str, num_classes: int) -> Mapping[str, tuple[int, ...]]:
    """The classes that each word of an attribute names, from low to high.

    Args:
        attribute: pitch, rate or amplitude.
        num_classes: K.

    Raises:
        InputError: K classes leave none between two words, or none to a word.
    """
    words = {
        word: tuple(number for number in range(num_classes) if low < (number + 0.5) / num_classes < high)
        for word, (low, high) in word_places()[attribute].items()
    }
    crowded = any(second[0] - first[-1] < 2 for first, second in pairwise(filter(None, words.values())))
    if num_classes < FEWEST_CLASSES or crowded or not all(words.values()):
        raise InputError(
            f"{num_classes} classes of {attribute} leave no gap between {', '.join(words)}; captions need "
            f"{FEWEST_CLASSES} classes or more"
        )
    return words


@cache
def dimension_of(word: str) -> str:
    """The attribute that a word for tones is of, empty for others; two words of one attribute exclude each other."""
    return next((attribute for attribute, words in word_places().items() if word in words), "")


def label_words(label: str) -> str:
    """A label as words: ``dog_bark`` and ``Dog bark`` as ``dog bark``."""
    return " ".join(label.replace("_", " ").split()).lower()


def _tables() -> tuple[Mapping[str, Sequence[str]], Mapping[str, Sequence[str]]]:
    return packaged_yaml(__package__, "categories.yaml"), packaged_yaml(__package__, "nouns.yaml")


@cache
def tables_digest() -> str:
    """SHA-256 of the tables: they decide which labels meet, and what captions call them."""
    return sha256_of_json(_tables())


@cache
def spoken(label: str) -> str:
    """A label as it is said: in lower case, without punctuation."""
    return label_words(_PUNCTUATION.sub(" ", label))


@cache
def category_of(label: str) -> str:
    """The kind of sounds that a label is of; its words where the table has none for it."""
    words = f" {spoken(label)} "
    for category, of_category in _tables()[0].items():
        if any(f" {word} " in words for word in of_category):
            return category
    return words.strip()


def categories_in(text: str) -> tuple[str, ...]:
    """The kinds of sounds of which a text has a word, by their letters; none where the table has none for it."""
    words = f" {spoken(text)} "
    return tuple(
        sorted(name for name, of_name in _tables()[0].items() if any(f" {word} " in words for word in of_name))
    )


@cache
def noun_of(label: str) -> tuple[str, str] | None:
    """Who makes a sound and how, ``("man", "speaking")``; None where a label does not say both."""
    words = spoken(label)
    entry = _tables()[1].get(words)
    if entry is not None:
        return entry[0], entry[1]
    noun, _, attribute = words.rpartition(" ")
    return (noun, attribute) if noun and attribute.endswith("ing") else None
