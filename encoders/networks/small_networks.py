"""Networks small enough to train within this package, with their front ends and their tokenizer of words.

- A tiny CLAP that needs no download. It is a `ClapModel` of transformers like any other:
  training may start from it, and `ClapModel.from_pretrained` or `load_model` opens the saved folder.
- A small text tower that is sensitive to the order of words even before training: a convolution lets each word depend
  on its neighbours, as an adjective on its noun. Words are averaged, so that no single token has to collect everything.
  docs/how-to/training.md compares a model with it to the tiny `ClapModel`, whose text tower has two layers of RoBERTa;
  it does not separate the effects of the differences.
- A linear map of frozen embeddings of sound, and that text tower, into one space.
- A small CLAP as a start for training: a GRU reads sound frame by frame, the small text tower reads text.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import cache
from importlib.resources import files
from pathlib import Path
from string import ascii_lowercase, digits, punctuation
from typing import Any, TypeVar

import torch
import yaml
from torch import nn
from transformers import (
    BertTokenizer,
    ClapConfig,
    ClapFeatureExtractor,
    ClapModel,
    PretrainedConfig,
    PreTrainedModel,
)

Network = TypeVar("Network", bound=nn.Module)

SAMPLE_RATE = 16_000
SECONDS = 10
DIM = 128
"""Length of an embedding."""

MELS = 32
MAX_TOKENS = 77
"""Maximum number of tokens of a text, including the first and the last, which mark its ends."""

START, PAD, END, UNKNOWN = SPECIAL_TOKENS = ("<s>", "<pad>", "</s>", "<unk>")
"""Special tokens, in the order of their numbers, which are RoBERTa's."""


@cache
def shipped_words() -> tuple[str, ...]:
    """Return the whole words of the vocabulary, in alphabetical order."""
    groups = yaml.safe_load((files(__package__) / "tiny_clap_words.yaml").read_text("utf-8"))
    return tuple(sorted({word for words in groups.values() for word in words.split()}))


def tiny_tokenizer(words: Iterable[str] | None = None) -> BertTokenizer:
    """Return a tokenizer whose tokens are words; a word outside its vocabulary is spelt, so that none is unknown.

    Letters lose case and accents. Letters and digits are tokens as well, at the beginning of a word and within it
    (WordPiece), and so are punctuation marks.

    Args:
        words: whole words, in lower case; by default `shipped_words`.
    """
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
        mask_token=UNKNOWN,  # There is no mask token; a separate one would add a token.
        model_max_length=MAX_TOKENS,
    )


def tiny_extractor() -> ClapFeatureExtractor:
    """Return the front end: 501 frames of 10 s at 16 kHz, 32 bands up to 8 kHz; silence follows a shorter clip.

    Published models of CLAP repeat a shorter clip, so that "x, then y" becomes "x, y, x, y".
    """
    return _extractor(MELS, hop=320)


def tiny_clap(seed: int = 0, words: Iterable[str] | None = None) -> ClapModel:
    """Return the model with fresh weights, in evaluation mode; torch's own generator is not changed.

    HTSAT has two stages on an image of 128 × 128, RoBERTa two layers; both are 128 wide.

    Args:
        seed: seed of the weights.
        words: see `tiny_tokenizer`, whose tokens it knows.
    """
    audio = {
        # The image's side divided by the patches' side and by the last stage's halving equals the window, 8. If it were
        # less, transformers would give the table of positions another shape.
        "spec_size": 128, "num_mel_bins": MELS, "patch_size": 8, "patch_stride": [8, 8], "window_size": 8,
        "depths": [1, 2], "num_attention_heads": [4, 8], "patch_embeds_hidden_size": 64, "hidden_size": 128,
        "num_hidden_layers": 2, "enable_fusion": False, "fusion_type": None, "hidden_dropout_prob": 0.0,
    }  # fmt: skip
    pad = SPECIAL_TOKENS.index(PAD)
    text = {
        "vocab_size": len(tiny_tokenizer(words)), "hidden_size": 128, "num_hidden_layers": 2, "num_attention_heads": 4,
        "intermediate_size": 256, "max_position_embeddings": MAX_TOKENS + pad + 1, "hidden_dropout_prob": 0.0,
        "attention_probs_dropout_prob": 0.0, "bos_token_id": SPECIAL_TOKENS.index(START), "pad_token_id": pad,
        "eos_token_id": SPECIAL_TOKENS.index(END),
    }  # fmt: skip
    config = ClapConfig(audio_config=audio, text_config=text, projection_dim=DIM)
    return _fresh(lambda: ClapModel(config), seed)


def _fresh(make: Callable[[], Network], seed: int) -> Network:
    """Return a network with fresh weights of a seed, in evaluation mode; torch's own generator is not changed."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        network = make()
    network.train(mode=False)
    return network


def save_clap(model: ClapModel, folder: Path, words: Iterable[str] | None = None) -> None:
    """Write a tiny CLAP with its front end and tokenizer, as `ClapModel.from_pretrained` and `load_model` open it."""
    model.save_pretrained(folder)
    tiny_extractor().save_pretrained(folder)
    tiny_tokenizer(words).save_pretrained(folder)


WIDTH = 128
"""Length of the vectors of words."""

HEADS = 4
POSITION_DEVIATION = 0.05
"""Standard deviation of fresh position vectors; word vectors are standard normal."""


class SmallText(nn.Module):
    """Vectors of words, each convolved with its neighbours, and a Transformer layer over them.

    The layer normalises before its parts (Xiong et al., 2020, arXiv 2002.04745). Its output is averaged over
    tokens and mapped linearly.
    """

    def __init__(self, vocabulary: int, max_tokens: int, output_dim: int, width: int = WIDTH) -> None:
        """Draw fresh weights.

        Args:
            vocabulary: number of tokens of the tokenizer.
            max_tokens: maximum number of tokens of a text.
            output_dim: length of an embedding.
            width: see `WIDTH`; a multiple of `HEADS`.
        """
        super().__init__()
        self.words = nn.Embedding(vocabulary, width)
        self.neighbours = nn.Conv1d(width, width, 3, padding=1)
        self.positions = nn.Parameter(torch.randn(max_tokens, width) * POSITION_DEVIATION)
        self.layer = nn.TransformerEncoderLayer(
            width, HEADS, 2 * width, dropout=0.0, activation="gelu", batch_first=True, norm_first=True
        )
        self.norm = nn.LayerNorm(width)
        self.projection = nn.Linear(width, output_dim)

    def forward(self, ids: torch.Tensor, mask: torch.Tensor | None = None) -> torch.Tensor:
        """Embed texts: [n, output_dim], of any length.

        Args:
            ids: int64 [n, tokens].
            mask: bool [n, tokens], False after the end of a text; an embedding does not depend on values there.
                None if all texts have equally many tokens.
        """
        words = self.words(ids)
        if mask is not None:
            words = words * mask[..., None]
        words = words + nn.functional.gelu(self.neighbours(words.mT)).mT + self.positions[: ids.shape[1]]
        states = self.norm(self.layer(words, src_key_padding_mask=None if mask is None else ~mask))
        if mask is None:
            mean = states.mean(dim=1)
        else:
            mean = (states * mask[..., None]).sum(dim=1) / mask.sum(dim=1, keepdim=True)
        embeddings: torch.Tensor = self.projection(mean)
        return embeddings


class _TextedModel(PreTrainedModel):  # type: ignore[no-untyped-call]
    """A model with the small text tower, `text_model`, which a subclass makes."""

    text_model: SmallText

    def _init_weights(self, module: nn.Module) -> None:
        """Keep fresh weights as torch has drawn them."""

    def embed_text(self, ids: torch.Tensor, mask: torch.Tensor | None = None) -> torch.Tensor:
        """Embed texts, given as token numbers [n, tokens], in the shared space: [n, projection_dim], of unit length."""
        return nn.functional.normalize(self.text_model(ids, mask).float(), dim=-1)


INITIAL_SCALE = 1 / 0.07
"""The initial scale of cosines (Radford et al., 2021, arXiv 2103.00020, section 2.5)."""

LEAST_DEVIATION = 1e-4
"""Least deviation of a dimension, relative to the largest, so that a nearly constant one is not amplified."""


class AlignedConfig(PretrainedConfig):  # type: ignore[no-untyped-call]
    """The frozen encoder, and the sizes of map and text tower."""

    model_type = "audio_text_aligned"

    def __init__(
        self,
        encoder: str = "",
        encoder_revision: str = "",
        encoder_seed: int = 0,
        layer: int | None = None,
        pooling: str | None = None,
        input_dim: int = 1,
        projection_dim: int = DIM,
        vocab_size: int = 1,
        max_tokens: int = MAX_TOKENS,
        **rest: Any,
    ) -> None:
        """Set the values.

        Args:
            encoder: name of the frozen encoder, as `load_model` takes it.
            encoder_revision: see `ModelCard`.
            encoder_seed: seed of the weights of a twin.
            layer, pooling: see `EncoderOptions`.
            input_dim: length of its embeddings.
            projection_dim: length of an embedding in the shared space.
            vocab_size: number of tokens of the tokenizer.
            max_tokens: maximum number of tokens of a text, including the first and the last, which mark its ends.
            rest: see `PretrainedConfig`.
        """
        self.encoder, self.encoder_revision, self.encoder_seed = encoder, encoder_revision, encoder_seed
        self.layer, self.pooling = layer, pooling
        self.input_dim, self.projection_dim = input_dim, projection_dim
        self.vocab_size, self.max_tokens = vocab_size, max_tokens
        # transformers makes a name for each label, and a file may state any number; there are none here.
        rest.pop("num_labels", None)
        super().__init__(**rest)


class AlignedModel(_TextedModel):
    """The map and the text tower; the input for sound is embeddings of the frozen encoder."""

    config_class = AlignedConfig
    config: AlignedConfig
    base_model_prefix = "aligned"

    def __init__(self, config: AlignedConfig) -> None:
        """Draw fresh weights; the mean and the deviation of embeddings are 0 and 1."""
        super().__init__(config)
        self.text_model = SmallText(config.vocab_size, config.max_tokens, config.projection_dim)
        self.audio_projection = nn.Linear(config.input_dim, config.projection_dim)
        self.logit_scale = nn.Parameter(torch.tensor(INITIAL_SCALE).log())
        self.register_buffer("mean", torch.zeros(config.input_dim))
        self.register_buffer("deviation", torch.ones(config.input_dim))
        self.post_init()  # type: ignore[no-untyped-call]

    def embed_audio(self, embeddings: torch.Tensor) -> torch.Tensor:
        """Map the frozen encoder's embeddings [n, input_dim] to the shared space: [n, projection_dim], of unit
        length."""
        standard = (embeddings.float() - self.get_buffer("mean")) / self.get_buffer("deviation")
        return nn.functional.normalize(self.audio_projection(standard), dim=-1)

    @torch.no_grad()
    def measure(self, embeddings: torch.Tensor) -> None:
        """Set mean and deviation from embeddings [n, input_dim] of the frozen encoder."""
        values = embeddings.double()
        deviation = values.std(dim=0, unbiased=False)
        least = max(LEAST_DEVIATION * float(deviation.max()), torch.finfo(torch.float32).tiny)
        self.get_buffer("mean").copy_(values.mean(dim=0))
        self.get_buffer("deviation").copy_(deviation.clamp(min=least))


def fresh_aligned(config: AlignedConfig, seed: int) -> AlignedModel:
    """Return the model with fresh weights, in evaluation mode; torch's own generator is not changed."""
    return _fresh(lambda: AlignedModel(config), seed)


SMALL_MELS = 64

LEAST_DECIBELS = 1e-3
"""Least deviation of a band in decibels, so that a nearly constant band is not amplified."""


def small_extractor() -> ClapFeatureExtractor:
    """Return the front end: 251 frames of 10 s at 16 kHz, 64 bands up to 8 kHz; silence follows a shorter clip."""
    return _extractor(SMALL_MELS, hop=640)


def _extractor(bands: int, hop: int) -> ClapFeatureExtractor:
    """Return a front end with `bands` bands and a frame every `hop` samples."""
    return ClapFeatureExtractor(
        feature_size=bands,
        sampling_rate=SAMPLE_RATE,
        hop_length=hop,
        max_length_s=SECONDS,
        fft_window_size=1024,
        frequency_min=50,
        frequency_max=SAMPLE_RATE // 2,
        truncation="rand_trunc",
        padding="pad",
    )


class SmallClapConfig(PretrainedConfig):  # type: ignore[no-untyped-call]
    """The sizes of the towers."""

    model_type = "small_clap"

    def __init__(
        self,
        num_mel_bins: int = SMALL_MELS,
        hidden_size: int = WIDTH,
        projection_dim: int = DIM,
        vocab_size: int = 1,
        max_tokens: int = MAX_TOKENS,
        **rest: Any,
    ) -> None:
        """Set the values.

        Args:
            num_mel_bins: bands of the front end.
            hidden_size: width of the convolutions, of the state after them, and of the word vectors.
            projection_dim: length of an embedding.
            vocab_size: number of tokens of the tokenizer.
            max_tokens: maximum number of tokens of a text, including the first and the last, which mark its ends.
            rest: see `PretrainedConfig`.
        """
        self.num_mel_bins, self.hidden_size, self.projection_dim = num_mel_bins, hidden_size, projection_dim
        self.vocab_size, self.max_tokens = vocab_size, max_tokens
        # transformers makes a name for each label, and a file may state any number; there are none here.
        rest.pop("num_labels", None)
        super().__init__(**rest)


class SmallAudio(nn.Module):
    """Two convolutions that each halve the frames, a GRU over them; its last state and the mean of all states."""

    def __init__(self, bands: int, width: int, output_dim: int) -> None:
        """Draw fresh weights; the mean and the deviation of bands are 0 and 1.

        Args:
            bands: number of bands of the spectrogram.
            width: width of convolutions and state.
            output_dim: length of an embedding.
        """
        super().__init__()
        self.convolutions = nn.Sequential(
            nn.Conv1d(bands, width, 5, stride=2, padding=2),
            nn.GELU(),
            nn.Conv1d(width, width, 5, stride=2, padding=2),
            nn.GELU(),
        )
        self.norm = nn.LayerNorm(width)
        self.reader = nn.GRU(width, width, batch_first=True)
        self.projection = nn.Sequential(
            nn.LayerNorm(2 * width),
            nn.Linear(2 * width, output_dim),
            nn.ReLU(),
            nn.Linear(output_dim, output_dim),
        )
        self.register_buffer("mean", torch.zeros(bands))
        self.register_buffer("deviation", torch.ones(bands))

    def forward(self, log_mel: torch.Tensor) -> torch.Tensor:
        """Embed clips: [n, output_dim], from spectrograms [n, frames, bands] in decibels."""
        standard = (log_mel.float() - self.get_buffer("mean")) / self.get_buffer("deviation")
        states, _ = self.reader(self.norm(self.convolutions(standard.mT).mT))
        embeddings: torch.Tensor = self.projection(torch.cat([states[:, -1], states.mean(dim=1)], dim=1))
        return embeddings

    @torch.no_grad()
    def measure(self, log_mel: torch.Tensor) -> None:
        """Set mean and deviation of bands from spectrograms [n, frames, bands]."""
        values = log_mel.double().flatten(0, -2)
        self.get_buffer("mean").copy_(values.mean(dim=0))
        self.get_buffer("deviation").copy_(values.std(dim=0, unbiased=False).clamp(min=LEAST_DECIBELS))


class SmallClapModel(_TextedModel):
    """The two towers and the scale of their cosines."""

    config_class = SmallClapConfig
    config: SmallClapConfig
    base_model_prefix = "small_clap"

    def __init__(self, config: SmallClapConfig) -> None:
        """Fresh weights."""
        super().__init__(config)
        self.audio_model = SmallAudio(config.num_mel_bins, config.hidden_size, config.projection_dim)
        self.text_model = SmallText(config.vocab_size, config.max_tokens, config.projection_dim, config.hidden_size)
        self.logit_scale = nn.Parameter(torch.tensor(INITIAL_SCALE).log())
        self.post_init()  # type: ignore[no-untyped-call]

    def embed_audio(self, log_mel: torch.Tensor) -> torch.Tensor:
        """Embed spectrograms [n, frames, bands] in decibels in the shared space: [n, projection_dim], of unit
        length."""
        return nn.functional.normalize(self.audio_model(log_mel).float(), dim=-1)


def fresh_small_clap(vocabulary: int, seed: int = 0) -> SmallClapModel:
    """Return the model with fresh weights, in evaluation mode; torch's own generator is not changed.

    Args:
        vocabulary: number of tokens of the tokenizer.
        seed: seed of the weights.
    """
    return _fresh(lambda: SmallClapModel(SmallClapConfig(vocab_size=vocabulary)), seed)
