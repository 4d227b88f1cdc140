"""CompA-order: which of two sounds came first, where captions have the same words?"""

from __future__ import annotations

from .base import printed_figures
from .metric_files import describe_metric
from .shapes.pairs import CaptionPairTask, PairInfo

_METRIC = describe_metric("comp_a")

TASK = CaptionPairTask(
    PairInfo(
        name="comp_a_order",
        version=_METRIC.version,
        title="CompA order",
        question="Which of two sounds came first, by captions of the same words?",
        recipe="comp_a_order",
        measures=_METRIC.measures,
        citation=_METRIC.citation,
        is_first_look=True,
        controls=("bag-of-words", "tiny-clap", "sorted-words:", "reversed-audio:"),
        printed=printed_figures("comp_a_order"),
    )
)
