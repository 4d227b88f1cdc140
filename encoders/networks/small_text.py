"""A small text tower that is given the order of words from the beginning.

Each word sees its neighbours, as an adjective its noun, before any weight has learnt to look for them, and the mean
over words is taken, so that no single token has to gather all. docs/training.md sets a model with it beside the tiny
`ClapModel`, whose text tower is RoBERTa's of two layers; it does not tell which of the differences does what.
"""

from __future__ import annotations

import torch
from torch import nn

WIDTH = 128
"""Of the vectors of words."""

HEADS = 4
POSITION_DEVIATION = 0.05
"""Of fresh vectors of positions; those of words are standard normal."""


class SmallText(nn.Module):
    """Vectors of words, each with its neighbours' by a convolution, and a Transformer's layer over them.

    The layer normalises before its parts (Xiong et al., 2020, arXiv 2002.04745). What comes out is the mean over
    tokens, under a linear map.
    """

    def __init__(self, vocabulary: int, max_tokens: int, output_dim: int, width: int = WIDTH) -> None:
        """Fresh weights.

        Args:
            vocabulary: tokens of the tokenizer.
            max_tokens: of a text.
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
            mask: bool [n, tokens], False behind the end of a text, whose embedding does not depend on what is there;
                None where all have as many tokens.
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
