"""Phrases of one instrument after another as a standard MIDI file, on one channel."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from dataclasses import dataclass

_TICKS = 480
"""Ticks of a quarter note, which lasts half a second where a file says nothing."""

_TICKS_PER_SECOND = 2 * _TICKS


@dataclass(frozen=True)
class Note:
    """A note of a phrase.

    Attributes:
        start, duration: seconds from the beginning of the phrase.
        pitch: MIDI key number.
        velocity: 1 to 127.
    """

    start: float
    duration: float
    pitch: int
    velocity: int


@dataclass(frozen=True)
class Phrase:
    """Notes of one General MIDI program, 0 to 127."""

    program: int
    notes: Sequence[Note]


def midi_file(phrases: Sequence[Phrase], slot: float) -> bytes:
    """Phrases as a MIDI file (format 0), each of which begins at a multiple of `slot` seconds.

    Half a second before the next begins, whatever still sounds is silenced.
    """
    events: list[tuple[int, bytes]] = []
    for place, phrase in enumerate(phrases):
        begin = place * slot
        # Before the first note, at the place of the silence of the phrase before.
        events.append((_tick(begin - 0.25), bytes([0xC0, phrase.program])))
        for note in phrase.notes:
            events.append((_tick(begin + note.start), bytes([0x90, note.pitch, note.velocity])))
            events.append((_tick(begin + note.start + note.duration), bytes([0x80, note.pitch, 0])))
        events.append((_tick(begin + slot - 0.5), bytes([0xB0, 120, 0])))
    # Of one moment, ends before beginnings: a repeated pitch would be silenced by the end of the one before.
    events.sort(key=lambda event: (event[0], event[1][0] == 0x90))
    track, time = b"", 0
    for tick, message in [*events, (_tick(len(phrases) * slot), b"\xff\x2f\x00")]:
        track += _variable_length(tick - time) + message
        time = tick
    return b"MThd" + struct.pack(">IHHH", 6, 0, 1, _TICKS) + b"MTrk" + struct.pack(">I", len(track)) + track


def _tick(seconds: float) -> int:
    return max(0, round(seconds * _TICKS_PER_SECOND))


def _variable_length(number: int) -> bytes:
    """A number in groups of seven bits, the highest first; all but the last have the eighth bit set."""
    groups = [number & 0x7F]
    while number := number >> 7:
        groups.append(number & 0x7F | 0x80)
    return bytes(reversed(groups))
