"""Items of negation and questions about two clips: true of one clip and false of the other, and balanced exactly."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from itertools import pairwise

import numpy as np
import pytest

from audio_compositionality.dataset_builder.data import DatasetError
from audio_compositionality.dataset_builder.recipes.negation import RECIPE, WORDINGS
from audio_compositionality.dataset_builder.recipes.negation_questions import RECIPE as QUESTIONS
from audio_compositionality.dataset_builder.recipes.two_clips import RECIPE as TWO_CLIPS

from .recorded import RATE, unconditioned

TRUTHS = {
    r"(.+) and no (.+)": lambda s, x, z: x in s and z not in s,
    r"(.+) and some (.+)": lambda s, x, z: x in s and z in s,
    r"(.+) without (.+)": lambda s, x, z: x in s and z not in s,
    r"(.+) with (.+)": lambda s, x, z: x in s and z in s,
    r"(.+) and nothing else": lambda s, x: set(s) == {x},
    r"(.+) and something else": lambda s, x: x in s and set(s) != {x},
    r"nothing besides (.+)": lambda s, x: set(s) == {x},
    r"something besides (.+)": lambda s, x: x in s and set(s) != {x},
    r"not only (.+)": lambda s, x: x in s and set(s) != {x},
    r"not just (.+)": lambda s, x: x in s and set(s) != {x},
    r"only (.+)": lambda s, x: set(s) == {x},
    r"just (.+)": lambda s, x: set(s) == {x},
    r"(.+) heard two times": lambda s, x: s.count(x) == 2,
    r"(.+) heard three times": lambda s, x: s.count(x) == 3,
    r"fewer (.+) than (.+)": lambda s, x, z: s.count(x) < s.count(z),
    r"more (.+) than (.+)": lambda s, x, z: s.count(x) > s.count(z),
    r"(.+) not before (.+)": lambda s, x, z: x in s and z in s and not s.index(x) < s.index(z),
    r"(.+) not after (.+)": lambda s, x, z: x in s and z in s and not s.index(x) > s.index(z),
    r"(.+) before (.+)": lambda s, x, z: s.index(x) < s.index(z),
    r"(.+) after (.+)": lambda s, x, z: s.index(x) > s.index(z),
}
"""The meaning of each caption, as people read it, of the labels of a clip in the order of time."""

DENYING = {"no", "without", "nothing", "not"}

SOUNDS = unconditioned([3] * 3)

SPECS = {
    "tones": RECIPE.presets["mini"],
    "three labels": RECIPE.of_sounds(RECIPE.presets["mini"], SOUNDS, {"sample_rate": RATE, "items": 96}),
}


def heard(events):
    return [event["label"] for event in sorted(events, key=lambda event: event.get("start", event.get("onset")))]


def is_true(caption, labels):
    for pattern, truth in TRUTHS.items():
        if match := re.fullmatch(pattern, caption):
            return truth(labels, *match.groups())
    raise AssertionError(caption)


@pytest.fixture(scope="module", params=SPECS)
def rows(request):
    return RECIPE.render(SPECS[request.param]).rows


def test_a_caption_is_true_of_its_clip_and_false_of_the_other(rows):
    for row in rows:
        sounds = [heard(events) for events in row["events"]]
        truths = [[is_true(caption, labels) for labels in sounds] for caption in row["captions"]]
        assert truths == [[True, False], [False, True]], row["captions"]


def test_captions_differ_in_one_word_and_the_denying_one_is_named(rows):
    for row in rows:
        words = [caption.split() for caption in row["captions"]]
        changed = [Counter(one) - Counter(other) for one, other in (words, words[::-1])]
        assert max(sum(change.values()) for change in changed) == 1
        denying = [place for place, caption in enumerate(words) if DENYING & set(caption)]
        assert denying == ([] if row["negated"] < 0 else [row["negated"]])
        assert (row["negated"] < 0) == (row["kind"] == "number")


def test_clips_of_an_item_have_the_same_slots_and_all_that_is_said(rows):
    for row in rows:
        times = [[(event["start"], event["stop"]) for event in events] for events in row["events"]]
        assert times[0] == times[1]
        assert len(times[0]) == (5 if row["kind"] == "number" else 2)
        assert all(one[1] < other[0] for one, other in pairwise(times[0]))
        every = {label for events in row["events"] for label in heard(events)}
        assert sorted(every) == row["pair"].split(" | ")
        if row["kind"] == "number":  # neither the first sound nor the last tells anything
            first, second = map(heard, row["events"])
            assert (first[0], first[-1]) == (second[0], second[-1])
            assert sum(one != other for one, other in zip(first, second, strict=True)) == 1


def test_mirrors_deny_of_either_clip_so_that_everything_is_even(rows):
    for one, other in zip(rows[::2], rows[1::2], strict=True):
        assert one["events"] == other["events"]
        if one["kind"] == "number":
            assert ["two" in c or "fewer" in c for c in one["captions"]] == [
                "three" in c or "more" in c for c in other["captions"]
            ]
        else:
            assert {one["negated"], other["negated"]} == {0, 1}
    kinds = Counter(row["kind"] for row in rows)
    assert set(kinds.values()) == {len(rows) // len(WORDINGS)}
    by_kind = defaultdict(list)
    for row in rows:
        by_kind[row["kind"]].append(row)
    for of_kind in by_kind.values():
        assert len(set(Counter(row["template"] for row in of_kind).values())) == 1
        used = Counter(label for row in of_kind[::2] for label in row["pair"].split(" | ")).values()
        assert max(used) - min(used) <= 1


def test_both_clips_are_equally_long_and_loud():
    rendering = RECIPE.render(SPECS["three labels"])
    for index in range(8):
        one, other = np.array(rendering.clips(index), float)
        assert np.mean(one**2) == pytest.approx(np.mean(other**2), rel=2e-3)


def test_two_labels_are_too_few():
    for recipe in (RECIPE, QUESTIONS, TWO_CLIPS):
        spec = recipe.of_sounds(recipe.presets["mini"], unconditioned([3] * 2), {"sample_rate": RATE})
        with pytest.raises(DatasetError, match="has 2 labels; 3 are needed"):
            list(recipe.render(spec).rows)


def groups_of(rows):
    groups = defaultdict(list)
    for row in rows:
        groups[row["group"]].append(row)
    return list(groups.values())


def test_questions_about_an_item_have_the_same_words_and_other_answers():
    spec = SPECS["tones"].changed(items=24)
    questions, items = QUESTIONS.render(spec), RECIPE.render(spec)
    rows = questions.rows
    # Neither the place in a group nor a name tells the answer.
    assert len({tuple(row["options"].index(row["answer"]) for row in group) for group in groups_of(rows)}) > 3
    for number, item in enumerate(items.rows):
        of_item = [place for place in range(len(rows)) if place // 4 == number // 2]
        of_item = [place for place in of_item if set(rows[place]["options"]) == set(item["captions"])]
        for caption, clip in zip(item["captions"], items.clips(number), strict=True):
            asked = [place for place in of_item if rows[place]["answer"] == caption]
            # Mirrors of one wording have the same captions.
            assert len(asked) == len(of_item) // 2
            # The samples are those of the item, under one gain.
            assert clip.tobytes() in [questions.clips(place)[0].tobytes() for place in asked]
    for row in rows:
        assert row["question"] == rows[0]["question"]
        assert [is_true(option, heard(row["events"])) for option in row["options"]] == [
            option == row["answer"] for option in row["options"]
        ]
    assert {len(group) for group in groups_of(rows)} == {4}


def difference(first, second):
    """The difference of two clips of labels, by definition."""
    if set(first) != set(second):
        return "which sounds there are"
    if Counter(first) != Counter(second):
        return "how many times each is heard"
    return "their order" if first != second else "nothing"


def test_each_answer_about_two_clips_is_right_once_in_a_group():
    rows = TWO_CLIPS.render(TWO_CLIPS.presets["mini"]).rows
    assert len(rows) == 240
    for group in groups_of(rows):
        assert len({(row["question"], *row["options"], row["kind"]) for row in group}) == 1
        assert {row["answer"] for row in group} == set(group[0]["options"])
        for row in group:
            second = row["duration"] / 2 + 1.0
            parts = [[event for event in row["events"] if (event["onset"] >= second) == late] for late in (0, 1)]
            first, other = map(heard, parts)
            assert len(first) == len(other) == 3
            asked = re.fullmatch(r"Two clips .*\. In which of them is (.+?) heard(?: before (.+))?\?", row["question"])
            if asked is None:
                assert row["answer"] == difference(first, other)
                continue
            x, y = asked.groups()
            has = [x in clip if y is None else clip.index(x) < clip.index(y) for clip in (first, other)]
            answers = {(1, 0): "the first clip", (0, 1): "the second clip", (1, 1): "both clips"}
            assert row["answer"] == answers.get(tuple(map(int, has)), "neither clip")
    assert set(Counter(row["kind"] for row in rows).values()) == {80}
