"""Equivariance: can the change that one factor makes in an embedding be read and predicted (arXiv 2505.06224)?"""

from __future__ import annotations

from .base import TaskInfo
from .metric_files import PartedMeasures, describe_metric
from .shapes.designs import FACTOR_WARNING, FACTORS, IN_SCENES, OF_FACTORS, SceneFactorDesign
from .shapes.probes import EquivarianceTask

_METRIC = describe_metric("equivariance")

_CROSSED = PartedMeasures(
    _METRIC.measures,
    FACTORS,
    "factors",
    averaged=(
        *("r_equivariance", "r_explained", "r_translate", "r_level_top1", "r_level_chance"),
        *("r_context_top1", "r_context_chance", "r_cosine", "identity_cosine"),
        *("p", "p_start", "p_end", "p_difference", "p_from_labels", "p_gain", "shuffled_p"),
    ),
    of_parts=[measure.name for measure in _METRIC.measures],
    shown=("r_equivariance", "p", "p_start", "p_gain"),
)

_STARS = PartedMeasures(
    _METRIC.measures,
    IN_SCENES,
    "factors",
    averaged=("r_equivariance", "p", "p_start", "p_gain"),
    of_parts=("r_equivariance", "r_explained", "p", "p_start", "p_gain", "pairs"),
    prefix="in_scene_",
)

TASK = EquivarianceTask(
    TaskInfo(
        **OF_FACTORS,
        name="equivariance",
        version=_METRIC.version,
        title="Equivariance",
        question="Can the change of one factor be read from two embeddings, and the second be predicted from it?",
        measures=(*_CROSSED.described, *_STARS.described),
        ranks_by="r_equivariance",
        trusted={"r_equivariance": None, "p_gain": None},
        warning=(
            f"{FACTOR_WARNING} "
            "An encoder that only maps energy smoothly is highly equivariant: untrained networks exceed "
            "trained ones here."
        ),
        citation=_METRIC.citation,
    ),
    SceneFactorDesign(),
    _CROSSED,
    _STARS,
)
