"""The encoders of the Whisper family (Radford et al., 2022, arXiv 2212.04356).

The encoder always sees a window of 30 s, as it was trained; a shorter clip is padded with silence. The embedding is
the mean over the frames of the clip itself, as arXiv 2603.13685 does: 500 of 1,500 frames for 10 s.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from transformers import WhisperFeatureExtractor, WhisperModel

from audio_compositionality.encoders.base import FloatArray
from audio_compositionality.encoders.loading.checkpoints import Checkpoint, load_feature_extractor, load_model
from audio_compositionality.encoders.model_encoder import Hidden, ModelEncoder
from audio_compositionality.encoders.options import EncoderOptions

MEL_FLOOR = 1e-10
"""Power below which a mel band is silent; log10 of it, -10, fills the padding."""

DYNAMIC_RANGE = 8.0
"""Decades below a clip's maximum at which its log-mel spectrogram is cut off."""


@dataclass(frozen=True)
class WhisperFeatures:
    """Input of a Whisper encoder.

    Attributes:
        log_mel: float32 [n, mels, frames of the whole window].
        frames: number of encoder frames (20 ms each) that begin within the clips.
    """

    log_mel: torch.Tensor
    frames: int


class WhisperEncoder(ModelEncoder[WhisperFeatures]):
    """A Whisper encoder; its frames are those of the clip itself, 20 ms each.

    Clips longer than the window (30 s) are refused, never cropped. The last layer is the model's output, after its
    final normalisation, as in transformers' `hidden_states`.
    """

    def __init__(self, checkpoint: Checkpoint, device: torch.device, options: EncoderOptions) -> None:
        extractor = load_feature_extractor(checkpoint)
        if not isinstance(extractor, WhisperFeatureExtractor):
            raise ValueError(
                f"'{checkpoint.id}' is a Whisper model with a {type(extractor).__name__}; it needs a "
                "WhisperFeatureExtractor"
            )
        config = self._encoder_config(checkpoint)
        if extractor.nb_max_frames != 2 * config.max_source_positions:
            raise ValueError(
                f"the feature extractor of '{checkpoint.id}' makes {extractor.nb_max_frames} frames, but the model "
                f"takes {2 * config.max_source_positions}"
            )
        if extractor.feature_size != config.num_mel_bins:
            raise ValueError(
                f"the feature extractor of '{checkpoint.id}' makes {extractor.feature_size} mel bands, but the "
                f"model takes {config.num_mel_bins}"
            )
        if extractor.dither:
            raise ValueError(f"the feature extractor of '{checkpoint.id}' adds noise (dither {extractor.dither})")
        super().__init__(
            checkpoint.encoder_id,
            sample_rate=int(extractor.sampling_rate),
            num_layers=int(config.encoder_layers),
            options=options,
            device=device,
        )
        self.output_dim = int(config.d_model)
        self._log_mel = LogMel(extractor).to(device)
        self._model = self._load_encoder(checkpoint).to(device)
        self.revision, self.weights_sha256 = checkpoint.revision, checkpoint.weights_sha256

    def _encoder_config(self, checkpoint: Checkpoint) -> Any:
        return checkpoint.config

    def _load_encoder(self, checkpoint: Checkpoint) -> Any:
        # A WhisperEncoder loaded by itself finds none of its weights in a published checkpoint.
        return load_model(checkpoint, WhisperModel, parts=("encoder.",)).get_encoder()

    def _extract_features(self, clips: FloatArray) -> WhisperFeatures:
        samples, window = clips.shape[1], self._log_mel.window_samples
        if samples > window:
            raise ValueError(
                f"clips last {samples / self.sample_rate:g} s, but '{self.id}' takes {window / self.sample_rate:g} s "
                "at most; cut them before"
            )
        log_mel = self._log_mel(torch.from_numpy(clips).to(self.device))
        # The second convolution has a stride of 2: one encoder frame for two of the spectrogram.
        sounding = -(-samples // self._log_mel.hop)
        return WhisperFeatures(log_mel, frames=(sounding - 1) // 2 + 1)

    def _encode(self, features: WhisperFeatures) -> Hidden:
        layer = self.options.layer
        output = self._model(features.log_mel, output_hidden_states=layer is not None)
        hidden = output.last_hidden_state if layer is None else output.hidden_states[layer]
        return Hidden(hidden[:, : features.frames], 2 * self._log_mel.hop / self.sample_rate)


class LogMel(torch.nn.Module):
    """What `WhisperFeatureExtractor` computes, bit for bit, but only where there is sound.

    A frame that lies in the padding has no power; its bands are at the floor without a transform. For 10 s in a
    window of 30 s this takes a fifth of the time.
    """

    _taper: torch.Tensor
    _filters: torch.Tensor

    def __init__(self, extractor: WhisperFeatureExtractor) -> None:
        super().__init__()
        self.window_samples: int = extractor.n_samples
        self.hop: int = extractor.hop_length
        self._frames: int = extractor.nb_max_frames
        self._size: int = extractor.n_fft
        self.register_buffer("_taper", torch.hann_window(self._size))
        self.register_buffer("_filters", torch.from_numpy(extractor.mel_filters).to(torch.float32).T)

    def forward(self, clips: torch.Tensor) -> torch.Tensor:
        """Log-mel spectrogram [n, mels, frames] of clips [n, samples] that are no longer than the window."""
        samples = clips.shape[1]
        # Frames are centred: frame t sees samples from t·hop - size/2 on.
        sounding = min(self._frames, (samples + self._size // 2 - 1) // self.hop + 1)
        padded_length = min(self.window_samples, sounding * self.hop + self._size)
        padded = torch.nn.functional.pad(clips, (0, padded_length - samples))
        spectrum = torch.stft(padded, self._size, self.hop, window=self._taper, return_complex=True)
        power = (spectrum[..., :sounding].abs() ** 2).contiguous()
        log_mel = torch.clamp(self._filters @ power, min=MEL_FLOOR).log10()
        window = log_mel.new_full((len(clips), log_mel.shape[1], self._frames), -10.0)
        window[..., :sounding] = log_mel
        highest = log_mel.amax(dim=(1, 2), keepdim=True)
        return (torch.maximum(window, highest - DYNAMIC_RANGE) + 4.0) / 4.0
