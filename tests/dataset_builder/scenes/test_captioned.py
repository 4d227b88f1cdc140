"""Time lines of captioned scenes: loops fill their share, anything else lasts as long as it is; nothing is cut."""

import dataclasses

import numpy as np
import pytest

from audio_compositionality.dataset_builder.scenes.captioned import (
    CROSSFADE,
    LEVEL,
    SHORTEST,
    Leaf,
    TimedClip,
    TimedRow,
    draw_shares,
    draw_spans,
    leaves,
    mixed,
    timed,
)
from audio_compositionality.dataset_builder.scenes.mixing import Event, EventSounds
from audio_compositionality.dataset_builder.sounds.entries import Sound

RATE = 8_000
TOTAL = 10 * RATE

X, Y, Z, W = (Leaf(name) for name in "xyzw")


@dataclasses.dataclass(frozen=True)
class Noises:
    """Noise of some lengths, of which some are loops."""

    seconds: tuple[float, ...]
    loops: tuple[int, ...] = ()
    source: str = "noises"
    sample_rate: int = RATE

    @property
    def entries(self):
        return tuple(
            Sound(f"{place}", f"{place}", "", f"{place:064x}", loop=seconds if place in self.loops else 0.0)
            for place, seconds in enumerate(self.seconds)
        )

    def waveform(self, index):
        return 0.1 * np.random.default_rng(index).standard_normal(round(self.seconds[index] * RATE)), RATE


def sounds_of(*seconds, loops=()):
    return EventSounds(Noises(seconds, loops), RATE, -60.0)


def timed_of(tree, sounds, gap=0, late=(), seed=0):
    rng = np.random.default_rng(seed)
    entries = tuple(range(len(sounds.sounds.seconds)))
    return timed([TimedClip(tree, entries, draw_spans(tree, TOTAL, gap, rng))], gap, late, sounds, rng)


def spans(row):
    return [row.heard(event) for event in row.clips[0]]


def test_shares_are_nearly_even():
    rng = np.random.default_rng(0)
    for _ in range(100):
        one, other = draw_shares(2, rng)
        assert one + other == 1
        assert 0.4 <= one <= 0.6
        more = draw_shares(4, rng)
        assert max(more) / min(more) <= 1.15


class TestLoops:
    def test_fill_their_shares_with_the_gap_between_them(self):
        row = timed_of(X + Y, sounds_of(0.4, 0.7, loops=(0, 1)), gap=4_000)
        (start, cut), (begin, end) = spans(row)
        assert (start, end, row.fade) == (0, TOTAL, 0)
        assert begin - cut == 4_000
        assert 0.4 <= cut / (TOTAL - 4_000) <= 0.6

    @pytest.mark.parametrize("tree", [X + Y + Z, X * Y * Z, (X + Y) * Z, (X * Y) + Z])
    def test_of_a_tree_are_where_its_time_line_has_them(self, tree):
        sounds = sounds_of(0.4, 0.5, 0.6, loops=(0, 1, 2))
        rng = np.random.default_rng(3)
        clip = TimedClip(tree, (0, 1, 2), draw_spans(tree, TOTAL, 800, rng))
        row = timed([clip], 800, (0.0,) * 3, sounds, rng)
        assert tuple((event.start, event.stop) for event in row.clips[0]) == clip.spans

    def test_are_not_read_before_they_are_heard(self, monkeypatch):
        monkeypatch.setattr(Noises, "waveform", None)
        assert timed_of(X + Y, sounds_of(0.4, 0.7, loops=(0, 1))).clips


class TestOtherSounds:
    def test_last_as_long_as_they_are_and_fade_into_each_other_over_a_tenth_of_the_shorter(self):
        row = timed_of(X + Y, sounds_of(2.0, 3.0))
        first, second = row.clips[0]
        assert (first.length, second.length) == (2 * RATE, 3 * RATE)
        assert row.fade == CROSSFADE * 2 * RATE
        assert first.stop - second.start == row.fade
        # Of the crossfade each has half.
        assert row.heard(first)[1] == row.heard(second)[0]

    def test_of_less_than_is_heard_are_repeated_and_of_more_than_their_share_a_part_is_heard(self):
        row = timed_of(X + Y, sounds_of(0.2, 20.0))
        first, second = row.clips[0]
        assert first.length == SHORTEST * RATE
        assert 0.4 * TOTAL <= second.length <= 0.6 * TOTAL
        starts = {timed_of(X + Y, sounds_of(0.2, 20.0), seed=seed).clips[0][1].offset for seed in range(5)}
        assert len(starts) > 1
        assert max(starts) + second.length <= 20 * RATE

    def test_at_one_time_last_as_long_as_the_longest(self):
        row = timed_of(X * Y, sounds_of(1.5, 4.0), late=(0.0, 1.0))
        assert [(event.start, event.stop) for event in row.clips[0]] == [(0, 4 * RATE), (RATE // 2, 4 * RATE)]

    def test_beside_what_lasts_longer_are_repeated_in_proportion(self):
        row = timed_of((X + Y) * Z, sounds_of(1.2, 1.6, 4.9))
        first, second, behind = row.clips[0]
        assert (behind.start, behind.stop) == (0, round(4.9 * RATE))
        assert first.start == 0
        assert second.stop == behind.stop
        assert first.length / second.length == pytest.approx(1.2 / 1.6, rel=0.02)
        assert first.stop - second.start == row.fade

    def test_of_trees_fill_their_time_and_are_never_cut(self):
        rng = np.random.default_rng(0)
        for tree in (X + (Y * Z), (X * Y) + Z + W, ((X + Y) * Z) + W, (X + Y) * (Z + W), X * Y * Z * W):
            for seed in range(5):
                sounds = sounds_of(*rng.uniform(0.2, 2.4, len(leaves(tree))))
                row = timed_of(tree, sounds, late=(0.0,) * 4, seed=seed)
                assert min(event.start for event in row.clips[0]) == 0
                assert max(event.stop for event in row.clips[0]) <= TOTAL
                for event in row.clips[0]:
                    natural = max(sounds.length(event.entry), SHORTEST * RATE)
                    assert event.length >= natural - 5

    def test_soft_parts_of_long_sounds_are_avoided(self):
        class Rising(Noises):
            def waveform(self, index):
                samples, rate = super().waveform(index)
                return samples * np.where(np.arange(len(samples)) < len(samples) // 2, 0.01, 1), rate

        sounds = EventSounds(Rising((2.0, 20.0)), RATE, -60.0)
        for seed in range(5):
            event = timed_of(X + Y, sounds, seed=seed).clips[0][1]
            assert event.offset + event.length > 10 * RATE + RATE // 2


class TestClipsOfARow:
    def test_have_the_same_parts_of_the_same_sounds_and_last_equally_long(self):
        sounds = sounds_of(1.5, 20.0)
        rng = np.random.default_rng(1)
        of_both = draw_spans(X + Y, TOTAL, 0, rng)
        clips = [TimedClip(X + Y, (0, 1), of_both), TimedClip(X + Y, (1, 0), of_both[::-1]),
                 TimedClip(X * Y, (0, 1), of_both)]  # fmt: skip
        row = timed(clips, 0, (0.2, 0.6), sounds, rng)
        (first, second), (again, moved), both = row.clips
        assert first.moved(0) == moved.moved(0)
        assert second.moved(0) == again.moved(0)
        assert len({max(event.stop for event in events) for events in row.clips}) == 1
        assert [event.start for event in both] == [round(0.2 * RATE / 2), round(0.6 * RATE / 2)]

    def test_are_mixed_at_one_level_under_one_gain(self):
        sounds = sounds_of(0.5, 0.5, loops=(0, 1))
        events = (Event(0, 0, TOTAL), Event(1, 0, TOTAL))
        one, both = mixed(TimedRow(((events[0],), events), 0), sounds, TOTAL)
        assert np.sqrt(np.mean(np.square(one / 2**15))) == pytest.approx(LEVEL, rel=0.01)
        (other,) = mixed(TimedRow(((events[1],),), 0), sounds, TOTAL)
        assert (both == one + other).all()

    def test_rise_and_fall_so_that_powers_of_neighbours_add_up(self):
        sounds = sounds_of(0.5, 0.5, loops=(0, 1))
        fade = RATE
        whole = mixed(TimedRow(((Event(0, 0, TOTAL),),), 0), sounds, TOTAL)[0].astype(float)
        first, second = (
            mixed(TimedRow(((event,),), fade), sounds, TOTAL)[0].astype(float)
            for event in (Event(0, 0, TOTAL // 2), Event(0, TOTAL // 2 - fade, TOTAL))
        )
        joint = slice(TOTAL // 2 - fade, TOTAL // 2)
        powers = np.mean(first[joint] ** 2) + np.mean(second[joint] ** 2)
        assert powers == pytest.approx(np.mean(whole**2), rel=0.1)
        assert not first[TOTAL // 2 :].any()
