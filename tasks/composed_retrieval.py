"""Composed retrieval: is the clip found that is a source clip with a change in words?"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from .metric_files import describe_metric
from .shapes.composed import COMPOSED_CAPTIONS, COMPOSED_FLOOR, ComposedTask
from .shapes.pairs import TextInfo

_METRIC = describe_metric("composed_retrieval")


BARS = {
    "without-text:": "itself without the change",
    "sorted-words:": "itself on sorted words",
    "reversed-audio:": "itself on reversed clips",
}


@dataclass(frozen=True, kw_only=True)
class ComposedInfo(TextInfo):
    """The facts of the task."""

    @property
    def bars(self) -> Mapping[str, str]:
        """The model without the change, without the order of its words, and without that of sounds."""
        return {**super().bars, **BARS}

    @property
    def floor(self) -> str:
        """A model that knows nothing, and the model itself with half of its query."""
        return COMPOSED_FLOOR


TASK = ComposedTask(
    ComposedInfo(
        name="composed_retrieval",
        version=_METRIC.version,
        title="Composed retrieval",
        question="Is the clip found that is a source clip with a change in words?",
        benchmark="kinds",
        recipe="composed_retrieval",
        samples="queries",
        measures=_METRIC.measures,
        ranks_by="r1",
        trusted={"r1": "chance", "gain": 0.0},
        captions=COMPOSED_CAPTIONS,
        warning=(
            "Chance is not the floor: the source alone, or the change alone, may find as much, and R@1 has to be above "
            "both. A gain says that both are used, not that order or binding is: without these half of the queries of "
            "the kinds then and attribute are found. A sum in which one of the two drowns out the other is at the "
            "floor even where both are known."
        ),
        citation=_METRIC.citation,
        controls=("bag-of-words", *BARS),
    )
)
