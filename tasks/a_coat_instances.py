"""A-COAT across instances: can another instance in another context show which of K classes was added?"""

from __future__ import annotations

from .base import TaskInfo
from .metric_files import describe_metric
from .shapes.instances import INSTANCES, BlockTask

_METRIC = describe_metric("a_coat_instances")

TASK = BlockTask(
    TaskInfo(
        **INSTANCES,
        name="a_coat_instances",
        version=_METRIC.version,
        title="A-COAT instances",
        question="Is the class added to a scene recognised in another instance and another context?",
        recipe="a_coat_instances",
        samples="blocks",
        measures=_METRIC.measures,
        ranks_by="top1",
        trusted={"top1": "top1_chance", "part_top1": "top1_chance", "pairwise": "pairwise_chance"},
        captions={
            "A": "one context",
            "B": "A and an instance of one class (their number after the slash)",
            "C": "another context",
            "D": "C and another instance of the class of that number",
            "alone_b": "the instances of B alone",
            "alone_d": "the instances of D alone",
        },
        warning=(
            "Recognition alone may explain a high score: an encoder that recognises a class alone (alone top-1) "
            "recognises it in part of the scenes too (kept is that part), and no number here separates composition "
            "from recognition. An encoder trained for other ends may be at chance or below its untrained twin; this "
            "is no evidence against it."
        ),
        # The contexts, and two classes in both.
        heard=("A", "C", "B/0", "D/0", "B/1", "D/1"),
        # Across instances, neither level nor number of sources nor a memorised mixture reveals a class.
        is_headline=True,
        citation=_METRIC.citation,
    )
)
