"""The words of sources: nouns of timbres, and words of classes of pitch, rate and amplitude with gaps between them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cache
from importlib.resources import files
from itertools import pairwise

import yaml

from audio_compositionality.support.errors import InputError

from ..scenes.sources import SceneSpec, Source
from ..sounds.tones import default_nouns
from .expressions import Leaf

FEWEST_CLASSES = 6
"""With fewer classes an attribute there is none left between two words."""

NARROWEST_PITCHES = 36
"""Semitones, three octaves: in less, low and high are a matter of taste."""

READING_ORDER = ("amplitude", "rate", "pitch")
"""In which the words of a source are read: "a loud slow high bell"."""


@cache
def _places() -> Mapping[str, Mapping[str, tuple[float, float]]]:
    content = yaml.safe_load(files(__package__).joinpath("lexicon.yaml").read_text("utf-8"))
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
        for word, (low, high) in _places()[attribute].items()
    }
    crowded = any(second[0] - first[-1] < 2 for first, second in pairwise(filter(None, words.values())))
    if num_classes < FEWEST_CLASSES or crowded or not all(words.values()):
        raise InputError(
            f"{num_classes} classes of {attribute} leave no gap between {', '.join(words)}; captions need "
            f"{FEWEST_CLASSES} classes or more"
        )
    return words


def attributes() -> tuple[str, ...]:
    """The attributes that have words."""
    return tuple(_places())


def spoken_words() -> tuple[str, ...]:
    """The words of all attributes."""
    return tuple(word for words in _places().values() for word in words)


@cache
def dimension_of(word: str) -> str:
    """The attribute that a word is of; empty where the lexicon does not have it, as for words of recordings.

    Two words of one dimension exclude each other.
    """
    return next((attribute for attribute, words in _places().items() if word in words), "")


def check_captioned(settings: SceneSpec) -> None:
    """Refuse settings whose sources cannot be told by words.

    Raises:
        InputError: too few classes, a pitch range that is too narrow, or two timbres of one noun.
    """
    for attribute in _places():
        words_of_classes(attribute, settings.num_classes)
    low, high = settings.pitch_range
    if high - low < NARROWEST_PITCHES:
        raise InputError(
            f"pitch_range is ({low}, {high}), {high - low:g} semitones; captions need {NARROWEST_PITCHES} or more, so "
            "that low and high are told apart"
        )
    names = nouns(settings)
    if len(set(names)) < len(names):
        raise InputError(f"two timbres are called alike: {', '.join(names)}; captions need a name for each")


def nouns(settings: SceneSpec) -> tuple[str, ...]:
    """What each class of timbre is called: the default voices by their nouns, those of a user's bank by their label."""
    of_voices = default_nouns()
    return tuple(of_voices.get(label, label) for label in settings.labels["timbre"])


def attributes_of(source: Source, settings: SceneSpec) -> tuple[str, ...]:
    """The words that are true of a source, in `READING_ORDER`; an attribute whose class lies in a gap has none."""
    return tuple(_words(source, settings))


def _words(source: Source, settings: SceneSpec) -> Iterator[str]:
    for attribute in READING_ORDER:
        for word, classes in words_of_classes(attribute, settings.num_classes).items():
            if getattr(source, attribute) in classes:
                yield word


def phrase(leaf: Leaf) -> str:
    """What a leaf is called in a caption: "a slow high bell"."""
    text = " ".join((*leaf.attributes, leaf.label))
    return f"{'an' if text[:1].lower() in tuple('aeiou') else 'a'} {text}"


def plain_phrase(leaf: Leaf) -> str:
    """A leaf without an article, for labels that are no countable nouns: "man speaking", "rain"."""
    return " ".join((*leaf.attributes, leaf.label))
