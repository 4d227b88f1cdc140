"""Disentanglement: is each factor of a source read at levels of another factor unseen in training (arXiv
2505.06224)?"""

from __future__ import annotations

from dataclasses import replace
from itertools import permutations

from .base import TaskInfo
from .metric_files import PartedMeasures, describe_metric
from .shapes.designs import FACTOR_WARNING, FACTORS, OF_FACTORS, FactorDesign
from .shapes.probes import DisentanglementTask

_METRIC = describe_metric("disentanglement")

_MEASURES = PartedMeasures(
    _METRIC.measures,
    [f"{factor}_over_{other}" for factor, other in permutations(FACTORS, 2)],
    "pairs of factors",
    averaged=[measure.name for measure in _METRIC.measures if not measure.name.startswith("shift")],
    of_parts=("unseen", "seen", "unseen_r2", "seen_r2", "leak", "overlap"),
)

_SHOWN = ("unseen", "seen", "overlap", "overlap_chance", "leak", "rate_over_timbre_unseen")

TASK = DisentanglementTask(
    TaskInfo(
        **OF_FACTORS,
        name="disentanglement",
        version=_METRIC.version,
        title="Disentanglement",
        question="Can a factor be read at levels of another factor that the probe was not trained on?",
        measures=tuple(replace(measure, shown=measure.name in _SHOWN) for measure in _MEASURES.described),
        ranks_by="unseen",
        trusted={"unseen": None},
        warning=(
            f"{FACTOR_WARNING} "
            "Levels alone suffice to read the rate from unseen timbres. Published scores (DCI, MIG, SAP) change under "
            "a rotation, which preserves all that can be read: they are reported before and after one."
        ),
        citation=_METRIC.citation,
    ),
    FactorDesign(),
    _MEASURES,
)
