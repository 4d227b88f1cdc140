"""German words that people have recorded."""

from __future__ import annotations

from .collected import CollectedWords, installing, kajongg_speakers

MAKER = CollectedWords(
    name="spoken-german",
    meaning="German calls of a mahjong game (label, named in English) by four people (condition)",
    needs=installing("kajongg"),
    licence="Recordings of others, which this project does not redistribute: kajongg GPL-2+ (Wolfgang Rohdewald)",
    speakers=kajongg_speakers("kajongg/voices/de"),
)
