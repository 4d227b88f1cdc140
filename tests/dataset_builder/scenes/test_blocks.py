"""Which recordings blocks have: conditions, groups, labels, how evenly they are used; what is said where they lack."""

from collections import Counter
from dataclasses import replace
from itertools import combinations, islice

import numpy as np
import pytest

from audio_compositionality.dataset_builder.data import DatasetError
from audio_compositionality.dataset_builder.recipes.a_coat_instances import BlockSpec, draw_blocks
from audio_compositionality.dataset_builder.scenes.pool import SoundPool, Use, evenly
from audio_compositionality.dataset_builder.sounds.entries import related

from ..recipes.recorded import ENGINES, instances, labels_of, unconditioned


def drawn(recordings, **changes):
    pool = SoundPool(recordings)
    return pool, list(draw_blocks(pool, BlockSpec(sounds=recordings, **{"blocks": 12, **changes})))


def message(recordings, **changes):
    with pytest.raises(DatasetError) as error:
        drawn(recordings, **changes)
    return str(error.value)


class TestBlocks:
    def test_sides_have_the_same_labels_under_unrelated_conditions(self):
        pool, blocks = drawn(instances(14))
        for number, block in enumerate(blocks):
            assert block.number == number
            first, second = block.sides.conditions
            assert not related(first, second)
            for condition, side in zip((first, second), (block.sides.first, block.sides.second), strict=True):
                entries = [pool.entries[n] for n in side]
                assert {entry.condition for entry in entries} == {condition}
                assert tuple(entry.label for entry in entries) == block.sides.labels
            assert len(set(block.sides.labels)) == 8

    def test_contexts_have_labels_of_their_own_of_any_condition(self):
        pool, blocks = drawn(instances(14), blocks=40)
        conditions = set()
        for block in blocks:
            labels = [pool.entries[n].label for n in (*block.context_a, *block.context_c)]
            assert len(block.context_a) == len(block.context_c) == 2
            assert len({*labels, *block.sides.labels}) == 12
            conditions |= {pool.entries[n].condition for n in block.context_a}
        assert conditions == set(ENGINES)

    def test_everything_is_used_evenly(self):
        pool, blocks = drawn(instances(15, each=2), blocks=45)
        # A label that is a class of a block is none of its contexts, whosever turn it is.
        for used, every, most in (
            (Counter(label for block in blocks for label in block.sides.labels), pool.labels, 1),
            (Counter(pool.entries[n].label for b in blocks for n in (*b.context_a, *b.context_c)), pool.labels, 2),
            (Counter(condition for block in blocks for condition in block.sides.conditions), ENGINES, 1),
        ):
            assert set(used) == set(every)
            assert max(used.values()) - min(used.values()) <= most
        recordings = Counter(n for b in blocks for n in (*b.sides.first, *b.sides.second, *b.context_a, *b.context_c))
        assert len(recordings) == len(pool.entries)

    def test_labels_are_as_even_as_conditions_allow(self):
        # Eight of twenty labels are spoken by all, twelve by the first of either kind alone.
        without = {(label, condition) for label in labels_of(20)[8:] for condition in ENGINES[1::2]}
        pool, blocks = drawn(instances(20, without=without), blocks=40)
        shared = [b for b in blocks if set(b.sides.conditions) == {ENGINES[0], ENGINES[2]}]
        assert {label for block in shared for label in block.sides.labels} >= set(labels_of(20)[8:])
        assert pool.by_condition[ENGINES[1]].keys() == set(labels_of(8))

    def test_further_blocks_change_none(self):
        recordings = instances(14, each=2)
        _, few = drawn(recordings, blocks=5)
        _, many = drawn(recordings, blocks=9)
        assert many[:5] == few
        assert drawn(recordings, blocks=5, seed=1)[1] != few

    def test_related_conditions_can_be_allowed(self):
        recordings = instances(12, conditions=("espeak/f1", "espeak/m1"))
        _, blocks = drawn(recordings, unrelated=False)
        assert {frozenset(block.sides.conditions) for block in blocks} == {frozenset(("espeak/f1", "espeak/m1"))}

    def test_a_label_with_one_recording_serves_as_context(self):
        without = {(label, condition) for label in labels_of(12)[8:] for condition in ENGINES[1:]}
        pool, blocks = drawn(instances(12, without=without))
        for block in blocks:
            assert set(block.sides.labels) == set(labels_of(8))
            assert {pool.entries[n].label for n in (*block.context_a, *block.context_c)} == set(labels_of(12)[8:])

    def test_recordings_without_a_label_are_left_alone(self):
        recordings = unconditioned([2] * 12)
        entries = recordings.entries
        nameless = tuple(type(entry)(entry.id, "", "", f"{100 + n:064x}") for n, entry in enumerate(entries))
        more = type(recordings)((*nameless, *entries), recordings.seconds * 2, recordings.rates * 2)
        pool, blocks = drawn(more)
        assert all(pool.entries[n].label for b in blocks for n in (*b.sides.first, *b.sides.second, *b.context_a))


class TestWithoutConditions:
    def test_the_two_instances_are_of_different_groups(self):
        groups = [f"speaker {place % 5}" for place in range(60)]
        pool, blocks = drawn(unconditioned([5] * 12, groups), blocks=20)
        for block in blocks:
            assert block.sides.conditions == ("", "")
            sides = [{pool.group(n) for n in side} for side in (block.sides.first, block.sides.second)]
            assert not sides[0] & sides[1]

    def test_each_recording_is_a_group_where_there_are_none(self):
        _, blocks = drawn(unconditioned([2] * 12))
        for block in blocks:
            assert not set(block.sides.first) & set(block.sides.second)

    def test_groups_that_cross_conditions_are_never_on_both_sides(self):
        recordings = instances(12, conditions=("near", "far"), each=4)
        entries = tuple(
            type(entry)(entry.id, entry.label, entry.id[-5], entry.sha256, condition=entry.condition)
            for entry in recordings.entries
        )
        pool, blocks = drawn(type(recordings)(entries, recordings.seconds, recordings.rates), blocks=20)
        for block in blocks:
            sides = [{pool.group(n) for n in side} for side in (block.sides.first, block.sides.second)]
            assert not sides[0] & sides[1]


class TestErrors:
    def test_too_few_labels(self):
        assert message(instances(10)) == (
            "made up has 10 labels; 8 classes and 2 × 2 context sources need 12: --set classes=6"
        )
        assert message(instances(6)).endswith("need 12: --set classes=4 --set context_sources=1")
        assert message(instances(3)).endswith("need 12; 4 are the least (--set classes=2 --set context_sources=1)")

    def test_labels_with_one_recording(self):
        text = message(unconditioned([3] * 6 + [1] * 7))
        assert "8 classes need labels with two recordings each, of different groups; 6 of 13 have them" in text
        assert "'label 06', 'label 07'" in text
        assert text.endswith("have one only: --set classes=6")
        assert message(unconditioned([3] * 7 + [1] * 5 + [0])).endswith("have one only: --set classes=7")

    def test_conditions_that_share_too_few_labels(self):
        without = {(label, condition) for label in labels_of(12)[5:] for condition in ENGINES[2:]}
        assert message(instances(12, without=without)) == (
            "made up has no two unrelated conditions that share 8 labels; 'espeak/f1' and 'flite/awb' share most, "
            "5: --set classes=5"
        )

    def test_conditions_that_share_no_label(self):
        conditions = [f"take {number}" for number in range(12)]
        pairs = zip(labels_of(12), conditions, strict=True)
        own = {(label, condition) for label in labels_of(12) for condition in conditions} - set(pairs)
        text = message(instances(12, conditions=conditions, without=own))
        assert "share most, 0; or leave conditions out: LABEL/file" in text

    def test_conditions_that_are_all_related(self):
        text = message(instances(12, conditions=("espeak/f1", "espeak/m1")))
        assert "has 2 conditions, all related ('espeak/f1' and 'espeak/m1')" in text
        assert "; --set unrelated=false allows related ones" in text

    def test_one_condition(self):
        assert message(instances(12, conditions=("near",))) == "made up has one condition ('near'); two are needed"

    def test_groups_that_forbid_it(self):
        one_speaker = unconditioned([2] * 12, ["speaker"] * 24)
        assert "0 of 12 have them" in message(one_speaker)
        # Of three speakers who say one word with each of the others, two are on one side: one word has no two sides.
        pairs = [(f"{three}{n}", f"{three}{(n + 1) % 3}") for three in "abcd" for n in range(3)]
        triangles = unconditioned([2] * 12, [speaker for pair in pairs for speaker in pair])
        assert drawn(triangles, classes=6)[1]
        assert message(triangles, classes=9, context_sources=1) == (
            "made up: 9 classes need labels with two recordings each, of different groups; the groups of these "
            "recordings do not allow that: --set classes=8, or other groups"
        )

    def test_no_labels(self):
        expected = "made up has no labels; scenes are mixed of classes: names or whole numbers"
        assert message(unconditioned([])) == expected
        entries = tuple(replace(entry, label="") for entry in unconditioned([2] * 12).entries)
        assert message(replace(unconditioned([2] * 12), entries=entries)) == expected

    def test_labels_that_are_numbers_are_no_classes(self):
        recordings = instances(12)
        numbers = {label: float(place) / 4 for place, label in enumerate(labels_of(12))}
        entries = [replace(e, label=str(numbers[e.label]), number=numbers[e.label]) for e in recordings.entries]
        assert message(replace(recordings, entries=tuple(entries))) == (
            "made up has numbers as labels, such as 0.0, which are no classes; scenes are mixed of classes: names or "
            "whole numbers"
        )


class TestPool:
    def test_the_best_pair_is_that_which_shares_most(self):
        rng = np.random.default_rng(3)
        conditions = [f"{kind}/{n}" for kind in "abc" for n in range(3)]
        cells = [(label, condition) for label in labels_of(12) for condition in conditions]
        without = {cell for cell in cells if rng.random() < 0.5}
        pool = SoundPool(instances(12, conditions=conditions, without=without))
        for unrelated in (True, False):
            counts = {
                pair: len(pool.by_condition[pair[0]].keys() & pool.by_condition[pair[1]].keys())
                for pair in combinations(pool.by_condition, 2)
                if not (unrelated and related(*pair))
            }
            best, pair = pool.best_pair(unrelated=unrelated)
            assert best == max(counts.values()) == counts[tuple(sorted(pair))]
            drawn_pairs = list(pool.pairs(4, Use(), rng, unrelated=unrelated))
            expected = {frozenset(pair) for pair, count in counts.items() if count >= 4}
            assert {frozenset(pair) for pair in drawn_pairs} == expected

    def test_thousands_of_conditions_take_no_time(self):
        conditions = [f"speaker {number:04d}" for number in range(1_500)]
        recordings = instances(12, conditions=conditions)
        pool = SoundPool(recordings)
        settings = BlockSpec(sounds=recordings, blocks=20)
        used = [c for block in islice(draw_blocks(pool, settings), 20) for c in block.sides.conditions]
        assert len(set(used)) == 40

    def test_what_was_drawn_least_comes_first(self):
        rng = np.random.default_rng(0)
        use = Counter({"a": 2, "b": 1})
        orders = {tuple(evenly("abcd", use, rng)) for _ in range(50)}
        assert orders == {("c", "d", "b", "a"), ("d", "c", "b", "a")}
