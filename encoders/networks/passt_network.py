"""The network of PaSST-S (Koutini et al., 2022, arXiv 2110.05069): patches of 16 × 16 with a stride of 10.

Patchout and the jitter of the mel filters are for training only.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence
from functools import partial

import torch
from torch import nn

from ..front_ends.passt import MELS

PATCH = 16
STRIDE = 10
BANDS = (MELS - PATCH) // STRIDE + 1
"""Patches over frequency: 12."""
MOMENTS = 99
"""Number of positions in time that the model knows: the patches of 998 frames."""

DIM = 768
DEPTH = 12
HEADS = 12

LayerNorm = partial(nn.LayerNorm, eps=1e-6)


class PasstAttention(nn.Module):
    """Self-attention with one projection to queries, keys and values."""

    def __init__(self) -> None:
        super().__init__()
        self.qkv = nn.Linear(DIM, 3 * DIM)
        self.proj = nn.Linear(DIM, DIM)

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        """Map tokens [n, tokens, 768] to the same shape."""
        queries, keys, values = self.qkv(tokens).unflatten(2, (3, HEADS, -1)).permute(2, 0, 3, 1, 4)
        attended = nn.functional.scaled_dot_product_attention(queries, keys, values)
        projected: torch.Tensor = self.proj(attended.transpose(1, 2).flatten(2))
        return projected


class PasstBlock(nn.Module):
    """A block of a vision transformer, normalised before attention and before the feed-forward half."""

    def __init__(self) -> None:
        super().__init__()
        self.norm1 = LayerNorm(DIM)
        self.attn = PasstAttention()
        self.norm2 = LayerNorm(DIM)
        self.mlp = nn.Sequential(OrderedDict(fc1=nn.Linear(DIM, 4 * DIM), act=nn.GELU(), fc2=nn.Linear(4 * DIM, DIM)))

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        """Map tokens [n, tokens, 768] to the same shape."""
        attended = tokens + self.attn(self.norm1(tokens))
        output: torch.Tensor = attended + self.mlp(self.norm2(attended))
        return output


class Passt(nn.Module):
    """PaSST-S without its classifiers; fresh weights are drawn as in vision transformers.

    Positions are the sum of frequency and time positions (arXiv 2110.05069, section 2).
    """

    def __init__(self) -> None:
        super().__init__()
        self.patch_embed = nn.Conv2d(1, DIM, PATCH, STRIDE)
        self.cls_token = nn.Parameter(torch.empty(1, 1, DIM))
        self.dist_token = nn.Parameter(torch.empty(1, 1, DIM))
        self.new_pos_embed = nn.Parameter(torch.empty(1, 2, DIM))
        self.freq_new_pos_embed = nn.Parameter(torch.empty(1, DIM, BANDS, 1))
        self.time_new_pos_embed = nn.Parameter(torch.empty(1, DIM, 1, MOMENTS))
        self.blocks = nn.ModuleList(PasstBlock() for _ in range(DEPTH))
        self.norm = LayerNorm(DIM)
        for name, parameter in self.named_parameters():
            if name.endswith(("_token", "_pos_embed")):
                nn.init.trunc_normal_(parameter, std=0.02)
        for module in self.modules():
            if isinstance(module, nn.Linear):
                nn.init.trunc_normal_(module.weight, std=0.02)
                nn.init.zeros_(module.bias)

    def forward(self, log_mel: torch.Tensor, layers: Sequence[int | None]) -> list[torch.Tensor]:
        """Return tokens [n, 2 + 12 · moments, 768] of spectrograms [n, 128, frames], for each of some layers.

        The class token and the distillation token come first, then all patches of the lowest band, and so on.

        Args:
            log_mel: spectrograms of at least 16 frames, and at most as many as there are positions.
            layers: 0 for the input of the first block, k for the output of block k, None for the normalised output of
                the last block.
        """
        patches = self.patch_embed(log_mel[:, None])
        patches = patches + self.time_new_pos_embed[..., : patches.shape[3]] + self.freq_new_pos_embed
        ends = torch.cat([self.cls_token, self.dist_token], dim=1) + self.new_pos_embed
        tokens = torch.cat([ends.expand(len(patches), -1, -1), patches.flatten(2).transpose(1, 2)], dim=1)
        states = {0: tokens}
        depth = max(len(self.blocks) if layer is None else layer for layer in layers)
        for number, block in enumerate(self.blocks[:depth], 1):
            tokens = block(tokens)
            if number in layers:
                states[number] = tokens
        return [self.norm(tokens) if layer is None else states[layer] for layer in layers]
