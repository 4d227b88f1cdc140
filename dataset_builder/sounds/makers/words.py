"""Words by voices of several speech synthesisers."""

from __future__ import annotations

from .speaking import SPEECH_LICENCE, SPEECH_NEEDS, WORDS, SpokenWords

MAKER = SpokenWords(
    name="words",
    meaning=(
        f"{len(WORDS)} English words of two or three syllables (label) by each voice of flite, festival and espeak-ng "
        "that is installed (condition: synthesiser/voice)"
    ),
    needs=SPEECH_NEEDS,
    licence=SPEECH_LICENCE,
)
