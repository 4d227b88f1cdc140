import math
from itertools import combinations

import numpy as np
import pytest
from scipy import stats

from audio_compositionality.dataset_builder.scenes.sources import (
    EMPTY,
    Quadruple,
    Scene,
    Source,
    count_scenes,
    sample_quadruples,
    sample_scenes,
)
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


def test_the_number_of_scenes_is_counted():
    assert count_scenes(2, 4) == sum(len(list(combinations(range(16), n))) for n in (1, 2, 3, 4))
    assert count_scenes(8, 1) == 4096


class TestSampleScenes:
    scenes = sample_scenes(np.random.default_rng(0), 150_000, 8, 4)
    sizes = (scenes != EMPTY).sum(axis=1)

    def test_no_scene_twice_and_no_source_twice_in_one(self):
        assert len({tuple(row) for row in self.scenes.tolist()}) == 150_000
        for row in self.scenes[:2000].tolist():
            sources = [code for code in row if code != EMPTY]
            assert len(set(sources)) == len(sources)
            assert all(0 <= code < 4096 for code in sources)

    def test_the_scenes_of_one_source_are_exhausted_and_the_rest_is_uniform(self):
        counts = np.bincount(self.sizes, minlength=5)[1:]
        assert 4080 <= counts[0] <= 4096
        assert stats.chisquare(counts[1:]).pvalue > 1e-3

    def test_sources_are_uniform_in_every_attribute(self):
        codes = self.scenes[self.sizes == 4].reshape(-1)
        for place in range(4):
            assert stats.chisquare(np.bincount(codes // 8**place % 8, minlength=8)).pvalue > 1e-3

    @pytest.mark.slow
    def test_the_same_seed_draws_the_same(self):
        again = sample_scenes(np.random.default_rng(0), 150_000, 8, 4)
        other = sample_scenes(np.random.default_rng(1), 150_000, 8, 4)
        assert (again == self.scenes).all()
        assert (other != self.scenes).any()

    def test_a_pool_larger_than_half_of_all_scenes_is_refused(self):
        with pytest.raises(InputError, match="2,516 scenes"):
            sample_scenes(np.random.default_rng(0), 1_259, 2, 4)
        assert len(sample_scenes(np.random.default_rng(0), 1_258, 2, 4)) == 1_258


class TestSampleQuadruples:
    quadruples = sample_quadruples(np.random.default_rng(0), 50_000, 8, 4)
    sizes = (quadruples != EMPTY).sum(axis=2)

    @pytest.mark.slow
    def test_no_candidate_twice_whichever_way_round(self):
        keys = {(frozenset([tuple(a), tuple(c)]), tuple(t)) for a, c, t in self.quadruples.tolist()}
        assert len(keys) == 50_000

    def test_scenes_are_valid(self):
        for a, c, t in self.quadruples[:2000].tolist():
            for base in (a, c):
                scene = [code for code in base + t if code != EMPTY]
                assert 2 <= len(scene) <= 4
                assert len(set(scene)) == len(scene)
            assert a != c

    def test_sizes_follow_the_paper(self):
        # |T| uniform on 1..3; |A| and |C| independent and uniform on 1..4-|T|. Only A = C is refused, which for one
        # source each has a chance of 1/4096.
        assert stats.chisquare(np.bincount(self.sizes[:, 2])[1:]).pvalue > 1e-3
        for t_size in (1, 2):
            a, c = self.sizes[self.sizes[:, 2] == t_size][:, :2].T
            joint = np.histogram2d(a, c, bins=np.arange(1, 6 - t_size) - 0.5)[0]
            assert stats.chisquare(joint.ravel()).pvalue > 1e-3
        assert (self.sizes[self.sizes[:, 2] == 3][:, :2] == 1).all()

    def test_a_pool_that_cannot_be_filled_is_refused(self):
        available = sum(math.comb(16, n) for n in (1, 2)) ** 2
        with pytest.raises(InputError, match=f"{available:,}"):
            sample_quadruples(np.random.default_rng(0), available // 100 + 1, 2, 2)
