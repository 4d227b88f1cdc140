"""Which recordings are drawn, and their folds."""

from collections import Counter

import numpy as np
import pytest

from audio_compositionality.dataset_builder.data import DatasetError
from audio_compositionality.dataset_builder.sounds.entries import Sound
from audio_compositionality.dataset_builder.sounds.splits import folds_of, other_recording, select_recordings


def entries_of(labels, groups=None):
    return [Sound(f"{n}.wav", label, groups[n] if groups else "", f"{n:064x}") for n, label in enumerate(labels)]


def test_labels_are_drawn_as_evenly_as_they_can_be():
    entries = entries_of("a" * 50 + "b" * 4 + "c" * 20)
    selected = select_recordings(entries, 24, seed=0)
    assert selected == sorted(set(selected))
    assert Counter(entries[index].label for index in selected) == {"a": 10, "b": 4, "c": 10}
    assert select_recordings(entries, 1_000, seed=0) == list(range(74))
    assert select_recordings(entries, 24, seed=1) != selected


def test_what_is_drawn_of_a_label_does_not_depend_on_another():
    entries = entries_of("a" * 30 + "b" * 30)
    both = {index for index in select_recordings(entries, 20, seed=0) if index < 30}
    assert both == set(select_recordings(entries[:30], 10, seed=0))


def test_another_recording_is_of_another_label_else_of_another_group():
    entries = entries_of("aabb", "xyxy")
    for index in range(4):
        assert entries[other_recording(entries, index, range(4), 0)].label != entries[index].label
    alike = entries_of("aaaa", "xxyy")
    for index in range(4):
        assert alike[other_recording(alike, index, range(4), 0)].group != alike[index].group
    ungrouped = entries_of("aaaaaa")
    drawn = [other_recording(ungrouped, index, range(6), 0) for index in range(6)]
    assert all(index != number for index, number in enumerate(drawn))
    # Whether another one that is not drawn is there makes no difference.
    left = next(number for number in range(1, 6) if number != drawn[0])
    assert other_recording(ungrouped, 0, [number for number in range(6) if number != left], 0) == drawn[0]
    with pytest.raises(DatasetError, match=r"no other recording than 0\.wav"):
        other_recording(ungrouped, 0, [0], 0)


def test_folds_hold_as_many_of_each_label():
    labels = "a" * 23 + "b" * 40 + "c" * 5
    folds = folds_of(entries_of(labels), seed=3)
    for label in "abc":
        counts = Counter(fold for fold, one in zip(folds, labels, strict=True) if one == label)
        assert max(counts.values()) - min(counts.get(fold, 0) for fold in range(5)) <= 1
    sizes = Counter(folds)
    assert max(sizes.values()) - min(sizes.values()) <= 1


def test_those_that_are_transformed_are_spread_evenly_too():
    labels = "ab" * 50
    folds = folds_of(entries_of(labels), seed=0, transformed=range(20))
    assert Counter(folds[:20]) == dict.fromkeys(range(5), 4)
    assert Counter(folds) == dict.fromkeys(range(5), 20)


def test_a_group_is_never_on_both_sides(fuzz_rng):
    groups = [f"speaker {number}" for number in fuzz_rng.zipf(1.8, 200) % 20]
    labels = fuzz_rng.choice(list("abcd"), 200)
    folds = folds_of(entries_of(labels, groups), seed=0)
    by_group = {}
    for group, fold in zip(groups, folds, strict=True):
        assert by_group.setdefault(group, fold) == fold
    assert set(folds) == set(range(5))


def test_groups_of_one_size_are_spread_evenly():
    groups = [str(number // 4) for number in range(80)]
    folds = folds_of(entries_of("ab" * 40, groups), seed=0)
    assert np.bincount(folds).tolist() == [16] * 5


def test_fewer_groups_than_folds_are_refused():
    with pytest.raises(DatasetError, match="12 recordings in 4 groups; the 5 folds need at least one each"):
        folds_of(entries_of("a" * 12, list("1234") * 3), seed=0)


def test_a_recording_in_two_folds_is_refused():
    entries = entries_of("a" * 10)
    entries[7] = Sound("again.wav", "a", "", entries[2].sha256)
    with pytest.raises(DatasetError, match=r"2\.wav and again\.wav are the same recording, in two folds"):
        folds_of(entries, seed=0)
    one_group = [Sound(e.id, e.label, "x" if e.sha256 == entries[2].sha256 else "", e.sha256) for e in entries]
    folds = folds_of(one_group, seed=0)
    assert folds[7] == folds[2]
