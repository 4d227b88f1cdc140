"""Banks: files packed here from the published VMEM layout, whole and damaged."""

import numpy as np
import pytest

from audio_compositionality.dataset_builder.sounds.dx7_voice import Operator, Voice, load_bank, save_bank
from audio_compositionality.support.errors import InputError


def pack_voice(voice: Voice) -> bytes:
    """128 packed bytes, after the DX7's MIDI data format."""
    packed = []
    for o in reversed(voice.operators):
        packed += [*o.rates, *o.levels, o.break_point, o.left_depth, o.right_depth]
        packed += [o.left_curve + 4 * o.right_curve, o.rate_scaling + 8 * (o.detune + 7)]
        packed += [o.amplitude_sensitivity + 4 * o.velocity_sensitivity, o.output_level]
        packed += [int(o.fixed) + 2 * o.coarse, o.fine]
    packed += [*voice.pitch_rates, *voice.pitch_levels, voice.algorithm - 1]
    packed += [voice.feedback + 8 * voice.oscillator_sync, voice.lfo_speed, voice.lfo_delay]
    packed += [voice.pitch_mod_depth, voice.amplitude_mod_depth]
    packed += [int(voice.lfo_sync) + 2 * voice.lfo_wave + 16 * voice.pitch_sensitivity, voice.transpose + 24]
    return bytes(packed) + voice.name.ljust(10).encode("ascii")


def pack_bank(voices: list[bytes]) -> bytes:
    data = b"".join(voices)
    checksum = (128 - sum(data) % 128) % 128
    return bytes.fromhex("f0 43 00 09 20 00") + data + bytes([checksum, 0xF7])


def random_voice(rng: np.random.Generator, number: int) -> Voice:
    def quad():
        return tuple(int(value) for value in rng.integers(0, 100, 4))

    def upto(maximum):
        return int(rng.integers(0, maximum + 1))

    operators = tuple(
        Operator(
            quad(), quad(), upto(99), upto(99), upto(99), upto(3), upto(3), upto(7), upto(3), upto(7), upto(99),
            bool(upto(1)), upto(31), upto(99), upto(14) - 7,
        )
        for _ in range(6)
    )  # fmt: skip
    return Voice(
        f"VOICE {number:02d}", operators, 1 + upto(31), upto(7), bool(upto(1)), quad(), quad(), upto(99), upto(99),
        upto(99), upto(99), bool(upto(1)), upto(5), upto(7), upto(48) - 24,
    )  # fmt: skip


@pytest.fixture
def voices() -> list[Voice]:
    rng = np.random.default_rng(0)
    return [random_voice(rng, number) for number in range(32)]


@pytest.fixture
def bank(voices) -> bytes:
    return pack_bank([pack_voice(voice) for voice in voices])


def test_round_trip(tmp_path, voices, bank):
    path = tmp_path / "bank.syx"
    path.write_bytes(bank)
    assert len(bank) == 4104
    assert load_bank(path) == tuple(voices)
    assert load_bank(str(path)) == tuple(voices)


def test_what_is_written_is_the_published_layout(tmp_path, voices, bank):
    path = tmp_path / "bank.syx"
    save_bank(path, voices)
    assert path.read_bytes() == bank


def test_a_bank_has_32_voices(tmp_path, voices):
    with pytest.raises(InputError, match="32 voices; there are 8"):
        save_bank(tmp_path / "bank.syx", voices[:8])


def test_any_midi_channel(tmp_path, voices, bank):
    path = tmp_path / "bank.syx"
    path.write_bytes(bank[:2] + b"\x0f" + bank[3:])
    assert load_bank(path) == tuple(voices)


def test_values_out_of_range_become_the_maximum(tmp_path, voices):
    packed = bytearray(pack_voice(voices[0]))
    packed[0] = 127  # rate 1 of operator 6
    packed[110] = 127  # algorithm
    packed[12] |= 0x78  # detune 15 of operator 6
    packed[116] |= 0x0E  # LFO wave 7
    packed[117] = 127  # transpose
    path = tmp_path / "bank.syx"
    path.write_bytes(pack_bank([bytes(packed)] * 32))
    voice = load_bank(path)[31]
    assert voice.operators[5].rates[0] == 99
    assert voice.operators[5].detune == 7
    assert (voice.algorithm, voice.lfo_wave, voice.transpose) == (32, 5, 24)


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (lambda b: b"", "begins with the bytes"),
        (lambda b: b[6:-2], "begins with the bytes"),
        (lambda b: b"\xf1" + b[1:], "begins with the bytes f1 43.*header"),
        (lambda b: b[:1] + b"\x41" + b[2:], "header"),
        (lambda b: b[:2] + b"\x10" + b[3:], "header"),
        (lambda b: b[:3] + b"\x00" + b[4:], "header"),
        (lambda b: b[:4] + b"\x10" + b[5:], "header"),
        (lambda b: b[:5] + b"\x01" + b[6:], "header"),
        (lambda b: b[:-1], "length of 4103 bytes.*4104"),
        (lambda b: b + b"\x00", "length of 4105 bytes.*4104"),
        (lambda b: b[:6], "length of 6 bytes.*4104"),
        (lambda b: b[:-1] + b"\x00", "ends with the byte 00.*f7"),
        (lambda b: b[:-2] + bytes([b[-2] ^ 1, 0xF7]), "checksum"),
        (lambda b: b[:1000] + bytes([b[1000] ^ 1]) + b[1001:], "checksum"),
    ],
)
def test_damage_is_named(tmp_path, bank, damage, message):
    path = tmp_path / "damaged.syx"
    path.write_bytes(damage(bank))
    with pytest.raises(InputError, match=rf"damaged\.syx .*{message}"):
        load_bank(path)


def test_missing_file(tmp_path):
    with pytest.raises(FileNotFoundError):
        load_bank(tmp_path / "none.syx")
