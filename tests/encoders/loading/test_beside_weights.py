"""What a model was trained on, from the record beside its weights."""

from __future__ import annotations

import json

import pytest

from audio_compositionality.encoders.base import ModelError
from audio_compositionality.encoders.loading.beside_weights import RECORD, recorded_data
from audio_compositionality.encoders.loading.registry import load_model
from audio_compositionality.encoders.networks.small_networks import save_clap, tiny_clap
from audio_compositionality.support.checked_files import digests_of, sealed_json


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ({"trained_on": "40 rows of scenes, mini", "recipe": "scenes"}, "40 rows of scenes, mini"),
        ({"trained_on": "40 rows of /folder", "recipe": "scenes"}, "40 rows of /folder (scenes)"),
        ({"trained_on": "my own", "recipe": None}, "my own"),
    ],
)
def test_the_recipe_is_named(tmp_path, values, expected):
    (tmp_path / RECORD).write_bytes(sealed_json(values))
    assert recorded_data(lambda name: tmp_path / name) == expected


def test_without_a_record_nothing_is_said_and_one_that_cannot_be_read_is_refused(tmp_path):
    def without_network(name):
        raise ModelError("no network")

    assert recorded_data(lambda name: None) is None
    assert recorded_data(without_network) is None
    (tmp_path / RECORD).write_bytes(sealed_json({"recipe": "scenes"}))
    with pytest.raises(ModelError, match="does not say what the weights beside it were trained on"):
        recorded_data(lambda name: tmp_path / name)
    for content in (b"[]", json.dumps({"trained_on": "rows"}).encode(), sealed_json({"trained_on": "rows"})[:-9]):
        (tmp_path / RECORD).write_bytes(content)
        with pytest.raises(ModelError, match=r"training\.json is damaged: it is not what was .* train it again"):
            recorded_data(lambda name: tmp_path / name)


def test_the_card_of_a_folder_says_it_and_that_of_its_twin_does_not(tmp_path):
    save_clap(tiny_clap(), tmp_path)
    assert load_model(str(tmp_path)).card.trained_on is None
    revision = load_model(str(tmp_path)).card.revision
    (tmp_path / RECORD).write_bytes(sealed_json({"trained_on": "4 rows of scenes", "recipe": "scenes"}))
    card = load_model(str(tmp_path)).card
    assert (card.trained_on, card.revision) == ("4 rows of scenes", revision)
    assert load_model(f"untrained:{tmp_path}").card.trained_on is None


def test_a_file_of_the_model_that_was_changed_is_refused_by_name(tmp_path):
    save_clap(tiny_clap(), tmp_path)
    files = digests_of(tmp_path, tmp_path.iterdir())
    (tmp_path / RECORD).write_bytes(sealed_json({"trained_on": "rows", "files": files}))
    assert load_model(str(tmp_path)).card.trained_on == "rows"
    for name in ("config.json", "model.safetensors"):
        content = (tmp_path / name).read_bytes()
        damaged = bytearray(content)
        # A bit of white space behind the JSON, or of the exponent of the last weight.
        damaged[-1] ^= 0x2A if name == "config.json" else 0x40
        (tmp_path / name).write_bytes(damaged)
        with pytest.raises(ModelError, match=rf"{name} is damaged or was changed: its SHA-256 is not that in training"):
            load_model(str(tmp_path))
        # Fresh weights are not those of the file.
        if name == "model.safetensors":
            load_model(f"untrained:{tmp_path}")
        (tmp_path / name).unlink()
        if name == "model.safetensors":
            with pytest.raises(ModelError, match=rf"{name} is not there; get the model again or train it again"):
                load_model(str(tmp_path))
        (tmp_path / name).write_bytes(content)
    assert load_model(str(tmp_path)).card.trained_on == "rows"
