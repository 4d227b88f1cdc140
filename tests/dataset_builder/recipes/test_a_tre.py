"""Scenes of three splits: none is in two, entropies are even in each, onsets fill the period."""

import math

import pytest

from audio_compositionality.dataset_builder.recipes.a_tre import RECIPE
from audio_compositionality.dataset_builder.sounds.tones import ATTRIBUTES

FULL = RECIPE.presets["full"]


@pytest.mark.slow
def test_splits_have_their_sizes_near_uniform_entropies_and_no_scene_in_common():
    rows = RECIPE.render(FULL).rows
    assert [row["split"] for row in rows] == ["train"] * 8_000 + ["validation"] * 1_000 + ["test"] * 1_000
    assert len({row["id"] for row in rows}) == 10_000
    assert len({frozenset(tuple(source.values()) for source in row["metadata"]) for row in rows}) == 10_000
    for split, size in FULL.split_sizes.items():
        of_split = [row for row in rows if row["split"] == split][:1_000]
        for attribute in ATTRIBUTES:
            # The attainable values 0, .27-.33, .50-.53 and .67 fall into four of five bins.
            values = [row["entropy"][attribute] for row in of_split]
            shares = [
                sum(low <= value < high for value in values) / len(of_split)
                for low, high in ((0, 0.1), (0.1, 0.4), (0.4, 0.6), (0.6, 0.7))
            ]
            tolerance = 0.01 if size <= 1_000 else 3 * math.sqrt(0.25 * 0.75 / 1_000)
            assert shares == pytest.approx([0.25] * 4, abs=tolerance)
    periods = dict(zip(FULL.labels["rate"], FULL.periods, strict=True))
    phases = [
        onset / periods[source["rate_label"]]
        for row in rows
        for source, onset in zip(row["metadata"], row["onsets"], strict=True)
    ]
    assert 0 <= min(phases) < 0.001
    assert 0.999 < max(phases) < 1


def test_gains_are_those_of_the_labels_and_locked_onsets_are_zero(small_data):
    for row in small_data.configuration("a_tre").rows:
        decibels = [float(source["amplitude_label"].removesuffix(" dB")) for source in row["metadata"]]
        assert row["gains"] == pytest.approx([10 ** (decibel / 20) for decibel in decibels], rel=1e-4)
    locked = RECIPE.render(small_data.settings["a_tre"].changed(onset="locked"))
    assert all(onset == 0 for row in locked.rows for onset in row["onsets"])
