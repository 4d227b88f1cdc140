"""Measures of some of the samples, the order of groups, and tables of many of them."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from audio_compositionality.evaluator.compare.comparison import compare_results
from audio_compositionality.evaluator.compare.diversity import Diversity, group_order
from audio_compositionality.evaluator.compare.statistics import GroupMean, mean_intervals
from audio_compositionality.evaluator.compare.tables import MOST_GROUPS, group_tables
from audio_compositionality.evaluator.run.evaluate import intervals_of
from audio_compositionality.tasks.base import Measure, Scores
from audio_compositionality.tasks.registry import load_task


def test_groups_with_numbers_in_front_come_by_their_size():
    labels = ["none", "10.00 to 12.00 s", "2", "0 s", "2.50 s", "3dB", "alone"]
    assert sorted(labels, key=group_order) == ["0 s", "2", "2.50 s", "10.00 to 12.00 s", "3dB", "alone", "none"]


@pytest.fixture
def coat(write_results, tmp_path):
    (comparison,) = compare_results([write_results(tmp_path, ["one", "two"], tasks=["a_coat"])])
    return comparison


def test_many_groups_are_rows(coat):
    def grouped(count):
        means = tuple(GroupMean(str(number), 12, number / 100, (0.0, 1.0)) for number in range(count))
        slopes = Diversity((), {"shelf": {label: means for label in coat.labels}})
        (table,) = group_tables(coat, next(iter(coat.views)), slopes)
        return table

    few, many = grouped(MOST_GROUPS), grouped(MOST_GROUPS + 1)
    assert [column.heading for column in few.columns][:2] == ["model", "0 (n = 12)"]
    assert [row.cells[0].value for row in few.rows] == list(coat.labels)
    assert [column.heading for column in many.columns] == ["shelf", *coat.labels]
    assert [row.cells[0].value for row in many.rows][:2] == ["0 (n = 12)", "1 (n = 12)"]
    assert many.rows[3].cells[1].value == 0.03


class Parted:
    """A task with a measure of the samples on the upper shelf alone."""

    upper = Measure("upper", "upper", "mean of the upper shelf", column="score", within=("shelf", 1.0))
    info = replace(
        load_task("a_coat").info,
        measures=(Measure("score", "score", "mean", column="score"), upper),
        ranks_by="score",
        trusted={},
    )


def test_a_measure_of_some_samples_has_the_interval_of_these():
    rng = np.random.default_rng(0)
    score, shelf, clusters = rng.normal(size=60), np.arange(60) % 2.0, np.arange(60) // 2
    columns = {"score": score, "shelf": shelf}
    assert [measure.name for measure in Parted.info.sampled] == ["score"]
    assert [measure.name for measure in Parted.info.with_intervals] == ["score", "upper"]
    assert Parted.upper.places(columns).tolist() == list(range(1, 60, 2))
    assert Parted.upper.places({"score": score}).tolist() == []

    class Described:
        pass

    described = Described()
    described.clusters = clusters
    scores = Scores({"score": 0.0, "upper": 0.0}, tuple(map(str, range(60))), columns)
    intervals = intervals_of(Parted, scores, described)
    assert intervals["upper"] == mean_intervals(score[1::2, None], clusters[1::2])[0]
    assert intervals["score"] == mean_intervals(score[:, None], clusters)[0]
    without = replace(scores, columns={"score": score, "shelf": np.zeros(60)})
    assert intervals_of(Parted, without, described)["upper"] is None
