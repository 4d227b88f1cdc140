"""The frame of results: what a result states and what is computed of its samples, a row a number."""

from __future__ import annotations

from dataclasses import replace

import pytest

from audio_compositionality.evaluator.compare.comparison import compare_results
from audio_compositionality.evaluator.compare.rows import (
    SCORE_COLUMNS,
    ScoreRow,
    comparison_rows,
    model_scores,
    stated_rows,
    tidy_frame,
)
from audio_compositionality.tasks.registry import load_task

MODELS = ("log-mel-statistics", "whisper-base")


@pytest.fixture(scope="module")
def order(tmp_path_factory, write_results):
    """A comparison of a task with parts, each with its chance and its trivial baseline."""
    (comparison,) = compare_results([write_results(tmp_path_factory.mktemp("results"), MODELS, tasks=["comp_a_order"])])
    return comparison


def test_a_result_has_a_row_for_each_measure_that_it_states(order):
    info, result = load_task("comp_a_order").info, order.results[0].result
    rows = {row.measure: row for row in stated_rows(result)}
    assert {name: row.value for name, row in rows.items()} == result.measures
    assert {name: row.interval for name, row in rows.items() if row.interval is not None} == {
        name: tuple(ends) for name, ends in result.intervals.items() if ends is not None
    }
    for measure in info.measures:
        row = rows[measure.name]
        assert (row.null, row.trivial) == (
            result.measures.get(measure.null or ""),
            result.measures.get(measure.trivial or ""),
        )
        stated = [value for value in (row.null, row.trivial) if value is not None]
        assert row.least(measure, info) == max(stated, default=None)


def test_a_row_of_a_measure_that_no_task_knows_has_nothing_beside_it(order):
    result = order.results[0].result
    strange = result.model_copy(update={"measures": {**result.measures, "strange": 0.5}})
    *_, row = stated_rows(strange, "one")
    assert row == replace(row, measure="strange", value=0.5, model="one", low=None, high=None, null=None, trivial=None)


def test_means_are_those_of_views_with_their_letters_where_they_are_wanted(order):
    for place, result in enumerate(order.results):
        scores = model_scores(order, place, order.info.measures, grouped=order.views)
        for name, view in order.views.items():
            row = scores[name]
            assert (row.quantity, row.n, row.value) == ("mean", len(order.ids), view.means[place])
            assert (row.interval, row.group) == (view.intervals[place], view.letters[place])
        assert {row.kind for row in scores.values()} == {result.kind.value}
        assert all(row.group is None for row in model_scores(order, place, order.info.measures).values())


def test_the_tidy_frame_has_every_row(order):
    rows, tidy = list(comparison_rows(order)), tidy_frame([order, order])
    assert tuple(tidy.columns) == SCORE_COLUMNS == tuple(ScoreRow.__dataclass_fields__)
    assert len(tidy) == 2 * len(rows)
    assert tidy.value[: len(rows)].tolist() == pytest.approx([float(row.value) for row in rows], nan_ok=True)
    stated = tidy[(tidy.quantity == "stated") & (tidy.measure == order.info.score.name)]
    assert set(stated.model) == set(MODELS)
    # A mean has one row a model and measure, be it over all samples or over some.
    means = tidy[: len(rows)][tidy.quantity[: len(rows)] == "mean"]
    assert not means.duplicated(["measure", "model"]).any()
