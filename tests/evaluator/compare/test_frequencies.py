"""Scores by how often what is heard was said in the captions of a training."""

from __future__ import annotations

from dataclasses import replace

import pytest

from audio_compositionality.cli.main import main
from audio_compositionality.dataset_builder.open_data import open_data
from audio_compositionality.evaluator.compare.comparison import compare_results
from audio_compositionality.evaluator.compare.diversity import GROUPING, with_training_captions
from audio_compositionality.evaluator.compare.formats import comparison_tables

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
    assert any("nothing can be counted in training captions" in note for note in told.notes)


def test_compare_takes_them_from_a_file(results, tmp_path, capsys):
    (tmp_path / "texts.csv").write_text("path,caption\n" + "".join(f"x.wav,{text}\n" for text in CAPTIONS))
    typed = ["--training-captions", str(tmp_path / "texts.csv"), "--format", "markdown"]
    assert main(["compare", str(results), *typed]) == 0
    assert f"by {GROUPING}" in " ".join(capsys.readouterr().out.split())
