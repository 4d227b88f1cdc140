"""Trials of binding: the same recordings on both sides, bound otherwise, and other conditions where there are some."""

import dataclasses
from collections import Counter

import numpy as np
import pytest

from audio_compositionality.dataset_builder.recipes.binding import RECIPE, BindingSpec
from audio_compositionality.dataset_builder.sounds.entries import related

from .recorded import ENGINES, RATE, instances

SMALL = BindingSpec(sounds=instances(6), trials=6, duration=0.75, sample_rate=RATE)


def rows_of(**changes):
    return RECIPE.render(SMALL.changed(**changes)).rows


def test_the_four_recordings_are_two_labels_under_two_conditions_all_used_evenly():
    rows = rows_of(trials=30)
    for row in rows:
        w, other = row["labels"]
        for (u, v), names in (
            (row["conditions"], row["instances"]),
            (row["conditions_across"], row["instances_across"]),
        ):
            cells = ((w, u), (other, v), (other, u), (w, v))
            assert [name.rpartition("/")[0] for name in names] == ["/".join(cell) for cell in cells]
        (u, v), (one, two) = row["conditions"], row["conditions_across"]
        assert not related(u, v)
        assert related(u, one)
        assert related(v, two)
        assert len({u, v, one, two}) == 4
    assert set(Counter(label for row in rows for label in row["labels"]).values()) == {10}
    assert set(Counter(c for row in rows for c in row["conditions"] + row["conditions_across"]).values()) == {30}


def test_related_ones_serve_where_there_are_no_others():
    rows = rows_of(sounds=instances(3, conditions=ENGINES[:2]))
    assert all(sorted(row["conditions"]) == sorted(ENGINES[:2]) for row in rows)
    assert not any(row["conditions_across"] for row in rows)


def test_no_group_is_in_both():
    entries = tuple(
        dataclasses.replace(entry, group=entry.condition.replace("flite/slt", "flite/awb"))
        for entry in SMALL.sounds.entries
    )
    rows = rows_of(sounds=dataclasses.replace(SMALL.sounds, entries=entries))
    assert not any(row["conditions_across"] for row in rows)


def test_the_same_recordings_are_placed_and_filtered_anew():
    rendering = RECIPE.render(SMALL)
    row = rendering.rows[0]
    clips = dict(zip(RECIPE.clip_names(row), rendering.clips(0), strict=True))
    assert list(clips) == ["X1", "Y1", "X2", "Y2", "X3/0", "Y3/0"]
    assert {len(clip) for clip in clips.values()} == {6_000}
    assert len({clip.tobytes() for clip in clips.values()}) == 6
    assert max(np.abs(clip.astype(int)).max() for clip in clips.values()) == pytest.approx(0.98 * 2**15, abs=2)
    # The tones of the two recordings that each scene has.
    places = {entry.id: place for place, entry in enumerate(SMALL.sounds.entries)}
    tones = [300 + 40 * (places[name] + 1) for name in row["instances"]]
    for name, scene in (("X1", tones[:2]), ("Y1", tones[2:]), ("X2", tones[:2]), ("Y2", tones[2:])):
        spectrum = np.abs(np.fft.rfft(clips[name], 8_000))
        loud = [max(spectrum[tone - 8 : tone + 9]) for tone in tones]
        assert [one > 0.3 * max(loud) for one in loud] == [tone in scene for tone in tones], name
