"""Qwen2-Audio (Chu et al., 2024, arXiv 2407.10759), and its audio tower.

Models trained on from it are run as it is, such as R1-AQA (arXiv 2503.11197), whose card names the same class,
processor and template.

Clips of more than 30 s, which the processor cuts without a word, are refused.
"""

from __future__ import annotations

from typing import Any

from ..language_models.listing import LanguageFamily, ProcessorFrontEnd
from .audio_flamingo import AfWhisperEncoder
from .whisper import WhisperFeatures


class Qwen2AudioTowerEncoder(AfWhisperEncoder):
    """A Whisper encoder that does not attend to padding and averages pairs of frames at the end, as AF-Whisper.

    It is taken out of the full model (`qwen2_audio`), of which only the files that hold it are fetched and read, or
    from a checkpoint of its own (`qwen2_audio_encoder`). Frames and layers are those of `AfWhisperEncoder`.
    """

    whole = "qwen2_audio"

    def _tower_class(self) -> Any:
        from transformers import Qwen2AudioEncoder

        return Qwen2AudioEncoder

    def _mask(self, features: WhisperFeatures) -> dict[str, Any]:
        import torch
        from transformers.masking_utils import create_bidirectional_mask

        clips, _, steps = features.log_mel.shape
        # The tower itself makes no mask; the full model gives it this one.
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
