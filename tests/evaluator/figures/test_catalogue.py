"""Figures of benchmarks: of any benchmark, from made-up results of several tasks."""

from __future__ import annotations

import pytest
from matplotlib.figure import Figure

from audio_compositionality.evaluator.compare.comparison import by_benchmark, compare_results
from audio_compositionality.evaluator.figures import catalogue
from audio_compositionality.evaluator.figures.catalogue import (
    HouseSheet,
    benchmark_figures,
    drawn_models,
    write_figures,
)
from audio_compositionality.evaluator.figures.layout import COLUMN, PAGE
from audio_compositionality.evaluator.figures.style import LOOKS, FigureError, figure_style, save_figure
from audio_compositionality.tasks.base import TaskError
from audio_compositionality.tasks.benchmarks import info as registered
from audio_compositionality.tasks.benchmarks.info import (
    BenchmarkDrawing,
    BenchmarkInfo,
    benchmark_info,
    register_benchmark,
)

MODELS = ("random", "log-mel-statistics", "untrained:whisper-base", "whisper-base", "org/model")


def draw_shelf(models, sheet):
    """A bar a model of the toys' squeak, numbered."""
    if not any(model.value("toy", "squeak") for model in models):
        raise TaskError("no toy squeaks")
    key = sheet.key([model.label for model in models], sheet.page)
    figure = Figure(figsize=(sheet.page, 2 + key.height))
    axes = figure.add_axes((0.1, 0.6, 0.8, 0.3))
    axes.set(xlim=(-1, len(models)), ylim=(-1, 1))
    heights = [model.value("toy", "squeak") for model in models]
    for place, (model, height) in enumerate(zip(models, heights, strict=True)):
        axes.plot(place, height, model.marker, color=model.colour)
    sheet.number(axes, list(range(len(models))), heights, list(range(1, len(models) + 1)))
    sheet.title(axes, "a name that is much longer than its panel is wide", 1.0)
    key.draw(figure)
    return figure


def fail(models, sheet):
    raise TaskError("toys are not drawn")


@pytest.fixture(scope="module")
def toys():
    """A benchmark that was registered, of the toys."""
    drawings = (
        BenchmarkDrawing("shelf", "Toys.", "A shelf.", draw_shelf, lambda models: f"{len(models)} models."),
        BenchmarkDrawing("none", "Nothing.", "Nothing.", fail),
    )
    register_benchmark(BenchmarkInfo("toys", "Toys", "Do they play?", drawings))
    yield benchmark_info("toys")
    del registered._BENCHMARKS._added["toys"]


@pytest.fixture(scope="module")
def comparisons(tmp_path_factory, write_results, registered_toy, toys):
    folder = tmp_path_factory.mktemp("results")
    write_results(folder / "toys", MODELS, tasks=["toy"])
    write_results(folder / "scenes", MODELS[:2], tasks=["a_coat"])
    return compare_results([folder])


def test_comparisons_are_grouped_by_benchmark_and_data(comparisons, tmp_path, write_results):
    groups = {results.info.name: results for results in by_benchmark(comparisons)}
    assert set(groups) == {"coat", "toys"}
    assert [comparison.info.name for comparison in groups["toys"].comparisons] == ["toy"]
    assert (groups["toys"].dataset, groups["toys"].info.title) == ("mini", "Toys")
    write_results(tmp_path / "more", ["one"], tasks=["toy"], task_version=99)
    write_results(tmp_path / "others", ["one"], tasks=["toy"], fingerprint="0" * 64, dataset="elsewhere")
    more = by_benchmark([*comparisons, *compare_results([tmp_path])])
    assert [(results.info.name, results.dataset) for results in more] == [
        ("coat", "mini"), ("toys", "mini"), ("toys", "elsewhere"),
    ]  # fmt: skip
    # Of two versions that which is installed counts.
    assert [comparison.version for comparison in more[1].comparisons] == [1]


def test_models_have_all_measures_their_kind_and_their_twin(comparisons):
    results = by_benchmark(comparisons)[1]
    models = {model.label: model for model in drawn_models(results)}
    assert set(models) == set(MODELS)
    kinds = {label: model.kind for label, model in models.items()}
    assert kinds == dict(zip(MODELS, ("baseline", "baseline", "untrained", "trained", "trained"), strict=True))
    assert [label for label, model in models.items() if model.is_reference] == ["log-mel-statistics"]
    order = list(models)
    assert models["whisper-base"].twins == (order.index("untrained:whisper-base"),)
    assert {label for label, model in models.items() if model.twins} == {"whisper-base"}
    (comparison,) = results.comparisons
    for result in comparison.results:
        model = models[result.label]
        look = LOOKS[result.kind]
        assert (model.colour, model.marker) == (look.colour, look.marker)
        assert set(model.measures["toy"]) == {measure.name for measure in comparison.info.measures}
        for measure in comparison.info.measures:
            assert model.value("toy", measure.name) == result.value(measure)
        assert model.value("toy", "nothing") is None
        assert model.value("other", "toy") is None


def test_figures_have_their_words_and_errors_say_why(comparisons):
    shelf, none = benchmark_figures(by_benchmark(comparisons)[1])
    assert (shelf.name, shelf.alternative, shelf.caption) == ("shelf", "A shelf.", f"Toys. {len(MODELS)} models.")
    figure = shelf.draw()
    assert figure.get_figwidth() == pytest.approx(PAGE)
    assert none.caption == "Nothing."
    with pytest.raises(FigureError, match="toys are not drawn"):
        none.draw()


@pytest.mark.slow
def test_they_are_written_with_the_others(comparisons, tmp_path, monkeypatch):
    every = catalogue.described_figures
    monkeypatch.setattr(catalogue, "described_figures", lambda comparison: list(every(comparison))[-1:])
    write_figures(comparisons, tmp_path, progress=False)
    names = {path.name for path in tmp_path.iterdir()}
    assert {"toys-shelf.svg", "toys-shelf.png"} <= names
    assert not any(name.startswith(("toys-none", "coat-")) for name in names)
    assert any(name.startswith("toy-") for name in names)


def test_the_paper_is_that_of_all_figures():
    sheet = HouseSheet()
    assert (sheet.column, sheet.page) == (COLUMN, PAGE)
    with figure_style():
        assert 0 < sheet.text_width("i") < sheet.text_width("models")


@pytest.mark.slow
def test_figures_of_the_axes_are_drawn_of_results(tmp_path, write_results):
    """A task of the axes, on few rows: cells of the others have a dash, or nothing is drawn."""
    write_results(tmp_path / "results", MODELS[1:], tasks=["informativeness", "equivariance"])
    (results,) = by_benchmark(compare_results([tmp_path / "results"]))
    described = {figure.name: figure for figure in benchmark_figures(results)}
    for name in ("heat_map", "informativeness_equivariance"):
        for path in save_figure(described[name].draw(), tmp_path / name):
            assert path.stat().st_size > 10_000
        assert "untrained twin" in described[name].caption
