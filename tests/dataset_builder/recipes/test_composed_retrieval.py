"""Composed queries: what every row holds, and that nothing but source and change together tells the target."""

from collections import Counter
from itertools import product

import pytest

from audio_compositionality.dataset_builder.data import DatasetError
from audio_compositionality.dataset_builder.recipes.composed_retrieval import RECIPE, TARGET

from .recorded import RATE, made, unconditioned

MINI = RECIPE.presets["mini"]


@pytest.fixture(scope="module")
def rows():
    return RECIPE.render(MINI).rows


def clips_of(row):
    """Source and candidates, each as (label, pitch) in the order of their onsets."""
    return [
        [
            (event["label"], dict(zip(event["dimensions"], event["attributes"], strict=True)).get("pitch"))
            for event in clip
        ]
        for clip in row["events"]
    ]


def test_target_is_the_source_with_the_change(rows):
    for row in rows:
        source, *candidates = clips_of(row)
        target = candidates[row["roles"].index(TARGET)]
        wording, _, said = row["key"].partition(" ")
        if wording == "attribute":
            label, _, word = said.rpartition(" ")
            changed = [(one, word if one == label else pitch) for one, pitch in source]
            assert target == changed != source
            assert {pitch for _, pitch in source} == {"low", "high"} - {word}
        elif wording == "without":
            assert [one for one in source if one[0] != said] == target
        else:
            rest = target[:-1] if wording == "last" else target[1:]
            assert rest == source
            assert target[-1 if wording == "last" else 0][0] == said
        assert said.rpartition(" ")[0] in row["change"] if wording == "attribute" else said in row["change"]


def test_candidates_have_equal_events_and_none_is_another_or_the_source(rows):
    for row in rows:
        candidates = row["events"][1:]
        times = [[(event["start"], event["stop"]) for event in clip] for clip in candidates]
        assert all(one == times[0] for one in times)
        sounds = [tuple(event["entry"] for event in clip) for clip in row["events"]]
        assert len(set(sounds)) == len(sounds) == len(row["roles"]) + 1


def test_every_aspect_is_wrong_as_often_as_it_can_be(rows):
    """In a row each sound of the cast, and each sound at each place, is no oftener in the target than the crossing
    says: all candidates are alike but for names."""
    for row in rows:
        _, *candidates = clips_of(row)
        counts = Counter(one for clip in candidates for one, _ in clip)
        if row["kind"] == "without":
            assert set(counts.values()) == {3}
        elif row["kind"] == "then":
            assert set(counts.values()) == {4}
        else:
            assert set(counts.values()) == {4}
            assert {tuple(pitch for _, pitch in clip) for clip in candidates} == {("low", "high"), ("high", "low")}


def test_labels_are_changed_evenly_and_wordings_of_first_and_last_have_the_same_words(rows):
    keys = Counter(row["key"] for row in rows)
    assert {(key.partition(" ")[0], count) for key, count in keys.items()} == {
        ("last", 3), ("first", 3), ("without", 6), ("attribute", 3),
    }  # fmt: skip
    words = {" ".join(sorted(row["change"].replace(",", "").split())) for row in rows if row["kind"] == "then"}
    assert len(words) == 16  # two wordings of each of 8 labels, whichever the order


def test_other_sounds_serve_with_attributes_where_they_have_words():
    dogs = [
        (f"{label}/{word}", label, "", {"words": {"size": word}}) for label, word in product("abcdef", ("big", "small"))
    ]
    rows = RECIPE.render(MINI.changed(sounds=made(dogs), sample_rate=RATE, items=9)).rows
    assert Counter(row["kind"] for row in rows) == {"then": 3, "without": 3, "attribute": 3}
    rows = RECIPE.render(MINI.changed(sounds=unconditioned([2] * 6), sample_rate=RATE, items=8)).rows
    assert Counter(row["kind"] for row in rows) == {"then": 4, "without": 4}


def test_too_few_labels_are_refused_with_the_need():
    with pytest.raises(DatasetError, match=r"has 5 labels; 6 are needed"):
        _ = RECIPE.render(MINI.changed(sounds=unconditioned([2] * 5), sample_rate=RATE)).rows


def test_a_row_has_one_target(rows):
    with pytest.raises(DatasetError, match="exactly one must be 'target'"):
        RECIPE.check_row({**rows[0], "roles": [TARGET] * len(rows[0]["roles"])})
