"""Audio questions: any multiple-choice questions about sounds, compared with baselines without listening."""

from __future__ import annotations

from .base import TaskInfo
from .shapes.questions import (
    ACCURACY_DRAWING,
    CLIP_QUESTIONS,
    MEASURES,
    METRIC,
    QuestionTask,
    profiled_by_kinds,
)

TASK = QuestionTask(
    TaskInfo(
        **CLIP_QUESTIONS,
        name="audio_questions",
        version=METRIC.version,
        title="Audio questions",
        question="Does an audio language model answer these questions by listening?",
        benchmark="questions",
        recipe="audio_questions",
        measures=MEASURES,
        ranks_by="accuracy",
        trusted={"accuracy": "without_listening"},
        warning=(
            "An accuracy alone is hard to interpret, since many questions can be answered from their words: compare it "
            "with the baseline blind, which learns from the texts of other questions, and with the same model without "
            "sound, on noise and on another clip. The best of these scores needs no listening. An answer that names "
            "no option is wrong; if there are many of these (unparsed), look at what the model writes."
        ),
        citation=METRIC.citation,
        **profiled_by_kinds(),
    ),
    ACCURACY_DRAWING,
)
