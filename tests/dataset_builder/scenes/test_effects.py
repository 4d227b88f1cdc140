"""What each transform does, measured by other means than it is made with."""

import sys
from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import kurtosis

from audio_compositionality.dataset_builder.scenes.effects import (
    ParameterRange,
    list_transforms,
    load_transform,
    register_transform,
)
from audio_compositionality.dataset_builder.scenes.effects import _registry as registry
from audio_compositionality.support.errors import InputError

RATE = 16_000


def apply(name, waveform, parameter, *, rate=RATE, seed=0):
    return load_transform(name).apply(waveform, rate, parameter, np.random.default_rng(seed))


def sine(frequency, seconds=2.0, rate=RATE):
    return 0.4 * np.sin(2 * np.pi * frequency * np.arange(round(seconds * rate)) / rate)


def impulse(samples):
    return np.eye(1, samples)[0]


def decibels(ratio):
    return 20 * np.log10(ratio)


def test_there_are_six():
    assert list_transforms() == ("gain", "lowpass", "noise", "pitch", "reverb", "stretch")
    assert [name for name in list_transforms() if load_transform(name).natural_only] == ["pitch", "stretch"]
    assert [name for name in list_transforms() if not load_transform(name).keeps_level] == ["gain", "noise"]
    with pytest.raises(InputError, match="unknown transform 'revreb'; did you mean 'reverb'"):
        load_transform("revreb")


def test_one_more_can_be_registered(monkeypatch):
    monkeypatch.setattr(registry, "_added", {})
    louder = replace(load_transform("gain"), name="louder", low=0, high=6)
    register_transform(louder)
    assert load_transform("louder") is louder


@pytest.mark.parametrize("name", list_transforms())
def test_the_same_bits_twice_and_what_is_given_is_left_alone(name):
    transform = load_transform(name)
    waveform = np.random.default_rng(1).standard_normal(8_000)
    before = waveform.copy()
    parameter = transform.low + 0.4 * (transform.high - transform.low)
    first, again = (apply(name, waveform, parameter) for _ in range(2))
    assert first.dtype == np.float64
    assert (first == again).all()
    assert (waveform == before).all()
    assert len(first) == pytest.approx(len(waveform) / transform.reading(parameter), abs=0.5)


def test_gain_is_exact():
    waveform = sine(440)
    for parameter in (-24.0, -6.0206, 0.0):
        changed = apply("gain", waveform, parameter)
        assert decibels(np.abs(changed).max() / np.abs(waveform).max()) == pytest.approx(parameter, abs=1e-12)
        assert np.corrcoef(changed, waveform)[0, 1] == pytest.approx(1, abs=1e-12)


@pytest.mark.parametrize("parameter", [-10, 0.5, 40])
def test_noise_has_its_ratio_to_the_whole_clip(parameter):
    waveform = np.concatenate([sine(440), np.zeros(3 * RATE)])
    noise = apply("noise", waveform, parameter) - waveform
    ratio = 10 * np.log10(np.sum(waveform**2) / np.sum(noise**2))
    assert ratio == pytest.approx(parameter, abs=1e-9)
    # In the silence as well, without repeats.
    parts = noise.reshape(5, RATE)
    assert np.var(parts, axis=1) == pytest.approx([np.var(noise)] * 5, rel=0.05)
    assert np.abs(np.corrcoef(parts) - np.eye(5)).max() < 0.05


def test_noise_is_white_and_gaussian():
    waveform = sine(440, 10)
    noise = apply("noise", waveform, 0) - waveform
    power = np.abs(np.fft.rfft(noise)[1:]) ** 2
    bands = power.reshape(16, -1).mean(axis=1)
    # 5,000 independent exponential values a band: 1.4 % of spread.
    assert bands == pytest.approx([power.mean()] * 16, rel=0.07)
    assert abs(kurtosis(noise)) < 0.05


@pytest.mark.parametrize(("rate", "cutoff"), [(32_000, 500), (32_000, 8_000), (16_000, 7_200), (8_000, 2_000)])
def test_the_low_pass_has_the_response_of_its_theory(rate, cutoff):
    samples = rate
    response = np.abs(np.fft.rfft(apply("lowpass", impulse(samples), cutoff, rate=rate)))
    assert decibels(response[cutoff]) == pytest.approx(10 * np.log10(0.5), abs=1e-6)
    # A Butterworth filter through the bilinear transform: the tangent is the warped frequency.
    warped = np.tan(np.pi * np.arange(samples // 2) / rate) / np.tan(np.pi * cutoff / rate)
    assert response[: samples // 2] == pytest.approx(1 / np.sqrt(1 + warped**8), abs=1e-6)


def test_cutoffs_stay_below_half_the_rate():
    transform = load_transform("lowpass")
    span = ParameterRange(transform.low, transform.high, "log")
    assert transform.limits(32_000, span) == span
    assert transform.limits(16_000, span).high == 7_200
    assert load_transform("reverb").limits(8_000, ParameterRange(0.1, 3)) == ParameterRange(0.1, 3)


@pytest.mark.parametrize("seconds", [0.1, 3.0])
def test_reverb_decays_by_60_db_in_its_time(seconds):
    rate = 32_000
    response = apply("reverb", impulse(round(1.2 * seconds * rate)), seconds, rate=rate)
    direct, tail = response[0], response[1:]
    assert direct == pytest.approx(1, abs=1e-9)
    assert np.sum(tail**2) == pytest.approx(1, abs=1e-9)
    # Schroeder: the energy that is still to come, a line in decibels; its slope from -5 to -35 dB (T30, ISO 3382).
    left = 10 * np.log10(np.cumsum(tail[::-1] ** 2)[::-1].clip(1e-12))
    places = np.flatnonzero((left <= -5) & (left >= -35))
    slope = np.polyfit(places / rate, left[places], 1)[0]
    assert -60 / slope == pytest.approx(seconds, rel=0.05)


def test_reverb_is_cut_where_the_clip_ends_and_is_linear():
    one, other = sine(440, 1), sine(700, 1)
    together = apply("reverb", one + other, 2)
    assert len(together) == len(one)
    assert together == pytest.approx(apply("reverb", one, 2) + apply("reverb", other, 2), abs=1e-9)


class TestVocoder:
    @pytest.fixture(autouse=True)
    def _installed(self):
        pytest.importorskip("python_stretch")

    @pytest.mark.parametrize("semitones", [-12, 4.4])
    def test_pitch_moves_a_sine_by_its_semitones(self, semitones):
        frequency = peak(apply("pitch", sine(500), semitones))
        assert 12 * np.log2(frequency / 500) == pytest.approx(semitones, abs=0.05)

    @pytest.mark.parametrize("speed", [0.5, 1.9])
    def test_stretch_leaves_a_sine_where_it_was(self, speed):
        changed = apply("stretch", sine(500, 3), speed)
        assert peak(changed) == pytest.approx(500, rel=0.001)

    @pytest.mark.parametrize("speed", [0.83, 2])
    def test_stretch_has_clicks_at_its_rate_in_its_length(self, speed):
        clicks = np.zeros(4 * RATE)
        clicks[4_000::8_000] = 1
        changed = apply("stretch", clicks, speed)
        assert len(changed) == round(4 * RATE / speed)
        energy = np.convolve(changed**2, np.ones(801), "same")
        period = 8_000 / speed
        # The energy around each place where a click has to be, against that around all others.
        places = np.round(np.arange(8) * period + period / 2).astype(int)
        peaks = [place + np.argmax(energy[place - 1_500 : place + 1_500]) - 1_500 for place in places]
        assert np.diff(peaks) == pytest.approx([period] * 7, rel=0.1)
        assert np.mean(np.diff(peaks)) == pytest.approx(period, rel=0.01)
        near = sum(np.sum(changed[place - 1_500 : place + 1_500] ** 2) for place in places)
        assert near > 0.95 * np.sum(changed**2)


@pytest.mark.parametrize("name", ["pitch", "stretch"])
def test_without_the_package_it_is_said_how_to_get_it(name, monkeypatch):
    monkeypatch.setitem(sys.modules, "python_stretch", None)
    monkeypatch.setitem(sys.modules, "python_stretch.Signalsmith", None)
    with pytest.raises(InputError, match=r"pip install 'audio-compositionality\[transforms\]'"):
        load_transform(name).check_available()
    load_transform("reverb").check_available()


def test_a_range_is_walked_on_its_scale():
    assert ParameterRange(-24, 0).value(0.25) == -18
    assert ParameterRange(500, 8_000, "log").value(0.5) == pytest.approx(2_000)
    assert ParameterRange(0.5, 2, "log").value(0.5) == pytest.approx(1)


def peak(waveform):
    middle = waveform[len(waveform) // 4 : -len(waveform) // 4]
    spectrum = np.abs(np.fft.rfft(middle * np.hanning(len(middle)), 2**20))
    return spectrum.argmax() * RATE / 2**20
