"""Rows for training: texts that are true and false of their clips, and nothing of the test items among them."""

from collections import Counter
from functools import cache
from itertools import combinations

import numpy as np
import pytest

from audio_compositionality.dataset_builder.build import build_dataset
from audio_compositionality.dataset_builder.data import DatasetError
from audio_compositionality.dataset_builder.open_data import open_data
from audio_compositionality.dataset_builder.recipes import load_recipe
from audio_compositionality.dataset_builder.recipes.comp_a_train import RECIPE, TrainingSpec
from audio_compositionality.dataset_builder.rendered import RenderedData
from audio_compositionality.dataset_builder.scenes.captioned import formula, novel_pairs
from audio_compositionality.dataset_builder.texts.captions import bag_of_words, caption_templates
from audio_compositionality.dataset_builder.texts.truth import is_false, is_true
from audio_compositionality.support.errors import InputError

from .captioned import NOUNS, SMALL, classes_of, read


@cache
def rows():
    return tuple(RECIPE.render(TrainingSpec(train_rows=900, validation_rows=100)).rows)


def scene(events):
    return frozenset(event["entry"] for event in events)


@pytest.mark.slow
def test_the_presets_have_the_sizes_that_are_documented():
    sizes = {name: (settings.train_rows, settings.validation_rows) for name, settings in RECIPE.presets.items()}
    assert (sizes["mini"], sizes["full"]) == ((4_000, 200), (20_000, 1_000))
    assert Counter(row["split"] for row in rows()) == {"train": 900, "validation": 100}
    shares = Counter(len(row["events"]) for row in rows())
    assert shares[1] == pytest.approx(100, abs=30)
    assert shares[3] == pytest.approx(200, abs=40)
    assert len({row["id"] for row in rows()}) == 1_000


@pytest.mark.slow
def test_there_are_sources_enough_for_the_full_preset():
    rendering = RECIPE.render(RECIPE.presets["full"])
    scenes = rendering.scenes
    assert len(scenes) == len(rendering.rows) == 21_000
    heard = {(scene.said, clip.entries) for scene in scenes for clip in scene.clips}
    assert len(heard) == 21_000


@pytest.mark.slow
def test_a_shorter_list_is_the_beginning_of_the_longer_one():
    few = RECIPE.render(TrainingSpec(train_rows=20, validation_rows=5)).rows
    assert list(few[:20]) == list(rows()[:20])
    assert list(few[20:]) == list(rows()[900:905])


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


def test_built_and_rendered_are_the_same_rows_and_samples(tmp_path):
    data = RenderedData("small", {RECIPE.name: TrainingSpec(train_rows=9, validation_rows=2, **SMALL)})
    built = open_data(build_dataset(data, tmp_path / "built", progress=False))
    one, other = data.configuration(RECIPE.name), built.configuration(RECIPE.name)
    assert list(one.rows) == list(other.rows)
    assert one.fingerprint == other.fingerprint
    for clip, stored in zip(one.clips(), other.clips(), strict=True):
        assert (clip.id, clip.sample_rate, len(clip.waveform)) == (stored.id, 8_000, 80_000)
        assert (clip.waveform == stored.waveform).all()


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"single": 0.5, "three": 0.6}, "single \\+ three \\+ four is 1.1"),
        ({"gaps": (3.0,)}, "two tones of a 'slow' source"),
    ],
)
def test_settings_out_of_range_are_refused(changes, message):
    with pytest.raises(InputError, match=message):
        TrainingSpec(**changes)


BELL = {"label": "bell", "attributes": [], "dimensions": [], "entry": "a"}


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"captions": []}, r"captions is \[\]; it is a list of 1 or more texts"),
        ({"parts": [3]}, r"parts is \[3\]; it is a list of texts"),
        ({"negatives": None}, "negatives is None; it is a list of structures of text, kind"),
        ({"negatives": [{"text": "a bell", "kind": "wrong"}]}, "it has a text and a kind: 'order'"),
        ({"events": None}, "events is None; it is a list of structures"),
        ({"events": [{**BELL, "start": 2.0, "stop": 1.0}]}, "start < stop in seconds"),
        ({"events": [{"label": "bell", "start": 1.0, "stop": 2.0}]}, "events is .*; it is a list of structures"),
    ],
)
def test_a_row_that_cannot_be_trained_on_is_refused(changes, message):
    row = rows()[0]
    RECIPE.check_row(row)
    RECIPE.check_row({**row, "parts": [], "negatives": []})
    with pytest.raises(DatasetError, match=message):
        RECIPE.check_row({**row, **changes})


def test_the_card_says_what_there_is():
    text = RECIPE.describe(RECIPE.presets["mini"])
    assert all(f"`{column}`" in text for column in rows()[0] if column != "split")
    assert "first later, before that and amid" in text
    assert TrainingSpec(seed=1).values() != TrainingSpec().values()
