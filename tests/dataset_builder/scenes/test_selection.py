from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from audio_compositionality.dataset_builder.scenes.entrofy import (
    attribute_classes,
    entropy_bins,
    objective,
    quadruple_entropy,
    scene_entropy,
    select_balanced,
    split_balanced,
    uniform_targets,
)
from audio_compositionality.dataset_builder.scenes.sources import EMPTY, Source, sample_quadruples, sample_scenes
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


def test_the_entropy_of_a_quadruple_is_the_sum_of_its_parts():
    quadruples = sample_quadruples(np.random.default_rng(1), 200, 8, 4)
    parts = sum(scene_entropy(quadruples[:, part], 8) for part in range(3))
    assert quadruple_entropy(quadruples, 8) == pytest.approx(parts)


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
    published = max(objective(bins[greedy_by_candidate(bins, 300, rng)], targets) for _ in range(15))
    ours = objective(bins[select_balanced(bins, 300, rng)], targets)
    assert ours >= published - 1e-9
    assert ours == pytest.approx(sum(np.sqrt(target).sum() for target in targets))


def test_a_small_selection_is_optimal():
    bins = np.random.default_rng(3).integers(0, 3, (12, 2))
    targets = uniform_targets(bins, 6)
    best = max(objective(bins[list(choice)], targets) for choice in combinations(range(12), 6))
    assert objective(bins[select_balanced(bins, 6, np.random.default_rng(0))], targets) == pytest.approx(best)


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
