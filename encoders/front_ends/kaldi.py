"""Kaldi's log-mel filter bank in torch, for all clips of a batch at once and on any device.

It computes Kaldi's ``compute-fbank-feats`` (https://kaldi-asr.org/doc/feat.html) with the defaults of
``torchaudio.compliance.kaldi.fbank``, with which AST, AudioMAE and BEATs were trained: frames that lie
wholly within the clip, each with its mean removed, pre-emphasised and tapered; the power spectrum at the next power
of two; triangles on the mel scale 1127·ln(1 + f/700); the logarithm, at least of the float32 epsilon.

It differs from torchaudio's by rounding. torchaudio is not used, so that results do not depend on what is installed.
"""

from __future__ import annotations

import math
import warnings
from dataclasses import dataclass
from typing import Literal

import torch
from transformers.audio_utils import mel_filter_bank

SAMPLE_RATE = 16_000
FRAME = 400
"""Samples of a frame: 25 ms."""
HOP = 160
"""Samples between frames: 10 ms."""
PREEMPHASIS = 0.97
LOWEST_FREQUENCY = 20.0
"""Hz at which the lowest triangle begins; the highest ends at the Nyquist frequency."""
FLOOR = torch.finfo(torch.float32).eps

Taper = Literal["hanning", "povey"]
TAPER_POWERS: dict[Taper, float] = {"hanning": 1.0, "povey": 0.85}
"""Tapers are powers of the symmetric Hann window; Povey's is Kaldi's default."""


class FilterBank(torch.nn.Module):
    """Log-mel filter bank of clips at 16 kHz: [n, samples] to [n, frames, mels].

    Args:
        mels: number of triangles.
        taper: name of the taper.
        dtype: type of the arithmetic. Next to a tone, the rounding of float32 fills silent bands,
            140 dB below; this matters to a model only if `FLOOR` is lower, for waveforms in 16-bit units.
    """

    _taper: torch.Tensor
    _filters: torch.Tensor

    def __init__(self, mels: int, taper: Taper, dtype: torch.dtype = torch.float32) -> None:
        super().__init__()
        self._size = 2 ** math.ceil(math.log2(FRAME))
        hann = torch.hann_window(FRAME, periodic=False, dtype=torch.float64)
        self.register_buffer("_taper", (hann ** TAPER_POWERS[taper]).to(dtype))
        with warnings.catch_warnings():
            # With 128 triangles the lowest hold no bin, as in training.
            warnings.simplefilter("ignore", UserWarning)
            filters = mel_filter_bank(
                num_frequency_bins=self._size // 2 + 1,
                num_mel_filters=mels,
                min_frequency=LOWEST_FREQUENCY,
                max_frequency=SAMPLE_RATE / 2,
                sampling_rate=SAMPLE_RATE,
                norm=None,
                mel_scale="kaldi",
                triangularize_in_mel_space=True,
            )
        self.register_buffer("_filters", torch.from_numpy(filters).to(dtype))

    def forward(self, clips: torch.Tensor) -> torch.Tensor:
        """Return log-mel spectrograms, float32 [n, frames, mels], of clips [n, samples] of at least one frame."""
        # On the CPU one clip after another takes three quarters of the time: intermediate values stay in its cache.
        parts = [clips[row : row + 1] for row in range(len(clips))] if clips.device.type == "cpu" else [clips]
        return torch.cat([self._log_mel(part.to(self._taper.dtype)).float() for part in parts])

    def _log_mel(self, clips: torch.Tensor) -> torch.Tensor:
        means = clips.unfold(1, FRAME, HOP).mean(dim=2, keepdim=True)
        # Tapers are 0 at both ends, so the sample before a frame does not matter, and the
        # clip can be pre-emphasised once instead of frame by frame. A mean m then is (1 - 0.97)·m.
        emphasised = clips[:, 1:] - PREEMPHASIS * clips[:, :-1]
        frames = emphasised.unfold(1, FRAME - 1, HOP) - (1 - PREEMPHASIS) * means
        padding = (0, self._size - FRAME + 1)
        spectrum = torch.fft.rfft(torch.nn.functional.pad(frames * self._taper[1:], padding))
        power = (spectrum * spectrum.conj()).real
        log_mel: torch.Tensor = (power @ self._filters).clamp_min(FLOOR).log()
        return log_mel


@dataclass(frozen=True)
class LogMelWindow:
    """Log-mel spectrograms in a window of fixed length.

    Attributes:
        log_mel: [n, frames of the window, mels].
        frames: number of the clip's frames; the others are padding.
    """

    log_mel: torch.Tensor
    frames: int


class WindowedFilterBank(torch.nn.Module):
    """Filter bank (Hann taper) of clips, padded to a window and normalised, as AST and AudioMAE were trained.

    Padding is a log-mel of 0 before normalisation, which is x -> (x - mean) / (2·std).

    Args:
        mels: number of triangles.
        frames: length of the window.
        mean: value to subtract.
        std: half of the divisor.
    """

    def __init__(self, *, mels: int, frames: int, mean: float, std: float) -> None:
        super().__init__()
        self.frames, self._mean, self._std = frames, mean, std
        self._bank = FilterBank(mels, "hanning")

    def forward(self, clips: torch.Tensor) -> LogMelWindow:
        """Return spectrograms of clips [n, samples], at least one frame and at most the window long."""
        log_mel: torch.Tensor = self._bank(clips)
        frames = log_mel.shape[1]
        padded = torch.nn.functional.pad(log_mel, (0, 0, 0, self.frames - frames))
        return LogMelWindow((padded - self._mean) / (2 * self._std), frames)


def shortest_clip(frames: int = 1) -> int:
    """Return the number of samples of the shortest clip that wholly contains `frames` frames."""
    return FRAME + (frames - 1) * HOP
