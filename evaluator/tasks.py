"""The tasks of a benchmark: their rows, found to be good for scoring, and the scores of embeddings of their clips."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from audio_compositionality.dataset_builder import AUDIO_COLUMNS, Benchmark, DatasetError, check_task
from audio_compositionality.encoders.store import EmbeddingStore

from .embedding import Rows, refuse_skipped
from .result import STEP_COLUMNS, mean_interval
from .step_plane import StepPlane, step_plane

FULL_STEPS, FEW_STEPS, FEW_SCENES = 2_500, 600, 2_000
"""Training steps of A-TRE: 2,500 (20 epochs of the paper's 8,000 scenes in batches of 64, section 4.4); 600 where there
are fewer than 2,000 training scenes, as in the preset mini, whose 512 it passes 75 times."""

Floats = NDArray[np.floating]


@dataclass(frozen=True)
class Task:
    """A task of a benchmark, its rows read once for all encoders.

    Attributes:
        name: of the task.
        rows: without their audio.
        gains: see `_source_gains`.
        settings: what the score depends on beside encoder and data.
    """

    name: str
    rows: Rows
    gains: Sequence[Sequence[float]] | None
    settings: Mapping[str, Any]

    def only(self, kept: Sequence[int]) -> Task:
        """The task with some of its rows."""
        gains = None if self.gains is None else [self.gains[index] for index in kept]
        return Task(self.name, [self.rows[index] for index in kept], gains, self.settings)

    @property
    def sample_ids(self) -> list[str]:
        """The rows that have a score: all quadruples, the scenes of the test split."""
        return [row["id"] for row in self.rows if self.name == "a_coat" or row["split"] == "test"]


def open_task(name: str, benchmark: Benchmark, seeds: int) -> Task:
    """A task whose rows were found to be good for scoring: embedding them may take hours.

    Args:
        name: of the task.
        benchmark: the data.
        seeds: number of fits of A-TRE.

    Raises:
        DatasetError: there are too few rows, or labels that nothing can be learnt of.
        ValueError: the benchmark has no such task, or `seeds` is less than 1.
    """
    if seeds < 1:
        raise ValueError(f"seeds is {seeds}; A-TRE has to be fitted once or more")
    rows = benchmark.rows(check_task(name, benchmark))
    settings: dict[str, Any] = {}
    if name == "a_tre":
        training = sum(row["split"] == "train" for row in rows)
        max_steps = FULL_STEPS if training >= FEW_SCENES else FEW_STEPS
        settings = {"seeds": list(range(seeds)), "max_steps": max_steps}
    task = Task(name, rows, _source_gains(name, rows, benchmark.amplitude_gains), settings)
    _check_rows(task)
    return task


def _check_rows(task: Task) -> None:
    """Refuse what the metrics would refuse after the embedding."""
    if task.name == "a_coat":
        if not task.rows:
            raise DatasetError("a_coat has no quadruple; it needs at least one")
        return
    for split, needed in (("train", 2), ("validation", 1), ("test", 1)):
        count = sum(row["split"] == split for row in task.rows)
        if count < needed:
            raise DatasetError(f"a_tre has {count} scenes in the split {split}; it needs at least {needed}")
    trained = {label for row in task.rows if row["split"] == "train" for label in _labels(row)}
    for row in task.rows:
        unseen = sorted(_labels(row) - trained)
        if unseen:
            attribute, label = unseen[0]
            raise DatasetError(
                f"row {row['id']} ({row['split']}) has {attribute} {label!r}, which no training scene has: nothing can "
                "be learnt of it"
            )


def _labels(row: Mapping[str, Any]) -> set[tuple[str, str]]:
    return {item for source in row["metadata"] for item in source.items()}


def valid_rows(store: EmbeddingStore, task: Task, skip_invalid: bool) -> tuple[Task, Floats, list[dict[str, str]]]:
    """A task without the rows of clips that could not be embedded, its embeddings [clips, dim], and those clips.

    Raises:
        ClipError: if there are such clips, and they are not to be left out.
        DatasetError: if too little is left.
    """
    content = store.load()
    if not content.errors:
        return task, content.embeddings, []
    if not skip_invalid:
        refuse_skipped(store, content)
    columns = len(AUDIO_COLUMNS[task.name])
    dropped = {clip // columns for clip in content.errors}
    kept = [row for row in range(len(task.rows)) if row not in dropped]
    left = task.only(kept)
    try:
        _check_rows(left)
    except DatasetError as error:
        raise DatasetError(f"without the {len(content.errors)} clips that could not be embedded, {error}") from error
    dim = store.key.output_dim
    embeddings = content.embeddings.reshape(-1, columns, dim)[kept].reshape(-1, dim)
    return left, embeddings, [{"id": store.ids[clip], "reason": why} for clip, why in content.errors.items()]


def _source_gains(task: str, rows: Rows, gains: Mapping[str, float] | None) -> list[list[float]] | None:
    """Linear gain of each source of T (a_coat) or of the scene (a_tre), where the labels' meaning is known."""
    if gains is None:
        return None
    labels = [
        [source["amplitude_label"] for source in (row["metadata"]["T"] if task == "a_coat" else row["metadata"])]
        for row in rows
    ]
    unknown = {label for row in labels for label in row} - set(gains)
    if unknown:
        raise DatasetError(f"amplitude label {min(unknown)!r} has no gain in the manifest; it has {', '.join(gains)}")
    return [[gains[label] for label in row] for row in labels]


def score_task(task: Task, embeddings: Floats, device: str, progress: bool) -> dict[str, Any]:
    """What the metric of a task returns, `scores` and `scores_centred` among it.

    Args:
        task: the task.
        embeddings: of its clips, [clips, dim].
        device: torch device of A-TRE's fits.
        progress: show bars of the fits.
    """
    if task.name == "a_coat":
        return _score_a_coat(embeddings, task.gains)
    from audio_compositionality.metrics.a_tre.a_tre import a_tre

    scenes, splits = [row["metadata"] for row in task.rows], [row["split"] for row in task.rows]
    fit = {**task.settings, "device": device, "progress": progress, "return_scores": True}
    return a_tre(embeddings, scenes, splits, gains=task.gains, **fit)


@dataclass(frozen=True)
class Scored:
    """What the embeddings of a task give for its result.

    Attributes:
        fields: `score`, `std`, `n`, `interval`, `controls` and `training` of a `Result`.
        columns: of its samples, see `sample_columns`, each [n].
    """

    fields: Mapping[str, Any]
    columns: Mapping[str, NDArray[np.float64]]


def score_result(task: Task, embeddings: Floats, device: str, progress: bool) -> Scored:
    """The scores of a task as a result states them; arguments as `score_task`."""
    found = score_task(task, embeddings, device, progress)
    columns = {"score": np.asarray(found.pop("scores"), np.float64)}
    centred = found.pop("scores_centred")
    if centred is not None:
        columns["score_centred"] = np.asarray(centred, np.float64)
    if task.name == "a_coat":
        plane = task_step_plane(embeddings)
        found |= {"step_variance_1": plane.variance[0], "step_variance_2": plane.variance[1]}
        columns |= dict(zip(STEP_COLUMNS, (*plane.ab.T, *plane.cd.T), strict=True))
    training = {name: found.pop(name) for name in ("steps", "steps_centred") if name in found}
    fields = {
        "score": found.pop(task.name),
        "std": found.pop("std"),
        "n": found.pop("n"),
        "interval": mean_interval(columns["score"]),
        "controls": found,
        "training": training,
    }
    return Scored(fields, columns)


def _score_a_coat(embeddings: Floats, gains: Sequence[Sequence[float]] | None) -> dict[str, Any]:
    # The metrics import `evaluate`, which takes seconds that only the process that scores has to spend.
    from audio_compositionality.metrics.a_coat.a_coat import a_coat

    matching: dict[str, Any] = {}
    if gains is not None:
        # Level of T: the sum of the powers of its sources, each the square of its gain.
        levels = [10 * math.log10(sum(gain**2 for gain in row)) for row in gains]
        matching = {"t_size": [len(row) for row in gains], "t_level": levels}
    return a_coat(*_quadruples(embeddings), **matching, return_scores=True)


def task_step_plane(embeddings: Floats) -> StepPlane:
    """`step_plane` of the quadruples of a_coat, from the embeddings of its clips, [4 n, dim]."""
    a, b, c, d = _quadruples(embeddings).astype(np.float64, copy=False)
    return step_plane(b - a, d - c)


def _quadruples(embeddings: Floats) -> Floats:
    """The embeddings of A, B, C and D, [4, n, dim], of the clips' [4 n, dim]."""
    return embeddings.reshape(len(embeddings) // 4, 4, -1).transpose(1, 0, 2)
