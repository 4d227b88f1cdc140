"""Counting: does an encoder tell how often a sound is heard, also where energy, span, density or activity does not?"""

from __future__ import annotations

from dataclasses import dataclass

from audio_compositionality.encoders.base import ENCODER

from .base import TaskInfo
from .metric_files import describe_metric
from .shapes.ladders import LADDER_CAPTIONS, LadderTask

_METRIC = describe_metric("count_instances")


@dataclass(frozen=True, kw_only=True)
class _LadderInfo(TaskInfo):
    """The facts of the task."""

    @property
    def floor(self) -> str:
        """Energy alone is at chance in a part of the ladders, and the worst part counts."""
        return "chance"

    @property
    def heard_by(self) -> str:
        """A score of single ladders: the worst part is of some of them alone."""
        return "order_up"


TASK = LadderTask(
    _LadderInfo(
        name="count_instances",
        version=_METRIC.version,
        title="Counting",
        question="Is it read from an embedding how often the same sound is heard, beyond the counts of training?",
        benchmark="kinds",
        recipe="count_instances",
        needs=ENCODER,
        samples="ladders",
        measures=tuple(measure for measure in _METRIC.measures if not measure.name.startswith("exact")),
        ranks_by="worst",
        trusted={"worst": "chance"},
        captions=LADDER_CAPTIONS,
        on_request=True,
        controls=("energy-onsets-span", "mfcc-statistics", "level-statistics", "rms", "shuffled:"),
        is_level_matched=True,
        warning=(
            "Counting here may be the detection of onsets and no more: energy-onsets-span, which knows three numbers "
            "of a clip, is near 1. What a high score excludes is that energy, span, density or activity alone stands "
            "for the count: each tells nothing of it in a quarter of the ladders, and the worst quarter counts."
        ),
        citation=_METRIC.citation,
    )
)
