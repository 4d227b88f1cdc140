"""The engine against truths worked out by hand: sines, Bessel functions, feedback, holds and the release.

Levels, rates, scaling and frequencies are compared with another implementation in `test_dx7_oracle`.
"""

import math
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import jv

from audio_compositionality.dataset_builder.sounds.dx7_engine import power_of_two, render, sine
from audio_compositionality.dataset_builder.sounds.dx7_voice import Operator, Voice
from audio_compositionality.support.errors import InputError

RATE = 32_000
FULL = Operator(output_level=99)


def solo(operator: Operator = FULL, **fields) -> Voice:
    """A voice in which operator 1 sounds alone."""
    return Voice(operators=(operator, *[Operator()] * 5), algorithm=32, **fields)


def settled(voice: Voice, note: int = 69, velocity: int = 100, sample_rate: int = RATE) -> np.ndarray:
    """The second second of a held note, in which the fastest envelopes rest."""
    sound = render(voice, note, velocity, duration=2, key_up=2, sample_rate=sample_rate)
    return sound[sample_rate:].astype(np.float64)


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


def test_transpose_is_another_key():
    scaled = {"break_point": 30, "left_depth": 60, "right_depth": 40, "right_curve": 1, "rate_scaling": 7, "detune": 5}
    operator = Operator(rates=(80, 60, 40, 50), levels=(99, 80, 60, 0), output_level=90, **scaled)
    voice = Voice(operators=(operator,) * 6, algorithm=5, feedback=3)
    other = render(replace(voice, transpose=-24), 84, duration=0.5, key_up=0.3)
    np.testing.assert_array_equal(other, render(voice, 60, duration=0.5, key_up=0.3))


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
