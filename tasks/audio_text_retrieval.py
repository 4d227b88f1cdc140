"""Retrieval: is the clip of a caption found among all clips, and a caption of a clip among all captions?"""

from __future__ import annotations

from .base import TaskInfo, printed_figures
from .metric_files import describe_metric
from .shapes.pairs import WHOLE_CLIPS, RetrievalTask

_METRIC = describe_metric("audio_text_retrieval")

TASK = RetrievalTask(
    TaskInfo(
        **WHOLE_CLIPS,
        name="audio_text_retrieval",
        version=_METRIC.version,
        title="Audio–text retrieval",
        question="Is the clip of a caption found among all clips, and a caption of a clip among all captions?",
        recipe="audio_text_retrieval",
        measures=_METRIC.measures,
        ranks_by="text_to_audio_r1",
        trusted={
            "text_to_audio_r1": "chance_text_to_audio_r1",
            "audio_to_text_r1": "chance_audio_to_text_r1",
        },
        captions={"audio": "the clip, and its captions"},
        warning=(
            "Retrieval does not test order or binding: the kinds of sound alone distinguish nearly all captions, as "
            "the control of sorted words shows. Scores depend on the number of clips: scores on other data are not "
            "comparable."
        ),
        heard_by="text_to_audio_map10",  # the rank of a caption's clip
        citation=_METRIC.citation,
        controls=("bag-of-words", "tiny-clap", "sorted-words:"),
        printed=printed_figures("audio_text_retrieval"),
    )
)
