"""Captioned scenes: which sounds and pairs of labels they have, and time lines in which nothing is cut."""

import dataclasses
from collections import Counter

import numpy as np
import pytest

from audio_compositionality.dataset_builder.data import DatasetError
from audio_compositionality.dataset_builder.scenes.captioned import (
    CROSSFADE,
    LEVEL,
    SHARES,
    SHORTEST,
    Leaf,
    Palette,
    TimedClip,
    TimedRow,
    draw_spans,
    leaves,
    mixed,
    novel_pairs,
    timed,
)
from audio_compositionality.dataset_builder.scenes.mixing import Event, EventSounds
from audio_compositionality.dataset_builder.scenes.sources import dealt
from audio_compositionality.dataset_builder.sounds.entries import Sound
from audio_compositionality.dataset_builder.sounds.splits import UnlabelledError
from audio_compositionality.dataset_builder.sounds.tones import ToneSounds, ToneSpec

from ..sounds.made import MadeRecordings

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


class TestLoops:
    def test_fill_their_shares_with_the_gap_between_them(self):
        row = timed_of(X + Y, sounds_of(0.4, 0.7, loops=(0, 1)), gap=4_000)
        (start, cut), (begin, end) = spans(row)
        assert (start, end, row.fade) == (0, TOTAL, 0)
        assert begin - cut == 4_000
        assert 0.4 <= cut / (TOTAL - 4_000) <= 0.6


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


NOUNS = ToneSpec().nouns


def worded(*said, each=6):
    """Sounds of labels with words."""
    entries = tuple(
        Sound(f"{label}{number}{words}", label, "", f"{place:02x}{number:062x}", words=dict(words))
        for place, (label, *words) in enumerate(said)
        for number in range(each)
    )
    return MadeRecordings(entries, (1.0,) * len(entries), (8_000,) * len(entries))


@pytest.fixture(scope="module")
def tones():
    return Palette(ToneSounds(ToneSpec()))


class TestNovelPairs:
    def test_are_six_of_28_and_every_timbre_is_in_one(self):
        novel = novel_pairs(NOUNS)
        uses = Counter(name for pair in novel for name in pair)
        assert len(novel) == 6
        assert set(uses) == set(NOUNS)
        assert max(uses.values()) == 2
        assert novel_pairs([*NOUNS[::-1], NOUNS[0]]) == novel

    @pytest.mark.parametrize("count", [3, 7, 24])
    def test_of_other_numbers_are_as_even(self, count):
        names = [f"label {number}" for number in range(count)]
        novel = novel_pairs(names)
        assert len(novel) == round(count * (count - 1) / 2 * 6 / 28)
        uses = Counter(name for pair in novel for name in pair)
        assert max(uses.values()) - min(uses[name] for name in names) <= 2

    def test_are_those_of_test_items_alone(self, tones):
        assert {subset: len(pairs) for subset, pairs in tones.pairs("test").items()} == {"seen": 22, "novel": 6}
        assert {subset: len(pairs) for subset, pairs in tones.pairs("validation").items()} == {"seen": 22}
        assert tones.can_train(("bell",))
        for pair in novel_pairs(NOUNS):
            assert not tones.can_train(tuple(pair))


class TestNames:
    def test_of_one_kind_do_not_meet_where_kinds_have_to_differ(self):
        sounds = worded(("dog",), ("puppy",), ("rain",))
        assert len(Palette(sounds).pairs("test")["seen"]) == 2
        palette = Palette(sounds, different_kinds=True)
        assert palette.subset(("dog", "puppy")) == ""
        assert not palette.can_train(("dog", "puppy"))
        assert sum(map(len, palette.pairs("test").values())) == 2

    def test_are_labels_or_who_makes_the_sound(self):
        sounds = worded(("man_speaking",), ("Man singing",), ("rain",))
        as_labels, by_noun = Palette(sounds), Palette(sounds, by_noun=True)
        assert list(as_labels.by_split["test"]) == ["man singing", "man speaking", "rain"]
        assert list(by_noun.by_split["test"]) == ["man", "rain"]
        assert (as_labels.words(0), by_noun.words(0)) == ({}, {"action": "speaking"})
        assert as_labels.leaf(0, ()) == Leaf("man speaking")
        assert by_noun.leaf(0, ()) == Leaf("man", ("speaking",))
        assert by_noun.said("test", "man", "action") == ("singing", "speaking")
        # Both views have the same splits.
        for split in SHARES:
            of_both = [
                {number for numbers in palette.by_split[split].values() for number in numbers}
                for palette in (as_labels, by_noun)
            ]
            assert of_both[0] == of_both[1]

    def test_without_two_sounds_are_left_out(self):
        sounds = worded(("dog",), ("rain",), each=1)
        with pytest.raises(DatasetError, match="made up has 0 labels with two or more recordings"):
            _ = Palette(sounds).by_split
        with pytest.raises(UnlabelledError):
            _ = Palette(worded(("",))).by_split


class TestDraws:
    def test_are_by_words_and_heard_twice(self, tones):
        rng = np.random.default_rng(0)
        for _ in range(200):
            words = tones.draw_words("test", "bell", ("rate", "pitch"), rng)
            assert set(words) == {"rate", "pitch"}
            numbers = tones.numbers("test", "bell", words, 90_000 / 32_000)
            for number in numbers.tolist():
                entry = tones.entries[number]
                assert number in tones.by_split["test"]["bell"]
                assert entry.label == "bell"
                assert words.items() <= entry.words.items()
                # Of no level that is said, it is of the louder half.
                assert entry.level >= -13
                assert entry.loop + 0.25 <= 90_000 / 32_000
                assert tones.leaf(number, ("rate", "pitch")).attributes == (words["rate"], words["pitch"])
        quiet = tones.numbers("test", "bell", {"amplitude": "quiet"})
        assert {tones.entries[number].words["amplitude"] for number in quiet.tolist()} == {"quiet"}

    def test_of_words_that_a_label_lacks_are_none(self):
        palette = Palette(worded(("piano", ("dynamics", "soft")), ("rain",)))
        assert palette.draw_words("test", "rain", palette.attributes, np.random.default_rng(0)) == {}
        assert len(palette.numbers("test", "piano", {"dynamics": "loud"})) == 0
        assert palette.of_entry(0) == {
            "label": "piano",
            "attributes": ["soft"],
            "dimensions": ["dynamics"],
            "entry": palette.entries[0].id,
        }

    def test_are_dealt_evenly_in_an_order_that_is_drawn(self):
        first, second = ([dealt("abcd", number, seed, 99) for number in range(12)] for seed in (0, 1))
        assert set(Counter(first).values()) == {3}
        assert set(first[:4]) == set("abcd")
        assert first != second
