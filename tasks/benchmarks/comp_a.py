"""CompA: are order and attributes recognised, given captions of the same words (arXiv 2310.08753)?"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from .figures import ScatterPanel, draw_twin_scatter
from .info import BenchmarkDrawing, BenchmarkInfo, DrawnModel, Sheet

if TYPE_CHECKING:
    from matplotlib.figure import Figure

PANELS = tuple(
    ScatterPanel(name, (task, "match"), (task, "group"), chance=(1 / 2, 1 / 6), floor=(task, "floor_group"))
    for name, task in (("order", "comp_a_order"), ("attribute", "comp_a_attribute"))
)


def _scatter(models: Sequence[DrawnModel], sheet: Sheet) -> Figure:
    panels = [panel for panel in PANELS if any(panel.point(model) is not None for model in models)]
    return draw_twin_scatter(panels or PANELS, models, sheet, "match", "group")


BENCHMARK = BenchmarkInfo(
    name="comp_a",
    title="Order and attributes in captions",
    question="Does an audio–text model hear who came first, and what belongs to whom?",
    drawings=(
        BenchmarkDrawing(
            name="match_group",
            title=(
                "Group against match, a point a model; a line joins a model with its untrained twin. Dashed: chance of "
                "independent similarities, 1/2 and 1/6. Right of it the model knows something; how far up a model gets "
                "also depends on whether its captions, or its clips, are nearly one to it. Below the dashed line at a "
                "match of 1/2 the model knows nothing, right or wrong. An orange dash at the match "
                "of a model is its floor, where that is above chance: its group has to be above the dash."
            ),
            alternative="Scatter plots of group against match, a panel a task, a point a model.",
            draw=_scatter,
        ),
    ),
)
