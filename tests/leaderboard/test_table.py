import csv
import io

import pytest

from audio_compositionality.evaluator.compare.table import control_headings
from audio_compositionality.leaderboard.entries import Shown
from audio_compositionality.leaderboard.table import (CONTROLS, Filters, choices, columns, defused, notes, ordered, shortened, write_csv)


@pytest.fixture(scope="module")
def rows(make_entry):
    verified = "2026-02-01T00:00:00+00:00"
    return [
        Shown(make_entry("org/one", 1, paradigm="supervised", licence="MIT", parameters=5), 1),
        Shown(
            make_entry(
                "Org/Two", 3, verified_on=verified, submitter="eve", paradigm="masked prediction", licence="MIT"
            ),
            2,
        ),
        Shown(make_entry("untrained:org/one", 0, verified_on=verified, interval=None), 1),
    ]


def column(heading, task="a_coat"):
    return next(column for column in columns(task) if column.heading == heading)


def ids(rows):
    return [row.entry.result.encoder_id for row in rows]


@pytest.mark.parametrize("task", ["a_coat", "a_tre"])
def test_the_controls_are_those_of_the_command_line(task):
    shown = " ".join(CONTROLS[task])
    for heading in control_headings(task):
        assert heading.replace(" (null)", "") in shown
    assert len({column.heading for column in columns(task)}) == len(columns(task))


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


class TestOrder:
    def test_by_numbers(self, rows):
        assert ids(ordered(rows, column("A-COAT"))) == ["Org/Two", "org/one", "untrained:org/one"]
        assert ids(ordered(rows, column("A-COAT"), ascending=True)) == ["untrained:org/one", "org/one", "Org/Two"]
        assert ids(ordered(rows, column("dim"))) == ["Org/Two", "org/one", "untrained:org/one"]

    def test_by_words_whatever_their_case(self, rows):
        assert ids(ordered(rows, column("encoder"), ascending=True)) == ["org/one", "Org/Two", "untrained:org/one"]

    @pytest.mark.parametrize("ascending", [True, False])
    def test_what_is_missing_is_last(self, rows, ascending):
        assert ids(ordered(rows, column("95 % low"), ascending=ascending))[-1] == "untrained:org/one"
        assert ids(ordered(rows, column("parameters"), ascending=ascending))[0] == "org/one"


def test_how_numbers_are_written(make_entry):
    score, dim, low = column("A-COAT"), column("dim"), column("95 % low")
    assert score.shown(-0.00001) == "0.000"
    assert score.shown(0.12345) == "0.123"
    assert dim.shown(1_234_567) == "1,234,567"
    assert low.shown(None) == "–"
    assert len(score.shown(1e300)) < 10


def test_what_has_to_be_said_of_an_entry(make_entry):
    options = {"layer": 3, "pooling": "mean", "precision": "bfloat16", "compile": False}
    assert notes(make_entry("org/one", options=options)) == ["layer 3", "pooling mean", "bfloat16"]
    collapsed = make_entry("org/one", task="a_tre", controls={"collapsed": True})
    assert notes(collapsed) == ["predictions hardly vary"]
    assert notes(make_entry("org/one")) == []


class TestCsv:
    def test_what_it_holds(self, rows):
        lines = list(csv.DictReader(io.StringIO(write_csv("a_coat", rows, "commit-1"))))
        assert [line["encoder"] for line in lines] == ["org/one", "Org/Two", "untrained:org/one"]
        assert [line["status"] for line in lines] == ["reported", "verified", "verified"]
        assert [line["submitted by"] for line in lines] == ["not known", "eve", "not known"]
        assert [line["interval"] for line in lines] == ["t, reported", "BCa", "BCa"]
        assert float(lines[0]["A-COAT"]) == rows[0].entry.result.score
        assert [line["parameters"] for line in lines] == ["5", "", ""]
        assert lines[2]["95 % low"] == ""
        assert {line["commit"] for line in lines} == {"commit-1"}
        assert {line["fingerprint"] for line in lines} == {"ab" * 32}

    @pytest.mark.parametrize("text", ["=1+1", "+1", "-1", "@SUM(A1)", "＝1", "  =1", '=cmd|"/c calc"!A1'])
    def test_text_that_begins_like_a_formula_is_no_formula(self, make_entry, text):
        row = Shown(make_entry("org/one", licence=text), 1)
        line = next(csv.DictReader(io.StringIO(write_csv("a_coat", [row], "c"))))
        assert line["licence"] == f"'{text}"
        row = Shown(make_entry("org/one", submitter=text), 1)
        assert next(csv.DictReader(io.StringIO(write_csv("a_coat", [row], "c"))))["submitted by"] == f"'{text}"

    def test_numbers_stay_numbers(self, make_entry):
        row = Shown(make_entry("org/one", 0, interval=[-0.5, -0.25], parameters=7), 1)
        line = next(csv.DictReader(io.StringIO(write_csv("a_coat", [row], "c"))))
        assert (line["95 % low"], line["95 % high"], line["parameters"]) == ("-0.5", "-0.25", "7")

    def test_what_cannot_be_seen_is_replaced(self):
        assert defused("\tx") == "'\tx"
        assert defused("x=1") == "x=1"
        assert defused("") == ""


def test_shortened():
    assert shortened("a\nb\u202ec\x00") == "a b\ufffdc\ufffd"
    assert shortened("x" * 81) == "x" * 79 + "…"
    assert shortened("x" * 80) == "x" * 80
    assert len(shortened("\n" * 10_000_000)) == 80
