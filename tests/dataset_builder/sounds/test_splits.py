"""One split for all: whole groups, shares of each label, decided by content."""

import random
from collections import Counter
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from audio_compositionality.dataset_builder.data import DatasetError
from audio_compositionality.dataset_builder.sounds.entries import Sound
from audio_compositionality.dataset_builder.sounds.splits import split_of_groups, split_of_sounds
from audio_compositionality.support.errors import InputError

TWO = {"test": 0.4, "train": 0.6}
THREE = {"test": 0.4, "validation": 0.1, "train": 0.5}


def entries_of(labels, groups=None):
    return [Sound(f"{n}.wav", label, groups[n] if groups else "", f"{n:064x}") for n, label in enumerate(labels)]


def sides(entries, shares, **options):
    counts = {}
    for entry, split in zip(entries, split_of_sounds(entries, shares, **options), strict=True):
        counts.setdefault(entry.label, Counter())[split] += 1
    return counts


def test_each_label_has_its_shares():
    counts = sides(entries_of("a" * 10 + "b" * 30), THREE)
    assert counts == {
        "a": {"test": 4, "validation": 1, "train": 5},
        "b": {"test": 12, "validation": 3, "train": 15},
    }


def test_every_split_has_what_there_is_enough_of():
    counts = sides(entries_of("a" * 3 + "b" * 2), THREE)
    assert counts["a"] == {"test": 1, "validation": 1, "train": 1}
    # Of fewer than splits, those of the largest shares.
    assert counts["b"] == {"test": 1, "train": 1}
    assert sides(entries_of("a" * 3), {"test": 0.9, "train": 0.1})["a"] == {"test": 2, "train": 1}


def test_labels_of_one_file_are_dealt_in_turn():
    entries = entries_of("abcdefgh")
    assert Counter(split_of_sounds(entries, TWO)) == {"test": 4, "train": 4}
    assert set(Counter(split_of_sounds(entries, THREE)).values()) == {2, 3}


def test_one_spelling_is_one_label():
    entries = entries_of(["dog_bark"] * 5 + ["dog  bark"] * 5)
    assert Counter(split_of_sounds(entries, TWO)) == {"test": 4, "train": 6}


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
    assert all(splits[n] == splits[n + 1] == splits[n + 2] for n in range(0, 30, 3))


def test_a_seed_draws_anew():
    entries = entries_of("a" * 40)
    draws = [split_of_sounds(entries, TWO, seed=seed) for seed in (None, 0, 1)]
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
        with pytest.raises(InputError, match="each has to be more than 0, and they have to be 1 together"):
            split()


def test_one_sound_is_never_in_two_splits():
    entries = entries_of("aaaa", "uvwx")
    split_of_sounds(entries, TWO)
    copies = [replace(entry, sha256="same") for entry in entries]
    with pytest.raises(
        DatasetError, match="are the same recording, in two splits; leave one out, or give both one group"
    ):
        split_of_sounds(copies, TWO)
