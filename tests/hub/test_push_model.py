import json

import pytest

from audio_compositionality.hub.errors import HubError
from audio_compositionality.support.checked_files import sealed_json
from audio_compositionality.support.files import sha256_of
from audio_compositionality.training.run_folder import model_files, push_model
from audio_compositionality.training.settings import TrainingError

NAME = "lab/clap-that-hears-order"


@pytest.fixture
def out(tmp_path):
    folder = tmp_path / "run"
    (folder / "checkpoint").mkdir(parents=True)
    (folder / "best").mkdir()
    weights = "weights" * 1000
    stated = {"model.safetensors": sha256_of(weights.encode())}
    record = {"finished": True, "recipe": "scenes", "data": "mini", "steps": 1800, "settings": {}, "files": stated}
    files = {
        "training.json": sealed_json(record).decode(),
        "model.safetensors": weights,
        "config.json": "{}",
        "README.md": "# card",
        "log.csv": "step\r\n",
        ".lock": "",
        "checkpoint/state.safetensors": "large",
        "best/model.safetensors": "weights",
    }
    for name, content in files.items():
        (folder / name).write_text(content)
    return folder


def test_a_model_is_published_without_its_state_and_a_second_push_sends_nothing(hub, out):
    names = {"README.md", "config.json", "log.csv", "model.safetensors", "training.json"}
    assert push_model(out, NAME, dry_run=True).changes.send.keys() == names == model_files(out).keys()
    assert ("model", NAME) not in hub.repositories
    push_model(out, NAME)
    sent = hub.repositories["model", NAME].files()
    assert {name: sent[name] for name in names} == {name: (out / name).read_bytes() for name in names}
    assert not push_model(out, NAME).changes


def test_a_model_that_names_an_encoder_of_this_machine_is_not_published(hub, out):
    config = {"model_type": "audio_text_aligned", "encoder": "untrained:/home/me/encoder"}
    (out / "config.json").write_text(json.dumps(config))
    with pytest.raises(TrainingError, match=r"'untrained:/home/me/encoder' as its encoder, which others cannot"):
        push_model(out, NAME)
    assert ("model", NAME) not in hub.repositories
    (out / "config.json").write_text(json.dumps(config | {"encoder": "lab/encoder"}))
    assert push_model(out, NAME, dry_run=True).changes
    (out / "config.json").write_text("{")
    with pytest.raises(TrainingError, match=r"cannot read .*config\.json"):
        push_model(out, NAME, dry_run=True)


def test_a_name_that_no_repository_can_have_is_refused(out):
    for name in ("clap", "lab/", "lab/a/b", "lab/.a", "lab/a b"):
        with pytest.raises(TrainingError, match="must be ORG/NAME"):
            push_model(out, name)
    with pytest.raises(HubError):
        push_model(out, "-lab/clap")


def test_what_was_changed_or_is_not_finished_is_not_published(out):
    (out / "model.safetensors").write_text("weights" * 999)
    with pytest.raises(TrainingError, match=r"model\.safetensors is damaged or was changed: its SHA-256 differs"):
        push_model(out, NAME, dry_run=True)
    (out / "training.json").write_bytes(sealed_json({"finished": False, "settings": {}}))
    with pytest.raises(TrainingError, match="no finished training"):
        push_model(out, NAME)
