"""The audio tower of Qwen2-Audio (Chu et al., 2024, arXiv 2407.10759)."""

from __future__ import annotations

from typing import Any

from .af_whisper import AfWhisperEncoder
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
