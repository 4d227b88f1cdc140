"""The figures of benchmarks, of several tasks each; what they show is said by the benchmarks."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from typing import Literal

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from audio_compositionality.evaluator.compare.benchmarks import BenchmarkResults, twin_places
from audio_compositionality.evaluator.compare.kinds import ModelKind
from audio_compositionality.tasks.base import TaskError
from audio_compositionality.tasks.benchmarks.info import BenchmarkDrawing, DrawnModel

from .controls import MARKER
from .files import figure_style
from .kinds import LOOKS, Described, FigureError
from .layout import COLUMN, LINE, PAGE, Key, in_points, number_points, short_labels, text_width, title_lines

KINDS: dict[ModelKind, Literal["trained", "untrained", "baseline", "control"]] = {
    ModelKind.TRAINED: "trained",
    ModelKind.UNTRAINED: "untrained",
    ModelKind.BASELINE: "baseline",
    ModelKind.CONTROL: "control",
}


class HouseSheet:
    """The paper of all figures; see `audio_compositionality.tasks.benchmarks.info.Sheet`."""

    column, page, line = COLUMN, PAGE, LINE

    def text_width(self, text: str) -> float:
        """How wide a line of the smallest text is."""
        return text_width(text)

    def title(self, axes: Axes, name: str, width: float) -> None:
        """Write a name above a panel, on at most two lines of this width."""
        axes.set_title(title_lines(name, width), loc="left", y=1.0, linespacing=1.15)

    def number(self, axes: Axes, x: Sequence[float], y: Sequence[float], numbers: Sequence[int]) -> None:
        """Write numbers near points, so that they cover no point and no other number."""
        points = in_points(axes, np.asarray(x, np.float64), np.asarray(y, np.float64))
        number_points(axes, points, numbers, np.array(MARKER / 2 + 1))

    def key(self, names: Sequence[str], width: float) -> Key:
        """A key of numbers from 1, for the foot of a figure so wide."""
        return Key(names, columns=1 if width <= COLUMN else 3, width=width)


def drawn_models(results: BenchmarkResults) -> list[DrawnModel]:
    """All models of a benchmark as its figures draw them, in the order of its comparisons."""
    models = results.models
    comparisons = {comparison.info.name: comparison for comparison in results.comparisons}
    return [
        DrawnModel(
            label=name,
            kind=KINDS[model.first.kind],
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
