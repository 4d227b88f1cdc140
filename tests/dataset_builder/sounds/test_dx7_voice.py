"""Voices and banks: ranges, and the bytes of the published formats (VCED of a voice, VMEM of a bank)."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from audio_compositionality.dataset_builder.sounds.dx7_voice import Operator, Voice, load_bank, save_bank
from audio_compositionality.support.errors import InputError

# Highest value of each byte in the DX7's VCED format, operators 6 to 1 first (Yamaha MIDI data format).
OPERATOR_MAXIMA = [99] * 11 + [3, 3, 7, 3, 7, 99, 1, 31, 99, 14]
COMMON_MAXIMA = [99] * 8 + [31, 7, 1, 99, 99, 99, 99, 1, 5, 7, 48]
MAXIMA = OPERATOR_MAXIMA * 6 + COMMON_MAXIMA
NAMES = st.text(st.characters(min_codepoint=32, max_codepoint=126), max_size=10).map(str.rstrip)


def operator_bytes(o: Operator) -> list[int]:
    """The bytes of an operator, after the DX7's MIDI data format."""
    numbers = [*o.rates, *o.levels, o.break_point, o.left_depth, o.right_depth, o.left_curve, o.right_curve]
    numbers += [o.rate_scaling, o.amplitude_sensitivity, o.velocity_sensitivity, o.output_level]
    return [*numbers, int(o.fixed), o.coarse, o.fine, o.detune + 7]


def common_bytes(voice: Voice) -> list[int]:
    numbers = [*voice.pitch_rates, *voice.pitch_levels, voice.algorithm - 1, voice.feedback, voice.oscillator_sync]
    numbers += [voice.lfo_speed, voice.lfo_delay, voice.pitch_mod_depth, voice.amplitude_mod_depth]
    return [*numbers, voice.lfo_sync, voice.lfo_wave, voice.pitch_sensitivity, voice.transpose + 24]


def packed(voice: Voice) -> bytes:
    """The 128 bytes of a voice in a bank, after the same: 17 of an operator, in which some bytes hold two fields."""
    numbers = []
    for operator in reversed(voice.operators):
        b = operator_bytes(operator)
        numbers += [*b[:11], b[11] + 4 * b[12], b[13] + 8 * b[20], b[14] + 4 * b[15], b[16], b[17] + 2 * b[18], b[19]]
    c = common_bytes(voice)
    numbers += [*c[:9], c[9] + 8 * c[10], *c[11:15], c[15] + 2 * c[16] + 16 * c[17], c[18]]
    return bytes(numbers) + voice.name.ljust(10).encode("ascii")


def bank_of(voices: list[bytes]) -> bytes:
    data = b"".join(voices)
    return bytes.fromhex("f0 43 00 09 20 00") + data + bytes([(128 - sum(data) % 128) % 128, 0xF7])


@given(st.binary(min_size=145, max_size=145), NAMES)
def test_each_field_is_read_from_its_byte_and_written_there(content, name):
    data = bytes(byte % (most + 1) for byte, most in zip(content, MAXIMA, strict=True)) + name.ljust(10).encode()
    voice = Voice.from_vced(data)
    numbers = [number for operator in reversed(voice.operators) for number in operator_bytes(operator)]
    assert bytes([*numbers, *common_bytes(voice)]) + voice.name.ljust(10).encode() == data
    assert voice.to_vced() == data


def test_bytes_that_cannot_be_are_read_as_the_nearest():
    assert Voice.from_vced(b"\xff" * 145 + b"LOUD      ").to_vced() == bytes(MAXIMA) + b"LOUD      "
    assert Voice.from_vced(bytes(145) + b"\x00A\x7fB\xe9C\n\x1f  ").name == " A B C"
    for length in (154, 156):
        with pytest.raises(InputError, match=rf"{length} bytes.*155"):
            Voice.from_vced(bytes(length))


QUADS = ("rates", "levels", "pitch_rates", "pitch_levels")
SWITCHES = ("fixed", "oscillator_sync", "lfo_sync")
LOWEST = {"detune": -7, "algorithm": 1, "transpose": -24}


@pytest.mark.parametrize(("part", "maxima"), [(Operator, OPERATOR_MAXIMA), (Voice, COMMON_MAXIMA)])
def test_fields_are_checked(part, maxima):
    names = [name for name in part.__dataclass_fields__ if name not in ("name", "operators")]
    names.sort(key=lambda name: name not in QUADS)
    of_bytes = [name for name in names for _ in range(4 if name in QUADS else 1)]
    for field, most in dict(zip(of_bytes, maxima, strict=True)).items():
        low = LOWEST.get(field, 0)
        wrong = [low - 1, low + most + 1, low + 0.5, str(low), None]
        for value in (low, low + most):
            part(**{field: (value,) * 4 if field in QUADS else bool(value) if field in SWITCHES else value})
        if field in QUADS:
            wrong = [(0, 0, 0, value) for value in wrong] + [(0, 0, 0), [0, 0, 0, 0], 0]
        if field in SWITCHES:
            wrong += [0, 1]
        for value in wrong:
            with pytest.raises(InputError, match=rf"{field}.* is .*must be"):
                part(**{field: value})


def test_names_and_operators_are_checked():
    for name in ("ELEVEN CHAR", "blank ", "é", "tab\tbed", None):
        with pytest.raises(InputError, match=r"name.* is .*must be"):
            Voice(name=name)
    for operators in ((Operator(),) * 5, [Operator()] * 6):
        with pytest.raises(InputError, match=r"operators.* is .*must be"):
            Voice(operators=operators)
    voice = replace(Voice(), algorithm=np.int64(5), operators=(Operator(output_level=np.int32(80)),) * 6)
    assert Voice.from_vced(voice.to_vced()) == voice


@pytest.fixture(scope="module")
def voices() -> list[Voice]:
    rng = np.random.default_rng(0)
    drawn = [bytes(rng.integers(0, np.array(MAXIMA) + 1).tolist()) for _ in range(32)]
    return [Voice.from_vced(data + f"VOICE {number:02d}  ".encode()) for number, data in enumerate(drawn)]


def test_a_bank_is_in_the_published_layout(tmp_path, voices):
    path, bank = tmp_path / "bank.syx", bank_of([packed(voice) for voice in voices])
    save_bank(path, voices)
    assert path.read_bytes() == bank
    assert len(bank) == 4104
    # On any MIDI channel.
    path.write_bytes(bank[:2] + b"\x0f" + bank[3:])
    assert load_bank(path) == load_bank(str(path)) == tuple(voices)
    with pytest.raises(InputError, match="32 voices; there are 8"):
        save_bank(path, voices[:8])
    values = bytearray(packed(voices[0]))
    # Rate 1 and detune of operator 6, algorithm, LFO wave, transpose: above their ranges.
    for place, bits in ((0, 127), (12, 0x78), (110, 127), (116, 0x0E), (117, 127)):
        values[place] |= bits
    path.write_bytes(bank_of([bytes(values)] * 32))
    voice = load_bank(path)[31]
    assert (voice.operators[5].rates[0], voice.operators[5].detune) == (99, 7)
    assert (voice.algorithm, voice.lfo_wave, voice.transpose) == (32, 5, 24)


@pytest.mark.parametrize(
    ("start", "stop", "put", "message"),
    [
        (0, None, b"", r"begins with the bytes \(none\)"),
        *((place, place + 1, b"\x41", "begins with the bytes f1 43.*header|header") for place in (0, 1, 3, 4, 5)),
        (2, 3, b"\x10", "header"),
        (4104, 4104, b"\x00", "length of 4105 bytes.*4104"),
        (6, None, b"", "length of 6 bytes.*4104"),
        (4103, 4104, b"\x00", "ends with the byte 00.*f7"),
        (1000, 1001, b"\x80", "checksum"),
    ],
)
def test_damage_is_named(tmp_path, voices, start, stop, put, message):
    path, bank = tmp_path / "bank.syx", bank_of([packed(voice) for voice in voices])
    path.write_bytes(bank[:start] + put + (b"" if stop is None else bank[stop:]))
    with pytest.raises(InputError, match=rf"bank\.syx .*{message}"):
        load_bank(path)
