"""A task with its data, read once for all models."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from audio_compositionality.dataset_builder.data import Configuration, Data, DatasetError, Row
from audio_compositionality.tasks.base import Inputs, Outputs, Samples, Scores, Task, TaskError


@dataclass(frozen=True)
class OpenedTask:
    """A task, the configuration that it scores, and its settings.

    Attributes:
        task: the task.
        configuration: of the data.
        rows: the rows for scoring and training.
        inputs: of each row.
        settings: see `Task.settings`.
    """

    task: Task
    configuration: Configuration
    rows: tuple[Row, ...]
    inputs: tuple[Inputs, ...]
    settings: Mapping[str, Any]

    @property
    def clip_ids(self) -> list[str]:
        """Return the ids of the clips for models, row by row."""
        return [f"{row['id']}/{name}" for row, one in zip(self.rows, self.inputs, strict=True) for name in one.clips]

    @property
    def asked_about(self) -> list[tuple[str, ...]]:
        """Return the ids of the clips that each of `prompts` is about."""
        about: list[tuple[str, ...]] = []
        for row, one in zip(self.rows, self.inputs, strict=True):
            size = len(one.clips) // max(len(one.prompts), 1)
            ids = [f"{row['id']}/{name}" for name in one.clips]
            about += (tuple(ids[size * place : size * (place + 1)]) for place in range(len(one.prompts)))
        return about

    @property
    def texts(self) -> list[str]:
        """Return the texts for models, row by row."""
        return [text for one in self.inputs for text in one.texts]

    @property
    def unique_texts(self) -> list[str]:
        """Return the different texts among `texts`, in the order of their first occurrence."""
        return list(dict.fromkeys(self.texts))

    @property
    def embedded_ids(self) -> list[str]:
        """Return names of all that a model embeds: ids of the clips, then digests of `unique_texts`."""
        return [*self.clip_ids, *(f"text {digest_of_texts([text])}" for text in self.unique_texts)]

    @property
    def prompts(self) -> list[str]:
        """Return the prompts for models, row by row."""
        return [prompt for one in self.inputs for prompt in one.prompts]

    @property
    def options(self) -> list[tuple[str, ...]]:
        """Return the texts of the options of each of `prompts`; empty for a prompt with a free answer."""
        return [options for one in self.inputs for options in one.options or ((),) * len(one.prompts)]

    @property
    def samples(self) -> Samples:
        """Return the facts about the scored samples."""
        return self.task.samples(self.rows)

    def clip_outputs(self, embeddings: NDArray[np.floating]) -> NDArray[np.floating]:
        """Return the embeddings of `clip_ids`, selected from all clips of the configuration, [clips, dim]."""
        wanted = self.clip_ids
        ids = self.configuration.clip_ids
        if wanted == list(ids):
            return embeddings
        places = {id: place for place, id in enumerate(ids)}
        return embeddings[[places[id] for id in wanted]]

    def text_outputs(self, embeddings: NDArray[np.floating]) -> NDArray[np.floating]:
        """Return the embeddings of `texts`, selected from the embeddings of `unique_texts`."""
        places = {text: place for place, text in enumerate(self.unique_texts)}
        return embeddings[[places[text] for text in self.texts]]

    def outputs(self, embeddings: NDArray[np.floating]) -> Outputs:
        """Return a model's outputs for all rows, from the embeddings of `embedded_ids` [n, dim]."""
        clips = len(self.clip_ids)
        return Outputs(clips=embeddings[:clips], texts=self.text_outputs(embeddings[clips:]))

    def without(self, clips: Sequence[str]) -> OpenedTask:
        """Return the task without the rows of some clips.

        Raises:
            TaskError: the remaining rows cannot be scored.
        """
        left_out = set(clips)
        kept = [
            place
            for place, (row, one) in enumerate(zip(self.rows, self.inputs, strict=True))
            if not any(f"{row['id']}/{name}" in left_out for name in one.clips)
        ]
        rows = tuple(self.rows[place] for place in kept)
        try:
            self.task.settings(rows, self.settings)
        except (TaskError, DatasetError) as error:
            raise TaskError(f"without the {len(left_out)} clips that could not be embedded, {error}") from error
        return replace(self, rows=rows, inputs=tuple(self.inputs[place] for place in kept))

    def score(self, outputs: Outputs, device: str = "cpu", progress: bool = False) -> Scores:
        """Score a model's outputs for all rows; see `Task.score`."""
        return self.task.score(self.rows, outputs, self.settings, device, progress)


def digest_of_texts(texts: Sequence[str]) -> str:
    """Return the SHA-256 of texts in their order."""
    return hashlib.sha256("\0".join(texts).encode()).hexdigest()


def open_task(task: Task, data: Data, requested: Mapping[str, Any] | None = None) -> OpenedTask:
    """Return a task with its data, after checking that they can be scored: embedding them may take hours.

    Args:
        task: the task.
        data: opened data, which must contain a configuration of the task's recipe.
        requested: settings in place of the defaults.

    Raises:
        DatasetError: the data have no such configuration, or are damaged.
        TaskError: the rows cannot be scored, or a requested setting is invalid.
    """
    configuration = data.configuration(task.info.recipe)
    rows = tuple(configuration.rows)
    settings = task.settings(rows, requested or {})
    return OpenedTask(task, configuration, rows, tuple(task.inputs(row, settings) for row in rows), settings)
