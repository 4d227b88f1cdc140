from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
import transformers
from safetensors.torch import load_file, save_file

from audio_compositionality.encoders.loading.names import list_models
from audio_compositionality.encoders.loading.registry import load_model
from audio_compositionality.support.files import sha256_of_file

from ..contract import HubCache, Save, Saved


def change_weights(folder: Path, change: Callable[[dict[str, torch.Tensor]], None]) -> None:
    weights = load_file(folder / "model.safetensors")
    change(weights)
    save_file(weights, folder / "model.safetensors", metadata={"format": "pt"})


def test_without_network_the_message_says_what_to_pass(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(tmp_path))
    with pytest.raises(ValueError, match=r"cannot get 'openai/whisper-tiny' from the Hugging Face Hub.*local folder"):
        load_model("openai/whisper-tiny")
    # A wrong device is told of before anything is fetched.
    for name in ("openai/whisper-tiny", "panns-cnn14"):
        with pytest.raises(ValueError, match="cannot use device 'nowhere'"):
            load_model(name, device="nowhere")


def test_a_folder_is_named_by_its_last_part_only(save: Save, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = save("wav2vec2", tmp_path / "secret" / "my-model")
    assert load_model(f"{folder}/").card.id == "my-model"
    monkeypatch.chdir(folder)
    assert load_model(".").card.id == "my-model"
    monkeypatch.chdir(tmp_path / "secret")
    assert load_model("my-model").card.id == "my-model"


def test_a_registered_name_with_weights_of_a_folder(saved: Saved) -> None:
    folder = saved("whisper")
    named, local = load_model(f"whisper-base={folder}").card, load_model(str(folder)).card
    assert (named.id, local.id) == ("whisper-base", "whisper")
    assert named.revision == local.revision
    assert named.weights_sha256 == sha256_of_file(folder / "model.safetensors")
    twin = load_model(f"untrained:whisper-base={folder}").card
    assert (twin.id, twin.weights_sha256) == ("untrained:whisper-base", None)
    with pytest.raises(ValueError, match=r"'whisper-base=/no/such/folder': pass a folder with config\.json"):
        load_model("whisper-base=/no/such/folder")


def test_an_encoder_says_how_it_was_trained_and_the_licence_of_its_weights(
    saved: Saved, save: Save, hub_cache: HubCache, tmp_path: Path
) -> None:
    folder = saved("whisper")
    said = {
        "downsample": ("none (baseline)", "Apache-2.0"),
        f"whisper-large-v3-turbo={folder}": ("speech recognition", "MIT"),
        # A fresh network has weights of nobody's.
        f"untrained:whisper-base={folder}": ("untrained", None),
        f"untrained:{folder}": ("untrained", None),
        str(folder): (None, None),
    }
    hub_cache("openai/whisper-base", save("whisper", tmp_path / "hub"), ["model.safetensors.index.json"])
    said["openai/whisper-base"] = ("speech recognition", "Apache-2.0")
    said["untrained:openai/whisper-base"] = ("untrained", None)
    for name, expected in said.items():
        encoder = load_model(name)
        assert (encoder.card.paradigm, encoder.card.licence) == expected, name
    for info in list_models()[:3]:
        encoder = load_model(info.name)
        assert (encoder.card.paradigm, encoder.card.licence) == (info.paradigm, info.licence)


def test_a_named_encoder_says_what_it_was_trained_on_and_its_twins_do_not(saved: Saved) -> None:
    folder = saved("clap")
    assert "LAION-Audio-630K" in str(load_model(f"laion-clap={folder}").card.trained_on)
    for name in (f"untrained:laion-clap={folder}", f"shuffled:laion-clap={folder}", str(folder)):
        assert load_model(name).card.trained_on is None, name
    for info in list_models():
        assert (info.output_dim or 0) > 0 if info.embeds_sound else info.answers
        assert info.paradigm
        assert info.licence
        has_none = "(baseline)" in info.paradigm or "(control)" in info.paradigm or info.name == "tiny-clap"
        assert bool(info.weights) != has_none


def test_a_folder_with_a_registered_name_is_told_of(
    save: Save, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    save("whisper", tmp_path / "whisper-base")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(tmp_path / "hub"))
    with (
        pytest.warns(UserWarning, match=r"loads the listed model; for the folder, pass '\./whisper-base'"),
        pytest.raises(ValueError, match="cannot get 'openai/whisper-base'"),
    ):
        load_model("whisper-base")
    assert load_model("./whisper-base").card.id == "whisper-base"


@pytest.mark.parametrize("rate", [0, "16000"])
def test_a_sampling_rate_that_is_none(rate: object, save: Save, tmp_path: Path) -> None:
    folder = save("wav2vec2", tmp_path / "model")
    path = folder / "preprocessor_config.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), "sampling_rate": rate}))
    with pytest.raises(ValueError, match=rf"not an audio model: its \w+ has the sampling_rate {rate!r}"):
        load_model(str(folder))


@pytest.mark.parametrize(
    ("name", "family"), [("../model.safetensors", "clap"), ("pytorch_model.bin", "wav2vec2"), (7, "clap")]
)
def test_an_index_that_lists_other_files(name: object, family: str, save: Save, tmp_path: Path) -> None:
    folder = save(family, tmp_path / "model")
    weights = load_file(folder / "model.safetensors")
    (folder / "model.safetensors").rename(tmp_path / "model.safetensors")
    torch.save(weights, folder / "pytorch_model.bin")
    (folder / "model.safetensors.index.json").write_text(json.dumps({"weight_map": dict.fromkeys(weights, name)}))
    with pytest.raises(ValueError, match=r"must list \.safetensors files next to it|cannot read .*index\.json"):
        load_model(str(folder))


def test_a_hub_model_without_safetensors_says_what_to_do(save: Save, hub_cache: HubCache, tmp_path: Path) -> None:
    folder = save("wav2vec2", tmp_path / "hub")
    (folder / "model.safetensors").unlink()
    hub_cache("some/wavlm", folder, ["model.safetensors", "model.safetensors.index.json", "processor_config.json"])
    with pytest.raises(ValueError, match=r"'some/wavlm' on the Hugging Face Hub holds no safe.*save_pretrained\(NEW\)"):
        load_model("some/wavlm")


def test_a_broken_configuration(save: Save, tmp_path: Path) -> None:
    folder = save("wav2vec2", tmp_path / "broken")
    settings = json.loads((folder / "config.json").read_text())
    for text, twin, message in (
        ('{"model_type": "wav2vec2",', "", "cannot read the configuration of 'broken'"),
        (json.dumps({**settings, "hidden_size": "wide"}), "", r"configuration of 'broken'[\s\S]*hidden_size"),
        (
            json.dumps({**settings, "num_attention_heads": 5}),
            "untrained:",
            "configuration of 'broken' describes no model",
        ),
    ):
        (folder / "config.json").write_text(text)
        with pytest.raises(ValueError, match=message):
            load_model(f"{twin}{folder}")


def test_code_beside_a_model_is_not_run(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text(
        json.dumps({"model_type": "mine", "auto_map": {"AutoConfig": "mine.MyConfig", "AutoModel": "mine.MyModel"}})
    )
    trace = tmp_path / "was-run"
    (tmp_path / "mine.py").write_text(f"open({str(trace)!r}, 'w')\n")
    for name in (str(tmp_path), f"untrained:{tmp_path}"):
        with pytest.raises(ValueError, match="cannot read the configuration"):
            load_model(name)
    assert not trace.exists()


@pytest.mark.parametrize("family", ["wav2vec2", "clap"])
def test_a_pickle_is_refused(family: str, save: Save, tmp_path: Path) -> None:
    folder = save(family, tmp_path / "old")
    torch.save(load_file(folder / "model.safetensors"), folder / "pytorch_model.bin")
    (folder / "model.safetensors").unlink()
    with pytest.raises(ValueError, match=r"'old' holds no safetensors weights; pytorch_model.bin is a pickle"):
        load_model(str(folder))
    # The architecture alone needs no weights.
    assert load_model(f"untrained:{folder}").card.id == "untrained:old"


def test_damaged_weights(save: Save, tmp_path: Path) -> None:
    folder = save("wav2vec2", tmp_path / "damaged")
    content = (folder / "model.safetensors").read_bytes()
    (folder / "model.safetensors").write_bytes(content[: len(content) // 2])
    with pytest.raises(ValueError, match="cannot load the weights of 'damaged'"):
        load_model(str(folder))


def test_weights_that_embedding_does_not_use_may_be_missing_or_left_over(save: Save, tmp_path: Path) -> None:
    folder = save("wav2vec2-masked", tmp_path / "speech")  # saved with the head of a recogniser
    change_weights(folder, lambda w: w.pop("wav2vec2.masked_spec_embed"))
    assert load_model(str(folder)).card.output_dim == 32

    folder = save("whisper", tmp_path / "encoder-only")
    change_weights(folder, lambda w: [w.pop(key) for key in list(w) if "decoder" in key or "proj_out" in key])
    assert load_model(str(folder)).card.output_dim == 32


def test_loading_is_silent_and_leaves_the_settings_of_transformers(
    saved: Saved, capfd: pytest.CaptureFixture[str]
) -> None:
    folder = saved("wav2vec2-masked")
    capfd.readouterr()
    before = transformers.logging.get_verbosity(), transformers.logging.is_progress_bar_enabled()
    load_model(str(folder))
    assert (transformers.logging.get_verbosity(), transformers.logging.is_progress_bar_enabled()) == before
    assert capfd.readouterr() == ("", "")


def test_a_revision_follows_weights_and_settings(save: Save, tmp_path: Path) -> None:
    """But no other weights beside them; that of an untrained twin, the settings alone."""
    first = save("wav2vec2", tmp_path / "a")
    names = (str(first), f"untrained:{first}")

    def revisions() -> list[str]:
        return [load_model(name).card.revision for name in names]

    before = revisions()
    assert before == [
        load_model(name.replace(str(first), str(save("wav2vec2", tmp_path / "b")))).card.revision for name in names
    ]
    save_file({"other": torch.zeros(1)}, first / "adapter.safetensors")
    assert revisions() == before
    change_weights(first, lambda w: w["masked_spec_embed"].add_(1))
    changed = revisions()
    assert changed[0] != before[0]
    assert changed[1] == before[1]
    digest = load_model(str(first)).card.weights_sha256
    for file, settings in (("preprocessor_config.json", {"do_normalize": False}), ("config.json", {"layerdrop": 0.3})):
        path, last = first / file, revisions()
        path.write_text(json.dumps({**json.loads(path.read_text()), **settings}))
        assert all(one != other for one, other in zip(revisions(), last, strict=True))
    assert load_model(str(first)).card.weights_sha256 == digest
