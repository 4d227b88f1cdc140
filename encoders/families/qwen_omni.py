"""The text-generating parts (thinkers) of Qwen2.5-Omni (Xu et al., 2025, arXiv 2503.20215) and Qwen3-Omni (arXiv
2509.17765).

Their processor of transformers needs torchvision for pictures; the tokenizer, the chat template and Whisper's
log-mel spectrogram replace it here, and the audio token is repeated as often as the processor does.
The part that speaks is not loaded.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..language_models.listing import FrontEnd, LanguageFamily, LogMelFrontEnd

if TYPE_CHECKING:
    from ..language_models.transformers_model import LanguageCheckpoint


class Omni25FrontEnd(LogMelFrontEnd):
    """One token per 40 ms."""

    def token_count(self, frames: int) -> int:
        """See `LogMelFrontEnd.token_count`."""
        return ((frames - 1) // 2 - 1) // 2 + 1


class Omni3FrontEnd(LogMelFrontEnd):
    """13 tokens per whole second, and one for each begun 80 ms of the rest."""

    window = 100
    """Number of frames that the audio encoder takes at a time; they become 13 tokens."""

    def kind(self, samples: int) -> int:
        """See `FrontEnd.kind`: clips that do not fill a window are encoded differently in a batch with longer ones.

        The encoder pads the last window of each clip to the longest of the batch, and its convolutions spread the
        padding.
        """
        frames = samples // self._extractor.hop_length
        return frames if frames < self.window else 0

    def token_count(self, frames: int) -> int:
        """See `LogMelFrontEnd.token_count`."""
        whole, rest = divmod(frames, self.window)
        for _ in range(3):
            rest = (rest - 1) // 2 + 1
        return 13 * whole + rest


LIMIT_SECONDS = 2400
"""Limit of Qwen3-Omni: 40 minutes (its report). For Qwen2.5-Omni it is the feature extractor's window, 300 s."""


def _front_end(checkpoint: LanguageCheckpoint) -> FrontEnd:
    if checkpoint.config.model_type.startswith("qwen2_5"):
        return Omni25FrontEnd(checkpoint, limit_seconds=None, pads=True)
    return Omni3FrontEnd(checkpoint, limit_seconds=LIMIT_SECONDS, pads=False)


THINKER_25 = "Qwen2_5OmniThinkerForConditionalGeneration"
THINKER_3 = "Qwen3OmniMoeThinkerForConditionalGeneration"

FAMILY = LanguageFamily(
    "Qwen-Omni",
    {
        THINKER_25: THINKER_25,
        "Qwen2_5OmniModel": THINKER_25,
        "Qwen2_5OmniForConditionalGeneration": THINKER_25,
        THINKER_3: THINKER_3,
        "Qwen3OmniMoeForConditionalGeneration": THINKER_3,
    },
    _front_end,
    part="thinker_config",
    unused=("model.visual.",),
)
