"""The level of an operator over a note: level, velocity and keyboard scaling, and the four-stage envelope.

Levels are octaves, 15.0 being an amplitude of 1; `steps` are 1/256 octave. All integer arithmetic is exact, with
``>>`` a division by a power of two rounded down. Source of the laws: hardware measurements published with
google/music-synthesizer-for-android (Apache-2.0); the start at level 0, the order of events at a change of stage and
the holds: measured black-box on dexed-py 0.3.0.
"""

from __future__ import annotations

from typing import Literal

import numpy as np
from numba import njit
from numpy.typing import NDArray

from .tables import (
    BLOCK,
    CLOCK_RATE,
    ENVELOPE_STEP,
    EXPONENTIAL_CURVE,
    FAST_HOLD_SAMPLES,
    HOLD_MILLISECONDS,
    LEVELS,
    RISE_START,
    VELOCITIES,
)
from .voice import Operator

HoldClock = Literal["dexed", "seconds"]
_Stages = tuple[float, float, float, float]
_Holds = tuple[int, int, int]

_STEPS_PER_OCTAVE = 256
_MAX_LEVEL = 127
_LOWEST_TARGET = 16


def velocity_steps(sensitivity: int, velocity: int) -> int:
    """Steps that a key velocity (0 to 127) adds to an operator of velocity sensitivity 0 to 7."""
    return 16 * ((sensitivity * (VELOCITIES[velocity >> 1] - 239) + 7) >> 3)


def keyboard_scaling(operator: Operator, key: int) -> int:
    """What keyboard level scaling adds to the output level at a MIDI key, in units of 1/8 octave."""
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
    """What keyboard rate scaling adds to the envelope rates at a MIDI key."""
    return (operator.rate_scaling * min(max(key // 3 - 7, 0), 31)) >> 3


def targets(operator: Operator, key: int, velocity: int) -> tuple[float, float, float, float]:
    """Levels in octaves at which the four stages of the envelope end."""
    scaled = min(_MAX_LEVEL, LEVELS[operator.output_level] + keyboard_scaling(operator, key))
    total = max(0, 32 * scaled + velocity_steps(operator.velocity_sensitivity, velocity))
    one, two, three, four = (
        max(_LOWEST_TARGET, 64 * (LEVELS[level] >> 1) + total - 4256) / _STEPS_PER_OCTAVE for level in operator.levels
    )
    return one, two, three, four


def steps(operator: Operator, key: int, sample_rate: int) -> tuple[float, float, float, float]:
    """Octaves by which the level falls in a block in each of the four stages; a rise is a multiple of it."""
    scaling = rate_scaling(operator, key)
    unit = ENVELOPE_STEP * (CLOCK_RATE / sample_rate)  # a power of two at 44.1 kHz, so that no step is rounded there
    quarters = (min(63, (rate * 41 >> 6) + scaling) for rate in operator.rates)
    one, two, three, four = ((1 + quarter % 4 / 4) * 2 ** (quarter // 4) * unit for quarter in quarters)
    return one, two, three, four


def holds(operator: Operator, key: int, sample_rate: int, clock: HoldClock) -> list[int]:
    """Blocks after which stages 1 to 3 end when they hold; 0 means that they take one block, as any stage does.

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
    hold_one, hold_two, hold_three = holds(operator, key, sample_rate, clock)
    if operator.levels[0] > 0:
        hold_one = 0
    _run(
        levels,
        targets(operator, key, velocity),
        steps(operator, key, sample_rate),
        (hold_one, hold_two, hold_three),
        key_up,
        RISE_START,
    )


@njit(cache=True, nogil=True)
def _next_stage(stage: int, level: float, targets: _Stages, holds: _Holds) -> tuple[int, bool, bool, int]:
    """The stage after ``stage``: its index, whether it moves, whether upwards, and how many blocks it holds."""
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
