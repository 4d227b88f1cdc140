"""Texts are read as what they were made from, and what is not certain is not read; nouns and parts of speech."""

import sys

import numpy as np
import pytest

from audio_compositionality.dataset_builder.scenes.captioned import Leaf, leaves, replaced
from audio_compositionality.dataset_builder.texts.caption_reading import (
    UnreadableError,
    Vocabulary,
    cues_of,
    formula_of,
    open_tagger,
    read,
    word_statistics,
    words_in,
)
from audio_compositionality.dataset_builder.texts.captions import caption, wordings
from audio_compositionality.support.errors import InputError

from .trees import random_tree

BELL, ORGAN, RAIN = Leaf("bell", ("slow", "high")), Leaf("electric organ", ("low",)), Leaf("Rain_fall")
MAN = Leaf("man", ("speaking",))
VOCABULARY = Vocabulary.of([BELL, ORGAN, RAIN])
X, Y, Z = "a slow high bell", "a low electric organ", "rain fall"


@pytest.mark.parametrize("words", [None, (), ("humming",)])
def test_every_caption_is_read_as_what_it_was_made_from(words):
    rng = np.random.default_rng(3)
    for _ in range(150):
        tree = random_tree(rng)
        if words is not None:
            tree = replaced(tree, [Leaf(leaf.label, words) for leaf in leaves(tree)])
        vocabulary = Vocabulary.of(leaves(tree))
        every = wordings(tree)
        for place in rng.permutation(len(every))[:8]:
            wording = every[place]
            reading = read(caption(tree, wording), vocabulary)
            assert reading.formula == formula_of(tree)
            assert reading.mention == wording.mention
            assert reading.held_out == wording.held_out


@pytest.mark.parametrize(
    ("text", "expression", "mention"),
    [
        (f"{X} rings, and then {Y} is heard.", BELL + ORGAN, "forward"),
        (f"First {X}, then {Y}, finally {Z}", BELL + ORGAN + RAIN, "forward"),
        (f"{X} plays first, followed by {Y}", BELL + ORGAN, "forward"),
        (f"After {X}, there is {Y}", BELL + ORGAN, "forward"),
        (f"Before {Y}, {X} can be heard", BELL + ORGAN, "reverse"),
        (f"{Y} follows {X}", BELL + ORGAN, "reverse"),
        (f"{Y}, and before that {X}", BELL + ORGAN, "reverse"),
        (f"{X} rings and is followed by {Y}, which is followed by {Z}", BELL + ORGAN + RAIN, "forward"),
        (f"{Y} is heard following {X}", BELL + ORGAN, "reverse"),
        (f"While {X} rings, {Y} plays", BELL * ORGAN, ""),
        (f"the sound of {X} and {Y} at the same time", BELL * ORGAN, ""),
        (f"{X}, {Y} and {Z} are heard together", BELL * ORGAN * RAIN, ""),
        (f"both {X} alongside {Y}", BELL * ORGAN, ""),
        (f"{X} and at the same time {Y}", BELL * ORGAN, ""),
        (f"{X} and {Y} together, then {Z}", (BELL * ORGAN) + RAIN, "forward"),
        (f"{X}. After that, {Z} throughout {Y} followed by {X}", BELL + (RAIN * (ORGAN + BELL)), "forward"),
        ("A HIGH and slow bell", BELL, ""),
        ("a high, slow bell", BELL, ""),
    ],
)
def test_synonyms(text, expression, mention):
    reading = read(text, VOCABULARY)
    assert (reading.formula, reading.mention) == (formula_of(expression), mention)


@pytest.mark.parametrize(
    ("text", "word"),
    [
        # Words that nobody has listed may say anything.
        (f"{X}, not followed by {Y}", "not"),
        (f"{X} interrupts {Y}", "interrupts"),
        (f"{X} is heard with {Y} in the background", "in"),
        (f"following {X}, {Y}", ""),
        (f"while {X} plays, {Y} is followed by {Z}", ""),
        ("a gloomy bell", "gloomy"),
        # Also true where both are heard until the end.
        (f"{Y} begins before {X}", "begins"),
        ("a bell's ringing", "s"),
        # Nobody can tell which parts belong together, or when each is heard.
        (f"{X} and {Y}", ""),
        (f"{X}, {Y}", ""),
        (f"{X}, {Y}, then {Z}", ""),
        (f"{X} with {Y} followed by {Z}", ""),
        (f"{X} followed by {Y} with {Z}", ""),
        (f"{X} before {Y} after {Z}", ""),
        (f"{X} followed by {Y} and all the while {Z} and all the while {X}", ""),
        (f"{X} throughout {Y}", ""),
        (f"{Y}, first {X}", ""),
        (f"first {X}", ""),
        (f"{X} then", ""),
        ("then", ""),
        ("", ""),
        (f"slow {Y} high", ""),
        ("a slow slow bell", ""),
        (f"{X} before {Y}?", ""),
        (f"{X} / {Y}", ""),
        (f"{X} ≠ {Y}", ""),
    ],
)
def test_what_is_not_certain_is_not_read(text, word):
    with pytest.raises(UnreadableError, match="cannot be read") as error:
        read(text, VOCABULARY)
    assert error.value.word == word


@pytest.mark.parametrize(
    ("text", "expression"),
    [
        ("man speaking then dog", MAN + Leaf("dog")),
        ("a speaking man, then a dog", MAN + Leaf("dog")),
        ("the man is speaking while a dog is heard", MAN * Leaf("dog")),
        ("man speaking, child laughing and dog together", MAN * Leaf("child", ("laughing",)) * Leaf("dog")),
        ("dog, speaking man and laughing child together", MAN * Leaf("child", ("laughing",)) * Leaf("dog")),
    ],
)
def test_words_that_are_none_of_the_lexicon_may_stand_behind_the_noun(text, expression):
    vocabulary = Vocabulary(frozenset({"man", "child", "dog"}), frozenset({"speaking", "laughing"}))
    assert read(text, vocabulary).formula == formula_of(expression)


def test_what_is_kept_from_training_is_recognised_in_any_words_around_it():
    def held_out(text):
        return read(text, VOCABULARY).held_out

    assert held_out(f"{X} rings, later {Y}") is False
    assert held_out(f"first {X} rings, later {Y} plays") is True
    assert held_out(f"before {Y} is heard, {X}") is True
    assert held_out(f"{X} before {Y}") is False
    assert held_out(f"{X} sounds amid {Y}") is True
    assert {"amid", "before"}.isdisjoint(cues_of("with", "leading_reverse"))
    assert "before" in cues_of("forward")


def test_words_are_compared_without_case_and_punctuation():
    assert words_in("A dog_bark, then rain-fall!") == ("a", "dog", "bark", "then", "rain", "fall")


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
