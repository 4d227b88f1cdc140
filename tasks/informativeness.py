"""Informativeness: can each factor of a source be read from its embedding (arXiv 2505.06224, section III)?"""

from __future__ import annotations

from .base import TaskInfo
from .metric_files import PartedMeasures, describe_metric
from .shapes.designs import FACTOR_WARNING, FACTORS, OF_FACTORS, FactorDesign
from .shapes.probes import PROBES, InformativenessTask

_METRIC = describe_metric("informativeness")

_MEASURES = PartedMeasures(
    _METRIC.measures,
    FACTORS,
    "factors",
    averaged=("informativeness", *PROBES, "shuffled"),
    of_parts=[measure.name for measure in _METRIC.measures],
    shown=("informativeness", "shuffled"),
)

TASK = InformativenessTask(
    TaskInfo(
        **OF_FACTORS,
        name="informativeness",
        version=_METRIC.version,
        title="Informativeness",
        question="Can timbre, pitch, rate and amplitude of a source be read from its embedding?",
        measures=_MEASURES.described,
        ranks_by="informativeness",
        trusted={"informativeness": None},
        warning=(
            f"{FACTOR_WARNING} "
            "Most encoders, trained or not, are near 1: this does not show how a factor is represented. Rate "
            "and amplitude are read from the level of a clip alone."
        ),
        citation=_METRIC.citation,
    ),
    FactorDesign(),
    _MEASURES,
)
