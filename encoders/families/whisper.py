"""The encoders of the Whisper family (Radford et al., 2022, arXiv 2212.04356).

The encoder always gets a window of 30 s, as in training; a shorter clip is padded with silence. The embedding is
the mean over the frames of the clip itself, as in arXiv 2603.13685: 500 of 1,500 frames for 10 s.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ..base import FloatArray, ModelError
from ..loading.listing import ModelListing
from ..model_encoder import Hidden, LayeredEncoder, states_at, with_states
from ..options import EncoderOptions

if TYPE_CHECKING:
    import torch

    from ..loading.checkpoints import Checkpoint


@dataclass(frozen=True)
class WhisperFeatures:
    """Input of a Whisper encoder.

    Attributes:
        log_mel: float32 [n, mels, frames of the whole window].
        frames: number of encoder frames (20 ms each) that begin within the clips.
    """

    log_mel: torch.Tensor
    frames: int


class WhisperEncoder(LayeredEncoder[WhisperFeatures]):
    """A Whisper encoder; its frames cover the clip itself, 20 ms each.

    Clips longer than the window (30 s) are refused, never cropped. The last layer is the model's output, after its
    final normalisation, as in transformers' `hidden_states`.
    """

    def __init__(self, checkpoint: Checkpoint, device: torch.device, options: EncoderOptions) -> None:
        from transformers import WhisperFeatureExtractor

        from ..front_ends.whisper import WhisperLogMel

        extractor = checkpoint.load_feature_extractor(WhisperFeatureExtractor)
        config = self._encoder_config(checkpoint)
        if extractor.nb_max_frames != 2 * config.max_source_positions:
            raise ModelError(
                f"the feature extractor of '{checkpoint.name}' makes {extractor.nb_max_frames} frames, but the model "
                f"takes {2 * config.max_source_positions}"
            )
        if extractor.feature_size != config.num_mel_bins:
            raise ModelError(
                f"the feature extractor of '{checkpoint.name}' makes {extractor.feature_size} mel bands, but the "
                f"model takes {config.num_mel_bins}"
            )
        if extractor.dither:
            raise ModelError(f"the feature extractor of '{checkpoint.name}' adds noise (dither {extractor.dither})")
        num_layers = int(config.encoder_layers)
        self.check_options(checkpoint.id, options, num_layers)
        self._log_mel = WhisperLogMel(extractor).to(device)
        self._model = self._load_encoder(checkpoint).to(device)
        rate, dim = int(extractor.sampling_rate), int(config.d_model)
        card = checkpoint.card(sample_rate=rate, output_dim=dim, options=options, modules=[self._model])
        super().__init__(card, num_layers=num_layers, device=device)

    def _encoder_config(self, checkpoint: Checkpoint) -> Any:
        return checkpoint.config

    def _load_encoder(self, checkpoint: Checkpoint) -> Any:
        from transformers import WhisperModel

        # A WhisperEncoder loaded directly finds none of its weights in a published checkpoint.
        return checkpoint.load_model(WhisperModel, parts=("encoder.",)).get_encoder()

    def _extract_features(self, clips: FloatArray) -> WhisperFeatures:
        samples = clips.shape[1]
        self._refuse_long(samples, self._log_mel.window_samples)
        log_mel = self._log_mel(self._on_device(clips))
        # The second convolution has a stride of 2: one encoder frame for two of the spectrogram.
        sounding = -(-samples // self._log_mel.hop)
        return WhisperFeatures(log_mel, frames=(sounding - 1) // 2 + 1)

    def _encode_at(self, features: WhisperFeatures, layers: Sequence[int | None]) -> list[Hidden]:
        output = self._model(features.log_mel, output_hidden_states=with_states(layers))
        seconds = 2 * self._log_mel.hop / self.card.sample_rate
        return [Hidden(state[:, : features.frames], seconds) for state in states_at(output, layers)]


ARCHITECTURES = {"whisper": WhisperEncoder}

DIMS = {
    "whisper-tiny": 384,
    "whisper-tiny.en": 384,
    "whisper-base": 512,
    "whisper-base.en": 512,
    "whisper-small": 768,
    "whisper-small.en": 768,
    "whisper-medium": 1024,
    "whisper-medium.en": 1024,
    "whisper-large-v2": 1280,
    "whisper-large-v3": 1280,
    "whisper-large-v3-turbo": 1280,
}

MODELS = tuple(
    ModelListing(
        name,
        dim,
        16_000,
        "speech recognition",
        # The Hub's cards.
        "MIT" if name == "whisper-large-v3-turbo" else "Apache-2.0",
        "Whisper's encoder, mean over the clip's own frames (30-s window)",
        f"openai/{name}",
    )
    for name, dim in DIMS.items()
)
