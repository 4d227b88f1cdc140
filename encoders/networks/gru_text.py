"""A small text tower that reads words one after the other: what came first is what its state was made of first.

A transformer with few steps of training reads texts as bags of words; a recurrent network does not.
"""

from __future__ import annotations

import torch
from torch import nn

WIDTH = 128
"""Of the vectors of words, and of the state."""


class GruText(nn.Module):
    """A GRU (Cho et al., 2014, arXiv 1406.1078) over vectors of words, and a linear map of its last state.

    Its weights begin as torch draws them; vectors of words are standard normal.
    """

    def __init__(self, vocabulary: int, output_dim: int, width: int = WIDTH) -> None:
        """Fresh weights.

        Args:
            vocabulary: tokens of the tokenizer.
            output_dim: length of an embedding.
            width: see `WIDTH`.
        """
        super().__init__()
        self.words = nn.Embedding(vocabulary, width)
        self.reader = nn.GRU(width, width, batch_first=True)
        self.projection = nn.Linear(width, output_dim)

    def forward(self, ids: torch.Tensor, mask: torch.Tensor | None = None) -> torch.Tensor:
        """Embed texts: [n, output_dim], of any length.

        Args:
            ids: int64 [n, tokens].
            mask: bool [n, tokens], False behind the end of a text, whose embedding does not depend on what is there;
                None where all have as many tokens.
        """
        states, _ = self.reader(self.words(ids))
        ends = -1 if mask is None else mask.sum(dim=1) - 1
        last = states[torch.arange(len(ids), device=ids.device), ends]
        embeddings: torch.Tensor = self.projection(last)
        return embeddings
