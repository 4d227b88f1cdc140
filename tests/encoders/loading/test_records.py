"""What a model was trained on, from the record beside its weights."""

from __future__ import annotations

import json

import pytest

from audio_compositionality.encoders.base import ModelError
from audio_compositionality.encoders.loading.records import RECORD, recorded_data
from audio_compositionality.encoders.loading.registry import load_model
from audio_compositionality.encoders.networks.tiny_clap import save_clap, tiny_clap


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ({"trained_on": "40 rows of scenes, mini", "recipe": "scenes"}, "40 rows of scenes, mini"),
        ({"trained_on": "40 rows of /folder", "recipe": "scenes"}, "40 rows of /folder (scenes)"),
        ({"trained_on": "my own", "recipe": None}, "my own"),
    ],
)
def test_the_recipe_is_named(tmp_path, values, expected):
    (tmp_path / RECORD).write_text(json.dumps(values), "utf-8")
    assert recorded_data(lambda name: tmp_path / name) == expected


def test_without_a_record_nothing_is_said_and_one_that_cannot_be_read_is_refused(tmp_path):
    def without_network(name):
        raise ModelError("no network")

    assert recorded_data(lambda name: None) is None
    assert recorded_data(without_network) is None
    (tmp_path / RECORD).write_text("[]", "utf-8")
    with pytest.raises(ModelError, match="does not say what the weights beside it were trained on"):
        recorded_data(lambda name: tmp_path / name)


def test_the_card_of_a_folder_says_it_and_that_of_its_twin_does_not(tmp_path):
    save_clap(tiny_clap(), tmp_path)
    assert load_model(str(tmp_path)).card.trained_on is None
    revision = load_model(str(tmp_path)).card.revision
    (tmp_path / RECORD).write_text(json.dumps({"trained_on": "4 rows of scenes", "recipe": "scenes"}), "utf-8")
    card = load_model(str(tmp_path)).card
    assert (card.trained_on, card.revision) == ("4 rows of scenes", revision)
    assert load_model(f"untrained:{tmp_path}").card.trained_on is None
