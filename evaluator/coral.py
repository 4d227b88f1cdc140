"""The CORAL check: does a score change once synthetic embeddings have the mean and covariance of natural sound?

The benchmark's scenes are synthetic, and an encoder may place them in a corner of its space. The paper's check (arXiv
2603.13685, section 5) adapts their embeddings to embeddings of natural recordings by correlation alignment and scores
them again: a score that hardly changes is no artifact of the synthetic clips' mean and covariance; other differences
from natural sound are not tested. Adaptation is an invertible affine map, and any invertible
linear map leaves perfect additivity at 1: an unchanged score near 1 is weak evidence.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import linalg
from tqdm.auto import tqdm

from audio_compositionality.dataset_builder.data import Clip, Configuration, Data, check_range
from audio_compositionality.dataset_builder.open_data import open_data
from audio_compositionality.dataset_builder.sounds.files import sound_files
from audio_compositionality.dataset_builder.sounds.recordings import (
    SoundError,
    printable,
    read_header,
    read_samples,
)
from audio_compositionality.encoders.base import ENCODER, Model, ModelCard
from audio_compositionality.encoders.inference import resolve_device
from audio_compositionality.evaluator.compare.statistics import mean_intervals
from audio_compositionality.evaluator.run.embeddings import embed_configuration, refuse_skipped
from audio_compositionality.evaluator.run.opened import OpenedTask, open_task
from audio_compositionality.evaluator.run.options import RunOptions
from audio_compositionality.evaluator.run.outputs import check_model_kind, embedded_rows
from audio_compositionality.evaluator.run.processes import join_processes
from audio_compositionality.support.errors import InputError
from audio_compositionality.support.files import sha256_of, sha256_of_file
from audio_compositionality.support.table import MISSING, Cell, Column, Row, Table
from audio_compositionality.support.text import shown
from audio_compositionality.tasks.base import Measure, Outputs, Task, TaskError, TaskInfo
from audio_compositionality.tasks.registry import default_tasks

from .compare.tables import interval_text

CLIP_SECONDS = 10
"""Length of a clip, the same as the benchmark's."""

SHORTEST_SECONDS = 1
"""A file shorter than a clip is one clip, unless it is shorter than this."""

MIN_CLIPS = 10
"""Fewest clips whose covariance is worth computing; far more are needed to know it well."""

MAX_CLIPS = 2_000
"""Most clips; more are sampled: more than most encoders have dimensions, and few enough that a collection of
recordings takes no longer to embed than the benchmark does at its full size."""

RECIPE = "recordings"
"""Stands for the recipe in the key of their embeddings."""


@dataclass(frozen=True)
class _Clip:
    """A part of a file: `frames` samples from `start` on, at `rate` Hz; `name` is the file's, printable."""

    path: Path
    name: str
    rate: int
    frames: int
    start: int

    @property
    def id(self) -> str:
        return f"{self.name}@{self.start / self.rate:g}s"


class RecordedClips:
    """Clips of the sound files in a folder and the folders below it; see `Configuration`.

    Files are cut into clips of 10 s from their beginning on, and the rest is dropped; a shorter file of at least 1 s is
    one clip. Channels are averaged; the rate stays as it is. Clips are ordered by rate and length, so that
    neighbours make batches, then by name. Symbolic links, hidden files and files without an audio extension are
    ignored.

    Attributes:
        recipe: `RECIPE`, which is no recipe of the data set.
        source: the folder, as given.
        clip_ids: ``<path below the folder>@<beginning>s`` of each clip.
        rows: one per clip, with its ``id`` and ``split``.
        files: number of files behind the clips.
        available: number of clips in the folder, from which `clip_ids` were drawn.
        too_short: number of files shorter than 1 s.
        skipped: ``id`` (path below the folder) and ``reason`` of each file that cannot be read.
        fingerprint: SHA-256 over the clips and the content of their files.
    """

    def __init__(
        self,
        folder: str | Path,
        *,
        max_clips: int = MAX_CLIPS,
        skip_invalid: bool = False,
        progress: bool = True,
    ) -> None:
        """Find the clips of a folder.

        Args:
            folder: with sound files, at any depth.
            max_clips: most clips; from more, as many are drawn, uniformly and reproducibly.
            skip_invalid: leave out files that cannot be read.
            progress: show progress bars.

        Raises:
            SoundError: the folder has no sound file or fewer than 10 clips, or a file cannot be read.
            InputError: `max_clips` is less than 10.
        """
        if max_clips < MIN_CLIPS:
            raise InputError(f"max_clips is {max_clips}; it must be {MIN_CLIPS} or more")
        self.recipe = RECIPE
        self.source = printable(str(folder))
        self.too_short = 0
        self.skipped: list[dict[str, str]] = []
        available: list[_Clip] = []
        for path in tqdm(sound_files(Path(folder)), desc="recordings", unit="file", disable=None if progress else True):
            name = printable(path.relative_to(folder).as_posix())
            try:
                clips = list(_clips_of_file(path, name))
            except SoundError as error:
                if not skip_invalid:
                    raise SoundError(f"{name!r} {error}; --skip-invalid leaves it out") from error
                self.skipped.append({"id": name, "reason": str(error)})
                continue
            self.too_short += not clips
            available += clips
        self.available = len(available)
        if self.available < MIN_CLIPS:
            raise SoundError(
                f"{self.source!r} holds {self.available} clips ({CLIP_SECONDS} s, or shorter files whole; files "
                f"shorter than {SHORTEST_SECONDS} s: {self.too_short}, damaged ones: {len(self.skipped)}); a "
                f"covariance needs {MIN_CLIPS} or more"
            )
        if self.available > max_clips:
            drawn = np.random.default_rng(0).choice(self.available, max_clips, replace=False)
            available = [available[number] for number in sorted(drawn.tolist())]
        self._clips = sorted(available, key=lambda clip: (clip.rate, clip.frames, clip.name, clip.start))
        self.clip_ids: Sequence[str] = tuple(clip.id for clip in self._clips)
        self.rows: Sequence[dict[str, Any]] = tuple({"id": id, "split": "test"} for id in self.clip_ids)
        paths = sorted({clip.path for clip in self._clips})
        self.files = len(paths)
        hashed = tqdm(paths, desc="hashing", unit="file", disable=None if progress else True)
        content = {path: sha256_of_file(path) for path in hashed}
        lines = (f"{clip.id} {clip.rate} {clip.start} {clip.frames} {content[clip.path]}\n" for clip in self._clips)
        self.fingerprint = self.rows_digest = sha256_of("".join(lines).encode())

    def clips(self, wanted: range | None = None, *, keep_invalid: bool = False) -> Iterator[Clip]:
        """Clips in the order of `clip_ids`; see `Configuration.clips`.

        Raises:
            SoundError: a clip cannot be decoded, and ``keep_invalid`` is not given.
        """
        for place in check_range(wanted, len(self._clips)):
            clip = self._clips[place]
            try:
                yield Clip(clip.id, read_samples(clip.path, clip.frames, clip.start), clip.rate)
            except SoundError as error:
                if not keep_invalid:
                    raise SoundError(f"{clip.id!r} {error}; --skip-invalid leaves it out") from error
                yield Clip(clip.id, np.full(clip.frames, np.nan, np.float32), clip.rate, str(error))


def _clips_of_file(path: Path, name: str) -> Iterator[_Clip]:
    header = read_header(path)
    rate, frames = header.rate, header.frames
    length = CLIP_SECONDS * rate
    if frames >= length:
        for start in range(0, frames - length + 1, length):
            yield _Clip(path, name, rate, length, start)
    elif frames >= SHORTEST_SECONDS * rate:
        yield _Clip(path, name, rate, frames, 0)


ROUNDING = 1e-9
"""Embeddings whose distance from their mean is at most this share of their own length do not vary: less than a
hundredth of the resolution of float32."""

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
            quadruples with the same added sources T are drawn together. The recordings count as fixed, and the spread
            of a task's fits over the seeds is not included. None where the number is not a mean over samples, or they
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
    """The changes that adaptation makes in a task.

    Attributes:
        info: of the task.
        n: number of scored samples.
        clips: number of synthetic clips behind the adaptation.
        changes: of each measure that a table shows, by its name.
        distance: `coral_distance` between those clips and the recordings.
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
        model: the card of the model.
        dataset: where the synthetic data were opened from.
        recordings: folder of the natural recordings.
        files, clips: how many of them were used; a file may give several clips.
        skipped: ``id`` and ``reason`` of everything left out: unreadable files, clips that cannot be embedded.
        tasks: one entry per task.
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
    mean variances of the source and of the target, which is equal for these features, depends on no scale, and
    leaves the features as they are: cosines change when features are scaled one by one. So
    Aᵀ (C_s + r_s I) A = C_t + r_t I, and the covariances themselves agree as far as r allows; `coral_distance` tells.
    The mean is moved too, from the source's to the target's: differences of embeddings do not depend on it,
    reconstructions of them do.

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
    is trained, or from the clips of the train split: nothing of its test rows enters. It is then applied to all
    clips of the task. The task's own fits are repeated on the adapted embeddings.

    Args:
        model: an audio encoder.
        recordings: folder of sound files; see `RecordedClips`.
        data: opened data, or anything that `open_data` takes.
        tasks: by default, all tasks that the data hold and that need only embeddings of clips, less those on
            request.
        max_clips: most clips of the recordings.
        options: run options: device, cache of embeddings, settings of the tasks; no results are written.

    Raises:
        SoundError: unusable recordings, or fewer than 10 clips of them.
        ClipError: a clip cannot be embedded.
        CacheError: stored embeddings are damaged.
        TaskError: a task that needs more than embeddings of clips.
        InputError: embeddings that do not vary; several processes.
    """
    options = options or RunOptions()
    processes = join_processes()
    if processes.count > 1:
        raise InputError(
            f"the CORAL check runs in one process, not in {processes.count}; for large data, "
            "`embed` fills the cache in several, and the check reads it"
        )
    resolve_device(options.device)
    if isinstance(data, (str, Path)):
        data = open_data(data)
    if tasks is None:
        tasks = [task for task in default_tasks(data.recipes) if task.info.needs == ENCODER]
    opened = [open_task(task, data, options.settings) for task in tasks]
    for task in opened:
        check_model_kind(task.task, model)
        if task.texts or task.prompts:
            raise TaskError(
                f"{task.task.info.name} scores texts or answers; only embeddings of clips can be adapted to recordings"
            )
    natural = RecordedClips(
        recordings, max_clips=max_clips, skip_invalid=options.skip_invalid, progress=options.progress
    )
    configuration: Configuration = natural
    cache = embed_configuration(model, configuration, options)
    content = cache.load()
    if content.errors and not options.skip_invalid:
        refuse_skipped(cache, content)
    embeddings = np.delete(content.embeddings, list(content.errors), axis=0)
    number, dim = embeddings.shape
    if number < MIN_CLIPS:
        raise SoundError(
            f"{natural.source!r}: only {number} of {len(natural.clip_ids)} clips can be embedded; a covariance needs "
            f"{MIN_CLIPS} or more"
        )
    skipped = [*natural.skipped, *({"id": cache.ids[clip], "reason": why} for clip, why in content.errors.items())]
    changes = []
    for task in opened:
        change, left_out = _change_of_task(task, model, embeddings, options)
        changes.append(change)
        skipped += left_out
    counts = [("the recordings", number), *((one.info.name, one.clips) for one in changes)]
    few = [f"{count:,} of {name}" for name, count in counts if count <= dim]
    if few:
        warnings.warn(
            f"an embedding has {dim:,} dimensions, and there are no more clips ({', '.join(few)}): their "
            "covariance is known in some directions only, and in the others adaptation changes only the scale; use "
            "more recordings or --preset full",
            stacklevel=2,
        )
    return CoralCheck(
        model=model.card,
        dataset=data.source,
        recordings=natural.source,
        files=natural.files,
        clips=number,
        skipped=skipped,
        tasks=tuple(changes),
    )


def _change_of_task(
    opened: OpenedTask, model: Model, natural: Floats, options: RunOptions
) -> tuple[CoralTask, list[dict[str, str]]]:
    cache = embed_configuration(model, opened.configuration, options.changed(out=None))
    opened, synthetic, skipped = embedded_rows(cache, cache.load(), opened, options.skip_invalid)
    # The adaptation is learnt from the train split, or from all clips where nothing is trained.
    trained = [row["split"] == "train" for row in opened.rows]
    counts = [len(inputs.clips) for inputs in opened.inputs]
    adapted_from = synthetic[np.repeat(trained if any(trained) else np.ones(len(trained), bool), counts)]
    transform = coral_transform(adapted_from, natural)
    device = str(resolve_device(options.device))
    before = opened.score(Outputs(clips=synthetic), device, options.progress)
    after = opened.score(Outputs(clips=transform(synthetic)), device, options.progress)
    info, changes = opened.task.info, {}
    for measure in told_measures(info):
        values = [scores.measures.get(measure.name) for scores in (before, after)]
        first, second = (None if value is None else float(value) for value in values)
        column = measure.column
        interval = None
        if column is not None and column in before.columns and column in after.columns:
            differences = after.columns[column] - before.columns[column]
            low, high = measure.range
            bounds = (low - high, high - low)
            (interval,) = mean_intervals(differences[:, None], opened.samples.clusters, bounds=bounds)
        changes[measure.name] = Change(first, second, interval)
    task = CoralTask(
        info=info,
        n=len(before.ids),
        clips=len(adapted_from),
        changes=changes,
        distance=Change(coral_distance(adapted_from, natural), coral_distance(transform(adapted_from), natural)),
    )
    return task, [{"id": id, "reason": why} for id, why in skipped.items()]


def told_measures(info: TaskInfo) -> list[Measure]:
    """The measures whose change is reported: the shown ones, without counts, nulls and spreads."""
    of_others = {name for measure in info.measures for name in (measure.null, measure.spread)}
    return [measure for measure in info.shown if measure.digits and measure.name not in of_others]


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


_COLUMNS = (
    Column("task", numeric=False),
    Column("measure", numeric=False),
    Column("before", "with the embeddings as they are"),
    Column("after", "with the embeddings adapted to the recordings"),
    Column("difference", "after - before", digits=4),
    Column("95 % interval", "of the mean difference, paired over samples, BCa bootstrap over clusters of samples"),
    Column("n", "samples", digits=None),
    Column("clips", "synthetic clips that the adaptation was fitted to", digits=None),
)

_LEGEND = (
    "before, after: adaptation of the synthetic embeddings to the mean and covariance of the recordings'. A difference "
    "near 0 speaks against an artifact of the synthetic clips' mean and covariance; it does not show that "
    "natural sound would score the same.",
    f"95 % interval: of the mean difference, paired over n samples, BCa bootstrap; {MISSING} of a measure that is no "
    "mean over samples, and below 10 samples that are independent. The recordings are taken as given. The models "
    "of a task are fitted anew after the adaptation, and the noise of the fits is not in the interval.",
    "distance: between the covariances of the recordings and of the clips that the adaptation was fitted to; 0 where "
    "they are equal, 1 where they have no direction in common.",
)


def coral_table(check: CoralCheck) -> Table:
    """The changes by adaptation to natural recordings, a row per measure, with a legend."""
    clips = f"{check.clips:,} clips of {check.files:,} recordings in {check.recordings}"
    legend, rows = list(_LEGEND), []
    for task in check.tasks:
        changes = {task.info.measure(name).heading: change for name, change in task.changes.items()}
        for heading, change in (*changes.items(), ("distance", task.distance)):
            numbers = (change.before, change.after, change.difference, interval_text(change.interval, 4) or None)
            rows.append(Row(tuple(map(Cell, (task.info.title, heading, *numbers, task.n, task.clips)))))
    if check.skipped:
        names = shown([item["id"] for item in check.skipped], 3)
        legend.append(f"Left out, since they cannot be read or embedded: {names}.")
    return Table(
        f"CORAL: {check.model.id} on {check.dataset}, adapted to {clips}",
        _COLUMNS,
        tuple(rows),
        tuple(legend),
    )
