"""Comparisons as tables, read back by parsers that we did not write."""

from __future__ import annotations

import csv
import io
import json
import re

import pandas
import pytest

from audio_compositionality.cli.command_line import main
from audio_compositionality.evaluator.compare.comparison import compare_results, diversity
from audio_compositionality.evaluator.compare.comparison_tables import sheets
from audio_compositionality.evaluator.results.result import load_result
from audio_compositionality.evaluator.compare.table_formats import CSV_COLUMNS, write_comparisons

HOSTILE = "=org/<img src=x>_{|$\\input{x}$|}\x1b[31m\u202e&%#~^"
ENCODERS = ("whisper-base", "untrained:whisper-base", HOSTILE)


@pytest.fixture(scope="module")
def comparisons(tmp_path_factory, write_results):
    return compare_results([write_results(tmp_path_factory.mktemp("results"), ENCODERS)])


def test_csv_is_one_tidy_table_with_every_number(comparisons):
    table = pandas.read_csv(io.StringIO(write_comparisons(comparisons, "csv")))
    assert tuple(table.columns) == CSV_COLUMNS
    coat = comparisons[0]
    chosen = table[(table.task == "a_coat") & (table.measure == "score")]
    means = chosen[chosen.quantity == "mean"].set_index("encoder")
    place = coat.labels.index("whisper-base")
    assert means.loc["whisper-base", "value"] == coat.scores[:, place].mean()
    assert tuple(means.loc["whisper-base", ["low", "high"]]) == coat.intervals[place]
    differences = chosen[chosen.quantity == "difference"]
    assert differences.p_adjusted.tolist() == [test.p_adjusted for test in coat.tests]
    assert set(table.quantity) == {"mean", "difference", "slope", "slope within", "group mean", "control"}
    assert table.n.min() >= 1
    assert table[table.quantity == "mean"][["low", "high"]].notna().all(axis=None)


def test_no_cell_of_csv_is_a_formula(comparisons):
    rows = list(csv.reader(io.StringIO(write_comparisons(comparisons, "csv"))))
    words = [cell for row in rows[1:] for cell in row[:6]]
    assert not [cell for cell in words if cell[:1] in ("=", "+", "-", "@")]


def test_json_has_every_number(comparisons):
    coat, tre = json.loads(write_comparisons(comparisons, "json"))
    assert (coat["task"], tre["task"], coat["n"]) == ("a_coat", "a_tre", 64)
    for measure, tests in (("score", comparisons[0].tests), ("centred", comparisons[0].centred_tests)):
        assert [test["p"] for test in coat[measure]["tests"]] == [test.p for test in tests]
        assert {mean["encoder"] for mean in coat[measure]["means"]} == set(ENCODERS)
        assert [slope["plain"]["slope"] for slope in coat[measure]["slopes"]] == [
            slope.fit.slope for slope in diversity(comparisons[0], measure).slopes
        ]
    groups = coat["score"]["groups"]["|T|"]["whisper-base"]
    assert sum(group["n"] for group in groups) == 64


def test_infinite_statistics_are_null_in_json(tmp_path, write_results):
    write_results(tmp_path, ["one"], tasks=["a_coat"])
    shifted = load_result(tmp_path / "one" / "1" / "a_coat.json")[1]["score"].to_numpy() - 0.125
    write_results(tmp_path, ["two"], tasks=["a_coat"], scores=shifted)
    (coat,) = compare_results([tmp_path])
    (test,) = json.loads(write_comparisons([coat], "json"))[0]["score"]["tests"]
    assert (test["t"], test["effect_size"], test["p"]) == (None, None, 0.0)
    assert "∞" in write_comparisons([coat], "text")


def test_markdown_tables_keep_their_columns_whatever_the_encoder_is_called(comparisons):
    text = write_comparisons(comparisons, "markdown")
    widths = []
    for line in text.splitlines():
        if line.startswith("|"):
            widths.append(len(re.split(r"(?<!\\)\|", line)))
        else:
            assert len(set(widths)) <= 1, line
            widths = []
    assert "<img" not in text.replace("\\<", "")
    assert "\x1b" not in text


@pytest.mark.parametrize("format", ["text", "markdown", "latex"])
def test_numbers_of_the_first_table_are_in_every_format(comparisons, format):
    text = write_comparisons(comparisons, format)
    mean = comparisons[0].scores.mean(axis=0)[comparisons[0].labels.index("whisper-base")]
    assert f"{abs(mean):.3f}" in text


def test_latex_escapes_what_would_be_a_command(comparisons):
    text = write_comparisons(comparisons, "latex")
    assert r"\input" not in text
    assert text.count(r"\begin{tabular}") == text.count(r"\end{tabular}") == text.count(r"\toprule")
    body = [line for line in text.splitlines() if line.endswith(r" \\")]
    assert body
    for table in text.split(r"\begin{tabular}")[1:]:
        columns = len(re.match(r"\{([lr]+)\}", table)[1])
        rows = [line for line in table.split(r"\end{tabular}")[0].splitlines() if line.endswith(r" \\")]
        assert {len(re.split(r"(?<!\\)&", row)) for row in rows} == {columns}


def test_too_few_samples_say_so(tmp_path, write_results, small_benchmark):
    write_results(tmp_path, ["one", "two"], small_benchmark, tasks=["a_tre"])
    (tre,) = compare_results([tmp_path])
    text = write_comparisons([tre], "text")
    assert "n = 8, 8 of them independent: too few samples for an interval or a test" in " ".join(text.split())
    assert tre.letters == ["-", "-"]
    assert tre.intervals == [None, None]


def test_many_pairs_are_left_to_csv_and_json(tmp_path, write_results):
    write_results(tmp_path, [f"encoder-{number}" for number in range(11)], tasks=["a_coat"])
    (coat,) = compare_results([tmp_path])
    pairs = next(sheet for sheet in sheets(coat) if "paired" in sheet.title)
    assert pairs.rows == ()
    assert pairs.notes == ("55 pairs: the formats csv and json list them.",)
    assert write_comparisons([coat], "csv").count(",difference,") == 110


# ----- the command


def test_compare_prints_tables(tmp_path, write_results, capsys):
    write_results(tmp_path, ENCODERS)
    assert main(["compare", str(tmp_path)]) == 0
    printed = capsys.readouterr().out
    for words in ("A-COAT on mini, n = 64", "A-TRE: paired differences", "against diversity H^quad", "groups"):
        assert words in printed
    assert "\x1b" not in printed


def test_compare_writes_a_file(tmp_path, write_results, capsys):
    write_results(tmp_path / "results", ["one"])
    out = tmp_path / "new" / "table.csv"
    assert main(["compare", str(tmp_path / "results"), "--format", "csv", "--out", str(out)]) == 0
    assert "table.csv is written" in capsys.readouterr().out
    assert out.read_text().startswith("task,fingerprint")
    assert [path.name for path in out.parent.iterdir()] == ["table.csv"]


def test_compare_does_not_write_to_a_folder(tmp_path, write_results, capsys):
    write_results(tmp_path / "results", ["one"], tasks=["a_coat"])
    assert main(["compare", str(tmp_path / "results"), "--format", "csv", "--out", str(tmp_path)]) == 2
    assert "is a folder; give the name of a file" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--format", "latx"], "unknown format 'latx'; did you mean 'latex'? Valid: text, markdown, latex, csv, json"),
        (["--data", "full"], "full (8c4949bc) is not the data of these results; theirs: mini (ed8f3e8f)"),
    ],
)
def test_compare_refuses_in_one_line(tmp_path, write_results, capsys, arguments, message):
    write_results(tmp_path, ["one"], tasks=["a_coat"])
    assert main(["compare", str(tmp_path), *arguments]) == 2
    assert capsys.readouterr().err.startswith(f"error: {message}")
