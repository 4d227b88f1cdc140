import numpy as np
import pytest

from audio_compositionality.dataset_builder.scenes.sources import Quadruple, Scene, Source
from audio_compositionality.support.errors import InputError

BELL = Source(0, 1, 2, 3)
REED = Source(4, 5, 6, 7)
PAD = Source(1, 1, 1, 1)


def test_codes_number_all_sources_once():
    codes = [Source(*digits).code(3) for digits in np.ndindex(3, 3, 3, 3)]
    assert codes == list(range(81))
    assert [Source.from_code(code, 3).code(3) for code in codes] == codes


@pytest.mark.parametrize("code", [-1, 81])
def test_a_code_out_of_range_is_refused(code):
    with pytest.raises(InputError, match=f"code is {code}"):
        Source.from_code(code, 3)


def test_a_class_out_of_range_is_refused():
    with pytest.raises(InputError, match="pitch is -1"):
        Source(0, -1, 0, 0)
    with pytest.raises(InputError, match="class of 3 or more"):
        Source(0, 3, 0, 0).code(3)


def test_a_scene_holds_each_source_once():
    with pytest.raises(InputError, match="holds a source twice"):
        Scene("x", "train", (BELL, BELL), (0, 1))
    with pytest.raises(InputError, match="has no source"):
        Scene("x", "train", (), ())
    with pytest.raises(InputError, match="1 sources but 2 onsets"):
        Scene("x", "train", (BELL,), (0, 1))


def test_the_key_of_a_scene_leaves_onsets_and_order_out():
    assert Scene("x", "train", (BELL, REED), (0, 1)).key == Scene("y", "test", (REED, BELL), (5, 6)).key


def test_a_quadruple_adds_other_sources_to_different_scenes():
    with pytest.raises(InputError, match="A and T share"):
        Quadruple("x", (BELL,), (REED,), (BELL,), (0,), (0,), (0,))
    with pytest.raises(InputError, match="C and T share"):
        Quadruple("x", (BELL,), (REED,), (REED,), (0,), (0,), (0,))
    with pytest.raises(InputError, match="A and C are the same"):
        Quadruple("x", (BELL,), (BELL,), (PAD,), (0,), (1,), (0,))
