"""Protocols: settings with which tasks follow somebody's text to the letter."""

import pytest

from audio_compositionality.dataset_builder.recipes import load_recipe
from audio_compositionality.support.errors import InputError
from audio_compositionality.tasks.a_tre import TASK as A_TRE
from audio_compositionality.tasks.registry import list_tasks

SOURCE = {"timbre_label": "bell", "pitch_label": "low", "rate_label": "slow", "amplitude_label": "soft"}
POST_NORM = {"block": "post-norm", "width": 2048, "dropout": 0.1}


def scenes(training):
    return [
        {"id": f"{split}-{number}", "split": split, "metadata": [SOURCE]}
        for split, count in (("train", training), ("validation", 1), ("test", 1))
        for number in range(count)
    ]


@pytest.mark.slow
@pytest.mark.parametrize("task", list_tasks(), ids=lambda task: task.info.name)
def test_every_protocol_has_presets_of_the_tasks_recipe_and_settings_that_it_takes(task):
    presets = load_recipe(task.info.recipe).presets
    for name, settings in task.info.protocols.items():
        assert {f"{name}-mini", f"{name}-full"} <= set(presets)
        rows = load_recipe(task.info.recipe).render(presets[f"{name}-mini"]).rows
        stated = task.settings(rows, settings)
        assert set(settings) <= set(stated)
        assert task.settings(rows, stated) == stated


@pytest.mark.parametrize(("training", "epoch"), [(512, 8), (8_000, 125)])
def test_the_papers_a_tre_has_20_epochs_validated_after_each_and_one_seed(training, epoch):
    settings = A_TRE.settings(scenes(training), A_TRE.info.protocols["paper"])
    assert settings == {"seeds": [0], "max_steps": 20 * epoch, "validate_every": epoch, **POST_NORM}


def test_the_projects_own_settings_are_what_they_were():
    assert A_TRE.settings(scenes(512), {}) == {"seeds": [0, 1, 2], "max_steps": 600}
    assert A_TRE.settings(scenes(8_000), {}) == {"seeds": [0, 1, 2], "max_steps": 2_500}
    ours = {"seeds": [0, 1, 2], "max_steps": 600, "block": "pre-norm"}
    assert A_TRE.settings(scenes(512), {"block": "pre-norm"}) == ours


def test_settings_of_the_papers_layer_need_it():
    with pytest.raises(InputError, match="width applies to the block post-norm only: set block=post-norm too"):
        A_TRE.settings(scenes(512), {"width": 8})
