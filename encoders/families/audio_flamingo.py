"""Audio Flamingo 3 (Goel et al., 2025, arXiv 2507.08128), Music Flamingo (Ghosh et al., 2025, arXiv 2511.10289), and
AF-Whisper, the audio encoder of the first.

They process a clip in windows of 30 s, up to the processor's `max_audio_len` (10 and 20 minutes); longer clips, which
the processor cuts, are refused.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from ..base import FloatArray
from ..language_models.listing import LanguageFamily, ProcessorFrontEnd
from ..loading.listing import ModelListing
from ..model_encoder import Hidden, states_at, with_states
from ..options import EncoderOptions
from .whisper import WhisperEncoder, WhisperFeatures

if TYPE_CHECKING:
    import torch

    from ..language_models.transformers_model import LanguageCheckpoint
    from ..loading.checkpoints import Checkpoint


TOWER = "audio_tower."


class AfWhisperEncoder(WhisperEncoder):
    """Whisper large-v3's architecture, which does not attend to padding and averages pairs of frames at the end.

    It is part of the full model (`audioflamingo3`), whose other files are neither downloaded nor read, or comes from
    its own checkpoint (`audioflamingo3_encoder`).

    The output has a frame every 40 ms: 250 of 750 for 10 s; an odd last frame is left out, as the model does. Layers
    before the last have one every 20 ms: 500 of 1,500. The last layer is the output, as in transformers'
    `hidden_states`.
    """

    whole = "audioflamingo3"

    def __init__(self, checkpoint: Checkpoint, device: torch.device, options: EncoderOptions) -> None:
        is_whole = checkpoint.config.model_type == self.whole
        super().__init__(checkpoint.part(name_in_tower if is_whole else str), device, options)

    def _tower_class(self) -> Any:
        from transformers import AudioFlamingo3Encoder

        return AudioFlamingo3Encoder

    def _encoder_config(self, checkpoint: Checkpoint) -> Any:
        return getattr(checkpoint.config, "audio_config", checkpoint.config)

    def _load_encoder(self, checkpoint: Checkpoint) -> Any:
        return checkpoint.load_part(self._tower_class(), self._encoder_config(checkpoint))

    def _extract_features(self, clips: FloatArray) -> WhisperFeatures:
        features = super()._extract_features(clips)
        if self._is_pooled(self.card.options.layer) and features.frames < 2:
            self._refuse_short(clips.shape[1])
        return features

    def _is_pooled(self, layer: int | None) -> bool:
        """Whether frames of a layer are pairs of earlier frames."""
        return layer in (None, self.num_layers)

    def _mask(self, features: WhisperFeatures) -> dict[str, Any]:
        """Return the mask that keeps the model from attending to padding."""
        import torch

        clips, _, steps = features.log_mel.shape
        # The second convolution has a stride of 2.
        mask = torch.arange(steps, device=features.log_mel.device) < 2 * features.frames
        return {"input_features_mask": mask.expand(clips, -1)}

    def _encode_at(self, features: WhisperFeatures, layers: Sequence[int | None]) -> list[Hidden]:
        wanted = [None if self._is_pooled(layer) else layer for layer in layers]
        output = self._model(features.log_mel, **self._mask(features), output_hidden_states=with_states(wanted))
        seconds = 2 * self._log_mel.hop / self.card.sample_rate
        return [
            Hidden(state[:, : features.frames // 2], 2 * seconds)
            if layer is None
            else Hidden(state[:, : features.frames], seconds)
            for layer, state in zip(wanted, states_at(output, wanted), strict=True)
        ]


def name_in_tower(stored: str) -> str | None:
    """Map the name of a full model's tensor to the audio tower; None for the language model or the projector.

    Since transformers 5 the tower's names begin with ``model.``.
    """
    name = stored.removeprefix("model.")
    return name.removeprefix(TOWER) if name.startswith(TOWER) else None


ARCHITECTURES = {"audioflamingo3": AfWhisperEncoder, "audioflamingo3_encoder": AfWhisperEncoder}

MODELS = (
    ModelListing(
        "af-whisper",
        1280,
        16_000,
        "audio–language",
        "NVIDIA OneWay Noncommercial License",
        "AF-Whisper, the audio encoder of Audio Flamingo 3, mean over the clip's own frames (30-s window)",
        "nvidia/audio-flamingo-3-hf",
    ),
)


class FlamingoFrontEnd(ProcessorFrontEnd):
    """The processor of transformers, which has its own limit."""

    def __init__(self, checkpoint: LanguageCheckpoint) -> None:
        super().__init__(checkpoint)
        window = self.limit_seconds
        self.limit_seconds = max(self.processor.max_audio_len // window, 1) * window


FAMILY = LanguageFamily(
    "Audio Flamingo",
    {
        "AudioFlamingo3ForConditionalGeneration": "AudioFlamingo3ForConditionalGeneration",
        "MusicFlamingoForConditionalGeneration": "MusicFlamingoForConditionalGeneration",
    },
    FlamingoFrontEnd,
)
