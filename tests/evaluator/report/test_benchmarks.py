"""What the report tells of benchmarks, of layers and of sizes."""

from __future__ import annotations

from dataclasses import replace

import pytest
from matplotlib.figure import Figure

from audio_compositionality.evaluator.compare.comparison import compare_results
from audio_compositionality.evaluator.report import sections as benchmarks
from audio_compositionality.evaluator.report.page import _data_summary, write_report
from audio_compositionality.tasks.base import TaskError
from audio_compositionality.tasks.benchmarks import info as registered
from audio_compositionality.tasks.benchmarks.info import BenchmarkDrawing, BenchmarkInfo, register_benchmark

from .test_report import Page

HOSTILE = "<script>alert(1)</script>"
MODELS = ("random", "untrained:one", "one", "one@layer=2", HOSTILE)


def draw(models, sheet):
    figure = Figure(figsize=(sheet.page, 1))
    sheet.title(figure.add_axes((0.1, 0.1, 0.8, 0.5)), models[0].label, 2.0)
    return figure


def fail(models, sheet):
    raise TaskError(f"nothing of {HOSTILE} is drawn")


@pytest.fixture(scope="module")
def page(tmp_path_factory, write_results, registered_toy, tiny_data):
    folder = tmp_path_factory.mktemp("results")
    tasks = ["a_coat", "toy"]
    write_results(folder / "results", [MODELS[0], *MODELS[1:3], MODELS[4]], tiny_data, tasks)
    options = {"layer": 2, "pooling": None, "precision": "float32", "compile": False}
    write_results(folder / "results", MODELS[3:4], tiny_data, tasks, model={"options": options})
    drawings = (
        BenchmarkDrawing("shelf", "Toys on a shelf.", "A shelf.", draw, lambda models: f"Of {HOSTILE}."),
        BenchmarkDrawing("none", "Nothing.", "Nothing.", fail),
    )
    register_benchmark(BenchmarkInfo("toys", "Toys together", "Do they play?", drawings))
    try:
        path = write_report([folder / "results"], folder / "report.html", data=tiny_data, progress=False)
    finally:
        del registered._BENCHMARKS._added["toys"]
    return Page(path)


def test_a_benchmark_with_figures_has_a_section_before_the_scores_of_its_tasks(page):
    headings = [text for _, text in page.find("h2")]
    assert headings.index("Toys together") == headings.index("Scores") - 1
    # A benchmark without figures of its own has none.
    assert not any("Composition" in heading for heading in headings)
    link = next(attributes["href"] for attributes, text in page.find("a") if text == "Toys together")
    assert page.find("h2", id=link.removeprefix("#")) == [({"id": link.removeprefix("#")}, "Toys together")]
    for words in ("Do they play? Tasks: Toy score.", "Toys on a shelf.", f"Of {HOSTILE}.", f"nothing of {HOSTILE}"):
        assert words in page.text
    assert [attributes["alt"] for attributes, _ in page.find("img", alt="A shelf.")] == ["A shelf."]
    assert HOSTILE not in page.source


def test_of_a_whole_benchmark_of_many_tasks_the_head_says_the_sum(write_results, tiny_data, tmp_path, monkeypatch):
    monkeypatch.setattr(benchmarks, "MOST_NAMED", 1)
    comparisons = compare_results([write_results(tmp_path, ["one"], tiny_data)], data=tiny_data)
    every = {comparisons[0].info.benchmark: tuple(comparison.info.name for comparison in comparisons)}
    monkeypatch.setattr(benchmarks, "list_benchmarks", lambda: every)
    configurations = [comparison.configuration for comparison in comparisons]
    rows = sum(len(configuration.rows) for configuration in configurations)
    clips = sum(len(configuration.clip_ids) for configuration in configurations)
    assert _data_summary(comparisons) == f"Composition of scenes on tiny: 2 tasks on {rows} rows with {clips} clips"
    unopened = [replace(comparisons[0], configuration=None), *comparisons[1:]]
    assert _data_summary(unopened) == "Composition of scenes on tiny: 2 tasks"
    # Of a benchmark that is not whole each task is named.
    title = comparisons[0].info.title
    assert _data_summary(comparisons[:1]).startswith(f"{title} on tiny: {len(comparisons[0].ids)} ")


def test_layers_and_sizes_stand_with_the_scores(page):
    tables = page.tables()
    heading, *rows = tables["Layers"]
    assert heading[:2] == ["model", "layer"]
    assert [row[:2] for row in rows] == [["one", "2"], ["one", "output"]]
    heading, *rows = tables["Models by size"]
    assert heading[:2] == ["model", "parameters"]
    assert [row[1] for row in rows] == sorted((row[1] for row in rows), key=lambda text: int(text.replace(",", "")))
    assert {"Layers", "Models by size"} <= {text for _, text in page.find("h3")}


@pytest.mark.slow
def test_without_layers_and_sizes_there_are_no_such_tables(tmp_path, write_results, tiny_data):
    write_results(tmp_path / "results", ["one"], tiny_data, ["a_coat"])
    page = Page(write_report([tmp_path / "results"], tmp_path / "report.html", data=tiny_data, progress=False))
    assert not {"Layers", "Models by size"} & set(page.tables())
    assert [text for _, text in page.find("h2")][1] == "Scores"
