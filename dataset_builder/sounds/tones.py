"""Tones of FM voices as sounds: they need nothing but this package."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cache
from importlib.resources import files
from types import MappingProxyType
from typing import Any

import numpy as np
import yaml
from numpy.typing import NDArray

from audio_compositionality.support.files import sha256_of

from ..data import DatasetError, Waveform
from .dx7.voice import Operator, Voice
from .entries import Sound, fingerprint_of_entries


@cache
def default_voices() -> tuple[Voice, ...]:
    """The eight voices that the project ships, in the order of their classes."""
    return tuple(_voice(entry) for entry in _entries())


@cache
def default_nouns() -> Mapping[str, str]:
    """What a listener calls the default voices, by their names."""
    return {entry["name"]: entry["noun"] for entry in _entries()}


@cache
def _entries() -> list[dict[str, Any]]:
    entries: list[dict[str, Any]] = yaml.safe_load(files(__package__).joinpath("timbres.yaml").read_text("utf-8"))
    return entries


def _voice(entry: dict[str, Any]) -> Voice:
    one, two, three, four, five, six = (_operator(fields) for fields in entry["operators"])
    return Voice(
        name=entry["name"],
        algorithm=entry["algorithm"],
        feedback=entry["feedback"],
        operators=(one, two, three, four, five, six),
    )


def _operator(fields: dict[str, Any]) -> Operator:
    values: dict[str, Any] = {
        name: tuple(value) if isinstance(value, list) else value for name, value in fields.items()
    }
    return Operator(**values)


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
    """Every voice under every condition, rendered when it is first asked for; see `Sounds`.

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
        """Samples [40,000] with a peak of .5, and their rate; see `Sounds.waveform`.

        Raises:
            DatasetError: the voice makes no sound at a note.
        """
        if index not in self._tones:
            voice, note, period = self._keys[index]
            self._tones[index] = render_tone(voice, note, period, _VELOCITY, SAMPLE_RATE)
        length = round(SECONDS * SAMPLE_RATE)
        return np.resize(self._tones[index], length).astype(np.float64) * _PEAK, SAMPLE_RATE


def note_and_period(number: int) -> tuple[int, int]:
    """Note and period in samples of a condition."""
    place = number * _RATE_STEP % CONDITIONS
    rate = _RATES[0] * (_RATES[1] / _RATES[0]) ** (place / (CONDITIONS - 1))
    return _LOWEST_NOTE + _NOTE_STEP * number, round(SAMPLE_RATE / rate)


def _entry(voice: Voice, note: int, period: int) -> Sound:
    condition = f"note{note}-rate{SAMPLE_RATE / period:.2f}"
    decided = [VERSION, voice.to_vced().hex(), note, period, _VELOCITY, SECONDS, SAMPLE_RATE, _PEAK]
    digest = sha256_of(json.dumps(decided).encode())
    return Sound(f"{voice.name}/{condition}", voice.name, condition, digest, condition=condition)


@cache
def default_timbres() -> TimbreRecordings:
    """Those of the voices that the project ships."""
    return TimbreRecordings()


_PITCHES: Mapping[str, tuple[int, int]] = MappingProxyType({"low": (37, 47), "middle": (55, 65), "high": (73, 83)})
"""MIDI notes of a word: between two words lies an octave half that has none."""

_RATES_CAPTIONED_TIMBRES: Mapping[str, tuple[float, float]] = MappingProxyType(
    {"slow": (0.8, 1.2), "steady": (1.55, 2.1), "fast": (2.7, 4.0)}
)
"""Repetitions a second of a word."""

_WORDINGS = ("a {rate} {pitch} {noun}", "{noun}, {pitch} and {rate}", "a {pitch} {noun} at a {rate} pace")


class CaptionedTimbres:
    """The tones of `TimbreRecordings`, called by what a listener calls them; see `Sounds`.

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


def _captioned(entry: Sound, noun: str, words: tuple[str, str] | None) -> Sound:
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
        rate = next(
            (word for word, (low, high) in _RATES_CAPTIONED_TIMBRES.items() if low <= SAMPLE_RATE / period <= high),
            None,
        )
        if pitch is not None and rate is not None:
            words.setdefault((pitch, rate), number)
    return {number: pair for pair, number in words.items()}


@cache
def captioned_timbres() -> CaptionedTimbres:
    """Those of the voices that the project ships."""
    return CaptionedTimbres()


FADE_SECONDS = 0.005
"""Length of the half-cosine fade that ends a tone at its period: short against the shortest default period (0.39 s),
long enough to leave no click."""


SILENT_PEAK = 1e-4
"""A tone whose peak is below -80 dB re one full-level carrier is no sound that could be scaled to unit peak."""


def render_tone(voice: Voice, note: int, period: int, velocity: int, sample_rate: int) -> Waveform:
    """One tone, float32 [period] with a peak of 1: the key is held for half of it.

    Args:
        voice: its timbre.
        note: MIDI note.
        period: samples.
        velocity: MIDI velocity.
        sample_rate: Hz.

    Raises:
        DatasetError: the voice makes no sound at the note.
    """
    # Importing it imports the synthesiser, which only who asks for sound has to wait for.
    from .dx7.engine import render

    seconds = period / sample_rate
    tone = render(voice, note, velocity, duration=seconds, key_up=seconds / 2, sample_rate=sample_rate)
    fade = min(round(FADE_SECONDS * sample_rate), period)
    tone[period - fade :] *= (0.5 + 0.5 * np.cos(np.pi * (np.arange(fade) + 1) / fade)).astype(np.float32)
    peak = np.abs(tone).max()
    if not peak > SILENT_PEAK:
        raise DatasetError(f"voice {voice.name!r} is silent at MIDI note {note} (peak {peak:.1e})")
    return np.asarray(tone / peak, np.float32)


PARTIALS = 24
"""The largest that are kept."""


LEAST_APART = 60
"""Hz between two partials: nearer ones would beat, so that a source had a slow rate of its own."""


LOWEST = 30
"""Hz; what is below is no partial."""


def steady_tone(
    voice: Voice, note: int, velocity: int, sample_rate: int, rng: np.random.Generator
) -> NDArray[np.float64]:
    """A second of a note whose partials stay as they are: float64 [sample_rate], of root mean square 1.

    The note is rendered for a second with the key held. Of its spectrum (Hann window) the `PARTIALS` largest maxima are
    kept that are `LEAST_APART` from each larger one, and added up with phases that are drawn. They are whole numbers of
    Hz, so that the second can be repeated.

    Args:
        voice: its timbre.
        note: MIDI note.
        velocity: MIDI velocity.
        sample_rate: Hz.
        rng: of the phases.

    Raises:
        DatasetError: the voice makes no sound at the note.
    """
    from .dx7.engine import render

    tone = render(voice, note, velocity, duration=1, key_up=1, sample_rate=sample_rate).astype(np.float64)
    magnitude = np.abs(np.fft.rfft(tone * np.hanning(sample_rate)))
    is_maximum = (magnitude[1:-1] > magnitude[:-2]) & (magnitude[1:-1] >= magnitude[2:])
    maxima = np.flatnonzero(is_maximum) + 1
    kept: list[int] = []
    for hertz in maxima[np.argsort(-magnitude[maxima], kind="stable")]:
        if hertz >= LOWEST and len(kept) < PARTIALS and all(abs(hertz - other) >= LEAST_APART for other in kept):
            kept.append(int(hertz))
    if not kept or np.abs(tone).max() <= SILENT_PEAK:
        raise DatasetError(f"voice {voice.name!r} is silent at MIDI note {note}; choose one that sounds there")
    spectrum = np.zeros(len(magnitude), np.complex128)
    spectrum[kept] = magnitude[kept] * np.exp(2j * np.pi * rng.random(len(kept)))
    steady = np.fft.irfft(spectrum, sample_rate)
    level: NDArray[np.float64] = steady / np.sqrt(np.mean(steady**2))
    return level
