"""Write data as a data set: Parquet shards with embedded audio, a card, a manifest."""

from __future__ import annotations

import contextlib
import errno
import io
import os
import shutil
import time
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal, get_args

import pyarrow as pa
import pyarrow.parquet as pq
import soundfile
from datasets import Features

from audio_compositionality.support.checked_files import DamagedError, parsed_sealed_json, sealed_json
from audio_compositionality.support.errors import InputError
from audio_compositionality.support.files import (
    locked,
    open_file,
    partial_path,
    read_file,
    remove_partial_files,
    sha256_of_file,
    sha256_of_json,
    write_whole,
)
from audio_compositionality.support.progress import during
from audio_compositionality.support.text import nearest

from .data import DatasetError, Pcm16, Rendering, Row
from .manifest import (
    CARD_NAME,
    FINGERPRINT_KEY,
    MANIFEST_NAME,
    RECIPE_NAME,
    AudioColumn,
    BuiltRecipe,
    Manifest,
    Shard,
    audio_columns,
    dataset_card,
)
from .recipes import load_recipe
from .recipes.base import Recipe
from .rendered import RenderedData, rendered_preset

AudioFormat = Literal["flac", "wav"]

LOCK_NAME = ".build.lock"

BEGUN_NAME = ".begun.json"
"""In the folder of a recipe while it is built: the digests of the finished shards."""

CLIPS_PER_SHARD = 400
"""About 140 MB of FLAC or 256 MB of WAV (preset mini, clips of 10 s), well under the Hub's advised 500 MB; also the
most that a killed build can lose."""

ROWS_PER_GROUP = 16
"""Rows of a Parquet row group: a streaming reader fetches as many before its first row."""


@dataclass(frozen=True)
class _PlannedShard:
    split: str
    name: str
    rows: range


@dataclass(frozen=True)
class _Job:
    """A configuration that is built."""

    name: str
    recipe: Recipe[Any]
    rendering: Rendering
    rows: Sequence[Row]
    features: Features
    fingerprint: str
    audio_format: AudioFormat
    shards: tuple[_PlannedShard, ...]

    @property
    def columns(self) -> tuple[AudioColumn, ...]:
        return audio_columns(self.features)


def build_dataset(
    preset: str | RenderedData = "mini",
    out: str | Path = "audio-compositionality",
    *,
    recipes: Sequence[str] | None = None,
    changes: Mapping[str, Any] | None = None,
    audio_format: AudioFormat = "flac",
    workers: int | None = None,
    force: bool = False,
    progress: bool = True,
    on_sizes: Callable[[Sequence[BuiltSize]], object] | None = None,
) -> Path:
    """Write data to a folder that `datasets.load_dataset` reads, one configuration a recipe.

    The bytes of a shard depend on the recipe, its settings, the format and the versions of the encoding libraries
    alone, not on ``workers``. A shard appears under its name only when it is complete; an interrupted build is
    finished by another call, a finished configuration is left unchanged, and a further recipe is added to a folder
    without changes to the others.

    Args:
        preset: name of a preset, or rendered data.
        out: the folder; made if it does not exist.
        recipes: names of recipes; by default all that have the preset.
        changes: to settings of the preset; see `rendered_preset`.
        audio_format: ``flac`` or ``wav``, both 16-bit: the same samples, FLAC at 55 % of the size (preset mini).
        workers: threads that render and encode; default, the number of cores.
        force: replace existing files of ``out`` in the places of these recipes' files.
        progress: show a progress bar.
        on_sizes: called with the size of each recipe before anything is written; see `build_sizes`.

    Returns:
        the folder.

    Raises:
        DatasetError: ``out`` holds other files, or the disk is full.
        InputError: an unknown preset, setting or format, or workers below 1.
    """
    _check_format(audio_format)
    workers = (os.cpu_count() or 1) if workers is None else workers
    if workers < 1:
        raise InputError(f"workers is {workers}; it must be 1 or more")
    if isinstance(preset, str):
        data = rendered_preset(preset, recipes=recipes, **(changes or {}))
    elif changes:
        raise InputError("changes apply to a preset; rendered data have settings of their own")
    else:
        data = preset if recipes is None else preset.only(recipes)
    folder = Path(out)
    try:
        if folder.exists() and not folder.is_dir():
            raise DatasetError(f"{folder} is a file; give a folder")
        folder.mkdir(parents=True, exist_ok=True)
        with locked(folder / LOCK_NAME) as held:
            if not held:
                raise DatasetError(f"another build is running in {folder}; wait for it, or give another folder")
            try:
                _build(data, folder, audio_format, workers, force, progress, on_sizes)
            finally:
                # Removed before the lock ends, so that nobody uploads it with the rest; Windows keeps open files.
                with contextlib.suppress(OSError):
                    (folder / LOCK_NAME).unlink()
    except OSError as error:
        if error.errno not in (errno.ENOSPC, errno.EDQUOT):
            raise
        raise DatasetError(
            f"the disk of {folder} is full; finished shards are kept: make room and run the same build again"
        ) from error
    return folder


def _check_format(audio_format: str) -> None:
    if audio_format not in get_args(AudioFormat):
        raise InputError(f"unknown audio format {audio_format!r}; {nearest(audio_format, get_args(AudioFormat))}")


@dataclass(frozen=True)
class BuiltSize:
    """How much a recipe takes when it is built, estimated from a few of its rows.

    Attributes:
        recipe: its name.
        clips: number of clips; exact.
        seconds: of sound.
        megabytes: of audio, encoded.
        taken: seconds that a clip takes to be rendered and encoded, on one thread.
    """

    recipe: str
    clips: int
    seconds: float
    megabytes: float
    taken: float


def build_sizes(data: RenderedData, audio_format: AudioFormat = "flac") -> list[BuiltSize]:
    """The size of each recipe of some data, before it is built: rows are drawn, and a few of them rendered.

    Raises:
        DatasetError: a recipe cannot be built.
        InputError: an unknown format.
    """
    _check_format(audio_format)
    return [_size_of(_job(data, name, audio_format)) for name in data.recipes]


_RENDERED = 6
"""Rows of a recipe from which its size is estimated, evenly spaced."""


def _size_of(job: _Job) -> BuiltSize:
    every = len(job.rows)
    places = sorted({round(place * (every - 1) / max(_RENDERED - 1, 1)) for place in range(_RENDERED)}) if every else []
    clips = sum(len(job.recipe.clip_names(row)) for row in job.rows)
    count, seconds, size = 0, 0.0, 0
    started = time.perf_counter()
    for index in places:
        for samples, file in _encoded_clips(job, index):
            count += 1
            seconds += len(samples) / job.rendering.rate(index)
            size += len(file)
    taken = (time.perf_counter() - started) / max(count, 1)
    each = clips / max(count, 1)
    return BuiltSize(job.name, clips, seconds * each, size * each / 1e6, taken)


def _build(
    data: RenderedData,
    folder: Path,
    audio_format: AudioFormat,
    workers: int,
    force: bool,
    progress: bool,
    on_sizes: Callable[[Sequence[BuiltSize]], object] | None,
) -> None:
    before = _present(folder, data, audio_format, force)
    # All rows are drawn before anything is written: refused settings leave no files behind.
    jobs = [_job(data, name, audio_format) for name in data.recipes]
    if on_sizes is not None:
        on_sizes([_size_of(job) for job in jobs])
    manifest = _claim(data, folder, before, jobs, force)
    with ThreadPoolExecutor(workers) as pool:
        for job in jobs:
            begun = folder / job.name / BEGUN_NAME
            begun.parent.mkdir(exist_ok=True)
            remove_partial_files(begun.parent)
            digests = {name: shard.sha256 for name, shard in manifest.recipes[job.name].shards.items()}
            if not digests and begun.exists():
                try:
                    digests = parsed_sealed_json(read_file(begun), begun)
                except DamagedError as error:
                    warnings.warn(f"{error}; the shards beside it are written again", stacklevel=4)
            shards = {}
            missing = [index for shard in job.shards if not (folder / shard.name).exists() for index in shard.rows]
            clips = sum(len(job.recipe.clip_names(job.rows[index])) for index in missing)
            with during(job.name, "clip", clips, shown=progress) as advance:
                for planned in job.shards:
                    digest = digests.get(planned.name)
                    shard = shards[planned.name] = _write_shard(folder, job, planned, digest, pool, advance)
                    if digest != shard.sha256:
                        digests[planned.name] = shard.sha256
                        write_whole(begun, sealed_json(digests))
            built = replace(manifest.recipes[job.name], shards=shards)
            manifest = Manifest({**manifest.recipes, job.name: built})
            write_whole(folder / MANIFEST_NAME, manifest.dumps())
            begun.unlink(missing_ok=True)
    # Also of recipes that are unknown to this build.
    features = {
        name: Features.from_arrow_schema(pq.read_schema(folder / next(iter(built.shards))))
        for name, built in manifest.recipes.items()
        if built.shards
    }
    write_whole(folder / CARD_NAME, dataset_card(manifest, features))


def _present(folder: Path, data: RenderedData, audio_format: str, force: bool) -> dict[str, BuiltRecipe]:
    """The configurations of the folder, without those that are rebuilt. The folder has to be new, empty, or of this
    project; with ``force``, any."""
    before = None
    with contextlib.suppress(*[DatasetError] if force else []):
        before = Manifest.load(folder / MANIFEST_NAME)
    held = dict(before.recipes) if before else {}
    if force:
        return {name: built for name, built in held.items() if name not in data.recipes}
    if before is None and any(path.name != LOCK_NAME for path in folder.iterdir()):
        places = "".join(f"{name}/, " for name in data.recipes)
        raise DatasetError(
            f"{folder} is not empty and holds no data set of this project; give another folder, or --force to "
            f"write into it ({places}{CARD_NAME} and {MANIFEST_NAME} there are replaced)"
        )
    for name in held.keys() & set(data.recipes):
        present, fingerprint = held[name], data.configuration(name).fingerprint
        if (present.fingerprint, present.audio_format) != (fingerprint, audio_format):
            raise DatasetError(
                f"{folder} holds another data set as {name} (fingerprint {present.fingerprint[:12]}, "
                f"{present.audio_format}; this build is {fingerprint[:12]}, {audio_format}); give another "
                "folder, or --force to replace it"
            )
    return held


def _claim(
    data: RenderedData, folder: Path, before: Mapping[str, BuiltRecipe], jobs: Sequence[_Job], force: bool
) -> Manifest:
    """Make the folder this build's. Returns the manifest with the new entries; configurations built before have their
    shards."""
    kept = dict(before)
    for job in jobs:
        name, configuration = job.name, data.configuration(job.name)
        entry = BuiltRecipe(
            version=job.recipe.version,
            settings=configuration.values,
            fingerprint=configuration.fingerprint,
            rows_sha256=sha256_of_json([str(job.features), list(job.rows)]),
            rows_digest=configuration.rows_digest,
            audio_format=job.audio_format,
            description=configuration.description,
            shards={},
        )
        present = kept.get(name)
        if present is not None and (present.rows_sha256, present.rows_digest) != (entry.rows_sha256, entry.rows_digest):
            raise DatasetError(
                f"{folder} holds other rows or columns of {name} under the same settings and version {entry.version}: "
                "the recipe draws otherwise now, so raise its version, or --force to replace what was built"
            )
        kept[name] = entry if present is None else replace(entry, shards=present.shards)
        if force and (folder / name).exists():
            shutil.rmtree(folder / name)
    manifest = Manifest(kept)
    write_whole(folder / MANIFEST_NAME, manifest.dumps())
    return manifest


def _job(data: RenderedData, name: str, audio_format: AudioFormat) -> _Job:
    if not RECIPE_NAME.fullmatch(name):
        raise DatasetError(f"the recipe {name!r} cannot be built: a name has letters, digits and underscores")
    configuration, recipe = data.configuration(name), load_recipe(name)
    features = configuration.features
    rendering = configuration.rendering
    for column in audio_columns(features):
        if column.sample_rate not in (None, rendering.sample_rate):
            raise DatasetError(
                f"recipe {name!r} declares {column.name} at {column.sample_rate} Hz and renders {rendering.sample_rate}"
            )
    rows = configuration.rows
    shards = tuple(_plan(name, recipe, rows))
    return _Job(name, recipe, rendering, rows, features, configuration.fingerprint, audio_format, shards)


def _plan(name: str, recipe: Recipe[Any], rows: Sequence[Row]) -> Iterator[_PlannedShard]:
    """All shards in order, each of at most `CLIPS_PER_SHARD` clips, or of one row."""
    first = 0
    for split in recipe.splits:
        starts = [first]
        clips = 0
        stop = first
        while stop < len(rows) and rows[stop]["split"] == split:
            count = len(recipe.clip_names(rows[stop]))
            if clips + count > CLIPS_PER_SHARD and stop > starts[-1]:
                starts.append(stop)
                clips = 0
            clips += count
            stop += 1
        for number, (start, end) in enumerate(zip(starts, [*starts[1:], stop], strict=True)):
            if start < end:
                path = f"{name}/{split}-{number:05d}-of-{len(starts):05d}.parquet"
                yield _PlannedShard(split, path, range(start, end))
        first = stop
    if first < len(rows):
        raise DatasetError(
            f"row {rows[first]['id']} is of the split {rows[first]['split']!r}; the rows of {name} come split by "
            f"split, in the order {', '.join(recipe.splits)}"
        )


def _write_shard(
    folder: Path,
    job: _Job,
    shard: _PlannedShard,
    digest: str | None,
    pool: ThreadPoolExecutor,
    advance: Callable[[float], object],
) -> Shard:
    """Write one shard, unless it is there with the digest that an earlier build kept."""
    path = folder / shard.name
    present = sha256_of_file(path) if path.exists() else None
    if present is None or present != digest:
        if present is not None:
            reason = "its SHA-256 differs from the recorded one" if digest else "no SHA-256 of it is recorded"
            warnings.warn(f"{path} could not be verified ({reason}): it is written again", stacklevel=5)
        schema = job.features.arrow_schema
        schema = schema.with_metadata({**schema.metadata, FINGERPRINT_KEY: job.fingerprint.encode()})
        groups = [shard.rows[start : start + ROWS_PER_GROUP] for start in range(0, len(shard.rows), ROWS_PER_GROUP)]
        partial = partial_path(path)
        try:
            with pq.ParquetWriter(partial, schema, compression="zstd") as writer:
                ahead: list[Future[Row]] = []
                # A row group is written while the pool encodes the next one.
                for group in [*groups, range(0)]:
                    current, ahead = ahead, [pool.submit(_encoded_row, job, index) for index in group]
                    if current:
                        rows = [future.result() for future in current]
                        writer.write_table(pa.Table.from_pylist(rows, schema=schema))
                        advance(sum(len(job.recipe.clip_names(row)) for row in rows))
            # The file gets its name when its content is on the disk.
            with open_file(partial) as file:
                os.fsync(file.fileno())
            partial.replace(path)
        finally:
            partial.unlink(missing_ok=True)
        present = sha256_of_file(path)
    return Shard(shard.split, len(shard.rows), path.stat().st_size, present)


def _encoded_clips(job: _Job, index: int) -> Iterator[tuple[Pcm16, bytes]]:
    """The samples of each clip of a row, and its file."""
    rate = job.rendering.rate(index)
    for samples in job.rendering.clips(index):
        file = io.BytesIO()
        soundfile.write(file, samples, rate, format=job.audio_format.upper(), subtype="PCM_16")
        yield samples, file.getvalue()


def _encoded_row(job: _Job, index: int) -> Row:
    row = dict(job.rows[index])
    names = job.recipe.clip_names(row)
    del row["split"]
    row |= {column.name: [] for column in job.columns if column.is_list}
    for name, (_, content) in zip(names, _encoded_clips(job, index), strict=True):
        path = f"{row['id']}-{name.replace('/', '-')}.{job.audio_format}"
        clip = {"bytes": content, "path": path}
        column, of_list, _ = name.partition("/")
        if of_list:
            row[column].append(clip)
        else:
            row[column] = clip
    return row
