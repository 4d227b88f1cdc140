"""Tones of the project's own voices with captions: what is scored where nobody brings recordings with captions."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import cache
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..synthesis.timbres import default_nouns
from .protocol import Recording, fingerprint_of_entries
from .timbres import CONDITIONS, SAMPLE_RATE, TimbreRecordings, default_timbres, note_and_period

_PITCHES: Mapping[str, tuple[int, int]] = MappingProxyType({"low": (37, 47), "middle": (55, 65), "high": (73, 83)})
"""MIDI notes of a word: between two words lies an octave half that has none."""

_RATES: Mapping[str, tuple[float, float]] = MappingProxyType(
    {"slow": (0.8, 1.2), "steady": (1.55, 2.1), "fast": (2.7, 4.0)}
)
"""Repetitions a second of a word."""

_WORDINGS = ("a {rate} {pitch} {noun}", "{noun}, {pitch} and {rate}", "a {pitch} {noun} at a {rate} pace")


class CaptionedTimbres:
    """The tones of `TimbreRecordings`, called by what a listener calls them; see `Recordings`.

    Where pitch and rate have a word, one tone of each voice has captions, and no two have the same.
    """

    source = "DX7 timbres"
    sample_rate = SAMPLE_RATE
    suggested: Mapping[str, Any] = TimbreRecordings.suggested

    def __init__(self) -> None:
        """Nothing is rendered."""
        self._timbres = default_timbres()
        nouns, words = default_nouns(), _words()
        self.entries = tuple(
            _captioned(entry, nouns[entry.label], words.get(number % CONDITIONS))
            for number, entry in enumerate(self._timbres.entries)
        )
        self.fingerprint = fingerprint_of_entries(self.entries)

    def waveform(self, index: int) -> tuple[NDArray[np.float64], int]:
        """See `TimbreRecordings.waveform`."""
        return self._timbres.waveform(index)


def _captioned(entry: Recording, noun: str, words: tuple[str, str] | None) -> Recording:
    if words is None:
        return replace(entry, label=noun)
    pitch, rate = words
    captions = tuple(wording.format(noun=noun, pitch=pitch, rate=rate) for wording in _WORDINGS)
    return replace(entry, label=noun, captions=captions)


def _words() -> dict[int, tuple[str, str]]:
    """The words of pitch and rate by the number of a condition: the first that has them."""
    words: dict[tuple[str, str], int] = {}
    for number in range(CONDITIONS):
        note, period = note_and_period(number)
        pitch = next((word for word, (low, high) in _PITCHES.items() if low <= note <= high), None)
        rate = next((word for word, (low, high) in _RATES.items() if low <= SAMPLE_RATE / period <= high), None)
        if pitch is not None and rate is not None:
            words.setdefault((pitch, rate), number)
    return {number: pair for pair, number in words.items()}


@cache
def captioned_timbres() -> CaptionedTimbres:
    """Those of the voices that the project ships."""
    return CaptionedTimbres()
