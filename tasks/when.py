"""When: does a language model state the onset and offset of one sound among several?"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from audio_compositionality.dataset_builder.data import Row
from audio_compositionality.encoders.base import LANGUAGE_MODEL

from .base import BEST_CONSTANT, Inputs, Profile, TaskInfo
from .metric_files import describe_metric
from .shapes.asking import FreeAnswerTask
from .shapes.moments import MomentTask

METRIC = describe_metric("when")

NEW_TOKENS = 64
"""Tokens for two times and a sentence around them."""


class _WhenTask(FreeAnswerTask, MomentTask):
    """The task; see `Task`."""

    def inputs(self, row: Row, settings: Mapping[str, Any]) -> Inputs:
        """Return the clip and the question."""
        return Inputs(clips=("audio",), prompts=(row["question"],), new_tokens=NEW_TOKENS)

    def answer_of(self, row: Row) -> str:
        """See `FreeAnswerTask.answer_of`."""
        return f"{row['onset']:.2f} to {row['offset']:.2f} s"

    def score_of(self, row: Row, answer: str) -> float:
        """Return the overlap; see `FreeAnswerTask.score_of`."""
        # Imported here, so that a task loads its metric only in the process that scores.
        from audio_compositionality.metrics.when import interval_overlaps, stated_intervals

        said = stated_intervals([answer], np.array([row["duration"]]))
        return float(interval_overlaps(said, np.array([[row["onset"], row["offset"]]]))[0])


TASK = _WhenTask(
    TaskInfo(
        name="when",
        version=METRIC.version,
        title="When",
        question="Does an audio language model state when one sound among several occurs?",
        benchmark="extended",
        recipe="when",
        needs=LANGUAGE_MODEL,
        samples="questions",
        measures=METRIC.measures,
        ranks_by="iou",
        trusted={"iou": "iou_prior"},
        warning=(
            "An overlap must exceed the label-blind score, the highest of an answer that knows when sounds occur but "
            "not which is which; it is above any constant. An answer that states no two times scores 0; if there are "
            "many (unparsed), look at what the model writes."
        ),
        citation=METRIC.citation,
        captions={"audio": "the clip that is asked about"},
        on_request=True,
        controls=("usual-times", "without-audio:", "other-audio:", "shuffled-audio:", "events-as-text:"),
        is_level_matched=True,
        # No answer without the clip exceeds it; the measure has a higher trivial baseline of its own.
        trivial=BEST_CONSTANT,
        described_by=("usual-times",),  # the constant answer, learned from other groups
        twin=("without-audio:", "the same model without sound"),  # an untrained model cannot answer
        optional_baselines={
            "other-audio:": "itself on another clip",
            "shuffled-audio:": "itself on shuffled stretches of sound",
        },
        profile=Profile("iou", groupings=("label", "template"), shares=(("unparsed", "n"),)),
    )
)
