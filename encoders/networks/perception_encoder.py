"""What a PE-Audio model (Vyas et al., 2025, arXiv 2512.19687) has for sound."""

from __future__ import annotations

from typing import Any

from transformers import PeAudioEncoder
from transformers.models.pe_audio.modeling_pe_audio import PeAudioContrastiveHead, PeAudioPreTrainedModel


class AudioTower(PeAudioPreTrainedModel):  # type: ignore[no-untyped-call]
    """What a PE-Audio model has for sound: the encoder, and the projection to the space shared with text."""

    def __init__(self, config: Any) -> None:
        super().__init__(config)
        self.audio_encoder = PeAudioEncoder(config.audio_config)
        self.audio_head = PeAudioContrastiveHead(config.audio_config.hidden_size, config.text_config.hidden_size)
        self.post_init()  # type: ignore[no-untyped-call]
