"""Recordings as sources of clips: what is heard of them, through which channel, how loud, in exact samples."""

import numpy as np
import pytest

from audio_compositionality.dataset_builder.data import DatasetError
from audio_compositionality.dataset_builder.scenes.pool import (
    HIGHEST,
    KNOTS,
    LOWEST,
    PAUSES,
    equalise,
    lay_out,
    loudest_part,
    mix_together,
    place_recording,
)

RATE = 8_000


def noise(length, seed=0):
    return np.random.default_rng(seed).standard_normal(length)


class TestLayout:
    @pytest.mark.parametrize("phase", [0.0, 0.4, 0.999])
    def test_a_short_recording_is_repeated_from_its_phase(self, phase):
        recording = noise(700)
        clip = lay_out(recording, 4_000, 300, phase)
        start = int(phase * 1_000)
        period = np.concatenate([recording, np.zeros(300)])
        assert np.array_equal(clip[:1_000], np.roll(period, -start))
        assert np.array_equal(clip[1_000:], clip[:-1_000])

    @pytest.mark.parametrize(("phase", "start"), [(0.0, 7_000), (0.5, 8_000), (0.9999, 9_000)])
    def test_a_long_one_gives_a_window_with_its_loudest_part(self, phase, start):
        recording = 0.01 * noise(20_000)
        recording[9_000:11_000] *= 100
        assert loudest_part(recording, 2_000) in range(8_970, 9_001)
        clip = lay_out(recording, 4_000, 100, phase)
        (there,) = [n for n in range(16_001) if np.array_equal(recording[n : n + 4_000], clip)]
        assert there == pytest.approx(start, abs=30)

    def test_one_whose_loudest_part_is_at_an_end_is_heard_round_the_pause(self):
        recording = 0.01 * noise(20_000)
        recording[:2_000] *= 100
        clip = lay_out(recording, 4_000, 300, 0.0)
        assert np.array_equal(clip[2_000:], recording[:2_000])
        assert not clip[1_700:2_000].any()
        assert np.array_equal(clip[:1_700], recording[-1_700:])

    @pytest.mark.parametrize("length", [100, 999, 1_999, 2_500, 3_700, 3_999, 4_000, 4_001, 9_000])
    def test_the_loudest_part_is_always_heard_and_never_in_the_same_place(self, length):
        recording = 1e-3 * noise(length)
        recording[length // 3] = 5
        places = set()
        for seed in range(20):
            rng = np.random.default_rng(seed)
            clip = lay_out(recording, 4_000, int(RATE * rng.uniform(*PAUSES)), rng.random())
            assert len(clip) == 4_000
            assert clip.max() == 5
            places.add(int(clip.argmax()))
        assert len(places) > 15

    def test_of_equal_parts_the_first_is_the_loudest(self):
        period = np.sin(2 * np.pi * np.arange(500) / 500)
        wobbling = np.tile(period, 20) * (1 + 1e-9 * noise(10_000))
        assert loudest_part(wobbling, 1_000) == loudest_part(wobbling[::-1], 1_000) == 0


class TestFilter:
    def test_its_gain_runs_smoothly_through_the_knots(self):
        gains = np.random.default_rng(1).normal(0, 4, KNOTS)
        pulse = np.zeros(32_000)
        pulse[16_000] = 1
        spectrum = 20 * np.log10(np.abs(np.fft.rfft(equalise(pulse, 16_000, gains))))
        frequencies = np.fft.rfftfreq(32_000, 1 / 16_000)
        knots = np.geomspace(LOWEST, HIGHEST, KNOTS)
        assert np.interp(knots, frequencies, spectrum) == pytest.approx(gains, abs=0.05)
        assert spectrum[frequencies < 40] == pytest.approx(gains[0], abs=0.1)
        within = frequencies > LOWEST
        assert spectrum[within].max() < gains.max() + 0.05
        assert spectrum[within].min() > gains.min() - 0.05
        # Half a cosine is steepest in its middle.
        steepest = np.pi / 2 * np.abs(np.diff(gains)).max() / np.log(knots[1] / knots[0])
        slopes = np.diff(spectrum[within]) / np.diff(np.log(frequencies[within]))
        assert np.abs(slopes).max() < 1.05 * steepest

    def test_it_keeps_the_phase_and_does_not_run_from_the_end_into_the_beginning(self):
        pulse = np.zeros(8_000)
        pulse[-1] = 1
        clip = equalise(pulse, 16_000, np.linspace(-8, 8, KNOTS))
        assert np.abs(clip).argmax() == 7_999
        assert np.abs(clip[:1_000]).max() < 1e-6

    def test_no_decibels_are_no_filter(self):
        clip = noise(500)
        assert equalise(clip, RATE, np.zeros(KNOTS)) is clip


class TestPlacing:
    def test_levels_are_one_whatever_the_recording(self):
        for seed, (length, rate, scale) in enumerate(
            [(1_000, 8_000, 1e-3), (44_100, 44_100, 0.9), (90_000, 16_000, 3)]
        ):
            clip = place_recording(scale * noise(length), rate, 4_000, RATE, 4.0, np.random.default_rng(seed))
            assert clip.shape == (4_000,)
            assert np.sqrt(np.mean(clip**2)) == pytest.approx(1, abs=1e-12)

    def test_the_same_numbers_are_drawn_for_all(self):
        states = set()
        for length, eq in ((500, 0.0), (20_000, 4.0)):
            rng = np.random.default_rng(0)
            place_recording(noise(length), RATE, 4_000, RATE, eq, rng)
            states.add(rng.random())
        assert len(states) == 1

    def test_its_polarity_is_either_as_often(self):
        offset = np.ones(4_000) + 0.1 * noise(4_000)
        signs = [
            np.sign(place_recording(offset, RATE, 4_000, RATE, 0.0, np.random.default_rng(seed)).sum())
            for seed in range(400)
        ]
        # Three standard errors of 400 throws of a coin.
        assert abs(np.mean(signs)) < 3 / 20

    def test_a_lower_rate_is_resampled(self):
        times = np.arange(22_050) / 22_050
        clip = place_recording(np.sin(2 * np.pi * 440 * times), 22_050, 8_000, 8_000, 0.0, np.random.default_rng(0))
        assert np.abs(np.fft.rfft(clip)).argmax() == 440

    @pytest.mark.parametrize(("scale", "heard"), [(0, "no sound at all"), (1e-5, "100 dB below full scale")])
    def test_silence_is_refused(self, scale, heard):
        with pytest.raises(DatasetError, match=rf"^is silent where it is loudest \({heard}\): leave it out"):
            place_recording(scale * noise(50_000), RATE, 4_000, RATE, 4.0, np.random.default_rng(0))

    def test_sources_have_one_level_together(self):
        clip = mix_together([noise(500, 1), noise(500, 2), noise(500, 3)])
        assert np.sqrt(np.mean(clip**2)) == pytest.approx(1, abs=1e-12)
        with pytest.raises(DatasetError, match="cancel each other"):
            mix_together([noise(500), -noise(500)])
