"""Rows for training: texts that are true and false of their clips, and nothing of the test items among them."""

from collections import Counter
from functools import cache
from itertools import combinations

import numpy as np
import pytest

from audio_compositionality.dataset_builder.recipes import load_recipe
from audio_compositionality.dataset_builder.recipes.comp_a_train import RECIPE, TrainingSpec
from audio_compositionality.dataset_builder.scenes.captioned import formula, novel_pairs
from audio_compositionality.dataset_builder.texts.captions import bag_of_words, caption_templates
from audio_compositionality.dataset_builder.texts.truth import is_false, is_true

from .captioned import NOUNS, classes_of, read


@cache
def rows():
    return tuple(RECIPE.render(TrainingSpec(train_rows=900, validation_rows=100)).rows)


def scene(events):
    return frozenset(event["entry"] for event in events)


@pytest.mark.slow
def test_there_are_sources_enough_for_the_full_preset():
    rendering = RECIPE.render(RECIPE.presets["full"])
    scenes = rendering.scenes
    assert len(scenes) == len(rendering.rows) == 21_000
    heard = {(scene.said, clip.entries) for scene in scenes for clip in scene.clips}
    assert len(heard) == 21_000


@pytest.mark.slow
def test_texts_of_one_and_two_sources_are_true_or_false_as_the_row_says():
    """By the text and the events alone."""
    counts = Counter()
    for row in rows():
        assert len({*row["captions"], *row["parts"], *(negative["text"] for negative in row["negatives"])}) == len(
            row["captions"] + row["parts"] + row["negatives"]
        )
        if len(row["events"]) > 2:
            continue
        for text in row["captions"] + row["parts"]:
            assert is_true(read(text), row["events"])
        assert {formula(read(text)) for text in row["captions"]} == {row["expression"]}
        for negative in row["negatives"]:
            assert is_false(read(negative["text"]), row["events"])
            counts[negative["kind"]] += 1
    assert min(counts[kind] for kind in ("order", "relation", "attribute", "absent")) > 200


def test_two_kinds_of_negatives_have_the_words_of_the_caption():
    kinds = Counter()
    for row in rows():
        for negative in row["negatives"]:
            same = bag_of_words(negative["text"]) == bag_of_words(row["captions"][0])
            assert same or negative["kind"] in ("relation", "absent")
            assert not same or negative["kind"] != "absent"
            kinds[negative["kind"], len(row["events"])] += 1
    assert {kind for kind, count in kinds if count == 3} == {"order", "relation", "attribute", "absent"}
    # A single event can only be told from another.
    assert {kind for kind, count in kinds if count == 1} == {"absent"}


def test_half_of_the_captions_of_sequences_are_reverse_and_none_has_a_template_of_the_test():
    mentions = Counter()
    for row in rows():
        for place, text in enumerate(row["captions"]):
            if " + " in row["expression"] and len(row["events"]) == 2:
                first = min(row["events"], key=lambda event: event["start"])["label"]
                named = min((event["label"] for event in row["events"]), key=text.index)
                mentions[place, named == first] += 1
    assert sum(count for (_, forward), count in mentions.items() if forward) * 2 == sum(mentions.values())
    first = [mentions[0, forward] for forward in (True, False)]
    assert abs(first[0] - first[1]) < 3.5 * np.sqrt(sum(first))
    held_out = [template for of_one in caption_templates().values() for template in of_one if template.held_out]
    texts = [text for row in rows() for text in row["captions"] + row["parts"]]
    assert not any(text.startswith(("first ", "before ")) or " amid " in text for text in texts)
    assert {template.name for template in held_out} == {"first later", "before that", "amid"}


@pytest.mark.slow
@pytest.mark.parametrize("seed", [0, 7])
def test_no_tone_of_the_test_items_is_in_training(seed):
    trained = RECIPE.render(TrainingSpec(train_rows=900, validation_rows=100, seed=seed)).rows
    by_split = {
        split: {tone for row in trained if row["split"] == split for tone in scene(row["events"])}
        for split in RECIPE.splits
    }
    by_split["test"] = {
        tone
        for name in ("comp_a_order", "comp_a_attribute")
        for row in load_recipe(name).render(load_recipe(name).presets["mini"]).rows
        for events in row["events"]
        for tone in scene(events)
    }
    for one, other in combinations(by_split, 2):
        assert not by_split[one] & by_split[other]
    novel = novel_pairs(NOUNS)
    met = {
        frozenset(two) for row in trained for two in combinations(sorted(event["label"] for event in row["events"]), 2)
    }
    assert not met & novel
    assert len(met) == 22


def test_events_are_long_enough_to_be_heard_twice():
    for row in rows():
        for event in row["events"]:
            seconds = event["stop"] - event["start"]
            assert seconds >= 1
            assert seconds * classes_of(event)["rate"] > 1
            assert event["stop"] <= 10
