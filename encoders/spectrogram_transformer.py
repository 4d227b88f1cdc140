"""Audio Spectrogram Transformers in transformers' format."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from transformers import ASTModel

from .base import FloatArray
from .checkpoints import Checkpoint, load_feature_extractor, load_model
from .model_encoder import Hidden, ModelEncoder
from .options import EncoderOptions


@dataclass(frozen=True)
class SpectrogramFeatures:
    """Log-mel window [n, frames, mels], and how many of its frames are sound."""

    log_mel: torch.Tensor
    frames: int


class SpectrogramTransformerEncoder(ModelEncoder[SpectrogramFeatures]):
    """Audio Spectrogram Transformer (Gong et al., 2021, arXiv 2104.01778).

    The mean over the patches that begin within the clip, without the two class tokens. Its window is fixed
    (1,024 frames of 10 ms); shorter clips are padded and longer ones are refused.
    """

    has_cls = True
    window = 400
    hop = 160

    def __init__(self, checkpoint: Checkpoint, device: torch.device, options: EncoderOptions) -> None:
        extractor, config = load_feature_extractor(checkpoint), checkpoint.config
        super().__init__(
            checkpoint.encoder_id,
            sample_rate=int(extractor.sampling_rate),
            num_layers=int(config.num_hidden_layers),
            options=options,
            device=device,
        )
        if extractor.max_length != config.max_length or extractor.num_mel_bins != config.num_mel_bins:
            raise ValueError(
                f"the feature extractor of '{checkpoint.id}' makes {extractor.max_length} frames of "
                f"{extractor.num_mel_bins} mel bands, but the model takes {config.max_length} of "
                f"{config.num_mel_bins}"
            )
        self.output_dim = int(config.hidden_size)
        self._config, self._extractor = config, extractor
        self._model: ASTModel = load_model(checkpoint, ASTModel).to(device)
        self.revision, self.weights_sha256 = checkpoint.revision, checkpoint.weights_sha256

    def _extract_features(self, clips: FloatArray) -> SpectrogramFeatures:
        samples = clips.shape[1]
        if samples < self.window:
            raise ValueError(
                f"clips of {samples} samples at {self.sample_rate} Hz are shorter than one frame of '{self.id}' "
                f"({self.window} samples)"
            )
        # Kaldi's frames lie wholly within the clip.
        longest = self.window + self._config.max_length * self.hop - 1
        if samples > longest:
            raise ValueError(
                f"clips last {samples / self.sample_rate:g} s, but '{self.id}' takes {longest / self.sample_rate:g} "
                "s at most and would crop the rest; cut them before"
            )
        log_mel = self._extractor(list(clips), sampling_rate=self.sample_rate, return_tensors="pt")["input_values"]
        return SpectrogramFeatures(log_mel.to(self.device), (samples - self.window) // self.hop + 1)

    def _encode(self, features: SpectrogramFeatures) -> Hidden:
        layer, config = self.options.layer, self._config
        output = self._model(features.log_mel, output_hidden_states=layer is not None)
        hidden = output.last_hidden_state if layer is None else output.hidden_states[layer]
        bands = (config.num_mel_bins - config.patch_size) // config.frequency_stride + 1
        # Class and distillation token come first, then all patches of the lowest band, and so on.
        patches = hidden[:, 2:].unflatten(1, (bands, -1)).mean(dim=1)
        sounding = -(-features.frames // config.time_stride)
        return Hidden(
            patches[:, :sounding], config.time_stride * self.hop / self.sample_rate, hidden[:, :2].mean(dim=1)
        )
