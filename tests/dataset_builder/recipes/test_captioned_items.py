"""Items of order and of attributes: true captions, equal words, and nothing that tells the place in the item."""

import math
from collections import Counter
from functools import cache

import librosa
import numpy as np
import pytest

from audio_compositionality.dataset_builder.data import DatasetError
from audio_compositionality.dataset_builder.recipes.comp_a_attribute import RECIPE as ATTRIBUTE
from audio_compositionality.dataset_builder.recipes.comp_a_attribute import AttributeSpec
from audio_compositionality.dataset_builder.recipes.comp_a_order import RECIPE as ORDER
from audio_compositionality.dataset_builder.recipes.comp_a_order import OrderSpec
from audio_compositionality.dataset_builder.scenes.captioned import LEVEL, novel_pairs
from audio_compositionality.dataset_builder.sounds.tones import default_voices
from audio_compositionality.dataset_builder.texts.captions import bag_of_words
from audio_compositionality.dataset_builder.texts.truth import is_false, is_true
from audio_compositionality.support.errors import InputError

from .captioned import NOUNS, SMALL, WORDS, classes_of, read

RECIPES = (ORDER, ATTRIBUTE)

ATTRIBUTES = ("timbre", "pitch", "rate", "amplitude")


@cache
def rows_of(recipe, preset="full"):
    return tuple(recipe.render(recipe.presets[preset]).rows)


@pytest.mark.slow
@pytest.mark.parametrize("recipe", RECIPES)
def test_a_caption_is_true_of_its_clip_and_false_of_the_others(recipe):
    """By the events of the rows and the text of the captions alone: the oracle is always right."""
    for row in rows_of(recipe):
        for place, text in enumerate(row["captions"]):
            expression = read(text)
            for clip, events in enumerate(row["events"]):
                assert is_true(expression, events) == (clip == place), row
                assert is_false(expression, events) == (clip != place), row


@pytest.mark.parametrize("recipe", RECIPES)
def test_twins_have_the_same_words_and_the_same_sounds(recipe):
    for row in rows_of(recipe):
        first, second = row["captions"][:2]
        assert first != second
        assert bag_of_words(first) == bag_of_words(second)
        one, other = row["events"][:2]
        for attribute in ATTRIBUTES:
            assert sorted(classes_of(event)[attribute] for event in one) == sorted(
                classes_of(event)[attribute] for event in other
            )
        assert sorted(event["stop"] - event["start"] for event in one) == pytest.approx(
            sorted(event["stop"] - event["start"] for event in other)
        )


@pytest.mark.parametrize("recipe", RECIPES)
def test_events_are_long_enough_to_be_heard_twice(recipe):
    for row in rows_of(recipe):
        for events in row["events"]:
            for event in events:
                assert 0 <= event["start"] < event["stop"] <= 10
                seconds = event["stop"] - event["start"]
                assert seconds >= 1
                assert seconds * classes_of(event)["rate"] > 1
                assert {*event["attributes"]} <= {*WORDS}


def test_half_of_the_captions_of_order_are_reverse_and_templates_are_dealt_evenly():
    rows = rows_of(ORDER)
    cells = Counter((row["subset"], row["mention"], len(row["captions"])) for row in rows)
    assert {cells[subset, mention, 2] for subset in ("seen", "novel") for mention in ("forward", "reverse")} == {150}
    assert {cells[subset, mention, 3] for subset in ("seen", "novel") for mention in ("forward", "reverse")} == {50}
    assert set(Counter(row["template"] for row in rows).values()) == {100}
    for row in rows:
        first = read(row["captions"][0]).operands[0].label
        named = min(NOUNS, key=lambda noun: f"{row['captions'][0]} {noun}".index(noun))
        assert (named == first) == (row["mention"] == "forward")


def test_what_is_exchanged_is_what_the_row_says():
    rows = rows_of(ATTRIBUTE)
    assert set(Counter(row["swapped"] for row in rows).values()) == {100}
    assert set(Counter(row["template"] for row in rows).values()) == {80}
    for row in rows:
        one, other = ({event["label"]: event for event in events} for events in row["events"])
        changed = {
            attribute
            for attribute in ATTRIBUTES
            for noun in one
            if classes_of(one[noun])[attribute] != classes_of(other[noun])[attribute]
        }
        assert changed == {*row["swapped"].split("+")}
        assert 2 <= row["distance"] <= 7
        assert row["overlap"] == pytest.approx(10 - max(event["start"] for event in row["events"][0]))
        assert 9.5 <= row["overlap"] <= 10
    assert {row["gap"] for row in rows} == {0}


def test_the_gap_is_the_silence_between_the_events():
    rows = rows_of(ORDER)
    for row in rows:
        for first, second in row["events"][:2]:
            assert second["start"] - first["stop"] == pytest.approx(row["gap"])
    assert set(Counter(row["gap"] for row in rows)) == {0, 0.5, 1}


@pytest.mark.parametrize("recipe", RECIPES)
def test_novel_pairs_are_novel_and_pairs_are_used_evenly(recipe):
    rows = rows_of(recipe)
    novel = {" | ".join(sorted(pair)) for pair in novel_pairs(NOUNS)}
    assert {row["pair"] for row in rows if row["subset"] == "novel"} == novel
    assert not novel & {row["pair"] for row in rows if row["subset"] == "seen"}
    for subset, count in (("novel", 6), ("seen", 22)):
        uses = Counter(row["pair"] for row in rows if row["subset"] == subset)
        assert len(uses) == count
        assert max(uses.values()) - min(uses.values()) <= 1
    scenes = Counter(frozenset(event["entry"] for event in row["events"][0]) for row in rows)
    assert set(scenes.values()) == {1}


def says_the_place(recipe):
    """For each item a number that is above or below 0 if something in words or sources tells its first place."""
    for row in rows_of(recipe):
        first, second = row["captions"][:2]
        one, other = row["events"][0]
        leaves = read(first).operands
        order = [WORDS.index(leaf.attributes[0]) for leaf in leaves]
        yield {
            "which text is first in the alphabet": (first > second) - (first < second),
            "the timbre of the first source": NOUNS.index(one["label"]) - NOUNS.index(other["label"]),
            "the first word of the first caption": order[0] - order[1],
            **{name: classes_of(one)[name] - classes_of(other)[name] for name in ("pitch", "rate", "amplitude")},
            "length": one["stop"] - one["start"] - other["stop"] + other["start"],
        }


@pytest.mark.parametrize("recipe", RECIPES)
def test_nothing_in_words_or_sources_tells_which_clip_is_first(recipe):
    """Signs are tossed like coins: within 3.5 standard deviations, of 14 tests none fails by chance in 150."""
    cues = list(says_the_place(recipe))
    for cue in cues[0]:
        signs = [math.copysign(1, value[cue]) for value in cues if value[cue]]
        assert abs(sum(signs)) <= 3.5 * math.sqrt(max(len(signs), 1)), (cue, sum(signs), len(signs))


class TestSound:
    def test_events_of_an_item_are_moved_whole(self):
        rendering = ORDER.render(OrderSpec(items=12, triplets=0.5, **SMALL))
        triplets = 0
        for index, row in enumerate(rendering.rows):
            clips = rendering.clips(index)
            assert {(clip.dtype.name, len(clip)) for clip in clips} == {("int16", 80_000)}
            assert len(clips) == len(row["captions"])
            (first, second), (again, moved) = (
                [slice(round(event["start"] * 8_000), round(event["stop"] * 8_000)) for event in events]
                for events in row["events"][:2]
            )
            assert (clips[0][first] == clips[1][moved]).all()
            assert (clips[0][second] == clips[1][again]).all()
            assert not clips[0][first.stop : second.start].any()
            triplets += len(clips) == 3
        assert triplets

    @pytest.mark.slow
    def test_the_clips_of_an_item_share_one_gain(self):
        for recipe, settings in ((ORDER, OrderSpec), (ATTRIBUTE, AttributeSpec)):
            rendering = recipe.render(settings(items=16, **SMALL))
            scaled = 0
            for index in range(16):
                clips, row = rendering.clips(index), rendering.timed(index)
                peak = max(np.abs(clip.astype(int)).max() for clip in clips)
                assert peak <= 0.98 * 2**15 + 2
                # Most have the gain of all items; the others are lowered until the largest sample is at the peak.
                sums = [sum(_placed(event, rendering) for event in events) for events in row.clips]
                gain = min(LEVEL, 0.98 / max(np.abs(one).max() for one in sums))
                scaled += gain < LEVEL
                for clip, one in zip(clips, sums, strict=True):
                    assert np.abs(clip - one * gain * 2**15).max() <= 2
            assert scaled < 16

    @pytest.mark.slow
    def test_a_summary_of_the_sound_tells_twins_apart_far_less_than_items(self):
        """Mean and spread of 32 log-mel bands over time: all that a model without time has of an item of order."""
        ratios = {}
        for recipe, settings in ((ORDER, OrderSpec), (ATTRIBUTE, AttributeSpec)):
            rendering = recipe.render(settings(items=24, **SMALL))
            statistics = np.array([[_log_mel(clip) for clip in rendering.clips(index)[:2]] for index in range(24)])
            twins = np.linalg.norm(statistics[:, 0] - statistics[:, 1], axis=1)
            items = [np.linalg.norm(statistics[i, 0] - statistics[j, 0]) for i in range(24) for j in range(i)]
            ratios[recipe.name] = np.median(twins) / np.median(items)
            if recipe is ATTRIBUTE:
                # Which of the twins is the brighter, louder or steadier one is no matter of its place.
                sides = np.sign((statistics[:, 0] - statistics[:, 1]).mean(axis=1))
                assert abs(sides.sum()) <= 3.5 * math.sqrt(24)
        assert ratios[ORDER.name] < 0.02
        assert ratios[ATTRIBUTE.name] < 0.6


def _placed(event, rendering):
    clip = np.zeros(rendering.spec.num_samples)
    clip[event.start : event.stop] = rendering.events.samples(event)
    return clip


def _log_mel(clip):
    mel = librosa.feature.melspectrogram(y=clip / 32_768, sr=8_000, n_fft=512, hop_length=256, n_mels=32)
    decibels = 10 * np.log10(mel + 1e-6)
    return np.concatenate([decibels.mean(axis=1), decibels.std(axis=1)])


def test_what_has_no_words_is_not_exchanged():
    for twice in (("pitch+pitch",), ("pitch", "pitch"), ("pitch+rate", "rate+pitch")):
        with pytest.raises(InputError, match=r"swapped is .*; it names different attributes, each way once"):
            AttributeSpec(swapped=twice)
    with pytest.raises(DatasetError, match="swapped has 'pich'; did you mean 'pitch'"):
        _ = ATTRIBUTE.render(AttributeSpec(swapped=("pich",))).rows
    every = ATTRIBUTE.render(AttributeSpec(items=12, swapped=())).rows
    assert Counter(row["swapped"] for row in every) == {"amplitude": 4, "pitch": 4, "rate": 4}


class TestSettings:
    def test_the_language_is_part_of_them(self):
        values = OrderSpec().values()
        assert len(values["language"]) == len(values["tables"]) == 64
        assert values["gaps"] == [0.0, 0.5, 1.0]
        assert values["sounds"] is None
        assert values["tones"][2] == "bell"

    def test_another_seed_draws_other_items(self):
        one, other = (ORDER.render(OrderSpec(items=20, seed=seed)).rows for seed in (0, 1))
        assert not {row["captions"][0] for row in one} & {row["captions"][0] for row in other}
        assert {row["pair"] for row in one if row["subset"] == "novel"} & {row["pair"] for row in other}


@pytest.mark.slow
def test_more_items_than_there_are_tones_for_are_refused():
    few = AttributeSpec(num_classes=6, voices=default_voices()[:6])
    with pytest.raises(
        InputError, match=r"items is 400, and after \d+ no sounds .* or num_classes, now 6, more"
    ) as raised:
        _ = ATTRIBUTE.render(few).rows
    possible = int(str(raised.value).partition("at most ")[2].partition(",")[0])
    assert len(ATTRIBUTE.render(few.changed(items=possible)).rows) == possible > 100
