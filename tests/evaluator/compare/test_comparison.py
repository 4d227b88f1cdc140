"""Results compared on the same samples."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from audio_compositionality.dataset_builder.data import DatasetError
from audio_compositionality.dataset_builder.open_data import open_data
from audio_compositionality.dataset_builder.rendered import RenderedData
from audio_compositionality.encoders.loading.registry import load_model
from audio_compositionality.evaluator.compare import comparison as module
from audio_compositionality.evaluator.compare.comparison import compare_results
from audio_compositionality.evaluator.compare.diversity import diversity
from audio_compositionality.evaluator.compare.loading import ModelKind, load_results, model_kind
from audio_compositionality.evaluator.results.result import (
    ResultError,
    SampleTable,
    ScoredModel,
    load_result,
    save_result,
)
from audio_compositionality.support.files import sha256_of
from audio_compositionality.tasks.registry import load_task

MODELS = ("one", "two", "org/three")


@pytest.fixture
def results(tmp_path, write_results):
    return write_results(tmp_path / "results", MODELS)


def save_again(folder, result, table, **changes):
    """Save a result with other samples."""
    changed = result.model_copy(
        update={"n": len(table.ids), "samples_sha256": sha256_of(table.dumps().encode()), **changes}
    )
    save_result(folder, changed, table)


def called(data, source):
    """The same data, opened from elsewhere."""
    return RenderedData(source, data.settings)


def test_results_of_a_folder_by_task_the_highest_first(results):
    coat, tre = compare_results([results])
    assert (coat.info.name, tre.info.name) == ("a_coat", "a_tre")
    assert coat.labels == tre.labels == ("org/three", "two", "one")
    assert coat.view("a_coat").values.shape == (64, 3)
    assert coat.dataset == "mini"
    assert coat.missing is None
    assert coat.notes == ()
    assert coat.samples.ids == coat.ids


def test_the_order_is_that_of_the_measure_that_the_task_ranks_by(tmp_path, write_results):
    for name, adjusted in (("low", 0.1), ("high", 0.9), ("none", None)):
        write_results(tmp_path, [name], tasks=["a_coat"], measures={"adjusted": adjusted})
    (coat,) = compare_results([tmp_path])
    assert coat.info.ranks_by == "adjusted"
    assert coat.labels == ("high", "low", "none")


def test_numbers_are_those_of_scipy_on_the_files(results):
    coat = compare_results([results])[0]
    # 64 quadruples of mini have 64 sets of added sources: the clustered test is the plain one.
    assert len(set(coat.clusters)) == 64
    columns = {name: load_result(results / name / "1" / "a_coat.json")[1].columns for name in ("one", "two")}
    for view in coat.views.values():
        expected = stats.ttest_rel(columns["two"][view.measure.column], columns["one"][view.measure.column])
        (test,) = [t for t in view.tests if {view.labels[t.first], view.labels[t.second]} == {"one", "two"}]
        assert (test.t, test.p) == pytest.approx((expected.statistic, expected.pvalue), abs=1e-9)


def test_samples_are_paired_by_their_id(results):
    result, table = load_result(results / "one" / "1" / "a_coat.json")
    order = np.random.default_rng(0).permutation(64)
    before = compare_results([results])[0].view("a_coat")
    ids = tuple(table.ids[k] for k in order)
    save_again(results, result, SampleTable(ids, {name: column[order] for name, column in table.columns.items()}))
    after = compare_results([results])[0].view("a_coat")
    np.testing.assert_allclose([t.t for t in after.tests], [t.t for t in before.tests])


def test_samples_that_one_result_lacks_are_left_out_of_all(results, write_results):
    write_results(results, ["one"], tasks=["a_tre"], keep=slice(3, None))
    tre = compare_results([results])[1]
    assert len(tre.ids) == tre.view("a_tre").tests.between(0, 1).n == 61
    assert tre.notes == ("compared on the 61 samples that all results have, of 64",)
    write_results(results, ["two"], tasks=["a_tre"], keep=slice(3))
    with pytest.raises(ResultError, match="the results of a_tre have no sample in common"):
        compare_results([results])


def test_other_settings_and_another_precision_are_told(results, write_results):
    write_results(results, ["four"], tasks=["a_tre"], settings={"seeds": [0]})
    options = {"layer": None, "pooling": None, "precision": "bfloat16", "compile": False}
    write_results(results, ["four"], tasks=["a_coat"], model={"options": options})
    coat, tre = compare_results([results])
    assert tre.notes == ("seeds differs: [0, 1, 2] (one, org/three, two); [0] (four)",)
    assert coat.notes == ("precision differs: four (bfloat16); the others in float32",)


def test_versions_of_a_task_never_stand_in_one_table(results, write_results):
    write_results(results, ["four"], tasks=["a_coat"], task_version=99)
    installed, other = compare_results([results])[:2]
    assert (installed.info, installed.version) == (other.info, installed.info.version)
    assert installed.labels == ("org/three", "two", "one")
    assert (other.version, other.labels) == (99, ("four",))
    assert other.notes[0].startswith("made by version 99 of A-COAT; its numbers are not comparable")


def test_kinds_of_models(tmp_path, write_results):
    write_results(tmp_path, ["random", "untrained:one", "one"], tasks=["a_coat"])
    (coat,) = compare_results([tmp_path])
    assert [result.kind for result in coat.results] == [ModelKind.TRAINED, ModelKind.UNTRAINED, ModelKind.BASELINE]
    for name in ("random", "downsample", "log-mel-statistics"):
        assert model_kind(ScoredModel.of(load_model(name).card)) is ModelKind.BASELINE


def test_revisions_of_a_model_are_shown_up_to_where_they_differ(results, tmp_path, write_results):
    write_results(results, ["one"], model={"revision": "0123456789abcdef"})
    assert set(compare_results([results])[0].labels) == {"one (01234567)", "one (1)", "two", "org/three"}
    for revision in ("sha256-00aa", "sha256-00bb", "sha256-01"):
        write_results(tmp_path / "long", ["one"], tasks=["a_coat"], model={"revision": revision})
    labels = {result.label for result in load_results([tmp_path / "long"])}
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
        (["empty"], "empty holds no results, which are files TASK.json"),
        (["results", "copy"], "are results of the same model, revision and data"),
    ],
)
def test_wrong_paths(tmp_path, results, write_results, paths, message):
    (tmp_path / "empty").mkdir()
    write_results(tmp_path / "copy", ["one"])
    with pytest.raises(ResultError, match=message):
        compare_results([tmp_path / path for path in paths])


def test_results_of_tasks_that_are_not_installed_are_passed_over(results):
    folder = results / "one" / "1"
    for suffix in ("json", "csv"):
        (folder / f"unheard_of.{suffix}").write_text("whatever")
    (folder / "settings.json").write_text("{}")
    with pytest.warns(UserWarning, match="of tasks that are not installed here are left out: unheard_of"):
        assert len(compare_results([results])) == 2
    with pytest.warns(UserWarning, match="unheard_of"):
        assert load_results([folder / "unheard_of.json"]) == []


def test_a_measure_that_one_result_has_not_by_sample_is_no_view(tmp_path, write_results):
    write_results(tmp_path, ["one"], tasks=["a_coat"])
    write_results(tmp_path, ["two"], tasks=["a_coat"], without=["score_centred"])
    (coat,) = compare_results([tmp_path])
    assert list(coat.views) == ["adjusted", "a_coat", "top1"]
    with pytest.raises(ResultError, match="not all results of a_coat have centred by sample"):
        coat.view("centred")
    with pytest.raises(ResultError, match="has no measure 'centered' by sample; did you mean 'centred'"):
        diversity(coat, "centered")


# ----- the data


def test_data_are_opened_again_once_for_all_tasks(tmp_path, small_data, write_results, monkeypatch):
    opened = []
    monkeypatch.setattr(module, "opened_preset", lambda source: opened.append(source) or small_data)
    write_results(tmp_path, MODELS, called(small_data, "mini"))
    coat, tre = compare_results([tmp_path])
    assert opened == ["mini"]
    assert len(coat.samples.ids) == 12
    assert tre.configuration.fingerprint == tre.fingerprint
    assert tre.configuration.recipe == tre.info.recipe


def test_data_that_are_gone_or_others_are_told_and_can_be_given(tmp_path, small_data, write_results):
    write_results(tmp_path / "results", MODELS, called(small_data, str(tmp_path / "data")))
    coat = compare_results([tmp_path / "results"])[0]
    assert coat.samples is None
    assert coat.configuration is None
    assert "neither a preset nor a folder here: give their folder with --data" in coat.missing
    assert len(set(coat.clusters)) == 12
    assert diversity(coat, "a_coat") is None
    with pytest.raises(DatasetError, match=r"mini is not the data of these results, or has changed.*; theirs: .*data"):
        compare_results([tmp_path / "results"], data="mini")
    coat = compare_results([tmp_path / "results"], data=small_data)[0]
    assert coat.samples is not None
    assert coat.configuration.source == small_data.source


def test_data_that_are_others_now_are_not_taken_and_a_hub_id_is_not_followed(
    tmp_path, small_data, write_results, monkeypatch
):
    write_results(tmp_path / "old", ["one"], called(small_data, "mini"), tasks=["a_coat"])
    assert "the data 'mini' have changed since the results were made" in compare_results([tmp_path / "old"])[0].missing
    write_results(tmp_path / "hub", ["one"], dataset="stranger/data")
    monkeypatch.setattr(module, "reopened_data", lambda *_: pytest.fail("the data were opened"))
    missing = compare_results([tmp_path / "hub"])[0].missing
    assert "'stranger/data' are neither a preset nor a folder here" in missing


def test_a_sample_that_the_data_do_not_have(tmp_path, write_results):
    write_results(tmp_path, ["one"], tasks=["a_coat"])
    result, table = load_result(tmp_path / "one" / "1" / "a_coat.json")
    save_again(tmp_path, result, SampleTable(("../else", *table.ids[1:]), table.columns))
    with pytest.raises(ResultError, match=r"has the sample '\.\./else', which the data do not have"):
        compare_results([tmp_path])


# ----- diversity


def test_slopes_and_groups(results):
    coat, tre = compare_results([results])
    for name, view in coat.views.items():
        known = diversity(coat, name)
        assert [(slope.label, slope.diversity) for slope in known.slopes[:3]] == [
            ("org/three", "total"),
            ("org/three", "timbre"),
            ("org/three", "pitch"),
        ]
        expected = stats.linregress(coat.samples.diversity["total"], view.values[:, 0])
        assert known.slopes[0].fit.slope == pytest.approx(expected.slope, abs=1e-9)
        adjusted = stats.false_discovery_control([s.fit.p for s in known.slopes])
        assert [s.p_adjusted for s in known.slopes] == pytest.approx(adjusted)
    assert list(known.groups) == list(coat.samples.groups)
    added, _, differing = known.groups.values()
    assert [group.label for group in added["one"]] == ["1", "2", "3"]
    assert sum(group.n for group in differing["two"]) == 64
    assert list(diversity(tre, "a_tre").groups) == ["the number of sources"]


def test_a_score_that_only_counts_sources_has_no_slope_within(tmp_path, write_results):
    task, data = load_task("a_tre"), open_data("mini")
    rows = task.samples(tuple(data.configuration("a_tre").rows)).rows
    counts = np.array([len(row["metadata"]) for row in rows])
    scores = 0.2 * counts + 0.01 * np.random.default_rng(0).normal(size=64)
    write_results(tmp_path, ["counter"], tasks=["a_tre"], scores=scores)
    slope = diversity(compare_results([tmp_path])[0], "a_tre").slopes[0]
    assert slope.fit.slope_interval[0] > 0.1
    low, high = slope.fit_within.slope_interval
    assert low < 0 < high
