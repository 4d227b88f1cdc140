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
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import linalg

from audio_compositionality.dataset_builder import Benchmark, BenchmarkConfig, open_benchmark
from audio_compositionality.encoders import Encoder, load_encoder
from audio_compositionality.encoders.inference import resolve_device
from audio_compositionality.evaluator.compare.statistics import mean_intervals
from audio_compositionality.evaluator.run.embedding import ClipSource, fill_store, open_store, refuse_skipped
from audio_compositionality.evaluator.run.processes import Processes, join_processes
from audio_compositionality.evaluator.run.store import EmbeddingKey, EmbeddingStore
from audio_compositionality.tasks.samples import describe_samples
from audio_compositionality.tasks.scoring import Task, open_task, score_task, valid_rows

from .recordings import MAX_CLIPS, MIN_CLIPS, TASK, RecordingError, Recordings

ROUNDING = 1e-9
"""Embeddings that lie no farther from their mean than this times their own length do not vary: less than a hundredth of
the resolution of float32."""

CENTRED = {"a_coat": "centred", "a_tre": "a_tre_centred"}
"""The centred score of each task, by the metric's name."""

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
        task: ``a_coat`` or ``a_tre``.
        n: number of samples that are scored.
        clips: number of synthetic clips that the adaptation was learnt from.
        score, centred, top1: as the task's metric returns them.
        distance: `coral_distance` of those clips from the recordings.
    """

    task: str
    n: int
    clips: int
    score: Change
    centred: Change
    top1: Change
    distance: Change


@dataclass(frozen=True)
class CoralCheck:
    """The CORAL check of an encoder.

    Attributes:
        encoder_id, encoder_revision, output_dim: what was checked.
        dataset, fingerprint: the synthetic data.
        recordings: folder of the natural recordings.
        files, clips: how many of them were used; a file may give several clips.
        skipped: ``id`` and ``reason`` of what was left out: files that cannot be read, clips that cannot be embedded.
        tasks: one entry a task.
    """

    encoder_id: str
    encoder_revision: str
    output_dim: int
    dataset: str
    fingerprint: str
    recordings: str
    files: int
    clips: int
    skipped: Sequence[Mapping[str, str]]
    tasks: tuple[CoralTask, ...]


@dataclass(frozen=True)
class _Run:
    """What everything is embedded and scored with; see `coral_check`."""

    encoder: Encoder
    embeddings: str | Path | None
    batch_size: int | None
    fit_device: str
    skip_invalid: bool
    force: bool
    progress: bool
    processes: Processes

    def embed(self, source: ClipSource, store: EmbeddingStore) -> None:
        fill_store(
            store,
            self.encoder,
            source,
            batch_size=self.batch_size,
            skip_invalid=self.skip_invalid,
            force=self.force,
            progress=self.progress,
            processes=self.processes,
        )


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
        ValueError: another shape, fewer than two rows, or rows that are all the same.
    """
    source_mean, source_covariance = _moments("source", source)
    target_mean, target_covariance = _moments("target", target)
    if len(source_mean) != len(target_mean):
        raise ValueError(f"source embeddings have {len(source_mean)} dimensions, target embeddings {len(target_mean)}")
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
        ValueError: as `coral_transform`.
    """
    (_, one), (_, other) = _moments("source", source), _moments("target", target)
    return float(((one - other) ** 2).sum() / ((one**2).sum() + (other**2).sum()))


def coral_check(
    encoder: Encoder | str,
    recordings: str | Path,
    benchmark: Benchmark | BenchmarkConfig | Path | str = "mini",
    *,
    tasks: Sequence[str] | None = None,
    seeds: int = 3,
    max_clips: int = MAX_CLIPS,
    batch_size: int | None = None,
    device: str | None = None,
    embeddings: str | Path | None = None,
    skip_invalid: bool = False,
    force: bool = False,
    progress: bool = True,
) -> CoralCheck:
    """Score a benchmark before and after its embeddings are adapted to natural recordings.

    The adaptation, `coral_transform`, is learnt from all recordings and, of the benchmark, from all clips of A-COAT,
    which is not trained, or from the training scenes of A-TRE: nothing of its test scenes enters. It is then applied to
    all clips of the task. A-TRE is fitted anew to the adapted embeddings.

    Args:
        encoder: an encoder, or anything that `load_encoder` takes.
        recordings: folder of sound files; see `Recordings`.
        benchmark: a benchmark, or anything that `open_benchmark` takes.
        tasks: which of ``a_coat`` and ``a_tre``; default, all that the benchmark holds.
        seeds: how many times A-TRE is fitted, before and after.
        max_clips: most clips of the recordings.
        batch_size: see `evaluate_encoder`.
        device: see `evaluate_encoder`.
        embeddings: folder for embeddings, of the benchmark and of the recordings; see `EmbeddingStore`. By default they
            are kept in memory only.
        skip_invalid: leave out files that cannot be read and clips that cannot be embedded.
        force: compute stored embeddings anew.
        progress: show progress bars.

    Raises:
        RecordingError: recordings that cannot be used, or fewer than 10 clips of them.
        ClipError: a clip cannot be embedded.
        StoreError: stored embeddings are damaged.
        ValueError: as `evaluate_encoder`; embeddings that do not vary; several processes.
    """
    processes = join_processes()
    if processes.count > 1:
        raise ValueError(
            f"the CORAL check runs in one process, not in {processes.count}; `embed` fills the store of a large "
            "benchmark in several, and the check takes the embeddings from there"
        )
    run_device = resolve_device(device)
    if isinstance(encoder, str):
        encoder = load_encoder(encoder, device=device)
    run = _Run(encoder, embeddings, batch_size, str(run_device), skip_invalid, force, progress, processes)
    opened = open_benchmark(benchmark) if isinstance(benchmark, (str, Path, BenchmarkConfig)) else benchmark
    chosen = [open_task(task, opened, seeds) for task in (opened.tasks if tasks is None else tasks)]
    found = Recordings(recordings, max_clips=max_clips, skip_invalid=skip_invalid, progress=progress)
    natural, not_embedded = _embed_recordings(found, run)
    skipped = [*found.skipped, *not_embedded]
    checked = []
    for task in chosen:
        result, left_out = _check_task(task, opened, natural, run)
        checked.append(result)
        skipped += left_out
    _warn_of_few_clips(len(natural), checked, encoder.output_dim)
    return CoralCheck(
        encoder_id=encoder.id,
        encoder_revision=encoder.revision,
        output_dim=encoder.output_dim,
        dataset=opened.source,
        fingerprint=opened.fingerprint,
        recordings=found.folder,
        files=found.files,
        clips=len(natural),
        skipped=skipped,
        tasks=tuple(checked),
    )


def _embed_recordings(recordings: Recordings, run: _Run) -> tuple[Floats, list[dict[str, str]]]:
    """Embeddings [clips, dim] of those that can be embedded, and the others."""
    key = EmbeddingKey.of(run.encoder, recordings.fingerprint, TASK)
    store = EmbeddingStore(run.embeddings, key, recordings.ids)
    run.embed(recordings, store)
    content = store.load()
    if content.errors and not run.skip_invalid:
        refuse_skipped(store, content)
    kept = np.delete(content.embeddings, list(content.errors), axis=0)
    if len(kept) < MIN_CLIPS:
        raise RecordingError(
            f"{recordings.folder!r}: only {len(kept)} of {len(recordings.ids)} clips can be embedded; a covariance "
            f"needs {MIN_CLIPS} or more"
        )
    return kept, [{"id": store.ids[clip], "reason": why} for clip, why in content.errors.items()]


def _check_task(task: Task, benchmark: Benchmark, natural: Floats, run: _Run) -> tuple[CoralTask, list[dict[str, str]]]:
    store = open_store(run.encoder, benchmark, task.name, task.rows, run.embeddings)
    run.embed(benchmark, store)
    task, synthetic, skipped = valid_rows(store, task, run.skip_invalid)
    fitted = synthetic
    if task.name == "a_tre":
        fitted = synthetic[[row["split"] == "train" for row in task.rows]]
    transform = coral_transform(fitted, natural)
    clusters = describe_samples(task.name, task.rows).clusters
    before = score_task(task, synthetic, run.fit_device, run.progress)
    after = score_task(task, transform(synthetic), run.fit_device, run.progress)
    checked = CoralTask(
        task=task.name,
        n=before["n"],
        clips=len(fitted),
        score=_change_of_mean(before, after, task.name, "scores", clusters),
        centred=_change_of_mean(before, after, CENTRED[task.name], "scores_centred", clusters),
        top1=Change(before["top1"], after["top1"]),
        distance=Change(coral_distance(fitted, natural), coral_distance(transform(fitted), natural)),
    )
    return checked, skipped


def _change_of_mean(
    before: Mapping[str, Any], after: Mapping[str, Any], name: str, samples: str, clusters: NDArray[np.int64]
) -> Change:
    if before[samples] is None:
        return Change(before[name], after[name])
    differences = np.subtract(after[samples], before[samples], dtype=np.float64)
    (interval,) = mean_intervals(differences[:, None], clusters)
    return Change(before[name], after[name], interval)


def _moments(name: str, embeddings: Floats) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Mean [dim] and covariance [dim, dim], n - 1 in the denominator."""
    rows = np.asarray(embeddings, np.float64)
    if rows.ndim != 2 or len(rows) < 2 or rows.shape[1] == 0:
        raise ValueError(f"{name} embeddings have shape {rows.shape}, but must be [n, dim] with n ≥ 2, dim ≥ 1")
    if not np.isfinite(rows).all():
        raise ValueError(f"{name} embeddings must be finite")
    mean = rows.mean(axis=0)
    centred = rows - mean
    if np.linalg.norm(centred) <= ROUNDING * np.linalg.norm(rows):
        raise ValueError(f"the {len(rows)} {name} embeddings are all the same: there is no covariance to align")
    return mean, centred.T @ centred / (len(rows) - 1)


def _regularised_power(covariance: NDArray[np.float64], exponent: float) -> NDArray[np.float64]:
    """(C + r I)^exponent with r the mean variance, for a symmetric C without negative eigenvalues."""
    values, vectors = linalg.eigh(covariance)
    regularised = np.maximum(values, 0) + np.trace(covariance) / len(covariance)
    power: NDArray[np.float64] = (vectors * regularised**exponent) @ vectors.T
    return power


def _warn_of_few_clips(natural: int, tasks: Sequence[CoralTask], dim: int) -> None:
    counts = [("the recordings", natural), *((task.task, task.clips) for task in tasks)]
    few = [f"{count:,} of {name}" for name, count in counts if count <= dim]
    if few:
        warnings.warn(
            f"an embedding has {dim:,} dimensions, and clips are no more than that ({', '.join(few)}): their "
            "covariance is known in some directions only, in the others adaptation changes the scale alone; more "
            "recordings, or --preset full, tell more",
            stacklevel=3,
        )
