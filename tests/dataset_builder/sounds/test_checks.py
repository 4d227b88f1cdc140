"""Checks that all sounds share."""

import re

import numpy as np
import pytest

from audio_compositionality.dataset_builder.data import DatasetError
from audio_compositionality.dataset_builder.sounds.entries import Sound
from audio_compositionality.dataset_builder.sounds.recordings import Decoded
from audio_compositionality.dataset_builder.sounds.splits import alike, check_apart, copies_of, is_silent, sound_fault

RATE = 8_000


def decoded(samples):
    return Decoded(np.asarray(samples, np.float32), RATE, "", "")


@pytest.mark.parametrize(
    ("samples", "fault"),
    [
        (np.full(1_999, 0.1), r"lasts 0\.250 s; 0\.25 s are the least"),
        (np.zeros(8_000), r"nearly silent in its middle \(no sound at all;"),
        (np.full(8_000, 0.0009), r"nearly silent in its middle \(-61 dB; -60 dB below full scale are the least\)"),
        # What is heard before the middle ten seconds does not count.
        (np.concatenate([np.full(8_000, 0.5), np.zeros(10 * RATE)]), None),
        (np.concatenate([np.full(8_000, 0.5), np.zeros(14 * RATE)]), "nearly silent in its middle"),
        (np.full(2_000, 0.002), None),
    ],
)
def test_what_is_too_short_or_nearly_silent_cannot_be_used(samples, fault):
    found = sound_fault(decoded(samples))
    assert found is None if fault is None else re.search(fault, found)


def test_what_16_bits_do_not_hold_is_silent():
    assert is_silent(np.full(9, 2**-17, np.float32))
    assert not is_silent(np.full(9, -(2**-15), np.float32))


def test_copies_are_those_of_one_content():
    assert copies_of(["a1", "b1", "a2", "c1", "c2"], lambda item: item[0]) == [["a1", "a2"], ["c1", "c2"]]


def test_one_sound_on_two_sides_is_refused():
    entries = [Sound(name, "x", "", digest) for name, digest in (("one", "f"), ("two", "0"), ("three", "f"))]
    check_apart(entries, ["test", "train", "test"], "splits")
    with pytest.raises(
        DatasetError, match="one and three are the same recording, in two splits; leave one out, or give"
    ):
        check_apart(entries, ["test", "train", "train"], "splits")


def test_labels_that_read_alike_are_found():
    assert alike(["Dog", "cat", "dog"], str.casefold) == ("Dog", "dog")
    assert alike(["Dog", "cat", "Dog"], str.casefold) is None
