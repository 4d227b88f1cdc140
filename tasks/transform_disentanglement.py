"""Labels under transforms: can labels of a clip still be read after a transform (arXiv 2505.06224)?"""

from __future__ import annotations

from .base import TaskInfo
from .metric_files import PartedMeasures, describe_metric
from .shapes.designs import FACTORS, OF_TRANSFORMS, TRANSFORM_WARNING, TRANSFORMS, LabelledTransformDesign
from .shapes.probes import LABEL, LabelTask

_METRIC = describe_metric("disentanglement")

_SHIFTS = tuple(measure.name for measure in _METRIC.measures if measure.name.startswith("shift"))

_MEASURES = PartedMeasures(
    _METRIC.measures,
    TRANSFORMS,
    "transforms",
    averaged=("shift_after", *(name for name in _SHIFTS if name != "shift_after")),
    of_parts=_SHIFTS,
    shown=("shift_after", "shift_before", "shift"),
)

_FACTORS = PartedMeasures(
    _METRIC.measures,
    tuple(f"{factor}_under_{transform}" for transform in TRANSFORMS for factor in (*FACTORS, LABEL)),
    "labels and transforms",
    averaged=(),
    of_parts=("shift_before", "shift_after"),
)

TASK = LabelTask(
    TaskInfo(
        **OF_TRANSFORMS,
        name="transform_disentanglement",
        version=_METRIC.version,
        title="Labels under transforms",
        question="Can a label be read from a clip after a transform that the probe was not trained on?",
        measures=(*_MEASURES.described, *_FACTORS.described),
        ranks_by="shift_after",
        trusted={"shift_after": None},
        warning=(
            f"{TRANSFORM_WARNING} R² after a transform has no lower bound: a disturbed probe can be worse than a guess."
        ),
        citation=_METRIC.citation,
    ),
    LabelledTransformDesign(),
    _MEASURES,
    _FACTORS,
)
