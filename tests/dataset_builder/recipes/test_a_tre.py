"""Scenes of three splits: none is in two, entropies are even in each, onsets fill the period."""

import math

import pytest

from audio_compositionality.dataset_builder.recipes.a_tre import RECIPE, draw_scenes
from audio_compositionality.dataset_builder.sounds.tones import ATTRIBUTES


@pytest.fixture(scope="module")
def scenes():
    return draw_scenes(RECIPE.presets["full"])


@pytest.mark.slow
def test_no_scene_is_in_two_splits_or_twice_in_one(scenes):
    assert len({scene.key for scene in scenes}) == len(scenes) == 10_000


@pytest.mark.slow
def test_splits_have_their_sizes_in_order_and_near_uniform_entropies():
    full = RECIPE.render(RECIPE.presets["full"])
    splits = [row["split"] for row in full.rows]
    assert splits == ["train"] * 8_000 + ["validation"] * 1_000 + ["test"] * 1_000
    assert len({row["id"] for row in full.rows}) == 10_000
    for split, size in full.spec.split_sizes.items():
        rows = [row for row in full.rows if row["split"] == split][:1_000]
        for attribute in ATTRIBUTES:
            # The attainable values 0, .27-.33, .50-.53 and .67 fall into four of five bins.
            values = [row["entropy"][attribute] for row in rows]
            shares = [
                sum(low <= value < high for value in values) / len(rows)
                for low, high in ((0, 0.1), (0.1, 0.4), (0.4, 0.6), (0.6, 0.7))
            ]
            tolerance = 0.01 if size <= 1_000 else 3 * math.sqrt(0.25 * 0.75 / 1_000)
            assert shares == pytest.approx([0.25] * 4, abs=tolerance)


def test_onsets_lie_within_the_period_and_fill_it(scenes):
    periods = RECIPE.presets["full"].periods
    phases = [
        onset / periods[source.rate]
        for scene in scenes
        for source, onset in zip(scene.sources, scene.onsets, strict=True)
    ]
    assert 0 <= min(phases) < 0.001
    assert 0.999 < max(phases) < 1


def test_locked_onsets_are_zero(small_data):
    locked = RECIPE.render(small_data.settings["a_tre"].changed(onset="locked"))
    assert all(onset == 0 for row in locked.rows for onset in row["onsets"])


def test_gains_are_those_of_the_labels(small_data):
    for row in small_data.configuration("a_tre").rows:
        decibels = [float(source["amplitude_label"].removesuffix(" dB")) for source in row["metadata"]]
        assert row["gains"] == pytest.approx([10 ** (decibel / 20) for decibel in decibels], rel=1e-4)
