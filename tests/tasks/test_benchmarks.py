"""Benchmarks of several tasks: what they are, and what their figures show."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from matplotlib.collections import PathCollection
from matplotlib.figure import Figure

from audio_compositionality.tasks.base import TaskError
from audio_compositionality.tasks.benchmarks import axes
from audio_compositionality.tasks.benchmarks import info as registered
from audio_compositionality.tasks.benchmarks.figures import MISSING, heat_map_text
from audio_compositionality.tasks.benchmarks.info import BenchmarkInfo, DrawnModel, benchmark_info, register_benchmark
from audio_compositionality.tasks.registry import list_benchmarks, load_task

HEAT_MAP, SCATTER = axes.BENCHMARK.drawings


class Paper:
    """A sheet that writes names as they are."""

    column, page, line = 3.4, 7.1, 0.115

    def __init__(self):
        self.numbered = []

    def text_width(self, text):
        return 0.06 * len(text)

    def title(self, axes, name, width):
        axes.set_title(name)

    def number(self, axes, x, y, numbers):
        self.numbered.append((axes.get_title(), tuple(zip(numbers, x, y, strict=True))))

    def key(self, names, width):
        self.names = list(names)
        return SimpleNamespace(height=0.3, draw=lambda figure: None)


def measured(**changes):
    """Measures of all cells by task: of each row and column another number, from 0.01 on."""
    cells = [cell for row in axes.ROWS.values() for cell in row]
    measures = {}
    for number, cell in enumerate(cells, 1):
        for task, name in cell:
            measures.setdefault(task, {})[name] = number / 100
    for name, value in changes.items():
        task, _, measure = name.partition("__")
        measures[task][measure] = value
    return measures


def models(**changes):
    """A model with its twin, a reference, another baseline, and a model without a twin."""
    return [
        DrawnModel("mine", "trained", measured(**changes), twins=(1,), colour="#0072B2"),
        DrawnModel("untrained:mine", "untrained", measured(), marker="^"),
        DrawnModel("statistics", "baseline", measured(), is_reference=True, marker="s"),
        DrawnModel("random", "baseline", measured(), marker="s"),
        DrawnModel("yours", "trained", measured()),
    ]


def panels(figure: Figure):
    """The panels with a heat map, by row: their titles and the text of their cells, row by row."""
    return [
        (panel.get_title(), [text.get_text() for text in panel.texts])
        for panel in figure.axes
        if panel.get_title() or len(panel.texts) == 1
    ]


def test_every_benchmark_with_tasks_says_what_it_is():
    for name in list_benchmarks():
        info = benchmark_info(name)
        assert info.name == name
        assert info.title != name
        assert info.question.endswith("?")


def test_what_nobody_describes_is_its_name_and_others_can_be_registered(monkeypatch):
    assert benchmark_info("toys") == BenchmarkInfo("toys", "toys", "")
    monkeypatch.setattr(registered._BENCHMARKS, "_added", {})
    register_benchmark(BenchmarkInfo("toys", "Toys", "Do they play?"))
    assert benchmark_info("toys").title == "Toys"


def test_cells_and_points_show_measures_that_there_are():
    cells = {measure for row in axes.ROWS.values() for cell in row for measure in cell}
    points = {measure for panel in axes.SCATTER for measure in (panel.x, panel.y)}
    for task, name in cells | points:
        info = load_task(task).info
        assert info.benchmark == axes.BENCHMARK.name
        assert info.measure(name)
    assert all(len(row) == len(axes.COLUMNS) for row in axes.ROWS.values())


def test_each_model_stands_beside_its_twin_and_the_reference():
    drawn = panels(HEAT_MAP.draw(models(), Paper()))
    assert [title for title, _ in drawn] == ["mine", "untrained:mine", "statistics", "yours", "", "statistics"]
    assert drawn[4][1] == ["no untrained twin\namong the results"]


def test_cells_hold_the_numbers_and_a_dash_on_grey_where_there_is_none():
    figure = HEAT_MAP.draw(models(informativeness__pitch_informativeness=-1.23), Paper())
    panel = next(panel for panel in figure.axes if panel.get_title() == "mine")
    texts = [text.get_text() for text in panel.texts]
    shape = (len(axes.ROWS), len(axes.COLUMNS))
    cells = np.array(texts).reshape(shape)
    for (heading, row), line in zip(axes.ROWS.items(), cells, strict=True):
        for number, (cell, text) in enumerate(zip(row, line, strict=True)):
            if (heading, number) == ("pitch", 0):
                assert text == "−1.23"
            else:
                assert (text == "–") == (not cell)
    assert panel.get_facecolor()[:3] == pytest.approx([int(MISSING[k : k + 2], 16) / 255 for k in (1, 3, 5)])
    shown = panel.images[0].get_array()
    assert shown.shape == shape
    assert (shown.mask == (cells == "–")).all()
    assert panel.images[0].norm.vmin == -1
    assert panel.images[0].norm.vmax == 1


def test_rows_and_columns_that_no_model_has_are_left_out():
    without = [
        replace(model, measures={task: values for task, values in model.measures.items() if "transform" not in task})
        for model in models()
    ]
    figure = HEAT_MAP.draw(
        [replace(model, measures={**model.measures, "invariance": {}}) for model in without], Paper()
    )
    panel = figure.axes[0]
    rows = ["timbre", "pitch", "rate", "amplitude", "rate of one of two", "onsets"]
    assert [label.get_text() for label in panel.get_yticklabels()] == rows
    assert [label.get_text() for label in panel.get_xticklabels()] == list(axes.COLUMNS)


def test_too_many_models_are_told_of():
    many = [replace(models()[4], label=f"m{number}") for number in range(axes.MOST_MODELS + 2)]
    drawn = panels(HEAT_MAP.draw(many, Paper()))
    assert len([title for title, _ in drawn if title]) == axes.MOST_MODELS
    assert HEAT_MAP.finding(many) == "For want of room 2 more models are left out; tables have them."


def test_the_finding_counts_cells_above_and_below_the_twin():
    changed = models(informativeness__pitch_informativeness=0.9, informativeness__rate_informativeness=-0.9)
    cells = sum(bool(cell) for row in axes.ROWS.values() for cell in row)
    assert HEAT_MAP.finding(changed) == (
        f"mine is above its untrained twin by 0.05 or more in 1 of {cells} cells, and below it by as much in 1."
    )


def test_numbers_take_little_room():
    assert [heat_map_text(value) for value in (0.987, -0.004, -1.5, -23.71, 1.0, float("nan"))] == [
        "0.99", "0.00", "−1.50", "−24", "1.00", "–",
    ]  # fmt: skip


def test_the_scatter_joins_twins_and_leaves_out_baselines_that_describe_nothing():
    paper = Paper()
    changed = models(
        informativeness__pitch_informativeness=0.9,
        equivariance__pitch_r_equivariance=0.2,
        equivariance__rate_r_equivariance=None,
    )
    figure = SCATTER.draw(changed, paper)
    assert paper.names == ["mine", "untrained:mine", "statistics", "yours"]
    by_panel = dict(paper.numbered)
    assert set(by_panel) == {"timbre", "pitch", "rate", "amplitude"}
    assert by_panel["pitch"][0] == (1, 0.9, 0.2)
    assert [number for number, *_ in by_panel["pitch"]] == [1, 2, 3, 4]
    assert [number for number, *_ in by_panel["rate"]] == [2, 3, 4]
    joined = {
        panel.get_title(): [line.get_xydata().tolist() for line in panel.lines if len(line.get_xydata()) == 2]
        for panel in figure.axes
    }
    twin = (
        changed[1].value("informativeness", "pitch_informativeness"),
        changed[1].value("equivariance", "pitch_r_equivariance"),
    )
    assert joined["pitch"] == [[[0.9, 0.2], list(twin)]]
    assert joined["rate"] == []
    assert not any(isinstance(artist, PathCollection) for panel in figure.axes for artist in panel.collections)
    # All panels have the same axes, in which all points lie.
    limits = {(panel.get_xlim(), panel.get_ylim()) for panel in figure.axes}
    assert len(limits) == 1


def test_the_finding_of_the_scatter_counts_twins_and_correlates_over_enough_models():
    changed = models(equivariance__pitch_r_equivariance=-0.5, informativeness__rate_informativeness=0.99)
    assert SCATTER.finding(changed) == (
        "Here the untrained twin has the higher R-equivariance in 1 of 4 pairs, and the higher informativeness in 0."
    )
    several = [
        DrawnModel(
            f"m{k}",
            "trained",
            measured(informativeness__pitch_informativeness=k, equivariance__pitch_r_equivariance=-k * k),
        )
        for k in range(5)
    ]
    assert SCATTER.finding(several) == ("Spearman's correlation of the two over the trained models: pitch −1.00.")
    assert SCATTER.finding(several[:4]) == ""


@pytest.mark.parametrize("drawing", [HEAT_MAP, SCATTER])
def test_results_without_these_measures_are_not_drawn(drawing):
    with pytest.raises(TaskError, match=r"^no result has "):
        drawing.draw([DrawnModel("mine", "trained", {"informativeness": {}})], Paper())
    with pytest.raises(TaskError, match=r"^no result has "):
        drawing.draw([], Paper())
