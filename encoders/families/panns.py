"""Cnn14 of "PANNs: Large-Scale Pretrained Audio Neural Networks" (Kong et al., 2020, arXiv 1912.10211).

The embedding is the one that the paper transfers to other tasks: the last feature maps are averaged over frequency;
the sum of their maximum and their mean over time goes through the first fully connected layer and a ReLU.
"""

from __future__ import annotations

import re

import torch
from torch import nn

from audio_compositionality.encoders.base import FloatArray
from audio_compositionality.encoders.model_encoder import Hidden, ModelEncoder
from audio_compositionality.encoders.options import EncoderOptions
from audio_compositionality.encoders.front_ends.torchlibrosa import HOP, MELS, LogMel, convert_front_end
from audio_compositionality.encoders.loading.weights import State, Weights

SAMPLE_RATE = 32_000
BAND_EDGES = (50, 14_000)
"""Hz, of all mel bands together."""

CHANNELS = (64, 128, 256, 512, 1024, 2048)
"""Feature maps of the six convolutional blocks (arXiv 1912.10211, table of the CNNs)."""

HALVINGS = 5
"""Blocks that end in a pooling of 2 × 2: all but the last."""


class ConvBlock(nn.Module):
    """Two convolutions of 3 × 3, each with batch normalisation and a ReLU."""

    def __init__(self, inputs: int, outputs: int) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(inputs, outputs, 3, padding=1, bias=False)
        self.bn1 = nn.BatchNorm2d(outputs)
        self.conv2 = nn.Conv2d(outputs, outputs, 3, padding=1, bias=False)
        self.bn2 = nn.BatchNorm2d(outputs)

    def forward(self, maps: torch.Tensor) -> torch.Tensor:
        """Feature maps [n, outputs, frames, bands] of maps [n, inputs, frames, bands]."""
        maps = torch.relu(self.bn1(self.conv1(maps)))
        return torch.relu(self.bn2(self.conv2(maps)))


class Cnn14(nn.Module):
    """Cnn14 up to its embedding, without the layer that classifies; fresh weights are Glorot's (uniform)."""

    def __init__(self) -> None:
        super().__init__()
        self.log_mel = LogMel(SAMPLE_RATE, BAND_EDGES)
        self.bn0 = nn.BatchNorm1d(MELS)
        self.blocks = nn.ModuleList(map(ConvBlock, (1, *CHANNELS), CHANNELS))
        self.fc1 = nn.Linear(CHANNELS[-1], CHANNELS[-1])
        for module in self.modules():
            if isinstance(module, (nn.Conv2d, nn.Linear)):
                nn.init.xavier_uniform_(module.weight)
        nn.init.zeros_(self.fc1.bias)

    def forward(self, log_mel: torch.Tensor, depth: int) -> torch.Tensor:
        """Frames [n, frames, dim] of spectrograms [n, frames, 64].

        Args:
            log_mel: in decibels.
            depth: number of blocks. 0 gives the normalised spectrogram, with 64 values a frame; k the feature
                maps of block k averaged over frequency.
        """
        normalised: torch.Tensor = self.bn0(log_mel.transpose(1, 2)).transpose(1, 2)
        if depth == 0:
            return normalised
        maps = normalised[:, None]
        for number, block in enumerate(self.blocks[:depth]):
            maps = block(maps)
            if number < HALVINGS:
                maps = nn.functional.avg_pool2d(maps, 2)
        return maps.mean(dim=3).transpose(1, 2)

    def embed(self, frames: torch.Tensor) -> torch.Tensor:
        """Embeddings [n, 2048] of the frames of the last block."""
        return torch.relu(self.fc1(frames.amax(dim=1) + frames.mean(dim=1)))


def convert_cnn14(state: State) -> State:
    """The tensors of the official checkpoint by the names of `Cnn14`.

    Raises:
        ValueError: if its front end is another.
    """
    return {
        re.sub(r"^conv_block(\d)\.", lambda match: f"blocks.{int(match[1]) - 1}.", name): tensor
        for name, tensor in convert_front_end(state).items()
    }


class PannsEncoder(ModelEncoder[torch.Tensor]):
    """Cnn14; its embedding is the model's own, its layers are the six convolutional blocks.

    A frame of block k lasts 2^k · 10 ms, of the last two 320 ms. Layer 0 is the normalised log-mel spectrogram. A
    clip may have any length from 310 ms on, for which the poolings leave one frame.
    """

    has_embedding = True

    def __init__(self, weights: Weights, device: torch.device, options: EncoderOptions) -> None:
        super().__init__(
            weights.encoder_id,
            sample_rate=SAMPLE_RATE,
            num_layers=len(CHANNELS),
            options=options,
            device=device,
        )
        self._depth = len(CHANNELS) if options.layer is None else options.layer
        self.output_dim = (MELS, *CHANNELS)[self._depth]
        self._model = weights.build(Cnn14, convert_cnn14, unused=("fc_audioset.",)).to(device)
        self.revision, self.weights_sha256 = weights.revision, weights.sha256

    def _extract_features(self, clips: FloatArray) -> torch.Tensor:
        samples, shortest = clips.shape[1], (2**HALVINGS - 1) * HOP
        if samples < shortest:
            raise ValueError(
                f"clips of {samples} samples at {self.sample_rate} Hz are too short for '{self.id}', which takes "
                f"{shortest} samples ({shortest / self.sample_rate:g} s) at least"
            )
        features: torch.Tensor = self._model.log_mel(torch.from_numpy(clips).to(self.device))
        return features

    def _encode(self, features: torch.Tensor) -> Hidden:
        frames = self._model(features, self._depth)
        frame_seconds = 2 ** min(self._depth, HALVINGS) * HOP / self.sample_rate
        embedding = self._model.embed(frames) if self.options.layer is None else None
        return Hidden(frames, frame_seconds, embedding=embedding)
