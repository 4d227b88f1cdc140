"""All figures of comparisons with their captions: figures common to all tasks, and tasks' own."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from tqdm.auto import tqdm

from audio_compositionality.evaluator.compare.comparison import Comparison
from audio_compositionality.evaluator.compare.tables import outside_sentence
from audio_compositionality.evaluator.results.result import data_digest

from .models import control_scatter, significance_map
from .samples import diversity_panels, score_boxes, task_panels
from .style import Described, FigureError, measure_name, save_figure

FEW_VALUES = 6
"""Most distinct values of a measure that counts hits, also if ties share a hit or fits are averaged."""


def described_figures(comparison: Comparison) -> Iterator[Described]:
    """Yield the figures of a comparison: boxes, tests and diversity for each measure by sample; controls; the task's
    own."""
    info, m = comparison.info, len(comparison.results)
    of_models = "1 model" if m == 1 else f"{m} models"
    of_samples = f"{len(comparison.ids):,} {info.samples}"
    for view in comparison.recommended:
        name, title, outside = view.measure.name, measure_name(comparison, view.measure), outside_sentence(view)
        # Hits and misses have no quartiles, and no line fits them.
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
                f"Paired differences in {title} between every two models, with the significance of the corrected "
                "tests.",
            )
        if is_graded and (comparison.samples is None or comparison.samples.diversity):
            yield Described(
                f"diversity_panels-{name}",
                partial(diversity_panels, comparison, name),
                f"{title} of each of the {of_samples} against their diversity, with a line and its 95 % band, a panel "
                f"for each of {of_models}.",
                f"{title} against diversity, with the least-squares line and its 95 % band.{outside}",
            )
    # The dashed line is where score and null are equal.
    null = info.score.null
    worthless = ""
    if null is not None:
        worthless = f" A score below the dashed line is lower than {info.measure(null).heading}: no evidence."
    yield Described(
        "control_scatter",
        partial(control_scatter, comparison),
        f"{info.title} of {of_models} against each other measure, a point per model.",
        f"{info.title} against the other measures.{worthless}",
    )
    for drawing in comparison.task.drawings:
        draw = partial(task_panels, comparison, drawing)
        yield Described(drawing.name, draw, drawing.alternative, drawing.title)


def write_figures(comparisons: Sequence[Comparison], folder: Path, *, progress: bool = True) -> None:
    """Write all figures of comparisons that can be drawn to a folder, as SVG and PNG."""
    figures = [
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


def file_prefix(comparison: Comparison, comparisons: Sequence[Comparison]) -> str:
    """Return the prefix of the file names of a comparison's figures: the task, and a part unique within it."""
    name = comparison.info.name
    same = [other for other in comparisons if other.info.name == name]
    if len({other.version for other in same}) > 1:
        name += f"-v{comparison.version}"
    several = len({(other.fingerprint, other.rows_digest) for other in same}) > 1
    return f"{name}-{data_digest(comparison, same)}" if several else name
