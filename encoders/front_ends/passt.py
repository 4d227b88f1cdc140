"""The front end of PaSST, as in the package hear21passt 0.0.26."""

from __future__ import annotations

import torch
from torch import nn
from transformers.audio_utils import mel_filter_bank

SAMPLE_RATE = 32_000
N_FFT = 1024
WINDOW = 800
"""Samples of the Hann window: 25 ms, in the middle of the Fourier transform's 1,024."""
HOP = 320
MELS = 128
HIGHEST_FREQUENCY = 15_000
"""Hz at which the highest mel band ends without jitter: 1 kHz below half the sample rate, in training ± 1 kHz."""
PREEMPHASIS = 0.97


class PasstLogMel(nn.Module):
    """PaSST's front end: pre-emphasis, power, 128 mel bands of Kaldi's kind from 0 to 15 kHz, logarithm, scaling.

    Windows are symmetric and centred, and the clip is reflected at both ends. The logarithm is of power + 1e-5; 4.5
    is added and the sum divided by 5, which brings the training data near to mean 0 and unit variance.
    """

    _taper: torch.Tensor
    _filters: torch.Tensor

    def __init__(self) -> None:
        super().__init__()
        filters = mel_filter_bank(
            num_frequency_bins=N_FFT // 2 + 1,
            num_mel_filters=MELS,
            min_frequency=0.0,
            max_frequency=HIGHEST_FREQUENCY,
            sampling_rate=SAMPLE_RATE,
            norm=None,
            mel_scale="kaldi",
            triangularize_in_mel_space=True,
        )
        self.register_buffer("_filters", torch.from_numpy(filters.T).float().contiguous())
        self.register_buffer("_taper", torch.hann_window(WINDOW, periodic=False))

    def forward(self, clips: torch.Tensor) -> torch.Tensor:
        """Return spectrograms [n, 128, 1 + (samples - 1) // 320] of clips [n, samples]."""
        # On the CPU the spectrum of one clip fits into the cache, but not the batch's: half the time.
        parts = [clip[None] for clip in clips] if clips.device.type == "cpu" else [clips]
        return torch.cat([self._log_mel(part) for part in parts])

    def _log_mel(self, clips: torch.Tensor) -> torch.Tensor:
        emphasised = clips[:, 1:] - PREEMPHASIS * clips[:, :-1]
        spectrum = torch.stft(emphasised, N_FFT, HOP, WINDOW, window=self._taper, return_complex=True)
        power = torch.view_as_real(spectrum).square().sum(dim=-1)
        log_mel: torch.Tensor = ((self._filters @ power + 1e-5).log() + 4.5) / 5
        return log_mel
