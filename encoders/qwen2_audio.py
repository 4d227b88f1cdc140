"""The audio tower of Qwen2-Audio (Chu et al., 2024, arXiv 2407.10759)."""

from __future__ import annotations

import torch
from transformers import Qwen2AudioEncoder

from .af_whisper import AfWhisperEncoder
from .whisper import WhisperFeatures


class Qwen2AudioTowerEncoder(AfWhisperEncoder):
    """A Whisper encoder that averages pairs of frames at the end, as AF-Whisper, but attends to padding, as Whisper.

    It is taken out of the full model (`qwen2_audio`), of which only the files that hold it are fetched and read, or
    from a checkpoint of its own (`qwen2_audio_encoder`). Frames and layers are those of `AfWhisperEncoder`.
    """

    whole = "qwen2_audio"
    tower = Qwen2AudioEncoder

    def _mask(self, features: WhisperFeatures) -> dict[str, torch.Tensor]:
        return {}
