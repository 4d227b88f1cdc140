"""The text encoders of MS-CLAP: GPT-2 of 2023 (arXiv 2309.05767), BERT of 2022 (arXiv 2206.04769), and a projection."""

from __future__ import annotations

from typing import Any

import torch
from torch import nn
from transformers import BertConfig, BertModel, GPT2Config, GPT2Model

from .htsat import EMBEDDING_DIM, Projection


def gpt2_config() -> GPT2Config:
    """The configuration of `openai-community/gpt2`: the defaults of transformers."""
    return GPT2Config()


def bert_config() -> BertConfig:
    """The configuration of `google-bert/bert-base-uncased`: the defaults of transformers."""
    return BertConfig()


class Gpt2Text(nn.Module):
    """The text encoder of MS-CLAP 2023: the state of the last token, projected."""

    def __init__(self) -> None:
        super().__init__()
        config = gpt2_config()
        self.base: Any = GPT2Model(config)
        self.projection = Projection(config.n_embd, EMBEDDING_DIM)

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        """Embeddings [n, 1024] of tokens [n, tokens]."""
        projected: torch.Tensor = self.projection(self.base(input_ids=tokens, use_cache=False).last_hidden_state[:, -1])
        return projected


class BertText(nn.Module):
    """The text encoder of MS-CLAP 2022: the state of the first token, projected."""

    def __init__(self) -> None:
        super().__init__()
        config = bert_config()
        self.base: Any = BertModel(config, add_pooling_layer=False)
        self.projection = Projection(config.hidden_size, EMBEDDING_DIM)

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        """Embeddings [n, 1024] of tokens [n, tokens]."""
        projected: torch.Tensor = self.projection(self.base(input_ids=tokens).last_hidden_state[:, 0])
        return projected
