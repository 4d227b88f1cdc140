"""Zero-shot classification: is the text of a clip's class nearer to it than the texts of all other classes?"""

from __future__ import annotations

from .base import TaskInfo, printed_figures
from .metric_files import describe_metric
from .shapes.pairs import WHOLE_CLIPS, ZeroShotTask

_METRIC = describe_metric("zero_shot_audio")

TASK = ZeroShotTask(
    TaskInfo(
        **WHOLE_CLIPS,
        name="zero_shot_audio",
        version=_METRIC.version,
        title="Zero-shot classification",
        question="Is the text of its class nearer to a clip than the texts of all other classes?",
        recipe="zero_shot_audio",
        measures=_METRIC.measures,
        ranks_by="top1",
        trusted={"top1": "chance_top1", "map": "chance_map"},
        captions={"audio": "the clip, and its classes"},
        warning=(
            "It is zero-shot only for models that were not trained on these clips, or on these labels: tables show the "
            "training data that each model's card names. Another wording of the prompts, or another set of classes, "
            "gives other scores."
        ),
        citation=_METRIC.citation,
        controls=("bag-of-words", "tiny-clap"),
        printed=printed_figures("zero_shot_audio"),
    )
)
