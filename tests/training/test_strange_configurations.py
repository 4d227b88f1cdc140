"""Folders of small towers and of aligned encoders whose config.json is broken, or made to break something."""

from __future__ import annotations

import json
import shutil
from dataclasses import replace

import pytest
import torch
from safetensors.torch import load_file, save_file

from audio_compositionality.cli.main import main
from audio_compositionality.encoders.base import ModelError
from audio_compositionality.encoders.families.aligned import AlignedEncoder
from audio_compositionality.encoders.loading.checkpoints import open_checkpoint
from audio_compositionality.encoders.loading.registry import load_model
from audio_compositionality.encoders.options import DEFAULT_OPTIONS
from audio_compositionality.training.model import open_towers
from audio_compositionality.training.towers.small_towers import open_aligned

SMALL, ALIGNED = "small_clap", "audio_text_aligned"


@pytest.fixture(scope="module")
def folders(tmp_path_factory):
    """A good folder of each type."""
    path = tmp_path_factory.mktemp("folders")
    open_towers("tiny").save(path / SMALL)
    open_aligned("log-mel-statistics").save(path / ALIGNED)
    return path


@pytest.fixture
def changed(folders, tmp_path):
    """A copy of a folder with other values in its config.json, or with another text for it."""

    def change(model_type, values):
        folder = tmp_path / "folder"
        shutil.copytree(folders / model_type, folder)
        path = folder / "config.json"
        text = values if isinstance(values, str) else json.dumps(json.loads(path.read_text("utf-8")) | values)
        path.write_text(text, "utf-8")
        return folder

    return change


def deep(levels):
    value = 1
    for _ in range(levels):
        value = {"a": value}
    return value


WHOLE = "it must be a whole number from 1 to"
TEXTS = [
    *((text, "cannot read the configuration") for text in ("5", '{"model_type": ["small_clap"]}')),
    ('{"model_type": ' + "[" * 100_000, "cannot read the configuration"),
    ({"dtype": "none"}, "cannot read the configuration"),
]
REFUSED = [
    *((SMALL, {"hidden_size": value}, WHOLE) for value in (10**12, 1.5, True)),
    (SMALL, {"hidden_size": 100_000}, r"describes a SmallClapModel of [\d,]{12,} weights; at most 100,000,000"),
    (SMALL, {"projection_dim": "x" * 1000}, r"has projection_dim: 'x{5,40}…; it must"),
    (SMALL, {"hidden_size": 126}, "describes no model: embed_dim must be divisible"),
    (SMALL, {"num_mel_bins": 32}, "makes 64 mel bands, but the model takes 32"),
    (ALIGNED, {"input_dim": "64"}, WHOLE),
    (ALIGNED, {"projection_dim": 1_000_000}, "describes a AlignedModel of"),
    *((ALIGNED, {"encoder": value}, "has no encoder, or its value is not a text") for value in (5, "")),
    (ALIGNED, {"encoder_revision": 5}, "has no encoder_revision"),
    *((ALIGNED, {"encoder_seed": value}, "encoder_seed: .*whole number from 0") for value in (-5, 2**64)),
    (ALIGNED, {"layer": "x"}, "layer is 'x'; it must be a whole number"),
    (ALIGNED, {"pooling": 7}, "pooling is 7"),
    *((model_type, *text) for model_type in (SMALL, ALIGNED) for text in TEXTS),
]


@pytest.mark.parametrize(("model_type", "values", "message"), REFUSED)
def test_models_that_cannot_be_are_refused(changed, model_type, values, message):
    folder = changed(model_type, values)
    for name in (f"{folder}", f"untrained:{folder}"):
        for opened in (load_model, open_towers) if model_type == SMALL else (load_model,):
            with pytest.raises(ModelError, match=message) as error:
                opened(name)
            assert "\n" not in str(error.value)


@pytest.mark.parametrize("front", ["", "untrained:"])
def test_one_that_names_itself_is_refused(changed, tmp_path, front):
    folder = changed(ALIGNED, {"encoder": f"{front}{tmp_path / 'folder'}"})
    for name in (f"{folder}", f"untrained:{folder}"):
        with pytest.raises(ModelError, match="'folder' is already aligned with text"):
            load_model(name)


def test_a_model_of_the_hub_loads_nothing_from_this_machine(changed):
    checkpoint = open_checkpoint(changed(ALIGNED, {"encoder": "folder/code.py:Encoder"}))
    with pytest.raises(ModelError, match=r"comes from the Hub and names 'folder/code\.py:Encoder'"):
        AlignedEncoder(replace(checkpoint, commit="0" * 40), torch.device("cpu"), DEFAULT_OPTIONS)


@pytest.mark.parametrize("model_type", [SMALL, ALIGNED])
def test_what_is_not_used_does_no_harm(changed, model_type):
    """Of so many labels transformers would make names, for minutes."""
    folder = changed(model_type, {"num_labels": 10**12, "architectures": 7, "x": deep(50)})
    assert load_model(str(folder)).embed_text(["a bell"]).shape == (1, 128)


@pytest.mark.parametrize("model_type", [SMALL, ALIGNED])
def test_weights_of_another_model_are_refused(changed, model_type):
    folder = changed(model_type, {"projection_dim": 64})
    with pytest.raises(ModelError, match=r"of another shape: .* \(stored \(128,\), model \(64,\)\)"):
        load_model(str(folder))
    path = folder / "model.safetensors"
    weights = load_file(path)
    weights.pop("logit_scale")
    save_file(weights, path)
    with pytest.raises(ModelError, match="1 missing: logit_scale"):
        load_model(str(folder))
    path.write_bytes(b"\xff" * 100)
    with pytest.raises(ModelError, match="cannot read the weights"):
        load_model(str(folder))


@pytest.mark.parametrize("model_type", [SMALL, ALIGNED])
def test_commands_say_it(changed, capsys, tmp_path, model_type):
    folder = changed(model_type, {"vocab_size": 10**12})
    message = "has vocab_size: 1000000000000; it must be a whole number"
    assert main(["check-model", str(folder)]) == 1
    assert message in " ".join(capsys.readouterr().out.split())
    option, said = ("--init", message) if model_type == SMALL else ("--align", "is already aligned with text")
    assert main(["train", option, str(folder), "--out", str(tmp_path / "out")]) == 2
    error = capsys.readouterr().err
    assert error.count("\n") == 1
    assert said in error
    assert not (tmp_path / "out").exists()
