"""A DX7 voice: its parameters, their ranges, and the 155 bytes (VCED) in which they are exchanged.

Source of all fields, ranges and byte positions: Yamaha DX7 owner's manual and its MIDI data format.
"""

from __future__ import annotations

from dataclasses import dataclass
from numbers import Integral
from typing import Any

from audio_compositionality.support.errors import InputError

VCED_BYTES = 155
NAME_CHARACTERS = 10
_OPERATOR_BYTES = 21

_OPERATOR_MAXIMA = (*[99] * 11, 3, 3, 7, 3, 7, 99, 1, 31, 99, 14)
_COMMON_MAXIMA = (*[99] * 8, 31, 7, 1, 99, 99, 99, 99, 1, 5, 7, 48)
_MAXIMA = _OPERATOR_MAXIMA * 6 + _COMMON_MAXIMA

Quad = tuple[int, int, int, int]


def _check(name: str, value: Any, low: int, high: int) -> None:
    if not isinstance(value, Integral) or not low <= int(value) <= high:
        raise InputError(f"{name} is {value!r}; it must be an integer from {low} to {high}")


def _check_quad(name: str, values: Any) -> None:
    if not isinstance(values, tuple) or len(values) != 4:
        raise InputError(f"{name} is {values!r}; it must be a tuple of four integers from 0 to 99")
    for number, value in enumerate(values, 1):
        _check(f"{name}, number {number},", value, 0, 99)


def _check_switch(name: str, value: Any) -> None:
    if not isinstance(value, bool):
        raise InputError(f"{name} is {value!r}; it must be True or False")


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
        _check_quad("rates", self.rates)
        _check_quad("levels", self.levels)
        for name in ("break_point", "left_depth", "right_depth", "output_level", "fine"):
            _check(name, getattr(self, name), 0, 99)
        for name in ("left_curve", "right_curve", "amplitude_sensitivity"):
            _check(name, getattr(self, name), 0, 3)
        for name in ("rate_scaling", "velocity_sensitivity"):
            _check(name, getattr(self, name), 0, 7)
        _check_switch("fixed", self.fixed)
        _check("coarse", self.coarse, 0, 31)
        _check("detune", self.detune, -7, 7)


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
        if not isinstance(name, str) or len(name) > NAME_CHARACTERS or name.endswith(" ") or not _printable(name):
            raise InputError(
                f"name is {name!r}; it must be at most {NAME_CHARACTERS} printable ASCII characters, "
                "with no blank at the end"
            )
        operators = self.operators
        if not isinstance(operators, tuple) or [type(item) for item in operators] != [Operator] * 6:
            raise InputError(f"operators is {operators!r}; it must be a tuple of six Operator, operator 1 first")
        _check("algorithm", self.algorithm, 1, 32)
        _check("feedback", self.feedback, 0, 7)
        _check_switch("oscillator_sync", self.oscillator_sync)
        _check_quad("pitch_rates", self.pitch_rates)
        _check_quad("pitch_levels", self.pitch_levels)
        for field in ("lfo_speed", "lfo_delay", "pitch_mod_depth", "amplitude_mod_depth"):
            _check(field, getattr(self, field), 0, 99)
        _check_switch("lfo_sync", self.lfo_sync)
        _check("lfo_wave", self.lfo_wave, 0, 5)
        _check("pitch_sensitivity", self.pitch_sensitivity, 0, 7)
        _check("transpose", self.transpose, -24, 24)

    @classmethod
    def from_vced(cls, data: bytes) -> Voice:
        """The voice in 155 bytes of VCED data (the data alone, without SysEx header and checksum).

        A byte above its field's maximum is taken as the maximum. In the name, bytes that are not printable ASCII
        become blanks, and blanks at the end are left out.

        Raises:
            InputError: If ``data`` is not 155 bytes.
        """
        if len(data) != VCED_BYTES:
            raise InputError(f"data has {len(data)} bytes; a voice (VCED) has exactly {VCED_BYTES}")
        values = [min(byte, maximum) for byte, maximum in zip(data, _MAXIMA, strict=False)]
        starts = range(5 * _OPERATOR_BYTES, -1, -_OPERATOR_BYTES)
        common = values[6 * _OPERATOR_BYTES :]
        name = "".join(chr(byte) if 32 <= byte < 127 else " " for byte in data[-NAME_CHARACTERS:])
        return cls(
            name=name.rstrip(" "),
            operators=tuple(_operator(values[start : start + _OPERATOR_BYTES]) for start in starts),
            algorithm=common[8] + 1,
            feedback=common[9],
            oscillator_sync=bool(common[10]),
            pitch_rates=_quad(common[0:4]),
            pitch_levels=_quad(common[4:8]),
            lfo_speed=common[11],
            lfo_delay=common[12],
            pitch_mod_depth=common[13],
            amplitude_mod_depth=common[14],
            lfo_sync=bool(common[15]),
            lfo_wave=common[16],
            pitch_sensitivity=common[17],
            transpose=common[18] - 24,
        )

    def to_vced(self) -> bytes:
        """The voice as 155 bytes of VCED data, the inverse of `from_vced`; the name is filled up with blanks."""
        values: list[int] = []
        for operator in reversed(self.operators):
            values += (*operator.rates, *operator.levels, operator.break_point)
            values += (operator.left_depth, operator.right_depth, operator.left_curve, operator.right_curve)
            values += (operator.rate_scaling, operator.amplitude_sensitivity, operator.velocity_sensitivity)
            values += (operator.output_level, operator.fixed, operator.coarse, operator.fine, operator.detune + 7)
        values += (*self.pitch_rates, *self.pitch_levels, self.algorithm - 1, self.feedback, self.oscillator_sync)
        values += (self.lfo_speed, self.lfo_delay, self.pitch_mod_depth, self.amplitude_mod_depth, self.lfo_sync)
        values += (self.lfo_wave, self.pitch_sensitivity, self.transpose + 24)
        return bytes(values) + self.name.ljust(NAME_CHARACTERS).encode("ascii")


def _printable(name: str) -> bool:
    return name.isascii() and name.isprintable()


def _quad(values: list[int]) -> Quad:
    first, second, third, fourth = values
    return first, second, third, fourth


def _operator(values: list[int]) -> Operator:
    return Operator(
        rates=_quad(values[0:4]),
        levels=_quad(values[4:8]),
        break_point=values[8],
        left_depth=values[9],
        right_depth=values[10],
        left_curve=values[11],
        right_curve=values[12],
        rate_scaling=values[13],
        amplitude_sensitivity=values[14],
        velocity_sensitivity=values[15],
        output_level=values[16],
        fixed=bool(values[17]),
        coarse=values[18],
        fine=values[19],
        detune=values[20] - 7,
    )
