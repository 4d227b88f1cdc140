"""The CORAL check: does a score change when synthetic embeddings get the mean and covariance of natural sound's?

The benchmark's scenes are synthetic, and an encoder may place them in a corner of its space. The paper's check (arXiv
2603.13685, section 5) adapts their embeddings to those of natural recordings by correlation alignment and scores them
again: a score that hardly changes speaks against an artefact of the synthetic clips' mean and covariance, and says
nothing of what else sets them apart from natural sound. Adaptation is an invertible affine map, and any invertible
linear map leaves perfect additivity at 1: that an A-COAT near 1 does not change is weak evidence.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from scipy import linalg

from audio_compositionality.dataset_builder.data import Configuration, Data
from audio_compositionality.dataset_builder.open_data import open_data
from audio_compositionality.dataset_builder.sounds.sound_files import SoundError
from audio_compositionality.encoders.base import ENCODER, Model, ModelCard
from audio_compositionality.encoders.inference import resolve_device
from audio_compositionality.evaluator.compare.statistics import mean_intervals
from audio_compositionality.evaluator.run.embeddings import embed_configuration, refuse_skipped
from audio_compositionality.evaluator.run.opened import OpenedTask, open_task
from audio_compositionality.evaluator.run.options import RunOptions
from audio_compositionality.evaluator.run.outputs import check_model_kind, embedded_rows
from audio_compositionality.evaluator.run.processes import join_processes
from audio_compositionality.support.errors import InputError
from audio_compositionality.tasks.base import Measure, Outputs, Scores, Task, TaskError, TaskInfo
from audio_compositionality.tasks.registry import default_tasks

from .recordings import MAX_CLIPS, MIN_CLIPS, Sounds

ROUNDING = 1e-9
"""Embeddings that lie no farther from their mean than this times their own length do not vary: less than a hundredth of
the resolution of float32."""

Floats = NDArray[np.floating]
Interval = tuple[float, float]


@dataclass(frozen=True)
class CoralTransform:
    """An affine map, x -> (x - source_mean) matrix + target_mean; see `coral_transform`.

    Attributes:
        matrix: [dim, dim].
        source_mean, target_mean: [dim].
    """

    matrix: NDArray[np.float64]
    source_mean: NDArray[np.float64]
    target_mean: NDArray[np.float64]

    def __call__(self, embeddings: Floats) -> NDArray[np.float64]:
        """Adapt embeddings [n, dim]."""
        return (embeddings - self.source_mean) @ self.matrix + self.target_mean


@dataclass(frozen=True)
class Change:
    """A number before and after adaptation.

    Attributes:
        before, after: the number; None where the metric gives none.
        interval: 95 % interval of the mean difference after - before over samples, paired, by `mean_intervals`:
            quadruples with the same added sources T are drawn together. The recordings are taken as given, and the
            spread of A-TRE's fits over the seeds is not in it. None where the number is no mean over samples, or they
            have fewer than 10 clusters.
    """

    before: float | None
    after: float | None
    interval: Interval | None = None

    @property
    def difference(self) -> float | None:
        """After - before."""
        return None if self.before is None or self.after is None else self.after - self.before


@dataclass(frozen=True)
class CoralTask:
    """What adaptation changes in a task.

    Attributes:
        info: of the task.
        n: number of samples that are scored.
        clips: number of synthetic clips that the adaptation was learnt from.
        changes: of each measure that a table shows, by its name.
        distance: `coral_distance` of those clips from the recordings.
    """

    info: TaskInfo
    n: int
    clips: int
    changes: Mapping[str, Change]
    distance: Change


@dataclass(frozen=True)
class CoralCheck:
    """The CORAL check of a model.

    Attributes:
        model: what was checked.
        dataset: where the synthetic data were opened from.
        recordings: folder of the natural recordings.
        files, clips: how many of them were used; a file may give several clips.
        skipped: ``id`` and ``reason`` of what was left out: files that cannot be read, clips that cannot be embedded.
        tasks: one entry a task.
    """

    model: ModelCard
    dataset: str
    recordings: str
    files: int
    clips: int
    skipped: Sequence[Mapping[str, str]]
    tasks: tuple[CoralTask, ...]


def coral_transform(source: Floats, target: Floats) -> CoralTransform:
    """The map that gives source embeddings the mean and covariance of target embeddings, in float64.

    Correlation alignment (Sun, Feng and Saenko 2016, "Return of frustratingly easy domain adaptation", algorithm 1):
    whitened with the source's covariance, coloured with the target's, A = (C_s + r_s I)^(-1/2) (C_t + r_t I)^(1/2).
    There, features are scaled to variance 1 and the identity is added to both covariances. Here r_s and r_t are the
    mean variances of the source and of the target, which is the same for such features, depends on no scale, and
    leaves the features as they are: cosines change when features are scaled one by one. So
    Aᵀ (C_s + r_s I) A = C_t + r_t I, and the covariances themselves agree as far as r allows; `coral_distance` tells.
    The mean is moved too, from the source's to the target's: A-COAT's steps do not depend on it, A-TRE does.

    Args:
        source: [n, dim].
        target: [m, dim].

    Raises:
        InputError: another shape, fewer than two rows, or rows that are all the same.
    """
    source_mean, source_covariance = _moments("source", source)
    target_mean, target_covariance = _moments("target", target)
    if len(source_mean) != len(target_mean):
        raise InputError(f"source embeddings have {len(source_mean)} dimensions, target embeddings {len(target_mean)}")
    whiten = _regularised_power(source_covariance, -0.5)
    return CoralTransform(whiten @ _regularised_power(target_covariance, 0.5), source_mean, target_mean)


def coral_distance(source: Floats, target: Floats) -> float:
    """How far two sets of embeddings are apart in their covariances, in 0…1.

    |C_s - C_t|² / (|C_s|² + |C_t|²), Frobenius norms: the loss of Deep CORAL (Sun and Saenko 2016, equation 1,
    |C_s - C_t|² / (4 dim²)), divided by what it would be for covariances of these norms that have no direction in
    common. So it depends neither on scale nor on the number of dimensions, and 0 means the same covariance, 1 no common
    direction.

    Args:
        source: [n, dim].
        target: [m, dim].

    Raises:
        InputError: as `coral_transform`.
    """
    (_, one), (_, other) = _moments("source", source), _moments("target", target)
    return float(((one - other) ** 2).sum() / ((one**2).sum() + (other**2).sum()))


def coral_check(
    model: Model,
    recordings: str | Path,
    data: Data | Path | str = "mini",
    *,
    tasks: Sequence[Task] | None = None,
    max_clips: int = MAX_CLIPS,
    options: RunOptions | None = None,
) -> CoralCheck:
    """Score a data set before and after its embeddings are adapted to natural recordings.

    The adaptation, `coral_transform`, is learnt from all recordings and, of a task's data, from all clips where nothing
    is trained, or from those of the rows in the split train: nothing of its test rows enters. It is then applied to all
    clips of the task. What a task fits is fitted anew to the adapted embeddings.

    Args:
        model: an audio encoder.
        recordings: folder of sound files; see `Sounds`.
        data: opened data, or anything that `open_data` takes.
        tasks: which; default, all that the data hold and that need nothing but embeddings of clips, less those on
            request.
        max_clips: most clips of the recordings.
        options: how the model is run, where embeddings are kept, settings of the tasks; no results are written.

    Raises:
        SoundError: recordings that cannot be used, or fewer than 10 clips of them.
        ClipError: a clip cannot be embedded.
        StoreError: stored embeddings are damaged.
        TaskError: a task that needs more than embeddings of clips.
        InputError: embeddings that do not vary; several processes.
    """
    options = options or RunOptions()
    processes = join_processes()
    if processes.count > 1:
        raise InputError(
            f"the CORAL check runs in one process, not in {processes.count}; `embed` fills the store of large data in "
            "several, and the check takes the embeddings from there"
        )
    resolve_device(options.device)
    if isinstance(data, (str, Path)):
        data = open_data(data)
    opened = [open_task(task, data, options.settings) for task in (_default_tasks(data) if tasks is None else tasks)]
    for task in opened:
        _check_task(task, model)
    natural = Sounds(recordings, max_clips=max_clips, skip_invalid=options.skip_invalid, progress=options.progress)
    natural_embeddings, not_embedded = _embed_recordings(natural, model, options)
    skipped = [*natural.skipped, *not_embedded]
    changes = []
    for task in opened:
        change, left_out = _change_of_task(task, model, natural_embeddings, options)
        changes.append(change)
        skipped += left_out
    _warn_of_few_clips(natural_embeddings, changes)
    return CoralCheck(
        model=model.card,
        dataset=data.source,
        recordings=natural.source,
        files=natural.files,
        clips=len(natural_embeddings),
        skipped=skipped,
        tasks=tuple(changes),
    )


def _default_tasks(data: Data) -> list[Task]:
    return [task for task in default_tasks(data.recipes) if task.info.needs == ENCODER]


def _check_task(opened: OpenedTask, model: Model) -> None:
    check_model_kind(opened.task, model)
    if opened.texts or opened.prompts:
        raise TaskError(
            f"{opened.task.info.name} scores more than embeddings of clips, which alone can be adapted to recordings"
        )


def _embed_recordings(recordings: Sounds, model: Model, options: RunOptions) -> tuple[Floats, list[dict[str, str]]]:
    """Embeddings [clips, dim] of those that can be embedded, and the others."""
    configuration: Configuration = recordings
    store = embed_configuration(model, configuration, options)
    content = store.load()
    if content.errors and not options.skip_invalid:
        refuse_skipped(store, content)
    kept = np.delete(content.embeddings, list(content.errors), axis=0)
    if len(kept) < MIN_CLIPS:
        raise SoundError(
            f"{recordings.source!r}: only {len(kept)} of {len(recordings.clip_ids)} clips can be embedded; a "
            f"covariance needs {MIN_CLIPS} or more"
        )
    return kept, [{"id": store.ids[clip], "reason": why} for clip, why in content.errors.items()]


def _change_of_task(
    opened: OpenedTask, model: Model, natural: Floats, options: RunOptions
) -> tuple[CoralTask, list[dict[str, str]]]:
    store = embed_configuration(model, opened.configuration, options.changed(out=None))
    opened, synthetic, skipped = embedded_rows(store, store.load(), opened, options.skip_invalid)
    adapted_from = synthetic[_learnt_from(opened)]
    transform = coral_transform(adapted_from, natural)
    device = str(resolve_device(options.device))
    before = opened.score(Outputs(clips=synthetic), device, options.progress)
    after = opened.score(Outputs(clips=transform(synthetic)), device, options.progress)
    clusters = opened.samples.clusters
    info = opened.task.info
    task = CoralTask(
        info=info,
        n=len(before.ids),
        clips=len(adapted_from),
        changes={measure.name: _change(measure, before, after, clusters) for measure in told_measures(info)},
        distance=Change(coral_distance(adapted_from, natural), coral_distance(transform(adapted_from), natural)),
    )
    return task, [{"id": id, "reason": why} for id, why in skipped.items()]


def _learnt_from(opened: OpenedTask) -> NDArray[np.bool_]:
    """Which clips the adaptation is learnt from, [clips]: those of training rows, or all where none are trained on."""
    trained = [row["split"] == "train" for row in opened.rows]
    counts = [len(inputs.clips) for inputs in opened.inputs]
    return np.repeat(trained if any(trained) else np.ones(len(trained), bool), counts)


def told_measures(info: TaskInfo) -> list[Measure]:
    """The measures whose change is told: those that tables show, without counts, and without nulls and spreads."""
    of_others = {name for measure in info.measures for name in (measure.null, measure.spread)}
    return [measure for measure in info.shown if measure.digits and measure.name not in of_others]


def _change(measure: Measure, before: Scores, after: Scores, clusters: NDArray[np.int64]) -> Change:
    values = [scores.measures.get(measure.name) for scores in (before, after)]
    first, second = (None if value is None else float(value) for value in values)
    column = measure.column
    if column is None or column not in before.columns or column not in after.columns:
        return Change(first, second)
    differences = after.columns[column] - before.columns[column]
    low, high = measure.range
    (interval,) = mean_intervals(differences[:, None], clusters, bounds=(low - high, high - low))
    return Change(first, second, interval)


def _moments(name: str, embeddings: Floats) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Mean [dim] and covariance [dim, dim], n - 1 in the denominator."""
    rows = np.asarray(embeddings, np.float64)
    if rows.ndim != 2 or len(rows) < 2 or rows.shape[1] == 0:
        raise InputError(f"{name} embeddings have shape {rows.shape}, but must be [n, dim] with n ≥ 2, dim ≥ 1")
    if not np.isfinite(rows).all():
        raise InputError(f"{name} embeddings must be finite")
    mean = rows.mean(axis=0)
    centred = rows - mean
    if np.linalg.norm(centred) <= ROUNDING * np.linalg.norm(rows):
        raise InputError(f"the {len(rows)} {name} embeddings are all the same: there is no covariance to align")
    return mean, centred.T @ centred / (len(rows) - 1)


def _regularised_power(covariance: NDArray[np.float64], exponent: float) -> NDArray[np.float64]:
    """(C + r I)^exponent with r the mean variance, for a symmetric C without negative eigenvalues."""
    values, vectors = linalg.eigh(covariance)
    regularised = np.maximum(values, 0) + np.trace(covariance) / len(covariance)
    power: NDArray[np.float64] = (vectors * regularised**exponent) @ vectors.T
    return power


def _warn_of_few_clips(natural: Floats, tasks: Sequence[CoralTask]) -> None:
    number, dim = natural.shape
    counts = [("the recordings", number), *((task.info.name, task.clips) for task in tasks)]
    few = [f"{count:,} of {name}" for name, count in counts if count <= dim]
    if few:
        warnings.warn(
            f"an embedding has {dim:,} dimensions, and clips are no more than that ({', '.join(few)}): their "
            "covariance is known in some directions only, in the others adaptation changes the scale alone; more "
            "recordings, or --preset full, tell more",
            stacklevel=3,
        )
