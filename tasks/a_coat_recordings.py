"""A-COAT on recordings: is adding the same recordings to two scenes the same step (after arXiv 2603.13685)?"""

from __future__ import annotations

from dataclasses import replace

from .base import TaskInfo
from .metric_files import describe_metric
from .shapes.steps import QUADRUPLES, STEP_VARIANCES, QuadrupleTask

_METRIC = describe_metric("a_coat")

_SCORE = replace(_METRIC.measures[0], heading="A-COAT recordings")

TASK = QuadrupleTask(
    TaskInfo(
        **QUADRUPLES,
        name="a_coat_recordings",
        version=_METRIC.version,
        title="A-COAT recordings",
        question="Is adding the same recordings to two different scenes the same step in the space of embeddings?",
        recipe="a_coat_recordings",
        measures=(_SCORE, *_METRIC.measures[1:], *STEP_VARIANCES),
        warning=(
            "A high score alone does not show learned composition: an encoder that moves by the same step towards "
            "more energy for every added source scores high. T is the same samples in B and in D: neither adjusted "
            "nor top-1 tests a class across instances. Compare it with an untrained network and log-mel and "
            "modulation statistics: what they score too does not need training."
        ),
        citation=_METRIC.citation,
        on_request=True,
    ),
    added="recordings",
    has_attributes=False,
)
