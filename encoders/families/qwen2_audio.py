"""Qwen2-Audio (Chu et al., 2024, arXiv 2407.10759), and its audio tower.

Fine-tuned models with the same class, processor and template are run in the same way, such as R1-AQA
(arXiv 2503.11197).

Clips of more than 30 s, which the processor cuts without a warning, are refused.
"""

from __future__ import annotations

from typing import Any

from ..language_models.listing import LanguageFamily, ProcessorFrontEnd
from .audio_flamingo import AfWhisperEncoder
from .whisper import WhisperFeatures


class Qwen2AudioTowerEncoder(AfWhisperEncoder):
    """A Whisper encoder that does not attend to padding and averages pairs of frames at the end, as AF-Whisper.

    It is part of the full model (`qwen2_audio`), whose other files are neither downloaded nor read, or comes from its
    own checkpoint (`qwen2_audio_encoder`). For frames and layers see `AfWhisperEncoder`.
    """

    whole = "qwen2_audio"

    def _tower_class(self) -> Any:
        from transformers import Qwen2AudioEncoder

        return Qwen2AudioEncoder

    def _mask(self, features: WhisperFeatures) -> dict[str, Any]:
        import torch
        from transformers.masking_utils import create_bidirectional_mask

        clips, _, steps = features.log_mel.shape
        # The tower itself makes no mask; the full model passes it this one.
        frames = torch.arange((steps - 2) // 2 + 1, device=features.log_mel.device)
        mask = create_bidirectional_mask(
            config=self._model.config,
            inputs_embeds=features.log_mel.new_zeros(clips, len(frames), 1),
            attention_mask=(frames < features.frames).long().expand(clips, -1),
        )
        return {"attention_mask": mask}


ARCHITECTURES = {"qwen2_audio": Qwen2AudioTowerEncoder, "qwen2_audio_encoder": Qwen2AudioTowerEncoder}


FAMILY = LanguageFamily(
    "Qwen2-Audio",
    {"Qwen2AudioForConditionalGeneration": "Qwen2AudioForConditionalGeneration"},
    ProcessorFrontEnd,
)
