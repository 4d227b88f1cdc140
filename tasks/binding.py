"""Binding: does an embedding show which of two conditions goes with which of two labels?"""

from __future__ import annotations

from .base import TaskInfo
from .metric_files import describe_metric
from .shapes.instances import INSTANCES, TrialTask

_METRIC = describe_metric("binding")

TASK = TrialTask(
    TaskInfo(
        **INSTANCES,
        name="binding",
        version=_METRIC.version,
        title="Binding",
        question="Which voice says which word, if voices and words are the same?",
        recipe="binding",
        samples="trials",
        measures=_METRIC.measures,
        ranks_by="binding",
        trusted={"binding": "binding_chance"},
        captions={
            "X1": "u with w, v with w′",
            "Y1": "u with w′, v with w",
            "X2": "X1 shifted and filtered differently",
            "Y2": "Y1 shifted and filtered differently",
            "X3": "X1 under other conditions",
            "Y3": "Y1 under other conditions",
        },
        warning=(
            "X2 and Y2 are the recordings of X1 and Y1 again, so that a memory of mixtures suffices: log-mel "
            "statistics, which represent no label, are high too. Across, binding under other conditions, is the number "
            "that tests binding; sounds without related conditions have none."
        ),
        citation=_METRIC.citation,
    )
)
