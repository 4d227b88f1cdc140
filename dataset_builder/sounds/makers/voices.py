"""Voices of several speech synthesisers, each in all words."""

from __future__ import annotations

from .speaking import SPEECH_LICENCE, SPEECH_NEEDS, WORDS, SpokenWords

MAKER = SpokenWords(
    name="voices",
    meaning=(
        "Voices of flite, festival and espeak-ng that are installed (label), each of which says "
        f"{len(WORDS)} English words (condition)"
    ),
    needs=SPEECH_NEEDS,
    licence=SPEECH_LICENCE,
    by_voice=True,
)
