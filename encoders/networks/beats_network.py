"""The network of BEATs (Chen et al., 2022, arXiv 2212.09058).

The architecture and its published configuration (`encoder_layers` 12, `num_buckets` 320, `max_distance` 800, and so on)
as in the ``cfg`` of checkpoints from https://github.com/microsoft/unilm/tree/master/beats. Modules have the names of
the checkpoint.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch
from torch import nn
from torch.nn import functional

PATCH = 16
DIM = 768
PATCH_DIM = 512
LAYERS = 12
FEED_FORWARD_DIM = 3_072
HEADS = 12
POSITION_KERNEL = 128
POSITION_GROUPS = 16
BUCKETS = 320
MAX_DISTANCE = 800

RESIDUAL_SCALE = (2 * LAYERS) ** 0.25
"""Deep norm's alpha of an encoder (Wang et al., 2022, arXiv 2203.00555, figure 2)."""
INITIAL_GAIN = (8 * LAYERS) ** -0.25
"""Deep norm's beta."""


class Beats(nn.Module):
    """BEATs base, with fresh weights drawn as published."""

    def __init__(self) -> None:
        super().__init__()
        self.patch_embedding = nn.Conv2d(1, PATCH_DIM, PATCH, stride=PATCH, bias=False)
        self.layer_norm = nn.LayerNorm(PATCH_DIM)
        self.post_extract_proj = nn.Linear(PATCH_DIM, DIM)
        self.encoder = BeatsTransformer()

    def forward(self, log_mel: torch.Tensor, layers: Sequence[int | None] = (None,)) -> list[torch.Tensor]:
        """Return outputs of blocks for normalised log-mel spectrograms [n, frames, mels].

        Args:
            log_mel: the spectrograms.
            layers: 0 for the input of the first block, k for the output of block k, None for the last output.

        Returns:
            [n, (frames // 16)·(mels // 16), dim] per layer: patch by patch, the bands of one moment after one
            another.
        """
        patches = self.patch_embedding(log_mel[:, None]).flatten(2).mT
        states: list[torch.Tensor] = self.encoder(self.post_extract_proj(self.layer_norm(patches)), layers)
        return states


class BeatsTransformer(nn.Module):
    """Blocks with post-normalisation, over a convolutional embedding of position."""

    def __init__(self) -> None:
        super().__init__()
        # Its output is one longer than its input, as the kernel is even.
        self.pos_conv = nn.Conv1d(DIM, DIM, POSITION_KERNEL, padding=POSITION_KERNEL // 2, groups=POSITION_GROUPS)
        self.layer_norm = nn.LayerNorm(DIM)
        self.relative_attention_bias = nn.Embedding(BUCKETS, HEADS)
        self.layers = nn.ModuleList(BeatsBlock() for _ in range(LAYERS))
        nn.init.normal_(self.pos_conv.weight, std=math.sqrt(4 / (POSITION_KERNEL * DIM)))
        assert self.pos_conv.bias is not None
        nn.init.zeros_(self.pos_conv.bias)
        nn.init.normal_(self.relative_attention_bias.weight, std=0.02)

    def forward(self, patches: torch.Tensor, layers: Sequence[int | None]) -> list[torch.Tensor]:
        """Return states [n, patches, dim] of patches [n, patches, dim], for each of some layers."""
        position = functional.gelu(self.pos_conv(patches.mT)[..., :-1]).mT
        hidden: torch.Tensor = self.layer_norm(patches + position)
        buckets = position_buckets(patches.shape[1]).to(patches.device)
        bias = self.relative_attention_bias(buckets).permute(2, 0, 1)
        states = {0: hidden}
        for number, block in enumerate(self.layers, 1):
            hidden = block(hidden, bias)
            if number in layers:
                states[number] = hidden
        return [hidden if layer is None else states[layer] for layer in layers]


class BeatsBlock(nn.Module):
    """Attention and a feed-forward network, each normalised after its scaled residual connection (deep norm)."""

    def __init__(self) -> None:
        super().__init__()
        self.self_attn = BeatsAttention()
        self.self_attn_layer_norm = nn.LayerNorm(DIM)
        self.fc1 = nn.Linear(DIM, FEED_FORWARD_DIM)
        self.fc2 = nn.Linear(FEED_FORWARD_DIM, DIM)
        self.final_layer_norm = nn.LayerNorm(DIM)
        for linear in (self.fc1, self.fc2):
            nn.init.xavier_normal_(linear.weight, gain=INITIAL_GAIN)
            nn.init.zeros_(linear.bias)

    def forward(self, hidden: torch.Tensor, bias: torch.Tensor) -> torch.Tensor:
        """Map [n, patches, dim] to the same shape, with the position bias [heads, patches, patches]."""
        hidden = self.self_attn_layer_norm(RESIDUAL_SCALE * hidden + self.self_attn(hidden, bias))
        forward = self.fc2(functional.gelu(self.fc1(hidden)))
        normalised: torch.Tensor = self.final_layer_norm(RESIDUAL_SCALE * hidden + forward)
        return normalised


class BeatsAttention(nn.Module):
    """Attention with a gated relative position bias (Chi et al., 2022, arXiv 2106.16138).

    The gates are a function of the query; `grep_linear` makes four summands of each.
    """

    def __init__(self) -> None:
        super().__init__()
        self.q_proj, self.k_proj, self.v_proj, self.out_proj = (nn.Linear(DIM, DIM) for _ in range(4))
        self.grep_linear = nn.Linear(DIM // HEADS, 8)
        self.grep_a = nn.Parameter(torch.ones(1, HEADS, 1, 1))
        for linear, gain in (
            (self.q_proj, 1.0),
            (self.k_proj, 1.0),
            (self.v_proj, INITIAL_GAIN),
            (self.out_proj, INITIAL_GAIN),
        ):
            nn.init.xavier_normal_(linear.weight, gain=gain)
            nn.init.zeros_(linear.bias)
        nn.init.normal_(self.grep_linear.weight, std=0.02)
        nn.init.zeros_(self.grep_linear.bias)

    def forward(self, hidden: torch.Tensor, bias: torch.Tensor) -> torch.Tensor:
        """Map [n, patches, dim] to the same shape, with the position bias [heads, patches, patches]."""
        query, key, value = (
            project(hidden).unflatten(2, (HEADS, -1)).transpose(1, 2)
            for project in (self.q_proj, self.k_proj, self.v_proj)
        )
        update, reset = self.grep_linear(query).unflatten(3, (2, 4)).sum(dim=4).sigmoid().split(1, dim=3)
        gate = update * (reset * self.grep_a - 1) + 2
        attended = functional.scaled_dot_product_attention(query, key, value, attn_mask=gate * bias)
        output: torch.Tensor = self.out_proj(attended.transpose(1, 2).flatten(2))
        return output


def position_buckets(count: int) -> torch.Tensor:
    """Return the row of the bias table for each query and key: int64 [count, count].

    Half of the rows are for keys after the query. In each half, the first half is for the distances 0, 1, 2, ...; the
    rest is for longer ones, on a logarithmic scale up to `MAX_DISTANCE` (Raffel et al., 2020, arXiv 1910.10683,
    section 2.1).
    """
    offset = torch.arange(count)[None, :] - torch.arange(count)[:, None]
    distance, half, exact = offset.abs(), BUCKETS // 2, BUCKETS // 4
    # In float32 and in this order, so that a distance at the edge of a bucket gets the same bucket as in training.
    scale = torch.log(distance.clamp_min(1).float() / exact) / math.log(MAX_DISTANCE / exact)
    far = (exact + (scale * (half - exact)).long()).clamp_max(half - 1)
    return torch.where(distance < exact, distance, far) + half * (offset > 0)
