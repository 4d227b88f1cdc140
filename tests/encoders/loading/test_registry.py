from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch
import transformers
from safetensors.torch import load_file, save_file

from audio_compositionality.encoders.loading.names import list_models
from audio_compositionality.encoders.loading.registry import load_model
from audio_compositionality.support.files import sha256_of_file

HubCache = Callable[[str, Path, list[str]], Path]
Saved = Callable[[str], Path]
Save = Callable[[str, Path], Path]
MakeClips = Callable[[int, float], np.ndarray]


def change_weights(folder: Path, change: Callable[[dict[str, torch.Tensor]], None]) -> None:
    weights = load_file(folder / "model.safetensors")
    change(weights)
    save_file(weights, folder / "model.safetensors", metadata={"format": "pt"})


def test_every_baseline_is_listed_as_it_is() -> None:
    infos = {info.name: info for info in list_models()}
    for name in ("downsample", "random", "log-mel-statistics"):
        encoder = load_model(name)
        assert (infos[name].output_dim, infos[name].sample_rate) == (encoder.card.output_dim, encoder.card.sample_rate)
    assert infos["whisper-large-v2"].output_dim == 1280
    assert len(infos) == len(list_models())


@pytest.mark.parametrize(
    ("name", "suggestion"),
    [
        ("wisper-base", "'whisper-base'"),
        ("untrained:wisper-tiny.en", "'untrained:whisper-tiny.en'"),
        ("downsampel", "'downsample'"),
        ("log-mel", "'log-mel-statistics'"),
    ],
)
def test_an_unknown_name_suggests_the_nearest(name: str, suggestion: str) -> None:
    with pytest.raises(ValueError, match=f"unknown model '{name}'; did you mean {suggestion}"):
        load_model(name)


@pytest.mark.parametrize("name", ["", "qqqqqq", "untrained:"])
def test_an_unknown_name_without_neighbour_says_what_lists_the_names(name: str) -> None:
    words = f"unknown model '{name}'; `audio-compositionality models` lists those that have a name"
    with pytest.raises(ValueError, match=words):
        load_model(name)


@pytest.mark.parametrize("name", ["/no/such/folder", "./no-such-folder", "a/b/c"])
def test_a_folder_that_is_not_there(name: str) -> None:
    with pytest.raises(ValueError, match=f"there is no folder '{name}'"):
        load_model(name)


def test_without_network_the_message_says_what_to_pass(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(tmp_path))
    with pytest.raises(ValueError, match=r"cannot get 'openai/whisper-tiny' from the Hugging Face Hub.*local folder"):
        load_model("openai/whisper-tiny")


def test_a_folder_is_named_by_its_last_part_only(save: Save, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = save("wav2vec2", tmp_path / "secret" / "my-model")
    assert load_model(f"{folder}/").card.id == "my-model"
    monkeypatch.chdir(folder)
    assert load_model(".").card.id == "my-model"
    monkeypatch.chdir(tmp_path / "secret")
    assert load_model("my-model").card.id == "my-model"


def test_a_registered_name_with_weights_of_a_folder(saved: Saved) -> None:
    folder = saved("whisper")
    named, local = load_model(f"whisper-base={folder}"), load_model(str(folder))
    assert (named.card.id, local.card.id) == ("whisper-base", "whisper")
    assert named.card.revision == local.card.revision
    assert named.card.weights_sha256 == sha256_of_file(folder / "model.safetensors")
    assert load_model(f"untrained:whisper-base={folder}").card.id == "untrained:whisper-base"
    assert load_model(f"untrained:whisper-base={folder}").card.weights_sha256 is None


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


@pytest.mark.parametrize("path", ["/no/such/folder", "."])
def test_a_registered_name_with_a_folder_that_holds_none(
    path: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ValueError, match=f"'whisper-base={path}': it must be a folder with config.json"):
        load_model(f"whisper-base={path}")


def test_a_folder_with_a_registered_name_is_told_of(
    save: Save, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    save("whisper", tmp_path / "whisper-base")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(tmp_path / "hub"))
    with (
        pytest.warns(UserWarning, match=r"'whisper-base' is the listed model; the folder here is '\./whisper-base'"),
        pytest.raises(ValueError, match="cannot get 'openai/whisper-base'"),
    ):
        load_model("whisper-base")
    assert load_model("./whisper-base").card.id == "whisper-base"


def test_every_named_model_says_what_it_is() -> None:
    for info in list_models():
        assert (info.output_dim or 0) > 0 if info.embeds_sound else info.answers
        assert 16_000 <= info.sample_rate <= 48_000
        assert info.paradigm
        assert info.licence
        assert info.description
        has_none = "(baseline)" in info.paradigm or "(control)" in info.paradigm or info.name == "tiny-clap"
        assert bool(info.weights) != has_none


def test_revision_follows_the_weights(save: Save, tmp_path: Path) -> None:
    first, copy = save("wav2vec2", tmp_path / "a"), save("wav2vec2", tmp_path / "b")
    assert load_model(str(first)).card.revision == load_model(str(copy)).card.revision
    change_weights(copy, lambda w: w["masked_spec_embed"].add_(1))
    assert load_model(str(first)).card.revision != load_model(str(copy)).card.revision


@pytest.mark.parametrize("untrained", ["", "untrained:"])
def test_revision_follows_the_settings_of_a_folder(untrained: str, save: Save, tmp_path: Path) -> None:
    folder = save("wav2vec2", tmp_path / "model")
    first = load_model(f"{untrained}{folder}")
    path = folder / "preprocessor_config.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), "do_normalize": False}))
    second = load_model(f"{untrained}{folder}")
    assert first.card.revision != second.card.revision
    assert first.card.weights_sha256 == second.card.weights_sha256


def test_other_weights_beside_those_that_are_loaded_make_no_difference(save: Save, tmp_path: Path) -> None:
    folder = save("wav2vec2", tmp_path / "model")
    expected = load_model(str(folder))
    save_file({"other": torch.zeros(1)}, folder / "adapter.safetensors")
    again = load_model(str(folder))
    assert (again.card.revision, again.card.weights_sha256) == (expected.card.revision, expected.card.weights_sha256)


@pytest.mark.parametrize("rate", [0, -16_000, "16000"])
def test_a_sampling_rate_that_is_none(rate: object, save: Save, tmp_path: Path) -> None:
    folder = save("wav2vec2", tmp_path / "model")
    path = folder / "preprocessor_config.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), "sampling_rate": rate}))
    with pytest.raises(ValueError, match=rf"no audio model: its \w+ has the sampling_rate {rate!r}"):
        load_model(str(folder))


@pytest.mark.parametrize("name", ["../model.safetensors", "pytorch_model.bin", 7])
@pytest.mark.parametrize("family", ["wav2vec2", "clap"])
def test_an_index_that_lists_other_files(name: object, family: str, save: Save, tmp_path: Path) -> None:
    folder = save(family, tmp_path / "model")
    weights = load_file(folder / "model.safetensors")
    (folder / "model.safetensors").rename(tmp_path / "model.safetensors")
    torch.save(weights, folder / "pytorch_model.bin")
    (folder / "model.safetensors.index.json").write_text(json.dumps({"weight_map": dict.fromkeys(weights, name)}))
    with pytest.raises(ValueError, match=r"must list \.safetensors files beside it|cannot read .*index\.json"):
        load_model(str(folder))


def test_a_hub_model_without_safetensors_says_what_to_do(save: Save, hub_cache: HubCache, tmp_path: Path) -> None:
    folder = save("wav2vec2", tmp_path / "hub")
    (folder / "model.safetensors").unlink()
    hub_cache("some/wavlm", folder, ["model.safetensors", "model.safetensors.index.json", "processor_config.json"])
    with pytest.raises(ValueError, match=r"'some/wavlm' on the Hugging Face Hub holds no safe.*save_pretrained\(NEW\)"):
        load_model("some/wavlm")


def test_a_folder_without_configuration(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"holds no config\.json"):
        load_model(str(tmp_path))


def test_a_broken_configuration(save: Save, tmp_path: Path) -> None:
    folder = save("wav2vec2", tmp_path / "broken")
    settings = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text('{"model_type": "wav2vec2",')
    with pytest.raises(ValueError, match="cannot read the configuration of 'broken'"):
        load_model(str(folder))
    (folder / "config.json").write_text(json.dumps({**settings, "hidden_size": "wide"}))
    with pytest.raises(ValueError, match=r"cannot read the configuration of 'broken'[\s\S]*hidden_size"):
        load_model(str(folder))
    (folder / "config.json").write_text(json.dumps({**settings, "num_attention_heads": 5}))
    with pytest.raises(ValueError, match="the configuration of 'broken' describes no model"):
        load_model(f"untrained:{folder}")


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


@pytest.mark.parametrize("family", ["wav2vec2", "whisper", "clap"])
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


@pytest.mark.parametrize(
    ("family", "stored", "key", "extra"),
    [
        (
            "wav2vec2",
            "encoder.layers.1.final_layer_norm.bias",
            "encoder.layers.1.final_layer_norm.bias",
            "encoder.layers.9.final_layer_norm.bias",
        ),
        (
            "wav2vec2-masked",
            "wav2vec2.encoder.layers.0.attention.k_proj.weight",
            "encoder.layers.0.attention.k_proj.weight",
            "wav2vec2.encoder.layers.9.attention.k_proj.weight",
        ),
        # Files keep the names of an older version, which transformers translates.
        (
            "ast",
            "audio_spectrogram_transformer.encoder.layer.1.layernorm_after.bias",
            "layers.1.layernorm_after.bias",
            "audio_spectrogram_transformer.layers.9.layernorm_after.bias",
        ),
        (
            "clap",
            "audio_projection.linear1.weight",
            "audio_projection.linear1.weight",
            "audio_projection.linear9.weight",
        ),
        (
            "whisper",
            "model.encoder.layers.1.self_attn.v_proj.weight",
            "encoder.layers.1.self_attn.v_proj.weight",
            "model.encoder.layers.9.self_attn.v_proj.weight",
        ),
    ],
)
def test_missing_reshaped_and_left_over_weights_are_named(
    family: str, stored: str, key: str, extra: str, save: Save, tmp_path: Path
) -> None:
    folder = save(family, tmp_path / "odd")
    weight = load_file(folder / "model.safetensors")[stored]

    change_weights(folder, lambda w: w.pop(stored))
    with pytest.raises(ValueError, match=f"1 missing: {key}"):
        load_model(str(folder))

    change_weights(folder, lambda w: w.update({stored: torch.zeros(7)}))
    with pytest.raises(ValueError, match=rf"1 of another shape: {key} \(stored \(7,\), model \({weight.shape[0]},"):
        load_model(str(folder))

    change_weights(folder, lambda w: w.update({stored: weight, extra: weight.clone()}))
    with pytest.raises(ValueError, match=f"1 unexpected: {extra}"):
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


def test_an_unknown_device(saved: Saved) -> None:
    with pytest.raises(ValueError, match="cannot use device 'abacus'"):
        load_model(str(saved("wav2vec2")), device="abacus")


@pytest.mark.parametrize("family", ["wav2vec2", "hubert", "wavlm", "ast", "clap", "whisper"])
def test_untrained_is_the_same_architecture_with_seeded_weights(family: str, saved: Saved) -> None:
    folder = saved(family)
    trained = load_model(str(folder))
    torch.manual_seed(7)
    state = torch.random.get_rng_state()
    first, again = load_model(f"untrained:{folder}"), load_model(f"untrained:{folder}")
    other = load_model(f"untrained:{folder}", seed=1)
    assert torch.equal(torch.random.get_rng_state(), state)

    weights, stored = first._model.state_dict(), trained._model.state_dict()
    assert {k: v.shape for k, v in weights.items()} == {k: v.shape for k, v in stored.items()}
    assert all(torch.equal(v, again._model.state_dict()[k]) for k, v in weights.items())
    assert all(v.isfinite().all() for v in weights.values())
    drawn = (torch.nn.Linear, torch.nn.Conv1d, torch.nn.Conv2d)
    for name, module in first._model.named_modules():
        if isinstance(module, drawn):
            assert module.weight.std() > 0
            assert not torch.equal(module.weight, other._model.get_submodule(name).weight)
            assert not torch.equal(module.weight, trained._model.get_submodule(name).weight)

    assert (first.card.id, first.card.sample_rate, first.card.output_dim) == (
        f"untrained:{family}",
        trained.card.sample_rate,
        trained.card.output_dim,
    )
    assert first.card.revision == again.card.revision
    assert first.card.revision.startswith("seed-0-")
    assert other.card.revision.startswith("seed-1-")
    clips = np.random.default_rng(0).normal(0, 0.1, (2, first.card.sample_rate)).astype(np.float32)
    np.testing.assert_array_equal(
        first.embed(clips, first.card.sample_rate), again.embed(clips, first.card.sample_rate)
    )
    assert not np.allclose(
        first.embed(clips, first.card.sample_rate), other.embed(clips, first.card.sample_rate), rtol=1e-3, atol=0
    )


def test_untrained_revision_follows_the_configuration(save: Save, tmp_path: Path) -> None:
    folder = save("wav2vec2", tmp_path / "model")
    revision = load_model(f"untrained:{folder}").card.revision
    settings = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps({**settings, "intermediate_size": 40}))
    assert load_model(f"untrained:{folder}").card.revision != revision


def test_untrained_whisper_keeps_its_sinusoids_and_initialisation(saved: Saved) -> None:
    model = load_model(f"untrained:{saved('whisper')}")._model
    positions = np.arange(150)[:, None]
    # Section 2.2 of arXiv 2212.04356: sinusoidal position embeddings, sines in the first half.
    angles = positions * np.exp(-np.log(10_000) / 15 * np.arange(16))[None]
    expected = np.concatenate([np.sin(angles), np.cos(angles)], axis=1)
    np.testing.assert_allclose(model.embed_positions.weight.detach().numpy(), expected, atol=1e-4)
    layer = model.layers[0]
    assert layer.fc1.weight.std().item() == pytest.approx(model.config.init_std, rel=0.1)
    assert not layer.fc1.bias.any()
    assert torch.equal(layer.final_layer_norm.weight, torch.ones(32))


@pytest.mark.parametrize("name", ["downsample", "random", "log-mel-statistics"])
def test_a_baseline_has_nothing_to_untrain(name: str) -> None:
    with pytest.raises(ValueError, match=f"'untrained:{name}': '{name}' is a baseline without weights"):
        load_model(f"untrained:{name}")
