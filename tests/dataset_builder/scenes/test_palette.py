"""Sounds by labels and words: which labels may meet, which never do in training, and draws among them."""

from collections import Counter

import numpy as np
import pytest

from audio_compositionality.dataset_builder.data import DatasetError
from audio_compositionality.dataset_builder.scenes.captioned import SHARES, Leaf, Palette, draw_until, novel_pairs
from audio_compositionality.dataset_builder.scenes.sources import dealt
from audio_compositionality.dataset_builder.sounds.entries import Sound
from audio_compositionality.dataset_builder.sounds.splits import UnlabelledError
from audio_compositionality.dataset_builder.sounds.tones import ToneSounds, ToneSpec

from ..sounds.made import MadeRecordings

NOUNS = ToneSpec().nouns


def sounds_of(*said, each=6):
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

    @pytest.mark.parametrize("count", [3, 6, 7, 12, 24, 60])
    def test_of_other_numbers_are_as_even(self, count):
        names = [f"label {number}" for number in range(count)]
        novel = novel_pairs(names)
        assert len(novel) == round(count * (count - 1) / 2 * 6 / 28)
        uses = Counter(name for pair in novel for name in pair)
        assert max(uses.values()) - min(uses[name] for name in names) <= 2

    def test_of_two_names_there_are_none(self):
        assert novel_pairs("ab") == novel_pairs("") == frozenset()

    def test_are_those_of_test_items_alone(self, tones):
        assert {subset: len(pairs) for subset, pairs in tones.pairs("test").items()} == {"seen": 22, "novel": 6}
        assert {subset: len(pairs) for subset, pairs in tones.pairs("validation").items()} == {"seen": 22}
        assert tones.can_train(("bell",))
        for pair in novel_pairs(NOUNS):
            assert not tones.can_train(tuple(pair))


class TestNames:
    def test_of_one_kind_do_not_meet_where_kinds_have_to_differ(self):
        sounds = sounds_of(("dog",), ("puppy",), ("rain",))
        assert len(Palette(sounds).pairs("test")["seen"]) == 2
        palette = Palette(sounds, different_kinds=True)
        assert palette.subset(("dog", "puppy")) == ""
        assert not palette.can_train(("dog", "puppy"))
        assert sum(map(len, palette.pairs("test").values())) == 2

    def test_are_labels_or_who_makes_the_sound(self):
        sounds = sounds_of(("man_speaking",), ("Man singing",), ("rain",))
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
        sounds = sounds_of(("dog",), ("rain",), each=1)
        with pytest.raises(DatasetError, match="made up has 0 labels of two recordings or more"):
            _ = Palette(sounds).by_split
        with pytest.raises(UnlabelledError):
            _ = Palette(sounds_of(("",))).by_split


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
        palette = Palette(sounds_of(("piano", ("dynamics", "soft")), ("rain",)))
        assert palette.draw_words("test", "rain", palette.attributes, np.random.default_rng(0)) == {}
        assert len(palette.numbers("test", "piano", {"dynamics": "loud"})) == 0
        assert palette.of_entry(0) == {
            "label": "piano",
            "attributes": ["soft"],
            "dimensions": ["dynamics"],
            "entry": palette.entries[0].id,
        }

    def test_exchange_exact_values(self, tones):
        numbers = {entry.id: number for number, entry in enumerate(tones.entries)}
        split_of = {n: split for split, of in tones.by_split.items() for every in of.values() for n in every}
        exchanged = 0
        for one in tones.by_split["train"]["bell"][:40]:
            for other in tones.by_split["train"]["organ"][:40]:
                found = tones.exchanged("train", one, other, ("pitch",), {})
                pitch = tones.entries[other].id.split("/")[1]
                bell, _, *rest = tones.entries[one].id.split("/")
                wanted = numbers["/".join((bell, pitch, *rest))]
                assert found == ([wanted] if split_of[wanted] == "train" else [])
                exchanged += len(found)
                assert tones.distance(one, other, ("pitch",)) == abs(
                    tones.sounds.classes[one][1] - tones.sounds.classes[other][1]
                )
        assert exchanged

    def test_are_dealt_evenly_in_an_order_that_is_drawn(self):
        first, second = ([dealt("abcd", number, seed, 99) for number in range(12)] for seed in (0, 1))
        assert set(Counter(first).values()) == {3}
        assert set(first[:4]) == set("abcd")
        assert first != second

    def test_do_not_repeat_a_scene_but_where_that_is_allowed(self):
        def some():
            return iter((None, 1, 1, 2, *(1,) * 200))

        drawn, draws = set(), some()
        taken = [draw_until(lambda: next(draws), drawn, lambda one: [one], True) for _ in range(3)]
        assert taken == [1, 2, 1]
        draws = iter((1,) * 30_000)
        assert draw_until(lambda: next(draws), {1}, lambda one: [one], False) is None


def test_no_sound_is_in_two_splits_and_other_voices_have_the_same(tones):
    by_split = [{number for numbers in tones.by_split[split].values() for number in numbers} for split in SHARES]
    assert sum(map(len, by_split)) == len(set().union(*by_split)) == 4_096
    assert [len(numbers) / 4_096 for numbers in by_split] == pytest.approx(list(SHARES.values()), abs=0.01)
    of_others = Palette(ToneSounds(ToneSpec(velocity=90)))
    assert of_others.by_split == tones.by_split
