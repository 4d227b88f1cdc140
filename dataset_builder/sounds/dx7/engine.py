"""One note of a DX7 voice: six sine operators that modulate each other's phase.

Everything but the phases changes once per block of 64 samples. So the levels and pitches of a note are worked out
first, block by block, and then the sound in one compiled function that holds no lock: notes can be rendered on
several threads at once. Equal arguments give equal samples, on every platform.

The sound follows dexed-py 0.3.0, on which it was measured black-box; the structure is that of the Yamaha DX7 manual
and of the hardware measurements published with google/music-synthesizer-for-android (Apache-2.0).
"""

from __future__ import annotations

import math
from numbers import Integral
from typing import Any, NamedTuple, get_args

import numpy as np
from numba import njit
from numpy.typing import NDArray

from audio_compositionality.support.errors import InputError

from .envelope import HoldClock, amplitude_envelope
from .modulation import depth_of, frequency_factors, lfo, modulate_amplitude, pitch_envelope, pitch_modulation
from .tables import (
    ALGORITHMS,
    AMPLITUDE_SENSITIVITIES,
    BLOCK,
    FULL_LEVEL,
    SILENT_LEVEL,
    WEAK_FEEDBACK_ALGORITHMS,
    Algorithm,
    power_of_two,
    sine,
)
from .voice import Operator, Voice

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
    """The sound of one key, from all oscillators at phase 0.

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
    """Frequency of an operator in Hz at a MIDI key, before pitch envelope and LFO.

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


def _bits(operators: tuple[int, ...]) -> int:
    return sum(1 << (number - 1) for number in operators)


def _routing(number: int, algorithm: Algorithm) -> _Routing:
    modulators = tuple(_bits(algorithm.modulators.get(target, ())) for target in range(1, _OPERATORS + 1))
    loop = algorithm.feedback[0] - 1, algorithm.feedback[-1] - 1
    scale = 2.0**-10 if number in WEAK_FEEDBACK_ALGORITHMS else 2.0**-8
    return _Routing(modulators, _bits(algorithm.carriers), loop, scale)


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
