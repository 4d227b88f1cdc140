"""German words that people have recorded."""

from __future__ import annotations

from .collected import CollectedWords, installing, kajongg_speakers

_SAID_IN_TWO_WAYS = ("east", "south", "west", "north", "blue-dragon")
"""Two say Ost and two Ostwind; one says weißer Drache where three say blauer."""

MAKER = CollectedWords(
    name="spoken-german",
    meaning="German calls of a mahjong game (label, named in English) by four people (condition)",
    needs=installing("kajongg"),
    licence="Recordings of others, which this project does not redistribute: kajongg GPL-2+ (Wolfgang Rohdewald)",
    speakers=kajongg_speakers("kajongg/voices/de", _SAID_IN_TWO_WAYS),
)
