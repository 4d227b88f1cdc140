"""Write a benchmark as a data set: Parquet shards with embedded audio, a card, a manifest."""

from __future__ import annotations

import errno
import fcntl
import io
import os
import shutil
from collections.abc import Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, get_args

import pyarrow as pa
import pyarrow.parquet as pq
import soundfile
from datasets import Audio, Features, List, Value
from tqdm import tqdm

from .benchmark import AUDIO_COLUMNS, RenderedBenchmark
from .card import dataset_card
from .manifest import MANIFEST_NAME, Manifest, Shard, sha256_of
from .messages import DatasetError, nearest
from .synthesis.config import GENERATOR_VERSION, BenchmarkConfig, preset_config
from .synthesis.scenes import ATTRIBUTES

AudioFormat = Literal["flac", "wav"]

CLIPS_PER_SHARD = 400
"""About 140 MB of FLAC or 256 MB of WAV (`build --preset mini`), well under the Hub's advised 500 MB; what a killed
build can lose."""

ROWS_PER_GROUP = 16
"""Rows of a Parquet row group: what a streaming reader has to fetch before its first row."""

FINGERPRINT_KEY = b"audio_compositionality_fingerprint"
"""Name of the fingerprint in the metadata of a shard."""


@dataclass(frozen=True)
class _PlannedShard:
    task: str
    split: str
    name: str
    start: int
    stop: int


def build_dataset(
    preset: str | BenchmarkConfig = "mini",
    out: str | Path = "audio-compositionality",
    *,
    audio_format: AudioFormat = "flac",
    workers: int | None = None,
    force: bool = False,
    progress: bool = True,
) -> Path:
    """Write a benchmark to a folder that `datasets.load_dataset` reads.

    The bytes depend on the configuration, the format and the versions of the encoding libraries alone, not on
    ``workers``. A shard appears under its name only when it is whole; a build that was stopped is finished by calling
    it again, and a finished one is left as it is.

    Args:
        preset: name of a preset, or a configuration.
        out: the folder; made if it does not exist.
        audio_format: ``flac`` or ``wav``, both 16-bit: the same samples, FLAC at 55 % of the size (preset mini).
        workers: threads that render and encode; default, the number of cores.
        force: replace what stands in ``out`` where this data set's files go.
        progress: show a progress bar.

    Returns:
        the folder.

    Raises:
        DatasetError: ``out`` holds something else, or the disk is full.
        ValueError: an unknown preset or format, or workers below 1.
    """
    if audio_format not in get_args(AudioFormat):
        raise ValueError(f"unknown audio format {audio_format!r}; {nearest(audio_format, get_args(AudioFormat))}")
    workers = (os.cpu_count() or 1) if workers is None else workers
    if workers < 1:
        raise ValueError(f"workers is {workers}; it must be 1 or more")
    config = preset if isinstance(preset, BenchmarkConfig) else preset_config(preset)
    benchmark = RenderedBenchmark(str(out), config)
    folder = Path(out)
    manifest = Manifest(
        fingerprint=config.fingerprint,
        configuration={"generator_version": GENERATOR_VERSION, **config.as_dict()},
        audio_format=audio_format,
        amplitude_gains=benchmark.amplitude_gains,
        shards={},
    )
    plan = _plan(config)
    try:
        if folder.exists() and not folder.is_dir():
            raise DatasetError(f"{folder} is a file; give a folder")
        folder.mkdir(parents=True, exist_ok=True)
        with (
            _only_build_in(folder),
            ThreadPoolExecutor(workers) as pool,
            tqdm(total=sum(shard.stop - shard.start for shard in plan), unit="row", disable=not progress) as bar,
        ):
            known = _claim(folder, manifest, force)
            finished = {}
            for shard in plan:
                expected = known.get(shard.name)
                finished[shard.name] = _write_shard(folder, shard, benchmark, audio_format, expected, pool, bar)
        splits: dict[str, dict[str, list[str]]] = {}
        for shard in plan:
            splits.setdefault(shard.task, {}).setdefault(shard.split, []).append(shard.name)
        _write(folder / "README.md", dataset_card(config, audio_format, task_features(config), splits, finished))
        _write(folder / MANIFEST_NAME, Manifest(**{**vars(manifest), "shards": finished}).dumps())
    except OSError as error:
        if error.errno not in (errno.ENOSPC, errno.EDQUOT):
            raise
        raise DatasetError(
            f"the disk of {folder} is full; finished shards are kept: make room and run the same build again"
        ) from error
    return folder


def task_features(config: BenchmarkConfig) -> dict[str, Features]:
    """The columns of each task.

    ``metadata`` is that of the authors' published data; id, onsets (samples) and entropy are ours.
    """
    audio = Audio(sampling_rate=config.sample_rate)
    sources = List({f"{attribute}_label": Value("string") for attribute in ATTRIBUTES})
    onsets = List(Value("int32"))
    entropy = {attribute: Value("float64") for attribute in ATTRIBUTES}
    return {
        "a_coat": Features(
            {
                "id": Value("string"),
                **dict.fromkeys(AUDIO_COLUMNS["a_coat"], audio),
                "metadata": {"A": sources, "C": sources, "T": sources},
                "onsets": {"A": onsets, "C": onsets, "T": onsets},
                "entropy": entropy,
            }
        ),
        "a_tre": Features(
            {"id": Value("string"), "audio": audio, "metadata": sources, "onsets": onsets, "entropy": entropy}
        ),
    }


def _plan(config: BenchmarkConfig) -> list[_PlannedShard]:
    """All shards in order; start and stop are row numbers of the task."""
    plan = []
    splits = {"a_coat": {"test": config.quadruples}, "a_tre": config.split_sizes}
    for task, sizes in splits.items():
        per_shard = CLIPS_PER_SHARD // len(AUDIO_COLUMNS[task])
        first = 0
        for split, size in sizes.items():
            count = -(-size // per_shard)
            for number in range(count):
                start, stop = number * per_shard, min((number + 1) * per_shard, size)
                name = f"{task}/{split}-{number:05d}-of-{count:05d}.parquet"
                plan.append(_PlannedShard(task, split, name, first + start, first + stop))
            first += size
    return plan


@contextmanager
def _only_build_in(folder: Path) -> Iterator[None]:
    """Hold the folder against a second build at the same time. The lock ends with the process, however it ends."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise DatasetError(f"another build is running in {folder}; wait for it, or give another folder") from None
        yield
    finally:
        os.close(descriptor)


def _claim(folder: Path, manifest: Manifest, force: bool) -> Mapping[str, Shard]:
    """Make the folder this build's: new, empty, or begun by the same build; else only with ``force``.

    Returns the shards of a build that had finished there.
    """
    if force:
        for task in AUDIO_COLUMNS:
            if (folder / task).exists():
                shutil.rmtree(folder / task)
        for name in ("README.md", MANIFEST_NAME):
            (folder / name).unlink(missing_ok=True)
    elif any(folder.iterdir()):
        found = Manifest.load(folder / MANIFEST_NAME)
        if found is None:
            raise DatasetError(
                f"{folder} is not empty and holds no data set of this project; give another folder, or --force to "
                "write into it (a_coat/, a_tre/ and README.md there are replaced)"
            )
        if (found.fingerprint, found.audio_format) != (manifest.fingerprint, manifest.audio_format):
            raise DatasetError(
                f"{folder} holds another data set (fingerprint {found.fingerprint[:12]}, {found.audio_format}; this "
                f"build is {manifest.fingerprint[:12]}, {manifest.audio_format}); give another folder, or --force to "
                "replace it"
            )
        if found.shards:
            return found.shards
    _write(folder / MANIFEST_NAME, manifest.dumps())
    return {}


def _write_shard(
    folder: Path,
    shard: _PlannedShard,
    benchmark: RenderedBenchmark,
    audio_format: AudioFormat,
    expected: Shard | None,
    pool: ThreadPoolExecutor,
    bar: tqdm[Any],
) -> Shard:
    """Write one shard unless it is there whole, and as ``expected`` where a finished build has said so."""
    path = folder / shard.name
    rows = shard.stop - shard.start
    whole = _is_whole(path, rows, benchmark.fingerprint)
    if not whole or (expected is not None and sha256_of(path) != expected.sha256):
        path.parent.mkdir(exist_ok=True)
        schema = task_features(benchmark.config)[shard.task].arrow_schema
        schema = schema.with_metadata({**schema.metadata, FINGERPRINT_KEY: benchmark.fingerprint.encode()})
        partial = path.with_suffix(".partial")
        with pq.ParquetWriter(partial, schema, compression="zstd") as writer:
            for group in _encoded_groups(shard, benchmark, audio_format, pool):
                writer.write_table(pa.Table.from_pylist(group, schema=schema))
                bar.update(len(group))
        _commit(partial, path)
    else:
        bar.update(rows)
    return Shard(rows=rows, bytes=path.stat().st_size, sha256=sha256_of(path))


def _is_whole(path: Path, rows: int, fingerprint: str) -> bool:
    if not path.exists():
        return False
    try:
        metadata = pq.read_metadata(path)
    except (pa.ArrowException, OSError):
        return False
    return metadata.num_rows == rows and (metadata.metadata or {}).get(FINGERPRINT_KEY) == fingerprint.encode()


def _encoded_groups(
    shard: _PlannedShard, benchmark: RenderedBenchmark, audio_format: AudioFormat, pool: ThreadPoolExecutor
) -> Iterator[list[dict[str, Any]]]:
    """The rows of a shard with their encoded clips, a row group at a time, the next one ahead in the pool."""
    # The tone bank is rendered by threads of its own: have it before the pool's threads wait for it.
    _ = benchmark.tone_bank, benchmark.quadruples, benchmark.scenes

    def encode(index: int) -> dict[str, Any]:
        row = benchmark.row(shard.task, index)
        del row["split"]
        for column, samples in zip(AUDIO_COLUMNS[shard.task], benchmark.clips(shard.task, index), strict=True):
            file = io.BytesIO()
            soundfile.write(file, samples, benchmark.config.sample_rate, format=audio_format.upper(), subtype="PCM_16")
            row[column] = {"bytes": file.getvalue(), "path": f"{row['id']}-{column}.{audio_format}"}
        return row

    def submit(start: int) -> list[Future[dict[str, Any]]]:
        return [pool.submit(encode, index) for index in range(start, min(start + ROWS_PER_GROUP, shard.stop))]

    first, *others = range(shard.start, shard.stop, ROWS_PER_GROUP)
    ahead = submit(first)
    for start in [*others, None]:
        current, ahead = ahead, submit(start) if start is not None else []
        yield [future.result() for future in current]


def _write(path: Path, text: str) -> None:
    partial = path.with_name(path.name + ".partial")
    partial.write_text(text, "utf-8")
    _commit(partial, path)


def _commit(partial: Path, path: Path) -> None:
    """Give a finished file its name, after its content has reached the disk."""
    with partial.open("rb") as file:
        os.fsync(file.fileno())
    partial.replace(path)
