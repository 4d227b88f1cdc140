"""CompA-attribute: which of two sounds is the slow, the high or the soft one, where captions have the same words?"""

from __future__ import annotations

from .base import printed_figures
from .metric_files import describe_metric
from .shapes.pairs import CaptionPairTask, PairInfo

_METRIC = describe_metric("comp_a")

TASK = CaptionPairTask(
    PairInfo(
        name="comp_a_attribute",
        version=_METRIC.version,
        title="CompA attribute",
        question="Which of two sounds is the slow, the high or the soft one, by captions of the same words?",
        recipe="comp_a_attribute",
        measures=_METRIC.measures,
        citation=_METRIC.citation,
        controls=("bag-of-words", "tiny-clap", "sorted-words:"),
        printed=printed_figures("comp_a_attribute"),
    )
)
