"""Results and comparisons as tables, and a task that nobody knows."""

from __future__ import annotations

import csv
import io
import json
import re
from dataclasses import replace

import numpy as np
import pandas
import pytest

from audio_compositionality.evaluator.compare.comparison import compare_results
from audio_compositionality.evaluator.compare.diversity import diversity
from audio_compositionality.evaluator.compare.formats import comparison_tables, write_comparisons, write_table
from audio_compositionality.evaluator.compare.model_verdicts import verdicts_of
from audio_compositionality.evaluator.compare.rows import SCORE_COLUMNS, ScoreRow
from audio_compositionality.evaluator.compare.summary import SIGNS, short_table, summary_table
from audio_compositionality.evaluator.compare.tables import (
    headline_table,
    interval_text,
    null_note,
    nulls_legend,
    pair_table,
    result_remarks,
    results_tables,
    score_table,
    training_note,
)
from audio_compositionality.evaluator.results.result import load_result
from audio_compositionality.support.errors import InputError
from audio_compositionality.support.table import to_text
from audio_compositionality.tasks.base import least_of
from audio_compositionality.tasks.registry import load_task

HOSTILE = "=org/<img src=x>_{|$\\input{x}$|}&%#~^"
MODELS = ("whisper-base", "untrained:whisper-base", HOSTILE)


@pytest.fixture(scope="module")
def comparisons(tmp_path_factory, write_results):
    return compare_results([write_results(tmp_path_factory.mktemp("results"), MODELS)])


def words(text):
    return " ".join(text.split())


# ----- what evaluate prints


def _row(measure, stated):
    shared = {"task": "comp_a_order", "task_version": 1, "fingerprint": "0" * 64, "rows_digest": "0" * 64}
    shared |= {"model": "one", "n": 10}
    null, trivial = stated.get(measure.null), stated.get(measure.trivial)
    return ScoreRow(**shared, measure=measure.name, quantity="stated", null=null, trivial=trivial)


def test_a_score_stands_beside_its_chance_and_its_trivial_the_larger_first():
    info = load_task("comp_a_order").info
    group, text = info.measure("group"), info.measure("text")
    values = {"chance_group": 1 / 6, "trivial_group": 0.0312, "chance_text": 0.25, "trivial_text": 0.125}
    assert (
        null_note(_row(group, values), group, info, shown_too=True)
        == "chance of group 0.167\ntrivial baseline of group 0.031"
    )
    # In the table of all numbers the trivial baseline of group has a column of its own.
    assert null_note(_row(group, values), group, info) == "chance of group 0.167"
    assert null_note(_row(text, values), text, info) == "chance of text 0.250\ntrivial baseline of text 0.125"
    assert null_note(_row(text, {"chance_text": 0.25}), text, info) == "chance of text 0.250"
    (legend,) = nulls_legend([group], info, shown_too=True)
    assert "the larger if there are two: chance of group" in legend
    assert "trivial baseline of group, group of captions with the clips of other items" in legend
    assert least_of(group, info, values)[1] == 1 / 6
    values["trivial_group"] = 0.41
    assert (
        null_note(_row(group, values), group, info, shown_too=True)
        == "trivial baseline of group 0.410\nchance of group 0.167"
    )
    assert null_note(_row(group, values), group, info).startswith("trivial baseline of group 0.410")
    assert "trivial baseline of group" in nulls_legend([group], info)[0]
    trivial, least = least_of(group, info, values)
    assert (trivial.name, least) == ("trivial_group", 0.41)
    assert least_of(group, info, {}) is None


def test_a_rank_has_to_be_below_its_chance():
    info = load_task("audio_text_retrieval").info
    above, below = nulls_legend([info.measure("text_to_audio_r1"), info.measure("text_to_audio_median_rank")], info)
    assert above.startswith("Below it, the value that it has to be above: chance of text→audio R@1, ")
    assert below.startswith("Below it, the value that it has to be below: chance of text→audio median rank, ")


def test_results_have_a_table_a_task_with_what_its_columns_mean(comparisons):
    results = [result.result for comparison in comparisons for result in comparison.results]
    coat, tre = results_tables(results)
    assert coat.caption == "A-COAT on mini, n = 64"
    shown = [measure.heading for measure in comparisons[0].info.shown]
    assert [column.heading for column in coat.columns] == ["model", *shown]
    row = {column.heading: cell for column, cell in zip(coat.columns, coat.rows[0].cells, strict=True)}
    result = results[0]
    low, high = result.intervals["a_coat"]
    assert row["A-COAT"].value == result.measures["a_coat"]
    assert row["A-COAT"].note == interval_text((low, high), comparisons[0].info.measure("a_coat").digits)
    assert row["top-1"].note.endswith("\nchance 0.016")
    assert any("chance, top-1 of a random order" in sentence for sentence in coat.legend)
    assert all(f"{measure.heading}: {measure.meaning}" in coat.legend[0] for measure in comparisons[0].info.shown)
    assert coat.legend[-1] == comparisons[0].info.warning
    assert "A-TRE on mini, n = 64" in to_text(tre, 80)


def test_a_run_has_one_table_of_models_by_tasks(comparisons):
    results = [result.result for comparison in comparisons for result in comparison.results]
    table = headline_table(results)
    assert [column.heading for column in table.columns] == ["model", "A-COAT, adjusted", "A-TRE, centred"]
    assert [row.cells[0].value for row in table.rows] == list(dict.fromkeys(result.model.id for result in results))
    low, high = results[0].intervals["adjusted"]
    cell = table.rows[0].cells[1]
    assert cell.value == results[0].measures["adjusted"]
    assert cell.text == f"{cell.value:.3f} {interval_text((low, high))}".replace("-", "−")
    without = headline_table([result for result in results if result is not results[0]])
    assert next(row for row in without.rows if row.cells[0].value == results[0].model.id).cells[1].value is None
    assert results_tables(results)[0].legend[-2] not in table.legend


def test_scores_outside_of_the_range_of_their_mean_are_explained(comparisons):
    coat = comparisons[0]
    why = coat.info.measure("adjusted").outside
    assert why
    assert not any(why in table.legend for table in comparison_tables(coat))
    column = np.where(np.arange(len(coat.ids)) % 4 == 3, 1.3, 0.6)
    moved = [
        replace(result.samples, columns={**result.samples.columns, "score_adjusted": column + 0.01 * place})
        for place, result in enumerate(coat.results)
    ]
    results = tuple(replace(r, samples=samples) for r, samples in zip(coat.results, moved, strict=True))
    legends = {table.name: table.legend for table in comparison_tables(replace(coat, results=results))}
    assert why in legends["a_coat-groups-1-adjusted"]
    # Only samples are above 1, no end of an interval: there is nothing to explain beside the means.
    assert why not in legends["a_coat-scores"]


def test_what_must_be_said_of_a_result_is_said(tmp_path, write_results):
    deviation = {"relative_mean": 0.001, "relative_max": 0.02, "spread_ratio": 0.3, "clips": 4}
    skipped = [{"id": f"clip{k}", "reason": "silent"} for k in range(5)]
    options = {"layer": None, "pooling": None, "precision": "bfloat16", "compile": False}
    flags = {"collapsed": True}
    write_results(
        tmp_path, ["one"], tasks=["a_tre"], precision_deviation=deviation, skipped=skipped, measures=flags,
        cut_answers=12, model={"options": options},
    )  # fmt: skip
    result, _ = load_result(tmp_path / "one" / "1" / "a_tre.json")
    (table,) = results_tables([result])
    said = " ".join(table.legend)
    assert " ".join(headline_table([result]).legend) in said
    assert "one: computed in bfloat16; the embeddings of 4 clips are 0.10% (at most 2.00%)" in said
    assert "without the clips that could not be embedded: clip0, clip1, clip2 and 2 more" in said
    assert "one: 12 answers were cut at the limit of tokens for an answer" in said
    assert "one: collapsed: " in said


def test_versions_of_a_task_have_tables_of_their_own(tmp_path, write_results):
    write_results(tmp_path / "a", ["one"], tasks=["a_coat"])
    write_results(tmp_path / "b", ["one"], tasks=["a_coat"], task_version=99)
    results = [load_result(tmp_path / x / "one" / "1" / "a_coat.json")[0] for x in "ab"]
    assert [table.caption for table in results_tables(results)] == [
        "A-COAT on mini, n = 64",
        "A-COAT version 99 on mini, n = 64",
    ]


@pytest.mark.parametrize(
    ("trained_on", "is_told"),
    [
        ("4,000 rows of comp_a_train, mini", True),
        ("my folder (comp_a_train)", True),
        ("comp_a_training", False),
        ("AudioCaps", False),
        (None, False),
    ],
)
def test_training_on_the_training_split_or_on_stated_data_is_told_beside_a_score(
    tmp_path, write_results, trained_on, is_told
):
    write_results(tmp_path, ["one"], tasks=["a_coat"], model={"trained_on": trained_on})
    (result, _) = load_result(tmp_path / "one" / "1" / "a_coat.json")
    order, coat, zero_shot = (load_task(name).info for name in ("comp_a_order", "a_coat", "zero_shot_audio"))
    assert (training_note(result, order) == f"trained on: {trained_on}") == is_told
    assert any("share sounds" in remark for remark in result_remarks(result, order)) == is_told
    assert training_note(result, zero_shot) == (f"trained on: {trained_on}" if trained_on else "trained by: made up")
    assert training_note(result, coat) == ""
    assert not result_remarks(result, coat)


# ----- a task that nobody knows


def test_a_new_task_is_everywhere(tmp_path, write_results, registered_toy):
    folder = write_results(tmp_path, ["one", "two"], tasks=["toy"], measures={"broken": True})
    (toy,) = compare_results([folder])
    assert list(toy.views) == ["squeak", "toy", "shine"]
    assert toy.labels == ("two", "one")
    (printed,) = results_tables([result.result for result in toy.results])
    assert [column.heading for column in printed.columns] == ["model", "toy", "shine", "squeak", "wheels"]
    assert printed.legend[-1] == "A toy is no instrument."
    assert "one: broken: it is broken." in printed.legend
    names = [table.name for table in comparison_tables(toy)]
    assert "toy-scores" in names
    # Tests and groups are of what people are told to trust, which is what the task ranks by where it names no more.
    assert {"toy-pairs-squeak", "toy-slopes-squeak", "toy-groups-1-squeak"} == set(names) - {"toy-scores"}
    for format in ("text", "markdown", "latex"):
        text = write_comparisons([toy], format)
        for expected in ("Toy score on mini", "Toy score, squeak: paired differences", "how it shines", "wheels"):
            assert expected in words(text), (format, expected)
    assert "Means by group are in the other formats" in words(write_comparisons([toy], "text"))
    assert "other formats" not in words(write_comparisons([replace(toy, samples=None)], "text"))
    tidy = pandas.read_csv(io.StringIO(write_comparisons([toy], "csv")))
    for quantity in ("mean", "difference", "slope", "group mean"):
        assert set(tidy[tidy.quantity == quantity].measure) == {"toy", "shine", "squeak"}
    assert set(tidy[tidy.quantity == "stated"].measure) == {measure.name for measure in toy.info.measures}


# ----- comparisons


def test_csv_is_one_tidy_table_with_every_number_and_no_formula(comparisons):
    text = write_comparisons(comparisons, "csv")
    texts = [cell for row in list(csv.reader(io.StringIO(text)))[1:] for cell in row[:7]]
    assert not [cell for cell in texts if cell[:1] in ("=", "+", "-", "@")]
    assert any(cell.startswith("'=org/") for cell in texts)
    table = pandas.read_csv(io.StringIO(text))
    assert tuple(table.columns) == SCORE_COLUMNS
    coat = comparisons[0]
    of_coat = table[(table.task == "a_coat") & (table.measure == "a_coat")]
    means = of_coat[of_coat.quantity == "mean"].set_index("model")
    view = coat.view("a_coat")
    place = coat.labels.index("whisper-base")
    assert means.loc["whisper-base", "value"] == view.means[place]
    assert tuple(means.loc["whisper-base", ["low", "high"]]) == view.intervals[place]
    differences = of_coat[of_coat.quantity == "difference"]
    assert differences.p_adjusted.tolist() == [test.p_adjusted for test in view.tests]
    assert set(table.quantity) == {"mean", "difference", "slope", "slope within", "group mean", "stated"}
    assert table.n.min() >= 1
    assert table[table.quantity == "mean"][["low", "high"]].notna().all(axis=None)


def test_json_has_every_number(comparisons):
    coat, tre = json.loads(write_comparisons(comparisons, "json"))
    assert (coat["task"], tre["task"], coat["n"]) == ("a_coat", "a_tre", 64)
    assert set(coat["models"]) == set(MODELS)
    for name, view in comparisons[0].views.items():
        rows = [row for row in coat["rows"] if row["measure"] == name]
        assert [row["p"] for row in rows if row["quantity"] == "difference"] == [test.p for test in view.tests]
        assert [row["value"] for row in rows if row["quantity"] == "slope"] == [
            slope.fit.slope for slope in diversity(comparisons[0], name).slopes
        ]


def test_infinite_statistics_are_missing_in_json(tmp_path, write_results):
    write_results(tmp_path, ["one"], tasks=["a_coat"])
    shifted = load_result(tmp_path / "one" / "1" / "a_coat.json")[1].columns["score"] - 0.125
    write_results(tmp_path, ["two"], tasks=["a_coat"], scores=shifted)
    (coat,) = compare_results([tmp_path])
    rows = json.loads(write_comparisons([coat], "json"))[0]["rows"]
    (test,) = (row for row in rows if (row["quantity"], row["measure"]) == ("difference", "a_coat"))
    assert test["p"] == 0
    assert not {"t", "effect_size"} & set(test)
    assert "∞" in to_text(pair_table(coat, coat.view("a_coat")))


def test_markdown_tables_keep_their_columns_whatever_the_model_is_called(comparisons):
    text = write_comparisons(comparisons, "markdown")
    widths = []
    for line in text.splitlines():
        if line.startswith("|"):
            widths.append(len(re.split(r"(?<!\\)\|", line)))
        else:
            assert len(set(widths)) <= 1, line
            widths = []
    assert "<img" not in text.replace("\\<", "")


def test_latex_escapes_what_would_be_a_command(comparisons):
    text = write_comparisons(comparisons, "latex")
    assert r"\input" not in text
    assert text.count(r"\begin{tabular}") == text.count(r"\end{tabular}") == text.count(r"\toprule")
    for table in text.split(r"\begin{tabular}")[1:]:
        columns = len(re.findall(r"[lr]|p\{", re.match(r"\{(.+)\}\n", table)[1]))
        rows = [line for line in table.split(r"\end{tabular}")[0].splitlines() if line.endswith(r" \\")]
        assert {len(re.split(r"(?<!\\)&", row)) for row in rows} == {columns}


def test_too_few_samples_say_so(tmp_path, write_results, small_data):
    write_results(tmp_path, ["one", "two"], small_data, tasks=["a_tre"])
    (tre,) = compare_results([tmp_path], data=small_data)
    text = write_comparisons([tre], "text")
    assert "n = 8, 8 of them independent: too few samples for an interval or a test" in words(text)
    assert tre.view("a_tre").letters == ["-", "-"]
    assert tre.view("a_tre").intervals == [None, None]


@pytest.mark.slow
def test_many_pairs_are_left_to_csv_and_json_and_of_one_model_there_are_none(tmp_path, write_results):
    write_results(tmp_path, [f"model-{number}" for number in range(11)], tasks=["a_coat"])
    (coat,) = compare_results([tmp_path])
    pairs = next(table for table in comparison_tables(coat, brief=True) if "paired" in table.caption)
    assert pairs.rows == ()
    assert pairs.legend == ("55 pairs: the formats csv and json list them.",)
    assert write_comparisons([coat], "csv").count(",difference,") == 55 * len(coat.views)
    (coat,) = compare_results([tmp_path / "model-0"])
    assert "One model: there is nothing to compare it with." in write_comparisons([coat], "text")
    assert not [column.heading for column in score_table(coat).columns if "groups" in column.heading]


# ----- one table


@pytest.mark.parametrize("format", ["text", "markdown", "latex", "csv", "json"])
def test_the_table_that_a_paper_prints_has_all_tasks(comparisons, format):
    text = words(write_table(comparisons, format, "summary", 300).replace("\\", ""))
    for comparison in comparisons:
        for measure in comparison.info.recommended:
            assert f"{comparison.info.title}, {measure.heading}" in text
    assert "paired" not in text


def test_the_short_table_has_five_columns_of_what_is_to_be_trusted(comparisons):
    coat, tre = (short_table(comparison) for comparison in comparisons)
    assert [column.heading for column in coat.columns] == ["model", "adjusted", "groups", "top-1", "A-COAT"]
    assert [column.heading for column in tre.columns] == ["model", "centred", "groups", "top-1", "A-TRE"]
    assert all(column.meaning for column in coat.columns[1:])
    # Chance is the same for all models, the matched null is not.
    assert "Equal for all models: top-1: chance 0.016." in coat.legend
    assert not [row for row in coat.rows if "chance" in row.cells[3].note]
    assert all("matched null" in row.cells[4].note for row in coat.rows)


def test_the_table_of_a_paper_has_the_verdicts_and_chance_in_its_caption(comparisons):
    verdicts = verdicts_of(comparisons)
    table = summary_table(verdicts)
    assert [column.heading for column in table.columns[:3]] == ["model", "verdict", "A-COAT, adjusted"]
    (models,) = verdicts.judged.values()
    standings = {model.label: model.standing.value for model in models}
    assert "whisper-base" in standings
    for row in table.rows:
        label, verdict, score = row.cells[:3]
        assert verdict.value == standings.get(label.value)
        standing = verdicts.standing(label.value, comparisons[0])
        assert score.text is None if standing is None else score.text.startswith(f"{SIGNS[standing]} ")
        assert not [cell for cell in row.cells if "chance" in cell.note]
    assert "Equal for all models: A-COAT, top-1: chance 0.016; A-TRE, top-1: chance 0.016." in table.legend
    for format in ("markdown", "latex"):
        # All tables begin with those of a paper.
        text = write_comparisons(comparisons, format)
        assert text.index("The scores to trust") < text.index("Is each model above") < text.index("A-COAT on mini")
    assert write_comparisons(comparisons, "text").endswith(f"{verdicts.details}\n")
    coat, tre = json.loads(write_comparisons(comparisons, "json"))
    assert coat["verdicts"] + tre["verdicts"]
    assert {one["task"] for one in coat["verdicts"]} == {"a_coat"}
    assert len(coat["verdicts"] + tre["verdicts"]) == len(verdicts.records())


def test_an_unknown_format_and_an_unknown_table_name_the_nearest(comparisons):
    with pytest.raises(InputError, match="unknown format 'latx'; did you mean 'latex'"):
        write_comparisons(comparisons, "latx")
    with pytest.raises(InputError, match=r"table 'sumary'; did you mean 'summary'.*a_coat-short.* more; --format"):
        write_table(comparisons, "latex", "sumary")
