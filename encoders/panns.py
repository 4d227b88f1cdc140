"""Cnn14 of "PANNs: Large-Scale Pretrained Audio Neural Networks" (Kong et al., 2020, arXiv 1912.10211).

The embedding is the one that the paper transfers to other tasks: the last feature maps are averaged over frequency;
the sum of their maximum and their mean over time goes through the first fully connected layer and a ReLU.
"""

from __future__ import annotations

import re

import librosa
import torch
from torch import nn

from .base import FloatArray
from .model_encoder import Hidden, ModelEncoder
from .options import EncoderOptions
from .weights import State, Weights

SAMPLE_RATE = 32_000
N_FFT = 1024
HOP = 320
MELS = 64
BAND_EDGES = (50, 14_000)
"""Hz, of all mel bands together."""

CHANNELS = (64, 128, 256, 512, 1024, 2048)
"""Feature maps of the six convolutional blocks (arXiv 1912.10211, table of the CNNs)."""

HALVINGS = 5
"""Blocks that end in a pooling of 2 × 2: all but the last."""

CONSTANT_TOLERANCE = 1e-4
"""Difference between the constants of two front ends, relative to the largest value, that is rounding. Single
precision, and the powers from which torchlibrosa computes its Fourier matrix, leave 1e-6 at most."""


class LogMel(nn.Module):
    """Cnn14's front end, which its authors compute with the package torchlibrosa.

    Periodic Hann window, centred frames with reflection at both ends, power, Slaney mel filters as librosa has them,
    decibels with a floor of -100.
    """

    _taper: torch.Tensor
    _filters: torch.Tensor

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("_taper", torch.hann_window(N_FFT))
        self.register_buffer("_filters", mel_filters())

    def forward(self, clips: torch.Tensor) -> torch.Tensor:
        """Spectrograms [n, 1 + samples // 320, 64] of clips [n, samples], of more than 512 samples."""
        spectrum = torch.stft(clips, N_FFT, HOP, window=self._taper, return_complex=True)
        power = spectrum.real.square() + spectrum.imag.square()
        return 10 * (power.transpose(1, 2) @ self._filters).clamp(min=1e-10).log10()


def mel_filters() -> torch.Tensor:
    """Weights of the mel bands, float32 [513, 64]."""
    low, high = BAND_EDGES
    filters = librosa.filters.mel(sr=SAMPLE_RATE, n_fft=N_FFT, n_mels=MELS, fmin=low, fmax=high)
    return torch.from_numpy(filters.T.copy())


def front_end_constants() -> State:
    """The front end as torchlibrosa stores it beside a model's weights, by its names.

    The Fourier matrix times the window is stored as two convolutions [513, 1, 1024].
    """
    samples = torch.arange(N_FFT, dtype=torch.float64)
    phase = 2 * torch.pi / N_FFT * torch.outer(samples[: N_FFT // 2 + 1], samples)
    window = torch.hann_window(N_FFT, dtype=torch.float64)
    return {
        "spectrogram_extractor.stft.conv_real.weight": (window * phase.cos())[:, None],
        "spectrogram_extractor.stft.conv_imag.weight": (-window * phase.sin())[:, None],
        "logmel_extractor.melW": mel_filters(),
    }


def remove_constants(state: State) -> State:
    """The tensors of a checkpoint without the constants of its front end, which must be those of `LogMel`.

    Raises:
        ValueError: if one is missing or is that of another front end.
    """
    remaining = dict(state)
    for name, constant in front_end_constants().items():
        stored = remaining.pop(name, None)
        if stored is None or stored.shape != constant.shape:
            found = "are missing" if stored is None else f"have the shape {tuple(stored.shape)}"
            raise ValueError(
                f"the weights '{name}' {found}, but must be there in the shape {tuple(constant.shape)}: the checkpoint "
                "is not one of Cnn14, or has another front end"
            )
        difference = float((stored.double() - constant.double()).abs().max() / constant.abs().max())
        if not difference <= CONSTANT_TOLERANCE:
            raise ValueError(
                f"the weights '{name}' differ by {difference:.1g} of their largest value from those of the front end "
                f"of Cnn14 ({SAMPLE_RATE} Hz, Hann window of {N_FFT} samples, {MELS} mel bands from {BAND_EDGES[0]} to "
                f"{BAND_EDGES[1]} Hz): the checkpoint was trained with another"
            )
    return remaining


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
        ValueError: if its front end is not `LogMel`.
    """
    weights = remove_constants(state)
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
            sample_rate=SAMPLE_RATE,
            num_layers=len(CHANNELS),
            options=options,
            device=device,
        )
        self._depth = len(CHANNELS) if options.layer is None else options.layer
        self.output_dim = (MELS, *CHANNELS)[self._depth]
        self._log_mel = LogMel().to(device)
        self._model = weights.build(Cnn14, convert_cnn14, unused=("fc_audioset.",)).to(device)
        self.revision, self.weights_sha256 = weights.revision, weights.sha256

    def _extract_features(self, clips: FloatArray) -> torch.Tensor:
        samples, shortest = clips.shape[1], (2**HALVINGS - 1) * HOP
        if samples < shortest:
            raise ValueError(
                f"clips of {samples} samples at {self.sample_rate} Hz are too short for '{self.id}', which takes "
                f"{shortest} samples ({shortest / self.sample_rate:g} s) at least"
            )
        features: torch.Tensor = self._log_mel(torch.from_numpy(clips).to(self.device))
        return features

    def _encode(self, features: torch.Tensor) -> Hidden:
        frames = self._model(features, self._depth)
        frame_seconds = 2 ** min(self._depth, HALVINGS) * HOP / self.sample_rate
        embedding = self._model.embed(frames) if self.options.layer is None else None
        return Hidden(frames, frame_seconds, embedding=embedding)
