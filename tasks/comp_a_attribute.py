"""CompA-attribute: which of two sounds is the slow, the high or the soft one, if captions have the same words?"""

from __future__ import annotations

from .base import TaskInfo, printed_figures
from .metric_files import describe_metric
from .shapes.pairs import PAIR_WARNING, PAIRS, SHUFFLED, SORTED_WORDS, CaptionPairTask

_METRIC = describe_metric("comp_a")

TASK = CaptionPairTask(
    TaskInfo(
        **PAIRS,
        name="comp_a_attribute",
        version=_METRIC.version,
        title="CompA attribute",
        question="Which of two sounds is the slow, the high or the soft one, if captions have the same words?",
        recipe="comp_a_attribute",
        measures=_METRIC.measures,
        warning=PAIR_WARNING,
        citation=_METRIC.citation,
        controls=("bag-of-words", "tiny-clap", "sorted-words:"),
        optional_baselines=SHUFFLED | SORTED_WORDS,
        printed=printed_figures("comp_a_attribute"),
    )
)
