"""Encoders of sentences: the mean over the tokens of the last layer, whatever else is in the batch."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
import transformers

from audio_compositionality.encoders.base import ModelError
from audio_compositionality.encoders.text_towers import SentenceEncoder
from audio_compositionality.metrics.answers import embedding_match

WORDS = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "the", "dog", "rain", "is", "heard", "longest", "brass")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A tiny BERT with fresh weights and a vocabulary of a few words."""
    folder = tmp_path_factory.mktemp("sentences") / "tiny-bert"
    torch.manual_seed(0)
    config = transformers.BertConfig(
        vocab_size=len(WORDS), hidden_size=32, num_hidden_layers=2, num_attention_heads=2, intermediate_size=48,
        max_position_embeddings=16,
    )  # fmt: skip
    transformers.BertModel(config).save_pretrained(folder)
    vocabulary = folder / "vocab.txt"
    vocabulary.write_text("\n".join(WORDS) + "\n", "utf-8")
    transformers.BertTokenizer(str(vocabulary)).save_pretrained(folder)
    return folder


def test_an_embedding_is_the_mean_over_the_tokens_of_length_1(folder: Path) -> None:
    (vector,) = SentenceEncoder(str(folder))(["the dog"])
    model = transformers.BertModel.from_pretrained(folder).eval()
    with torch.inference_mode():
        ids = torch.tensor([[WORDS.index(word) for word in ("[CLS]", "the", "dog", "[SEP]")]])
        mean = model(input_ids=ids).last_hidden_state[0].mean(0).numpy()
    assert np.allclose(vector, mean / np.linalg.norm(mean), atol=1e-6)
    assert vector.dtype == np.float64


def test_what_else_is_embedded_changes_nothing(folder: Path) -> None:
    encoder = SentenceEncoder(str(folder))
    sentences = ["the dog", "the rain is heard longest", "", "brass " * 100] * 12
    together = encoder(sentences)
    assert together.shape == (48, 32)
    for place in (0, 1, 2, 3, 47):
        assert np.allclose(encoder([sentences[place]])[0], together[place], atol=1e-6)


def test_the_option_itself_is_nearest_to_an_answer(folder: Path) -> None:
    encoder = SentenceEncoder(str(folder))
    assert embedding_match(["rain", "dog", "brass"], [["dog", "rain", "brass"]] * 3, encoder) == [1, 0, 2]


def test_what_is_no_encoder_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ModelError, match="configuration"):
        SentenceEncoder(str(tmp_path))
