"""The scenes that are transformed."""

from collections import Counter

import numpy as np
import pytest

from audio_compositionality.dataset_builder.scenes.bases import draw_bases, most_singles
from audio_compositionality.dataset_builder.scenes.sources import SceneSpec
from audio_compositionality.dataset_builder.sounds.tones import ATTRIBUTES, default_voices

SETTINGS = SceneSpec(max_sources=3)


@pytest.fixture(scope="module")
def bases():
    return list(draw_bases(SETTINGS, 400))


def test_half_are_single_sources_and_no_two_are_the_same(bases):
    assert {len(base.sources) for base in bases[::2]} == {1}
    counts = Counter(len(base.sources) for base in bases[1::2])
    assert set(counts) == {2, 3}
    # 200 fair draws: 7 of standard deviation.
    assert abs(counts[2] - counts[3]) < 2 * 3.5 * 7
    assert len({frozenset(base.sources) for base in bases}) == 400


def test_each_class_is_met_as_often_among_single_sources(bases):
    for attribute in ATTRIBUTES:
        assert np.bincount([getattr(base.sources[0], attribute) for base in bases[::2]]).tolist() == [25] * 8


def test_each_fold_has_as_many_of_both_kinds(bases):
    for kind in (bases[::2], bases[1::2]):
        assert np.bincount([base.fold for base in kind]).tolist() == [40] * 5


def test_a_longer_list_begins_with_the_shorter(bases):
    assert list(draw_bases(SETTINGS, 30)) == bases[:30]
    assert list(draw_bases(SETTINGS.changed(seed=1), 30)) != bases[:30]


def test_onsets_lie_within_the_period(bases):
    for base in bases:
        for source, onset in zip(base.sources, base.onsets, strict=True):
            assert 0 <= onset < SETTINGS.periods[source.rate]
    assert all(set(base.onsets) == {0} for base in draw_bases(SETTINGS.changed(onset="locked"), 20))


def test_as_many_as_there_may_be_can_be_drawn():
    few = SceneSpec(num_classes=2, max_sources=2, voices=default_voices()[:2])
    assert most_singles(few) == 8
    assert len({frozenset(base.sources) for base in draw_bases(few, 16)}) == 16
    assert len({frozenset(base.sources) for base in draw_bases(few, 6, 5)}) == 11
    assert most_singles(SETTINGS) == 2_048


def test_further_ones_are_single_sources_of_the_same_stream(bases):
    further = list(draw_bases(SETTINGS, 41, 100))
    assert further[:41] == bases[:41]
    singles = [base.sources for base in further if len(base.sources) == 1]
    assert singles[:121] == [base.sources for base in draw_bases(SETTINGS, 242) if len(base.sources) == 1]
    assert np.bincount([base.fold for base in further if len(base.sources) == 1]).tolist() == [25, 24, 24, 24, 24]
