"""Voxtral (Liu et al., 2025, arXiv 2507.13264).

It needs mistral-common, the only package with its tokenizer and its chat format.

Tested with a tiny model of random weights and a vocabulary from mistral-common. Clips are padded to whole
windows of 30 s, with 375 tokens each.
"""

from __future__ import annotations

import base64
import io
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from ..base import FloatArray
from ..language_models.listing import FrontEnd, LanguageFamily, ModelInputs

if TYPE_CHECKING:
    from ..language_models.transformers_model import LanguageCheckpoint


LIMIT_SECONDS = 2400
"""Limit from the model's card: 40 minutes, for tasks other than transcription."""


class VoxtralFrontEnd(FrontEnd):
    """The processor of transformers, which tokenizes a conversation at once; a chat here is the prompt alone."""

    def __init__(self, checkpoint: LanguageCheckpoint) -> None:
        self._processor = checkpoint.load_processor()
        self.tokenizer = self._processor.tokenizer
        self.tokenizer.padding_side = "left"
        self.sample_rate = int(self._processor.feature_extractor.sampling_rate)
        self.limit_seconds = LIMIT_SECONDS
        self.placeholder = self._processor.audio_token

    def chat(self, prompt: str) -> str:
        """Return the prompt; the tokens around it have no text."""
        return prompt

    def continuation(self, chat: str, text: str) -> list[int]:
        """Return the token numbers of an answer, which begins after a token without text."""
        numbers: list[int] = self.tokenizer.encode(text, add_special_tokens=False)
        return numbers

    def encode(self, chats: Sequence[str], clips: Sequence[FloatArray]) -> ModelInputs:
        """See `FrontEnd.encode`."""
        conversations = [
            [{"role": "user", "content": [self._sound(clip), {"type": "text", "text": prompt}]}]
            for prompt, clip in zip(chats, clips, strict=True)
        ]
        inputs = self._processor.apply_chat_template(conversations, return_tensors="pt")
        return {name: value for name, value in inputs.items() if name != "num_audio_tokens"}

    def _sound(self, clip: FloatArray) -> dict[str, Any]:
        """Return a clip as part of a conversation, its samples unchanged."""
        import soundfile

        file = io.BytesIO()
        soundfile.write(file, clip, self.sample_rate, subtype="FLOAT", format="WAV")
        return {"type": "audio", "base64": base64.b64encode(file.getvalue()).decode()}


FAMILY = LanguageFamily(
    "Voxtral",
    {"VoxtralForConditionalGeneration": "VoxtralForConditionalGeneration"},
    VoxtralFrontEnd,
    packages={"mistral_common": "audio-compositionality[voxtral]"},
)
