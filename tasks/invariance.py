"""Invariance: does a transform that keeps a clip's content move its embedding less than a change of the content?

The axis of arXiv 2505.06224. The task ranks by invariance *and* selectivity together: for each transform, how often a
copy is nearer to another clip with its content than to one with other content, at one level. See the metric
`invariance` (`abx`), and `dataset_builder/scenes/bases.py` for the two clips.
"""

from __future__ import annotations

from .base import TaskInfo
from .metric_files import PartedMeasures, describe_metric
from .shapes.designs import OF_TRANSFORMS, TRANSFORM_WARNING, TRANSFORMS, ComparedTransformDesign
from .shapes.probes import InvarianceTask

_METRIC = describe_metric("invariance")

_NAMES = ("abx", *(measure.name for measure in _METRIC.measures if measure.name not in ("abx", "n")))

_MEASURES = PartedMeasures(
    _METRIC.measures,
    TRANSFORMS,
    "transforms",
    averaged=_NAMES,
    of_parts=_NAMES,
    shown=("abx", "selectivity", "invariance", "cosine", "cosine_null", "top1"),
)

TASK = InvarianceTask(
    TaskInfo(
        **OF_TRANSFORMS | {"protocols": {"paper": {}}},
        name="invariance",
        version=_METRIC.version,
        title="Invariance",
        question="Does gain, noise, a filter or reverberation move an embedding less than other content does?",
        measures=_MEASURES.described,
        ranks_by="abx",
        trusted={"abx": 0.0},
        warning=(
            f"{TRANSFORM_WARNING} "
            "Do not rank by the invariance alone: an encoder of the level alone is invariant to every "
            "change that keeps the level. The plain cosine misleads: different clips of an untrained network can also "
            "have a cosine of .99."
        ),
        citation=_METRIC.citation,
    ),
    ComparedTransformDesign(),
    _MEASURES,
)
