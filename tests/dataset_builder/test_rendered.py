"""Presets and data rendered as they are read."""

import pytest

from audio_compositionality.dataset_builder import rendered
from audio_compositionality.dataset_builder.data import DatasetError
from audio_compositionality.dataset_builder.open_data import open_data
from audio_compositionality.dataset_builder.recipes import list_recipes, load_recipe
from audio_compositionality.dataset_builder.rendered import RenderedData, is_preset, preset_names, rendered_preset
from audio_compositionality.support.errors import InputError


def test_every_recipe_has_the_two_presets():
    for name in list_recipes():
        assert load_recipe(name).name == name
        # Questions of others are read, and never drawn.
        assert {"mini", "full"} <= set(load_recipe(name).presets) or name == "audio_questions"
    assert preset_names() == ("mini", "full", "paper-mini", "paper-full")


def test_an_unknown_name_gets_the_nearest(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(InputError, match="unknown preset 'minni'; did you mean 'mini'"):
        rendered_preset("minni")
    with pytest.raises(DatasetError, match=r"no data 'fulll'.*did you mean 'full'"):
        open_data("fulll")
    with pytest.raises(DatasetError, match=r"unknown recipe 'a_cot'; did you mean 'a_coat'"):
        load_recipe("a_cot")
    with pytest.raises(InputError, match=r"no recipe of the preset 'mini' has a setting 'quadruple'; did you mean"):
        rendered_preset("mini", quadruple=3)
    with pytest.raises(DatasetError, match="mini has no data of 'a_tree'; did you mean 'a_tre'"):
        open_data("mini").configuration("a_tree")


def test_a_change_is_made_where_there_is_such_a_setting():
    preset, changed = rendered_preset("mini"), rendered_preset("mini", quadruples=3)
    assert changed.settings["a_coat"].quadruples == 3
    assert changed.settings["a_tre"] == preset.settings["a_tre"]
    for recipe, same in (("a_coat", False), ("a_tre", True)):
        one, other = (data.configuration(recipe).fingerprint for data in (preset, changed))
        assert (one == other) is same
    seeds = rendered_preset("mini", seed=1).settings.values()
    assert {settings.seed for settings in seeds} == {1}


def test_data_are_called_after_what_was_changed_and_are_found_by_it():
    assert rendered_preset("mini", seed=0, onset="random").source == "mini"
    changed = rendered_preset("mini", recipes=["factors"], seed=7, crossed_levels=(2, 2, 2, 2))
    assert changed.source == "mini with seed=7, crossed_levels=2,2,2,2"
    assert is_preset(changed.source)
    again = open_data(changed.source)
    assert again.configuration("factors").fingerprint == changed.configuration("factors").fingerprint
    with pytest.raises(InputError, match="the preset 'mini' has no setting 'sed'; did you mean 'seed'"):
        open_data("mini with sed=7")


def test_parts_are_the_same_clips_as_the_whole(small_data):
    configuration = small_data.configuration("a_coat")
    assert list(configuration.clip_ids) == [f"{row['id']}/{name}" for row in configuration.rows for name in "ABCD"]
    whole = list(configuration.clips())
    for wanted in (range(8, 20), range(5, 6), range(3, 9), range(48, 48)):
        part = list(configuration.clips(wanted))
        assert [clip.id for clip in part] == [whole[place].id for place in wanted]
        assert all((clip.waveform == whole[place].waveform).all() for place, clip in zip(wanted, part, strict=True))
    with pytest.raises(InputError, match=r"clips are range\(0, 49\)"):
        list(configuration.clips(range(49)))


def test_data_need_a_recipe_and_stay_as_they_are(small_data):
    with pytest.raises(DatasetError, match=r"give at least one recipe of a_coat, .*a_tre"):
        RenderedData("none", {})
    assert open_data(small_data) is small_data


def test_data_of_equal_settings_share_their_rows_while_anybody_has_them():
    first, again = (rendered_preset("mini", recipes=["negation"]).configuration("negation") for _ in range(2))
    assert first.rows is again.rows
    other = rendered_preset("mini", recipes=["negation"], seed=1).configuration("negation")
    assert other.rows is not first.rows


def test_a_change_that_one_recipe_refuses_is_made_again_to_those_that_take_it():
    name = "mini with duration=2.3"
    data = open_data(name)
    assert data.source == name
    assert "rate_binding" in data.recipes
    assert "a_coat" not in data.recipes
    # Recipes that refuse it are left out, be there further changes or not.
    beside = rendered.opened_preset(name, {"seed": 5}).settings
    assert set(beside) == set(rendered.opened_preset(name).settings) != set(rendered.opened_preset("mini").settings)
    assert {settings.seed for settings in beside.values()} == {5}
    with pytest.raises(InputError, match=r"duration is '-1.0'; it is a number from 0.25 to 30"):
        open_data("mini with duration=-1.0")
