"""Items to choose among models in training by: of no other split, and of nothing that is new in the test alone."""

from __future__ import annotations

import numpy as np
import pytest

from audio_compositionality.dataset_builder.recipes import list_recipes, load_recipe
from audio_compositionality.dataset_builder.recipes.base import ValidatedRecipe
from audio_compositionality.dataset_builder.recipes.comp_a_train import TrainingSpec
from audio_compositionality.dataset_builder.texts.captions import caption_templates
from audio_compositionality.support.errors import InputError
from audio_compositionality.training.settings import VALIDATION_ITEMS

NAMES = ("comp_a_attribute", "comp_a_order")
SCENES = TrainingSpec(train_rows=8, validation_rows=4, seed=3, sample_rate=16_000)


def test_both_recipes_of_items_make_some():
    assert tuple(name for name in list_recipes() if isinstance(load_recipe(name), ValidatedRecipe)) == NAMES


@pytest.mark.parametrize("name", NAMES)
def test_they_are_of_their_split_and_of_what_training_has(name):
    rendering = load_recipe(name).render_validation(SCENES, 2)
    rows = rendering.rows
    held_out = {template.name for of_one in caption_templates().values() for template in of_one if template.held_out}
    assert len(rows) == 2
    assert {row["split"] for row in rows} == {"validation"}
    assert {row["subset"] for row in rows} == {"seen"}
    assert not held_out & {row["template"] for row in rows}
    assert rows[0]["id"] == f"{name}-validation-00000"
    assert rendering.sample_rate == 16_000
    assert len({len(clip) for clip in rendering.clips(0)}) == 1
    tests = load_recipe(name).render(rendering.spec)
    assert {row["split"] for row in tests.rows} == {"test"}
    tones, of_tests = (
        {event["entry"] for row in one.rows for events in row["events"] for event in events}
        for one in (rendering, tests)
    )
    assert not tones & of_tests
    again = load_recipe(name).render_validation(SCENES, 2)
    np.testing.assert_array_equal(rendering.clips(1)[0], again.clips(1)[0])


def test_half_of_the_items_of_order_name_the_first_heard_last():
    rows = load_recipe("comp_a_order").render_validation(SCENES, 8).rows
    assert [row["mention"] for row in rows] == ["forward", "reverse"] * 4


def test_scenes_of_another_kind_are_refused():
    with pytest.raises(InputError, match="makes no items like scenes of"):
        load_recipe("comp_a_order").render_validation(load_recipe("a_tre").presets["mini"], 2)


@pytest.mark.slow
@pytest.mark.parametrize("seed", [0, 1])
@pytest.mark.parametrize("name", NAMES)
def test_there_are_as_many_as_training_asks_for(name, seed):
    rows = load_recipe(name).render_validation(SCENES.changed(seed=seed), VALIDATION_ITEMS).rows
    assert len({tuple(row["captions"]) for row in rows}) >= 0.9 * VALIDATION_ITEMS
    assert len({row["pair"] for row in rows}) == 22
