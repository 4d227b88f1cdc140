"""The front end of CLAP in transformers' format."""

from __future__ import annotations

import numpy as np
import torch
from torch import nn
from transformers import ClapFeatureExtractor

from ..base import ModelError

POWER_FLOOR = 1e-10
"""Power below which a mel band is silent: -100 dB (`transformers.audio_utils.power_to_db`)."""


class ClapLogMel(nn.Module):
    """The spectrogram of `ClapFeatureExtractor` for clips no longer than its window, batched and faster.

    Like the extractor it transforms in double precision. In single precision a loud tone would raise silent bands by
    rounding: to -85 dB for a tone of full scale, instead of -100 dB.
    """

    _taper: torch.Tensor
    _filters: torch.Tensor

    def __init__(self, extractor: ClapFeatureExtractor, name: str) -> None:
        """Read the settings.

        Raises:
            ModelError: a setting is not supported.
        """
        super().__init__()
        for setting, value, covered in (
            ("truncation", extractor.truncation, ("fusion", "rand_trunc")),
            ("padding", extractor.padding, ("repeatpad", "repeat", "pad")),
        ):
            if value not in covered:
                raise ModelError(
                    f"the feature extractor of '{name}' has {setting} '{value}', but must have one "
                    f"of {', '.join(covered)}"
                )
        self.window_samples: int = int(extractor.nb_max_samples)
        self.frames: int = self.window_samples // extractor.hop_length + 1
        self._hop: int = extractor.hop_length
        self._size: int = extractor.fft_window_size
        self._padding: str = extractor.padding
        filters = extractor.mel_filters if extractor.truncation == "fusion" else extractor.mel_filters_slaney
        self.register_buffer("_taper", torch.hann_window(self._size, dtype=torch.float64))
        self.register_buffer("_filters", torch.from_numpy(np.asarray(filters, np.float32)).T)

    def forward(self, clips: torch.Tensor) -> torch.Tensor:
        """Return log-mel spectrograms in decibels, float32 [n, frames, bands], of clips [n, samples]."""
        if self._padding != "pad":
            whole, rest = divmod(self.window_samples, clips.shape[1])
            cut = rest if self._padding == "repeat" else 0
            clips = torch.cat([clips.repeat(1, whole), clips[:, :cut]], dim=1)
        clips = nn.functional.pad(clips, (0, self.window_samples - clips.shape[1]))
        log_mels = []
        # The spectrum of one clip fits into the processor's cache; sixteen at once take three times as long per clip.
        for clip in clips:
            spectrum = torch.stft(clip.double(), self._size, self._hop, window=self._taper, return_complex=True)
            power = (spectrum.real.square() + spectrum.imag.square()).float()
            log_mels.append(10 * (self._filters @ power).mT.clamp(min=POWER_FLOOR).log10())
        return torch.stack(log_mels)
