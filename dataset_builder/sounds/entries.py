"""Entries of sounds from any source: their labels and facts, and the words for them."""

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
"""Most seconds of a recording that are read: the length of whole recordings with captions, and more than twice the
longest clip of others, since a stretch by 2 reads this much."""


@dataclass(frozen=True)
class Sound:
    """Facts about one sound: an FM tone, a file, a row of a data set, a labelled stretch of a recording.

    Attributes:
        id: unique among its `Sounds`: a path in the folder, a number in the data set.
        label: its class; empty if there is none.
        group: sounds of one group (a speaker, a session) are never on both sides of a fold; empty if the sound is its
            own group.
        sha256: hexadecimal digest of its samples, or of everything that determines them.
        number: its label as a number, if labels are numbers and not classes.
        condition: a property that it shares with sounds of other labels and that does not reveal its label: the voice
            that speaks a word, the pitch of an instrument; empty if there is none. See `related`.
        captions: sentences about it.
        labels: all labels, if there are several.
        words: its words by attribute, e.g. ``{"pitch": "high", "rate": "slow"}``. A sound with one word changed is
            another entry of the same label.
        values: the same as numbers, if there are any: ``{"pitch": 75.0}``. A sound with one of them exchanged is
            another entry as well.
        loop: seconds of its samples if these are one period of a sound without end, to be repeated without a crossfade;
            otherwise 0.
        level: dB relative to other sounds; 0 if all are equally loud.
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
        """Return its labels, one or several; empty if there are none."""
        return self.labels or ((self.label,) if self.label else ())


def label_text(label: str) -> str:
    """Return a label in words: underscores become blanks, and runs of blanks a single one."""
    return " ".join(unicodedata.normalize("NFC", label).replace("_", " ").split())


def related(condition: str, other: str) -> bool:
    """Return whether two conditions have one origin, e.g. ``flite/awb`` and ``flite/slt``: voices of one engine.

    They are related if the first parts of their paths are equal; a condition without ``/`` is related only to itself.
    The empty condition, of recordings without one, is related to none.
    """
    first = condition.partition("/")[0]
    return bool(first) and first == other.partition("/")[0]


_FURTHER = ("captions", "labels", "words", "values", "loop", "level")
"""Attributes that most sounds lack."""


def fingerprint_of_entries(entries: Sequence[Sound]) -> str:
    """Return the SHA-256 of recordings' entries in order, without their ids: names and paths are not content."""
    content = [
        [
            entry.sha256,
            entry.label,
            entry.number,
            entry.group,
            entry.condition,
            # With the attributes' names, so that captions are not read as labels.
            *filter(None, [{name: value for name in _FURTHER if (value := getattr(entry, name))}]),
        ]
        for entry in entries
    ]
    return sha256_of_json(content)


class Sounds(Protocol):
    """Sounds of one source: tones, a folder, a data set, stretches of recordings with strong labels.

    Attributes:
        source: what the data were opened from, for messages: a folder, a Hub id.
        sample_rate: Hz if all sounds have the same rate; None if they differ.
        entries: entries of the sounds, in a fixed order.
        fingerprint: digest of their samples, labels, groups, conditions and captions, independent of names and paths.
        suggested: defaults that suit them, by names of recipe settings: ``domain``, ``classes`` …
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
        """Return samples [samples] in [-1, 1], mono, of at most `LONGEST_RECORDING` seconds, and their rate in Hz."""
        ...


SoundsField = Annotated[
    Sounds | None, SkipValidation(), PlainSerializer(lambda sounds: None if sounds is None else sounds.fingerprint)
]
"""Type of a `Spec` field for a user's sounds; its value is their fingerprint."""


_PUNCTUATION = re.compile(r"[^\w\s'-]+")

READING_ORDER = ("amplitude", "rate", "pitch")
"""The reading order of the words of a tone: "a loud slow high bell"."""

FEWEST_CLASSES = 6
"""Fewest classes of an attribute: with fewer, there is none between two words."""


LOUDNESS = ("amplitude", "dynamics", "loudness")
"""Attributes whose words say how loud a sound is."""


@cache
def word_places() -> Mapping[str, Mapping[str, tuple[float, float]]]:
    """Return the words of each attribute with both ends of their share of the range, 0 to 1; from ``words.yaml``."""
    content = packaged_yaml(__package__, "words.yaml")
    return {attribute: {word: tuple(ends) for word, ends in words.items()} for attribute, words in content.items()}


@cache
def words_of_classes(attribute: str, num_classes: int) -> Mapping[str, tuple[int, ...]]:
    """Return the classes that each word of an attribute names, from low to high.

    Args:
        attribute: pitch, rate or amplitude.
        num_classes: K.

    Raises:
        InputError: K classes leave none between two words, or none for a word.
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
    """Return the attribute of a tone's word, empty for other words; words of one attribute exclude each other."""
    return next((attribute for attribute, words in word_places().items() if word in words), "")


def label_words(label: str) -> str:
    """Return a label as words: ``dog_bark`` and ``Dog bark`` as ``dog bark``."""
    return " ".join(label.replace("_", " ").split()).lower()


def _tables() -> tuple[Mapping[str, Sequence[str]], Mapping[str, Sequence[str]]]:
    return packaged_yaml(__package__, "categories.yaml"), packaged_yaml(__package__, "nouns.yaml")


@cache
def tables_digest() -> str:
    """Return the SHA-256 of the tables, which determine the labels that meet and their names in captions."""
    return sha256_of_json(_tables())


@cache
def spoken(label: str) -> str:
    """Return a label as it is spoken: in lower case, without punctuation."""
    return label_words(_PUNCTUATION.sub(" ", label))


@cache
def category_of(label: str) -> str:
    """Return the kind of sound of a label, or its own words if the table has no kind for it."""
    words = f" {spoken(label)} "
    for category, of_category in _tables()[0].items():
        if any(f" {word} " in words for word in of_category):
            return category
    return words.strip()


def categories_in(text: str) -> tuple[str, ...]:
    """Return the kinds of sounds that a text mentions, found by spelling; empty if the table has none."""
    words = f" {spoken(text)} "
    return tuple(
        sorted(name for name, of_name in _tables()[0].items() if any(f" {word} " in words for word in of_name))
    )


@cache
def noun_of(label: str) -> tuple[str, str] | None:
    """Return the agent and the action of a label, ``("man", "speaking")``; None if it does not name both."""
    words = spoken(label)
    entry = _tables()[1].get(words)
    if entry is not None:
        return entry[0], entry[1]
    noun, _, attribute = words.rpartition(" ")
    return (noun, attribute) if noun and attribute.endswith("ing") else None
