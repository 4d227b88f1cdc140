import math
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from audio_compositionality.dataset_builder.scenes.selection import (
    attribute_classes,
    count_scenes,
    entropy_bins,
    objective,
    quadruple_entropy,
    sample_quadruples,
    sample_scenes,
    scene_entropy,
    select_balanced,
    split_balanced,
    uniform_targets,
)
from audio_compositionality.dataset_builder.scenes.sources import EMPTY, Source
from audio_compositionality.support.errors import InputError


def codes_of(*sources: Source, width: int = 4) -> np.ndarray:
    return np.array([[source.code(8) for source in sources] + [EMPTY] * (width - len(sources))], np.int32)


def test_entropy_worked_by_hand():
    # Timbres 0, 0, 0, 1: -(3/4 log 3/4 + 1/4 log 1/4) / log 8 = 0.8113 bits / 3 bits. Pitches all differ: 2 / 3.
    # Rates 5, 5, 6, 6: 1 / 3. Amplitudes agree: 0.
    scene = codes_of(Source(0, 0, 5, 7), Source(0, 1, 5, 7), Source(0, 2, 6, 7), Source(1, 3, 6, 7))
    assert scene_entropy(scene, 8)[0] == pytest.approx([0.811278 / 3, 2 / 3, 1 / 3, 0], abs=1e-6)


def test_entropy_agrees_with_scipy():
    scenes = sample_scenes(np.random.default_rng(1), 500, 8, 4)
    found = scene_entropy(scenes, 8)
    classes = attribute_classes(scenes, 8)
    for scene, values, expected in zip(scenes, classes, found, strict=True):
        for attribute in range(4):
            counts = np.bincount(values[scene != EMPTY, attribute])
            assert stats.entropy(counts) / np.log(8) == pytest.approx(expected[attribute], abs=1e-12)


def test_bins_have_equal_width_from_zero_to_the_largest():
    entropy = np.array([[0.0], [0.19], [0.2], [0.39], [0.41], [0.999], [1.0]])
    assert entropy_bins(entropy).ravel().tolist() == [0, 0, 1, 1, 2, 4, 4]
    assert entropy_bins(np.zeros((3, 2))).tolist() == [[0, 0]] * 3


def greedy_by_candidate(bins: np.ndarray, count: int, rng: np.random.Generator) -> list[int]:
    """Entrofy's published greedy step: at each turn the candidate of largest gain, drawn among those that tie."""
    targets = uniform_targets(bins, count)
    counts = [np.zeros(len(target)) for target in targets]
    left = np.ones(len(bins), bool)
    chosen = []
    for _ in range(count):
        gains = np.zeros(len(bins))
        for column, target, have in zip(bins.T, targets, counts, strict=True):
            step = np.sqrt(np.minimum(target, have + 1)) - np.sqrt(np.minimum(target, have))
            gains += step[column]
        gains[~left] = -1
        best = rng.choice(np.flatnonzero(gains > gains.max() - 1e-12))
        chosen.append(best)
        left[best] = False
        for column, have in zip(bins.T, counts, strict=True):
            have[column[best]] += 1
    return chosen


@pytest.mark.parametrize("kind", ["scenes", "quadruples"])
def test_the_objective_reaches_that_of_the_published_greedy(kind):
    rng = np.random.default_rng(5)
    if kind == "scenes":
        bins = entropy_bins(scene_entropy(sample_scenes(rng, 5_000, 8, 4), 8))
    else:
        bins = entropy_bins(quadruple_entropy(sample_quadruples(rng, 5_000, 8, 4), 8))
    targets = uniform_targets(bins, 300)
    published = max(objective(bins[greedy_by_candidate(bins, 300, rng)], targets) for _ in range(5))
    ours = objective(bins[select_balanced(bins, 300, rng)], targets)
    assert ours >= published - 1e-9
    assert ours == pytest.approx(sum(np.sqrt(target).sum() for target in targets))


@settings(deadline=None, max_examples=50)
@given(st.integers(1, 60), st.integers(1, 60), st.integers(0, 100))
def test_a_selection_has_the_size_asked_for_and_no_repeats(candidates, count, seed):
    rng = np.random.default_rng(seed)
    bins = rng.integers(0, 4, (candidates, 3))
    if count > candidates:
        with pytest.raises(InputError, match="cannot be chosen"):
            select_balanced(bins, count, rng)
    else:
        chosen = select_balanced(bins, count, rng)
        assert len(set(chosen.tolist())) == count
        assert 0 <= chosen.min() <= chosen.max() < candidates


def test_splits_are_disjoint_and_balanced():
    rng = np.random.default_rng(2)
    bins = rng.integers(0, 4, (1000, 4))
    parts = split_balanced(bins, [800, 100, 100], rng)
    assert sorted(np.concatenate(parts).tolist()) == list(range(1000))
    assert [len(part) for part in parts] == [800, 100, 100]
    # Dealt along the rows in order of the first attribute: its shares differ by no more than one row a bin.
    shares = [np.bincount(bins[part][:, 0], minlength=4) / len(part) for part in parts]
    assert np.abs(shares[1] - shares[0]).max() <= 1.5 / 100
    assert np.abs(shares[2] - shares[0]).max() <= 1.5 / 100


def test_splits_that_do_not_add_up_are_refused():
    with pytest.raises(InputError, match="do not add up to the 10"):
        split_balanced(np.zeros((10, 4), np.int64), [8, 1], np.random.default_rng(0))


def test_the_number_of_scenes_is_counted():
    assert count_scenes(2, 4) == sum(len(list(combinations(range(16), n))) for n in (1, 2, 3, 4))
    assert count_scenes(8, 1) == 4096


class TestSampleScenes:
    def test_scenes_differ_and_those_of_one_source_are_exhausted_and_the_rest_and_its_sources_are_uniform(self):
        scenes = sample_scenes(np.random.default_rng(0), 150_000, 8, 4)
        assert len(np.unique(scenes, axis=0)) == 150_000
        for row in scenes[:2000].tolist():
            sources = [code for code in row if code != EMPTY]
            assert len(set(sources)) == len(sources)
            assert all(0 <= code < 4096 for code in sources)
        sizes = (scenes != EMPTY).sum(axis=1)
        counts = np.bincount(sizes, minlength=5)[1:]
        assert 4080 <= counts[0] <= 4096
        assert stats.chisquare(counts[1:]).pvalue > 1e-3
        codes = scenes[sizes == 4].reshape(-1)
        for place in range(4):
            assert stats.chisquare(np.bincount(codes // 8**place % 8, minlength=8)).pvalue > 1e-3

    def test_a_pool_larger_than_half_of_all_scenes_is_refused(self):
        with pytest.raises(InputError, match="2,516 scenes"):
            sample_scenes(np.random.default_rng(0), 1_259, 2, 4)
        assert len(sample_scenes(np.random.default_rng(0), 1_258, 2, 4)) == 1_258


class TestSampleQuadruples:
    def test_scenes_are_valid_no_candidate_is_there_twice_whichever_way_round_and_sizes_follow_the_paper(self):
        quadruples = sample_quadruples(np.random.default_rng(0), 20_000, 8, 4)
        keys = {(frozenset([tuple(a), tuple(c)]), tuple(t)) for a, c, t in quadruples.tolist()}
        assert len(keys) == 20_000
        for a, c, t in quadruples[:2000].tolist():
            for base in (a, c):
                scene = [code for code in base + t if code != EMPTY]
                assert 2 <= len(scene) <= 4
                assert len(set(scene)) == len(scene)
            assert a != c
        # |T| uniform on 1..3; |A| and |C| independent and uniform on 1..4-|T|. Only A = C is refused, which for one
        # source each has a chance of 1/4096.
        sizes = (quadruples != EMPTY).sum(axis=2)
        assert stats.chisquare(np.bincount(sizes[:, 2])[1:]).pvalue > 1e-3
        for t_size in (1, 2):
            a, c = sizes[sizes[:, 2] == t_size][:, :2].T
            joint = np.histogram2d(a, c, bins=np.arange(1, 6 - t_size) - 0.5)[0]
            assert stats.chisquare(joint.ravel()).pvalue > 1e-3
        assert (sizes[sizes[:, 2] == 3][:, :2] == 1).all()

    def test_a_pool_that_cannot_be_filled_is_refused(self):
        available = sum(math.comb(16, n) for n in (1, 2)) ** 2
        with pytest.raises(InputError, match=f"{available:,}"):
            sample_quadruples(np.random.default_rng(0), available // 100 + 1, 2, 2)
