"""Recordings that need nothing but this package: tones of the DX7 voices, each at pitches and rates of its own."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from functools import cache
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from audio_compositionality.support.files import sha256_of

from ..data import Waveform
from ..synthesis.dx7.voice import Voice
from ..synthesis.timbres import default_voices
from .protocol import Recording, fingerprint_of_entries

VERSION = 1
"""It rises with any change of the code below that alters a sample: the digests of entries are made of it."""

CONDITIONS = 24
"""No two have a pitch or a rate in common: which voice it is, neither can tell."""

_LOWEST_NOTE, _NOTE_STEP = 37, 2
"""MIDI; up to 83, the span of the scenes' classes of pitch."""

_RATES = (0.8, 4.0)
"""Repetitions a second, first and last: in 2.5 s two tones at least are heard whole."""

_RATE_STEP = 11
"""Steps from a condition's rate to the next one's: it has no divisor in common with their number, so that all occur and
a high pitch is neither mostly slow nor mostly fast (the correlation of the two is -.01)."""

SECONDS = 2.5
SAMPLE_RATE = 16_000
"""Hz: that of the clips made of them, so that nothing is resampled and samples are the same on every platform."""

_VELOCITY = 100
_PEAK = 0.5


class TimbreRecordings:
    """Every voice under every condition, rendered when it is first asked for; see `Recordings`.

    The digest of an entry is not that of its samples but of all that decides them: the voice, its note, period and
    velocity, rate and length, and `VERSION`. So nothing has to be rendered to name them.
    """

    source = "DX7 timbres"
    sample_rate = SAMPLE_RATE
    suggested: Mapping[str, Any] = MappingProxyType({"domain": "timbres", "classes": 6, "context_sources": 1})

    def __init__(self, voices: Sequence[Voice] | None = None) -> None:
        """Nothing is rendered.

        Args:
            voices: of different names, which are the labels; by default the eight that the project ships.
        """
        keys = [
            (voice, *note_and_period(number)) for voice in voices or default_voices() for number in range(CONDITIONS)
        ]
        self._keys = keys
        self._tones: dict[int, Waveform] = {}
        self.entries = tuple(_entry(*key) for key in keys)
        self.fingerprint = fingerprint_of_entries(self.entries)

    def waveform(self, index: int) -> tuple[NDArray[np.float64], int]:
        """Samples [40,000] with a peak of .5, and their rate; see `Recordings.waveform`.

        Raises:
            DatasetError: the voice makes no sound at a note.
        """
        if index not in self._tones:
            from ..synthesis.sound import render_tone

            voice, note, period = self._keys[index]
            self._tones[index] = render_tone(voice, note, period, _VELOCITY, SAMPLE_RATE)
        length = round(SECONDS * SAMPLE_RATE)
        return np.resize(self._tones[index], length).astype(np.float64) * _PEAK, SAMPLE_RATE


def note_and_period(number: int) -> tuple[int, int]:
    """Note and period in samples of a condition."""
    place = number * _RATE_STEP % CONDITIONS
    rate = _RATES[0] * (_RATES[1] / _RATES[0]) ** (place / (CONDITIONS - 1))
    return _LOWEST_NOTE + _NOTE_STEP * number, round(SAMPLE_RATE / rate)


def _entry(voice: Voice, note: int, period: int) -> Recording:
    condition = f"note{note}-rate{SAMPLE_RATE / period:.2f}"
    decided = [VERSION, voice.to_vced().hex(), note, period, _VELOCITY, SECONDS, SAMPLE_RATE, _PEAK]
    digest = sha256_of(json.dumps(decided).encode())
    return Recording(f"{voice.name}/{condition}", voice.name, condition, digest, condition=condition)


@cache
def default_timbres() -> TimbreRecordings:
    """Those of the voices that the project ships."""
    return TimbreRecordings()
