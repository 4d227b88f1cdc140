"""Zero-shot classification: is the text of what is heard nearer to a clip than those of all other classes?"""

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

_METRIC = describe_metric("zero_shot_audio")


class ZeroShotAudio:
    """The task; see `Task`."""

    info = TaskInfo(
        name="zero_shot_audio",
        version=_METRIC.version,
        title="Zero-shot classification",
        question="Is the text of what is heard nearer to a clip than those of all other classes?",
        benchmark="comp_a",
        recipe="zero_shot_audio",
        needs=TEXT_ENCODER,
        samples="clips",
        measures=_METRIC.measures,
        ranks_by="top1",
        trusted={"top1": "chance_top1", "map": "chance_map"},
        floor="chance",
        captions={"audio": "the clip, and its classes"},
        warning=(
            "It is zero-shot only for models that were not trained on these clips, or on these labels: beside each "
            "model stands what its card tells of its training. Another wording of the prompts gives other scores, and "
            "so does another set of classes."
        ),
        citation=_METRIC.citation,
        on_request=True,
        controls=("bag-of-words", "tiny-clap"),
        is_level_matched=True,
        shows_training=True,
        printed=printed_figures("zero_shot_audio"),
    )
    spec = Spec
    drawings: tuple[Drawing, ...] = ()

    def inputs(self, row: Row, settings: Mapping[str, Any]) -> Inputs:
        """The clip, and the prompts of its classes; those of all rows are those of all classes."""
        return Inputs(clips=("audio",), texts=tuple(prompt for prompts in row["prompts"] for prompt in prompts))

    def settings(self, rows: Sequence[Row], requested: Mapping[str, Any]) -> dict[str, Any]:
        """None: the score depends on the embeddings and the classes alone.

        Raises:
            TaskError: there are no two classes.
        """
        classes = {label for row in rows for label in row["labels"]}
        if len(classes) < 2:
            which = f" alone, {min(classes)!r}" if classes else ""
            raise TaskError(f"{self.info.name} has {len(classes)} class{which}; it needs at least 2")
        return {}

    def score(
        self, rows: Sequence[Row], outputs: Outputs, settings: Mapping[str, Any], device: str, progress: bool
    ) -> Scores:
        """Score the embeddings of n clips and of the prompts of all classes."""
        # Importing the metric imports `evaluate`, which takes seconds that only the process that scores has to spend.
        from audio_compositionality.metrics.zero_shot_audio import zero_shot_audio

        places: dict[tuple[str, str], int] = {}
        prompts = ((label, text) for row in rows for label, texts in _classes_of(row) for text in texts)
        for place, prompt in enumerate(prompts):
            places.setdefault(prompt, place)
        is_single = all(len(row["labels"]) == 1 for row in rows)
        values = zero_shot_audio(
            outputs.clips,
            outputs.texts[list(places.values())],
            [row["labels"][0] if is_single else list(row["labels"]) for row in rows],
            class_of_text=[label for label, _ in places],
            return_scores=True,
        )
        columns: dict[str, Floats] = {}
        for measure in self.info.sampled:
            scores = values[f"scores{str(measure.column).removeprefix('score')}"]
            if scores is not None:
                columns[str(measure.column)] = np.array(scores, np.float64)
        measures = {measure.name: values[measure.name] for measure in self.info.measures}
        return Scores(measures, tuple(row["id"] for row in rows), columns)

    def samples(self, rows: Sequence[Row]) -> Samples:
        """All clips; those of a group, such as cuts of one recording, belong together."""
        return whole_clip_samples(rows, [", ".join(row["labels"]) for row in rows])


def _classes_of(row: Row) -> list[tuple[str, Sequence[str]]]:
    """The classes of a clip with their prompts."""
    return list(zip(row["labels"], row["prompts"], strict=True))


TASK = ZeroShotAudio()
