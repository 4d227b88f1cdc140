"""Curves of fits as lists of a result, and their figure."""

import json

import numpy as np
import pytest
from matplotlib.figure import Figure
from pydantic import Field

from audio_compositionality.evaluator.figures.samples import task_panels
from audio_compositionality.evaluator.figures.style import FigureError
from audio_compositionality.tasks.a_tre import TASK
from audio_compositionality.tasks.shapes.fits import CURVES, FitSpec, FitTask, draw_curves, flat_curves, seed_curves

RAW = [
    {"steps": [125, 250, 300], "training": [0.5, 0.7123456, 0.8], "validation": [0.4, 0.6, 0.5]},
    {"steps": [125, 250], "training": [0.6, 0.7], "validation": [0.5, 0.4]},
]
CENTRED = [{"steps": [300], "training": [0.2], "validation": [0.1]}] * 2
KEPT = {"steps": [250, 125], "steps_centred": [300, 300]}


def arrays(lists):
    return {name: np.array(values, float) for name, values in lists.items()}


def test_a_subclass_can_have_a_spec_of_its_own(small_data):
    class OwnSpec(FitSpec):
        max_steps: int | None = Field(7, ge=1, description="Of a fit.")

    class OwnTask(FitTask):
        spec = OwnSpec

    rows = tuple(small_data.configuration("a_tre").rows)
    assert OwnTask(TASK.info).settings(rows, {})["max_steps"] == 7


def test_curves_of_all_seeds_become_lists_and_are_told_apart_again():
    lists = {**KEPT, **flat_curves(RAW, CENTRED)}
    assert tuple(sorted(lists)) == tuple(sorted(CURVES))
    assert lists["curve_steps"] == [125, 250, 300, 125, 250]
    assert lists["curve_training"] == [0.5, 0.71235, 0.8, 0.6, 0.7]
    first, second = seed_curves(arrays(lists), "")
    assert first["validation"].tolist() == [0.4, 0.6, 0.5]
    assert (second["steps"].tolist(), second["kept"].tolist()) == ([125, 250], [125])
    assert [curve["steps"].tolist() for curve in seed_curves(arrays(lists), "_centred")] == [[300], [300]]


def test_where_nothing_was_fitted_there_are_no_curves():
    nothing = [{"steps": [], "training": [], "validation": []}]
    lists = {"steps": [0], "steps_centred": [0], **flat_curves(nothing, nothing)}
    assert seed_curves(arrays(lists), "") == []
    axes = Figure().add_subplot()
    draw_curves(axes, arrays(lists), {})
    assert not axes.lines


def test_the_panel_has_the_curves_of_every_seed_and_a_dot_at_the_step_that_was_kept():
    axes = Figure().add_subplot()
    draw_curves(axes, arrays({**KEPT, **flat_curves(RAW, CENTRED)}), {})
    assert axes.get_legend_handles_labels()[1] == [
        "raw, training",
        "raw, validation",
        "centred, training",
        "centred, validation",
    ]
    dots = [tuple(line.get_xydata()[0]) for line in axes.lines if line.get_marker() == "o"]
    assert dots == [(250, 0.6), (125, 0.5), (300, 0.1), (300, 0.1)]


@pytest.fixture(scope="module")
def result(small_data, tmp_path_factory, few_steps, one_thread):
    from audio_compositionality.evaluator.run.evaluate import evaluate
    from audio_compositionality.evaluator.run.options import RunOptions

    out = tmp_path_factory.mktemp("curves")
    settings = few_steps | {"seeds": 2}
    (result,) = evaluate(
        "downsample", small_data, tasks=["a_tre"], options=RunOptions(out=out, settings=settings, progress=False)
    )
    return result, out


def test_a_result_keeps_the_curves_and_its_figure_draws_them(result, small_data):
    from audio_compositionality.evaluator.compare.comparison import compare_results

    computed, out = result
    assert set(CURVES) <= set(computed.training)
    assert computed.training["curve_steps"] == [10, 10]
    path = next(out.rglob("a_tre.json"))
    assert path.stat().st_size < 20_000
    assert json.loads(path.read_text())["training"]["curve_steps_centred"] == [10, 10]
    (comparison,) = compare_results([out], data=small_data)
    (drawing,) = TASK.drawings
    figure = task_panels(comparison, drawing)
    # What the axes are stands outside of the panels, where it covers no curve.
    assert {"steps of the fit", "mean cosine"} <= {text.get_text() for text in figure.texts}
    assert not any(axes.texts for axes in figure.axes)
    without = computed.model_copy(update={"training": {"steps": [1]}})
    (compared,) = comparison.results
    object.__setattr__(compared, "result", without)
    with pytest.raises(FigureError, match="has the columns of this figure: steps"):
        task_panels(comparison, drawing)
