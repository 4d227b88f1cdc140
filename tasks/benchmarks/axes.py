"""Four axes of a representation: informativeness, equivariance, invariance, disentanglement (arXiv 2505.06224)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from ..base import TaskError
from ..shapes.designs import FACTORS, TRANSFORMS
from .figures import HeatPanel, ScatterPanel, draw_heat_maps, draw_twin_scatter, drawn_values
from .info import BenchmarkDrawing, BenchmarkInfo, DrawnModel, Sheet

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Measures = tuple[tuple[str, str], ...]
"""A cell: task and name of the measures whose mean it shows."""

COLUMNS = ("Informativeness", "R-equivariance", "P gain", "Disentanglement", "Invariance (ABX)")

_HEADINGS = {
    # A transform may have the name of a factor, such as the pitch.
    transform: f"{transform} shift" if transform in FACTORS else {"lowpass": "low-pass"}.get(transform, transform)
    for transform in TRANSFORMS
}

ROWS: dict[str, tuple[Measures, ...]] = {
    **{
        factor: (
            (("informativeness", f"{factor}_informativeness"),),
            (("equivariance", f"{factor}_r_equivariance"),),
            (("equivariance", f"{factor}_p_gain"),),
            tuple(("disentanglement", f"{factor}_over_{other}_unseen") for other in FACTORS if other != factor),
            (),
        )
        for factor in FACTORS
    },
    "rate of one of two": ((), (), (), (("rate_binding", "unseen_informativeness"),), ()),
    "onsets": ((), (), (), (), (("onset_invariance", "abx"),)),
    **{
        heading: (
            (),
            (("transform_equivariance", f"{transform}_r_equivariance"),),
            (("transform_equivariance", f"{transform}_p_gain"),),
            (("transform_disentanglement", f"{transform}_shift_after"),),
            (("invariance", f"{transform}_abx"),),
        )
        for transform, heading in _HEADINGS.items()
    },
}
"""What each cell of the heat map shows, by the heading of its row."""

MOST_MODELS = 6
"""Most trained models in the heat map."""

MATTERS = 0.05
"""A smaller difference from a twin counts as none."""

FEWEST_MODELS = 5
"""Fewest models for a correlation over models."""

SCATTER = tuple(
    ScatterPanel(
        factor,
        ("informativeness", f"{factor}_informativeness"),
        ("equivariance", f"{factor}_r_equivariance"),
    )
    for factor in FACTORS
)


def _heat_map(models: Sequence[DrawnModel], sheet: Sheet) -> Figure:
    tables = [drawn_values(model, list(ROWS.values())) for model in models]
    stated = np.zeros((len(ROWS), len(COLUMNS)), bool)
    for table in tables:
        stated |= np.isfinite(table)
    if not stated.any():
        raise TaskError("no result has a measure of the heat map")
    rows, columns = np.flatnonzero(stated.any(axis=1)), np.flatnonzero(stated.any(axis=0))
    names = [list(ROWS)[row] for row in rows]
    panels = {place: HeatPanel(models[place].label, table[np.ix_(rows, columns)]) for place, table in enumerate(tables)}
    return draw_heat_maps(
        _arranged(models, panels),
        names,
        [COLUMNS[column] for column in columns],
        sheet,
        groups=[place for place in range(1, len(names)) if _is_factor(names[place - 1]) != _is_factor(names[place])],
        scale="1: best; 0: chance, or no better than what is blind to it; –: not measured",
    )


def _is_factor(row: str) -> bool:
    return row in FACTORS


def _arranged(models: Sequence[DrawnModel], panels: dict[int, HeatPanel]) -> list[list[HeatPanel]]:
    """A row a trained model, beside its untrained twin and the references; without any, all models in rows of three."""
    trained = [place for place, model in enumerate(models) if model.kind == "trained"][:MOST_MODELS]
    if not trained:
        everything = list(panels.values())
        across = min(3, len(everything))
        rows = [everything[start : start + across] for start in range(0, len(everything), across)]
        return [[*row, *[HeatPanel("", None)] * (across - len(row))] for row in rows]
    references = [panels[place] for place, model in enumerate(models) if model.is_reference]
    absent = HeatPanel("", None, "no untrained twin\namong the results")
    return [
        [panels[place], panels[models[place].twins[0]] if models[place].twins else absent, *references]
        for place in trained
    ]


def _heat_finding(models: Sequence[DrawnModel]) -> str:
    """In how many cells each model is above its twin, and in how many below."""
    sentences = []
    trained = [model for model in models if model.kind == "trained"]
    for model in trained[:MOST_MODELS]:
        if model.twins:
            trained_cells, twin_cells = (
                drawn_values(one, list(ROWS.values())) for one in (model, models[model.twins[0]])
            )
            gap = (trained_cells - twin_cells)[np.isfinite(trained_cells - twin_cells)]
            sentences.append(
                f"{model.label} is above its untrained twin by {MATTERS} or more in {int((gap >= MATTERS).sum())} of "
                f"{gap.size} cells, and below it by as much in {int((gap <= -MATTERS).sum())}."
            )
    rest = len(trained) - MOST_MODELS
    if rest > 0:
        sentences.append(f"For want of room {rest} more models are left out; tables have them.")
    return " ".join(sentences)


def _scatter(models: Sequence[DrawnModel], sheet: Sheet) -> Figure:
    return draw_twin_scatter(SCATTER, _beside(models), sheet, "Informativeness", "R-equivariance")


def _beside(models: Sequence[DrawnModel]) -> list[DrawnModel]:
    """Models less the baselines that represent nothing: their points at 0 would squeeze all others together."""
    kept = [place for place, model in enumerate(models) if model.kind != "baseline" or model.is_reference]
    places = {place: number for number, place in enumerate(kept)}
    return [replace(models[place], twins=tuple(places[twin] for twin in models[place].twins)) for place in kept]


def _scatter_finding(models: Sequence[DrawnModel]) -> str:
    """How often the twin is higher on either axis, and whether the axes go together over trained models."""
    pairs = [
        (point, twin)
        for model in models
        for panel in SCATTER
        if model.kind == "trained" and model.twins
        if (point := panel.point(model)) is not None and (twin := panel.point(models[model.twins[0]])) is not None
    ]
    sentences = []
    if pairs:
        higher = [sum(twin[axis] > point[axis] for point, twin in pairs) for axis in (0, 1)]
        sentences.append(
            f"Here the untrained twin has the higher R-equivariance in {higher[1]} of {len(pairs)} pairs, and the "
            f"higher informativeness in {higher[0]}."
        )
    correlations = []
    for panel in SCATTER:
        points = [point for model in models if model.kind == "trained" and (point := panel.point(model)) is not None]
        if len(points) >= FEWEST_MODELS:
            from scipy.stats import spearmanr

            if min(len(set(values)) for values in zip(*points, strict=True)) > 1:
                rho = float(spearmanr(*np.transpose(points)).statistic)
                correlations.append(f"{panel.name} {rho:+z.2f}".replace("-", "−"))
    if correlations:
        sentences.append(f"Spearman's correlation of the two over the trained models: {', '.join(correlations)}.")
    return " ".join(sentences)


BENCHMARK = BenchmarkInfo(
    name="axes",
    title="Four axes of a representation",
    question="What does an embedding hold of a sound, how does it move with it, what leaves it where it is, and are "
    "factors kept apart?",
    drawings=(
        BenchmarkDrawing(
            name="heat_map",
            title=(
                "What is varied (rows) by what is asked (columns): each model beside its untrained twin, log-mel "
                "statistics and statistics of the level alone, where there are results of these. What these reach as "
                "well was not learnt. Informativeness: R², or accuracy above chance, "
                "of a probe of the factor. R-equivariance: what knowing the change adds to predicting the changed "
                "embedding. P gain: what reading the change from both embeddings adds to reading it from the better "
                "one. Disentanglement of a factor: correlation (timbre: accuracy above chance) of its probe where "
                "another factor has levels that it was not trained on, mean over the others; of a transform: R² "
                "(timbre: accuracy above chance) of the factors' probes, trained on originals, after it; of one of two "
                "sources: which has which rate, accuracy above chance from unseen timbres. "
                "Invariance: how often a changed clip is nearer to another clip of its sources than to one, as loud, "
                "in which the timbre, pitch or rate of one source differs; 1 always, 0 by chance. Which of "
                "equivariance and invariance to a transform is wanted depends on the use."
            ),
            alternative="Heat maps of scores by factor or transform and by measure, a panel a model.",
            draw=_heat_map,
            finding=_heat_finding,
        ),
        BenchmarkDrawing(
            name="informativeness_equivariance",
            title=(
                "Informativeness against R-equivariance, a panel a factor, a point a model; a line joins a model with "
                "its untrained twin, and baselines that describe nothing are left out. arXiv 2505.06224 finds that the "
                "two trade off, by a cosine that compares the signs of predictions only. By mean squared error its own "
                "eight speech encoders show no trade-off: Spearman's correlation of informativeness and equivariance "
                "is +0.31 (pitch), +0.14 (noise) and −0.14 (stretch). Where an untrained twin lies higher, "
                "equivariance comes with any smooth map of energy, not with training."
            ),
            alternative="Scatter plots of informativeness and R-equivariance, a panel a factor, a point a model.",
            draw=_scatter,
            finding=_scatter_finding,
        ),
    ),
)
