"""Results compared on the same samples."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest
from scipy import stats

from audio_compositionality.dataset_builder import DatasetError, RenderedBenchmark, build_dataset, open_benchmark
from audio_compositionality.evaluator.compare.comparison import compare_results, diversity, load_results
from audio_compositionality.evaluator.results.result import ResultError, load_result, save_result

ENCODERS = ("one", "two", "org/three")


@pytest.fixture
def results(tmp_path, write_results):
    return write_results(tmp_path / "results", ENCODERS)


def test_results_of_a_folder_by_task_the_highest_first(results):
    coat, tre = compare_results([results])
    assert (coat.task, tre.task) == ("a_coat", "a_tre")
    assert coat.labels == tre.labels == ("org/three", "two", "one")
    assert coat.scores.shape == (64, 3)
    assert coat.dataset == "mini"
    assert coat.missing is None
    assert coat.notes == ()
    assert coat.samples.ids == coat.ids


def test_numbers_are_those_of_scipy_on_the_files(results):
    coat = compare_results([results])[0]
    scores = {name: load_result(results / name / "1" / "a_coat.json")[1] for name in ("one", "two")}
    expected = stats.ttest_rel(scores["two"]["score"].to_numpy(), scores["one"]["score"].to_numpy())
    (test,) = [t for t in coat.tests if {coat.labels[t.first], coat.labels[t.second]} == {"one", "two"}]
    # 64 quadruples of mini have 64 sets of added sources: the clustered test is the plain one.
    assert len(set(coat.clusters)) == 64
    assert (test.t, test.p) == pytest.approx((expected.statistic, expected.pvalue), abs=1e-9)
    expected = stats.ttest_rel(scores["two"]["score_centred"].to_numpy(), scores["one"]["score_centred"].to_numpy())
    (test,) = [t for t in coat.centred_tests if {coat.labels[t.first], coat.labels[t.second]} == {"one", "two"}]
    assert test.t == pytest.approx(expected.statistic, abs=1e-9)


def test_samples_are_paired_by_their_id(results, tmp_path):
    path = results / "one" / "1" / "a_coat.json"
    result, table = load_result(path)
    order = np.random.default_rng(0).permutation(64)
    columns = {name: table[name].to_numpy()[order] for name in table.column_names if name != "id"}
    before = compare_results([results])[0]
    save_result(results, result, [table["id"].to_pylist()[k] for k in order], columns)
    after = compare_results([results])[0]
    np.testing.assert_allclose([t.t for t in after.tests], [t.t for t in before.tests])


def test_samples_that_one_result_lacks_are_left_out_of_all(results):
    path = results / "one" / "1" / "a_tre.json"
    result, table = load_result(path)
    columns = {name: table[name].to_numpy()[3:] for name in table.column_names if name != "id"}
    scores = columns["score"]
    fewer = replace(
        result,
        n=61,
        score=float(scores.mean()),
        controls={**result.controls, "a_tre_centred": float(columns["score_centred"].mean())},
    )
    save_result(results, fewer, table["id"].to_pylist()[3:], columns)
    tre = compare_results([results])[1]
    assert len(tre.ids) == tre.tests[0].n == 61
    assert tre.notes == ("compared on the 61 samples that all results have, of 64",)


def test_other_settings_are_told(results, write_results):
    write_results(results, ["four"], tasks=["a_tre"], settings={"seeds": [0], "max_steps": 600})
    assert compare_results([results])[1].notes == ("seeds differs: [0, 1, 2] (one, org/three, two); [0] (four)",)


def test_revisions_of_an_encoder_are_told_apart(results, write_results):
    write_results(results, ["one"], encoder_revision="0123456789abcdef")
    assert set(compare_results([results])[0].labels) == {"one (01234567)", "one (1)", "two", "org/three"}


def test_a_long_common_beginning_of_revisions_is_shown_up_to_where_they_differ(tmp_path, write_results):
    for revision in ("sha256-00aa", "sha256-00bb", "sha256-01"):
        write_results(tmp_path, ["one"], tasks=["a_coat"], encoder_revision=revision)
    labels = {entry.label for entry in load_results([tmp_path])}
    assert labels == {"one (sha256-00a)", "one (sha256-00b)", "one (sha256-01)"}


def test_files_and_folders_may_be_named_together_and_twice(results):
    file = results / "one" / "1" / "a_coat.json"
    assert len(load_results([file])) == 1
    assert len(load_results([results, file, results / "one"])) == 6


@pytest.mark.parametrize(
    ("paths", "message"),
    [
        ([], "no results: give folders"),
        (["nowhere"], "no results at .*nowhere: there is no such file"),
        (["empty"], "empty holds no results, files a_coat.json or a_tre.json"),
        (["results", "copy"], "are results of the same encoder, revision and data"),
    ],
)
def test_wrong_paths(tmp_path, results, write_results, paths, message):
    (tmp_path / "empty").mkdir()
    write_results(tmp_path / "copy", ["one"])
    with pytest.raises(ResultError, match=message):
        compare_results([tmp_path / path for path in paths])


def test_damaged_results_are_refused_by_name(results):
    path = results / "one" / "1" / "a_coat.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), "score": 0.9}))
    with pytest.raises(ResultError, match=r"a_coat.json: the mean of the samples"):
        compare_results([results])


def test_results_without_a_common_sample(results):
    for name, part in (("one", slice(0, 30)), ("two", slice(30, 64))):
        result, table = load_result(results / name / "1" / "a_coat.json")
        columns = {key: table[key].to_numpy()[part] for key in table.column_names if key != "id"}
        controls = {**result.controls, "centred": float(columns["score_centred"].mean())}
        fewer = replace(result, n=len(columns["score"]), score=float(columns["score"].mean()), controls=controls)
        save_result(results, fewer, table["id"].to_pylist()[part], columns)
    with pytest.raises(ResultError, match="the results of a_coat have no sample in common"):
        compare_results([results])


def test_results_without_centred_scores_have_no_centred_comparison(tmp_path, write_results):
    folder = write_results(tmp_path, ["one", "two"], tasks=["a_coat"])
    result, table = load_result(folder / "one" / "1" / "a_coat.json")
    controls = {**result.controls, "centred": None}
    columns = {name: table[name].to_numpy() for name in table.column_names if name not in ("id", "score_centred")}
    save_result(folder, replace(result, controls=controls), table["id"].to_pylist(), columns)
    (coat,) = compare_results([folder])
    assert coat.centred is None
    assert (coat.centred_tests, coat.centred_intervals, coat.centred_letters) == ([], [None, None], ["", ""])
    assert diversity(coat, "centred") is None


# ----- the data


def test_data_of_a_built_folder_are_opened_again(tmp_path, small_config, write_results):
    folder = build_dataset(small_config, tmp_path / "data", progress=False)
    write_results(tmp_path / "results", ENCODERS, open_benchmark(folder))
    coat, tre = compare_results([tmp_path / "results"])
    assert len(coat.samples.ids) == 12
    assert tre.benchmark.fingerprint == tre.fingerprint


def test_data_that_are_gone_or_others_are_told_and_can_be_given(tmp_path, small_config, write_results):
    benchmark = RenderedBenchmark(str(tmp_path / "data"), small_config)
    write_results(tmp_path / "results", ENCODERS, benchmark)
    coat = compare_results([tmp_path / "results"])[0]
    assert coat.samples is None
    assert "neither a preset nor a folder here: --data" in coat.missing
    assert len(set(coat.clusters)) == 12
    assert diversity(coat) is None
    assert coat.benchmark is None
    build_dataset(replace(small_config, seed=1), tmp_path / "data", progress=False)
    assert "are others now" in compare_results([tmp_path / "results"])[0].missing
    with pytest.raises(DatasetError, match="is not the data of these results"):
        compare_results([tmp_path / "results"], data=str(tmp_path / "data"))
    build_dataset(small_config, tmp_path / "moved", progress=False)
    coat = compare_results([tmp_path / "results"], data=str(tmp_path / "moved"))[0]
    assert coat.samples is not None
    assert coat.benchmark.source == str(tmp_path / "moved")


def test_a_hub_id_in_a_result_is_not_followed(tmp_path, write_results, monkeypatch):
    write_results(tmp_path, ["one"], dataset="stranger/data")
    monkeypatch.setattr(
        "audio_compositionality.evaluator.compare.comparison.open_benchmark",
        lambda *_: pytest.fail("the data were opened"),
    )
    assert "'stranger/data' are neither a preset nor a folder here" in compare_results([tmp_path])[0].missing


def test_a_sample_that_the_data_do_not_have(tmp_path, write_results):
    write_results(tmp_path, ["one"], tasks=["a_coat"])
    result, table = load_result(tmp_path / "one" / "1" / "a_coat.json")
    ids = ["../else", *table["id"].to_pylist()[1:]]
    save_result(tmp_path, result, ids, {name: table[name].to_numpy() for name in table.column_names if name != "id"})
    with pytest.raises(ResultError, match=r"has the sample '\.\./else', which the data do not have"):
        compare_results([tmp_path])


# ----- diversity


def test_slopes_and_groups(results):
    coat, tre = compare_results([results])
    found = diversity(coat)
    assert [(slope.label, slope.attribute) for slope in found.slopes[:3]] == [
        ("org/three", "total"),
        ("org/three", "timbre"),
        ("org/three", "pitch"),
    ]
    slope = found.slopes[0]
    expected = stats.linregress(coat.samples.entropy["total"], coat.scores[:, 0])
    assert slope.fit.slope == pytest.approx(expected.slope, abs=1e-9)
    adjusted = stats.false_discovery_control([s.fit.p for s in found.slopes])
    assert [s.p_adjusted for s in found.slopes] == pytest.approx(adjusted)
    assert list(found.groups) == ["|T|", "sources", "A and C differ in"]
    assert [group.label for group in found.groups["|T|"]["one"]] == ["1", "2", "3"]
    assert sum(group.n for group in found.groups["A and C differ in"]["two"]) == 64
    assert list(diversity(tre).groups) == ["sources"]


def test_a_score_that_only_counts_sources_has_no_slope_within(tmp_path, write_results):
    rows = open_benchmark("mini").rows("a_tre")
    counts = np.array([len(row["metadata"]) for row in rows if row["split"] == "test"])
    scores = 0.2 * counts + 0.01 * np.random.default_rng(0).normal(size=64)
    write_results(tmp_path, ["counter"], tasks=["a_tre"], scores=scores)
    slope = diversity(compare_results([tmp_path])[0]).slopes[0]
    assert slope.fit.slope_interval[0] > 0.1
    low, high = slope.fit_within.slope_interval
    assert low < 0 < high
