"""Nouns and parts of speech of captions: what is counted of a tagger's words, and the tagger itself."""

from __future__ import annotations

import sys

import pytest

from audio_compositionality.dataset_builder.texts.caption_reading import open_tagger, word_statistics
from audio_compositionality.support.errors import InputError

TAGS = {"a": "DT", "Bell": "NNP", "bell": "NN", "bells": "NNS", "rings": "VBZ", "loudly": "RB", "uh": "UH", ".": "."}


def tag(text):
    return [(word, TAGS[word]) for word in text.split()]


def test_words_are_counted_by_part_of_speech_and_nouns_by_their_text():
    counted = word_statistics(["a bell rings .", "a bell rings .", "Bell uh", "bells loudly"], tag)
    assert (counted.captions, counted.different, counted.words, counted.vocabulary) == (4, 3, 10, 6)
    assert counted.nouns == {"bell": 3, "bells": 1}
    assert counted.classes == {"nouns": 4, "determiners": 2, "verbs": 2, "other words": 1, "adverbs": 1}
    assert (counted.words_per_caption, counted.nouns_per_caption) == (2.5, 1.0)


def test_no_captions_are_refused():
    with pytest.raises(InputError, match="there are no captions"):
        word_statistics([], tag)


def test_a_tagger_that_is_not_there_is_named_with_what_installs_it(monkeypatch):
    monkeypatch.setitem(sys.modules, "textblob.en.taggers", None)
    with pytest.raises(InputError, match=r"pip install 'audio-compositionality\[captions\]'"):
        open_tagger()


def test_the_tagger_needs_nothing_but_its_package():
    pytest.importorskip("textblob", reason="the extra captions is not installed")
    counted = word_statistics(["A dog is barking loudly while a man speaks."], open_tagger())
    assert counted.nouns == {"dog": 1, "man": 1}
    assert (counted.words, counted.classes["verbs"], counted.classes["adverbs"]) == (9, 3, 1)
