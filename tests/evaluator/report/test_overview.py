"""The first picture: every baseline in it is named, and its zone spans what is reached without learning."""

from __future__ import annotations

import numpy as np
import pytest

from audio_compositionality.evaluator.compare.comparison import compare_results
from audio_compositionality.evaluator.compare.summary import short_table
from audio_compositionality.evaluator.report.overview import named_baselines, overviews

MEANS = {"one": 0.3, "untrained:one": 0.5, "log-mel-statistics": 0.4, "random": 0.0}
"""From which made-up columns are made, of other measures than the first by a tangent."""

NEARLY_ONE = 4.0
"""Whose tangents are."""


@pytest.fixture
def compared(tmp_path, write_results):
    """Compares results with these means and no spread, by model."""

    def compare(means):
        for name, mean in means.items():
            model = {"paradigm": "baseline"} if name == "org/plain" else {}
            write_results(tmp_path, [name], tasks=["a_coat"], scores=np.full(64, mean), model=model)
        (comparison,) = compare_results([tmp_path])
        return comparison

    return compare


def first_line(comparison):
    """The line of the first measure to trust."""
    (line,) = overviews(comparison)[0].lines
    return line


def test_every_baseline_has_a_shape_and_a_name_in_the_legend(compared):
    comparison = compared(MEANS | {"org/plain": 0.7})
    entries = {entry.name: entry for entry in named_baselines([comparison])}
    assert {mark.name for mark in first_line(comparison).marks if mark.kind in ("baseline", "description")} == set(
        entries
    )
    assert len({entry.shape for entry in entries.values()}) == len(entries) == 3
    assert next(iter(entries)) == "log-mel-statistics"
    assert "log-mel spectrogram" in entries["log-mel-statistics"].words
    assert entries["org/plain"].words == ""


def test_the_zone_spans_all_that_needs_no_learning_but_a_score_fixed_by_construction(compared):
    line = first_line(compared(MEANS | {"org/plain": 0.7}))
    others = [mark for mark in line.marks if mark.kind != "model"]
    assert {mark.name for mark in others} == {*MEANS, "org/plain"} - {"one"}
    assert line.zone == max(mark.high for mark in others)
    assert not any(mark.fixed for mark in others)
    for picture in overviews(compared(MEANS | {"downsample": NEARLY_ONE, "org/plain": NEARLY_ONE})):
        (line,) = picture.lines
        fixed = {mark.name: mark.fixed for mark in line.marks if mark.fixed}
        assert fixed == {"downsample": "linear: 1 by construction"}
        assert picture.notes == ("The grey leaves out downsample (linear: 1 by construction).",)
        assert line.zone == max(mark.high for mark in line.marks if mark.name == "org/plain")


def test_no_grey_is_told_of_where_there_is_none(compared):
    for picture in overviews(compared({"one": 0.3, "downsample": NEARLY_ONE})):
        assert [line.zone for line in picture.lines] == [None]
        assert picture.notes == ("downsample (linear: 1 by construction).",)


def test_the_tables_mark_a_fixed_score(compared):
    comparison = compared(MEANS | {"downsample": NEARLY_ONE})
    line = first_line(comparison)
    (twin,) = [mark for mark in line.marks if mark.kind == "twin"]
    assert line.zone == twin.high
    notes = {row.cells[0].value: row.cells[1].note for row in short_table(comparison).rows}
    assert {name for name, note in notes.items() if "linear: 1 by construction" in note} == {"downsample"}


def test_a_linear_encoder_that_misses_its_fixed_score_is_a_baseline_like_any(compared):
    """As where each clip has a level of its own."""
    line = first_line(compared(MEANS | {"downsample": 0.84}))
    (mark,) = [mark for mark in line.marks if mark.name == "downsample"]
    assert mark.fixed == ""
    assert line.zone >= mark.high


def test_a_chance_that_is_the_same_for_all_is_marked_and_another_is_not(compared, write_results, tmp_path):
    adjusted, top1 = overviews(compared(MEANS))
    assert adjusted.chance is None
    assert top1.chance is not None
    assert "Chance: 0.0" in top1.alternative
    write_results(tmp_path, ["one"], tasks=["a_coat"], scores=np.full(64, 0.3), measures={"top1_chance": 0.5})
    (comparison,) = compare_results([tmp_path])
    assert overviews(comparison)[1].chance is None


def test_the_lower_end_of_a_baselines_interval_does_not_stretch_the_axis(tmp_path, write_results):
    spread = np.random.default_rng(0).normal(size=64)
    for name, scores in (("one", 0.5 + 0.01 * spread), ("random", 0.1 + 9 * spread)):
        write_results(tmp_path, [name], tasks=["a_coat"], scores=scores)
    (comparison,) = compare_results([tmp_path])
    view = comparison.recommended[0]
    low, high = view.intervals[comparison.labels.index("random")]
    assert low < min(0, *view.means) < high
    picture = overviews(comparison)[0]
    marks = {mark.name: mark for mark in picture.lines[0].marks}
    assert marks["random"].low == 0
    assert 0 < marks["random"].x < marks["random"].high < marks["one"].low < marks["one"].high < 100
