"""Composed queries as tasks: constructed models reach exactly what theory says, and steps are of other rows."""

from __future__ import annotations

import numpy as np
import pytest

from audio_compositionality.dataset_builder.recipes.composed_retrieval import RECIPE, TARGET
from audio_compositionality.tasks.base import Outputs, TaskError, nulls_of
from audio_compositionality.tasks.composed_retrieval import TASK
from audio_compositionality.tasks.composed_retrieval_steps import TASK as STEPS
from audio_compositionality.tasks.composed_retrieval_steps import rows_of_step


@pytest.fixture(scope="module")
def rows():
    return RECIPE.render(RECIPE.presets["mini"]).rows


def scored(task, rows, clip, text=None):
    """The task's scores of embeddings that a function makes of the events of a clip, and another of a row."""
    clips = np.array([clip(events) for row in rows for events in row["events"]])
    texts = np.zeros((0, 0)) if text is None else np.array([text(row) for row in rows])
    return task.score(rows, Outputs(clips=clips, texts=texts), task.settings(rows, {}), "cpu", False)


def sums(rows):
    """The sum of a direction for each label, which hears no order and no attribute."""
    labels = sorted({event["label"] for row in rows for clip in row["events"] for event in clip})
    return lambda events: np.eye(len(labels))[[labels.index(event["label"]) for event in events]].sum(axis=0)


def test_steps_of_a_sum_find_half_of_what_needs_order_or_binding(rows):
    labels = sorted({event["label"] for row in rows for clip in row["events"] for event in clip})

    def clip(events):
        z = np.zeros(len(labels) + 2)
        for event in events:
            z[labels.index(event["label"])] += 1
            z[-2] += "high" in event["attributes"]
            z[-1] += "low" in event["attributes"]
        return z

    measures = scored(STEPS, rows, clip).measures
    assert (measures["r1_then"], measures["r1_attribute"]) == (0.5, 0.5)
    assert measures["r1_without"] > 0.9


def test_source_alone_is_at_its_floor_exactly(rows):
    measures = scored(TASK, rows, sums(rows), lambda row: np.zeros(8)).measures
    assert measures["r1"] == measures["source_only_r1"] == measures["floor"] > measures["chance"]
    assert measures["gain"] == 0
    assert [measures[f"r1_{kind}"] for kind in ("then", "without", "attribute")] == pytest.approx([1 / 4, 1 / 3, 1 / 2])


def test_the_bar_is_the_larger_of_chance_and_floor(rows):
    measures = scored(TASK, rows, sums(rows), lambda row: np.zeros(8)).measures
    bars = nulls_of(TASK.info.measure("r1"), TASK.info, measures)
    assert [measure.name for measure, _ in bars] == ["floor", "chance"]


def test_steps_are_of_the_same_change_in_other_sources(rows):
    of_rows = rows_of_step(rows)
    for row, places in zip(rows, of_rows, strict=True):
        labels = set(row["pair"].split(" + "))
        others = [other for other in rows if other["key"] == row["key"] and other["pair"] != row["pair"]]
        shared = [len(labels & set(rows[place]["pair"].split(" + "))) for place in places]
        assert all(rows[place] in others for place in places)
        assert (
            set(shared) <= {min(len(labels & set(other["pair"].split(" + "))) for other in others)} if others else True
        )
    assert sum(not places for places in of_rows) < len(rows) / 20


def test_rows_without_others_of_their_change_are_left_out_and_counted(rows):
    few = rows[:60]
    scores = scored(STEPS, few, sums(rows))
    left = [row["id"] for row, places in zip(few, rows_of_step(few), strict=True) if not places]
    assert scores.measures["left_out"] == len(left) > 0
    assert set(scores.ids) == {row["id"] for row in few} - set(left)
    assert STEPS.samples(few).ids == scores.ids
    with pytest.raises(TaskError, match="none of 1 queries"):
        STEPS.settings(rows[:1], {})


def test_inputs_are_in_the_order_of_the_clips(rows):
    inputs = TASK.inputs(rows[0], {})
    assert inputs.clips == tuple(RECIPE.clip_names(rows[0]))
    assert (inputs.texts, STEPS.inputs(rows[0], {}).texts) == ((rows[0]["change"],), ())
    assert rows[0]["roles"].count(TARGET) == 1
