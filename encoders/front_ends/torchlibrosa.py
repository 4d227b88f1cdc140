"""The front end of PANNs and of MS-CLAP, which their authors compute with the package torchlibrosa.

Checkpoints hold its constants with the model's weights: the Fourier matrix and the mel filters.
"""

from __future__ import annotations

import librosa
import torch
from torch import nn

from ..base import ModelError
from ..loading.weights import State

N_FFT = 1024
HOP = 320
MELS = 64

POWER_FLOOR = 1e-10
"""Power below which a mel band is silent: -100 dB."""

FOURIER_TOLERANCE = 1e-4
"""Tolerance for rounding between two computations of a windowed Fourier matrix, whose values are up to 1:
single precision, and torchlibrosa's recurrence of powers, stay below 1e-5."""


class DecibelSpectrogram(nn.Module):
    """Periodic Hann window, centred frames with reflection at both ends, power, Slaney mel filters, decibels.

    Attributes:
        filters: [513, 64], weights of the mel bands; fresh ones are librosa's, a checkpoint holds its own.
    """

    filters: torch.Tensor
    _taper: torch.Tensor

    def __init__(self, sample_rate: int, band_edges: tuple[int, int]) -> None:
        """Make the filters.

        Args:
            sample_rate: in Hz.
            band_edges: lower and upper edge of all mel bands together, in Hz.
        """
        super().__init__()
        low, high = band_edges
        filters = librosa.filters.mel(sr=sample_rate, n_fft=N_FFT, n_mels=MELS, fmin=low, fmax=high)
        self.register_buffer("filters", torch.from_numpy(filters.T.copy()))
        self.register_buffer("_taper", torch.hann_window(N_FFT), persistent=False)

    def forward(self, clips: torch.Tensor) -> torch.Tensor:
        """Return spectrograms in decibels [n, 1 + samples // 320, 64] of clips [n, samples], of over 512 samples."""
        # On the CPU the spectrum of one clip fits into the cache, but not the batch's.
        parts = [clip[None] for clip in clips] if clips.device.type == "cpu" else [clips]
        return torch.cat([self._log_mel(part) for part in parts])

    def _log_mel(self, clips: torch.Tensor) -> torch.Tensor:
        spectrum = torch.stft(clips, N_FFT, HOP, window=self._taper, return_complex=True)
        power = spectrum.real.square() + spectrum.imag.square()
        return 10 * (power.mT @ self.filters).clamp(min=POWER_FLOOR).log10()


def convert_front_end(state: State, prefix: str = "") -> State:
    """Rename the mel filters of a checkpoint for a `DecibelSpectrogram` called "log_mel"; return all its tensors.

    Its Fourier matrices, each times the window and stored as a convolution [513, 1, 1024], are removed: they must
    equal the transform used here.

    Args:
        state: the checkpoint's tensors.
        prefix: prefix of the names of the front end's constants.

    Raises:
        ModelError: a Fourier matrix is missing or differs.
    """
    converted = dict(state)
    bins, samples = torch.arange(N_FFT // 2 + 1).double(), torch.arange(N_FFT).double()
    phase = 2 * torch.pi / N_FFT * torch.outer(bins, samples)
    window = torch.hann_window(N_FFT, dtype=torch.float64)
    for part, expected in (("real", phase.cos() * window), ("imag", -phase.sin() * window)):
        name = f"{prefix}spectrogram_extractor.stft.conv_{part}.weight"
        stored, shape = converted.pop(name, None), (len(bins), 1, N_FFT)
        if stored is None or stored.shape != shape:
            fault = "are missing" if stored is None else f"have the shape {tuple(stored.shape)}"
            raise ModelError(
                f"the weights '{name}' {fault}, but must have the shape {shape}: the checkpoint is of another "
                "model, or has another front end"
            )
        difference = float((stored[:, 0].double() - expected).abs().max())
        if not difference <= FOURIER_TOLERANCE:
            raise ModelError(
                f"the weights '{name}' differ by {difference:.1g} from a Fourier transform of {N_FFT} samples with a "
                "periodic Hann window: the checkpoint was trained with another front end"
            )
    if (filters := converted.pop(f"{prefix}logmel_extractor.melW", None)) is not None:
        converted["log_mel.filters"] = filters
    return converted
