"""Checks that all sounds share; splits, folds and draws of whole groups, decided by content."""

import random
import re
from collections import Counter
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from audio_compositionality.dataset_builder.data import DatasetError
from audio_compositionality.dataset_builder.sounds.entries import Sound
from audio_compositionality.dataset_builder.sounds.recordings import Decoded
from audio_compositionality.dataset_builder.sounds.splits import (
    alike,
    copies_of,
    folds_of,
    is_silent,
    other_recording,
    select_recordings,
    sound_fault,
    split_of_groups,
    split_of_sounds,
)
from audio_compositionality.support.errors import InputError

RATE = 8_000


def test_what_is_too_short_or_nearly_silent_cannot_be_used():
    loud = np.full(8_000, 0.5)
    for samples, fault in (
        (np.full(1_999, 0.1), r"lasts 0\.250 s; the minimum is 0\.25 s"),
        (np.zeros(8_000), r"nearly silent in its middle \(no sound at all;"),
        (
            np.full(8_000, 0.0009),
            r"nearly silent in its middle \(-61 dB; the minimum is -60 dB relative to full scale\)",
        ),
        # What is heard before the middle ten seconds does not count.
        (np.concatenate([loud, np.zeros(10 * RATE)]), None),
        (np.concatenate([loud, np.zeros(14 * RATE)]), "nearly silent in its middle"),
        (np.full(2_000, 0.002), None),
    ):
        found = sound_fault(Decoded(np.asarray(samples, np.float32), RATE, "", ""))
        assert found is None if fault is None else re.search(fault, found)
    # What 16 bits do not hold is silent.
    assert is_silent(np.full(9, 2**-17, np.float32))
    assert not is_silent(np.full(9, -(2**-15), np.float32))


def test_copies_and_labels_that_read_alike():
    assert copies_of(["a1", "b1", "a2", "c1", "c2"], lambda item: item[0]) == [["a1", "a2"], ["c1", "c2"]]
    assert alike(["Dog", "cat", "dog"], str.casefold) == ("Dog", "dog")
    assert alike(["Dog", "cat", "Dog"], str.casefold) is None


TWO = {"test": 0.4, "train": 0.6}
THREE = {"test": 0.4, "validation": 0.1, "train": 0.5}


def entries_of(labels, groups=None):
    return [Sound(f"{n}.wav", label, groups[n] if groups else "", f"{n:064x}") for n, label in enumerate(labels)]


def sides(entries, shares, **options):
    counts = {}
    for entry, split in zip(entries, split_of_sounds(entries, shares, **options), strict=True):
        counts.setdefault(entry.label, Counter())[split] += 1
    return counts


def test_each_label_has_its_shares_and_every_split_what_there_is_enough_of():
    assert sides(entries_of("a" * 10 + "b" * 30), THREE) == {
        "a": {"test": 4, "validation": 1, "train": 5},
        "b": {"test": 12, "validation": 3, "train": 15},
    }
    # Of fewer than splits, those of the largest shares.
    assert sides(entries_of("a" * 3 + "b" * 2), THREE) == {
        "a": {"test": 1, "validation": 1, "train": 1},
        "b": {"test": 1, "train": 1},
    }
    assert sides(entries_of("a" * 3), {"test": 0.9, "train": 0.1})["a"] == {"test": 2, "train": 1}
    # Labels of one file each are divided in turn.
    assert Counter(split_of_sounds(entries_of("abcdefgh"), TWO)) == {"test": 4, "train": 4}
    assert set(Counter(split_of_sounds(entries_of("abcdefgh"), THREE)).values()) == {2, 3}
    # One spelling is one label.
    spelled = entries_of(["dog_bark"] * 5 + ["dog  bark"] * 5)
    assert Counter(split_of_sounds(spelled, TWO)) == {"test": 4, "train": 6}


@settings(max_examples=50)
@given(
    st.lists(st.tuples(st.sampled_from("abcd"), st.sampled_from(["", "u", "v", "w", "x"])), min_size=1, max_size=40),
    st.sampled_from([TWO, THREE, {"one": 1.0}]),
    st.sampled_from([None, 0, 7]),
    st.randoms(use_true_random=False),
)
def test_groups_are_whole_and_order_is_nothing(pairs, shares, seed, shuffle: random.Random):
    entries = entries_of([label for label, _ in pairs], [group for _, group in pairs])
    splits = split_of_sounds(entries, shares, seed=seed)
    assert set(splits) <= set(shares)
    of_group = {}
    for entry, split in zip(entries, splits, strict=True):
        assert not entry.group or of_group.setdefault(entry.group, split) == split
    order = list(range(len(entries)))
    shuffle.shuffle(order)
    assert split_of_sounds([entries[n] for n in order], shares, seed=seed) == [splits[n] for n in order]


def test_speakers_who_say_all_words_are_divided():
    entries = entries_of("abc" * 10, [f"speaker {n // 3}" for n in range(30)])
    splits = split_of_sounds(entries, TWO)
    assert Counter(splits[::3]) == {"test": 4, "train": 6}
    assert splits[::3] == splits[1::3] == splits[2::3]


def test_a_seed_draws_anew():
    draws = [split_of_sounds(entries_of("a" * 40), TWO, seed=seed) for seed in (None, 0, 1)]
    assert len(set(map(tuple, draws))) == 3
    assert all(Counter(draw) == {"test": 16, "train": 24} for draw in draws)


def test_the_assignment_stays():
    # Content of every data set that has splits: another assignment is another version of its recipe.
    entries = entries_of("aaabbbbbcd", ["", "", "g", "g2", "", "", "", "g3", "", ""])
    assert "".join(split[1] for split in split_of_sounds(entries, THREE)) == "earaerreae"


def test_groups_by_name_move_only_at_borders():
    names = [f"recording {n}" for n in range(20)]
    before, after = (split_of_groups(some, {"test": 0.7, "train": 0.3}, seed=1) for some in (names[:-1], names))
    assert sum(before[name] != after[name] for name in names[:-1]) <= 1
    assert Counter(after.values()) == {"test": 14, "train": 6}


@pytest.mark.parametrize("shares", [{}, {"test": 0.5}, {"test": 1.5, "train": -0.5}])
def test_shares_are_checked(shares):
    for split in (lambda: split_of_sounds(entries_of("ab"), shares), lambda: split_of_groups(["a"], shares, seed=0)):
        with pytest.raises(InputError, match="each must be above 0, and their sum 1"):
            split()


def test_one_sound_is_never_in_two_splits_or_folds():
    copies = [replace(entry, sha256="same") for entry in entries_of("aaaa", "uvwx")]
    with pytest.raises(DatasetError, match="are the same recording, in two splits; leave one out, or give both one"):
        split_of_sounds(copies, TWO)
    entries = entries_of("a" * 10)
    entries[7] = Sound("again.wav", "a", "", entries[2].sha256)
    with pytest.raises(DatasetError, match=r"2\.wav and again\.wav are the same recording, in two folds"):
        folds_of(entries, seed=0)
    grouped = [replace(entry, group="x" if entry.sha256 == entries[2].sha256 else "") for entry in entries]
    folds = folds_of(grouped, seed=0)
    assert folds[7] == folds[2]


def test_labels_are_drawn_as_evenly_as_they_can_be():
    entries = entries_of("a" * 50 + "b" * 4 + "c" * 20)
    selected = select_recordings(entries, 24, seed=0)
    assert selected == sorted(set(selected))
    assert Counter(entries[index].label for index in selected) == {"a": 10, "b": 4, "c": 10}
    assert select_recordings(entries, 1_000, seed=0) == list(range(74))
    assert select_recordings(entries, 24, seed=1) != selected
    # Which are drawn of a label does not depend on another.
    entries = entries_of("a" * 30 + "b" * 30)
    both = {index for index in select_recordings(entries, 20, seed=0) if index < 30}
    assert both == set(select_recordings(entries[:30], 10, seed=0))


def test_another_recording_is_of_another_label_else_of_another_group():
    entries, same = entries_of("aabb", "xyxy"), entries_of("aaaa", "xxyy")
    for index in range(4):
        assert entries[other_recording(entries, index, range(4), 0)].label != entries[index].label
        assert same[other_recording(same, index, range(4), 0)].group != same[index].group
    ungrouped = entries_of("aaaaaa")
    drawn = [other_recording(ungrouped, index, range(6), 0) for index in range(6)]
    assert all(index != number for index, number in enumerate(drawn))
    # Whether another one that is not drawn is there makes no difference.
    left = next(number for number in range(1, 6) if number != drawn[0])
    assert other_recording(ungrouped, 0, [number for number in range(6) if number != left], 0) == drawn[0]
    with pytest.raises(DatasetError, match=r"no recording to compare with 0\.wav"):
        other_recording(ungrouped, 0, [0], 0)


def spread(items):
    counts = Counter(items)
    return max(counts.values()) - min(counts.get(fold, 0) for fold in range(5))


def test_folds_hold_as_many_of_each_label_and_of_those_that_are_transformed():
    labels = "a" * 23 + "b" * 40 + "c" * 5
    folds = folds_of(entries_of(labels), seed=3)
    assert spread(folds) <= 1
    for label in "abc":
        assert spread(fold for fold, one in zip(folds, labels, strict=True) if one == label) <= 1
    folds = folds_of(entries_of("ab" * 50), seed=0, transformed=range(20))
    assert spread(folds) == spread(folds[:20]) == 0
    assert spread(folds_of(entries_of("ab" * 40, [str(number // 4) for number in range(80)]), seed=0)) == 0


def test_a_group_is_in_one_fold_and_there_is_one_for_each_fold(fuzz_rng):
    groups = [f"speaker {number}" for number in fuzz_rng.zipf(1.8, 200) % 20]
    folds = folds_of(entries_of(fuzz_rng.choice(list("abcd"), 200), groups), seed=0)
    assert len(set(zip(groups, folds, strict=True))) == len(set(groups))
    assert set(folds) == set(range(5))
    with pytest.raises(DatasetError, match="12 recordings in 4 groups; the 5 folds need at least one each"):
        folds_of(entries_of("a" * 12, list("1234") * 3), seed=0)
