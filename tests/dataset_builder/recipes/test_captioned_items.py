"""Captioned items and training rows, of tones, of recordings and of words in a table: true captions, equal words."""

import itertools
import math
from collections import Counter
from dataclasses import replace
from functools import cache

import numpy as np
import pytest

from audio_compositionality.dataset_builder.recipes import list_recipes, load_recipe
from audio_compositionality.dataset_builder.recipes.base import ValidatedRecipe
from audio_compositionality.dataset_builder.recipes.comp_a_attribute import AttributeSpec
from audio_compositionality.dataset_builder.recipes.comp_a_order import OrderSpec
from audio_compositionality.dataset_builder.recipes.comp_a_train import TrainingSpec
from audio_compositionality.dataset_builder.scenes.captioned import formula, novel_pairs
from audio_compositionality.dataset_builder.sounds.entries import category_of, noun_of, spoken
from audio_compositionality.dataset_builder.sounds.tones import default_voices
from audio_compositionality.dataset_builder.texts import caption_reading
from audio_compositionality.dataset_builder.texts.captions import bag_of_words, caption_templates
from audio_compositionality.dataset_builder.texts.truth import HeardEvent, is_false, is_true
from audio_compositionality.support.errors import InputError
from audio_compositionality.training.settings import VALIDATION_ITEMS

from .captioned import NOUNS, WORDS, classes_of, read
from .recorded import PIANOS, RATE, WHO, named, settings_of, with_words

ORDER, ATTRIBUTE, TRAIN = (load_recipe(f"comp_a_{name}") for name in ("order", "attribute", "train"))

ATTRIBUTES = ("timbre", "pitch", "rate", "amplitude")

ITEMS = {
    "order": (ORDER, ORDER.presets["full"].changed(items=160)),
    "attribute": (ATTRIBUTE, ATTRIBUTE.presets["full"].changed(items=160)),
    "order of recordings": (ORDER, settings_of(ORDER, named(), items=60)),
    "attribute of recordings": (ATTRIBUTE, settings_of(ATTRIBUTE, named(WHO), items=24)),
    "attribute of words": (
        ATTRIBUTE,
        settings_of(ATTRIBUTE, with_words(PIANOS), items=24, different_kinds=False),
    ),
}

TRAINING = {
    "train": (TRAIN, TrainingSpec(train_rows=300, validation_rows=40)),
    "train of recordings": (TRAIN, settings_of(TRAIN, named(), train_rows=150, validation_rows=30)),
    "train of words": (
        TRAIN,
        settings_of(TRAIN, with_words(PIANOS), train_rows=60, validation_rows=5, different_kinds=False),
    ),
}


@cache
def rendered(name):
    recipe, spec = {**ITEMS, **TRAINING}[name]
    return recipe.render(spec)


def rows_of(name):
    return rendered(name).rows


def expression_of(text, name, clips):
    """What a text says: of tones by the templates alone, else by the reader, which knows the words of the events."""
    if " of " not in name:
        return read(text)
    events = [HeardEvent.of(event) for events in clips for event in events]
    return caption_reading.read(text, caption_reading.vocabulary_of(events)).expression


of_tones = pytest.mark.parametrize("name", ["order", "attribute"])


class TestItems:
    @pytest.mark.parametrize("name", ITEMS)
    def test_a_caption_is_true_of_its_clip_and_false_of_the_others_and_twins_have_the_same_words(self, name):
        """By the events of the rows and the text of the captions alone: the oracle is always right."""
        for row in rows_of(name)[:100]:
            for place, text in enumerate(row["captions"]):
                expression = expression_of(text, name, row["events"])
                for clip, events in enumerate(row["events"]):
                    assert is_true(expression, events) == (clip == place), row
                    assert is_false(expression, events) == (clip != place), row
            first, second = row["captions"][:2]
            assert first != second
            assert bag_of_words(first) == bag_of_words(second)
            assert row["writer"] == "template"
            assert row["origin"] == ("recordings" if " of " in name else "synthetic")

    @of_tones
    def test_twins_of_tones_have_the_same_classes_and_lengths_and_events_are_long_enough_to_be_heard_twice(self, name):
        for row in rows_of(name):
            one, other = row["events"][:2]
            for attribute in ATTRIBUTES:
                classes = [sorted(classes_of(event)[attribute] for event in events) for events in (one, other)]
                assert classes[0] == classes[1]
            lengths = [sorted(event["stop"] - event["start"] for event in events) for events in (one, other)]
            assert lengths[0] == pytest.approx(lengths[1])
            for event in itertools.chain(*row["events"]):
                assert 0 <= event["start"] < event["stop"] <= 10
                seconds = event["stop"] - event["start"]
                assert seconds >= 1
                assert seconds * classes_of(event)["rate"] > 1
                assert {*event["attributes"]} <= {*WORDS}

    def test_half_of_the_captions_of_order_are_reverse_and_templates_and_gaps_are_used_evenly(self):
        rows = rows_of("order")
        cells = Counter((row["subset"], row["mention"], len(row["captions"])) for row in rows)
        both = list(itertools.product(("seen", "novel"), ("forward", "reverse")))
        assert {cells[subset, mention, 2] for subset, mention in both} == {30}
        assert {cells[subset, mention, 3] for subset, mention in both} == {10}
        assert set(Counter(row["template"] for row in rows).values()) == {20}
        for row in rows:
            first = read(row["captions"][0]).operands[0].label
            mentioned = min(NOUNS, key=lambda noun: f"{row['captions'][0]} {noun}".index(noun))
            assert (mentioned == first) == (row["mention"] == "forward")
            for one, other in row["events"][:2]:
                assert other["start"] - one["stop"] == pytest.approx(row["gap"])
        assert {row["gap"] for row in rows} == {0, 0.5, 1}

    def test_what_is_exchanged_is_what_the_row_says(self):
        rows = rows_of("attribute")
        assert set(Counter(row["swapped"] for row in rows).values()) == {40}
        assert set(Counter(row["template"] for row in rows).values()) == {32}
        for row in rows:
            one, other = ({event["label"]: classes_of(event) for event in events} for events in row["events"])
            changed = {name for name in ATTRIBUTES for noun in one if one[noun][name] != other[noun][name]}
            assert changed == {*row["swapped"].split("+")}
            assert 2 <= row["distance"] <= 7
            assert row["overlap"] == pytest.approx(10 - max(event["start"] for event in row["events"][0]))
            assert 9.5 <= row["overlap"] <= 10
        assert {row["gap"] for row in rows} == {0}

    @of_tones
    def test_novel_pairs_are_novel_and_pairs_are_used_evenly(self, name):
        rows = rows_of(name)
        novel = {" | ".join(sorted(pair)) for pair in novel_pairs(NOUNS)}
        assert {row["pair"] for row in rows if row["subset"] == "novel"} == novel
        assert not novel & {row["pair"] for row in rows if row["subset"] == "seen"}
        for subset, count in (("novel", 6), ("seen", 22)):
            uses = Counter(row["pair"] for row in rows if row["subset"] == subset)
            assert len(uses) == count
            assert max(uses.values()) - min(uses.values()) <= 1
        scenes = Counter(frozenset(event["entry"] for event in row["events"][0]) for row in rows)
        assert set(scenes.values()) == {1}

    @of_tones
    def test_nothing_in_words_or_sources_tells_which_clip_is_first(self, name):
        """Signs are tossed like coins: within 3.5 standard deviations, of 14 tests none fails by chance in 150."""
        cues = [says_the_place(row) for row in rows_of(name)]
        for cue in cues[0]:
            signs = [math.copysign(1, value[cue]) for value in cues if value[cue]]
            assert abs(sum(signs)) <= 3.5 * math.sqrt(max(len(signs), 1)), (cue, sum(signs), len(signs))

    def test_order_has_the_same_files_in_either_order_and_of_some_both_at_once(self):
        rows, palette = rows_of("order of recordings"), rendered("order of recordings").palette
        for row in rows:
            first, second, *third = ([event["entry"] for event in events] for events in row["events"])
            assert first == second[::-1]
            assert [sorted(files) for files in third] in ([], [sorted(first)])
            labels = row["pair"].split(" | ")
            assert (frozenset(labels) in palette.novel) == (row["subset"] == "novel")
            assert len({category_of(label) for label in labels}) == 2
            for event in itertools.chain(*row["events"]):
                assert spoken(event["entry"].partition("/")[0]) == event["label"]
        triplets = Counter((row["mention"], row["subset"]) for row in rows if len(row["captions"]) == 3)
        assert (set(triplets.values()), len(triplets)) == ({3}, 4)
        assert Counter(row["mention"] for row in rows) == {"forward": 30, "reverse": 30}
        assert Counter(row["subset"] for row in rows) == {"seen": 30, "novel": 30}

    def test_words_of_a_table_are_exchanged_between_entries_of_the_same_labels(self):
        rows = rows_of("attribute of words")
        for row in rows:
            assert row["swapped"] == "dynamics"
            said = [{event["label"]: event["attributes"] for event in events} for events in row["events"]]
            one, other = row["pair"].split(" | ")
            assert [sorted(of_clip) for of_clip in said] == [[one, other]] * 2
            assert said[0][one] == said[1][other] != said[0][other] == said[1][one]
        assert any("a soft piano" in row["captions"][0] for row in rows)
        # One of three pairs is held out from training.
        assert set(Counter(row["subset"] for row in rows).values()) == {12}
        assert len({row["pair"] for row in rows if row["subset"] == "novel"}) == 1

    @pytest.mark.slow
    def test_more_items_than_there_are_tones_for_are_refused(self):
        few = AttributeSpec(num_classes=6, voices=default_voices()[:6])
        message = r"items is 400, but after (\d+) no sounds .* Make items at most \1, or num_classes \(now 6\) larger"
        with pytest.raises(InputError, match=message):
            _ = ATTRIBUTE.render(few).rows


def says_the_place(row):
    """Numbers that are above or below 0 if something in words or sources tells the first place of an item."""
    first, second = row["captions"][:2]
    one, other = row["events"][0]
    order = [WORDS.index(leaf.attributes[0]) for leaf in read(first).operands]
    return {
        "which text is first in the alphabet": (first > second) - (first < second),
        "the timbre of the first source": NOUNS.index(one["label"]) - NOUNS.index(other["label"]),
        "the first word of the first caption": order[0] - order[1],
        **{name: classes_of(one)[name] - classes_of(other)[name] for name in ("pitch", "rate", "amplitude")},
        "length": one["stop"] - one["start"] - other["stop"] + other["start"],
    }


class TestTraining:
    @pytest.mark.parametrize("name", TRAINING)
    def test_texts_are_true_or_false_as_the_row_says_and_all_different(self, name):
        kinds, rendering = Counter(), rendered(name)
        for index, row in enumerate(rendering.rows[:250]):
            texts = [*row["captions"], *row["parts"], *(negative["text"] for negative in row["negatives"])]
            assert row["captions"]
            assert len(set(texts)) == len(texts)
            assert is_true(rendering.scenes[index].said[0], row["events"])
            words = bag_of_words(row["captions"][0])
            for negative in row["negatives"]:
                same = bag_of_words(negative["text"]) == words
                assert same or negative["kind"] in ("relation", "absent")
                assert not (same and negative["kind"] == "absent")
                kinds[negative["kind"], len(row["events"])] += 1
            if name == "train" and len(row["events"]) < 3:
                # By the text and the events alone.
                assert all(is_true(read(text), row["events"]) for text in row["captions"] + row["parts"])
                assert {formula(read(text)) for text in row["captions"]} == {row["expression"]}
                assert all(is_false(read(negative["text"]), row["events"]) for negative in row["negatives"])
        assert {kind for kind, _ in kinds} >= {"order", "relation", "attribute"}
        # Of three labels, two never meet in training: no scene has all of them.
        if name != "train of words":
            assert {kind for kind, count in kinds if count == 3} == {"order", "relation", "attribute", "absent"}
        # A single event can only be told from another.
        assert {kind for kind, count in kinds if count == 1} <= {"absent"}
        if name == "train":
            assert min(kinds[kind, 2] for kind in ("order", "relation", "attribute", "absent")) > 50

    def test_half_of_the_captions_of_sequences_are_reverse_and_none_has_a_template_of_the_test(self):
        mentions, rows = Counter(), rows_of("train")
        for row in rows:
            for place, text in enumerate(row["captions"]):
                if " + " in row["expression"] and len(row["events"]) == 2:
                    first = min(row["events"], key=lambda event: event["start"])["label"]
                    mentioned = min((event["label"] for event in row["events"]), key=text.index)
                    mentions[place, mentioned == first] += 1
        assert sum(count for (_, forward), count in mentions.items() if forward) * 2 == sum(mentions.values())
        first = [mentions[0, forward] for forward in (True, False)]
        assert abs(first[0] - first[1]) < 3.5 * np.sqrt(sum(first))
        texts = [text for row in rows for text in row["captions"] + row["parts"]]
        assert not any(text.startswith(("first ", "before ")) or " amid " in text for text in texts)
        held_out = {one.name for of_one in caption_templates().values() for one in of_one if one.held_out}
        assert held_out == {"first later", "before that", "amid"}

    @pytest.mark.parametrize("name", TRAINING)
    def test_no_sound_is_in_two_splits_no_novel_pair_in_training_and_all_last_long_enough(self, name):
        kinds = {"train": ("order", "attribute"), "train of recordings": ("order of recordings",)}
        splits = {"test": {e["entry"] for of in kinds.get(name, ()) for row in rows_of(of) for e in heard(row)}}
        for row in rows_of(name):
            splits.setdefault(row["split"], set()).update(event["entry"] for event in row["events"])
            for event in row["events"]:
                seconds = event["stop"] - event["start"]
                assert seconds >= 1
                assert event["stop"] <= 10
                # Tones are heard twice.
                assert name != "train" or seconds * classes_of(event)["rate"] > 1
            labels = [event["label"] for event in row["events"]]
            met = map(frozenset, itertools.combinations(labels, 2))
            assert not set(met) & rendered(name).palette.novel
            if name == "train of recordings":
                assert len({category_of(label) for label in labels}) == len(labels)
        for one, other in itertools.combinations(splits, 2):
            assert splits[one].isdisjoint(splits[other])

    def test_rows_are_a_sequence(self):
        rows = rows_of("train of recordings")
        assert len(rows) == 180
        assert rows[-1]["id"] == "comp_a_train-validation-00029"
        assert list(rows[148:152]) == [rows[place] for place in range(148, 152)]
        with pytest.raises(IndexError):
            rows[180]


def heard(row):
    return itertools.chain(*row["events"])


class TestValidation:
    """Items by which training selects models: of no other split, and of nothing that is new in the test alone."""

    names = tuple(name for name in list_recipes() if isinstance(load_recipe(name), ValidatedRecipe))
    scenes = TrainingSpec(train_rows=8, validation_rows=4, seed=3, sample_rate=16_000)

    @pytest.mark.parametrize("name", names)
    def test_they_are_of_their_split_and_of_what_training_has(self, name):
        rendering = load_recipe(name).render_validation(self.scenes, 8)
        rows = rendering.rows
        held_out = {one.name for of_one in caption_templates().values() for one in of_one if one.held_out}
        assert {(row["split"], row["subset"]) for row in rows} == {("validation", "seen")}
        assert not held_out & {row["template"] for row in rows}
        assert rows[0]["id"] == f"{name}-validation-00000"
        assert rendering.sample_rate == 16_000
        assert len({len(clip) for clip in rendering.clips(0)}) == 1
        tests = load_recipe(name).render(rendering.spec)
        assert {row["split"] for row in tests.rows} == {"test"}
        tones, of_tests = ({event["entry"] for row in one.rows for event in heard(row)} for one in (rendering, tests))
        assert not tones & of_tests
        if name == "comp_a_order":
            assert [row["mention"] for row in rows] == ["forward", "reverse"] * 4

    def test_of_scenes_of_another_kind_there_are_none(self):
        with pytest.raises(InputError, match="makes no items like scenes of"):
            ORDER.render_validation(load_recipe("a_tre").presets["mini"], 2)

    @pytest.mark.slow
    def test_there_are_as_many_as_training_asks_for(self):
        rows = ATTRIBUTE.render_validation(self.scenes, VALIDATION_ITEMS).rows
        assert len({tuple(row["captions"]) for row in rows}) >= 0.9 * VALIDATION_ITEMS
        assert len({row["pair"] for row in rows}) == 22


class TestSound:
    def test_events_of_tones_are_moved_whole(self):
        rendering = ORDER.render(OrderSpec(items=12, triplets=0.5, sample_rate=RATE))
        for index, row in enumerate(rendering.rows):
            clips = rendering.clips(index)
            (first, second), (again, moved) = (
                [slice(round(event["start"] * RATE), round(event["stop"] * RATE)) for event in events]
                for events in row["events"][:2]
            )
            assert (clips[0][first] == clips[1][moved]).all()
            assert (clips[0][second] == clips[1][again]).all()
            assert not clips[0][first.stop : second.start].any()
        assert any(len(row["captions"]) == 3 for row in rendering.rows)

    @pytest.mark.parametrize("name", ["order of recordings", "attribute of recordings", "train of recordings"])
    def test_recordings_are_heard_when_events_say_so(self, name):
        rendering = rendered(name)
        tones = {entry.id: 300 + 40 * (n + 1) for n, entry in enumerate(rendering.spec.sounds.entries)}
        for index in range(8):
            row, clips = rendering.rows[index], rendering.clips(index)
            events = row["events"] if isinstance(row["events"][0], list) else [row["events"]]
            for clip, of_clip in zip(clips, events, strict=True):
                assert len(clip) == 10 * RATE
                end = max(event["stop"] for event in of_clip)
                # Of the fade at its end, half counts as heard.
                assert not clip[round(end * RATE) + rendering.plan(index).fade // 2 + 2 :].any()
                # The made recordings are tones, a frequency each.
                for event in (event for event in of_clip if tones[event["entry"]] < RATE / 2):
                    for start, stop, is_heard in (
                        (event["start"] + 0.2, event["stop"] - 0.2, True),
                        (end + 0.5, 10, False),
                        (0, event["start"] - 0.5, False),
                        (event["stop"] + 0.5, end, False),
                    ):
                        if stop - start > 0.3:
                            part = clip[round(start * RATE) : round(stop * RATE)].astype(float)
                            assert (_strength(part, tones[event["entry"]]) > 0.05) == is_heard


def _strength(part, frequency):
    """Share of the amplitude of the loudest frequency that a frequency has."""
    spectrum = np.abs(np.fft.rfft(part * np.hanning(len(part))))
    place = round(frequency * len(part) / RATE)
    # What is repeated twice a second has lines 2 Hz apart.
    width = 2 + round(1.5 * len(part) / RATE)
    return spectrum[max(place - width, 0) : place + width + 1].max() / max(spectrum.max(), 1e-9)


def test_the_language_and_the_sounds_are_part_of_the_settings():
    values = OrderSpec().values()
    assert len(values["language"]) == len(values["tables"]) == 64
    assert (values["gaps"], values["sounds"], values["tones"][2]) == ([0.0, 0.5, 1.0], None, "bell")
    farm = replace(named(), suggested={"domain": "farm"}, source="elsewhere")
    assert settings_of(ORDER, farm).domain_name == "farm"
    assert settings_of(ORDER, farm).values() == settings_of(ORDER, named()).values()
    assert settings_of(ORDER, farm).values()["sounds"] == farm.fingerprint


def test_labels_are_of_kinds_and_say_who_and_how():
    assert category_of("Dog_bark") == category_of("growling") == "dogs"
    assert category_of("catfish") == "catfish"
    assert category_of("Male speech, man speaking") == "human voice"
    assert noun_of("Male speech, man speaking") == ("man", "speaking")
    assert noun_of("dog_barking") == ("dog", "barking")
    assert noun_of("rain") is noun_of("singing") is None
