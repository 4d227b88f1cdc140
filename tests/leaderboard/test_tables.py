from __future__ import annotations

import csv
import io
from dataclasses import replace

import pytest

from audio_compositionality.leaderboard.board import Shown
from audio_compositionality.leaderboard.tables import (
    Filters,
    board_csv,
    board_table,
    choices,
    columns,
    notes,
    ordered,
    ranking_heading,
)
from audio_compositionality.support.table import cell_text
from audio_compositionality.tasks.registry import list_tasks, load_task


@pytest.fixture(scope="module")
def rows(make_entry):
    verified = "2026-02-01T00:00:00+00:00"
    supervised = {"paradigm": "supervised", "licence": "MIT", "parameters": 5}
    masked = {"paradigm": "masked prediction", "licence": "MIT"}
    no_intervals = {measure.name: None for measure in load_task("a_coat").info.sampled}
    return [
        Shown(make_entry("org/one", 1, model=supervised, measures={"adjusted": 0.2}), 1),
        Shown(
            make_entry("Org/Two", 3, verified_on=verified, submitter="eve", model=masked, measures={"adjusted": 0.3}), 2
        ),
        Shown(
            make_entry("untrained:org/one", verified_on=verified, intervals=no_intervals, measures={"adjusted": 0.1}), 1
        ),
    ]


def with_interval(task):
    """The measure whose interval is shown."""
    return task.ranks_by if task.measure(task.ranks_by).column else task.score.name


def ids(rows):
    return [row.entry.model for row in rows]


@pytest.mark.parametrize("task", list_tasks(), ids=lambda task: task.info.name)
def test_columns_are_those_that_the_task_describes_scores_first(task):
    info = task.info
    shown = columns(info)
    headings = [column.heading for column in shown]
    assert len(set(headings)) == len(headings)
    assert headings[:3] == ["model", "verdict", info.measure(info.ranks_by).heading]
    assert headings[-1] == "entry"
    of_task = {measure.heading: measure for measure in info.shown}
    assert set(of_task) <= set(headings)
    assert max(map(headings.index, of_task)) < headings.index("status")
    meanings = {column.heading: column.meaning for column in shown}
    assert all(meanings[heading] == measure.meaning for heading, measure in of_task.items())
    before = headings[headings.index("95 % interval") - 1]
    assert of_task[before].column is not None


class TestFiltering:
    def test_words_must_all_be_there_in_any_case(self, rows):
        assert ids(filter(Filters("ORG one").keep, rows)) == ["org/one", "untrained:org/one"]
        assert ids(filter(Filters("mit org/").keep, rows)) == ["org/one", "Org/Two"]
        assert ids(filter(Filters("prediction").keep, rows)) == ["Org/Two"]
        assert ids(filter(Filters("not stated").keep, rows)) == ["untrained:org/one"]
        assert ids(filter(Filters("EVE").keep, rows)) == ["Org/Two"]
        assert ids(filter(Filters("org/one absent").keep, rows)) == []

    def test_by_status_paradigm_and_licence(self, rows):
        assert ids(filter(Filters(statuses=frozenset({"reported"})).keep, rows)) == ["org/one"]
        assert ids(filter(Filters(statuses=frozenset({"verified"})).keep, rows)) == ["Org/Two", "untrained:org/one"]
        assert ids(filter(Filters(paradigms=frozenset({"supervised"})).keep, rows)) == ["org/one"]
        assert ids(filter(Filters(licences=frozenset({"not stated"})).keep, rows)) == ["untrained:org/one"]
        both = Filters(licences=frozenset({"MIT"}), statuses=frozenset({"verified"}))
        assert ids(filter(both.keep, rows)) == ["Org/Two"]
        assert ids(filter(Filters().keep, rows)) == ids(rows)

    def test_what_can_be_chosen_is_what_there_is(self, rows):
        assert choices(rows, "paradigm") == ["masked prediction", "not stated", "supervised"]
        assert choices(rows, "licence") == ["MIT", "not stated"]


def test_order_is_by_numbers_or_words_and_missing_ones_are_last(rows, coat):
    assert ids(ordered(coat, rows, "A-COAT")) == ["Org/Two", "org/one", "untrained:org/one"]
    assert ids(ordered(coat, rows, "A-COAT", ascending=True)) == ["untrained:org/one", "org/one", "Org/Two"]
    assert ids(ordered(coat, rows, "dim")) == ["Org/Two", "org/one", "untrained:org/one"]
    # Words whatever their case; and by the measure that ranks where there is no such column.
    assert ids(ordered(coat, rows, "model", ascending=True)) == ["org/one", "Org/Two", "untrained:org/one"]
    assert ids(ordered(coat, rows, "gone")) == ids(ordered(coat, rows, ranking_heading(coat)))
    for ascending in (True, False):
        assert ids(ordered(coat, rows, "95 % interval", ascending=ascending))[-1] == "untrained:org/one"
        assert ids(ordered(coat, rows, "parameters", ascending=ascending))[0] == "org/one"


def test_how_it_is_written(make_entry, coat):
    entry = make_entry("x" * 200, measures={"null": -1e-9, "adjusted": 1e300}, model={"parameters": 1_234_567})
    table = board_table(coat, [Shown(entry, 1)])
    texts = {
        column.heading: cell_text(cell, column) for cell, column in zip(table.rows[0].cells, table.columns, strict=True)
    }
    assert texts["model"] == "x" * 79 + "…"
    assert texts["null"] == "0.000"
    assert texts["adjusted"] == "1e+300"
    assert texts["parameters"] == "1,234,567"
    low, high = entry.result.intervals[with_interval(coat)]
    assert texts["95 % interval"] == f"{low:.3f} to {high:.3f}".replace("-", "−")


def test_what_has_to_be_said_of_an_entry(make_entry, coat, tre):
    options = {"layer": 3, "pooling": "mean", "precision": "bfloat16", "compile": False}
    assert notes(make_entry("org/one", model={"options": options}), coat) == ["layer 3", "pooling mean", "bfloat16"]
    collapsed = make_entry("org/one", task="a_tre", measures={"collapsed": True})
    assert notes(collapsed, tre) == [tre.measure("collapsed").heading]
    assert notes(make_entry("org/one"), coat) == []

    asking = replace(coat, choices={"orders": 1, "scoring": "generate"})
    assert notes(make_entry("org/one", settings={"orders": "cyclic", "scoring": "generate"}), asking) == [
        "orders cyclic"
    ]
    assert notes(make_entry("org/one", settings={}), asking) == []
    older = make_entry("org/one", task_version=coat.version + 1)
    assert f"version {coat.version + 1} of the task" in notes(older, coat)[0]


class TestCsv:
    def lines(self, task, rows, commit="c"):
        return list(csv.DictReader(io.StringIO(board_csv(task, rows, commit))))

    def test_what_it_holds(self, rows, coat):
        lines = self.lines(coat, rows, "commit-1")
        assert [line["model"] for line in lines] == ["org/one", "Org/Two", "untrained:org/one"]
        assert [line["status"] for line in lines] == ["reported", "verified", "verified"]
        assert [line["submitted by"] for line in lines] == ["not known", "eve", "not known"]
        assert float(lines[0]["A-COAT"]) == rows[0].entry.result.score
        assert float(lines[0]["95 % low"]) == rows[0].entry.result.intervals[with_interval(coat)][0]
        assert [float(line["parameters"] or 0) for line in lines] == [5, 0, 0]
        assert lines[2]["95 % low"] == ""
        assert {line["commit"] for line in lines} == {"commit-1"}
        assert {line["fingerprint"] for line in lines} == {"ab" * 32}
        assert {measure.name for measure in coat.measures if not measure.shown} <= set(lines[0])

    @pytest.mark.parametrize("text", ["=1+1", "+1", "-1", "@SUM(A1)", "＝1", "  =1", '=cmd|"/c calc"!A1'])
    def test_text_that_begins_like_a_formula_is_no_formula(self, make_entry, coat, text):
        model = {"licence": text, "parameters": 7}
        row = Shown(make_entry("org/one", measures={"null": -0.5}, model=model, submitter=text), 1)
        line = self.lines(coat, [row])[0]
        assert (line["licence"], line["submitted by"]) == (f"'{text}", f"'{text}")
        assert (line["null"], line["parameters"]) == ("-0.5", "7"), "numbers stay numbers"


def test_what_group_has_to_be_above_is_the_larger_of_chance_and_its_own_trivial(make_entry):
    info = load_task("comp_a_order").info
    shown = []
    for trivial in (0.03, 0.41):
        measures = {"chance_group": 1 / 6, "trivial_group": trivial}
        table = board_table(info, [Shown(make_entry("org/one", task="comp_a_order", measures=measures), 1)])
        place = [column.heading for column in table.columns].index("to be above")
        shown.append(table.rows[0].cells[place].value)
    assert shown == [1 / 6, 0.41]
