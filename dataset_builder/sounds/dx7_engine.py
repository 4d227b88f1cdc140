"""One note of a DX7 voice: six sine operators that modulate each other's phase, their levels, pitches and LFO.

Everything but the phases changes once per block of 64 samples. So the levels and pitches of a note are worked out
first, block by block, and then the sound in one compiled function that holds no lock: notes can be rendered on
several threads at once. Equal arguments give equal samples, on every platform: the C library's own sine and power of
two differ in the last bit from platform to platform, which a feedback operator can amplify to an audible difference, so
they are done in plain additions and multiplications, compiled without reassociation or contraction.

Levels are octaves, 15.0 being an amplitude of 1; `steps` are 1/256 octave. All integer arithmetic of the envelope is
exact, with ``>>`` a division by a power of two rounded down.

The sound follows dexed-py 0.3.0, measured as a black box, including the start of an envelope at level 0, the order of
events at a change of stage, and the holds. The structure follows the Yamaha DX7 manual and the hardware measurements
published with google/music-synthesizer-for-android (Apache-2.0), which are also the source of the laws of envelopes,
pitch envelope and LFO unless a function says otherwise.
"""

from __future__ import annotations

import math
from numbers import Integral
from typing import Any, Literal, NamedTuple, get_args

import numpy as np
from numba import njit
from numpy.typing import NDArray

from audio_compositionality.support.errors import InputError

from .dx7_voice import Operator, Voice

# Q of degree 6 in sin(2 pi t) = t (1/4 - t^2) Q(t^2), interpolated in 40-digit arithmetic at the seven Chebyshev
# nodes of t^2 in 0..1/4. The factor in front keeps the zeros exact.
_Q0 = 25.132741228036583
_Q1 = -64.83584377939387
_Q2 = 67.07760378170634
_Q3 = -38.51254281883014
_Q4 = 14.17821425929884
_Q5 = -3.6186702226207155
_Q6 = 0.6094242185248748

# Taylor series of 2^x about 0: (ln 2)^k / k!. The first term left out is below 2e-16 for |x| <= 1/2.
_LN2 = 0.6931471805599453
_E2 = _LN2 * _LN2 / 2
_E3 = _E2 * _LN2 / 3
_E4 = _E3 * _LN2 / 4
_E5 = _E4 * _LN2 / 5
_E6 = _E5 * _LN2 / 6
_E7 = _E6 * _LN2 / 7
_E8 = _E7 * _LN2 / 8
_E9 = _E8 * _LN2 / 9
_E10 = _E9 * _LN2 / 10
_E11 = _E10 * _LN2 / 11
_E12 = _E11 * _LN2 / 12


@njit(cache=True, nogil=True)
def sine(cycles: float) -> float:
    """Return sin(2 pi ``cycles``) with an error below 4e-11, exactly 0 at multiples of one half."""
    t = cycles - float(np.rint(cycles))
    u = t * t
    v = u * u
    low = (_Q0 + _Q1 * u) + (_Q2 + _Q3 * u) * v
    high = (_Q4 + _Q5 * u) + _Q6 * v
    return t * (0.25 - u) * (low + high * (v * v))


@njit(cache=True, nogil=True)
def power_of_two(exponent: float) -> float:
    """Return 2 to the power of ``exponent``, with a relative error below 1e-15."""
    whole = np.rint(exponent)
    x = exponent - whole
    high = _E12
    high = high * x + _E11
    high = high * x + _E10
    high = high * x + _E9
    high = high * x + _E8
    high = high * x + _E7
    high = high * x + _E6
    high = high * x + _E5
    high = high * x + _E4
    high = high * x + _E3
    high = high * x + _E2
    return math.ldexp(1.0 + x * (_LN2 + x * high), int(whole))


BLOCK = 64
"""Samples between two updates of everything but the phases, at every sample rate (measured)."""

FULL_LEVEL = 15.0
"""Level in octaves at which an operator's amplitude is 1 (Android synthesizer)."""

SILENT_LEVEL = 0.129
"""An operator that stays below this level, in octaves, is inaudible: -89.5 dB (Android synthesizer)."""


class Algorithm(NamedTuple):
    """How the six operators are connected; all operators are numbered 1 to 6."""

    carriers: tuple[int, ...]
    modulators: dict[int, tuple[int, ...]]
    feedback: tuple[int, ...]


def _algorithm(carriers: str, modulation: str, feedback: str) -> Algorithm:
    modulators = {}
    for part in modulation.split():
        target, sources = part.split("<")
        modulators[int(target)] = tuple(map(int, sources))
    return Algorithm(tuple(map(int, carriers)), modulators, tuple(map(int, feedback)))


ALGORITHMS = (
    _algorithm("13", "1<2 3<4 4<5 5<6", "6"),
    _algorithm("13", "1<2 3<4 4<5 5<6", "2"),
    _algorithm("14", "1<2 2<3 4<5 5<6", "6"),
    _algorithm("14", "1<2 2<3 4<5 5<6", "654"),
    _algorithm("135", "1<2 3<4 5<6", "6"),
    _algorithm("135", "1<2 3<4 5<6", "65"),
    _algorithm("13", "1<2 3<45 5<6", "6"),
    _algorithm("13", "1<2 3<45 5<6", "4"),
    _algorithm("13", "1<2 3<45 5<6", "2"),
    _algorithm("14", "1<2 2<3 4<56", "3"),
    _algorithm("14", "1<2 2<3 4<56", "6"),
    _algorithm("13", "1<2 3<456", "2"),
    _algorithm("13", "1<2 3<456", "6"),
    _algorithm("13", "1<2 3<4 4<56", "6"),
    _algorithm("13", "1<2 3<4 4<56", "2"),
    _algorithm("1", "1<235 3<4 5<6", "6"),
    _algorithm("1", "1<235 3<4 5<6", "2"),
    _algorithm("1", "1<234 4<5 5<6", "3"),
    _algorithm("145", "1<2 2<3 4<6 5<6", "6"),
    _algorithm("124", "1<3 2<3 4<56", "3"),
    _algorithm("1245", "1<3 2<3 4<6 5<6", "3"),
    _algorithm("1345", "1<2 3<6 4<6 5<6", "6"),
    _algorithm("1245", "2<3 4<6 5<6", "6"),
    _algorithm("12345", "3<6 4<6 5<6", "6"),
    _algorithm("12345", "4<6 5<6", "6"),
    _algorithm("124", "2<3 4<56", "6"),
    _algorithm("124", "2<3 4<56", "3"),
    _algorithm("136", "1<2 3<4 4<5", "5"),
    _algorithm("1235", "3<4 5<6", "6"),
    _algorithm("1236", "3<4 4<5", "5"),
    _algorithm("12345", "5<6", "6"),
    _algorithm("123456", "", "6"),
)
"""The 32 algorithms, number 1 first (Yamaha).

``feedback`` is the loop from the operator that receives the feedback to the one whose output is fed back; in
all algorithms but 4 and 6 that is one operator. No operator of a loop has a modulator outside the loop.
"""

WEAK_FEEDBACK_ALGORITHMS = (4, 6, 32)
"""Algorithms whose feedback is two octaves weaker than the others' (measured)."""

# fmt: off
LEVELS = (
    0, 5, 9, 13, 17, 20, 23, 25, 27, 29, 31, 33, 35, 37, 39, 41, 42, 43, 45, 46,
    *range(48, 128),
)
"""Output level and envelope levels 0 to 99 in units of 1/8 octave (Android synthesizer)."""

VELOCITIES = (
    0, 70, 86, 97, 106, 114, 121, 126, 132, 138, 142, 148, 152, 156, 160, 163,
    166, 170, 173, 174, 178, 181, 184, 186, 189, 190, 194, 196, 198, 200, 202, 205,
    206, 209, 211, 214, 216, 218, 220, 222, 224, 225, 227, 229, 230, 232, 233, 235,
    237, 238, 240, 241, 242, 243, 244, 246, 246, 248, 249, 250, 251, 252, 253, 254,
)
"""Weight of half the velocity; 239 is neutral (Android synthesizer)."""

EXPONENTIAL_CURVE = (
    0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 11, 14, 16, 19, 23, 27, 33, 39, 47, 56, 66, 80, 94, 110, 126, 142, 158, 174,
    190, 206, 222, 238, 250,
)
"""Keyboard level scaling on an exponential curve by distance in minor thirds (Android synthesizer)."""

CLOCK_RATE = 44_100
"""Sample rate in Hz at which the envelopes' steps and holds are whole numbers (Android synthesizer, measured)."""

ENVELOPE_STEP = 2.0**-14
"""Octaves of the slowest rate in a block at `CLOCK_RATE`, or 0.0420570 a second (Android synthesizer, measured)."""

RISE_START = 1716 / 256
"""A rising envelope jumps to this level, in octaves, at once (Android synthesizer)."""

HOLD_MILLISECONDS = (
    40000, 40000, 32000, 32000, 27000, 23000, 22500, 20000, 16000, 16000, 13250, 11500, 11400, 10000, 9500, 8000,
    7000, 6500, 5750, 5000, 5000, 4000, 3300, 3300, 2850, 2500, 2500, 2000, 2000, 1700, 1400, 1400, 1250, 1100,
    1000, 850, 710, 700, 625, 625, 500, 420, 400, 350, 320, 300, 250, 210, 210, 175, 150, 150, 125, 125, 100, 90,
    90, 78, 65, 61, 51, 45, 43, 41, 32, 31, 28, 26, 21, 19, 19, 16, 13, 13, 12, 10, 10,
)
"""How long an envelope stage lasts that starts at its target, by rate 0 to 76, at `CLOCK_RATE` (measured)."""

FAST_HOLD_SAMPLES = 20
"""From rate 77 up, the hold in samples at `CLOCK_RATE` for each step below rate 99 (measured)."""

PITCH_LEVELS = (
    -128, -116, -104, -95, -85, -76, -68, -61, -56, -52, -49, -46, -43, -41, -39, -37, -35, -33,
    *range(-32, 34),
    34, 35, 38, 40, 43, 46, 49, 53, 58, 65, 73, 82, 92, 103, 115, 127,
)
"""Pitch-envelope levels 0 to 99 in 1/32 octave; 50 is no shift (Android synthesizer, measured)."""

PITCH_RATES = (
    1, 2, 3, 3, 4, 4, 5, 5, 6, 6, 7, 7, 8, 8, 9, 9, 10, 10, 11, 11,
    12, 12, 13, 13, 14, 14, 15, 16, 16, 17, 18, 18, 19, 20, 21, 22, 23, 24, 25, 26,
    27, 28, 30, 31, 33, 34, 36, 37, 38, 39, 41, 42, 44, 46, 47, 49, 51, 53, 54, 56,
    58, 60, 62, 64, 66, 68, 70, 72, 74, 76, 79, 82, 85, 88, 91, 94, 98, 102, 106, 110,
    115, 120, 125, 130, 135, 141, 147, 153, 159, 165, 171, 178, 185, 193, 202, 211, 232, 243, 254, 255,
)
"""Pitch-envelope rates 0 to 99 in units of 1/21.3 octave per second (Android synthesizer, measured)."""

PITCH_RATE_UNIT = 1 / 21.3
"""Octaves per second of one unit of `PITCH_RATES` (Android synthesizer)."""

LFO_HZ = (
    0.064616, 0.12918, 0.32276, 0.45163, 0.64534, 0.77561, 0.9674, 1.1626, 1.2911, 1.4845,
    1.6127, 1.8102, 1.9373, 2.1309, 2.3218, 2.4533, 2.6455, 2.7759, 2.9693, 3.0985,
    3.2938, 3.4817, 3.6163, 3.8044, 3.9386, 4.1336, 4.3251, 4.4538, 4.6507, 4.7766,
    4.9744, 5.0941, 5.2919, 5.4916, 5.6151, 5.8037, 5.9412, 6.1441, 6.264, 6.4558,
    6.6451, 6.7821, 6.9734, 7.096, 7.2862, 7.4913, 7.6205, 7.807, 7.9427, 8.1391,
    8.2589, 8.4534, 8.6502, 8.7871, 8.9733, 9.1029, 9.2846, 9.4252, 9.6093, 9.8156,
    9.9268, 10.123, 10.28, 10.453, 11.624, 11.762, 12.98, 14.13, 14.366, 15.593,
    16.91, 17.191, 18.463, 19.831, 20.07, 21.525, 21.733, 23.249, 24.8, 25.065,
    26.601, 28.076, 28.494, 30.017, 31.713, 32.227, 33.743, 35.456, 35.824, 37.625,
    39.465, 39.831, 41.729, 42.103, 44.04, 45.798, 46.373, 48.326, 50.204, 50.896,
)
"""LFO frequency in Hz by speed 0 to 99 (measured, +-0.05 %)."""

PITCH_SENSITIVITIES = (0, 10, 20, 33, 55, 92, 153, 255)
"""Depth of pitch modulation by pitch-modulation sensitivity (Android synthesizer, measured)."""

AMPLITUDE_SENSITIVITIES = (0.0, 0.2587, 0.4274, 1.0)
"""Depth of amplitude modulation by amplitude-modulation sensitivity (Android synthesizer, measured)."""
# fmt: on


HoldClock = Literal["dexed", "seconds"]
_Stages = tuple[float, float, float, float]
_Holds = tuple[int, int, int]

_STEPS_PER_OCTAVE = 256
_MAX_LEVEL = 127
_LOWEST_TARGET = 16


def velocity_steps(sensitivity: int, velocity: int) -> int:
    """Return the steps that a key velocity (0 to 127) adds to an operator with velocity sensitivity 0 to 7."""
    return 16 * ((sensitivity * (VELOCITIES[velocity >> 1] - 239) + 7) >> 3)


def keyboard_scaling(operator: Operator, key: int) -> int:
    """Return what keyboard level scaling adds to the output level at a MIDI key, in units of 1/8 octave."""
    distance = key - operator.break_point - 17
    if distance >= 0:
        depth, curve = operator.right_depth, operator.right_curve
    else:
        depth, curve = operator.left_depth, operator.left_curve
    thirds = (abs(distance) + 1) // 3
    if curve in (0, 3):
        amount = (thirds * depth * 329) >> 12
    else:
        amount = (EXPONENTIAL_CURVE[min(thirds, len(EXPONENTIAL_CURVE) - 1)] * depth * 329) >> 15
    return amount if curve >= 2 else -amount


def rate_scaling(operator: Operator, key: int) -> int:
    """Return what keyboard rate scaling adds to the envelope rates at a MIDI key."""
    return (operator.rate_scaling * min(max(key // 3 - 7, 0), 31)) >> 3


def targets(operator: Operator, key: int, velocity: int) -> tuple[float, float, float, float]:
    """Return the levels in octaves at which the four stages of the envelope end."""
    scaled = min(_MAX_LEVEL, LEVELS[operator.output_level] + keyboard_scaling(operator, key))
    total = max(0, 32 * scaled + velocity_steps(operator.velocity_sensitivity, velocity))
    one, two, three, four = (
        max(_LOWEST_TARGET, 64 * (LEVELS[level] >> 1) + total - 4256) / _STEPS_PER_OCTAVE for level in operator.levels
    )
    return one, two, three, four


def steps(operator: Operator, key: int, sample_rate: int) -> tuple[float, float, float, float]:
    """Return the octaves per block by which the level falls in each of the four stages; a rise is a multiple of it."""
    scaling = rate_scaling(operator, key)
    unit = ENVELOPE_STEP * (CLOCK_RATE / sample_rate)  # a power of two at 44.1 kHz, so that no step is rounded there
    quarters = (min(63, (rate * 41 >> 6) + scaling) for rate in operator.rates)
    one, two, three, four = ((1 + quarter % 4 / 4) * 2 ** (quarter // 4) * unit for quarter in quarters)
    return one, two, three, four


def holds(operator: Operator, key: int, sample_rate: int, clock: HoldClock) -> list[int]:
    """Return the blocks after which stages 1 to 3 end if they hold; 0: they take one block, as any stage does.

    Stages 2 and 3 hold when they start at their target, stage 1 holds when L1 is 0, and then for a twentieth of the
    time unless its rate is high. ``clock`` is as for `render`.
    """
    scaling = rate_scaling(operator, key)
    blocks = []
    for stage, rate in enumerate(operator.rates[:3]):
        scaled = min(99, rate + scaling)
        if scaled < len(HOLD_MILLISECONDS):
            samples = HOLD_MILLISECONDS[scaled] * CLOCK_RATE // 1000 // (20 if stage == 0 else 1)
        else:
            samples = FAST_HOLD_SAMPLES * (99 - scaled)
        numerator, denominator = (CLOCK_RATE, sample_rate) if clock == "dexed" else (sample_rate, CLOCK_RATE)
        samples = samples * numerator // denominator
        blocks.append(-(samples // -BLOCK))
    return blocks


def amplitude_envelope(
    levels: NDArray[np.float64],
    operator: Operator,
    key: int,
    velocity: int,
    key_up: int,
    sample_rate: int,
    clock: HoldClock,
) -> None:
    """Fill ``levels`` [blocks] with an operator's level in octaves in each block, 15.0 being an amplitude of 1.

    ``key`` is the MIDI note with the transposition, ``key_up`` the block in which the key is released (never, if
    there is no such block), ``clock`` as for `render`.
    """
    one, two, three = holds(operator, key, sample_rate, clock)
    of_stages = (0 if operator.levels[0] > 0 else one, two, three)
    ends, falls = targets(operator, key, velocity), steps(operator, key, sample_rate)
    _run(levels, ends, falls, of_stages, key_up, RISE_START)


@njit(cache=True, nogil=True)
def _next_stage(stage: int, level: float, targets: _Stages, holds: _Holds) -> tuple[int, bool, bool, int]:
    """Return the stage after ``stage``: its index, whether it moves, whether upwards, and its blocks of hold."""
    stage += 1
    if stage > 2:
        return stage, False, False, 0
    hold = holds[stage] if level == targets[stage] else 0
    return stage, True, targets[stage] > level, hold


@njit(cache=True, nogil=True)
def _run(
    levels: NDArray[np.float64], targets: _Stages, steps: _Stages, holds: _Holds, key_up: int, rise_start: float
) -> None:
    """Fill ``levels`` with the level in octaves in each block; ``steps`` are octaves per block.

    Stages are numbered from 0. A stage that arrives ends there, and the next one moves in the next block; a hold
    that runs out lets the next stage move in the same block.
    """
    level = 0.0
    stage, moves, rises, hold = 0, True, targets[0] > level, holds[0]
    for block in range(len(levels)):
        if block == key_up:
            stage, moves, rises, hold = 3, True, targets[3] > level, 0
        if hold > 0:
            hold -= 1
            if hold == 0:
                stage, moves, rises, hold = _next_stage(stage, level, targets, holds)
        if moves and hold == 0:
            if rises:
                level = max(level, rise_start)
                level += np.floor(17.0 - level) * steps[stage]
                arrived = level >= targets[stage]
            else:
                level -= steps[stage]
                arrived = level <= targets[stage]
            if arrived:
                level = targets[stage]
                stage, moves, rises, hold = _next_stage(stage, level, targets, holds)
        levels[block] = level


_TRIANGLE, _SAW_DOWN, _SAW_UP, _SQUARE, _SINE = range(5)
_DELAY_UNIT = 85.25

# Level times 1 - 0.0119 exp(4.474 w): least squares on dexed-py's levels over the modulation w, to 0.3 %.
_AMPLITUDE_OFFSET = 0.0119
_AMPLITUDE_EXPONENT = 4.474 * 1.4426950408889634


def depth_of(value: int) -> int:
    """Return the weight of an LFO depth 0 to 99, in 1/256."""
    return (value * 165) >> 6


def pitch_envelope(voice: Voice, blocks: int, key_up: int, sample_rate: int) -> NDArray[np.float64]:
    """Return the octaves [blocks] by which the pitch envelope shifts the pitch; ``key_up``: block of the release."""
    unit = PITCH_RATE_UNIT * BLOCK / sample_rate
    levels = tuple(PITCH_LEVELS[level] / 32 for level in voice.pitch_levels)
    steps = tuple(PITCH_RATES[rate] * unit for rate in voice.pitch_rates)
    octaves = np.empty(blocks)
    _run_pitch_envelope(octaves, levels, steps, key_up)
    return octaves


def lfo(voice: Voice, blocks: int, sample_rate: int) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the LFO's wave, 0 to 1, and the depth after its delay, 0 to 1, each [blocks].

    Without LFO key sync, the hardware's wave starts at any phase; here it starts at phase 0, as in dexed-py. The
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
    """Return the octaves [blocks] by which the LFO shifts the pitch, from its ``values`` and ``depths``."""
    peak = depth_of(voice.pitch_mod_depth) * PITCH_SENSITIVITIES[voice.pitch_sensitivity] / 65536
    return peak * depths * (2 * values - 1)


@njit(cache=True, nogil=True)
def frequency_factors(octaves: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return 2 to the power of ``octaves``, element by element."""
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
    black-box measurements on dexed-py 0.3.0; it lowers the level by 1.2 % when the LFO is at its maximum.
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


_OPERATORS = 6
_LOG2_440 = 8.781359713524660
_LOG2_10 = 3.321928094887362
_LOG2_E = 1.4426950408889634
_CENTS = 1200

_Row = NDArray[np.float64]


def render(
    voice: Voice,
    note: int,
    velocity: int = 100,
    *,
    duration: float,
    key_up: float,
    sample_rate: int = 32_000,
    hold_clock: HoldClock = "dexed",
) -> NDArray[np.float32]:
    """Return the sound of one key, starting with all oscillators at phase 0.

    The call releases the interpreter lock while it works and can be made from several threads at once. Partials
    above half the sample rate fold, as on the instrument, so the sound depends on the sample rate there.

    Args:
        voice: The voice.
        note: MIDI note, 0 to 127; the voice's transposition comes on top.
        velocity: Key velocity, 0 to 127.
        duration: Seconds of sound.
        key_up: Seconds after which the key is released, rounded up to a block of 64 samples; infinity for never.
        sample_rate: In Hz.
        hold_clock: How long an envelope stage lasts that starts at its target. Measured on dexed-py 0.3.0, the time
            is right at 44.1 kHz but is then inversely proportional to the square of the sample rate: 1.9 times
            longer at 32 kHz. "dexed" does the same; "seconds" keeps the time of 44.1 kHz at every rate.

    Returns:
        Samples [round(duration * sample_rate)]; 1.0 is the peak of one carrier at full level. Carriers add up and
        nothing is clipped: six of them reach 6.0, and more with high velocities.

    Raises:
        InputError: If an argument is out of its range.
    """
    _check_integer("note", note, 0, 127)
    _check_integer("velocity", velocity, 0, 127)
    _check_integer("sample_rate", sample_rate, 1, None)
    if not 0 < duration < math.inf:
        raise InputError(f"duration is {duration!r}; it must be a positive number of seconds")
    if not key_up >= 0:
        raise InputError(f"key_up is {key_up!r}; it must be a number of seconds, 0 or more")
    if hold_clock not in get_args(HoldClock):
        raise InputError(f"hold_clock is {hold_clock!r}; it must be one of {', '.join(get_args(HoldClock))}")

    rate = int(sample_rate)
    samples = round(float(duration) * rate)
    blocks = -(samples // -BLOCK)
    release = blocks if key_up >= duration else -(round(float(key_up) * rate) // -BLOCK)
    key = int(note) + voice.transpose

    values, depths = lfo(voice, blocks, rate)
    levels = np.empty((_OPERATORS, blocks))
    for row, operator in zip(levels, voice.operators, strict=True):
        amplitude_envelope(row, operator, key, int(velocity), release, rate, hold_clock)
        if operator.amplitude_sensitivity > 0:
            weight = depth_of(voice.amplitude_mod_depth) / 256
            weight *= AMPLITUDE_SENSITIVITIES[operator.amplitude_sensitivity]
            modulate_amplitude(row, values, depths, weight)
    octaves = pitch_envelope(voice, blocks, release, rate) + pitch_modulation(voice, values, depths)
    increments = np.empty((_OPERATORS, blocks))
    factors = frequency_factors(octaves)
    for row, operator in zip(increments, voice.operators, strict=True):
        cycles = frequency(operator, key) / rate
        if operator.fixed:
            row.fill(cycles)
        else:
            np.multiply(factors, cycles, out=row)

    routing = _ROUTINGS[voice.algorithm - 1]
    loop = routing.loop if voice.feedback > 0 else _NO_LOOP
    feedback = routing.feedback_scale * 2.0**voice.feedback
    output = np.empty(samples, np.float32)
    _synthesize(output, levels, increments, routing.modulators, routing.carriers, loop, feedback)
    return output


def frequency(operator: Operator, key: int) -> float:
    """Return the frequency of an operator in Hz at a MIDI key, before pitch envelope and LFO.

    Multiples, powers of ten: Yamaha. Detune: least squares on dexed-py 0.3.0, in which a step is about 1.2 cents at
    middle C and less on higher keys, and acts on a fixed frequency upwards only.
    """
    pitch = _LOG2_440 + (key - 69) / 12
    if operator.fixed:
        cents = 0.9617 * max(0, operator.detune)
        exponent = (operator.coarse % 4 + operator.fine / 100) * _LOG2_10
        return float(power_of_two(exponent + cents / _CENTS))
    cents = 3.583 * pitch * power_of_two(-0.3960 * _LOG2_E * pitch) * operator.detune
    multiple = (operator.coarse or 0.5) * (1 + operator.fine / 100)
    return float(power_of_two(pitch + cents / _CENTS)) * multiple


class _Routing(NamedTuple):
    """An algorithm for the compiled function: operators count from 0, sets of operators are bits of an integer."""

    modulators: tuple[int, ...]
    carriers: int
    loop: tuple[int, int]
    feedback_scale: float


_NO_LOOP = (-1, 0)


def _routing(number: int, algorithm: Algorithm) -> _Routing:
    sets = [algorithm.modulators.get(target, ()) for target in range(1, _OPERATORS + 1)]
    *modulators, carriers = (sum(1 << (one - 1) for one in of_set) for of_set in (*sets, algorithm.carriers))
    loop = algorithm.feedback[0] - 1, algorithm.feedback[-1] - 1
    scale = 2.0**-10 if number in WEAK_FEEDBACK_ALGORITHMS else 2.0**-8
    return _Routing(tuple(modulators), carriers, loop, scale)


_ROUTINGS = tuple(_routing(number, algorithm) for number, algorithm in enumerate(ALGORITHMS, 1))


def _check_integer(name: str, value: Any, low: int, high: int | None) -> None:
    if not isinstance(value, Integral) or int(value) < low or (high is not None and int(value) > high):
        rule = f"from {low} to {high}" if high is not None else f"of {low} or more"
        raise InputError(f"{name} is {value!r}; it must be an integer {rule}")


@njit(cache=True, nogil=True)
def _gains(gains: _Row, before: float, after: float) -> None:
    """Fill ``gains`` [64] with the amplitudes of a block: the level in octaves is a straight line (measured).

    The eight interleaved geometric series can be computed at once, which one series could not.
    """
    gain = power_of_two(before - FULL_LEVEL)
    if before == after:
        gains[:] = gain
        return
    ratio = power_of_two((after - before) / BLOCK)
    for j in range(8):
        gain *= ratio
        gains[j] = gain
    ratio = power_of_two((after - before) * 8 / BLOCK)
    for j in range(8, BLOCK):
        gains[j] = gains[j - 8] * ratio


@njit(cache=True, nogil=True)
def _oscillate(wave: _Row, gains: _Row, ramp: _Row, phase: float, increment: float, modulation: _Row) -> None:
    """Fill ``wave`` [64] with an operator's output; ``modulation`` [64] is the sum of its modulators' outputs."""
    for j in range(BLOCK):
        wave[j] = gains[j] * sine(phase + ramp[j] * increment + 2.0 * modulation[j])


@njit(cache=True, nogil=True)
def _oscillate_loop(
    waves: NDArray[np.float64],
    gains: NDArray[np.float64],
    phases: _Row,
    increments: _Row,
    first: int,
    last: int,
    feedback: float,
    recent: float,
    older: float,
) -> tuple[float, float]:
    """Fill the rows ``first`` down to ``last`` of ``waves`` [6, 64], operators in a feedback loop.

    Each operator modulates the next lower one, and the mean of the last one's two latest samples, ``recent`` and
    ``older``, modulates the first. Returns these for the next block.
    """
    for j in range(BLOCK):
        modulation = feedback * (recent + older)
        output = 0.0
        for operator in range(first, last - 1, -1):
            output = gains[operator, j] * sine(phases[operator] + j * increments[operator] + modulation)
            waves[operator, j] = output
            modulation = 2.0 * output
        older = recent
        recent = output
    return recent, older


@njit(cache=True, nogil=True)
def _synthesize(
    output: NDArray[np.float32],
    levels: NDArray[np.float64],
    increments: NDArray[np.float64],
    modulators: tuple[int, ...],
    carriers: int,
    loop: tuple[int, int],
    feedback: float,
) -> None:
    """Fill ``output`` [samples] from ``levels`` (octaves) and ``increments`` (cycles per sample), each [6, blocks].

    ``loop`` has the operators between which feedback runs, (-1, 0) for none. The feedback is ``feedback`` cycles for
    the sum of the two latest samples. In a loop of several operators all but the first keep a constant amplitude in
    a block; while the first is silent, there is no loop (both measured).
    """
    first, last = loop
    loop_set = (1 << (first + 1)) - (1 << last)
    ramp = np.arange(BLOCK).astype(np.float64)
    waves = np.zeros((_OPERATORS, BLOCK))
    gains = np.zeros((_OPERATORS, BLOCK))
    modulation = np.zeros(BLOCK)
    total = np.zeros(BLOCK)
    phases = np.zeros(_OPERATORS)
    before = np.zeros(_OPERATORS)
    recent = older = 0.0
    for block in range(levels.shape[1]):
        audible = looped = 0
        for operator in range(_OPERATORS - 1, -1, -1):
            level = levels[operator, block]
            if level >= SILENT_LEVEL or before[operator] >= SILENT_LEVEL:
                audible |= 1 << operator
                start = level if looped >> operator & 1 else before[operator]
                _gains(gains[operator], start, level)
                if operator == first:
                    looped = loop_set
            else:
                gains[operator] = 0.0
            before[operator] = level

        if looped == 0:
            recent = older = 0.0
        total[:] = 0.0
        for operator in range(_OPERATORS - 1, -1, -1):
            if operator == first and looped != 0:
                recent, older = _oscillate_loop(
                    waves, gains, phases, increments[:, block], first, last, feedback, recent, older
                )
            if (audible & ~looped) >> operator & 1:
                modulation[:] = 0.0
                for source in range(operator + 1, _OPERATORS):
                    if (modulators[operator] & audible) >> source & 1:
                        modulation += waves[source]
                _oscillate(
                    waves[operator], gains[operator], ramp, phases[operator], increments[operator, block], modulation
                )
            if (carriers & audible) >> operator & 1:
                total += waves[operator]

        for operator in range(_OPERATORS):
            phase = phases[operator] + BLOCK * increments[operator, block]
            phases[operator] = phase - np.floor(phase)
        begin = block * BLOCK
        for j in range(min(BLOCK, len(output) - begin)):
            output[begin + j] = total[j]
