"""A-TRE with held-out combinations: how well is a scene rebuilt with two classes never combined in training?"""

from __future__ import annotations

from .base import TaskInfo
from .metric_files import PartedMeasures, describe_metric
from .shapes.fits import ATTRIBUTE_PAIRS, COUNTS, FITS_OF_SCENES, HeldOutTask

_METRIC = describe_metric("a_tre_held_out")

_BY_PAIR = PartedMeasures(
    _METRIC.measures,
    tuple(ATTRIBUTE_PAIRS),
    "pairs of attributes",
    averaged=tuple(measure.name for measure in _METRIC.measures if measure.name not in COUNTS),
    of_parts=("gap", "held_out", "kept", "gap_single", "interaction", "ridge_gap"),
    shown=("gap", "held_out", "random", "kept", "ridge_gap", "constant"),
)

TASK = HeldOutTask(
    TaskInfo(
        **FITS_OF_SCENES,
        name="a_tre_held_out",
        version=_METRIC.version,
        title="A-TRE, held-out combinations",
        question="Can a scene be rebuilt from its attributes if a combination of two of them is absent from training?",
        samples="scenes",
        measures=(*_BY_PAIR.described, *(measure for measure in _METRIC.measures if measure.name in COUNTS)),
        ranks_by="held_out",
        trusted={"held_out": None},
        warning=(
            "A small gap alone does not show composition: noise has none. Compare it with the score on held-out "
            "combinations, and both with log-mel and modulation statistics and an untrained network, which add up "
            "energy without training. Nearly all of the gap is between timbre and pitch, whose sounds do not add up."
        ),
        citation=_METRIC.citation,
        on_request=True,
    ),
    _BY_PAIR,
)
