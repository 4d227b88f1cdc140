"""Retrieval: is the clip of a caption found among all clips, and a caption of a clip among all captions?"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from audio_compositionality.dataset_builder.data import Row
from audio_compositionality.encoders.base import TEXT_ENCODER
from audio_compositionality.support.spec import Spec

from .base import Drawing, Floats, Inputs, Outputs, Samples, Scores, TaskError, TaskInfo
from .metric_files import describe_metric
from .printed import printed_figures
from .whole_clips import whole_clip_samples

_METRIC = describe_metric("audio_text_retrieval")

FEWEST = 2
"""Clips: of one there is nothing to be found among."""


class AudioTextRetrieval:
    """The task; see `Task`."""

    info = TaskInfo(
        name="audio_text_retrieval",
        version=_METRIC.version,
        title="Audio–text retrieval",
        question="Is the clip of a caption found among all clips, and a caption of a clip among all captions?",
        benchmark="comp_a",
        recipe="audio_text_retrieval",
        needs=TEXT_ENCODER,
        samples="clips",
        measures=_METRIC.measures,
        ranks_by="text_to_audio_r1",
        trusted={
            "text_to_audio_r1": "chance_text_to_audio_r1",
            "audio_to_text_r1": "chance_audio_to_text_r1",
        },
        floor="chance",
        captions={"audio": "the clip, and its captions"},
        heard_by="text_to_audio_map10",
        warning=(
            "Retrieval is no test of order or binding: what sounds tells nearly all captions apart, as the control of "
            "sorted words shows. Its scores depend on how many clips there are, so that those of other data do not "
            "compare."
        ),
        citation=_METRIC.citation,
        on_request=True,
        controls=("bag-of-words", "tiny-clap", "sorted-words:"),
        is_level_matched=True,
        shows_training=True,
        printed=printed_figures("audio_text_retrieval"),
    )
    spec = Spec
    drawings: tuple[Drawing, ...] = ()

    def inputs(self, row: Row, settings: Mapping[str, Any]) -> Inputs:
        """The clip and its captions."""
        return Inputs(clips=("audio",), texts=tuple(row["captions"]))

    def settings(self, rows: Sequence[Row], requested: Mapping[str, Any]) -> dict[str, Any]:
        """None: the score depends on the embeddings alone.

        Raises:
            TaskError: there are too few clips, or one has no caption.
        """
        if len(rows) < FEWEST:
            raise TaskError(f"{self.info.name} has {len(rows)} clips; it needs at least {FEWEST}")
        empty = next((row for row in rows if not row["captions"]), None)
        if empty is not None:
            raise TaskError(f"{self.info.name}: the clip {empty['id']} has no caption")
        return {}

    def score(
        self, rows: Sequence[Row], outputs: Outputs, settings: Mapping[str, Any], device: str, progress: bool
    ) -> Scores:
        """Score the embeddings of n clips and their captions."""
        # Importing the metric imports `evaluate`, which takes seconds that only the process that scores has to spend.
        from audio_compositionality.metrics.audio_text_retrieval import audio_text_retrieval

        clip_of_text = np.repeat(np.arange(len(rows)), [len(row["captions"]) for row in rows])
        values = audio_text_retrieval(outputs.clips, outputs.texts, clip_of_text, return_scores=True)
        columns: dict[str, Floats] = {
            str(measure.column): np.array(values[f"scores{str(measure.column).removeprefix('score')}"], np.float64)
            for measure in self.info.sampled
        }
        measures = {measure.name: values[measure.name] for measure in self.info.measures}
        return Scores(measures, tuple(row["id"] for row in rows), columns)

    def samples(self, rows: Sequence[Row]) -> Samples:
        """All clips; those of a group, such as cuts of one recording, belong together."""
        return whole_clip_samples(rows, [" / ".join(row["captions"]) for row in rows])


TASK = AudioTextRetrieval()
