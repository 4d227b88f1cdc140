"""CLAP in transformers' format (Wu et al., 2023, arXiv 2211.06687), and what its audio encoder, HTSAT, needs.

HTSAT (Chen et al., 2022, arXiv 2202.00874) is a Swin transformer of four stages. Its input is a square image that a
spectrogram of 64 bands and 1,024 frames is folded into: four segments of 256 frames, one below the other.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import nn
from transformers import ClapAudioModelWithProjection, ClapFeatureExtractor

from audio_compositionality.encoders.base import FloatArray
from audio_compositionality.encoders.loading.checkpoints import Checkpoint, load_feature_extractor
from audio_compositionality.encoders.inference import double_precision_device
from audio_compositionality.encoders.model_encoder import Hidden, ModelEncoder
from audio_compositionality.encoders.options import EncoderOptions
from audio_compositionality.encoders.loading.partial import PartialCheckpoint

PARTS = ("audio_model.", "audio_projection.")
"""Weights of a CLAP checkpoint that embed sound."""

POWER_FLOOR = 1e-10
"""Power below which a mel band is silent: -100 dB (`transformers.audio_utils.power_to_db`)."""


@dataclass(frozen=True)
class ClapFeatures:
    """Input of a CLAP encoder.

    Attributes:
        log_mel: float32 [n, frames of the window, mels], in decibels.
        samples: length of the clips, before they were padded to the window.
    """

    log_mel: torch.Tensor
    samples: int


class ClapEncoder(ModelEncoder[ClapFeatures]):
    """CLAP: the projected audio embedding, of unit length.

    The window is 10 s. CLAP repeats a shorter clip, as in training; it would crop a longer one at random, so that
    is refused. Layers are HTSAT's stages, of which all but the last halve the number of frames and double their
    dimension; frames are those of the clip itself, without its repetitions.
    """

    has_embedding = True

    def __init__(self, checkpoint: Checkpoint, device: torch.device, options: EncoderOptions) -> None:
        extractor, config = load_feature_extractor(checkpoint), checkpoint.config
        if not isinstance(extractor, ClapFeatureExtractor):
            raise ValueError(
                f"'{checkpoint.id}' is a CLAP model with a {type(extractor).__name__}; it needs a ClapFeatureExtractor"
            )
        audio = config.audio_config
        super().__init__(
            checkpoint.encoder_id,
            sample_rate=int(extractor.sampling_rate),
            num_layers=len(audio.depths),
            options=options,
            device=device,
        )
        self._front_end_device = double_precision_device(device)
        self._log_mel = LogMel(extractor, checkpoint.id).to(self._front_end_device)
        self._segments = segments_of_image(audio)
        longest = audio.spec_size * self._segments
        if extractor.feature_size != audio.num_mel_bins or self._log_mel.frames > longest:
            raise ValueError(
                f"the feature extractor of '{checkpoint.id}' makes {self._log_mel.frames} frames of "
                f"{extractor.feature_size} mel bands, but the model takes {longest} of {audio.num_mel_bins}"
            )
        part = PartialCheckpoint.of(checkpoint, lambda name: name if name.startswith(PARTS) else None)
        self._model = part.load(ClapAudioModelWithProjection, audio).to(device)
        if options.layer is None and options.pooling is None:
            self.output_dim = int(config.projection_dim)
        else:
            self.output_dim = layer_dims(audio)[-1 if options.layer is None else options.layer]
        self.revision, self.weights_sha256 = part.revision, part.weights_sha256

    def _extract_features(self, clips: FloatArray) -> ClapFeatures:
        samples, longest = clips.shape[1], self._log_mel.window_samples
        if samples > longest:
            raise ValueError(
                f"clips last {samples / self.sample_rate:g} s, but '{self.id}' takes {longest / self.sample_rate:g} "
                "s at most and would crop the rest; cut them before"
            )
        log_mel = self._log_mel(torch.from_numpy(clips).to(self._front_end_device))
        return ClapFeatures(log_mel.to(self.device), samples)

    def _encode(self, features: ClapFeatures) -> Hidden:
        layer, log_mel = self.options.layer, features.log_mel
        # No clip is longer than the window, so none takes the branch for feature fusion.
        is_longer = torch.zeros(len(log_mel), 1, dtype=torch.bool)
        output = self._model(log_mel[:, None], is_longer=is_longer, output_hidden_states=layer is not None)
        if layer is None:
            frames = output.last_hidden_state.mean(dim=2).mT
            embedding = nn.functional.normalize(output.audio_embeds.float(), dim=-1)
        else:
            frames, embedding = unfold_image(output.hidden_states[layer], self._segments), None
        count, window = frames.shape[1], self._log_mel.window_samples
        sounding = -(-count * features.samples // window)
        return Hidden(frames[:, :sounding], window / self.sample_rate / count, embedding=embedding)


class LogMel(nn.Module):
    """What `ClapFeatureExtractor` computes of clips that are no longer than its window, but batched and faster.

    Like the extractor it transforms in double precision. In single precision the rounding of a loud tone would be
    above the floor of silent bands: -85 dB for a tone of full scale, where the floor is -100 dB.
    """

    _taper: torch.Tensor
    _filters: torch.Tensor

    def __init__(self, extractor: ClapFeatureExtractor, id: str) -> None:
        """Read the settings.

        Raises:
            ValueError: on a setting that is not covered.
        """
        super().__init__()
        for name, value, covered in (
            ("truncation", extractor.truncation, ("fusion", "rand_trunc")),
            ("padding", extractor.padding, ("repeatpad", "repeat", "pad")),
        ):
            if value not in covered:
                raise ValueError(
                    f"the feature extractor of '{id}' has {name} '{value}', but must have one of {', '.join(covered)}"
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
        """Log-mel spectrograms in decibels, float32 [n, frames, bands], of clips [n, samples]."""
        # The spectrum of one clip fits into the cache; that of sixteen at once takes three times as long a clip.
        return torch.stack([self._transform(clip) for clip in self._pad(clips)])

    def _pad(self, clips: torch.Tensor) -> torch.Tensor:
        samples = clips.shape[1]
        if self._padding != "pad":
            whole, rest = divmod(self.window_samples, samples)
            cut = rest if self._padding == "repeat" else 0
            clips = torch.cat([clips.repeat(1, whole), clips[:, :cut]], dim=1)
        return nn.functional.pad(clips, (0, self.window_samples - clips.shape[1]))

    def _transform(self, clip: torch.Tensor) -> torch.Tensor:
        spectrum = torch.stft(clip.double(), self._size, self._hop, window=self._taper, return_complex=True)
        power = (spectrum.real.square() + spectrum.imag.square()).float()
        return 10 * (self._filters @ power).mT.clamp(min=POWER_FLOOR).log10()


def unfold_image(hidden: torch.Tensor, segments: int) -> torch.Tensor:
    """Frames [n, segments · columns, dim] of patches of the folded image, averaged over frequency.

    Args:
        hidden: [n, dim, rows, columns]; the first rows / `segments` rows are the bands of the first segment.
        segments: number of segments of time that lie below each other.
    """
    clips, dim, rows, columns = hidden.shape
    return hidden.reshape(clips, dim, segments, rows // segments, columns).mean(dim=3).flatten(2).mT


def segments_of_image(config: Any) -> int:
    """Number of segments that HTSAT folds a spectrogram into."""
    return int(config.spec_size // config.num_mel_bins)


def layer_dims(config: Any) -> list[int]:
    """Dimension of HTSAT's frames at layer 0 (the patches) and after each stage."""
    dims = [config.patch_embeds_hidden_size * 2**stage for stage in range(len(config.depths))]
    return [*dims, dims[-1]]
