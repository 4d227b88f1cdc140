"""The parts of HTSAT (Chen et al., 2022, arXiv 2202.00874) for the CLAP models, and the networks of MS-CLAP.

HTSAT is a Swin transformer of four stages. Its input is a square image, folded from a spectrogram of 64 bands and
1,024 frames: four segments of 256 frames, one below the other.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import nn
from transformers import BertConfig, BertModel, ClapAudioConfig, ClapAudioModel, GPT2Config, GPT2Model

from ..front_ends.torchlibrosa import DecibelSpectrogram
from .cnn14 import CHANNELS, Cnn14

SAMPLE_RATE = 44_100
BAND_EDGES = (50, 8000)
"""Edges in Hz of the mel filters of fresh weights (the package's config_2023.yml). A checkpoint holds its own."""

EMBEDDING_DIM = 1024


def unfold_image(hidden: torch.Tensor, segments: int) -> torch.Tensor:
    """Return frames [n, segments · columns, dim] from patches of the folded image, averaged over frequency.

    Args:
        hidden: [n, dim, rows, columns]; the first rows / `segments` rows are the bands of the first segment.
        segments: number of segments of time that lie below each other.
    """
    clips, dim, rows, columns = hidden.shape
    return hidden.reshape(clips, dim, segments, rows // segments, columns).mean(dim=3).flatten(2).mT


def segments_of_image(config: Any) -> int:
    """Return the number of segments into which HTSAT folds a spectrogram."""
    return int(config.spec_size // config.num_mel_bins)


def layer_dims(config: Any) -> list[int]:
    """Return the dimension of HTSAT's frames at layer 0 (the patches) and after each stage."""
    dims = [config.patch_embeds_hidden_size * 2**stage for stage in range(len(config.depths))]
    return [*dims, dims[-1]]


def overlap_mean(windows: torch.Tensor) -> torch.Tensor:
    """Return frames [n, (windows + 1) / 2 · frames, dim] of a clip from windows that overlap by half.

    Args:
        windows: [n, windows, frames, dim]; frames of two windows for one moment are averaged.
    """
    clips, count, frames, dim = windows.shape
    hop = frames // 2
    total = windows.new_zeros(clips, (count - 1) * hop + frames, dim)
    times = windows.new_zeros(total.shape[1], 1)
    for number in range(count):
        moment = slice(number * hop, number * hop + frames)
        total[:, moment] += windows[:, number]
        times[moment] += 1
    return total / times


def ms_clap_config() -> ClapAudioConfig:
    """Return the configuration of HTSAT in MS-CLAP 2023: the defaults of transformers."""
    return ClapAudioConfig()


class Projection(nn.Module):
    """From HTSAT's output to the space that sound and text share: a residual block and layer normalisation."""

    def __init__(self, inputs: int, outputs: int) -> None:
        super().__init__()
        self.linear1 = nn.Linear(inputs, outputs, bias=False)
        self.linear2 = nn.Linear(outputs, outputs, bias=False)
        self.layer_norm = nn.LayerNorm(outputs)

    def forward(self, latent: torch.Tensor) -> torch.Tensor:
        """Map [n, inputs] to [n, outputs]."""
        first = self.linear1(latent)
        projected: torch.Tensor = self.layer_norm(first + self.linear2(nn.functional.gelu(first)))
        return projected


class MsClap(nn.Module):
    """The audio encoder of MS-CLAP 2023 and its front end."""

    def __init__(self) -> None:
        super().__init__()
        self.config = ms_clap_config()
        self.log_mel = DecibelSpectrogram(SAMPLE_RATE, BAND_EDGES)
        self.htsat = ClapAudioModel(self.config)
        self.projection = Projection(self.config.hidden_size, EMBEDDING_DIM)
        for module in self.htsat.modules():
            index = getattr(module, "relative_position_index", None)
            if isinstance(index, torch.Tensor):
                # Computed from the architecture, so that no checkpoint need hold it.
                module.register_buffer("relative_position_index", index, persistent=False)


def gpt2_config() -> GPT2Config:
    """Return the configuration of `openai-community/gpt2`: the defaults of transformers."""
    return GPT2Config()


def bert_config() -> BertConfig:
    """Return the configuration of `google-bert/bert-base-uncased`: the defaults of transformers."""
    return BertConfig()


class Gpt2Text(nn.Module):
    """The text encoder of MS-CLAP 2023: the state of the last token, projected."""

    def __init__(self) -> None:
        super().__init__()
        config = gpt2_config()
        self.base: Any = GPT2Model(config)
        self.projection = Projection(config.n_embd, EMBEDDING_DIM)

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        """Return embeddings [n, 1024] of tokens [n, tokens]."""
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
        """Return embeddings [n, 1024] of tokens [n, tokens]."""
        projected: torch.Tensor = self.projection(self.base(input_ids=tokens).last_hidden_state[:, 0])
        return projected


class ProjectedCnn14(Cnn14):
    """Cnn14 at 44.1 kHz, its embedding projected to the space that sound and text share."""

    def __init__(self) -> None:
        super().__init__(SAMPLE_RATE)
        self.projection = Projection(CHANNELS[-1], EMBEDDING_DIM)

    def embed(self, frames: torch.Tensor) -> torch.Tensor:
        """Return embeddings [n, 1024] of the frames of the last block."""
        projected: torch.Tensor = self.projection(super().embed(frames))
        return projected
