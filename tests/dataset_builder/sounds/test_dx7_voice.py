"""Voices: their ranges, and the bytes of the published VCED format."""

from dataclasses import fields, replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from audio_compositionality.dataset_builder.sounds.dx7_voice import Operator, Voice
from audio_compositionality.support.errors import InputError

# Highest value of each byte in the DX7's VCED format, operators 6 to 1 first (Yamaha MIDI data format).
OPERATOR_MAXIMA = [99] * 11 + [3, 3, 7, 3, 7, 99, 1, 31, 99, 14]
MAXIMA = OPERATOR_MAXIMA * 6 + [99] * 8 + [31, 7, 1, 99, 99, 99, 99, 1, 5, 7, 48]
NAMES = st.text(st.characters(min_codepoint=32, max_codepoint=126), max_size=10).map(str.rstrip)


@st.composite
def vced(draw: st.DrawFn) -> bytes:
    values = [draw(st.integers(0, maximum)) for maximum in MAXIMA]
    return bytes(values) + draw(NAMES).ljust(10).encode("ascii")


@given(vced())
def test_bytes_survive_a_round_trip(data):
    voice = Voice.from_vced(data)
    assert voice.to_vced() == data
    assert Voice.from_vced(voice.to_vced()) == voice


def test_each_field_is_read_from_its_byte():
    data = bytearray(155)
    op6, op1, common = 0, 105, 126
    data[op6 : op6 + 21] = bytes(range(1, 12)) + bytes([1, 2, 3, 2, 4, 50, 1, 30, 60, 0])
    data[op1 + 16], data[op1 + 20] = 98, 14
    data[common : common + 19] = bytes([*range(11, 19), 31, 7, 1, 21, 22, 23, 24, 0, 5, 6, 48])
    data[145:] = b"E.PIANO 1 "
    voice = Voice.from_vced(bytes(data))
    assert voice.operators[5] == Operator(
        rates=(1, 2, 3, 4),
        levels=(5, 6, 7, 8),
        break_point=9,
        left_depth=10,
        right_depth=11,
        left_curve=1,
        right_curve=2,
        rate_scaling=3,
        amplitude_sensitivity=2,
        velocity_sensitivity=4,
        output_level=50,
        fixed=True,
        coarse=30,
        fine=60,
        detune=-7,
    )
    assert (voice.operators[0].output_level, voice.operators[0].detune) == (98, 7)
    without_operators = {field.name: getattr(voice, field.name) for field in fields(Voice)}
    del without_operators["operators"]
    assert without_operators == {
        "name": "E.PIANO 1",
        "algorithm": 32,
        "feedback": 7,
        "oscillator_sync": True,
        "pitch_rates": (11, 12, 13, 14),
        "pitch_levels": (15, 16, 17, 18),
        "lfo_speed": 21,
        "lfo_delay": 22,
        "pitch_mod_depth": 23,
        "amplitude_mod_depth": 24,
        "lfo_sync": False,
        "lfo_wave": 5,
        "pitch_sensitivity": 6,
        "transpose": 24,
    }


def test_bytes_out_of_range_become_the_maximum():
    assert Voice.from_vced(b"\xff" * 145 + b"LOUD      ").to_vced() == bytes(MAXIMA) + b"LOUD      "


def test_unprintable_characters_of_a_name_become_blanks():
    assert Voice.from_vced(bytes(145) + b"\x00A\x7fB\xe9C\n\x1f  ").name == " A B C"


@pytest.mark.parametrize("length", [0, 128, 154, 156])
def test_wrong_number_of_bytes(length):
    with pytest.raises(InputError, match=rf"{length} bytes.*155"):
        Voice.from_vced(bytes(length))


@pytest.mark.parametrize(
    ("field", "value"),
    [
        *[
            (name, value)
            for name in ("rates", "levels")
            for value in ((1, 2, 3), (1, 2, 3, 100), [1, 2, 3, 4], (0, 0, -1, 0))
        ],
        *[(name, 100) for name in ("break_point", "left_depth", "right_depth", "output_level", "fine")],
        *[(name, 4) for name in ("left_curve", "right_curve", "amplitude_sensitivity")],
        *[(name, 8) for name in ("rate_scaling", "velocity_sensitivity")],
        ("coarse", 32),
        ("coarse", 1.5),
        ("coarse", "1"),
        ("detune", -8),
        ("detune", 8),
        ("fixed", 1),
    ],
)
def test_operator_fields_are_checked(field, value):
    with pytest.raises(InputError, match=rf"{field}.* is .*must be"):
        Operator(**{field: value})


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("name", "ELEVEN CHAR"),
        ("name", "blank "),
        ("name", "é"),
        ("name", "tab\tbed"),
        ("name", None),
        ("operators", (Operator(),) * 5),
        ("operators", [Operator()] * 6),
        ("algorithm", 0),
        ("algorithm", 33),
        ("feedback", 8),
        ("oscillator_sync", 1),
        ("pitch_rates", (0, 0, 0)),
        ("pitch_levels", (0, 0, 0, 100)),
        *[(name, 100) for name in ("lfo_speed", "lfo_delay", "pitch_mod_depth", "amplitude_mod_depth")],
        ("lfo_sync", 0),
        ("lfo_wave", 6),
        ("pitch_sensitivity", 8),
        ("transpose", -25),
        ("transpose", 25),
    ],
)
def test_voice_fields_are_checked(field, value):
    with pytest.raises(InputError, match=rf"{field}.* is .*must be"):
        Voice(**{field: value})


def test_numpy_integers_are_integers():
    voice = replace(Voice(), algorithm=np.int64(5), operators=(Operator(output_level=np.int32(80)),) * 6)
    assert Voice.from_vced(voice.to_vced()) == voice
