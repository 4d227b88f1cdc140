"""Equivariance to transforms: can a strength be read from two embeddings, and the second predicted from it?"""

from __future__ import annotations

from .base import TaskInfo
from .metric_files import PartedMeasures, describe_metric
from .shapes.designs import OF_TRANSFORMS, TRANSFORM_WARNING, TRANSFORMS, TransformDesign
from .shapes.probes import EquivarianceTask

_METRIC = describe_metric("equivariance")

_LEFT_OUT = ("p_from_labels", "n")
"""Measures left out, since no parameter can be read from a single original clip."""

_MEASURES = PartedMeasures(
    _METRIC.measures,
    TRANSFORMS,
    "transforms",
    averaged=(
        *("r_equivariance", "r_explained", "r_translate", "r_level_top1", "r_level_chance"),
        *("r_cosine", "identity_cosine", "p", "p_start", "p_end", "p_difference", "p_gain", "shuffled_p"),
    ),
    of_parts=[measure.name for measure in _METRIC.measures if measure.name not in _LEFT_OUT],
    shown=("r_equivariance", "p", "p_end", "p_gain"),
)

TASK = EquivarianceTask(
    TaskInfo(
        **OF_TRANSFORMS,
        name="transform_equivariance",
        version=_METRIC.version,
        title="Equivariance to transforms",
        question="Can the strength of a transform be read from two embeddings, and the second be predicted from it?",
        measures=_MEASURES.described,
        ranks_by="r_equivariance",
        trusted={"r_equivariance": None, "p_gain": None},
        warning=TRANSFORM_WARNING,
        citation=_METRIC.citation,
    ),
    TransformDesign(),
    _MEASURES,
)
