"""Guards reproducibility: the figures in ``frozen.json`` are our own output.

They say nothing about what is right. A failure means that a change altered the published samples of a recipe: either it
must not, or the recipe's version has to rise.
"""

import pytest

from .frozen import drawn, frozen, recipes, stated

RECIPES = recipes()


@pytest.mark.parametrize("recipe", RECIPES)
def test_every_recipe_is_frozen_with_its_version_and_presets(recipe):
    how = f"python -m tests.dataset_builder.frozen {recipe}"
    entry = frozen().get(recipe)
    assert entry is not None, f"{recipe} has no entry in frozen.json: write it by {how}"
    expected = {name: entry[name] for name in ("version", "presets")}
    assert stated(recipe) == expected, f"settings of {recipe} changed: raise its version, then {how}"


def test_nothing_is_frozen_that_is_no_recipe():
    assert set(frozen()) == set(RECIPES)


@pytest.mark.slow
@pytest.mark.parametrize("recipe", RECIPES)
def test_the_mini_preset_keeps_its_rows_and_samples(recipe):
    how = f"python -m tests.dataset_builder.frozen {recipe}"
    assert drawn(recipe) == frozen()[recipe]["drawn"], f"rows of {recipe} changed: raise its version, then {how}"
