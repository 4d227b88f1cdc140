"""The scenes of the presets, and which rows are refused."""

import math

import pytest

from audio_compositionality.dataset_builder.data import DatasetError
from audio_compositionality.dataset_builder.recipes.a_tre import RECIPE, SplitSceneSpec, draw_scenes
from audio_compositionality.dataset_builder.sounds.tones import ATTRIBUTES
from audio_compositionality.support.errors import InputError

SOURCE = {"timbre_label": "a", "pitch_label": "b", "rate_label": "c", "amplitude_label": "d"}


def test_the_presets_have_the_sizes_that_are_documented():
    sizes = {name: list(settings.split_sizes.values()) for name, settings in RECIPE.presets.items()}
    mini, full = [512, 64, 64], [8_000, 1_000, 1_000]
    assert sizes == {"mini": mini, "full": full, "paper-mini": mini, "paper-full": full}
    assert {settings.scene_candidates for settings in RECIPE.presets.values()} == {150_000}


@pytest.mark.parametrize("size", ["mini", "full"])
def test_the_presets_after_the_papers_letter_differ_in_onset_alone(size):
    letter = RECIPE.presets[size].changed(onset="locked")
    assert RECIPE.presets[f"paper-{size}"] == letter
    assert letter.values() != RECIPE.presets[size].values()


@pytest.mark.parametrize("changes", [{"test_scenes": 0}, {"train_scenes": 149_000}])
def test_settings_out_of_range_are_refused(changes):
    with pytest.raises(InputError, match="_scenes is"):
        SplitSceneSpec(**changes)


@pytest.fixture(scope="module")
def full():
    return RECIPE.render(RECIPE.presets["full"])


@pytest.fixture(scope="module")
def scenes():
    return draw_scenes(RECIPE.presets["full"])


class TestFull:
    @pytest.mark.slow
    def test_no_scene_is_in_two_splits_or_twice_in_one(self, scenes):
        assert len({scene.key for scene in scenes}) == len(scenes) == 10_000

    @pytest.mark.slow
    def test_splits_have_their_sizes_in_order(self, full):
        splits = [row["split"] for row in full.rows]
        assert splits == ["train"] * 8_000 + ["validation"] * 1_000 + ["test"] * 1_000
        assert len({row["id"] for row in full.rows}) == 10_000

    @pytest.mark.slow
    def test_entropies_are_near_uniform_in_every_split(self, full):
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

    def test_onsets_lie_within_the_period_and_fill_it(self, scenes):
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


def test_a_row_without_its_sources_is_refused():
    for metadata in (None, [], {"A": [SOURCE]}):
        with pytest.raises(DatasetError, match=r"metadata is .*; it is a list of 1 or more structures of timbre_label"):
            RECIPE.check_row({"id": "x", "metadata": metadata})
    with pytest.raises(DatasetError, match=r"row x: metadata is .*; it is a list of 1 or more structures of timbre"):
        RECIPE.check_row({"id": "x", "metadata": [{**SOURCE, "pitch_label": None}]})
    RECIPE.check_row({"id": "x", "metadata": [SOURCE]})
