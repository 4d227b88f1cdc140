"""Binding: does an embedding say which of two conditions goes with which of two labels?"""

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
        question="Which voice says which word, where voices and words are the same?",
        recipe="binding",
        samples="trials",
        measures=_METRIC.measures,
        ranks_by="binding",
        trusted={"binding": "binding_chance"},
        captions={
            "X1": "u with w, v with w′",
            "Y1": "u with w′, v with w",
            "X2": "X1 placed and filtered anew",
            "Y2": "Y1 placed and filtered anew",
            "X3": "X1 under other conditions",
            "Y3": "Y1 under other conditions",
        },
        warning=(
            "X2 and Y2 are the recordings of X1 and Y1 once more, so that a memory of mixtures suffices: log-mel "
            "statistics, which know no label, are high too. Across, the same under other conditions, is the number "
            "that asks for binding; sounds without related conditions have none."
        ),
        citation=_METRIC.citation,
    )
)
