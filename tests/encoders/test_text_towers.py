"""Text towers of transformers' models: equal to transformers' own, loaded late, and refused where they cannot be.

MS-CLAP's are in `families/test_ms_clap_texts.py`.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch
import transformers
from safetensors.torch import load_file, save_file
from tokenizers import Tokenizer, models, pre_tokenizers, processors

from audio_compositionality.encoders.base import ModelError
from audio_compositionality.encoders.loading.registry import load_model
from audio_compositionality.encoders.options import EncoderOptions
from audio_compositionality.encoders.text_towers import SentenceEncoder, TextedEncoder

from .contract import TEXTS, Saved, TextContract, relative_error

WORDS = sorted({word for text in TEXTS for word in text.split()})
SPECIAL = {
    "clap": {"bos_token": "<s>", "pad_token": "<pad>", "eos_token": "</s>", "unk_token": "<unk>"},
    "pe-audio": {"pad_token": "[PAD]", "cls_token": "[CLS]", "sep_token": "[SEP]", "unk_token": "[UNK]"},
}
"""In the order of their numbers in the tiny models of conftest.py."""


def add_tokenizer(folder: Path, family: str, longest: int = 40, words: list[str] = WORDS) -> Path:
    """Put a tokenizer of words beside a tiny model."""
    special = SPECIAL[family]
    first, last = ("<s>", "</s>") if family == "clap" else ("[CLS]", "[SEP]")
    vocabulary = {token: number for number, token in enumerate([*special.values(), *words])}
    tokenizer = Tokenizer(models.WordLevel(vocabulary, unk_token=special["unk_token"]))
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    tokenizer.post_processor = processors.TemplateProcessing(
        single=f"{first} $A {last}", special_tokens=[(token, vocabulary[token]) for token in (first, last)]
    )
    wrapped = transformers.PreTrainedTokenizerFast(tokenizer_object=tokenizer, model_max_length=longest, **special)
    wrapped.save_pretrained(folder)
    return folder


@pytest.fixture(scope="module")
def worded(saved: Saved, tmp_path_factory: pytest.TempPathFactory) -> Saved:
    """Folder of a tiny model of a family with a tokenizer; tests must not write to it."""
    root = tmp_path_factory.mktemp("worded")

    def folder(family: str) -> Path:
        path = root / family
        if not path.exists():
            shutil.copytree(saved(family), path)
            add_tokenizer(path, "clap" if family.startswith("clap") else "pe-audio")
        return path

    return folder


@pytest.fixture
def copied(worded: Saved, tmp_path: Path) -> Callable[[], Path]:
    """Function that copies the worded CLAP, for tests that write to it."""
    return lambda: Path(shutil.copytree(worded("clap"), tmp_path / "clap"))


def load(name: Path | str, seed: int = 0, **options: object) -> TextedEncoder:
    encoder = load_model(str(name), device="cpu", options=EncoderOptions(**options), seed=seed)
    assert isinstance(encoder, TextedEncoder)
    return encoder


def padded(folder: Path) -> dict[str, torch.Tensor]:
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
    inputs = tokenizer(TEXTS, padding=True, return_tensors="pt")
    assert inputs["attention_mask"].sum(1).tolist() == [5, 14, 3, 9, 5]
    return {name: inputs[name] for name in ("input_ids", "attention_mask")}


class TestTexts(TextContract):
    @pytest.fixture(params=["clap", "pe-audio", "random", "bag-of-words"])
    def name(self, request: pytest.FixtureRequest, worded: Saved) -> str:
        name: str = request.param
        return str(worded(name)) if name.startswith(("clap", "pe-")) else name


@pytest.mark.parametrize("family", ["clap"])
def test_texts_of_clap_are_transformers_text_features(family: str, worded: Saved) -> None:
    model = transformers.ClapModel.from_pretrained(worded(family)).eval()
    with torch.no_grad():
        expected = model.get_text_features(**padded(worded(family))).pooler_output.numpy()
    actual = load(worded(family)).embed_text(TEXTS)
    assert relative_error(actual, expected) < 1e-6
    np.testing.assert_allclose(np.linalg.norm(actual, axis=1), 1, rtol=1e-6)


@pytest.mark.parametrize("family", ["pe-audio", "pe-audio-frames"])
def test_texts_of_perception_encoders_are_those_that_transformers_compares_with_sound(
    family: str, worded: Saved
) -> None:
    """By the model's `forward`: its `get_text_audio_embeds` raises an error in transformers 5.23."""
    model = getattr(transformers, "PeAudioFrameLevelModel" if "frames" in family else "PeAudioModel")
    with torch.no_grad():
        output = model.from_pretrained(worded(family)).eval()(
            **padded(worded(family)), input_values=torch.zeros(len(TEXTS), 1, 1920)
        )
    assert relative_error(load(worded(family)).embed_text(TEXTS), output.text_audio_embeds.numpy()) < 1e-6


@pytest.mark.parametrize("prefix", ["", "audio_model.", "video_model."])
def test_the_text_tower_of_an_audio_visual_model(prefix: str, worded: Saved, tmp_path: Path) -> None:
    """The network of words is stored under one of three names, the projection under that of the audio model."""
    folder = tmp_path / "av"
    shutil.copytree(worded("pe-audio"), folder)
    config = json.loads((folder / "config.json").read_text())
    config = {"model_type": "pe_audio_video", "text_config": config["text_config"],
              "audio_video_config": {"audio_config": config["audio_config"]}}  # fmt: skip
    (folder / "config.json").write_text(json.dumps(config))
    weights = load_file(folder / "model.safetensors")
    renamed = {(prefix if k.startswith("text_model.") else "audio_model.") + k: v for k, v in weights.items()}
    renamed["text_audio_video_head.proj.weight"] = torch.zeros(3)
    save_file(renamed, folder / "model.safetensors", {"format": "pt"})
    np.testing.assert_array_equal(load(folder).embed_text(TEXTS), load(worded("pe-audio")).embed_text(TEXTS))


def test_the_tower_is_loaded_with_the_first_text(worded: Saved, copied: Callable[[], Path]) -> None:
    folder = copied()
    weights = load_file(folder / "model.safetensors")
    audio = {k: v for k, v in weights.items() if k.startswith("audio_")}
    save_file(audio, folder / "model.safetensors", {"format": "pt"})
    encoder = load(folder)
    assert encoder.card.parameters == load(worded("clap")).card.parameters
    with pytest.raises(ModelError, match=r"do not match a ClapTextModelWithProjection: \d+ missing: text_model"):
        encoder.embed_text(TEXTS)
    extra = {**weights, "text_projection.linear3.weight": torch.zeros(2)}
    save_file(extra, folder / "model.safetensors", {"format": "pt"})
    with pytest.raises(ModelError, match=r"1 unexpected: text_projection\.linear3\.weight"):
        load(folder).embed_text(TEXTS)


@pytest.mark.parametrize("family", ["clap", "pe-audio"])
def test_twins_have_their_own_text_towers(family: str, worded: Saved, tmp_path: Path) -> None:
    trained = load(worded(family)).embed_text(TEXTS)
    for kind in ("untrained", "shuffled"):
        first, again, other = (load(f"{kind}:{worded(family)}", seed).embed_text(TEXTS) for seed in (1, 1, 2))
        np.testing.assert_array_equal(first, again)
        assert relative_error(first, other) > 1e-3
        assert relative_error(first, trained) > 1e-3
    for file in worded(family).glob("*.json"):
        shutil.copy(file, tmp_path)
    without_weights = load(f"untrained:{tmp_path}", 1).embed_text(TEXTS)
    np.testing.assert_array_equal(without_weights, load(f"untrained:{worded(family)}", 1).embed_text(TEXTS))


def test_texts_are_in_the_space_of_the_output_alone(worded: Saved) -> None:
    for options in ({"layer": 1}, {"pooling": "mean"}):
        with pytest.raises(ModelError, match="embeds no text: texts share the space of the model's own output only"):
            load(worded("clap"), **options).embed_text(TEXTS)
    with pytest.raises(ModelError, match="'clap@layer=1' embeds no text"):
        load(worded("clap")).at_layers([1])[0].embed_text(TEXTS)


def test_a_text_that_is_too_long_is_refused_by_its_tokens(saved: Saved, tmp_path: Path) -> None:
    folder = tmp_path / "clap"
    shutil.copytree(saved("clap"), folder)
    encoder = load(add_tokenizer(folder, "clap", longest=12))
    assert encoder.embed_text(["dog " * 10]).shape == (1, 24)
    with pytest.raises(ModelError, match=r"^the text '(dog ){11}' has 13 tokens, but 'clap' takes 1 to 12$"):
        encoder.embed_text(["dog", "dog " * 11])
    # However many a tokenizer would make, the network has 514 positions, two of which are never used.
    long = load(add_tokenizer(folder, "clap", longest=10**9))
    assert long.embed_text(["dog " * 510]).shape == (1, 24)
    with pytest.raises(ModelError, match="has 513 tokens, but 'clap' takes 1 to 512"):
        long.embed_text(["dog " * 511])


def test_a_checkpoint_without_its_tokenizer_is_refused(saved: Saved, tmp_path: Path) -> None:
    with pytest.raises(ModelError, match=r"'clap' has no tokenizer, so it cannot embed text: it needs tokenizer\.json"):
        load(saved("clap")).embed_text(TEXTS)
    folder = tmp_path / "clap"
    shutil.copytree(saved("clap"), folder)
    many = [f"word{number}" for number in range(30)]
    with pytest.raises(ModelError, match="has 34 tokens, but the text model knows 20; they do not match"):
        load(add_tokenizer(folder, "clap", words=many)).embed_text(TEXTS)


def test_the_revision_of_a_folder_names_its_tokenizer(worded: Saved, saved: Saved, tmp_path: Path) -> None:
    plain, with_words = (load_model(str(folder("clap"))).card for folder in (saved, worded))
    assert plain.revision != with_words.revision
    assert plain.weights_sha256 == with_words.weights_sha256
    shutil.copytree(saved("whisper"), tmp_path / "whisper")
    (tmp_path / "whisper" / "tokenizer.json").write_text("{}")
    assert load_model(str(tmp_path / "whisper")).card.revision == load_model(str(saved("whisper"))).card.revision


def split_into_two_files(folder: Path) -> None:
    """Put the text tower into a file of its own, with an index, as large checkpoints have it."""
    weights = load_file(folder / "model.safetensors")
    (folder / "model.safetensors").unlink()
    places = {k: f"model-0000{1 + k.startswith('text_')}-of-00002.safetensors" for k in weights}
    for name in set(places.values()):
        save_file({k: v for k, v in weights.items() if places[k] == name}, folder / name, {"format": "pt"})
    (folder / "model.safetensors.index.json").write_text(json.dumps({"weight_map": places}))


def test_a_tower_in_a_file_of_its_own(worded: Saved, copied: Callable[[], Path]) -> None:
    """Of a folder it is in the revision; embeddings of other texts are not taken for stored ones."""
    folder = copied()
    split_into_two_files(folder)
    encoder = load(folder)
    np.testing.assert_array_equal(encoder.embed_text(TEXTS), load(worded("clap")).embed_text(TEXTS))
    texts = folder / "model-00002-of-00002.safetensors"
    save_file({k: v + 1 for k, v in load_file(texts).items()}, texts, {"format": "pt"})
    assert load(folder).card.revision != encoder.card.revision


def test_of_the_hub_the_tower_is_fetched_with_the_first_text(
    worded: Saved, tmp_path: Path, hub_cache: Callable[[str, Path, list[str]], Path]
) -> None:
    """The cache here has the audio tower alone, and tests have no network."""
    folder = tmp_path / "clap"
    shutil.copytree(worded("clap"), folder)
    split_into_two_files(folder)
    (folder / "model-00002-of-00002.safetensors").unlink()
    hub_cache("some/clap", folder, ["model.safetensors", "processor_config.json"])
    encoder = load("some/clap")
    clips = np.random.default_rng(0).normal(0, 0.1, (1, 48_000)).astype(np.float32)
    assert encoder.embed(clips, 48_000).shape == (1, 24)
    with pytest.raises(ModelError, match=r"cannot get model-00002-of-00002\.safetensors of 'some/clap'"):
        encoder.embed_text(TEXTS)


# Encoders of sentences


VOCABULARY = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "the", "dog", "rain", "is", "heard", "longest", "brass")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A tiny BERT with fresh weights and a vocabulary of a few words."""
    folder = tmp_path_factory.mktemp("sentences") / "tiny-bert"
    torch.manual_seed(0)
    config = transformers.BertConfig(
        vocab_size=len(VOCABULARY), hidden_size=32, num_hidden_layers=2, num_attention_heads=2, intermediate_size=48,
        max_position_embeddings=16,
    )  # fmt: skip
    transformers.BertModel(config).save_pretrained(folder)
    vocabulary = folder / "vocab.txt"
    vocabulary.write_text("\n".join(VOCABULARY) + "\n", "utf-8")
    transformers.BertTokenizer(str(vocabulary)).save_pretrained(folder)
    return folder


def test_an_embedding_is_the_mean_over_the_tokens_of_length_1(folder: Path) -> None:
    (vector,) = SentenceEncoder(str(folder))(["the dog"])
    model = transformers.BertModel.from_pretrained(folder).eval()
    with torch.inference_mode():
        ids = torch.tensor([[VOCABULARY.index(word) for word in ("[CLS]", "the", "dog", "[SEP]")]])
        mean = model(input_ids=ids).last_hidden_state[0].mean(0).numpy()
    assert np.allclose(vector, mean / np.linalg.norm(mean), atol=1e-6)
    assert vector.dtype == np.float64


def test_what_else_is_embedded_changes_nothing(folder: Path, tmp_path: Path) -> None:
    encoder = SentenceEncoder(str(folder))
    sentences = ["the dog", "the rain is heard longest", "", "brass " * 100] * 12
    together = encoder(sentences)
    assert together.shape == (48, 32)
    for place in (0, 1, 2, 3, 47):
        assert np.allclose(encoder([sentences[place]])[0], together[place], atol=1e-6)
    with pytest.raises(ModelError, match="configuration"):
        SentenceEncoder(str(tmp_path))


# The small text tower
