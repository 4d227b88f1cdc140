"""Cnn14 of "PANNs: Large-Scale Pretrained Audio Neural Networks" (Kong et al., 2020, arXiv 1912.10211).

The embedding is the one that the paper transfers to other tasks: the last feature maps are averaged over frequency;
the sum of their maximum and their mean over time goes through the first fully connected layer and a ReLU.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

import librosa
import torch
from torch import nn

from .base import FloatArray
from .model_encoder import Hidden, ModelEncoder
from .options import EncoderOptions
from .weights import State, Weights

CHANNELS = (64, 128, 256, 512, 1024, 2048)
"""Feature maps of the six convolutional blocks (arXiv 1912.10211, table of the CNNs)."""

HALVINGS = 5
"""Blocks that end in a pooling of 2 × 2: all but the last."""

CONSTANT_TOLERANCE = 1e-4
"""Difference between constants of two front ends, relative to the largest value, that is rounding: single precision
and the recurrence with which libraries compute a Fourier matrix leave 1e-6 at most."""


@dataclass(frozen=True)
class LogMelSettings:
    """A log-mel spectrogram as the package torchlibrosa computes it: periodic Hann window, centred frames with
    reflection at both ends, power, librosa's (Slaney) mel filters, decibels.

    Attributes:
        sample_rate: Hz.
        n_fft: samples of window and Fourier transform.
        hop: samples between frames.
        mels: number of bands.
        fmin: lower end of the lowest band in Hz.
        fmax: upper end of the highest band in Hz.
    """

    sample_rate: int
    n_fft: int
    hop: int
    mels: int
    fmin: float
    fmax: float

    def mel_filters(self) -> torch.Tensor:
        """Weights of the mel bands [n_fft / 2 + 1, mels]."""
        filters = librosa.filters.mel(
            sr=self.sample_rate, n_fft=self.n_fft, n_mels=self.mels, fmin=self.fmin, fmax=self.fmax
        )
        return torch.from_numpy(filters.T.copy())

    def stored_constants(self) -> Mapping[str, torch.Tensor]:
        """What torchlibrosa stores beside a model's weights, by its names: the Fourier matrix, times the window, as
        convolutions [n_fft / 2 + 1, 1, n_fft], and the mel filters."""
        bins = torch.arange(self.n_fft // 2 + 1, dtype=torch.float64)
        phase = -2 * torch.pi / self.n_fft * torch.outer(bins, torch.arange(self.n_fft, dtype=torch.float64))
        matrix = torch.polar(torch.hann_window(self.n_fft, dtype=torch.float64).expand_as(phase).contiguous(), phase)
        return {
            "spectrogram_extractor.stft.conv_real.weight": matrix.real[:, None],
            "spectrogram_extractor.stft.conv_imag.weight": matrix.imag[:, None],
            "logmel_extractor.melW": self.mel_filters(),
        }


CNN14_LOG_MEL = LogMelSettings(sample_rate=32_000, n_fft=1024, hop=320, mels=64, fmin=50, fmax=14_000)
"""Front end of Cnn14 (arXiv 1912.10211, experiments; its hop of 320 samples, 10 ms)."""


def remove_constants(state: State, settings: LogMelSettings, prefix: str = "") -> State:
    """The tensors of a checkpoint without torchlibrosa's constants, which must be those of the front end.

    Args:
        state: tensors by name.
        settings: of the front end that will be used in place of the stored one.
        prefix: what stands before the constants' names.

    Raises:
        ValueError: if a constant is missing or is that of another front end.
    """
    remaining = dict(state)
    for name, constant in settings.stored_constants().items():
        stored = remaining.pop(prefix + name, None)
        if stored is None or stored.shape != constant.shape:
            found = "are missing" if stored is None else f"have the shape {tuple(stored.shape)}"
            raise ValueError(
                f"the weights '{prefix + name}' {found}, but must be {tuple(constant.shape)}: the checkpoint is not "
                "one of this model, or has another front end"
            )
        difference = float((stored.double() - constant.double()).abs().max() / constant.abs().max())
        if not difference <= CONSTANT_TOLERANCE:
            raise ValueError(
                f"the weights '{prefix + name}' differ by {difference:.1g} of their largest value from those of "
                f"{settings}: the checkpoint was trained with another front end"
            )
    return remaining


class LogMel(nn.Module):
    """The log-mel spectrogram of `LogMelSettings`, in decibels of power with a floor of -100 dB."""

    _taper: torch.Tensor
    _filters: torch.Tensor

    def __init__(self, settings: LogMelSettings) -> None:
        super().__init__()
        self.settings = settings
        self.register_buffer("_taper", torch.hann_window(settings.n_fft))
        self.register_buffer("_filters", settings.mel_filters())

    def forward(self, clips: torch.Tensor) -> torch.Tensor:
        """Spectrograms [n, 1 + samples // hop, mels] of clips [n, samples > n_fft / 2]."""
        settings = self.settings
        spectrum = torch.stft(clips, settings.n_fft, settings.hop, window=self._taper, return_complex=True)
        power = torch.view_as_real(spectrum).square().sum(dim=-1)
        return 10 * (power.transpose(1, 2) @ self._filters).clamp(min=1e-10).log10()


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
        self.bn0 = nn.BatchNorm1d(CNN14_LOG_MEL.mels)
        self.blocks = nn.ModuleList(map(ConvBlock, (1, *CHANNELS), CHANNELS))
        self.fc1 = nn.Linear(CHANNELS[-1], CHANNELS[-1])
        for module in self.modules():
            if isinstance(module, (nn.Conv2d, nn.Linear)):
                nn.init.xavier_uniform_(module.weight)
        nn.init.zeros_(self.fc1.bias)

    def forward(self, log_mel: torch.Tensor, depth: int) -> torch.Tensor:
        """Frames [n, frames, dim] of spectrograms [n, frames, mels].

        Args:
            log_mel: in decibels.
            depth: number of blocks. 0 gives the normalised spectrogram, with `mels` values a frame; k the feature
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
        ValueError: if its front end is not `CNN14_LOG_MEL`.
    """
    weights = remove_constants(state, CNN14_LOG_MEL)
    return {
        re.sub(r"^conv_block(\d)\.", lambda match: f"blocks.{int(match[1]) - 1}.", name): tensor
        for name, tensor in weights.items()
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
            sample_rate=CNN14_LOG_MEL.sample_rate,
            num_layers=len(CHANNELS),
            options=options,
            device=device,
        )
        self._depth = len(CHANNELS) if options.layer is None else options.layer
        self.output_dim = (CNN14_LOG_MEL.mels, *CHANNELS)[self._depth]
        self._log_mel = LogMel(CNN14_LOG_MEL).to(device)
        self._model = weights.build(Cnn14, convert_cnn14, unused=("fc_audioset.",)).to(device)
        self.revision, self.weights_sha256 = weights.revision, weights.sha256

    def _extract_features(self, clips: FloatArray) -> torch.Tensor:
        samples, shortest = clips.shape[1], (2**HALVINGS - 1) * CNN14_LOG_MEL.hop
        if samples < shortest:
            raise ValueError(
                f"clips of {samples} samples at {self.sample_rate} Hz are too short for '{self.id}', which takes "
                f"{shortest} samples ({shortest / self.sample_rate:g} s) at least"
            )
        features: torch.Tensor = self._log_mel(torch.from_numpy(clips).to(self.device))
        return features

    def _encode(self, features: torch.Tensor) -> Hidden:
        frames = self._model(features, self._depth)
        frame_seconds = 2 ** min(self._depth, HALVINGS) * CNN14_LOG_MEL.hop / self.sample_rate
        embedding = self._model.embed(frames) if self.options.layer is None else None
        return Hidden(frames, frame_seconds, embedding=embedding)
