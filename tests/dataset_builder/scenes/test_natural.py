"""Recordings put together: trimmed, crossfaded, repeated, laid over each other equally loud."""

import numpy as np
import pytest

from audio_compositionality.dataset_builder.scenes.expressions import Leaf
from audio_compositionality.dataset_builder.scenes.natural import (
    concatenated,
    fades_of,
    heard,
    looped,
    loudness,
    overlaid,
    place,
    trimmed,
)

RATE = 16_000

X, Y, Z, W = (Leaf(name) for name in "xyzw")


def tone(frequency, seconds=1.0, rate=RATE, amplitude=1.0):
    return amplitude * np.sin(2 * np.pi * frequency * np.arange(round(seconds * rate)) / rate)


def noise(seed, length=RATE):
    return np.random.default_rng(seed).standard_normal(length)


class TestSilence:
    def test_at_both_ends_is_cut_off_and_within_is_kept(self):
        sound = np.concatenate([np.zeros(20_000), noise(0, 9_000), np.zeros(9_000), noise(1, 9_000), np.zeros(30_000)])
        start, stop = trimmed(sound)
        assert 20_000 - 2_048 <= start <= 20_000
        assert 47_000 <= stop <= 47_000 + 2_048

    def test_is_60_db_below_the_loudest(self):
        for decibels, kept in ((-55, True), (-65, False)):
            sound = np.concatenate([noise(0, 8_192), noise(1, 40_960) * 10 ** (decibels / 20)])
            assert (trimmed(sound)[1] > 20_000) == kept

    @pytest.mark.parametrize("length", [0, 1, 100, 2_048, 5_000])
    def test_is_all_there_is_of_nothing(self, length):
        assert trimmed(np.zeros(length)) == (0, 0)
        assert trimmed(np.ones(length)) == (0, length)


class TestCrossfades:
    def test_are_a_tenth_of_the_shorter(self):
        assert fades_of([1_000, 300, 5_000]) == [30, 30]

    def test_add_up_to_the_power_of_either(self):
        rng = np.random.default_rng(0)
        a, b = (rng.standard_normal((400, 1_000)) for _ in range(2))
        joined = np.stack([concatenated([one, other], [200]) for one, other in zip(a, b, strict=True)])
        assert joined.shape == (400, 1_800)
        np.testing.assert_array_equal(joined[:, :800], a[:, :800])
        np.testing.assert_array_equal(joined[:, 1_000:], b[:, 200:])
        power = (joined[:, 800:1_000] ** 2).mean(axis=0).reshape(10, 20).mean(axis=1)
        np.testing.assert_allclose(power, 1, atol=0.06)

    @pytest.mark.parametrize("length", [1_000, 1_001, 1_899, 1_900, 1_901, 12_345])
    def test_repeat_to_exactly_a_length(self, length):
        sound = noise(0, 1_000)
        long = looped(sound, length)
        assert len(long) == length
        np.testing.assert_array_equal(long[:900], sound[:900])
        for start in range(900, length - 900, 900):
            np.testing.assert_array_equal(long[start + 100 : start + 900], sound[100:900])


class TestLoudness:
    def test_is_a_weighted(self):
        # IEC 61672: what a tone loses against 1 kHz.
        at_1000 = loudness(tone(1_000), RATE)
        for frequency, decibels in ((100, -19.1), (250, -8.6), (500, -3.2), (2_000, 1.2), (4_000, 1.0)):
            assert loudness(tone(frequency), RATE) - at_1000 == pytest.approx(decibels, abs=0.4)

    def test_is_of_the_loudest_frame_whatever_the_rate(self):
        short = np.concatenate([np.zeros(RATE), tone(1_000, 0.3), np.zeros(RATE)])
        assert loudness(short, RATE) == pytest.approx(loudness(tone(1_000), RATE), abs=0.1)
        assert loudness(tone(1_000, rate=48_000), 48_000) == pytest.approx(loudness(tone(1_000), RATE), abs=0.1)
        assert loudness(np.zeros(RATE), RATE) == -80

    @pytest.mark.parametrize("count", [2, 3, 4])
    def test_of_overlaid_sounds_is_equal(self, count):
        # Tones far from each other, of very different levels and weights.
        tones = [tone(f, amplitude=a) for f, a in ((200, 3.0), (900, 0.02), (2_600, 0.7), (5_000, 0.1))][:count]
        mixed = overlaid(tones, RATE)
        shares = [2 * np.dot(mixed, one / np.linalg.norm(one)) / np.linalg.norm(one) * one / 2 for one in tones]
        levels = [loudness(share, RATE) for share in shares]
        assert max(levels) - min(levels) < 1.5


class TestPlaces:
    """Slices of 1,000, 2,000, 3,000 and 500 samples."""

    def test_of_a_sequence(self):
        placed = place(X + Y + Z, [1_000, 2_000, 3_000])
        assert (placed.length, placed.fades) == (6_000 - 100 - 200, (100, 200))
        assert heard(placed) == [(0, 950), (950, 2_800), (2_800, 5_700)]

    def test_of_an_overlay(self):
        assert heard(place(X * Y, [1_000, 2_000])) == [(0, 2_000)] * 2
        assert heard(place(X * Y, [1_000, 2_000], 5_000)) == [(0, 5_000)] * 2

    def test_of_a_sequence_beside_what_lasts_longer(self):
        placed = place((X + Y) * Z, [1_000, 500, 3_000])
        (first, second, behind) = heard(placed)
        assert behind == (0, placed.length) == (0, 3_000)
        assert first[0] == 0
        assert second == (first[1], 3_000)
        # Both are longer in the same proportion, and neither is cut.
        assert (first[1] - first[0]) / (second[1] - second[0]) == pytest.approx(2, rel=0.05)

    def test_of_trees_fill_their_time_and_cut_nothing(self):
        rng = np.random.default_rng(0)
        for tree in (X + (Y * Z), (X * Y) + Z + W, ((X + Y) * Z) + W, (X + Y) * (Z + W), X * Y * Z * W):
            for _ in range(20):
                lengths = [int(length) for length in rng.integers(500, 9_000, 4)]
                placed = place(tree, lengths)
                leaves = list(_leaves(placed))
                assert min(part.start for part in leaves) == 0
                assert max(part.start + part.length for part in leaves) == placed.length
                for part, length in zip(leaves, lengths, strict=False):
                    assert part.length >= length - 3


def _leaves(placed):
    if not placed.parts:
        yield placed
    for part in placed.parts:
        yield from _leaves(part)
