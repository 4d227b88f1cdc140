"""Nouns and parts of speech of captions, by TextBlob's tagger of English, whose lexicon comes with it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from audio_compositionality.support.errors import InputError

Tag = Callable[[str], Iterable[tuple[str, str]]]
"""Gives the words of a text with their tags of the Penn Treebank (Marcus et al., 1993)."""

CLASSES: Mapping[str, str] = {
    "NN": "nouns",
    "VB": "verbs",
    "JJ": "adjectives",
    "RB": "adverbs",
    "IN": "prepositions and subordinating conjunctions",
    "TO": "prepositions and subordinating conjunctions",
    "DT": "determiners",
    "CC": "coordinating conjunctions",
    "PR": "pronouns",
    "CD": "numbers",
}
"""Parts of speech by the first two letters of a tag."""

OTHER = "other words"


@dataclass(frozen=True)
class WordStatistics:
    """What captions are made of.

    Attributes:
        captions: how many.
        different: how many of them are no other's text.
        words: of all captions, without punctuation.
        vocabulary: different words, whatever their case.
        classes: words of each part of speech, by its name, the most frequent first.
        nouns: how often each noun is said, in lower case, the most frequent first.
    """

    captions: int
    different: int
    words: int
    vocabulary: int
    classes: Mapping[str, int]
    nouns: Mapping[str, int]

    @property
    def words_per_caption(self) -> float:
        """The mean."""
        return self.words / self.captions

    @property
    def nouns_per_caption(self) -> float:
        """The mean."""
        return sum(self.nouns.values()) / self.captions


def open_tagger() -> Tag:
    """The tagger.

    Raises:
        InputError: TextBlob is not installed.
    """
    try:
        from textblob.en.taggers import PatternTagger
    except ImportError as error:
        raise InputError(
            "parts of speech are told by textblob, which is not installed: pip install "
            "'audio-compositionality[captions]'"
        ) from error
    tagger = PatternTagger()
    return lambda text: [(str(word), str(tag)) for word, tag in tagger.tag(text)]


def word_statistics(captions: Sequence[str], tag: Tag) -> WordStatistics:
    """Count the words of captions by their parts of speech.

    Args:
        captions: one or more.
        tag: a tagger, see `open_tagger`; what it calls punctuation is no word.

    Raises:
        InputError: there are no captions.
    """
    if not captions:
        raise InputError("there are no captions to count words of")
    counted = Counter(captions)
    classes: Counter[str] = Counter()
    nouns: Counter[str] = Counter()
    vocabulary: set[str] = set()
    # A text that is said often is tagged once.
    for caption, times in counted.items():
        for word, name in tag(caption):
            if not any(letter.isalnum() for letter in word):
                continue
            kind = CLASSES.get(name[:2], OTHER)
            classes[kind] += times
            vocabulary.add(word.lower())
            if kind == CLASSES["NN"]:
                nouns[word.lower()] += times
    return WordStatistics(
        captions=len(captions),
        different=len(counted),
        words=classes.total(),
        vocabulary=len(vocabulary),
        classes=dict(classes.most_common()),
        nouns=dict(nouns.most_common()),
    )
