"""Audio Flamingo 3 (Goel et al., 2025, arXiv 2507.08128) and Music Flamingo (Ghosh et al., 2025, arXiv 2511.10289).

They hear a clip in windows of 30 s, as many as the processor's `max_audio_len` has (10 and 20 minutes); what is longer,
which the processor cuts, is refused.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..front_end import ProcessorFrontEnd
from ..listing import LanguageFamily

if TYPE_CHECKING:
    from ..transformers_model import LanguageCheckpoint


class FlamingoFrontEnd(ProcessorFrontEnd):
    """The processor of transformers, whose limit is its own."""

    def __init__(self, checkpoint: LanguageCheckpoint) -> None:
        super().__init__(checkpoint)
        window = self.limit_seconds
        self.limit_seconds = max(self.processor.max_audio_len // window, 1) * window


FAMILY = LanguageFamily(
    "Audio Flamingo",
    {name: name for name in ("AudioFlamingo3ForConditionalGeneration", "MusicFlamingoForConditionalGeneration")},
    FlamingoFrontEnd,
)
