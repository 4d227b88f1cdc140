"""Sine and power of two in plain additions and multiplications.

The C library's own differ in the last bit from platform to platform, which a feedback operator can amplify to an
audible difference. Compiled without reassociation or contraction, these give the same bits everywhere, and loops
over them vectorise.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numba import njit

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
    """sin(2 pi ``cycles``) with an error below 4e-11, exactly 0 at multiples of one half."""
    t = cycles - float(np.rint(cycles))
    u = t * t
    v = u * u
    low = (_Q0 + _Q1 * u) + (_Q2 + _Q3 * u) * v
    high = (_Q4 + _Q5 * u) + _Q6 * v
    return t * (0.25 - u) * (low + high * (v * v))


@njit(cache=True, nogil=True)
def power_of_two(exponent: float) -> float:
    """2 to the power of ``exponent``, with a relative error below 1e-15."""
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
"""An operator that stays below this level, in octaves, is not heard: -89.5 dB (Android synthesizer)."""


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
