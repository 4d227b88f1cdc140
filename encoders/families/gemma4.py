"""Gemma 4 with audio: the sizes whose configuration has an `audio_config` (E2B and E4B).

Its processor of transformers needs torchvision for pictures and films; the tokenizer, the chat template and the
model's own feature extractor replace it here, and the audio token is repeated as often as the processor does. Clips of
more than 30 s, which the feature extractor cuts, are refused.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from ..base import FloatArray, ModelError
from ..language_models.listing import LanguageFamily, ModelInputs, TokenFrontEnd, with_padding

if TYPE_CHECKING:
    from ..language_models.transformers_model import LanguageCheckpoint


LIMIT_SECONDS = 30
"""Seconds after which the feature extractor cuts a clip."""


class Gemma4FrontEnd(TokenFrontEnd):
    """One token per 40 ms, between a token that begins the sound and one that ends it."""

    def __init__(self, checkpoint: LanguageCheckpoint) -> None:
        from transformers import Gemma4AudioFeatureExtractor

        if checkpoint.config.audio_config is None:
            raise ModelError(f"'{checkpoint.name}' takes no sound: its configuration has no audio_config")
        self.tokenizer = with_padding(checkpoint.load_chat_tokenizer())
        self._extractor = checkpoint.load_feature_extractor(Gemma4AudioFeatureExtractor)
        if self._extractor.dither:
            raise ModelError(f"the feature extractor of '{checkpoint.name}' adds noise")
        self.sample_rate = int(self._extractor.sampling_rate)
        self.limit_seconds = LIMIT_SECONDS
        self.placeholder = self.tokenizer.convert_ids_to_tokens(checkpoint.config.audio_token_id)
        around = (checkpoint.config.boa_token_id, checkpoint.config.eoa_token_index)
        self._begin, self._end = self.tokenizer.convert_ids_to_tokens(list(around))

    def _stand_in(self, count: int) -> str:
        return f"{self._begin}{self.placeholder * count}{self._end}"

    def _features(self, clips: Sequence[FloatArray]) -> tuple[ModelInputs, list[int]]:
        import torch

        # One clip at a time, so that none is padded to the length of another.
        each = [self._extractor([clip], return_tensors="pt") for clip in clips]
        longest = max(one["input_features"].shape[1] for one in each)
        features = torch.zeros(len(each), longest, each[0]["input_features"].shape[2])
        mask = torch.zeros(len(each), longest, dtype=torch.bool)
        counts = []
        for row, one in enumerate(each):
            frames = one["input_features"].shape[1]
            features[row, :frames] = one["input_features"][0]
            mask[row, :frames] = one["input_features_mask"][0]
            # Each of the two convolutions keeps every second frame.
            counts.append(int(mask[row, :frames][::2][::2].sum()))
        return {"input_features": features, "input_features_mask": mask}, counts


FAMILY = LanguageFamily(
    "Gemma 4",
    {"Gemma4ForConditionalGeneration": "Gemma4ForConditionalGeneration"},
    Gemma4FrontEnd,
    unused=("model.vision_tower.", "model.embed_vision."),
)
