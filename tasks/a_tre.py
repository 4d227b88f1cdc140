"""A-TRE: can a small model rebuild a scene's embedding from its attributes (arXiv 2603.13685, sections 3.3 and 4.4)?"""

from __future__ import annotations

from .base import TaskInfo
from .metric_files import describe_metric
from .shapes.fits import FITS_OF_SCENES, POST_NORM, FitTask

_METRIC = describe_metric("a_tre")

TASK = FitTask(
    TaskInfo(
        **FITS_OF_SCENES,
        name="a_tre",
        version=_METRIC.version,
        title="A-TRE",
        question="Can a small model rebuild the embedding of a scene from the attributes of its sources?",
        samples="test scenes",
        is_first_look=True,
        measures=_METRIC.measures,
        ranks_by="a_tre_centred",
        trusted={"a_tre_centred": None, "top1": "top1_chance"},
        warning=(
            "Most of a raw score comes from what all embeddings share: adding a constant to all of them brings it as "
            "near to 1 as one likes. Compare each encoder with its constant, and rank by the centred score, which "
            "loudness alone raises too: top-1 shows this. Compare it with an untrained network and log-mel and "
            "modulation statistics: what they score too does not need training."
        ),
        citation=_METRIC.citation,
        protocols={"paper": {"block": POST_NORM}},
    )
)
