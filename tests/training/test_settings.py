from dataclasses import replace

import pytest
import yaml

from audio_compositionality.training.errors import TrainingError
from audio_compositionality.training.settings import (
    KINDS,
    STAGE_DEFAULTS,
    STAGES,
    Stage,
    differences,
    is_fresh,
    parse_stages,
    read_settings,
    settings_of,
)


def test_stages_take_their_defaults_by_what_is_begun_with():
    fresh = settings_of({"data": "x", "stages": "contrastive:100,hard:50"})
    rate, _, warm_up = STAGE_DEFAULTS["contrastive"]
    assert fresh.stages[0] == Stage("contrastive", 100, rate, min(warm_up, 33))
    trained = settings_of({"data": "x", "stages": "contrastive:100", "init": "org/clap"})
    assert trained.stages[0].learning_rate == STAGE_DEFAULTS["contrastive"].trained
    assert fresh.steps == 150
    assert [stage.kind for stage in settings_of({"data": "x"}).stages] == ["contrastive", "hard"]
    assert settings_of({"data": "x"}).values()["stages"][0]["kind"] == parse_stages(STAGES)[0]["kind"]


def test_weights_of_losses_are_settings(tmp_path):
    settings = settings_of({"data": "x", "text_to_audio": "5e-1", "audio_to_text": 0, "modular_weight": 1})
    assert (settings.text_to_audio, settings.audio_to_text, settings.modular_weight) == (0.5, 0, 1)
    path = tmp_path / "settings.yaml"
    path.write_text(settings.to_yaml())
    assert settings_of(read_settings(path)) == settings
    for wrong, said in (
        ({"text_to_audio": -1}, "text_to_audio is -1; it must be a number from 0"),
        ({"text_to_audio": 0, "audio_to_text": 0.0}, "one of them must be above 0"),
        ({"modular_weight": 0}, "modular_weight is 0; it must be a number above 0"),
    ):
        with pytest.raises(TrainingError, match=said):
            settings_of({"data": "x", **wrong})


def test_what_is_written_is_read_again(tmp_path):
    settings = settings_of({"data": "x", "stages": "hard:7,modular:3", "learning_rate": [0.1, 0.2], "warm_up": 2})
    path = tmp_path / "settings.yaml"
    path.write_text(settings.to_yaml())
    assert settings_of(read_settings(path)) == settings
    assert [stage.learning_rate for stage in settings.stages] == [0.1, 0.2]
    # A rate for all comes before those of the stages.
    assert [s.learning_rate for s in settings_of({**read_settings(path), "learning_rate": 1}).stages] == [1, 1]


def test_a_number_that_yaml_takes_for_a_text_is_a_number(tmp_path):
    path = tmp_path / "settings.yaml"
    path.write_text("data: x\nlearning_rate: 1e-3\nstages: [{kind: hard, steps: 2}]\n")
    assert isinstance(yaml.safe_load(path.read_text())["learning_rate"], str)
    assert settings_of(read_settings(path)).stages[0].learning_rate == 1e-3


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"stages": "contrastive"}, "must be KIND:STEPS"),
        ({"stages": "contrast:3"}, "did you mean 'contrastive'"),
        ({"stages": "hard:0"}, "it must be a whole number, 1 or more"),
        ({"stages": [{"kind": "hard", "step": 3}]}, "did you mean 'steps'"),
        ({"stages": [{"kind": "hard"}]}, "stage 1 has no steps"),
        ({"stages": "hard:3", "learning_rate": [1, 2]}, "has 2 values, and the stages are 1"),
        ({"stages": "hard:3", "learning_rate": "fast"}, "a number above 0"),
        ({"stages": "hard:3", "learning_rate": -1}, "a number above 0"),
        ({"stages": "hard:3", "warm_up": 4}, "has 3 steps, but warm_up is 4"),
        ({"batchsize": 3}, "did you mean 'batch_size'"),
        ({"batch_size": 1}, "2 or more"),
        ({"batch_size": 2.5}, "a whole number"),
        ({"train": "lasst"}, "did you mean 'last'"),
        ({"form": "papers"}, "did you mean 'paper'"),
        ({"precision": "float16"}, "Valid: auto, no, bf16, fp16"),
        ({"log_to": "tensorbord"}, "did you mean 'tensorboard'"),
        ({"patience": 3}, "evaluate_every must be"),
        ({"data": None}, "there is no data; give --data"),
        ({"stages": "hard:²"}, "must be KIND:STEPS"),
        ({"log_to": 5}, "log_to is 5; it must be a list"),
        ({"log_to": [5]}, "log_to has 5; Valid"),
        ({"data": {"a": 1}}, "it must be a text"),
        ({"init": ["tiny"]}, "it must be a text"),
        ({"preset": 5}, "it must be a text"),
        ({"recipe": ["a"]}, "it must be a text"),
        ({"weight_decay": "much"}, "weight_decay is 'much'; it must be a number"),
        ({"weight_decay": -1}, "a number from 0"),
        ({"seed": 2**63}, "less than 2"),
        ({"validation_items": 1}, "0, for none, or 2 or more"),
    ],
)
def test_what_cannot_be_used_is_named(values, message):
    with pytest.raises(TrainingError, match=message):
        settings_of({"data": "x", **values})


@pytest.mark.parametrize("text", ["- a\n", "a: [", "just words"])
def test_a_file_that_is_no_settings_is_named(tmp_path, text):
    path = tmp_path / "s.yaml"
    path.write_text(text)
    with pytest.raises(TrainingError, match=r"s\.yaml"):
        read_settings(path)
    with pytest.raises(TrainingError, match="No such file"):
        read_settings(tmp_path / "absent.yaml")


def test_differences_are_named_and_those_that_change_no_weights_are_not():
    settings = settings_of({"data": "x", "stages": "hard:7"})
    other = replace(settings, seed=3, checkpoint_every=7, chunk=2, stages=(replace(settings.stages[0], steps=8),))
    assert differences(settings.values(), other.values()) == [
        "stages.1.steps is 8 where it was 7",
        "seed is 3 where it was 0",
    ]
    assert differences(settings.values(), settings.values()) == []


def test_what_is_fresh_is_known_by_its_name():
    assert is_fresh("tiny")
    assert is_fresh("tiny-clap")
    assert is_fresh("untrained:laion-clap")
    assert not is_fresh("shuffled:laion-clap")
    assert not is_fresh("laion-clap")
    assert set(STAGE_DEFAULTS) == set(KINDS)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[" * 20_000, "is no YAML"),
        ("a: &a [1]\nb: &b [*a, *a]\nc: &c [*b, *b]\nlearning_rate: [*c, *c]\n", "'c' has lists in one another"),
        (f"data: {'x' * 2**20}", "too many for a file of settings"),
        ("a: [", "expected the node content"),
        ("- a", "must have lines such as"),
    ],
)
def test_a_file_that_is_none_of_settings_is_named(tmp_path, text, message):
    path = tmp_path / "settings.yaml"
    path.write_text(text, "utf-8")
    with pytest.raises(TrainingError, match=message):
        read_settings(path)


def test_a_number_that_yaml_takes_for_a_text_is_one(tmp_path):
    path = tmp_path / "settings.yaml"
    path.write_text("data: scenes\nweight_decay: 1e-2\nlearning_rate: 1e-4\n", "utf-8")
    settings = settings_of(read_settings(path))
    assert (settings.weight_decay, settings.stages[0].learning_rate) == (0.01, 1e-4)
