"""What moves pitch and amplitude over a note: the pitch envelope and the LFO.

Source of the laws, where a function does not say otherwise: hardware measurements published with
google/music-synthesizer-for-android (Apache-2.0), confirmed by black-box measurements on dexed-py 0.3.0.
"""

from __future__ import annotations

import numpy as np
from numba import njit
from numpy.typing import NDArray

from .tables import BLOCK, LFO_HZ, PITCH_LEVELS, PITCH_RATE_UNIT, PITCH_RATES, PITCH_SENSITIVITIES, power_of_two, sine
from .voice import Voice

_TRIANGLE, _SAW_DOWN, _SAW_UP, _SQUARE, _SINE = range(5)
_DELAY_UNIT = 85.25

# Level times 1 - 0.0119 exp(4.474 w): least squares on dexed-py's levels over the modulation w, to 0.3 %.
_AMPLITUDE_OFFSET = 0.0119
_AMPLITUDE_EXPONENT = 4.474 * 1.4426950408889634


def depth_of(value: int) -> int:
    """Weight of an LFO depth 0 to 99, in 1/256."""
    return (value * 165) >> 6


def pitch_envelope(voice: Voice, blocks: int, key_up: int, sample_rate: int) -> NDArray[np.float64]:
    """Octaves [blocks] by which the pitch envelope shifts the pitch; ``key_up`` is the block of the release."""
    unit = PITCH_RATE_UNIT * BLOCK / sample_rate
    levels = tuple(PITCH_LEVELS[level] / 32 for level in voice.pitch_levels)
    steps = tuple(PITCH_RATES[rate] * unit for rate in voice.pitch_rates)
    octaves = np.empty(blocks)
    _run_pitch_envelope(octaves, levels, steps, key_up)
    return octaves


def lfo(voice: Voice, blocks: int, sample_rate: int) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Value of the LFO's wave, 0 to 1, and the depth that its delay lets through, 0 to 1, each [blocks].

    Without LFO key sync the wave starts where the hardware's happens to be; here at its phase 0, as in dexed-py. The
    times of the delay and the phases: measured black-box on dexed-py 0.3.0.
    """
    seconds = BLOCK / sample_rate
    values, depths = np.empty(blocks), np.empty(blocks)
    start = 0.5 if voice.lfo_sync else 0.0
    _run_lfo(values, int(voice.lfo_wave), start, LFO_HZ[voice.lfo_speed] * seconds)
    if voice.lfo_delay == 0:
        depths[:] = 1.0
    else:
        rest = 99 - voice.lfo_delay
        first = (16 + rest % 16) * 2 ** (1 + rest // 16)
        second = max(128, first // 128 * 128)
        times = np.arange(1, blocks + 1) * seconds
        np.clip((times - _DELAY_UNIT / first) * second / _DELAY_UNIT, 0.0, 1.0, out=depths)
    return values, depths


def pitch_modulation(voice: Voice, values: NDArray[np.float64], depths: NDArray[np.float64]) -> NDArray[np.float64]:
    """Octaves [blocks] by which the LFO shifts the pitch, from its ``values`` and ``depths``."""
    peak = depth_of(voice.pitch_mod_depth) * PITCH_SENSITIVITIES[voice.pitch_sensitivity] / 65536
    return peak * depths * (2 * values - 1)


@njit(cache=True, nogil=True)
def frequency_factors(octaves: NDArray[np.float64]) -> NDArray[np.float64]:
    """2 to the power of ``octaves``, element by element."""
    factors = np.empty_like(octaves)
    for block in range(len(octaves)):
        factors[block] = power_of_two(octaves[block])
    return factors


@njit(cache=True, nogil=True)
def modulate_amplitude(
    levels: NDArray[np.float64], values: NDArray[np.float64], depths: NDArray[np.float64], weight: float
) -> None:
    """Apply the LFO to an operator's ``levels`` [blocks] in octaves, in place.

    ``weight`` is the product of the voice's depth and the operator's sensitivity, each at most 1. The law is a fit to
    black-box measurements on dexed-py 0.3.0; it lowers the level by 1.2 % where the LFO is at its top.
    """
    for block in range(len(levels)):
        exponent = _AMPLITUDE_EXPONENT * (1.0 - values[block]) * depths[block] * weight
        levels[block] *= 1.0 - _AMPLITUDE_OFFSET * power_of_two(exponent)


@njit(cache=True, nogil=True)
def _run_pitch_envelope(
    octaves: NDArray[np.float64], levels: tuple[float, ...], steps: tuple[float, ...], key_up: int
) -> None:
    """Fill ``octaves`` with the pitch envelope; ``steps`` are octaves per block."""
    value = levels[3]
    stage, moves = 0, True
    for block in range(len(octaves)):
        if block == key_up:
            stage, moves = 3, True
        if moves:
            rest = levels[stage] - value
            if abs(rest) <= steps[stage]:
                value = levels[stage]
                stage += 1
                moves = stage < 3
            elif rest > 0:
                value += steps[stage]
            else:
                value -= steps[stage]
        octaves[block] = value


@njit(cache=True, nogil=True)
def _run_lfo(values: NDArray[np.float64], wave: int, start: float, cycles: float) -> None:
    """Fill ``values`` with the LFO's wave; it advances by ``cycles`` before each block."""
    state = 0
    wraps = 0
    for block in range(len(values)):
        position = start + (block + 1) * cycles
        whole = int(position)
        phase = position - whole
        while wraps < whole:
            state = (179 * state + 17) % 256
            wraps += 1
        if wave == _TRIANGLE:
            value = 2.0 * phase if phase < 0.5 else 2.0 - 2.0 * phase
        elif wave == _SAW_DOWN:
            value = 0.5 - phase if phase < 0.5 else 1.5 - phase
        elif wave == _SAW_UP:
            value = 0.5 + phase if phase < 0.5 else phase - 0.5
        elif wave == _SQUARE:
            value = 1.0 if phase < 0.5 else 0.0
        elif wave == _SINE:
            value = 0.5 + 0.5 * sine(phase)
        else:
            value = ((state ^ 128) + 1) / 256.0
        values[block] = value
