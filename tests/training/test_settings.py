from typing import get_args

import pytest
from accelerate.tracking import LOGGER_TYPE_TO_CLASS

from audio_compositionality.support.errors import InputError
from audio_compositionality.training.settings import (
    KINDS,
    STAGE_DEFAULTS,
    STAGES,
    Stage,
    Tracker,
    TrainingSettings,
    is_fresh,
    parse_stages,
    setting_differences,
)


def read_again(settings, tmp_path):
    path = tmp_path / "settings.yaml"
    path.write_text(settings.to_yaml())
    return TrainingSettings.from_yaml(path)


def test_stages_take_their_defaults_by_what_is_begun_with():
    fresh = TrainingSettings(data="x", stages="contrastive:100,hard:50")
    rate, _, warm_up = STAGE_DEFAULTS["contrastive"]
    assert fresh.stages[0] == Stage(kind="contrastive", steps=100, learning_rate=rate, warm_up=min(warm_up, 33))
    trained = TrainingSettings(data="x", stages="contrastive:100", init="org/clap")
    assert trained.stages[0].learning_rate == STAGE_DEFAULTS["contrastive"].trained
    assert fresh.steps == 150
    assert [stage.kind for stage in TrainingSettings(data="x").stages] == ["contrastive", "hard"]
    assert TrainingSettings(data="x").values()["stages"][0]["kind"] == parse_stages(STAGES)[0]["kind"]
    assert set(STAGE_DEFAULTS) == set(KINDS)


def test_what_is_written_is_read_again(tmp_path):
    settings = TrainingSettings(data="x", stages="hard:7,modular:3", learning_rate=[0.1, 0.2], warm_up=2)
    assert read_again(settings, tmp_path) == settings
    assert [stage.learning_rate for stage in settings.stages] == [0.1, 0.2]
    # A rate for all comes before those of the stages.
    assert [stage.learning_rate for stage in settings.changed(learning_rate=1).stages] == [1, 1]
    assert [stage.warm_up for stage in settings.changed(warm_up=(3,)).stages] == [3, 3]


def test_settings_are_typed_as_they_are_in_a_file():
    typed = TrainingSettings.read(["stages=hard:7,modular:3", "learning_rate=1e-2", "log_to=trackio", "rows=none"])
    settings = TrainingSettings(data="x", **typed)
    assert [stage.learning_rate for stage in settings.stages] == [0.01, 0.01]
    assert (settings.log_to, settings.rows) == (("trackio",), None)
    assert set(get_args(Tracker)) == set(LOGGER_TYPE_TO_CLASS)


def test_a_number_that_yaml_takes_for_a_text_is_one_and_names_say_what_is_fresh(tmp_path):
    path = tmp_path / "settings.yaml"
    stages = "[{kind: hard, steps: 2, learning_rate: 5E-4}]"
    path.write_text(f"data: scenes\nweight_decay: 1e-2\nstages: {stages}\n", "utf-8")
    settings = TrainingSettings.from_yaml(path)
    assert (settings.weight_decay, settings.stages[0].learning_rate) == (0.01, 5e-4)
    assert all(map(is_fresh, ("tiny", "tiny-clap", "untrained:laion-clap", "align:laion-clap")))
    assert not any(map(is_fresh, ("shuffled:laion-clap", "laion-clap")))


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"stages": "contrastive"}, "must be KIND:STEPS"),
        ({"stages": "hard:²"}, "must be KIND:STEPS"),
        ({"stages": "contrast:3"}, "stage 1: kind is 'contrast'; .*: did you mean 'contrastive'"),
        ({"stages": "hard:1,hard:0"}, "stage 2: steps is 0; it must be a whole number from 1 on"),
        ({"stages": [{"kind": "hard", "step": 3}]}, "did you mean 'steps'"),
        ({"stages": [{"kind": "hard"}]}, "stage 1: steps is missing"),
        ({"stages": []}, "stages is empty"),
        ({"stages": 3}, "a list of kind and steps"),
        ({"stages": "hard:3", "learning_rate": [1, 2]}, "has 2 values for 1 stages"),
        ({"stages": "hard:3", "learning_rate": "fast"}, "learning_rate is 'fast'; it must be a number above 0"),
        ({"stages": "hard:3", "warm_up": 4}, "has 3 steps, but warm_up is 4"),
        ({"batchsize": 3}, "did you mean 'batch_size'"),
        ({"text_to_audio": 0, "audio_to_text": 0.0}, "one of them must be above 0"),
        ({"patience": 3}, "evaluate_every must be"),
        ({"patience": 3, "evaluate_every": 1, "validation_items": 0}, "validation_items must be 2 or more"),
        ({"validation_items": 1}, "0, for none, or 2 or more"),
        ({"data": {"a": 1}}, "data is .*; it must be a text"),
    ],
)
def test_what_cannot_be_used_is_named(values, message):
    with pytest.raises(InputError, match=message):
        TrainingSettings(**{"data": "x", **values})


def test_differences_are_named_and_those_that_change_no_weights_are_not():
    settings = TrainingSettings(data="x", stages="hard:7")
    longer = (settings.stages[0].changed(steps=8),)
    other = settings.changed(seed=3, checkpoint_every=7, chunk=2, stages=longer)
    assert setting_differences(settings.values(), other.values()) == [
        "stages.1.steps is 8 instead of 7",
        "seed is 3 instead of 0",
    ]
    assert setting_differences(settings.values(), settings.values()) == []
