"""CompA-order: which of two sounds came first, if captions have the same words?"""

from __future__ import annotations

from .base import TaskInfo, printed_figures
from .metric_files import describe_metric
from .shapes.pairs import PAIR_WARNING, PAIRS, REVERSED_AUDIO, SHUFFLED, SORTED_WORDS, CaptionPairTask

_METRIC = describe_metric("comp_a")

TASK = CaptionPairTask(
    TaskInfo(
        **PAIRS,
        name="comp_a_order",
        version=_METRIC.version,
        title="CompA order",
        question="Which of two sounds came first, if captions have the same words?",
        recipe="comp_a_order",
        measures=_METRIC.measures,
        warning=PAIR_WARNING,
        citation=_METRIC.citation,
        is_first_look=True,
        controls=("bag-of-words", "tiny-clap", "sorted-words:", "reversed-audio:"),
        optional_baselines=SHUFFLED | SORTED_WORDS | REVERSED_AUDIO,
        printed=printed_figures("comp_a_order"),
    )
)
