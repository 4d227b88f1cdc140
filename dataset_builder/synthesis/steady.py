"""Voices held without end: the partials of a note, as loud at any time."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ..data import DatasetError
from .dx7.engine import render
from .dx7.voice import Voice
from .sound import SILENT_PEAK

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
