import numpy as np
import pytest
import torch
from transformers import ClapModel

from audio_compositionality.encoders.loading.registry import load_model
from audio_compositionality.training.model import MAX_SCALE, open_towers
from audio_compositionality.training.settings import TRAINED, TrainingError

TEXTS = ["a low bell, then a high organ", "a reed"]


@pytest.fixture
def towers():
    return open_towers("tiny-clap")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    path = tmp_path_factory.mktemp("clap") / "tiny"
    towers = open_towers("tiny-clap", seed=3)
    towers.measure_norm([torch.randn(4, 1, 501, 32) * 20 - 40])
    towers.save(path)
    return path


def test_a_folder_is_opened_by_clap_and_by_load_model_and_embeds_the_same(folder):
    towers = open_towers(str(folder))
    assert not towers.needs_norm
    tokens = towers.tokeniser(TEXTS)
    ours = towers.embed_text(tokens).detach()
    theirs = ClapModel.from_pretrained(folder).eval()
    expected = theirs.get_text_features(input_ids=tokens.ids, attention_mask=tokens.mask.long()).pooler_output
    assert torch.allclose(ours, expected, atol=1e-6)
    model = load_model(str(folder), device="cpu")
    assert np.allclose(model.embed_text(TEXTS), ours.numpy(), atol=1e-5)
    clips = np.random.default_rng(0).normal(0, 0.1, (2, 160_000)).astype(np.float32)
    features = model.prepare(clips, 16_000).log_mel[:, None]
    assert np.allclose(model.embed(clips, 16_000), towers.embed_audio(features).detach().numpy(), atol=1e-5)
    encoder = towers.open_encoder()
    assert np.allclose(encoder.embed(clips, 16_000), model.embed(clips, 16_000), atol=1e-6)
    assert np.allclose(encoder.embed_text(TEXTS), model.embed_text(TEXTS), atol=1e-6)


def test_small_towers_are_opened_by_load_model_and_embed_the_same(tmp_path):
    towers = open_towers("tiny", seed=3)
    assert towers.needs_norm
    towers.measure_norm([torch.randn(4, 1, 251, 64) * 20 - 40])
    towers.save(tmp_path)
    again, model = open_towers(str(tmp_path)), load_model(str(tmp_path), device="cpu")
    assert not again.needs_norm
    clips = np.random.default_rng(0).normal(0, 0.1, (2, 160_000)).astype(np.float32)
    front_end = again.open_front_end()
    features = torch.from_numpy(np.stack([front_end(clip) for clip in clips]))
    audio, text = (again.embed_audio(features).detach(), again.embed_text(again.tokeniser(TEXTS)).detach())
    for encoder in (model, again.open_encoder()):
        assert np.allclose(encoder.embed(clips, 16_000), audio.numpy(), atol=1e-5)
        assert np.allclose(encoder.embed_text(TEXTS), text.numpy(), atol=1e-5)
    with pytest.raises(TrainingError, match="all weights of this model are trained"):
        open_towers("tiny", train="projection")


@pytest.mark.parametrize("trained", TRAINED)
def test_which_weights_are_trained(towers, trained):
    towers.choose(trained)
    names = {name.removeprefix("model.") for name, _ in towers.named_trained()}
    every = {name for name, _ in towers.model.named_parameters()}
    assert "logit_scale_a" in names
    assert "logit_scale_t" not in names
    if trained == "all":
        assert names == every - {"logit_scale_t"}
        return
    heads = {name for name in every if name.startswith(("audio_projection", "text_projection"))} | {"logit_scale_a"}
    parts = {".".join(name.split(".")[:4]) for name in names - heads}
    last = {
        *("audio_model.audio_encoder.layers.1", "audio_model.audio_encoder.norm.weight"),
        *("audio_model.audio_encoder.norm.bias", "text_model.encoder.layer.1"),
        *("text_model.pooler.dense.weight", "text_model.pooler.dense.bias"),
    }
    assert parts == (last if trained == "last" else set())


def test_a_text_is_embedded_in_evaluation_mode_and_a_twin_has_other_weights(towers, folder):
    towers.train()
    assert not any(module.training for module in towers.modules())
    alone = torch.cat([towers.embed_text(towers.tokeniser([text])) for text in TEXTS])
    assert torch.allclose(alone, towers.embed_text(towers.tokeniser(TEXTS)), atol=1e-6)
    fresh, stored = open_towers(f"untrained:{folder}", seed=1), open_towers(str(folder))
    assert (fresh.needs_norm, stored.needs_norm) == (True, False)
    assert not torch.equal(fresh.embed_text(fresh.tokeniser(TEXTS)), stored.embed_text(stored.tokeniser(TEXTS)))


def test_the_norm_of_fresh_weights_is_that_of_the_clips(towers):
    assert towers.needs_norm
    features = torch.randn(6, 1, 501, 32) * torch.arange(1, 33) - 40
    towers.measure_norm([features[:4], features[4:]])
    norm = towers.model.audio_model.audio_encoder.batch_norm
    values = features.flatten(0, -2)
    assert torch.allclose(norm.running_mean, values.mean(dim=0), atol=1e-3)
    assert torch.allclose(norm.running_var, values.var(dim=0, correction=0), rtol=1e-4)
    with pytest.raises(TrainingError, match="no clips"):
        towers.measure_norm([])


def test_the_scale_stays_below_its_limit_and_both_are_one(towers):
    assert towers.scale().item() == pytest.approx(1 / 0.07, rel=1e-5)
    with torch.no_grad():
        towers.model.logit_scale_a.fill_(9.0)
    towers.limit_scale()
    assert towers.scale().item() == pytest.approx(MAX_SCALE, rel=1e-5)
    assert torch.equal(towers.model.logit_scale_a, towers.model.logit_scale_t)


def test_a_name_that_there_is_not_is_named(tmp_path):
    for init, message in (("tyni", "did you mean 'tiny'"), ("random", "no folder, no Hub id")):
        with pytest.raises(TrainingError, match=message):
            open_towers(init)
    with pytest.raises(TrainingError, match=r"no config\.json"):
        open_towers(str(tmp_path))
    (tmp_path / "config.json").write_text('{"model_type": "whisper"}')
    with pytest.raises(TrainingError, match="model type 'whisper'"):
        open_towers(str(tmp_path))
