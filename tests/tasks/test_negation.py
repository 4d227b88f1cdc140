"""Negation from embeddings to columns: what is stated of kinds and of captions that deny, worked by hand."""

from __future__ import annotations

import numpy as np
import pytest

from audio_compositionality.dataset_builder.recipes import load_recipe
from audio_compositionality.tasks.base import Outputs
from audio_compositionality.tasks.registry import load_task

TASK = load_task("negation")
RECIPE = load_recipe("negation")


@pytest.fixture(scope="module")
def rows():
    return RECIPE.render(RECIPE.presets["mini"].changed(items=16)).rows


def scored(rows, believed):
    """Scores of captions that are near to the first clip of an item, the second, or both."""
    texts = np.array([of_caption for row in rows for of_caption in believed(row)], np.float32)
    return TASK.score(rows, Outputs(clips=np.tile(np.eye(2), (len(rows), 1)), texts=texts), {}, "cpu", False)


def test_a_model_that_is_right_of_order_alone_and_blind_elsewhere(rows):
    def believed(row):
        if row["kind"] == "order":
            return [[1, 0], [0, 1]]
        # Both captions are taken for the one that does not deny.
        return [[0, 1], [0, 1]] if row["negated"] == 0 else [[1, 0], [1, 0]]

    scores = scored(rows, believed)
    kinds = {name: scores.measures[f"match_{name}"] for name in ("absence", "only", "number", "order")}
    assert kinds == {"absence": 0.5, "only": 0.5, "number": 0.5, "order": 1}
    assert scores.measures["match"] == 0.625
    assert scores.measures["negated"] == pytest.approx(1 / 3)  # of three kinds, in one of which it is right
    assert scores.measures["affirmed"] == 1
    for measure in TASK.info.with_intervals:
        column = scores.columns[measure.column][measure.places(scores.columns)]
        assert column.mean() == pytest.approx(scores.measures[measure.name]), measure.name


def test_of_numbers_alone_nothing_is_denied(rows):
    rows = [row for row in rows if row["kind"] == "number"]
    scores = scored(rows, lambda row: [[1, 0], [0, 1]])
    assert (scores.measures["match"], scores.measures["negated"], scores.measures["match_order"]) == (1, None, None)
    assert "score_negated" not in scores.columns


def test_items_of_the_same_labels_are_one_cluster(rows):
    samples = TASK.samples(rows)
    assert samples.clusters[0] == samples.clusters[1]
    assert len(set(samples.clusters.tolist())) == len({row["pair"] for row in rows})
    assert samples.groups["kind"] == tuple(row["kind"] for row in rows)
