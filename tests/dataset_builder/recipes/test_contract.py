"""Every recipe keeps one contract, whatever it draws."""

import re

import numpy as np
import pytest
from datasets import Audio, Dataset, Features

from audio_compositionality.dataset_builder.build import build_dataset
from audio_compositionality.dataset_builder.data import DatasetError
from audio_compositionality.dataset_builder.open_data import open_data
from audio_compositionality.dataset_builder.recipes import list_recipes, load_recipe
from audio_compositionality.dataset_builder.rendered import rendered_preset

SMALL = {
    "a_coat": {"quadruples": 6, "quadruple_candidates": 600},
    "a_coat_instances": {"blocks": 3},
    "a_coat_recordings": {"quadruples": 6},
    "a_tre": {"scene_candidates": 600, "train_scenes": 8, "validation_scenes": 4, "test_scenes": 4},
    "audio_text_retrieval": {"clips": 8},
    "binding": {"trials": 6},
    "comp_a_attribute": {"items": 8},
    "comp_a_order": {"items": 8},
    "comp_a_train": {"train_rows": 8, "validation_rows": 4},
    "factors": {"stars": 2, "crossed_levels": (2, 2, 2, 2)},
    "polybench": {"train_sets": 1, "test_sets": 1},
    "polybench_apart": {"train_sets": 1, "test_sets": 1},
    "polybench_atoms": {"train_sets": 1, "test_sets": 1},
    "rate_binding": {"low_notes": (57,), "high_notes": (75,), "swells": (5, 10)},
    "transforms": {"bases": 10, "untransformed": 4, "transforms": ("gain",)},
    "zero_shot_audio": {"clips": 16},
}
"""Changes to the preset mini that leave few rows."""

FEWER = {
    "a_coat_instances": {"blocks": 2},
    "a_coat_recordings": {"quadruples": 3},
    "binding": {"trials": 4},
    "comp_a_attribute": {"items": 5},
    "comp_a_order": {"items": 5},
    "factors": {"stars": 1},
}
"""The same with fewer rows, where those are the first of more."""

RECIPES = [name for name in list_recipes() if name != "toys"]


@pytest.fixture(scope="module", params=RECIPES)
def configuration(request):
    """A few rows of each recipe."""
    return small(request.param)


def small(name, **changes):
    return rendered_preset("mini", recipes=[name], **{**SMALL[name], **changes}).configuration(name)


def audio_columns(features):
    return {name for name, feature in features.items() if isinstance(getattr(feature, "feature", feature), Audio)}


def test_every_recipe_is_here():
    assert set(SMALL) == set(RECIPES)


def test_ids_are_of_their_own_and_splits_follow_each_other(configuration):
    ids = [row["id"] for row in configuration.rows]
    assert len(set(ids)) == len(ids) > 0
    splits = load_recipe(configuration.recipe).splits
    places = [splits.index(row["split"]) for row in configuration.rows]
    assert places == sorted(places)


def test_features_hold_what_rows_say(configuration):
    features = configuration.features
    silent = [name for name in features if name not in audio_columns(features)]
    rows = [{name: row[name] for name in silent} for row in configuration.rows]
    assert all({*row, *audio_columns(features)} - {"split"} == set(features) for row in configuration.rows)
    stored = Dataset.from_list(rows, features=Features({name: features[name] for name in silent}))
    for row, read in zip(rows, stored, strict=True):
        assert read == row
        load_recipe(configuration.recipe).check_row({**read, "split": "test"})


def test_clips_have_names_and_are_16_bits_under_full_scale(configuration):
    recipe, rendering = load_recipe(configuration.recipe), configuration.rendering
    for index in range(min(3, len(configuration.rows))):
        clips = rendering.clips(index)
        names = recipe.clip_names(configuration.rows[index])
        assert len(clips) == len(set(names)) > 0
        assert {name.partition("/")[0] for name in names} <= audio_columns(configuration.features)
        for clip in clips:
            assert clip.dtype == np.int16
            assert 0 < np.abs(clip.astype(int)).max() < 2**15
        if recipe.one_length:
            assert len({len(clip) for clip in clips}) == 1


def test_a_row_in_which_a_column_is_damaged_is_refused(configuration):
    recipe = load_recipe(configuration.recipe)
    silent = [name for name in configuration.features if name not in {*audio_columns(configuration.features), "id"}]
    row = dict(configuration.rows[0])
    for name in silent:
        with pytest.raises(DatasetError, match=re.escape(row["id"])):
            recipe.check_row({**row, name: {"no": "column"}})


def test_the_card_names_every_column(configuration):
    card = configuration.description
    missing = [name for name in configuration.features if f"`{name}`" not in card]
    assert missing == []
    assert not card.startswith("#")
    assert "{{" not in card
    assert "None" not in card
    # What is included ends its line.
    assert not re.search(r"[a-z]\.[A-Z][a-z]", card)


@pytest.mark.slow
def test_the_same_spec_draws_the_same_rows_and_another_seed_others(configuration):
    name = configuration.recipe
    again = small(name)
    assert again.fingerprint == configuration.fingerprint
    assert list(again.rows) == list(configuration.rows)
    other = small(name, seed=7)
    assert other.fingerprint != configuration.fingerprint
    if name not in ("audio_text_retrieval", "zero_shot_audio"):
        assert list(other.rows) != list(configuration.rows)


@pytest.mark.parametrize("name", FEWER)
def test_fewer_rows_are_the_first_of_more(name):
    more, fewer = small(name), small(name, **FEWER[name])
    split = [row for row in more.rows if row["split"] == fewer.rows[0]["split"]]
    count = len(fewer.rows) if name != "factors" else 30
    assert list(fewer.rows)[:count] == split[:count]


@pytest.mark.slow
@pytest.mark.parametrize("name", RECIPES)
def test_built_clips_are_the_rendered_ones_bit_for_bit(name, tmp_path):
    data = rendered_preset("mini", recipes=[name], **SMALL[name])
    build_dataset(data, tmp_path / "built", audio_format="wav", progress=False, workers=1)
    stored, rendered = open_data(str(tmp_path / "built")).configuration(name), data.configuration(name)
    assert stored.fingerprint == rendered.fingerprint
    assert list(stored.clip_ids) == list(rendered.clip_ids)
    for read, made in zip(stored.clips(), rendered.clips(), strict=True):
        assert (read.id, read.sample_rate, read.problem) == (made.id, made.sample_rate, None)
        np.testing.assert_array_equal(read.waveform, made.waveform)
