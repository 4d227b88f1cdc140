"""Cnn14 (Kong et al., 2020, arXiv 1912.10211) up to its embedding, with its front end."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import nn

from ..front_ends.torchlibrosa import MELS, DecibelSpectrogram

SAMPLE_RATE = 32_000
BAND_EDGES = (50, 14_000)
"""Lower and upper edge of all mel bands together, in Hz."""

CHANNELS = (64, 128, 256, 512, 1024, 2048)
"""Feature maps of the six convolutional blocks (arXiv 1912.10211, table of the CNNs)."""

HALVINGS = 5
"""Blocks that end in a pooling of 2 × 2: all but the last."""


def dim_at(depth: int) -> int:
    """Return the dimension of the frames after `depth` blocks."""
    return (MELS, *CHANNELS)[depth]


class ConvBlock(nn.Module):
    """Two convolutions of 3 × 3, each with batch normalisation and a ReLU."""

    def __init__(self, inputs: int, outputs: int) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(inputs, outputs, 3, padding=1, bias=False)
        self.bn1 = nn.BatchNorm2d(outputs)
        self.conv2 = nn.Conv2d(outputs, outputs, 3, padding=1, bias=False)
        self.bn2 = nn.BatchNorm2d(outputs)

    def forward(self, maps: torch.Tensor) -> torch.Tensor:
        """Map feature maps [n, inputs, frames, bands] to [n, outputs, frames, bands]."""
        maps = torch.relu(self.bn1(self.conv1(maps)))
        return torch.relu(self.bn2(self.conv2(maps)))


class Cnn14(nn.Module):
    """Cnn14 up to its embedding, without the classifier; fresh weights are Glorot's (uniform).

    The paper's network is for sound at 32 kHz; MS-CLAP trained one at 44.1 kHz, with the same window, hop and band
    edges.
    """

    def __init__(self, sample_rate: int = SAMPLE_RATE) -> None:
        super().__init__()
        self.log_mel = DecibelSpectrogram(sample_rate, BAND_EDGES)
        self.bn0 = nn.BatchNorm1d(MELS)
        self.blocks = nn.ModuleList(map(ConvBlock, (1, *CHANNELS), CHANNELS))
        self.fc1 = nn.Linear(CHANNELS[-1], CHANNELS[-1])
        for module in self.modules():
            if isinstance(module, (nn.Conv2d, nn.Linear)):
                nn.init.xavier_uniform_(module.weight)
        nn.init.zeros_(self.fc1.bias)

    def forward(self, log_mel: torch.Tensor, depths: Sequence[int]) -> list[torch.Tensor]:
        """Return frames [n, frames, dim] of spectrograms [n, frames, 64], for each of some depths.

        Args:
            log_mel: spectrograms in decibels.
            depths: numbers of blocks. 0 returns the normalised spectrogram, with 64 values per frame; k the feature
                maps of block k averaged over frequency.
        """
        normalised: torch.Tensor = self.bn0(log_mel.transpose(1, 2)).transpose(1, 2)
        frames, maps = {0: normalised}, normalised[:, None]
        for number, block in enumerate(self.blocks[: max(depths)], 1):
            maps = block(maps)
            if number <= HALVINGS:
                maps = nn.functional.avg_pool2d(maps, 2)
            if number in depths:
                frames[number] = maps.mean(dim=3).transpose(1, 2)
        return [frames[depth] for depth in depths]

    def embed(self, frames: torch.Tensor) -> torch.Tensor:
        """Return embeddings [n, 2048] of the frames of the last block."""
        return torch.relu(self.fc1(frames.amax(dim=1) + frames.mean(dim=1)))
