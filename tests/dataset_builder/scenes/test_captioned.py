"""Which pairs of timbres are new to a trained model, and which split a scene is in."""

from collections import Counter
from itertools import permutations

import numpy as np
import pytest

from audio_compositionality.dataset_builder.scenes.captioned import (
    CaptionedSettings,
    SequenceSettings,
    Speaker,
    dealt,
    novel_pairs,
    pairs_of,
    split_of,
)
from audio_compositionality.dataset_builder.scenes.sources import Source
from audio_compositionality.dataset_builder.scenes.timeline import SourceEvent
from audio_compositionality.support.errors import InputError


def test_six_of_28_pairs_are_novel_and_every_timbre_is_in_one():
    novel = novel_pairs(8)
    assert len(novel) == 6
    uses = Counter(timbre for pair in novel for timbre in pair)
    assert set(uses) == set(range(8))
    assert max(uses.values()) == 2
    assert len(pairs_of("seen", 8)) == 22
    assert sorted((*pairs_of("seen", 8), *pairs_of("novel", 8))) == sorted(
        (low, high) for high in range(8) for low in range(high)
    )


@pytest.mark.parametrize("count", [6, 7, 12, 24])
def test_other_numbers_of_timbres_have_novel_pairs_as_well(count):
    novel = novel_pairs(count)
    assert len(novel) == round(count * (count - 1) / 2 * 6 / 28)
    uses = Counter(timbre for pair in novel for timbre in pair)
    assert max(uses.values()) - min(uses.values()) <= 2


def test_a_set_of_sources_is_in_one_split_whatever_its_order():
    rng = np.random.default_rng(0)
    splits = Counter()
    for _ in range(2_000):
        sources = [Source(*row) for row in rng.integers(0, 8, (3, 4)).tolist()]
        (split,) = {split_of(order, 8) for order in permutations(sources)}
        splits[split] += 1
    assert splits["test"] == pytest.approx(500, abs=100)
    assert splits["validation"] == pytest.approx(100, abs=50)
    assert splits["train"] == pytest.approx(1_400, abs=100)


def test_sources_are_drawn_by_words_and_heard_twice():
    speaker = Speaker(SequenceSettings())
    rng = np.random.default_rng(0)
    for _ in range(300):
        mentioned = ("rate", "pitch")
        words = speaker.draw_words(mentioned, rng)
        source = speaker.draw_source(2, words, 90_000, rng)
        assert speaker.leaf(source, mentioned).attributes == (words["rate"], words["pitch"])
        assert source.amplitude >= 4
        # Less than three seconds: of the slow classes only the faster one.
        assert source.rate != 1
        event = speaker.event(SourceEvent(source, 3_200, 93_200))
        assert set(words.values()) <= set(event["attributes"])
        assert (event["label"], event["start"], event["stop"]) == ("bell", 0.1, 2.9125)
        assert event["timbre_label"] == "Glass Bell"


def test_what_is_dealt_is_dealt_evenly_in_an_order_that_is_drawn():
    first, second = ([dealt("abcd", number, seed, 99) for number in range(12)] for seed in (0, 1))
    assert set(Counter(first).values()) == {3}
    assert set(first[:4]) == set("abcd")
    assert first != second


@pytest.mark.parametrize(
    ("settings", "changes", "message"),
    [
        (SequenceSettings, {"gaps": ()}, "gaps are"),
        (SequenceSettings, {"gaps": (-1,)}, "gaps are"),
        (SequenceSettings, {"gaps": (9,)}, "two tones of a 'slow' source"),
        (SequenceSettings, {"rate_range": (3, 20), "duration": 2, "gaps": (0,)}, "events last 1 s or more"),
        (CaptionedSettings, {"pitch_range": (60, 84)}, "captions need 36 or more"),
    ],
)
def test_settings_whose_events_are_too_short_are_refused(settings, changes, message):
    with pytest.raises(InputError, match=message):
        settings(**changes)


def test_the_language_is_part_of_the_settings():
    values = CaptionedSettings().values()
    assert len(values["language"]) == 64
    assert values["nouns"][2] == "bell"
    assert SequenceSettings().values()["gaps"] == [0.0, 0.5, 1.0]
