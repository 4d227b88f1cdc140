"""A tiny CLAP that nothing has to be downloaded for: its configuration, front end, tokenizer and fresh weights.

It is a `ClapModel` of transformers like any other, so that training may start from it and what is saved is opened by
`ClapModel.from_pretrained`, and by `load_model` as a folder.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache
from importlib.resources import files
from pathlib import Path
from string import ascii_lowercase, digits, punctuation
from typing import TYPE_CHECKING

import yaml

if TYPE_CHECKING:
    from transformers import BertTokenizer, ClapConfig, ClapFeatureExtractor, ClapModel

SAMPLE_RATE = 16_000
SECONDS = 10
DIM = 128
"""Length of an embedding."""

MELS = 32
MAX_TOKENS = 77
"""Tokens of a text, the first and the last, which stand for its ends, among them."""

START, PAD, END, UNKNOWN = SPECIAL_TOKENS = ("<s>", "<pad>", "</s>", "<unk>")
"""By their numbers, which are RoBERTa's."""


@cache
def shipped_words() -> tuple[str, ...]:
    """The whole words of the vocabulary, in the order of the alphabet."""
    groups = yaml.safe_load((files(__package__) / "tiny_clap_words.yaml").read_text("utf-8"))
    return tuple(sorted({word for words in groups.values() for word in words.split()}))


def tiny_tokenizer(words: Iterable[str] | None = None) -> BertTokenizer:
    """A tokenizer whose tokens are words; one that it does not have is spelt, so that none is unknown.

    Letters lose case and accents. Letters and digits are tokens as well, at the beginning of a word and within it
    (WordPiece), and so are punctuation marks.

    Args:
        words: whole words, in lower case; by default `shipped_words`.
    """
    from transformers import BertTokenizer

    letters = ascii_lowercase + digits
    pieces = [*letters, *(f"##{letter}" for letter in letters), *punctuation]
    whole = shipped_words() if words is None else sorted(set(words))
    tokens = dict.fromkeys((*SPECIAL_TOKENS, *pieces, *whole))
    return BertTokenizer(
        {token: number for number, token in enumerate(tokens)},
        do_lower_case=True,
        bos_token=START,
        cls_token=START,
        pad_token=PAD,
        eos_token=END,
        sep_token=END,
        unk_token=UNKNOWN,
        mask_token=UNKNOWN,  # There is none, and one of its own would be a token more.
        model_max_length=MAX_TOKENS,
    )


def tiny_extractor() -> ClapFeatureExtractor:
    """The front end: 501 frames of 10 s at 16 kHz, 32 bands up to 8 kHz; a shorter clip is followed by silence.

    Published models of CLAP repeat a shorter clip, by which "x, then y" becomes "x, y, x, y".
    """
    from transformers import ClapFeatureExtractor

    return ClapFeatureExtractor(
        feature_size=MELS,
        sampling_rate=SAMPLE_RATE,
        hop_length=320,
        max_length_s=SECONDS,
        fft_window_size=1024,
        frequency_min=50,
        frequency_max=SAMPLE_RATE // 2,
        truncation="rand_trunc",
        padding="pad",
    )


def tiny_config(vocabulary: int) -> ClapConfig:
    """The configuration: HTSAT of two stages on an image of 128 × 128, RoBERTa of two layers, both 128 wide.

    Args:
        vocabulary: tokens of the tokenizer.
    """
    from transformers import ClapConfig

    audio = {
        # The image's side over the patches' and the last stage's halving, 8, is that of the window: were it less,
        # transformers would give the table of positions another shape.
        "spec_size": 128, "num_mel_bins": MELS, "patch_size": 8, "patch_stride": [8, 8], "window_size": 8,
        "depths": [1, 2], "num_attention_heads": [4, 8], "patch_embeds_hidden_size": 64, "hidden_size": 128,
        "num_hidden_layers": 2, "enable_fusion": False, "fusion_type": None, "hidden_dropout_prob": 0.0,
    }  # fmt: skip
    pad = SPECIAL_TOKENS.index(PAD)
    text = {
        "vocab_size": vocabulary, "hidden_size": 128, "num_hidden_layers": 2, "num_attention_heads": 4,
        "intermediate_size": 256, "max_position_embeddings": MAX_TOKENS + pad + 1, "hidden_dropout_prob": 0.0,
        "attention_probs_dropout_prob": 0.0, "bos_token_id": SPECIAL_TOKENS.index(START), "pad_token_id": pad,
        "eos_token_id": SPECIAL_TOKENS.index(END),
    }  # fmt: skip
    return ClapConfig(audio_config=audio, text_config=text, projection_dim=DIM)


def tiny_clap(seed: int = 0, words: Iterable[str] | None = None) -> ClapModel:
    """The model with fresh weights, in evaluation mode; torch's own generator stays as it is.

    Args:
        seed: of the weights.
        words: see `tiny_tokenizer`, whose tokens it knows.
    """
    import torch
    from transformers import ClapModel

    config = tiny_config(len(tiny_tokenizer(words)))
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        model = ClapModel(config)
    model.train(mode=False)
    return model


def save_clap(model: ClapModel, folder: Path, words: Iterable[str] | None = None) -> None:
    """Write a tiny CLAP with its front end and tokenizer, as `ClapModel.from_pretrained` and `load_model` open it."""
    model.save_pretrained(folder)
    tiny_extractor().save_pretrained(folder)
    tiny_tokenizer(words).save_pretrained(folder)
