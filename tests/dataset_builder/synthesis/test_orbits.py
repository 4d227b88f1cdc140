"""Levels, lengths and the common gain of a clip and its copies."""

import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial

import numpy as np
import pytest

from audio_compositionality.dataset_builder.data import DatasetError
from audio_compositionality.dataset_builder.synthesis.orbits import (
    Copy,
    RecentOrbits,
    base_length,
    reach_of,
    render_orbit,
)
from audio_compositionality.dataset_builder.synthesis.transforms import load_transform
from audio_compositionality.dataset_builder.synthesis.transforms.base import ParameterRange, Transform

RATE = 16_000
FULL = 32_766


@dataclass(frozen=True, kw_only=True)
class Faster(Transform):
    """Every second, third … sample: reads more than it gives."""

    def apply(self, waveform, sample_rate, parameter, rng):
        return waveform[:: round(parameter)]

    def reading(self, parameter):
        return parameter


FASTER = Faster(name="faster", unit="", meaning="", low=1, high=3)


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


def test_the_headroom_is_the_gain_of_all_whatever_their_copies():
    quiet, more = (render_orbit(tone(), RATE, RATE, [copy("gain", -3), *rest], 16) for rest in ([], [copy("noise", 0)]))
    assert quiet[0].max() == pytest.approx(0.5 * 10 ** (-16 / 20) * FULL, abs=1)
    assert all((one == other).all() for one, other in zip(quiet, more, strict=False))


def test_one_gain_lowers_them_all_where_one_would_pass_full_scale():
    base, softer, noisy = render_orbit(tone(), RATE, RATE, [copy("gain", -3), copy("noise", -20)], 6)
    assert np.abs(noisy.astype(int)).max() == pytest.approx(FULL, abs=1)
    assert base.max() < 0.5 * FULL * 0.5
    assert root_mean_square(softer) / root_mean_square(base) == pytest.approx(10 ** (-3 / 20), rel=1e-3)
    assert np.dot(noisy.astype(float) - base, base.astype(float)) / np.sum(base.astype(float) ** 2) == pytest.approx(
        0, abs=0.2
    )


def test_a_clip_is_the_middle_and_faster_copies_read_more_of_it():
    ramp = np.arange(1, 3 * 2_000 + 3) / 20_000
    base, faster = render_orbit(ramp, 2_000, RATE, [copy("faster", 3)], 0)
    assert base == pytest.approx(ramp[2_001:4_001] * FULL, abs=0.51)
    read = ramp[::3][:2_000]
    levelled = root_mean_square(ramp[2_001:4_001]) / root_mean_square(read)
    assert faster == pytest.approx(read * levelled * FULL, abs=0.51 + 3 * FULL / 20_000)


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
    with pytest.raises(DatasetError, match="faster at 2 leaves nothing of it"):
        render_orbit(beats, RATE // 4, RATE, [copy("faster", 2)], 16)


def test_an_orbit_is_rendered_once_for_several_threads():
    counts = []
    gate = threading.Event()

    def render(number):
        gate.wait(5)
        counts.append(number)
        return [np.full(1, number, np.int16)]

    orbits = RecentOrbits(render)
    with ThreadPoolExecutor(8) as pool:
        clips = [pool.submit(orbits.__getitem__, place // 8) for place in range(16)]
        gate.set()
        assert [clip.result()[0][0] for clip in clips] == [0] * 8 + [1] * 8
    assert sorted(counts) == [0, 1]
    for number in range(2, 6):
        orbits[number]
    assert orbits[0][0] == 0
    assert counts.count(0) == 2


def test_an_error_is_raised_again_for_each_clip():
    def render(number):
        raise DatasetError("is silent")

    orbits = RecentOrbits(render)
    for _ in range(2):
        with pytest.raises(DatasetError, match="is silent"):
            orbits[0]
