"""The audio tower and the text tower of a PE-Audio model (Vyas et al., 2025, arXiv 2512.19687)."""

from __future__ import annotations

from typing import Any

import torch
from transformers import AutoModel, PeAudioEncoder
from transformers.models.pe_audio.modeling_pe_audio import PeAudioContrastiveHead, PeAudioPreTrainedModel


class PeAudioTower(PeAudioPreTrainedModel):  # type: ignore[no-untyped-call]
    """The audio tower of a PE-Audio model: the encoder, and the projection to the space shared with text."""

    def __init__(self, config: Any) -> None:
        super().__init__(config)
        self.audio_encoder = PeAudioEncoder(config.audio_config)
        self.audio_head = PeAudioContrastiveHead(config.audio_config.hidden_size, config.text_config.hidden_size)
        self.post_init()  # type: ignore[no-untyped-call]


class PeTextTower(PeAudioPreTrainedModel):  # type: ignore[no-untyped-call]
    """The text tower of a PE-Audio model: the network, and the projection to the space shared with sound."""

    def __init__(self, config: Any) -> None:
        super().__init__(config)
        self.text_model = AutoModel.from_config(config.text_config)  # type: ignore[no-untyped-call]
        size = config.text_config.hidden_size
        self.text_audio_head = PeAudioContrastiveHead(size, size)
        self.post_init()  # type: ignore[no-untyped-call]

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        """Return embeddings [n, dim] of tokens [n, tokens]: the state of the first token, projected."""
        states = self.text_model(input_ids=tokens).last_hidden_state
        projected: torch.Tensor = self.text_audio_head(states[:, 0])
        return projected
