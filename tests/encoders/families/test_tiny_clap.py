"""The tiny CLAP: what it is, that it is saved as any other, and that its tokenizer knows every word."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
import transformers

from audio_compositionality.encoders.base import ModelError
from audio_compositionality.encoders.loading.registry import load_model
from audio_compositionality.encoders.networks.small_networks import (
    MAX_TOKENS,
    save_clap,
    shipped_words,
    tiny_clap,
    tiny_extractor,
    tiny_tokenizer,
)
from audio_compositionality.encoders.text_towers import TextedEncoder

from ..contract import About, ModelContract

TEXTS = ["a slow high bell followed by a fast low organ", "Zebra! an étude", "rain"]


class TestTinyClap(ModelContract):
    @pytest.fixture
    def about(self) -> About:
        return About("tiny-clap", 16_000, 128, has_trained_weights=False)


def load(name: str) -> TextedEncoder:
    encoder = load_model(name, device="cpu")
    assert isinstance(encoder, TextedEncoder)
    return encoder


def test_it_is_small_and_says_that_it_is_untrained() -> None:
    card = load("tiny-clap").card
    assert (card.id, card.revision, card.paradigm, card.weights_sha256) == ("tiny-clap", "v1", "untrained", None)
    assert sum(weight.numel() for weight in tiny_clap().parameters()) < 1_000_000
    with pytest.raises(ModelError, match="'tiny-clap' is a baseline without weights"):
        load("untrained:tiny-clap")


def test_what_is_saved_is_the_same_model_to_transformers_and_as_a_folder(tmp_path: Path) -> None:
    state = torch.random.get_rng_state()
    save_clap(tiny_clap(), tmp_path)
    assert torch.equal(torch.random.get_rng_state(), state)
    clips = np.random.default_rng(0).normal(0, 0.1, (2, 80_000)).astype(np.float32)
    encoder, folder = load("tiny-clap"), load(str(tmp_path))
    np.testing.assert_array_equal(encoder.embed(clips, 16_000), folder.embed(clips, 16_000))
    np.testing.assert_array_equal(encoder.embed_text(TEXTS), folder.embed_text(TEXTS))
    model = transformers.ClapModel.from_pretrained(tmp_path).eval()
    tokens = transformers.AutoTokenizer.from_pretrained(tmp_path)(TEXTS, padding=True, return_tensors="pt")
    features = transformers.ClapFeatureExtractor.from_pretrained(tmp_path)(
        list(clips), sampling_rate=16_000, return_tensors="pt"
    )
    with torch.no_grad():
        texts = model.get_text_features(**tokens).pooler_output.numpy()
        sounds = model.get_audio_features(**features).pooler_output.numpy()
    np.testing.assert_allclose(encoder.embed_text(TEXTS), texts, atol=1e-6)
    np.testing.assert_allclose(encoder.embed(clips, 16_000), sounds, atol=1e-6)


def test_weights_are_those_of_the_seed() -> None:
    first, again, other = (tiny_clap(seed).state_dict() for seed in (0, 0, 1))
    assert all(torch.equal(first[name], again[name]) for name in first)
    assert not torch.equal(first["text_projection.linear1.weight"], other["text_projection.linear1.weight"])


def test_no_word_is_unknown() -> None:
    tokenizer = tiny_tokenizer()
    tokens = tokenizer.tokenize("Bells, then a zebra's 2nd étude - (quack)!")
    assert tokens[:4] == ["bells", ",", "then", "a"]
    assert tokens[4:9] == ["z", "##e", "##b", "##r", "##a"]
    assert tokenizer.unk_token not in tokens
    assert tokenizer("a dog")["input_ids"][::3] == [0, 2]
    assert len(tokenizer) == tiny_clap().config.text_config.vocab_size
    mine = tiny_tokenizer(["zebra", "étude"])
    assert mine.tokenize("zebra bell") == ["zebra", "b", "##e", "##l", "##l"]


def test_shipped_words_are_words() -> None:
    words = shipped_words()
    assert len(words) == len(set(words)) > 400
    assert all(word.isalpha() and word.islower() for word in words)
    # YAML takes these for booleans where they stand alone.
    assert {"no", "on", "off"} <= set(words)


def test_a_shorter_clip_is_followed_by_silence_and_not_repeated() -> None:
    clip = np.random.default_rng(0).normal(0, 0.1, (1, 48_000)).astype(np.float32)
    encoder = load("tiny-clap")
    longer = np.pad(clip, ((0, 0), (0, 112_000)))
    np.testing.assert_array_equal(encoder.embed(clip, 16_000), encoder.embed(longer, 16_000))
    assert tiny_extractor().padding == "pad"


def test_a_text_has_77_tokens_at_most() -> None:
    encoder = load("tiny-clap")
    encoder.embed_text(["bell " * (MAX_TOKENS - 2)])
    with pytest.raises(ModelError, match="has 78 tokens, but 'tiny-clap' takes 1 to 77"):
        encoder.embed_text(["bell " * (MAX_TOKENS - 1)])
