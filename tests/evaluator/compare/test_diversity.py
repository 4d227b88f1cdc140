"""Scores by groups of samples, also by how often training captions name their sounds."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from audio_compositionality.cli.main import main
from audio_compositionality.dataset_builder.open_data import open_data
from audio_compositionality.evaluator.compare.comparison import compare_results
from audio_compositionality.evaluator.compare.diversity import GROUPING, Diversity, group_order, with_training_captions
from audio_compositionality.evaluator.compare.formats import comparison_tables
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


CAPTIONS = ("a marimba", "a marimba and a bell", "a bell")


@pytest.fixture(scope="module")
def results(write_results, tmp_path_factory):
    return write_results(tmp_path_factory.mktemp("results"), ["one", "two"], tasks=["comp_a_order"])


def test_samples_are_told_apart_by_how_often_the_rarer_sound_is_named(results):
    (comparison,) = compare_results([results])
    told = with_training_captions(comparison, CAPTIONS)
    rows = {row["id"]: row for row in open_data("mini").configuration("comp_a_order").rows}
    for name, group in zip(told.ids, told.samples.groups[GROUPING], strict=True):
        labels = {event["label"] for event in rows[name]["events"][0]}
        assert group == ("2 captions" if labels == {"marimba", "bell"} else "0 captions")
    assert any(table.caption.endswith(f"by {GROUPING}") for table in comparison_tables(told))
    assert not any(GROUPING in table.caption for table in comparison_tables(comparison))


def test_where_no_labels_are_known_that_is_said(results):
    (comparison,) = compare_results([results])
    bare = tuple({**row, "events": [[], []]} for row in comparison.samples.rows)
    told = with_training_captions(replace(comparison, samples=replace(comparison.samples, rows=bare)), CAPTIONS)
    assert GROUPING not in told.samples.groups
    assert any("no known labels to count in the training captions" in note for note in told.notes)


def test_compare_takes_them_from_a_file(results, tmp_path, capsys):
    (tmp_path / "texts.csv").write_text("path,caption\n" + "".join(f"x.wav,{text}\n" for text in CAPTIONS))
    typed = ["--training-captions", str(tmp_path / "texts.csv"), "--format", "markdown"]
    assert main(["compare", str(results), *typed]) == 0
    assert f"by {GROUPING}" in " ".join(capsys.readouterr().out.split())
