"""Which label a recording of several has, and which conditions are related."""

import pytest

from audio_compositionality.dataset_builder.sounds.entries import related
from audio_compositionality.dataset_builder.sounds.labels import specific_labels, split_labels


@pytest.mark.parametrize(
    ("texts", "separator", "support", "expected"),
    [
        (
            ["Guitar,Strings,Music"] * 3 + ["Harp,Strings,Music"] * 3 + ["Drum,Music"] * 3,
            ",",
            3,
            ["Guitar"] * 3 + ["Harp"] * 3 + ["Drum"] * 3,
        ),
        # Only labels above, two at once, a label that is above neither, none.
        (
            ["a,top"] * 3 + ["b,top"] * 3 + ["top", "a,b,top", "a,top,rare", ""],
            ",",
            3,
            ["a"] * 3 + ["b"] * 3 + [None] * 4,
        ),
        # All of the one clip "rare" is also "a": that does not put "a" above it.
        ([" a ; top"] * 3 + ["rare;a;top", "top"], ";", 3, ["a"] * 3 + [None, None]),
        ([" a ; top"] * 3 + ["rare;a;top", "top"], ";", 1, [None] * 3 + ["rare", None]),
        # Labels that always come together.
        (["a,b"] * 4, ",", 2, [None] * 4),
    ],
)
def test_the_label_of_several_is_the_one_that_is_above_none(texts, separator, support, expected):
    assert specific_labels([split_labels(text, separator) for text in texts], support) == expected


@pytest.mark.parametrize(
    ("condition", "other", "expected"),
    [
        ("flite/awb", "flite/slt", True),
        ("flite/awb", "espeak-ng/awb", False),
        ("flite", "flite/awb", True),
        ("note48", "note60", False),
        ("note48", "note48", True),
        ("note48", "", False),
        ("", "", False),
        ("/a", "/b", False),
    ],
)
def test_conditions_are_related_by_the_first_part_of_their_paths(condition, other, expected):
    assert related(condition, other) is related(other, condition) is expected
