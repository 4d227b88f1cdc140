"""Rate binding: which of two sources is the faster, at equal levels?"""

from __future__ import annotations

from .base import TaskInfo
from .metric_files import PartedMeasures, describe_metric
from .shapes.designs import FACTOR_WARNING, OF_FACTORS, SEEN, UNSEEN, TwoSourceDesign
from .shapes.probes import PROBES, InformativenessTask

_METRIC = describe_metric("informativeness")

_MEASURES = PartedMeasures(
    [measure for measure in _METRIC.measures if measure.name != "rmse"],
    (UNSEEN, SEEN),
    "unseen timbres, and timbres seen with other notes",
    averaged=("informativeness",),
    of_parts=("informativeness", *PROBES, "shuffled", "accuracy", "chance", "n", "blocks"),
    shown=("informativeness",),
)

_MEAN = "informativeness"
"""The mean over unseen and seen timbres, which is not meaningful."""

TASK = InformativenessTask(
    TaskInfo(
        **OF_FACTORS | {"recipe": "rate_binding", "captions": {"audio": "a low source and a high one"}},
        name="rate_binding",
        version=_METRIC.version,
        title="Rate binding",
        question="Which of two sources is faster, if both clips have the same rates and the same loudness?",
        measures=tuple(measure for measure in _MEASURES.described if measure.name != _MEAN),
        ranks_by=f"{UNSEEN}_informativeness",
        trusted={f"{UNSEEN}_informativeness": 0.0},
        warning=(
            f"{FACTOR_WARNING} "
            "The register alone identifies the sources: the question is which source has which rate, "
            "not whether a rate can be read."
        ),
        citation=_METRIC.citation,
        is_level_matched=True,
    ),
    TwoSourceDesign(),
    _MEASURES,
)
