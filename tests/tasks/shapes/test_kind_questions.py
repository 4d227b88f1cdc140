"""Tasks of questions of stated kinds: each kind and the worst one, worked by hand."""

from __future__ import annotations

import numpy as np
import pytest

from audio_compositionality.dataset_builder.recipes.question_rows import asked_row
from audio_compositionality.tasks.base import Outputs, TaskError
from audio_compositionality.tasks.shapes.questions import kind_questions

TASK = kind_questions("colours", "Colours", "Which?", ("two", "four", "never_asked"), "", ranks_by="worst_kind")


def rows():
    event = {"label": "bell", "start": 0.5, "stop": 1.0}
    asked = {"two": ["a", "b"], "four": ["a", "b", "c", "d"]}
    return [
        asked_row(
            f"{kind}-{n}", "Which?", options, "a", kind=kind, group=f"g{n}", pair="", clips=[[event]] * 2, seconds=2.0
        )
        for kind, options in asked.items()
        for n in range(4)
    ]


def scored(*answers):
    return TASK.score(rows(), Outputs(answers=answers), TASK.settings(rows(), {}), "cpu", False)


def test_the_worst_kind_is_the_one_that_gains_least_over_its_chance():
    # 3 of 4 with two options gain .5 of what there is to gain; 3 of 4 with four options gain 2/3.
    scores = scored(*"aaab", *"aaab")
    assert scores.measures["accuracy"] == 0.75
    assert (scores.measures["accuracy_two"], scores.measures["chance_two"]) == (0.75, 0.5)
    assert (scores.measures["accuracy_four"], scores.measures["chance_four"]) == (0.75, 0.25)
    assert (scores.measures["worst_kind"], scores.measures["chance_worst_kind"]) == (0.75, 0.5)
    assert scores.measures["accuracy_never_asked"] is None


def test_the_column_of_the_worst_kind_has_its_mean_and_no_share_of_others():
    scores = scored(*"aabb", *"aaaa")
    column = scores.columns["score_worst_kind"]
    assert column.mean() == pytest.approx(scores.measures["worst_kind"]) == pytest.approx(0.5)
    assert np.allclose(column[4:], 0.5)
    kind = TASK.info.measure("accuracy_four")
    assert kind.places(scores.columns).tolist() == [4, 5, 6, 7]


def test_every_measure_is_stated_and_the_groups_count():
    scores = scored(*"aabb", *"aabb")
    assert list(scores.measures) == [measure.name for measure in TASK.info.measures]
    assert scores.measures["groups_right"] == 0.5
    assert scores.measures["groups_right_chance"] == pytest.approx(0.125)


def test_a_kind_that_is_not_stated_is_refused():
    wrong = [{**rows()[0], "kind": "tow"}]
    with pytest.raises(TaskError, match=r"two-0 is of the kind 'tow'; did you mean 'two'"):
        TASK.settings(wrong, {})


def test_events_of_the_second_clip_come_after_the_first_and_a_pause():
    row = rows()[0]
    assert row["files"] == ["two-0-1", "two-0-2"]
    assert row["duration"] == 4
    assert [event["onset"] for event in row["events"]] == [0.5, 3.5]
