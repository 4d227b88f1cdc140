"""All figures of benchmarks and of comparisons with their texts: figures common to all tasks, and tasks' own."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any, Literal

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from tqdm.auto import tqdm

from audio_compositionality.evaluator.compare.comparison import BenchmarkResults, Comparison, by_benchmark, twin_places
from audio_compositionality.evaluator.compare.loading import ModelKind
from audio_compositionality.evaluator.compare.tables import outside_sentence
from audio_compositionality.tasks.base import TaskError, TaskInfo
from audio_compositionality.tasks.benchmarks.info import BenchmarkDrawing, DrawnModel

from .layout import COLUMN, LINE, PAGE, NumberKey, in_points, number_points, short_labels, text_width, title_lines
from .models import MARKER_SIZE, control_scatter, significance_map
from .samples import diversity_panels, score_boxes, task_panels
from .style import LOOKS, Described, FigureError, figure_style, measure_name, save_figure

DRAWN_KINDS: dict[ModelKind, Literal["trained", "untrained", "baseline", "control"]] = {
    ModelKind.TRAINED: "trained",
    ModelKind.UNTRAINED: "untrained",
    ModelKind.BASELINE: "baseline",
    ModelKind.CONTROL: "control",
}


class HouseSheet:
    """The paper of all figures; see `audio_compositionality.tasks.benchmarks.info.Sheet`."""

    column, page, line = COLUMN, PAGE, LINE

    def text_width(self, text: str) -> float:
        """Width of a line of the smallest text."""
        return text_width(text)

    def title(self, axes: Axes, name: str, width: float) -> None:
        """Write a name above a panel, on at most two lines of this width."""
        axes.set_title(title_lines(name, width), loc="left", y=1.0, linespacing=1.15)

    def number(self, axes: Axes, x: Sequence[float], y: Sequence[float], numbers: Sequence[int]) -> None:
        """Write numbers near points, so that they cover no point and no other number."""
        points = in_points(axes, np.asarray(x, np.float64), np.asarray(y, np.float64))
        number_points(axes, points, numbers, np.array(MARKER_SIZE / 2 + 1))

    def key(self, names: Sequence[str], width: float) -> NumberKey:
        """A key of numbers from 1, for the foot of a figure of this width."""
        return NumberKey(names, columns=1 if width <= COLUMN else 3, width=width)


def drawn_models(results: BenchmarkResults) -> list[DrawnModel]:
    """All models of a benchmark as its figures draw them, in the order of its comparisons."""
    models = results.models
    comparisons = {comparison.info.name: comparison for comparison in results.comparisons}
    return [
        DrawnModel(
            label=name,
            kind=DRAWN_KINDS[model.first.kind],
            measures={task: model.measures(comparisons[task]) for task in model.results},
            is_reference=model.is_reference,
            twins=twin_places(models, place) if model.first.kind is ModelKind.TRAINED else (),
            colour=LOOKS[model.first.kind].colour,
            marker=LOOKS[model.first.kind].marker,
        )
        for place, (model, name) in enumerate(zip(models, short_labels([m.label for m in models]), strict=True))
    ]


def benchmark_figures(results: BenchmarkResults) -> Iterator[Described]:
    """The figures of a benchmark, over all of its tasks."""
    if not results.info.drawings:
        return
    with figure_style():
        models = drawn_models(results)
    for drawing in results.info.drawings:
        caption = f"{drawing.title} {drawing.finding(models)}".strip()
        yield Described(drawing.name, partial(_draw, drawing, models), drawing.alternative, caption)


def _draw(drawing: BenchmarkDrawing, models: Sequence[DrawnModel]) -> Figure:
    try:
        with figure_style():
            return drawing.draw(models, HouseSheet())
    except TaskError as error:
        raise FigureError(str(error)) from error


FEW_VALUES = 6
"""Most distinct values of a measure of hits and misses, shared among ties or averaged over fits."""


def described_figures(comparison: Comparison) -> Iterator[Described]:
    """The figures of a comparison: for each measure by sample boxes, tests and diversity; controls; the task's own."""
    info, m = comparison.info, len(comparison.results)
    of_models = "1 model" if m == 1 else f"{m} models"
    of_samples = f"{len(comparison.ids):,} {info.samples}"
    for view in comparison.recommended:
        name, title, outside = view.measure.name, measure_name(comparison, view.measure), outside_sentence(view)
        # A hit or a miss has neither quartiles nor a line.
        is_graded = any(len(np.unique(column)) > FEW_VALUES for column in view.values.T)
        if is_graded:
            yield Described(
                f"score_boxes-{name}",
                partial(score_boxes, comparison, name),
                f"Box plots of {title} over {of_samples}, one for each of {of_models}, the highest mean first.",
                f"{title} of each sample, by model. Boxes span the quartiles, notches the 95 % interval of the median; "
                f"the diamond is the mean with its interval.{outside}",
            )
        if m > 1:
            yield Described(
                f"significance_map-{name}",
                partial(significance_map, comparison, name),
                f"Map of the paired differences in {title} between every two of {of_models}, with the corrected tests.",
                f"Paired differences in {title} between every two models, and whether the corrected tests tell them "
                "apart.",
            )
        if is_graded and (comparison.samples is None or comparison.samples.diversity):
            yield Described(
                f"diversity_panels-{name}",
                partial(diversity_panels, comparison, name),
                f"{title} of each of the {of_samples} against their diversity, with a line and its 95 % band, a panel "
                f"for each of {of_models}.",
                f"{title} against diversity, with the least-squares line and its 95 % band.{outside}",
            )
    yield Described(
        "control_scatter",
        partial(control_scatter, comparison),
        f"{info.title} of {of_models} against each measure beside it, a point a model.",
        f"{info.title} against the measures beside it.{_worthless(info)}",
    )
    for drawing in comparison.task.drawings:
        draw = partial(task_panels, comparison, drawing)
        yield Described(drawing.name, draw, drawing.alternative, drawing.title)


def _worthless(info: TaskInfo) -> str:
    """The meaning of the line of equal score and null."""
    null = info.score.null
    return (
        ""
        if null is None
        else f" Below the dashed line, where it is no higher than {info.measure(null).heading}, it says nothing."
    )


def write_figures(comparisons: Sequence[Comparison], folder: Path, *, progress: bool = True) -> None:
    """Write all figures of some comparisons to a folder, as SVG and PNG, figures of their benchmarks first; without
    those that cannot be drawn."""
    benchmarks = by_benchmark(comparisons)
    figures = [
        (f"{benchmark_prefix(results, benchmarks)}-{figure.name}", figure)
        for results in benchmarks
        for figure in benchmark_figures(results)
    ]
    figures += [
        (f"{file_prefix(comparison, comparisons)}-{figure.name}", figure)
        for comparison in comparisons
        for figure in described_figures(comparison)
    ]
    bar: tqdm[Any] = tqdm(figures, desc="figures", unit="figure", disable=not progress)
    for name, figure in bar:
        try:
            drawn = figure.draw()
        except FigureError:
            continue
        save_figure(drawn, folder / name)


def benchmark_prefix(results: BenchmarkResults, benchmarks: Sequence[BenchmarkResults]) -> str:
    """Prefix of the file names of a benchmark's figures: its name, and a part that identifies its data."""
    same = [other for other in benchmarks if other.info.name == results.info.name]
    name = results.info.name
    return f"{name}-{results.comparisons[0].fingerprint[:8]}" if len(same) > 1 else name


def file_prefix(comparison: Comparison, comparisons: Sequence[Comparison]) -> str:
    """Prefix of the file names of a comparison's figures: the task, and a part unique within it."""
    name = comparison.info.name
    same = [other for other in comparisons if other.info.name == name]
    if len({other.version for other in same}) > 1:
        name += f"-v{comparison.version}"
    return f"{name}-{comparison.fingerprint[:8]}" if len({other.fingerprint for other in same}) > 1 else name
