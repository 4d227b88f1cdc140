"""Captions are read as what they were made from; what is taken of a model's answers, and why the rest is refused."""

import sys

import numpy as np
import pytest

from audio_compositionality.dataset_builder.scenes.captioned import Leaf, leaves, replaced
from audio_compositionality.dataset_builder.texts.caption_reading import (
    MOST_WORDS,
    Judge,
    UnreadableError,
    Vocabulary,
    formula_of,
    negative_kind,
    open_tagger,
    read,
    texts_of_answer,
    tidy,
    word_statistics,
)
from audio_compositionality.dataset_builder.texts.captions import caption, wordings
from audio_compositionality.dataset_builder.texts.truth import HeardEvent, false_variants, is_false
from audio_compositionality.support.errors import InputError

from .trees import events_of_tree, random_tree

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
        (f"Before {Y}, {X} can be heard", BELL + ORGAN, "reverse"),
        (f"{Y} follows {X}", BELL + ORGAN, "reverse"),
        (f"{Y}, and before that {X}", BELL + ORGAN, "reverse"),
        (f"{X} rings and is followed by {Y}, which is followed by {Z}", BELL + ORGAN + RAIN, "forward"),
        (f"While {X} rings, {Y} plays", BELL * ORGAN, ""),
        (f"{X}, {Y} and {Z} are heard together", BELL * ORGAN * RAIN, ""),
        (f"{X} and at the same time {Y}", BELL * ORGAN, ""),
        (f"{X} and {Y} together, then {Z}", (BELL * ORGAN) + RAIN, "forward"),
        (f"{X}. After that, {Z} throughout {Y} followed by {X}", BELL + (RAIN * (ORGAN + BELL)), "forward"),
        ("A HIGH and slow bell", BELL, ""),
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
        (f"{X} is heard with {Y} in the background", "in"),
        (f"following {X}, {Y}", ""),
        (f"while {X} plays, {Y} is followed by {Z}", ""),
        ("a gloomy bell", "gloomy"),
        # Also true where both are heard until the end.
        (f"{Y} begins before {X}", "begins"),
        ("a bell's ringing", "s"),
        # Nobody can tell which parts belong together, or when each is heard.
        (f"{X} and {Y}", ""),
        (f"{X}, {Y}, then {Z}", ""),
        (f"{X} before {Y} after {Z}", ""),
        (f"{X} followed by {Y} and all the while {Z} and all the while {X}", ""),
        (f"{X} throughout {Y}", ""),
        (f"{Y}, first {X}", ""),
        (f"first {X}", ""),
        ("", ""),
        ("a slow slow bell", ""),
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


TAGS = {"a": "DT", "Bell": "NNP", "bell": "NN", "bells": "NNS", "rings": "VBZ", "loudly": "RB", "uh": "UH", ".": "."}


def tag(text):
    return [(word, TAGS[word]) for word in text.split()]


def test_words_are_counted_by_part_of_speech_and_nouns_by_their_text():
    counted = word_statistics(["a bell rings .", "a bell rings .", "Bell uh", "bells loudly"], tag)
    assert (counted.captions, counted.different, counted.words, counted.vocabulary) == (4, 3, 10, 6)
    assert counted.nouns == {"bell": 3, "bells": 1}
    assert counted.classes == {"nouns": 4, "determiners": 2, "verbs": 2, "other words": 1, "adverbs": 1}
    assert (counted.words_per_caption, counted.nouns_per_caption) == (2.5, 1.0)


def test_a_tagger_that_is_not_there_is_named_with_what_installs_it(monkeypatch):
    monkeypatch.setitem(sys.modules, "textblob.en.taggers", None)
    with pytest.raises(InputError, match=r"pip install 'audio-compositionality\[captions\]'"):
        open_tagger()


def test_the_tagger_needs_nothing_but_its_package():
    pytest.importorskip("textblob", reason="the extra captions is not installed")
    counted = word_statistics(["A dog is barking loudly while a man speaks."], open_tagger())
    assert counted.nouns == {"dog": 1, "man": 1}
    assert (counted.words, counted.classes["verbs"], counted.classes["adverbs"]) == (9, 3, 1)


EVENTS = [
    HeardEvent("bell", 0, 4, ("slow", "high", "loud")),
    HeardEvent("organ", 5, 10, ("low", "slow")),
]
FORWARD = "a slow high bell followed by a low organ"


def judge(text=FORWARD, events=EVENTS, **changes):
    return Judge.of(text, events, **changes)


class TestJson:
    @pytest.mark.parametrize(
        ("answer", "texts"),
        [
            ('{"caption": "x"}', ["x"]),
            ('Sure! Here it is:\n```json\n{"caption": "x"}\n``` Anything else?', ["x"]),
            ('{"note": {"caption": "x"}}', ["x"]),
            ('<think>perhaps {"caption": "y"}</think>{"caption": "x"}', ["x"]),
            ("", None),
            ('{"caption": "x"', None),
            ('["caption"]', None),
            # What is made to hurt.
            ("{" * 100_000, None),
            ('{"caption": ' + "9" * 10_000 + "}", None),
            ("x" * 30_000 + '{"caption": "x"}', None),
        ],
    )
    def test_the_first_object_with_the_key_is_taken(self, answer, texts):
        assert texts_of_answer(answer, "caption") == texts

    @pytest.mark.parametrize(
        "text", [None, 3, ["x"], {}, "", " .", "x" * 501, "a bell\u202e", "a bell\x00", "a \ud800 bell", "a\u200bbell"]
    )
    def test_what_is_no_text_is_refused(self, text):
        assert tidy(text) is None
        assert judge().equivalent(text).reason == "no text"
        assert judge().negative(text).reason == "no text"

    def test_texts_are_written_as_captions_are(self):
        assert tidy('A Bell,\n then  a reed "rings".', "a bell with a Reed") == 'a bell, then a Reed "rings"'
        assert tidy("Reedy Reed!", "Reed") == "reedy Reed"


class TestEquivalent:
    @pytest.mark.parametrize(
        ("text", "reason"),
        [
            ("a slow high bell " + "is heard " * MOST_WORDS + "before a low organ", "too long"),
            ("a slow high bell rings", "sounds"),
            ("a slow high bell before a low organ before a slow high bell", "sounds"),
            ("A slow high bell, followed by a low organ.", "repeated"),
            ("a slow high bell fades into a low organ", "undecided"),
            ("a slow high bell and a low organ", "undecided"),
            # Another order, at one time, another word, a word less, a word more that is true.
            ("a low organ before a slow high bell", "wrong"),
            ("a slow high bell while a low organ plays", "wrong"),
            ("a slow low bell before a low organ", "wrong"),
            ("a low organ after a slow high bell", "direction"),
            ("first a slow high bell, later a low organ", "kept for test"),
        ],
    )
    def test_it_is_refused(self, text, reason):
        judgement = judge().equivalent(text)
        assert (judgement.reason, judgement.text, judgement.reading) == (reason, "", None)

    def test_it_is_true_of_the_clip_even_where_the_caption_is_not(self):
        overlapping = [EVENTS[0], HeardEvent("organ", 2, 10, ("low",))]
        assert judge(events=overlapping).equivalent("a slow high bell before a low organ").reason == "wrong"


class TestNegative:
    @pytest.mark.parametrize(
        ("text", "reason"),
        [
            ("a low organ, then a slow high drum", "sounds"),
            ("a low organ", "sounds"),
            # True of the clip, in other words or with others that are true.
            ("a slow high bell and then a low organ", "wrong"),
            ("a loud bell and then a slow organ", "wrong"),
            ("a slow high bell after a low organ", "direction"),
            ("a slow high bell amid a low organ", "kept for test"),
            ("a low organ interrupts a slow high bell", "undecided"),
        ],
    )
    def test_it_is_refused(self, text, reason):
        assert judge().negative(text).reason == reason

    def test_what_listeners_would_dispute_is_no_negative(self):
        heard = [HeardEvent("dog", 0, 2), HeardEvent("man", 3, 5), HeardEvent("dog", 6, 8)]
        of_dispute = Judge.of("dog", heard)
        assert of_dispute.equivalent("dog barks").reason == "undecided"
        both = Judge.of("dog with man", heard)
        assert both.negative("man then dog").reason == "wrong"

    def test_the_kind_is_that_of_the_rules(self):
        rng = np.random.default_rng(5)
        for _ in range(40):
            tree = random_tree(rng)
            vocabulary = Vocabulary.of(leaves(tree))
            of_tree = read(caption(tree, wordings(tree)[0]), vocabulary)
            variants = list(false_variants(tree))
            for place in rng.permutation(len(variants))[:4]:
                variant, kind = variants[place]
                text = caption(variant, wordings(variant)[0])
                # What two rules make is of the first of them.
                assert negative_kind(read(text, vocabulary), of_tree) == kind or kind == "attribute"

    def test_several_changes_at_once_have_a_kind_too(self):
        vocabulary = Vocabulary(frozenset("abc"))

        def kind(text, caption="a then b then c"):
            return negative_kind(read(text, vocabulary), read(caption, vocabulary))

        assert kind("b then c then a") == "order"
        assert kind("c and a together then b") == "relation"
        assert kind("b throughout c followed by a", "a throughout b followed by c") == "order"


def test_captions_of_the_grammar_are_taken_for_each_other_and_their_variants_as_negatives():
    """With random scenes: what the rules say of their own texts, the reader finds out from the words."""
    rng = np.random.default_rng(11)
    taken = 0
    for _ in range(60):
        tree = random_tree(rng)
        events = events_of_tree(tree, rng)
        every = wordings(tree, held_out=False)
        one, other = (every[int(rng.integers(len(every)))] for _ in range(2))
        of_tree = Judge.of(caption(tree, one), events)
        judgement = of_tree.equivalent(caption(tree, other))
        expected = "repeated" if one == other else None if one.mention == other.mention else "direction"
        assert judgement.reason == expected
        # Two nouns that exchange their places under the same words say the same.
        false = [variant for variant, _ in false_variants(tree) if is_false(variant, events)]
        for variant in false[:5]:
            text = caption(variant, wordings(variant, held_out=False)[0])
            assert of_tree.equivalent(text).reason in ("wrong", "direction")
            assert of_tree.negative(text).reason in (None, "direction")
        taken += judgement.reason is None
    assert taken > 10
