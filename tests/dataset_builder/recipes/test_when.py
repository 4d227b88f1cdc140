"""Clips in which one of three sounds is asked about: what the times alone and the label alone give away."""

from __future__ import annotations

from collections import Counter, defaultdict
from itertools import pairwise

import numpy as np
import pytest

from audio_compositionality.dataset_builder.data import DatasetError
from audio_compositionality.dataset_builder.recipes.when import FOLDS, RECIPE, WhenSpec
from audio_compositionality.support.errors import InputError

SMALL = WhenSpec(groups=20)


@pytest.fixture(scope="module")
def rendering():
    return RECIPE.render(SMALL)


def test_the_three_clips_of_a_group_ask_for_each_span_once(rendering):
    for number in range(0, len(rendering.rows), 3):
        rows = rendering.rows[number : number + 3]
        assert len({(row["group"], row["label"], row["question"]) for row in rows}) == 1
        assert len({frozenset(event["label"] for event in row["events"]) for row in rows}) == 1
        places = [[event["label"] for event in row["events"]].index(row["label"]) for row in rows]
        assert sorted(places) == [0, 1, 2]
        # Of the spans, but for a decay that is cut by the threshold of loudness.
        onsets = [sorted(event["onset"] for event in row["events"]) for row in rows]
        assert np.ptp(onsets, axis=0).max() < 0.1


def test_times_are_those_of_the_sound(rendering):
    """In the only part of a clip where nothing but one sound is heard, there is sound; outside of all there is none."""
    for index in range(6):
        (clip,), row = rendering.clips(index), rendering.rows[index]
        assert len(clip) == round(row["duration"] * 16_000)
        events = sorted((event["onset"], event["offset"]) for event in row["events"])
        levels = np.square(clip.astype(float)).reshape(-1, 160).mean(axis=1)
        heard = np.zeros(len(levels), bool)
        for onset, offset in events:
            heard[round(100 * onset) : round(100 * offset)] = True
            assert levels[round(100 * onset) : round(100 * onset) + 5].max() > 1e-4 * levels.max()
        # A sound may fade below the threshold before its span ends.
        assert levels[~heard].max() < 1e-2 * levels.max()


def test_each_sound_is_alone_and_ends_apart(rendering):
    for row in rendering.rows:
        for side in ("onset", "offset"):
            times = sorted(event[side] for event in row["events"])
            assert min(b - a for a, b in pairwise(times)) > SMALL.gap - 0.1
        assert all(SMALL.shortest - 0.3 < e["offset"] - e["onset"] <= SMALL.longest + 0.01 for e in row["events"])
    asked = Counter(row["label"] for row in rendering.rows).values()
    assert max(asked) - min(asked) <= 6


def test_sounds_of_a_fold_are_in_no_other():
    used = defaultdict(set)
    for one in RECIPE.render(WhenSpec(groups=40)).drawn:
        used[one.row["fold"]] |= {event.entry for clip in one.clips for event in clip}
    assert set(used) == set(range(FOLDS))
    assert sum(map(len, used.values())) == len(set().union(*used.values()))


@pytest.mark.parametrize(
    ("changes", "message"),
    [({"longest": 3}, "three sounds of this length need 9 s"), ({"shortest": 2.5}, "must not decrease")],
)
def test_spans_that_do_not_fit_are_refused(changes, message):
    with pytest.raises(InputError, match=message):
        SMALL.changed(**changes)


def test_a_row_states_a_sound_of_its_clip(rendering):
    row = dict(rendering.rows[0])
    RECIPE.check_row(row)
    with pytest.raises(DatasetError, match="not one of its events"):
        RECIPE.check_row({**row, "onset": row["onset"] + 0.01})
