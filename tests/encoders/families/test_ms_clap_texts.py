"""Texts of MS-CLAP 2022 and 2023 against the published package, whose text encoders ran with the same seeded weights.

`tests/references/ms_clap_texts.py` made the reference, with the published tokenizers and small networks.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors import safe_open
from safetensors.numpy import load_file, save_file
from seeded import FOLDER, seeded_state
from transformers import BertConfig, GPT2Config

from audio_compositionality.encoders.base import ModelError
from audio_compositionality.encoders.families import ms_clap
from audio_compositionality.encoders.loading.beside_weights import PublishedTokenizer
from audio_compositionality.encoders.loading.registry import load_model
from audio_compositionality.encoders.loading.weights import Weights
from audio_compositionality.encoders.networks import htsat
from audio_compositionality.encoders.text_towers import TextedEncoder, tokens_of

from ..contract import relative_error, small_networks

NAMES = ("ms-clap-2022", "ms-clap-2023")
TOKENIZERS = {"ms-clap-2022": ms_clap.TOKENIZER_2022, "ms-clap-2023": ms_clap.TOKENIZER}
MARK = "Fireworks! a crowd cheers"

Load = Callable[..., TextedEncoder]


def about(name: str) -> dict[str, Any]:
    with safe_open(FOLDER / "texts" / f"{name}.safetensors", "numpy") as file:
        content: dict[str, Any] = json.loads(file.metadata()["about"])
    return content


def reference(name: str) -> dict[str, np.ndarray]:
    return load_file(FOLDER / "texts" / f"{name}.safetensors")


@pytest.fixture
def load(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Load:
    """Function of a name: the model with a small audio tower of fresh weights and the reference's text tower."""
    small = {name: about(name)["small"] for name in NAMES}
    monkeypatch.setattr(htsat, "gpt2_config", partial(GPT2Config, **small["ms-clap-2023"]))
    monkeypatch.setattr(htsat, "bert_config", partial(BertConfig, **small["ms-clap-2022"]))

    def load(name: str, extra: dict[str, np.ndarray] | None = None, folder: Path | None = None) -> TextedEncoder:
        with small_networks():
            encoder = load_model(f"untrained:{name}", device="cpu")
        assert isinstance(encoder, (ms_clap.MsClapEncoder, ms_clap.MsClap2022Encoder))
        path = tmp_path / f"{name}.safetensors"
        save_file({**seeded_state(about(name)["shapes"]), **(extra or {})}, path)
        encoder._weights = Weights(name, path, folder=folder)
        return encoder

    return load


@pytest.fixture
def recorded_tokens(monkeypatch: pytest.MonkeyPatch) -> None:
    """The tokenizers, as far as the reference recorded them; they are asked for the texts with what is appended."""

    def tokenizer(published: PublishedTokenizer, *_: object) -> Callable[..., dict[str, list[list[int]]]]:
        name = next(name for name, known in TOKENIZERS.items() if known == published)
        end = " <|endoftext|>" if name == "ms-clap-2023" else ""
        of = {text + end: tokens for text, tokens in zip(about(name)["texts"], about(name)["tokens"], strict=True)}
        return lambda texts, **_: {"input_ids": [of.get(text, list(range(len(text.split())))) for text in texts]}

    monkeypatch.setattr(PublishedTokenizer, "load", tokenizer)


@pytest.mark.usefixtures("recorded_tokens")
@pytest.mark.parametrize("name", NAMES)
def test_same_embeddings_as_the_package(name: str, load: Load) -> None:
    texts, of_package = about(name)["texts"], reference(name)
    assert of_package["embeddings"].shape == (len(texts), 1024)
    together = load(name).embed_text(texts)
    alone = np.concatenate([load(name).embed_text([text]) for text in texts])
    for actual in (together, alone):
        assert relative_error(actual, of_package["last"]) < 1e-5
    # No two of the reference are one: word order, length and punctuation all count.
    pairs = [(i, j) for i in range(len(texts)) for j in range(i)]
    assert min(relative_error(together[i], together[j]) for i, j in pairs) > 1e-2
    unmarked = [row for row, text in enumerate(texts) if "!" not in text]
    assert relative_error(together[unmarked], of_package["embeddings"][unmarked]) < 1e-5


def test_an_exclamation_mark_is_a_word_like_others(load: Load) -> None:
    """The package takes it for padding, and with it an earlier token than the last."""
    row = about("ms-clap-2023")["texts"].index(MARK)
    of_package = reference("ms-clap-2023")
    assert about("ms-clap-2023")["tokens"][row].count(0) == 1
    assert relative_error(of_package["embeddings"][row], of_package["last"][row]) > 0.1
    assert relative_error(*(reference("ms-clap-2022")[key][row] for key in ("embeddings", "last"))) == 0


@pytest.mark.usefixtures("recorded_tokens")
@pytest.mark.parametrize(("name", "most"), [("ms-clap-2023", 77), ("ms-clap-2022", 100)])
def test_a_text_has_no_more_tokens_than_in_training(name: str, most: int, load: Load) -> None:
    encoder = load(name)
    # The recorder counts a token a word; what is appended to the last word is one with it, or one more.
    appended = 1 if name == "ms-clap-2023" else 0
    encoder.embed_text(["word " * (most - 1 - appended) + "word"])
    with pytest.raises(ModelError, match=rf"has {most + 1} tokens, but 'untrained:{name}' takes 1 to {most}"):
        encoder.embed_text(["word " * (most - appended) + "word"])


@pytest.mark.usefixtures("recorded_tokens")
def test_every_tensor_of_the_official_checkpoints_is_accounted_for(load: Load) -> None:
    constants = {
        "ms-clap-2023": {
            "caption_encoder.base.h.0.attn.bias": np.ones((1, 1, 8, 8), np.float32),
            "caption_encoder.base.h.1.attn.masked_bias": np.float32([-1e4]),
        },
        "ms-clap-2022": {"caption_encoder.base.embeddings.position_ids": np.arange(512)[None]},
    }
    for name in NAMES:
        others = {"logit_scale": np.float32([4.6]), "audio_encoder.projection.linear1.weight": np.zeros((2, 2), "f")}
        plain, with_others = load(name).embed_text([MARK]), load(name, {**constants[name], **others}).embed_text([MARK])
        np.testing.assert_array_equal(plain, with_others)
        with pytest.raises(ModelError, match=r"1 unexpected: base\.extra\.weight"):
            load(name, {"caption_encoder.base.extra.weight": np.zeros(2, np.float32)}).embed_text([MARK])


def test_the_networks_are_gpt2_and_bert_base_with_the_projections_of_the_published_files() -> None:
    """Parameters of GPT-2 (124,439,808) and of BERT base uncased (109,482,240) as their publishers state them."""
    with torch.device("meta"):
        networks = htsat.Gpt2Text(), htsat.BertText()
    projection = 768 * 1024 + 1024 * 1024 + 2 * 1024
    pooler = 768 * 768 + 768
    counts = [sum(p.numel() for p in network.parameters()) for network in networks]
    assert counts == [124_439_808 + projection, 109_482_240 - pooler + projection]


def test_a_tokenizer_that_cannot_be_had_is_named(load: Load, tmp_path: Path) -> None:
    with pytest.raises(
        ModelError,
        match=r"needs the tokenizer of openai-community/gpt2 to embed text, which cannot be downloaded: .* "
        r"put its tokenizer\.json next to the weights and pass ms-clap-2023=/path/to/the file",
    ):
        load("ms-clap-2023").embed_text(["a dog"])
    (tmp_path / "vocab.json").write_text('{"a": 0, "<|endoftext|>": 1}')
    (tmp_path / "merges.txt").write_text("#version: 0.2\n")
    with pytest.raises(ModelError, match="differs from openai-community/gpt2, with which 'ms-clap-2023' was trained"):
        load("ms-clap-2023", folder=tmp_path).embed_text(["a dog"])


@pytest.mark.weights
@pytest.mark.parametrize("name", NAMES)
def test_the_published_tokenizers_give_the_recorded_tokens(name: str, load: Load, checkpoints: Path) -> None:
    """From a folder beside the weights, as a user without network has them."""
    folder = checkpoints / {"ms-clap-2022": "bert-tokenizer", "ms-clap-2023": "gpt2-tokenizer"}[name]
    encoder = load(name, folder=folder)
    assert relative_error(encoder.embed_text(about(name)["texts"]), reference(name)["last"]) < 1e-5
    assert encoder._text_tower is not None
    end = " <|endoftext|>" if name == "ms-clap-2023" else ""
    texts = [text + end for text in about(name)["texts"]]
    assert tokens_of(encoder._text_tower.tokenizer, texts) == about(name)["tokens"]
    assert not end or about(name)["tokens"][0][-2:] == [220, 50256]
