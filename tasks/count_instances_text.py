"""Counting in captions: does "bell heard three times" match the clip in which the bell is heard three times?"""

from __future__ import annotations

from dataclasses import dataclass

from .metric_files import describe_metric
from .shapes.ladders import LADDER_CAPTIONS, LadderTask
from .shapes.pairs import TextInfo

_METRIC = describe_metric("count_instances")

_OF_PROBES = ("order_up", "order_down", "error", "error_constant")


@dataclass(frozen=True, kw_only=True)
class _CaptionLadderInfo(TextInfo):
    """The facts of the task."""

    @property
    def heard_by(self) -> str:
        """A score of single ladders: the worst part is of some of them alone."""
        return "exact"


TASK = LadderTask(
    _CaptionLadderInfo(
        name="count_instances_text",
        version=_METRIC.version,
        title="Counting in captions",
        question="Do clips and captions match by how often the same sound is heard?",
        benchmark="kinds",
        recipe="count_instances",
        samples="ladders",
        measures=tuple(measure for measure in _METRIC.measures if measure.name not in _OF_PROBES),
        ranks_by="worst",
        trusted={"worst": "chance"},
        captions=LADDER_CAPTIONS,
        controls=("bag-of-words", "without-text:"),
        warning=(
            "Captions of a ladder differ in a number word alone, and all ladders have the same words: a model that "
            "knows nothing of numbers orders them somehow, in all ladders alike, and may be lucky in all of them. An "
            "interval over ladders does not see that: the score has to be above its floor, which 1 of 24 permutations "
            "of the number words exceeds at most. A fuller clip that matches a larger number is enough, but for where "
            "energy, span and activity are held."
        ),
        citation=_METRIC.citation,
    )
)
