"""Write data as a data set: Parquet shards with embedded audio, a card and a manifest."""

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
"""File in a recipe's folder during its build: the digests of finished shards."""

CLIPS_PER_SHARD = 400
"""About 140 MB of FLAC or 256 MB of WAV (preset mini, clips of 10 s), well below the 500 MB that the Hub recommends;
also the most that an interrupted build can lose."""

ROWS_PER_GROUP = 16
"""Rows of a Parquet row group: a streaming reader downloads this many before its first row."""


@dataclass(frozen=True)
class _PlannedShard:
    split: str
    name: str
    rows: range


@dataclass(frozen=True)
class _Job:
    """A configuration to build."""

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
    """Write data to a folder that `datasets.load_dataset` reads, one configuration for each recipe.

    The bytes of a shard depend only on the recipe, its settings, the format and the versions of the encoding libraries,
    not on ``workers``. A shard gets its name only when it is complete. An interrupted build is finished by another
    call; finished configurations are left unchanged, and recipes can be added to a folder without changes to the
    others.

    Args:
        preset: name of a preset, or rendered data.
        out: the folder; created if it does not exist.
        recipes: names of recipes; by default all recipes that have the preset.
        changes: to settings of the preset; see `rendered_preset`.
        audio_format: ``flac`` or ``wav``, both 16-bit with the same samples; FLAC takes 55 % of the size (preset mini).
        workers: threads that render and encode; by default the number of cores.
        force: replace existing files of these recipes in ``out``.
        progress: show a progress bar.
        on_sizes: called with the size of each recipe before anything is written; see `build_sizes`.

    Returns:
        The folder.

    Raises:
        DatasetError: ``out`` contains other files, or the disk is full.
        InputError: a preset, setting or format is unknown, or workers is below 1.
    """
    _check_format(audio_format)
    workers = (os.cpu_count() or 1) if workers is None else workers
    if workers < 1:
        raise InputError(f"workers is {workers}; it must be 1 or more")
    if isinstance(preset, str):
        data = rendered_preset(preset, recipes=recipes, **(changes or {}))
    elif changes:
        raise InputError("changes apply to a preset only; rendered data already have settings")
    else:
        data = preset if recipes is None else preset.only(recipes)
    folder = Path(out)
    try:
        if folder.exists() and not folder.is_dir():
            raise DatasetError(f"{folder} is a file; give the path of a folder")
        folder.mkdir(parents=True, exist_ok=True)
        with locked(folder / LOCK_NAME) as held:
            if not held:
                raise DatasetError(f"another build is running in {folder}; wait until it ends, or give another folder")
            try:
                _build(data, folder, audio_format, workers, force, progress, on_sizes)
            finally:
                # Remove the lock file before the lock ends, so that nobody uploads it with the rest. Windows keeps open
                # files.
                with contextlib.suppress(OSError):
                    (folder / LOCK_NAME).unlink()
    except OSError as error:
        if error.errno not in (errno.ENOSPC, errno.EDQUOT):
            raise
        raise DatasetError(
            f"the disk of {folder} is full; finished shards are kept. Free some space and run the same build again"
        ) from error
    return folder


def _check_format(audio_format: str) -> None:
    if audio_format not in get_args(AudioFormat):
        raise InputError(f"unknown audio format {audio_format!r}; {nearest(audio_format, get_args(AudioFormat))}")


@dataclass(frozen=True)
class BuiltSize:
    """The estimated size of a recipe when it is built, from a few of its rows.

    Attributes:
        recipe: its name.
        clips: number of clips; exact.
        seconds: seconds of sound.
        megabytes: megabytes of encoded audio.
        taken: seconds to render and encode a clip on one thread.
    """

    recipe: str
    clips: int
    seconds: float
    megabytes: float
    taken: float


def build_sizes(data: RenderedData, audio_format: AudioFormat = "flac") -> list[BuiltSize]:
    """Return the size of each recipe before a build: all rows are drawn, and a few are rendered.

    Raises:
        DatasetError: a recipe cannot be built.
        InputError: the format is unknown.
    """
    _check_format(audio_format)
    return [_size_of(_job(data, name, audio_format)) for name in data.recipes]


_RENDERED = 6
"""Number of rows, evenly spaced, from which a recipe's size is estimated."""


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
    # Draw all rows before anything is written, so that refused settings leave no files behind.
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
                    warnings.warn(f"{error}; its shards are written again", stacklevel=4)
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
    # The manifest may also contain recipes that this build does not know.
    features = {
        name: Features.from_arrow_schema(pq.read_schema(folder / next(iter(built.shards))))
        for name, built in manifest.recipes.items()
        if built.shards
    }
    write_whole(folder / CARD_NAME, dataset_card(manifest, features))


def _present(folder: Path, data: RenderedData, audio_format: str, force: bool) -> dict[str, BuiltRecipe]:
    """Return the configurations in the folder, without those to rebuild.

    The folder must be new, empty, or of this project; with ``force``, it may be any folder.
    """
    before = None
    with contextlib.suppress(*[DatasetError] if force else []):
        before = Manifest.load(folder / MANIFEST_NAME)
    held = dict(before.recipes) if before else {}
    if force:
        return {name: built for name, built in held.items() if name not in data.recipes}
    if before is None and any(path.name != LOCK_NAME for path in folder.iterdir()):
        places = "".join(f"{name}/, " for name in data.recipes)
        raise DatasetError(
            f"{folder} is not empty and contains no data set of this project. Give another folder, or --force to "
            f"write into it, which replaces {places}{CARD_NAME} and {MANIFEST_NAME}"
        )
    for name in held.keys() & set(data.recipes):
        present, fingerprint = held[name], data.configuration(name).fingerprint
        if (present.fingerprint, present.audio_format) != (fingerprint, audio_format):
            raise DatasetError(
                f"{folder} contains different data under the name {name} (fingerprint {present.fingerprint[:12]}, "
                f"{present.audio_format}; this build has {fingerprint[:12]}, {audio_format}). Give another "
                "folder, or --force to replace it"
            )
    return held


def _claim(
    data: RenderedData, folder: Path, before: Mapping[str, BuiltRecipe], jobs: Sequence[_Job], force: bool
) -> Manifest:
    """Write and return a manifest with this build's entries; configurations built earlier keep their shards."""
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
                f"{folder} contains other rows or columns of {name} with the same settings and version "
                f"{entry.version}: "
                "the recipe's code has changed. Raise its version, or give --force to replace what was built"
            )
        kept[name] = entry if present is None else replace(entry, shards=present.shards)
        if force and (folder / name).exists():
            shutil.rmtree(folder / name)
    manifest = Manifest(kept)
    write_whole(folder / MANIFEST_NAME, manifest.dumps())
    return manifest


def _job(data: RenderedData, name: str, audio_format: AudioFormat) -> _Job:
    if not RECIPE_NAME.fullmatch(name):
        raise DatasetError(
            f"the recipe {name!r} cannot be built: its name may contain only letters, digits and underscores"
        )
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
    """Yield all shards in order, each of at most `CLIPS_PER_SHARD` clips, or of one row."""
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
            f"row {rows[first]['id']} belongs to split {rows[first]['split']!r}; the rows of {name} must be sorted by "
            f"split in the order {', '.join(recipe.splits)}"
        )


def _write_shard(
    folder: Path,
    job: _Job,
    shard: _PlannedShard,
    digest: str | None,
    pool: ThreadPoolExecutor,
    advance: Callable[[float], object],
) -> Shard:
    """Write one shard, unless it exists with the digest that an earlier build recorded."""
    path = folder / shard.name
    present = sha256_of_file(path) if path.exists() else None
    if present is None or present != digest:
        if present is not None:
            reason = "its SHA-256 differs from the recorded SHA-256" if digest else "no SHA-256 is recorded"
            warnings.warn(f"{path} could not be verified ({reason}) and is written again", stacklevel=5)
        schema = job.features.arrow_schema
        schema = schema.with_metadata({**schema.metadata, FINGERPRINT_KEY: job.fingerprint.encode()})
        groups = [shard.rows[start : start + ROWS_PER_GROUP] for start in range(0, len(shard.rows), ROWS_PER_GROUP)]
        partial = partial_path(path)
        try:
            with pq.ParquetWriter(partial, schema, compression="zstd") as writer:
                ahead: list[Future[Row]] = []
                # Write a row group while the pool encodes the next one.
                for group in [*groups, range(0)]:
                    current, ahead = ahead, [pool.submit(_encoded_row, job, index) for index in group]
                    if current:
                        rows = [future.result() for future in current]
                        writer.write_table(pa.Table.from_pylist(rows, schema=schema))
                        advance(sum(len(job.recipe.clip_names(row)) for row in rows))
            # The file gets its name once its content is on the disk.
            with open_file(partial) as file:
                os.fsync(file.fileno())
            partial.replace(path)
        finally:
            partial.unlink(missing_ok=True)
        present = sha256_of_file(path)
    return Shard(shard.split, len(shard.rows), path.stat().st_size, present)


def _encoded_clips(job: _Job, index: int) -> Iterator[tuple[Pcm16, bytes]]:
    """Yield the samples of each clip of a row, and its encoded file."""
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
