"""Invariance to onsets: do other onsets move an embedding less than other sources do?

For each scene of the recipe `transforms` there is a clip whose sources begin at other times, and another one at the
same level that differs in one factor of the first source. The scene itself is the copy that is compared with both: see
the metric `invariance` (`abx`).
"""

from __future__ import annotations

from dataclasses import replace

from audio_compositionality.dataset_builder.scenes.bases import DIFFERING

from .base import TaskInfo
from .metric_files import describe_metric
from .shapes.designs import OF_TRANSFORMS, TRANSFORM_WARNING, OnsetDesign
from .shapes.probes import OnsetTask

_METRIC = describe_metric("invariance")

_MEASURES = {measure.name: measure for measure in _METRIC.measures}

_NAMES = (
    *("abx", "selectivity", "invariance", "cosine", "cosine_null", "centred_cosine", "centred_cosine_null"),
    *("top1", "top1_chance", "n"),
)

_OF_FACTORS = tuple(
    replace(
        _MEASURES[name],
        name=f"{factor}_{name}",
        heading=f"{factor} {_MEASURES[name].heading}",
        meaning=f"{_MEASURES[name].meaning}; if the other clip differs in the {factor}",
        column=None,
        shown=name == "abx",
    )
    for name in ("abx", "selectivity")
    for factor in DIFFERING
)

TASK = OnsetTask(
    TaskInfo(
        **OF_TRANSFORMS | {"samples": "scenes", "captions": {"audio": "a scene"}, "protocols": {}},
        name="onset_invariance",
        version=_METRIC.version,
        title="Invariance to onsets",
        question="Do other onsets of the same sources move an embedding less than another source does?",
        measures=(*(_MEASURES[name] for name in _NAMES), *_OF_FACTORS),
        ranks_by="abx",
        trusted={"abx": 0.0},
        warning=(
            f"{TRANSFORM_WARNING} An encoder without information is invariant to everything: "
            "do not rank by the invariance alone."
        ),
        needs_scenes=True,  # the sounds of a recording cannot be moved in time
        citation=_METRIC.citation,
    ),
    OnsetDesign(),
)
