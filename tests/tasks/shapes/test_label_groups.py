"""Samples by the kinds of sounds that meet in them, and by how often their sounds are met or said."""

from __future__ import annotations

import pytest

from audio_compositionality.tasks.shapes.pairs import (
    BY_WORDS,
    CATEGORY,
    FREQUENCY,
    frequency_groups,
    heard_labels,
    label_groupings,
    said_in,
    spans,
)

from ..captioned import order_row


def row(number, *labels):
    events = [[{"label": label, "start": 0.0, "stop": 1.0} for label in order] for order in (labels, labels[::-1])]
    return order_row(number, id=f"row-{number}", events=events)


def test_kinds_of_sounds_are_those_of_the_labels_whatever_their_order():
    rows = [row(0, "dog barking", "man speaking"), row(1, "woman speaking", "growling"), row(2, "rain", "zither")]
    assert heard_labels(rows[0]) == ("dog barking", "man speaking")
    assert label_groupings(rows)[CATEGORY] == ("dogs + human voice", "dogs + human voice", "water and weather + zither")


def test_frequency_is_that_of_the_rarer_sound_and_needs_a_difference():
    rows = [row(number, "rain", f"sound {number // 3}") for number in range(9)]
    assert set(label_groupings(rows)[FREQUENCY]) == {"3 items"}
    rows += [row(9, "rain", "cough"), row(10, "rain", "siren")]
    assert label_groupings(rows)[FREQUENCY] == ("3 items",) * 9 + ("1 item",) * 2
    assert FREQUENCY not in label_groupings([row(0, "rain", "cough"), row(1, "cough", "rain")])


def test_items_of_which_nothing_is_known_have_none_but_published_ones_have_their_words():
    bare = {"id": "p", "captions": ["A dog barks, then a man speaks"], "events": [[], []]}
    assert label_groupings([bare]) == {}
    named = [bare | {"origin": "published"}, bare | {"origin": "published", "captions": ["a hum", "hums"]}]
    assert label_groupings(named) == {BY_WORDS: ("dogs + human voice", "–")}
    assert label_groupings([]) == {}


def test_a_label_is_said_where_its_words_stand_together_and_whole():
    captions = ["A reed organ, then rain.", "an organ of reed", "Rain! And rain", "training"]
    assert said_in({"reed organ", "rain", "organ"}, captions) == {"reed organ": 1, "rain": 2, "organ": 2}
    rows = [row(0, "rain", "organ"), row(1, "rain", "reed organ"), row(2, "rain", "siren")]
    assert frequency_groups(rows, captions) == ("2 captions", "1 caption", "0 captions")
    assert frequency_groups([*rows, order_row(3, events=[[], []])], captions) == ()


@pytest.mark.parametrize(
    ("counts", "names"),
    [
        ([1, 2, 3, 4, 5, 6], ["1 to 2 x", "1 to 2 x", "3 to 4 x", "3 to 4 x", "5 to 6 x", "5 to 6 x"]),
        ([7, 7, 7], ["7 x"] * 3),
        ([0, 0, 0, 0, 9], ["0 x"] * 4 + ["9 x"]),
    ],
)
def test_groups_are_named_by_what_they_span_and_equal_numbers_are_together(counts, names):
    assert list(spans(counts, "x")) == names
