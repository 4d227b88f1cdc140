"""The truth test, against cases by hand and against a second one that knows no intervals."""

import math
from collections import Counter
from dataclasses import replace

import numpy as np
import pytest

from audio_compositionality.dataset_builder.scenes.captioned import Leaf, canonical, leaves
from audio_compositionality.dataset_builder.texts.captions import bag_of_words, caption, wordings
from audio_compositionality.dataset_builder.texts.truth import (
    HeardEvent,
    draw_wording,
    false_variants,
    is_false,
    is_true,
    negatives,
    true_parts,
    wholes,
)
from audio_compositionality.support.errors import InputError

from .trees import LABELS, events_of_tree, is_true_by_frames, random_tree

X, Y, Z = (Leaf(label) for label in ("dog", "man", "rain"))


def heard(*events):
    return [{"label": label, "start": start, "stop": stop} for label, start, stop in events]


class TestByHand:
    @pytest.mark.parametrize(
        ("expression", "events", "truth", "falsehood"),
        [
            (X + Y, heard(("dog", 0, 5), ("man", 5, 10)), True, False),
            (Y + X, heard(("dog", 0, 5), ("man", 5, 10)), False, True),
            (X * Y, heard(("dog", 0, 5), ("man", 5, 10)), False, True),
            (X + Y, heard(("dog", 0, 10), ("man", 0, 10)), False, True),
            # A tenth of a second of both is no overlap that anybody hears.
            (X + Y, heard(("dog", 0, 5.1), ("man", 5, 10)), True, False),
            # What goes on into the next is disputed.
            (X + Y, heard(("dog", 0, 5.2), ("man", 5, 10)), False, False),
            (X * Y, heard(("dog", 0, 7), ("man", 5, 9)), True, False),
            (X * Y, heard(("dog", 0, 6.9), ("man", 5, 9)), False, False),
            # So is what comes again.
            (X + Y, heard(("dog", 0, 2), ("man", 3, 5), ("dog", 6, 8)), False, False),
            (X, heard(("dog", 0, 0.99)), False, False),
            (X, heard(("dog", 0, 0.5), ("dog", 2, 2.5)), True, False),
            # Rain throughout a dog and then a man, or with the dog alone.
            ((X + Y) * Z, heard(("dog", 0, 5), ("man", 5, 10), ("rain", 0, 10)), True, False),
            ((X + Y) * Z, heard(("dog", 0, 5), ("man", 5, 10), ("rain", 0, 5)), False, False),
            ((X * Z) + Y, heard(("dog", 0, 5), ("man", 5, 10), ("rain", 0, 5)), True, False),
            (X + Z + Y, heard(("dog", 0, 3), ("man", 3, 6), ("rain", 6, 9)), False, True),
        ],
    )
    def test_cases(self, expression, events, truth, falsehood):
        assert is_true(expression, events) is truth
        assert is_false(expression, events) is falsehood

    def test_words(self):
        event = HeardEvent("bell", 0, 5, ("slow", "high"))
        assert is_true(Leaf("bell", ("high",)), [event])
        assert is_true(Leaf("bell", ("high", "slow")), [event])
        # Another word of the attribute contradicts, an attribute of which nothing is said does not.
        assert is_false(Leaf("bell", ("low",)), [event])
        assert not is_false(Leaf("bell", ("loud",)), [event])
        assert not is_true(Leaf("bell", ("loud",)), [event])
        # Words that no lexicon has exclude each other.
        speech = HeardEvent("speaking", 0, 5, ("man",))
        assert is_false(Leaf("speaking", ("child",)), [speech])
        assert is_true(Leaf("speaking", ("man",)), [speech])

    def test_what_is_cut_short_is_not_heard(self):
        whole, part = HeardEvent("dog", 0, 1.9, length=1.9), HeardEvent("dog", 0, 1.9, length=9.6)
        assert is_true(X, [whole])
        assert not is_true(X, [part])
        assert is_true(X, [replace(part, length=9.5)])

    def test_an_event_has_a_time(self):
        with pytest.raises(InputError, match=r"'dog' is heard from 2 to 2 s"):
            HeardEvent("dog", 2, 2)
        for start, stop in ((0, math.inf), (0, math.nan), (math.nan, 2), (-math.inf, 2)):
            with pytest.raises(InputError, match="and both finite"):
                HeardEvent("dog", start, stop)

    @pytest.mark.parametrize("key", ["label", "start", "stop"])
    def test_an_event_of_a_row_has_a_label_and_times(self, key):
        event = {"label": "dog", "start": 0, "stop": 2}
        del event[key]
        for row in (event, {**event, key: None}):
            with pytest.raises(InputError, match=f"an event lacks {key}; it has "):
                HeardEvent.of(row)


def random_scenes(count, seed=0):
    for number in range(count):
        rng = np.random.default_rng([seed, number])
        tree = random_tree(rng)
        yield rng, tree, events_of_tree(tree, rng)


def test_the_second_test_agrees_on_whatever_is_said_of_scenes():
    verdicts = Counter()
    scenes = list(random_scenes(100))
    for (_, tree, events), (_, other, _) in zip(scenes, scenes[1:] + scenes[:1], strict=True):
        # Also what is true by chance: another tree over the same leaves, where there are as many.
        said = [tree]
        if len(leaves(other)) >= 2:
            said += [variant for variant, _ in list(false_variants(tree))[:3]]
        for expression in said:
            truth = is_true(expression, events)
            assert truth == is_true_by_frames(expression, events), (expression, events)
            assert not (truth and is_false(expression, events))
            verdicts[truth] += 1
    assert min(verdicts.values()) > 45


def test_captions_and_positives_are_true_and_negatives_false_of_random_trees():
    kinds = Counter()
    for rng, tree, events in random_scenes(100, seed=1):
        assert is_true_by_frames(tree, events)
        wording = draw_wording(tree, rng)
        text = caption(tree, wording)
        said = {text: tree}
        for said_so, _, _ in wholes(tree, rng, most=3):
            assert is_true_by_frames(said_so, events)
        for part, _ in true_parts(tree, events, rng):
            assert is_true_by_frames(part, events)
        absent = [label for label in LABELS if label not in {event.label for event in events}]
        for negative in negatives(tree, wording, events, rng, most=8, absent=absent[:2]):
            assert not is_true_by_frames(negative.expression, events)
            assert said.setdefault(negative.text, negative.expression) == negative.expression
            same_words = bag_of_words(negative.text) == bag_of_words(text)
            assert same_words if negative.kind in ("order", "attribute") else True
            kinds[negative.kind] += 1
    assert min(kinds[kind] for kind in ("order", "relation", "attribute", "absent")) > 30


def all_trees(labels):
    """Every tree over some labels, in canonical form."""
    if len(labels) == 1:
        return {Leaf(labels[0])}
    trees = set()
    for chosen in range(1, 2 ** len(labels) - 1):
        first = tuple(label for place, label in enumerate(labels) if chosen >> place & 1)
        second = tuple(label for place, label in enumerate(labels) if not chosen >> place & 1)
        trees |= {
            canonical(join)
            for one in all_trees(first)
            for other in all_trees(second)
            for join in (one + other, one * other)
        }
    return trees


class TestGrammar:
    def test_no_text_of_any_tree_can_be_read_as_another_tree(self):
        readings = {}
        counts = []
        for labels in (LABELS[:1], LABELS[:2], LABELS[:3], LABELS[:4]):
            trees = all_trees(labels)
            counts.append(len(trees))
            for tree in trees:
                assert wordings(tree)
                for wording in wordings(tree):
                    assert readings.setdefault(caption(tree, wording), tree) == tree
        # Labelled series-parallel orders.
        assert counts == [1, 3, 19, 195]

    def test_what_nests_deeper_is_refused(self):
        a, b, c, d, e = (Leaf(label) for label in LABELS[:5])
        with pytest.raises(InputError, match="nested too deeply"):
            wordings((((a + b) * c) + d) * e)
        assert caption((a * b) + c + d + e, wordings((a * b) + c + d + e)[0]).count("followed by") == 3
