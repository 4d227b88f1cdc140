"""A DX7 voice: its parameters, their ranges, and the 155 bytes (VCED) in which they are exchanged.

Source of all fields, ranges and byte positions: Yamaha DX7 owner's manual and its MIDI data format.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from numbers import Integral
from os import PathLike
from pathlib import Path
from typing import Any

from audio_compositionality.support.errors import InputError
from audio_compositionality.support.files import read_file

VCED_BYTES = 155
NAME_CHARACTERS = 10
_OPERATOR_BYTES = 21

_QUADS = ("rates", "levels", "pitch_rates", "pitch_levels")
_SWITCH = (0, 1)

_OPERATOR_RANGES = {
    "rates": (0, 99),
    "levels": (0, 99),
    "break_point": (0, 99),
    "left_depth": (0, 99),
    "right_depth": (0, 99),
    "left_curve": (0, 3),
    "right_curve": (0, 3),
    "rate_scaling": (0, 7),
    "amplitude_sensitivity": (0, 3),
    "velocity_sensitivity": (0, 7),
    "output_level": (0, 99),
    "fixed": _SWITCH,
    "coarse": (0, 31),
    "fine": (0, 99),
    "detune": (-7, 7),
}
"""Lowest and highest value of each field of an operator, in the order of its bytes, which count from the lowest."""

_VOICE_RANGES = {
    "pitch_rates": (0, 99),
    "pitch_levels": (0, 99),
    "algorithm": (1, 32),
    "feedback": (0, 7),
    "oscillator_sync": _SWITCH,
    "lfo_speed": (0, 99),
    "lfo_delay": (0, 99),
    "pitch_mod_depth": (0, 99),
    "amplitude_mod_depth": (0, 99),
    "lfo_sync": _SWITCH,
    "lfo_wave": (0, 5),
    "pitch_sensitivity": (0, 7),
    "transpose": (-24, 24),
}
"""Lowest and highest value of each field that the six operators share."""

Quad = tuple[int, int, int, int]


def _check_fields(part: Operator | Voice, ranges: Mapping[str, tuple[int, int]]) -> None:
    for name, (low, high) in ranges.items():
        value = getattr(part, name)
        if (low, high) == _SWITCH:
            if not isinstance(value, bool):
                raise InputError(f"{name} is {value!r}; it must be True or False")
            continue
        numbers = {name: value}
        if name in _QUADS:
            if not isinstance(value, tuple) or len(value) != 4:
                raise InputError(f"{name} is {value!r}; it must be a tuple of four integers from {low} to {high}")
            numbers = {f"{name}, number {number},": one for number, one in enumerate(value, 1)}
        for called, one in numbers.items():
            if not isinstance(one, Integral) or not low <= int(one) <= high:
                raise InputError(f"{called} is {one!r}; it must be an integer from {low} to {high}")


def _read_fields(data: bytes, ranges: Mapping[str, tuple[int, int]]) -> dict[str, Any]:
    """Return the fields in some bytes; a byte above its field's maximum is read as the maximum."""
    values: dict[str, Any] = {}
    rest = iter(data)
    for name, (low, high) in ranges.items():
        numbers = [low + min(next(rest), high - low) for _ in range(4 if name in _QUADS else 1)]
        values[name] = tuple(numbers) if name in _QUADS else numbers[0]
        if (low, high) == _SWITCH:
            values[name] = bool(values[name])
    return values


def _bytes_of(part: Operator | Voice, ranges: Mapping[str, tuple[int, int]]) -> bytes:
    """Return the bytes of fields; the inverse of `_read_fields`."""
    values: list[int] = []
    for name, (low, _) in ranges.items():
        value = getattr(part, name)
        values += value if name in _QUADS else [value - low]
    return bytes(values)


@dataclass(frozen=True)
class Operator:
    """One of the six operators: a sine oscillator and its envelope. The defaults are the DX7's initial voice.

    Attributes:
        rates: Envelope rates R1 to R4, each 0 to 99.
        levels: Envelope levels L1 to L4, each 0 to 99.
        break_point: Key from which the level is scaled, 0 (A-1) to 99 (C8); the MIDI note is this plus 17.
        left_depth: Depth of level scaling below the break point, 0 to 99.
        right_depth: Depth of level scaling above the break point, 0 to 99.
        left_curve: 0 falling linear, 1 falling exponential, 2 rising exponential, 3 rising linear.
        right_curve: As ``left_curve``, above the break point.
        rate_scaling: How much faster the envelope is on higher keys, 0 to 7.
        amplitude_sensitivity: Sensitivity to the LFO's amplitude modulation, 0 to 3.
        velocity_sensitivity: Sensitivity to key velocity, 0 to 7.
        output_level: 0 to 99; 0.75 dB a step from 20 up.
        fixed: Whether the frequency is fixed rather than a multiple of the key's.
        coarse: 0 to 31: the multiple (0 is one half), or when fixed the power of ten, modulo 4.
        fine: 0 to 99: hundredths added to the multiple, or to the power of ten.
        detune: -7 to 7.

    Raises:
        InputError: If a field is not an integer (``fixed``: a bool) in its range.
    """

    rates: Quad = (99, 99, 99, 99)
    levels: Quad = (99, 99, 99, 0)
    break_point: int = 39
    left_depth: int = 0
    right_depth: int = 0
    left_curve: int = 0
    right_curve: int = 0
    rate_scaling: int = 0
    amplitude_sensitivity: int = 0
    velocity_sensitivity: int = 0
    output_level: int = 0
    fixed: bool = False
    coarse: int = 1
    fine: int = 0
    detune: int = 0

    def __post_init__(self) -> None:
        _check_fields(self, _OPERATOR_RANGES)


@dataclass(frozen=True)
class Voice:
    """One DX7 voice. The defaults are the DX7's initial voice: a plain sine from operator 1.

    Attributes:
        name: At most 10 printable ASCII characters, no blank at the end.
        operators: The six operators, operator 1 first.
        algorithm: 1 to 32.
        feedback: 0 (off) to 7.
        oscillator_sync: Whether the oscillators restart at each key. `render` starts every note afresh.
        pitch_rates: Pitch-envelope rates R1 to R4, each 0 to 99.
        pitch_levels: Pitch-envelope levels L1 to L4, each 0 to 99; 50 is no shift.
        lfo_speed: 0 to 99.
        lfo_delay: 0 to 99.
        pitch_mod_depth: 0 to 99.
        amplitude_mod_depth: 0 to 99.
        lfo_sync: Whether the LFO restarts at each key.
        lfo_wave: 0 triangle, 1 saw down, 2 saw up, 3 square, 4 sine, 5 sample and hold.
        pitch_sensitivity: Sensitivity to the LFO's pitch modulation, 0 to 7.
        transpose: Semitones, -24 to 24.

    Raises:
        InputError: If a field is not an integer (the switches: a bool) in its range, or the name is not as above.
    """

    name: str = "INIT VOICE"
    operators: tuple[Operator, ...] = (Operator(output_level=99), *[Operator()] * 5)
    algorithm: int = 1
    feedback: int = 0
    oscillator_sync: bool = True
    pitch_rates: Quad = (99, 99, 99, 99)
    pitch_levels: Quad = (50, 50, 50, 50)
    lfo_speed: int = 35
    lfo_delay: int = 0
    pitch_mod_depth: int = 0
    amplitude_mod_depth: int = 0
    lfo_sync: bool = True
    lfo_wave: int = 0
    pitch_sensitivity: int = 3
    transpose: int = 0

    def __post_init__(self) -> None:
        name = self.name
        is_text = isinstance(name, str) and name.isascii() and name.isprintable()
        if not is_text or len(name) > NAME_CHARACTERS or name.endswith(" "):
            raise InputError(
                f"name is {name!r}; it must be at most {NAME_CHARACTERS} printable ASCII characters, "
                "with no blank at the end"
            )
        operators = self.operators
        if not isinstance(operators, tuple) or [type(item) for item in operators] != [Operator] * 6:
            raise InputError(f"operators is {operators!r}; it must be a tuple of six Operator, operator 1 first")
        _check_fields(self, _VOICE_RANGES)

    @classmethod
    def from_vced(cls, data: bytes) -> Voice:
        """Return the voice in 155 bytes of VCED data (without SysEx header and checksum).

        A byte above its field's maximum is read as the maximum. In the name, bytes that are not printable ASCII
        become blanks, and blanks at the end are removed.

        Raises:
            InputError: If ``data`` is not 155 bytes.
        """
        if len(data) != VCED_BYTES:
            raise InputError(f"data has {len(data)} bytes; a voice (VCED) has exactly {VCED_BYTES}")
        starts = range(5 * _OPERATOR_BYTES, -1, -_OPERATOR_BYTES)
        operators = (_read_fields(data[start : start + _OPERATOR_BYTES], _OPERATOR_RANGES) for start in starts)
        name = "".join(chr(byte) if 32 <= byte < 127 else " " for byte in data[-NAME_CHARACTERS:])
        return cls(
            name=name.rstrip(" "),
            operators=tuple(Operator(**values) for values in operators),
            **_read_fields(data[6 * _OPERATOR_BYTES :], _VOICE_RANGES),
        )

    def to_vced(self) -> bytes:
        """Return the voice as 155 bytes of VCED data, the inverse of `from_vced`; the name is padded with blanks."""
        operators = b"".join(_bytes_of(operator, _OPERATOR_RANGES) for operator in reversed(self.operators))
        return operators + _bytes_of(self, _VOICE_RANGES) + self.name.ljust(NAME_CHARACTERS).encode("ascii")


VOICES = 32
VMEM_BYTES = 128
_PACKED_OPERATOR_BYTES = 17
_DATA_BYTES = VOICES * VMEM_BYTES
_HEADER_BYTES = 6
_FILE_BYTES = _HEADER_BYTES + _DATA_BYTES + 2
_HEADER = bytes.fromhex("f04300092000")
_END = 0xF7


def load_bank(path: str | PathLike[str]) -> tuple[Voice, ...]:
    """Return the 32 voices of a DX7 bank.

    Args:
        path: A ``.syx`` file of 4104 bytes: ``F0 43 0n 09 20 00`` (n is the MIDI channel), 32 voices of 128 packed
            bytes, the checksum, ``F7``. Values above a field's maximum are taken as the maximum.

    Raises:
        InputError: If the header, the length, the end or the checksum of the file is wrong.
        OSError: If the file cannot be read.
    """
    content = read_file(Path(path))
    header = content[:_HEADER_BYTES]
    if header[:2] + header[3:] != b"\xf0\x43\x09\x20\x00" or header[2] > 0x0F:
        raise InputError(
            f"{path} begins with the bytes {header.hex(' ') or '(none)'}; the header of a bank of {VOICES} DX7 "
            "voices is f0 43 00 09 20 00"
        )
    if len(content) != _FILE_BYTES:
        raise InputError(f"{path} has a length of {len(content)} bytes; a bank of {VOICES} voices has {_FILE_BYTES}")
    if content[-1] != _END:
        raise InputError(f"{path} ends with the byte {content[-1]:02x}; a SysEx file ends with f7")
    data = content[_HEADER_BYTES : _HEADER_BYTES + _DATA_BYTES]
    checksum = -sum(data) & 0x7F
    if content[-2] != checksum:
        raise InputError(
            f"{path} states the checksum {content[-2]:02x}, but its data has {checksum:02x}; the file is damaged"
        )
    packed = (data[start : start + VMEM_BYTES] for start in range(0, _DATA_BYTES, VMEM_BYTES))
    return tuple(Voice.from_vced(unpack(voice)) for voice in packed)


def save_bank(path: str | PathLike[str], voices: Sequence[Voice]) -> None:
    """Write a bank that `load_bank`, a DX7 and its plug-ins can read.

    Args:
        path: The ``.syx`` file.
        voices: 32.

    Raises:
        InputError: If there are not 32 voices.
        OSError: If the file cannot be written.
    """
    if len(voices) != VOICES:
        raise InputError(f"a bank must have {VOICES} voices; there are {len(voices)}")
    data = b"".join(pack(voice.to_vced()) for voice in voices)
    Path(path).write_bytes(_HEADER + data + bytes((-sum(data) & 0x7F, _END)))


def pack(vced: bytes) -> bytes:
    """Return the 155 VCED bytes of a voice in 128 VMEM bytes; the inverse of `unpack`."""
    vmem = bytearray()
    for start in range(0, 6 * _OPERATOR_BYTES, _OPERATOR_BYTES):
        operator = vced[start : start + _OPERATOR_BYTES]
        left, right, scaling, amplitude, velocity, level, fixed, coarse, fine, detune = operator[11:]
        vmem += operator[:11]
        vmem += bytes((left | right << 2, scaling | detune << 3, amplitude | velocity << 2, level))
        vmem += bytes((fixed | coarse << 1, fine))
    pitch_and_algorithm, shared = vced[126:135], vced[135:145]
    feedback, oscillator_sync, *lfo, lfo_sync, wave, pitch_sensitivity, transpose = shared
    vmem += pitch_and_algorithm + bytes((feedback | oscillator_sync << 3, *lfo))
    return bytes(vmem) + bytes((lfo_sync | wave << 1 | pitch_sensitivity << 4, transpose)) + vced[145:]


def unpack(vmem: bytes) -> bytes:
    """Return the 155 VCED bytes of a voice packed in 128 VMEM bytes."""
    vced = bytearray()
    for start in range(0, 6 * _PACKED_OPERATOR_BYTES, _PACKED_OPERATOR_BYTES):
        operator = vmem[start : start + _PACKED_OPERATOR_BYTES]
        curves, scaling, sensitivity, level, frequency, fine = operator[11:]
        vced += operator[:11]
        vced += bytes((curves & 3, curves >> 2 & 3, scaling & 7, sensitivity & 3, sensitivity >> 2 & 7, level))
        vced += bytes((frequency & 1, frequency >> 1 & 31, fine, scaling >> 3 & 15))
    feedback, lfo = vmem[111], vmem[116]
    vced += vmem[102:111]
    vced += bytes((feedback & 7, feedback >> 3 & 1))
    vced += vmem[112:116]
    vced += bytes((lfo & 1, lfo >> 1 & 7, lfo >> 4 & 7))
    vced += vmem[117:128]
    return bytes(vced)
