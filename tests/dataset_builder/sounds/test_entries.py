"""What is said of recordings."""

import pytest

from audio_compositionality.dataset_builder.sounds.entries import related


@pytest.mark.parametrize(
    ("condition", "other", "expected"),
    [
        ("flite/awb", "flite/slt", True),
        ("flite/awb", "flite/awb", True),
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
