"""A-COAT: is adding the same sources to two scenes the same step (arXiv 2603.13685, section 3.2)?"""

from __future__ import annotations

from .base import TaskInfo
from .metric_files import describe_metric
from .shapes.steps import QUADRUPLES, STEP_VARIANCES, QuadrupleTask

_METRIC = describe_metric("a_coat")

TASK = QuadrupleTask(
    TaskInfo(
        **QUADRUPLES,
        name="a_coat",
        version=_METRIC.version,
        title="A-COAT",
        question="Is adding the same sources to two different scenes the same step in the space of embeddings?",
        recipe="a_coat",
        is_first_look=True,
        measures=(*_METRIC.measures, *STEP_VARIANCES),
        warning=(
            "A high score alone does not show learned composition: an encoder that moves by the same step towards more "
            "energy for every added source scores high. Adjusted and top-1 show this. Compare it with an untrained "
            "network and log-mel and modulation statistics: what they score too does not need training."
        ),
        citation=_METRIC.citation,
        protocols={"paper": {}},
    ),
    added="sources",
    has_attributes=True,
)
