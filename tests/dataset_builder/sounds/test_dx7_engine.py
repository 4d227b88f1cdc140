"""The engine against truths worked out by hand: sines, Bessel functions, published level and rate laws."""

import math
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import jv

from audio_compositionality.dataset_builder.sounds.dx7_engine import power_of_two, render, sine
from audio_compositionality.dataset_builder.sounds.dx7_voice import Operator, Voice
from audio_compositionality.support.errors import InputError

RATE = 32_000
LEVEL_STEP = 20 * math.log10(2) / 8  # 0.7526 dB
FULL = Operator(output_level=99)


def solo(operator: Operator = FULL, **fields) -> Voice:
    """A voice in which operator 1 sounds alone."""
    return Voice(operators=(operator, *[Operator()] * 5), algorithm=32, **fields)


def settled(voice: Voice, note: int = 69, velocity: int = 100, sample_rate: int = RATE) -> np.ndarray:
    """The second second of a held note, in which the fastest envelopes rest."""
    sound = render(voice, note, velocity, duration=2, key_up=2, sample_rate=sample_rate)
    return sound[sample_rate:].astype(np.float64)


def level_db(sound: np.ndarray) -> float:
    """RMS in dB relative to a sine of amplitude 1."""
    return 10 * math.log10(2 * np.mean(sound**2))


def decibels(sound: np.ndarray, sample_rate: int) -> np.ndarray:
    """Level of each 10 ms in dB relative to a sine of amplitude 1."""
    frame = sample_rate // 100
    frames = sound[: len(sound) // frame * frame].astype(np.float64).reshape(-1, frame)
    return 10 * np.log10(2 * np.mean(frames**2, axis=1) + 1e-30)


def tone(frequency: float) -> np.ndarray:
    """The second second of a sine, as `settled` gives it."""
    return np.sin(2 * np.pi * frequency * np.arange(RATE, 2 * RATE) / RATE)


@pytest.mark.parametrize(("note", "sample_rate"), [(0, 16_000), (69, 32_000), (84, 44_100)])
def test_full_carrier_is_a_pure_sine(note, sample_rate):
    sound = render(Voice(), note, duration=0.5, key_up=0.5, sample_rate=sample_rate)
    n = np.arange(len(sound))
    expected = np.sin(2 * np.pi * 440 * 2 ** ((note - 69) / 12) * n / sample_rate)
    # The envelope reaches level 15 in the first block, on a straight line from 0 in octaves.
    expected[:64] *= 2.0 ** (15 * np.arange(1, 65) / 64 - 15)
    np.testing.assert_allclose(sound, expected, atol=2e-7)
    # Whether the key is ever released makes no difference before that.
    held = render(Voice(), note, duration=0.5, key_up=math.inf, sample_rate=sample_rate)
    np.testing.assert_array_equal(held, sound)


@pytest.mark.parametrize("output_level", [50, 75, 83, 99])
def test_sidebands_are_bessel_functions(output_level):
    carrier = replace(FULL, fixed=True, coarse=3)  # 1000 Hz
    modulator = Operator(output_level=output_level, fixed=True, coarse=1)  # 10 Hz
    voice = Voice(operators=(carrier, modulator, *[Operator()] * 4), algorithm=1)
    spectrum = np.fft.rfft(settled(voice)) / (RATE / 2)
    index = 4 * math.pi * 2 ** ((output_level - 99) / 8)
    for order in range(-20, 21):  # sin(c + I sin m) = sum of J_k(I) sin(c + k m)
        assert -spectrum[1000 + 10 * order].imag == pytest.approx(jv(order, index), abs=1e-5)


def first_samples(voice: Voice) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The first 50 ms, the sample numbers, and the gain of a full operator: a straight line in octaves, then 1."""
    sound = render(voice, 60, duration=0.05, key_up=1)
    n = np.arange(len(sound))
    return sound, n, np.where(n < 64, 2.0 ** (15 * (n + 1) / 64 - 15), 1.0)


def sine_with_feedback(cycles: np.ndarray, gain: np.ndarray, strength: float) -> np.ndarray:
    """``gain`` * sin(2 pi (``cycles`` + ``strength`` * mean of the two samples before, as modulators count them))."""
    samples = [0.0, 0.0]
    for c, g in zip(cycles, gain, strict=True):
        mean = (2 * samples[-1] + 2 * samples[-2]) / 2
        samples.append(g * math.sin(2 * math.pi * (c + strength * mean)))
    return np.array(samples[2:])


@pytest.mark.parametrize("feedback", [1, 4, 6])
def test_feedback_is_the_mean_of_two_samples(feedback):
    off, carrier, looped = Operator(), replace(FULL, fixed=True, coarse=0), replace(FULL, fixed=True, coarse=2)
    voice = Voice(operators=(carrier, looped, off, off, off, off), algorithm=17, feedback=feedback)
    sound, n, gain = first_samples(voice)
    modulator = sine_with_feedback(100 * n / RATE, gain, 2.0 ** (feedback - 8))
    np.testing.assert_allclose(sound, gain * np.sin(2 * np.pi * (n / RATE + 2 * modulator)), atol=1e-5)
    # That of algorithm 32 is a quarter.
    sound, n, gain = first_samples(Voice(operators=(*[off] * 5, looped), algorithm=32, feedback=feedback))
    expected = sine_with_feedback(100 * n / RATE, gain, 2.0 ** (feedback - 10))
    np.testing.assert_allclose(sound, expected, atol=1e-5)


@pytest.mark.parametrize(("algorithm", "source"), [(4, 4), (6, 5)])
@pytest.mark.parametrize(("feedback", "first_level", "steps"), [(0, 1, False), (1, 1, False), (1, 3, True)])
def test_amplitude_steps_in_a_loop_of_several_operators(algorithm, source, feedback, first_level, steps):
    """The source of the feedback, a carrier, is at full level from its first sample on if the loop is closed."""
    operators = [replace(FULL, fixed=True, coarse=2) if number == source else Operator() for number in range(1, 7)]
    operators[5] = Operator(output_level=first_level)
    sound, n, gain = first_samples(Voice(operators=tuple(operators), algorithm=algorithm, feedback=feedback))
    expected = np.sin(2 * np.pi * 100 * n / RATE) * (1 if steps else gain)
    np.testing.assert_allclose(sound, expected, atol=0.002)  # level 3 is nearly silent


SLOW_SQUARE = {"lfo_wave": 3, "lfo_speed": 0, "pitch_mod_depth": 99, "pitch_sensitivity": 7}
"""At speed 0, 0.065 Hz, the first half cycle, the low one, lasts 7.7 s."""

SHIFTED = {"transpose": -12, "pitch_levels": (60,) * 4, "pitch_mod_depth": 99, "pitch_sensitivity": 7}


@pytest.mark.parametrize(
    ("operator", "voice", "hertz"),
    [
        *(
            ({"coarse": coarse, "fine": fine}, {}, 220 * ratio)
            for coarse, fine, ratio in ((0, 50, 0.75), (1, 1, 1.01), (7, 99, 13.93))
        ),
        # Neither the key nor modulation of pitch moves a fixed frequency; coarse counts modulo 4.
        ({"fixed": True, "coarse": 6, "fine": 35}, SHIFTED, 10 ** (2 + 0.35)),
        ({}, {"pitch_levels": (60,) * 4}, 220 * 2 ** (10 / 32)),
        ({}, SLOW_SQUARE, 220 * 2 ** -(255 * 255 / 65536)),
        ({}, {**SLOW_SQUARE, "lfo_sync": False}, 220 * 2 ** (255 * 255 / 65536)),
    ],
)
def test_frequency(operator, voice, hertz):
    np.testing.assert_allclose(settled(solo(replace(FULL, **operator), **voice), 57), tone(hertz), atol=1e-6)


def test_transpose_is_another_key():
    scaled = {"break_point": 30, "left_depth": 60, "right_depth": 40, "right_curve": 1, "rate_scaling": 7, "detune": 5}
    operator = Operator(rates=(80, 60, 40, 50), levels=(99, 80, 60, 0), output_level=90, **scaled)
    voice = Voice(operators=(operator,) * 6, algorithm=5, feedback=3)
    other = render(replace(voice, transpose=-24), 84, duration=0.5, key_up=0.3)
    np.testing.assert_array_equal(other, render(voice, 60, duration=0.5, key_up=0.3))


def scaled(side: str, depth: int, curve: int) -> dict[str, int]:
    """An operator 39 steps below full at its break point, key 60."""
    return {"output_level": 60, "break_point": 43, f"{side}_depth": depth, f"{side}_curve": curve}


@pytest.mark.parametrize(
    ("fields", "note", "velocity", "steps"),
    [
        *(({"output_level": level}, 69, 100, level - 99) for level in (20, 57, 98)),
        # Levels of the envelope act in pairs: the level is 28 + v, of which the lowest bit is ignored.
        *(
            ({"output_level": 99, "levels": (99, 99, level, 0)}, 69, 100, steps)
            for level, steps in ((98, 0), (97, -2), (61, -38), (20, -78))
        ),
        # 16 * ((sensitivity * (weight - 239) + 7) >> 3) thirty-seconds of a step; weights are 254, 206, 189 and 240.
        *(
            ({"output_level": 99, "velocity_sensitivity": sensitivity}, 69, velocity, steps / 32)
            for sensitivity, velocity, steps in ((0, 1, 0), (7, 127, 224), (7, 64, -448), (3, 48, -288), (1, 100, 16))
        ),
        # Thirds of an octave from the break point times depth * 329, >> 12 for lines and >> 15 for curves, on which 16
        # thirds weigh 33.
        *(
            (scaled(side, depth, curve), 60 + sign * distance, 100, steps - 39)
            for side, sign in (("left", -1), ("right", 1))
            for distance, depth, curve, steps in (
                (1, 99, 0, 0), (24, 99, 0, -63), (24, 50, 3, 32), (24, 99, 1, -7), (47, 99, 1, -32), (47, 99, 2, 32)
            )
        ),
    ],
)  # fmt: skip
def test_levels(fields, note, velocity, steps):
    sound = settled(solo(Operator(fixed=True, coarse=2, **fields)), note, velocity)
    assert level_db(sound) == pytest.approx(steps * LEVEL_STEP, abs=1e-3)


@pytest.mark.parametrize("sample_rate", [16_000, 96_000])
@pytest.mark.parametrize(("rate_scaling", "quarters"), [(0, 25), (3, 29)])  # 40 * 41 >> 6; 3 * (60 // 3 - 7) >> 3
def test_decay_rate(sample_rate, rate_scaling, quarters):
    operator = Operator(
        rates=(99, 40, 99, 99), levels=(99, 0, 0, 0), rate_scaling=rate_scaling, output_level=99, fixed=True, coarse=3
    )
    sound = render(solo(operator), 60, duration=1, key_up=1, sample_rate=sample_rate)
    found = decibels(sound, sample_rate)
    octaves_per_second = (1 + quarters % 4 / 4) * 2 ** (quarters // 4) * 0.042057
    assert (found[80] - found[10]) / 0.7 == pytest.approx(-octaves_per_second * 20 * math.log10(2), rel=0.01)


@pytest.mark.parametrize("sample_rate", [16_000, 32_000, 44_100, 96_000])
def test_rise_time(sample_rate):
    """A rise starts at 1716/256 octaves and is trivial baseline(17 - E) times as fast as a fall: 10, then 9, ... 2
    times."""
    operator = Operator(rates=(50, 99, 99, 99), output_level=99, fixed=True, coarse=3)
    sound = render(solo(operator), 60, duration=1, key_up=1, sample_rate=sample_rate)
    found = np.flatnonzero(np.abs(sound) > 0.99)[0] / sample_rate
    octaves_per_second = 2**8 * 0.042057  # 50 * 41 >> 6 = 32
    edges = [1716 / 256, *range(7, 16)]
    expected = sum((high - low) / math.floor(17 - (low + high) / 2) for low, high in pairwise(edges))
    assert found == pytest.approx(expected / octaves_per_second, rel=0.02, abs=2 * 64 / sample_rate)


@pytest.mark.parametrize("sample_rate", [24_000, 32_000, 44_100, 48_000])
@pytest.mark.parametrize("hold_clock", ["dexed", "seconds"])
@pytest.mark.parametrize(("rates", "levels"), [((99, 50, 99, 99), (99, 99, 0, 0)), ((7, 99, 99, 99), (0, 99, 99, 0))])
def test_hold(sample_rate, hold_clock, rates, levels):
    """Rate 50 waits 150 ms where the level stays, and rate 7 a twentieth of 20 s where the first level is 0."""
    operator = Operator(rates=rates, levels=levels, output_level=99, fixed=True, coarse=3)
    sound = render(solo(operator), 60, duration=4, key_up=4, sample_rate=sample_rate, hold_clock=hold_clock)
    loud = np.flatnonzero(np.abs(sound) > 0.5) / sample_rate
    found, expected = (loud[-1], 0.15) if levels[0] else (loud[0], 1.0)
    if hold_clock == "dexed":
        expected *= (44_100 / sample_rate) ** 2
    assert found == pytest.approx(expected, abs=4 * 64 / sample_rate)


def test_release_ends_in_exact_silence():
    sound = render(solo(Operator(rates=(99, 99, 99, 70), output_level=99)), 60, duration=2, key_up=0.5)
    assert np.abs(sound[15_500:16_000]).max() > 0.99
    octaves_per_second = 2**11 * 0.042057  # 70 * 41 >> 6 = 44
    last = np.flatnonzero(sound)[-1] / RATE
    assert last == pytest.approx(0.5 + 15 / octaves_per_second, abs=2 * 64 / RATE)


@pytest.mark.parametrize(
    ("duration", "sample_rate", "samples"), [(0.1234567, 44_100, 5444), (1e-9, 32_000, 0), (3.0, 1, 3)]
)
def test_number_of_samples(duration, sample_rate, samples):
    sound = render(Voice(), 60, duration=duration, key_up=0, sample_rate=sample_rate)
    assert (sound.shape, sound.dtype) == ((samples,), np.float32)
    assert np.isfinite(sound).all()


def busy_voice(algorithm: int) -> Voice:
    """A voice that uses every part of the engine."""
    common = {"rates": (90, 50, 40, 60), "levels": (99, 80, 70, 0)}
    operators = tuple(
        Operator(**common, amplitude_sensitivity=number % 4, output_level=90 - number, coarse=number)
        for number in range(6)
    )
    lfo = {"lfo_delay": 20, "pitch_mod_depth": 30, "amplitude_mod_depth": 50}
    return Voice(operators=operators, algorithm=algorithm, feedback=7, pitch_levels=(60, 50, 45, 50), **lfo)


def test_same_samples_every_time_from_threads_and_of_a_longer_sound():
    def sound(algorithm: int, duration: float = 0.3001) -> np.ndarray:
        return render(busy_voice(algorithm), 60, duration=duration, key_up=0.2)

    algorithms = range(1, 33)
    alone = [sound(algorithm) for algorithm in algorithms]
    with ThreadPoolExecutor(2) as pool:
        together = list(pool.map(sound, algorithms))
    for one, other in zip(alone, together, strict=True):
        np.testing.assert_array_equal(one, other)
        assert one.any()
    np.testing.assert_array_equal(alone[3], sound(4, 0.7)[: len(alone[3])])


@given(st.floats(-20, 20), st.floats(-40, 40))
def test_sine_and_power_of_two(cycles, exponent):
    assert sine(cycles) == pytest.approx(math.sin(2 * math.pi * math.remainder(cycles, 1)), abs=5e-11)
    assert sine(-cycles) == -sine(cycles)
    assert power_of_two(exponent) == pytest.approx(2.0**exponent, rel=2e-15)


def test_sine_is_exact_at_its_zeros():
    assert [sine(halves / 2) for halves in range(-6, 7)] == [0.0] * 13


@pytest.mark.parametrize(
    ("name", "values", "rule"),
    [
        ("note", (-1, 128, 60.5), "an integer from 0 to 127"),
        ("velocity", (-1, 128), "an integer from 0 to 127"),
        ("duration", (0, math.inf, math.nan), "a positive number of seconds"),
        ("key_up", (-0.1, math.nan), "0 or more"),
        ("sample_rate", (0, 0.5), "an integer of 1 or more"),
        ("hold_clock", ("hours",), "one of dexed, seconds"),
    ],
)
def test_arguments_are_checked(name, values, rule):
    for value in values:
        with pytest.raises(InputError, match=rf"{name} is {value!r}; it must be .*{rule}"):
            render(Voice(), **({"note": 60, "duration": 0.1, "key_up": 0.05} | {name: value}))
