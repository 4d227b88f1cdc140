"""Clips that are transformed: scenes, and levels, lengths and the common gain of a clip and its copies."""

import threading
from concurrent.futures import ThreadPoolExecutor
from functools import partial

import numpy as np
import pytest

from audio_compositionality.dataset_builder.data import DatasetError
from audio_compositionality.dataset_builder.scenes.bases import (
    Copy,
    RecentOrbits,
    base_length,
    reach_of,
    render_candidates,
    render_orbit,
    with_energy,
)
from audio_compositionality.dataset_builder.scenes.effects import ParameterRange, Transform, load_transform

RATE = 16_000
FULL = 32_766


def every_so_many(waveform, sample_rate, parameter, rng):
    return waveform[:: round(parameter)]


FASTER = Transform(name="faster", unit="", meaning="", low=1, high=3, apply=every_so_many, reading=float)
"""Every second, third … sample: reads more than it gives."""


def copy(name, parameter):
    transform = FASTER if name == "faster" else load_transform(name)
    return Copy(transform, parameter, partial(np.random.default_rng, 0))


def tone(seconds=1.0, amplitude=0.5):
    return amplitude * np.sin(2 * np.pi * 440 * np.arange(round(seconds * RATE)) / RATE)


def root_mean_square(clip):
    return np.sqrt(np.mean(clip.astype(float) ** 2))


def test_what_keeps_its_level_has_that_of_the_clip():
    copies = [copy("lowpass", 500), copy("reverb", 2), copy("faster", 2), copy("gain", -12), copy("noise", 0)]
    base, *changed = render_orbit(tone(4), RATE, RATE, copies, 16)
    levels = [root_mean_square(clip) / root_mean_square(base) for clip in changed]
    assert levels == pytest.approx([1, 1, 1, 10 ** (-12 / 20), np.sqrt(2)], rel=0.01)
    assert {clip.dtype for clip in (base, *changed)} == {np.dtype(np.int16)}
    assert {len(clip) for clip in (base, *changed)} == {RATE}


def test_one_gain_lowers_them_all_where_one_would_pass_full_scale():
    base, softer, noisy = render_orbit(tone(), RATE, RATE, [copy("gain", -3), copy("noise", -20)], 6)
    assert np.abs(noisy.astype(int)).max() == pytest.approx(FULL, abs=1)
    assert base.max() < 0.5 * FULL * 0.5
    assert root_mean_square(softer) / root_mean_square(base) == pytest.approx(10 ** (-3 / 20), rel=1e-3)
    assert np.dot(noisy.astype(float) - base, base.astype(float)) / np.sum(base.astype(float) ** 2) == pytest.approx(
        0, abs=0.2
    )


def test_lengths_leave_room_for_what_is_read():
    assert base_length(tone(1), RATE, 10, 1) == RATE
    assert base_length(tone(20), RATE, 10, 1) == 10 * RATE
    assert base_length(tone(20.1), RATE, 10, 2) == 10 * RATE
    assert base_length(tone(1), RATE, 10, 2) == RATE // 2 - 1
    with pytest.raises(DatasetError, match=r"lasts 0\.150 s; it needs 0\.2 s"):
        base_length(tone(0.15), RATE, 10, 2)
    assert reach_of([(load_transform("noise"), ParameterRange(0, 1)), (FASTER, ParameterRange(1, 3))]) == 3
    assert reach_of([(load_transform("stretch"), ParameterRange(0.5, 0.9))]) == 1


def test_silence_is_refused():
    with pytest.raises(DatasetError, match="is silent in its middle"):
        render_orbit(np.zeros(RATE), RATE, RATE, [], 16)
    between = np.concatenate([np.zeros(RATE), tone(0.5), np.zeros(RATE)])
    assert len(render_orbit(between, RATE // 2, RATE, [], 16)) == 1
    beats = np.tile([1.0, 0.0], RATE // 2)
    with pytest.raises(DatasetError, match="faster at 2 makes it silent"):
        render_orbit(beats, RATE // 4, RATE, [copy("faster", 2)], 16)


def test_an_orbit_is_rendered_once_for_several_threads():
    counts = []
    gate = threading.Event()

    def render(number):
        gate.wait(5)
        counts.append(number)
        return [np.full(1, number, np.int16)]

    orbits = RecentOrbits()
    with ThreadPoolExecutor(8) as pool:
        clips = [pool.submit(orbits.clip, place // 8, 0, partial(render, place // 8)) for place in range(16)]
        gate.set()
        assert [clip.result()[0][0] for clip in clips] == [0] * 8 + [1] * 8
    assert sorted(counts) == [0, 1]
    for number in (2, 3, 4, 5, 0):
        assert orbits.clip(number, 0, partial(render, number))[0][0] == number
    assert counts.count(0) == 2


class TestCandidates:
    def test_have_exactly_the_energy_of_the_base(self):
        base = (0.01 * FULL * tone(1, 1)).astype(np.int16)
        rng = np.random.default_rng(0)
        decaying = tone() * np.exp(-np.arange(RATE) / RATE)
        clips = render_candidates([decaying, 0.01 * rng.standard_normal(RATE)], RATE, base, inverted=False)
        energies = {int(np.square(clip.astype(np.int64)).sum()) for clip in (base, *clips)}
        assert len(energies) == 1
        assert {clip.dtype for clip in clips} == {np.dtype(np.int16)}

    def test_have_inverted_polarity_on_request_and_nothing_above_the_highest(self):
        rng = np.random.default_rng(0)
        base = (0.1 * FULL * tone(1, 1)).astype(np.int16)
        sounds = [tone(), rng.standard_normal(RATE)]
        plain, turned = (render_candidates(sounds, RATE, base, inverted=inverted) for inverted in (False, True))
        assert np.corrcoef(plain[0], tone())[0, 1] > 0.999
        for one, other in zip(plain, turned, strict=True):
            assert (one == -other).all()
        power = np.square(np.abs(np.fft.rfft(plain[1])))
        assert power[7_300:].mean() < 1e-5 * power[:6_400].mean()

    def test_silence_is_refused(self):
        with pytest.raises(DatasetError, match="compared with a silent clip"):
            render_candidates([tone(), np.zeros(RATE)], RATE, np.ones(RATE, np.int16), inverted=False)

    @pytest.mark.parametrize("missing", [-5_000, 0, 1, 123_457])
    def test_energy_is_met_by_steps_of_one(self, missing):
        samples = np.rint(300 * np.random.default_rng(1).standard_normal(4_000)).astype(np.int64)
        adjusted = with_energy(samples, int(np.square(samples).sum()) + missing)
        assert np.square(adjusted).sum() - np.square(samples).sum() == missing
        assert np.abs(adjusted - samples).max() <= 1

    def test_energy_that_cannot_be_met_is_left_near(self):
        assert with_energy(np.array([5, -5]), 52).tolist() == [5, -5]
