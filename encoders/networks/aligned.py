"""A linear map of frozen embeddings of sound, and a small text tower, into one space."""

from __future__ import annotations

from typing import Any

import torch
from torch import nn
from transformers import PretrainedConfig, PreTrainedModel

from .small_text import SmallText
from .tiny_clap import DIM, MAX_TOKENS

MODEL_TYPE = "audio_text_aligned"

INITIAL_SCALE = 1 / 0.07
"""Cosines are multiplied by it at first (Radford et al., 2021, arXiv 2103.00020, section 2.5)."""

LEAST_DEVIATION = 1e-4
"""Of a dimension, as a share of the largest of all: one that hardly varies is not blown up."""


class AlignedConfig(PretrainedConfig):  # type: ignore[no-untyped-call]
    """What the frozen encoder is, and how large map and text tower are."""

    model_type = MODEL_TYPE

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
        """Take the values.

        Args:
            encoder: name of the frozen encoder, as `load_model` takes it.
            encoder_revision: see `ModelCard`.
            encoder_seed: of the weights of a twin.
            layer, pooling: see `EncoderOptions`.
            input_dim: length of its embeddings.
            projection_dim: length of an embedding in the common space.
            vocab_size: tokens of the tokenizer.
            max_tokens: of a text, the first and the last, which stand for its ends, among them.
            rest: see `PretrainedConfig`.
        """
        self.encoder, self.encoder_revision, self.encoder_seed = encoder, encoder_revision, encoder_seed
        self.layer, self.pooling = layer, pooling
        self.input_dim, self.projection_dim = input_dim, projection_dim
        self.vocab_size, self.max_tokens = vocab_size, max_tokens
        # transformers makes a name for each label, of as many as a file says; there are none here.
        rest.pop("num_labels", None)
        super().__init__(**rest)


class AlignedModel(PreTrainedModel):  # type: ignore[no-untyped-call]
    """The map and the text tower; what goes in as sound are embeddings of the frozen encoder."""

    config_class = AlignedConfig
    config: AlignedConfig
    base_model_prefix = "aligned"

    def __init__(self, config: AlignedConfig) -> None:
        """Fresh weights; the mean and the deviation of embeddings are 0 and 1."""
        super().__init__(config)
        self.text_model = SmallText(config.vocab_size, config.max_tokens, config.projection_dim)
        self.audio_projection = nn.Linear(config.input_dim, config.projection_dim)
        self.logit_scale = nn.Parameter(torch.tensor(INITIAL_SCALE).log())
        self.register_buffer("mean", torch.zeros(config.input_dim))
        self.register_buffer("deviation", torch.ones(config.input_dim))
        self.post_init()  # type: ignore[no-untyped-call]

    def _init_weights(self, module: nn.Module) -> None:
        """Fresh weights stay as torch has drawn them."""

    def embed_audio(self, embeddings: torch.Tensor) -> torch.Tensor:
        """Embeddings of the frozen encoder [n, input_dim] in the common space: [n, projection_dim], of unit length."""
        standard = (embeddings.float() - self.get_buffer("mean")) / self.get_buffer("deviation")
        return nn.functional.normalize(self.audio_projection(standard), dim=-1)

    def embed_text(self, ids: torch.Tensor, mask: torch.Tensor | None = None) -> torch.Tensor:
        """Texts as numbers of tokens [n, tokens] in the common space: [n, projection_dim], of unit length."""
        return nn.functional.normalize(self.text_model(ids, mask).float(), dim=-1)

    @torch.no_grad()
    def measure(self, embeddings: torch.Tensor) -> None:
        """Set mean and deviation to those of some embeddings [n, input_dim] of the frozen encoder."""
        values = embeddings.double()
        deviation = values.std(dim=0, unbiased=False)
        least = max(LEAST_DEVIATION * float(deviation.max()), torch.finfo(torch.float32).tiny)
        self.get_buffer("mean").copy_(values.mean(dim=0))
        self.get_buffer("deviation").copy_(deviation.clamp(min=least))


def fresh_aligned(config: AlignedConfig, seed: int) -> AlignedModel:
    """The model with fresh weights, in evaluation mode; torch's own generator stays as it is."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        model = AlignedModel(config)
    model.train(mode=False)
    return model
