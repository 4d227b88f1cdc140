"""Composed queries as a task: a constructed model reaches exactly what theory says."""

from __future__ import annotations

import numpy as np
import pytest

from audio_compositionality.dataset_builder.recipes.composed_retrieval import RECIPE, TARGET
from audio_compositionality.tasks.base import Outputs, nulls_of
from audio_compositionality.tasks.composed_retrieval import TASK


@pytest.fixture(scope="module")
def rows():
    return RECIPE.render(RECIPE.presets["mini"]).rows


def test_source_alone_is_at_its_trivial_exactly(rows):
    labels = sorted({event["label"] for row in rows for clip in row["events"] for event in clip})
    heard = [[labels.index(event["label"]) for event in clip] for row in rows for clip in row["events"]]
    # The sum of a direction for each label, which hears no order and no attribute.
    clips = np.array([np.eye(len(labels))[one].sum(axis=0) for one in heard])
    outputs = Outputs(clips=clips, texts=np.zeros((len(rows), len(labels))))
    scores = TASK.score(rows, outputs, TASK.settings(rows, {}), "cpu", False)
    measures = scores.measures
    assert scores.ids == TASK.samples(rows).ids
    assert measures["r1"] == measures["source_only_r1"] == measures["trivial"] > measures["chance"]
    assert measures["gain"] == 0
    assert [measures[f"r1_{kind}"] for kind in ("then", "without", "attribute")] == pytest.approx([1 / 4, 1 / 3, 1 / 2])
    bars = nulls_of(TASK.info.measure("r1"), TASK.info, measures)
    assert [measure.name for measure, _ in bars] == ["trivial", "chance"]


def test_inputs_are_in_the_order_of_the_clips(rows):
    inputs = TASK.inputs(rows[0], {})
    assert inputs.clips == tuple(RECIPE.clip_names(rows[0]))
    assert inputs.texts == (rows[0]["change"],)
    assert rows[0]["roles"].count(TARGET) == 1
