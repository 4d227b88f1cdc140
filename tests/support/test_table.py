"""The one table, read back by parsers that we did not write."""

from __future__ import annotations

import csv
import io
import json
import math
import re

import pytest
from rich.cells import cell_len

from audio_compositionality.support.table import (
    Cell,
    Column,
    Row,
    Table,
    cell_text,
    defuse,
    print_table,
    to_csv,
    to_json,
    to_markdown,
    to_text,
)


@pytest.fixture
def table():
    columns = (Column("name", numeric=False), Column("score", "how good it is"), Column("n", digits=None))
    rows = (
        Row((Cell("one & only"), Cell(-0.12345, note="[−0.2, −0.1]\nnull 0.01"), Cell(1_234.0))),
        Row((Cell("=1+1"), Cell(None), Cell(True))),
        Row((Cell("[x]"), Cell(math.inf), Cell(0.0, "none"))),
    )
    return Table("What | is shown", columns, rows, ("It is 5 % of a_b.",))


def test_cells():
    score, count = Column("score"), Column("n", digits=None)
    for cell, column, text in (
        (Cell(-0.5), score, "-0.500"),
        (Cell(-0.0001), score, "0.000"),
        (Cell(None), score, "–"),
        (Cell(1_234.0), count, "1,234"),
        (Cell(True), score, "yes"),
        (Cell(-math.inf), score, "-∞"),
        (Cell(0.5, "half"), score, "half"),
        (Cell("a\nb\u202ec"), score, "a b\ufffdc"),
    ):
        assert cell_text(cell, column) == text
    assert cell_text(Cell(-0.5), score, minus="−") == "−0.500"
    assert Cell(1, note="one\n\ntwo").notes == ("one", "two")


def test_csv_has_full_precision_and_no_formula(table):
    header, *rows = csv.reader(io.StringIO(to_csv(table)))
    assert header == ["name", "score", "n"]
    assert float(rows[0][1]) == -0.12345
    assert rows[1][0] == "'=1+1"
    assert rows[1][1] == ""


def test_whole_numbers_with_a_gap_stay_whole():
    columns = (Column("name", numeric=False), Column("parameters", digits=None), Column("score"))
    rows = (
        Row((Cell("a"), Cell(80_000_001), Cell(5.0))),
        Row((Cell("b"), Cell(None), Cell(None))),
        Row((Cell("c"), Cell(2**60 + 1), Cell(0.5))),
    )
    table = Table("", columns, rows)
    assert to_csv(table) == "name,parameters,score\na,80000001,5.0\nb,,\nc,1152921504606846977,0.5\n"
    assert [row["parameters"] for row in json.loads(to_json([table]))[0]["rows"]] == [80_000_001, None, 2**60 + 1]


@pytest.mark.parametrize("text", ["=1", "+1", "-1", "@x", "  =cmd|x", "＝1", "\t1", "\r=1", " ＠x", "－1"])
def test_formulas_are_defused(text):
    assert defuse(text) == f"'{text}"


@pytest.mark.parametrize("text", ["a=1", "org/model", "", "1-1", "é"])
def test_text_is_left_alone(text):
    assert defuse(text) == text


def test_json_has_full_precision(table):
    (values,) = json.loads(to_json([table]))
    assert values["caption"] == table.caption
    assert values["columns"]["score"] == "how good it is"
    assert values["rows"][0] == {"name": "one & only", "score": -0.12345, "n": 1234.0}
    assert values["rows"][2]["score"] is None
    tiny = Table("", (Column("p"),), (Row((Cell(1e-30),)),))
    assert json.loads(to_json([tiny]))[0]["rows"] == [{"p": 1e-30}]


def test_markdown_keeps_its_columns(table):
    lines = [line for line in to_markdown(table).splitlines() if line.startswith("|")]
    assert {len(re.split(r"(?<!\\)\|", line)) for line in lines} == {5}
    assert lines[1] == "|:--|--:|--:|"
    assert "−0.123 \\[−0.2, −0.1\\] null 0.01" in lines[2]
    assert "5 % of a\\_b" in to_markdown(table)


def test_text_leaves_out_no_column_and_breaks_no_number():
    headings = [f"measure {k}" for k in range(12)]
    columns = (Column("model", numeric=False), *map(Column, headings))
    rows = tuple(
        Row((Cell("name" * 20), *(Cell(-0.5 - k, note=f"[{k}.000, {k}.999]") for k in range(12)))) for _ in "ab"
    )
    printed = to_text(Table("Wide", columns, rows), 80)
    assert max(map(len, printed.splitlines())) <= 80
    for k in range(12):
        assert printed.count(f"−{k}.500") == 2
        assert printed.count(f"[{k}.000, {k}.999]") == 2


def of_an_evaluation():
    """As `run` prints it: scores with intervals and chances, of names short and long."""
    columns = (
        Column("model", numeric=False),
        *(Column(heading) for heading in ("A-COAT", "adjusted", "matched null", "top-1", "R@10", "dimension")),
    )
    names = ("log-mel-statistics", "untrained:openai/whisper-tiny.en", "org/模型-of-sounds", "a")
    rows = tuple(
        Row((
            Cell(name, note="not stated: how it was trained"),
            *(
                Cell(0.453 + k / 100 + place / 1000, note=f"[−0.{k}12, 0.{k}98]\nchance of top-1 0.016" * (k % 2))
                for k in range(6)
            ),
        ))
        for place, name in enumerate(names)
    )  # fmt: skip
    return Table("A-COAT on mini, n = 64", columns, rows, ("Below a number: its 95 % interval.",))


def numbers_of(table):
    return [
        line
        for row in table.rows
        for cell, column in zip(row.cells[1:], table.columns[1:], strict=True)
        for line in (cell_text(cell, column, minus="−"), *cell.notes)
    ]


@pytest.mark.parametrize("width", [60, 75, 95, 130])
def test_no_width_breaks_or_crops_a_number(width):
    table = of_an_evaluation()
    printed = to_text(table, width)
    assert max(map(cell_len, printed.splitlines())) <= width
    for line in numbers_of(table):
        assert re.search(rf"(?<!\S){re.escape(line)}(?!\S)", printed), line


@pytest.mark.parametrize("width", [60, 98])
def test_nor_does_a_terminal(width, monkeypatch):
    class Terminal(io.StringIO):
        def isatty(self):
            return True

    monkeypatch.setenv("COLUMNS", str(width))
    monkeypatch.setattr("sys.stdout", terminal := Terminal())
    table = of_an_evaluation()
    print_table(table)
    printed = re.sub(r"\x1b\[[0-9;]*m", "", terminal.getvalue())
    assert max(map(cell_len, printed.splitlines())) <= width
    for line in numbers_of(table):
        assert re.search(rf"(?<!\S){re.escape(line)}(?!\S)", printed), line


def test_a_name_is_not_broken_where_there_is_room_for_it():
    columns = tuple(Column(name, numeric=False) for name in ("name", "licence", "what it is"))
    rows = (Row((Cell("whisper-large-v3-turbo"), Cell("MIT"), Cell("a long description of it, " * 9))),)
    assert "whisper-large-v3-turbo" in to_text(Table("Models", columns, rows), 60)


def test_a_number_without_room_is_printed_as_it_is():
    note = "[" + "9" * 70 + "]"
    table = Table(
        "Long", (Column("model", numeric=False), Column("score")), (Row((Cell("name"), Cell(0.5, note=note))),)
    )
    assert note in to_text(table, 60)


def test_a_table_is_printed_without_colours(table, capsys):
    print_table(table)
    printed = capsys.readouterr().out
    assert "\x1b" not in printed
    assert "It is 5 % of a_b." in printed
    assert printed.splitlines()[0] == "What | is shown"
