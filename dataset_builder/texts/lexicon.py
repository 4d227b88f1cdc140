"""The words of sources: nouns of timbres, and words of classes of pitch, rate and amplitude with gaps between them."""

from __future__ import annotations

from collections.abc import Iterator

from audio_compositionality.support.errors import InputError

from ..scenes.sources import SceneSpec, Source
from ..sounds.tones import NARROWEST_PITCHES, READING_ORDER, default_nouns, dimension_of, word_places, words_of_classes
from .expressions import Leaf

__all__ = ["READING_ORDER", "dimension_of", "words_of_classes"]


def attributes() -> tuple[str, ...]:
    """The attributes that have words."""
    return tuple(word_places())


def spoken_words() -> tuple[str, ...]:
    """The words of all attributes."""
    return tuple(word for words in word_places().values() for word in words)


def check_captioned(settings: SceneSpec) -> None:
    """Refuse settings whose sources cannot be told by words.

    Raises:
        InputError: too few classes, a pitch range that is too narrow, or two timbres of one noun.
    """
    for attribute in word_places():
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
