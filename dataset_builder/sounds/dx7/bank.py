"""Banks of 32 voices as the DX7 dumps them: a SysEx file with 128 packed bytes (VMEM) a voice.

Source of the layout: Yamaha DX7 owner's manual and its MIDI data format.
"""

from __future__ import annotations

from collections.abc import Sequence
from os import PathLike
from pathlib import Path

from audio_compositionality.support.errors import InputError

from .voice import Voice

VOICES = 32
VMEM_BYTES = 128
_OPERATOR_BYTES, _PACKED_OPERATOR_BYTES = 21, 17
_DATA_BYTES = VOICES * VMEM_BYTES
_HEADER_BYTES = 6
_FILE_BYTES = _HEADER_BYTES + _DATA_BYTES + 2
_HEADER = bytes.fromhex("f04300092000")
_END = 0xF7


def load_bank(path: str | PathLike[str]) -> tuple[Voice, ...]:
    """The 32 voices of a DX7 bank.

    Args:
        path: A ``.syx`` file of 4104 bytes: ``F0 43 0n 09 20 00`` (n is the MIDI channel), 32 voices of 128 packed
            bytes, the checksum, ``F7``. Values above a field's maximum are taken as the maximum.

    Raises:
        InputError: If the header, the length, the end or the checksum of the file is wrong.
        OSError: If the file cannot be read.
    """
    content = Path(path).read_bytes()
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
    """Write a bank that `load_bank` reads, and a DX7 or its plug-ins.

    Args:
        path: The ``.syx`` file.
        voices: 32.

    Raises:
        InputError: If there are not 32 voices.
        OSError: If the file cannot be written.
    """
    if len(voices) != VOICES:
        raise InputError(f"a bank has {VOICES} voices; there are {len(voices)}")
    data = b"".join(pack(voice.to_vced()) for voice in voices)
    Path(path).write_bytes(_HEADER + data + bytes((-sum(data) & 0x7F, _END)))


def pack(vced: bytes) -> bytes:
    """The 155 VCED bytes of a voice in 128 VMEM bytes; the inverse of `unpack`."""
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
    """The 155 VCED bytes of a voice packed in 128 VMEM bytes."""
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
