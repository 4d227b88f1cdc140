"""Sine and power of two in plain additions and multiplications.

The C library's own differ in the last bit from platform to platform, which a feedback operator can amplify to an
audible difference. Compiled without reassociation or contraction, these give the same bits everywhere, and loops
over them vectorise.
"""

from __future__ import annotations

import math

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
