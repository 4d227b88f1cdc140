"""A submission: a result, its samples and its embeddings, made of a local result, or read as a stranger sent it.

It holds ``result.json``, ``samples.parquet`` and, unless the result is to stay self-reported, ``embeddings.parquet``,
see `submission_files`. Whatever is wrong with what is read ends in a `ResultError`; Parquet is read in a process apart.
"""

from __future__ import annotations

import io
import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime, timedelta
from functools import cached_property, lru_cache
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from audio_compositionality.dataset_builder import AUDIO_COLUMNS, PRESETS, Benchmark, open_benchmark, preset_config
from audio_compositionality.evaluator.run.store import EmbeddingKey, EmbeddingStore

from .parquet_child import MAX_DIM
from .parquet_reader import ParquetReader, clean
from audio_compositionality.evaluator.results.result import (Result, ResultError, load_result, mean_interval, problem_of_samples, samples_table)
from .rounded import RoundedEmbeddings
from .submission_files import (EMBEDDINGS, EMBEDDINGS_LIMIT, FILES, RESULT, RESULT_LIMIT, SAMPLES, SAMPLES_LIMIT, check_names, folder_of, read_files, submission_id)

if TYPE_CHECKING:
    from audio_compositionality.tasks.scoring import Task

SEEDS = 3
"""Fits of A-TRE of a submission, the default of `evaluate_encoder`: all are compared alike."""

ROUNDING = 1e-9
"""How far sums over samples may be apart that were added in another order."""

MAX_TEXT = 500
"""Characters of any other text in a result."""


@dataclass(frozen=True)
class Submission:
    """The files of a submission, and what they hold.

    Attributes:
        files: content by name.
        result: what is submitted.
        samples: as `load_result` returns them.
        embeddings: None where the result is to stay self-reported.
        local: of one made here the result as it was, of embeddings that were not rounded.
    """

    files: Mapping[str, bytes]
    result: Result
    samples: pa.Table
    embeddings: RoundedEmbeddings | None
    local: Result | None = None

    @cached_property
    def id(self) -> str:
        """See `submission_id`."""
        return submission_id(self.files)

    @property
    def folder(self) -> str:
        """Path of its folder in the results repository."""
        return folder_of(self.result, self.id)


def make_submission(
    path: str | Path,
    benchmark: Benchmark,
    *,
    embeddings: str | Path | None = None,
    paradigm: str | None = None,
    licence: str | None = None,
    with_embeddings: bool = True,
    device: str | None = None,
    progress: bool = True,
) -> Submission:
    """Make a submission of a local result.

    Its embeddings are taken from the store and rounded to 16 bits, and what is submitted is the score of the rounded
    ones, so that whoever recomputes it finds the same. The same result gives the same bytes: date and seconds stay
    those of the evaluation.

    Args:
        path: JSON file of the result, as `evaluate_encoder` writes it.
        benchmark: its data.
        embeddings: root of the `EmbeddingStore`; default `embedding_root`.
        paradigm, licence: see `Result`; default, what the result says.
        with_embeddings: without them the result is submitted as it is, and stays self-reported.
        device: torch device of A-TRE's fits.
        progress: show bars of the fits.

    Raises:
        ResultError: the result cannot be submitted, or its embeddings are not in the store: says why, and what to do.
        StoreError: stored embeddings are damaged.
        ValueError: the data cannot be used, or an unknown device.
    """
    from audio_compositionality.tasks.scoring import open_task, score_result

    local, table = load_result(Path(path))
    task = open_task(_check_data(local, benchmark).task, benchmark, SEEDS)
    problem = policy_problem(local, task)
    if problem is not None:
        raise ResultError(f"{path}: {problem}")
    result = replace(
        local,
        dataset=_shown_source(benchmark),
        paradigm=local.paradigm if paradigm is None else paradigm,
        licence=local.licence if licence is None else licence,
    )
    files: dict[str, bytes] = {}
    rounded: RoundedEmbeddings | None = None
    if with_embeddings:
        ids = clip_ids(task)
        _check_size(path, len(ids) * local.output_dim * 2)
        rounded = RoundedEmbeddings.of(ids, stored_embeddings(local, ids, embeddings))
        files[EMBEDDINGS] = rounded.dumps()
        _check_size(path, len(files[EMBEDDINGS]))
        fit_device = fit_device_of(device)
        scored = score_result(task, rounded.restored(), fit_device, progress)
        result = replace(result, **scored.fields, device=device_text(result, fit_device))
        table = samples_table(result, task.sample_ids, scored.columns)
    files |= {RESULT: result.dumps().encode(), SAMPLES: samples_bytes(table)}
    # Whatever the checks of what strangers send would refuse is refused here already.
    _check_stated(result)
    folder_of(result, submission_id(files))
    if len(files[RESULT]) > RESULT_LIMIT:
        raise ResultError(f"{path}: it is larger than {RESULT_LIMIT:,} bytes, which no submission may be")
    return Submission(MappingProxyType(files), result, table, rounded, local)


def _check_data(result: Result, benchmark: Benchmark) -> Result:
    if result.fingerprint != benchmark.fingerprint:
        raise ResultError(
            f"the result is of data with the fingerprint {result.fingerprint[:12]}…, {benchmark.source} has "
            f"{benchmark.fingerprint[:12]}…: give the data that it was computed from"
        )
    return result


def _check_size(path: str | Path, size: int) -> None:
    if size > EMBEDDINGS_LIMIT:
        raise ResultError(
            f"{path}: its embeddings have {size:,} bytes in 16 bits, at most {EMBEDDINGS_LIMIT:,} can be submitted; "
            "without embeddings the result can be submitted, and stays self-reported"
        )


def _shown_source(benchmark: Benchmark) -> str:
    """Where the data are from, without the folders of somebody's machine."""
    preset = _preset_with(benchmark.fingerprint)
    if preset is not None:
        return preset
    source = benchmark.source
    return Path(source).resolve().name or "data" if Path(source).is_dir() else source


def clip_ids(task: Task) -> list[str]:
    """``<row id>/<audio column>`` of all clips of a task, in their order."""
    return [f"{row['id']}/{column}" for row in task.rows for column in AUDIO_COLUMNS[task.name]]


def fit_device_of(device: str | None) -> str:
    """The torch device of A-TRE's fits: the one that is named, else CUDA where there is one, else the CPU."""
    from audio_compositionality.encoders.inference import resolve_device

    return str(resolve_device(device))


def device_text(result: Result, fit_device: str) -> str:
    """The devices of a result whose score is computed again."""
    embedded = result.device.split(", fit on ")[0]
    return embedded if result.task == "a_coat" else f"{embedded}, fit on {fit_device}"


def samples_bytes(table: pa.Table) -> bytes:
    """Samples as a Parquet file."""
    stream = io.BytesIO()
    pq.write_table(table, stream)
    return stream.getvalue()


def stored_embeddings(result: Result, ids: Sequence[str], root: str | Path | None = None) -> NDArray[np.float32]:
    """The embeddings that a local result was computed from, [clips, dim].

    Args:
        result: the result.
        ids: of all clips of its task.
        root: of the store; default `embedding_root`.

    Raises:
        ResultError: they are not there, or some clips could not be embedded.
        StoreError: they are damaged, or of other clips.
    """
    from audio_compositionality.evaluator.run.embedding import embedding_root

    options = result.options
    key = EmbeddingKey(
        fingerprint=result.fingerprint,
        task=result.task,
        encoder_id=result.encoder_id,
        encoder_revision=result.encoder_revision,
        weights_sha256=result.weights_sha256,
        output_dim=result.output_dim,
        layer=options["layer"],
        pooling=options["pooling"],
        precision=options["precision"],
        front_end_version=result.front_end_version,
    )
    store = EmbeddingStore(embedding_root() if root is None else root, key, ids)
    absent = sum(not store.has(shard) for shard in range(store.num_shards))
    if absent:
        raise ResultError(
            f"{store.folder} lacks {absent} of {store.num_shards} files of the embeddings of "
            f"{clean(result.encoder_id)}: --embeddings says in which folder they are; where they are gone, "
            "`audio-compositionality evaluate --force` with the encoder and options of the result makes them again"
        )
    content = store.load()
    if content.errors:
        raise ResultError(f"{len(content.errors)} clips have no embedding, such as {ids[min(content.errors)]}")
    return content.embeddings


def policy_problem(result: Result, task: Task) -> str | None:
    """Why a result cannot be submitted, or verified, for the data of a task; None where it can."""
    if result.skipped:
        return (
            f"it leaves out {len(result.skipped)} clips, such as {clean(result.skipped[0]['id'])}; a submission has all"
        )
    # As text: in Python, [False, True, 2] equals [0, 1, 2].
    if _canonical(result.settings) != _canonical(task.settings):
        return (
            f"its settings are {clean(_canonical(result.settings))}, those of a submission are "
            f"{_canonical(task.settings)}: evaluate it again with --force --seeds {SEEDS}"
        )
    if result.n != len(task.sample_ids):
        return f"it has {result.n:,} samples, the data have {len(task.sample_ids):,}"
    if result.output_dim > MAX_DIM:
        return f"its embeddings have {result.output_dim:,} numbers; at most {MAX_DIM:,} can be submitted"
    return None


def _canonical(values: Any) -> str:
    return json.dumps(values, sort_keys=True)


def open_data(fingerprint: str, data: str | Path | None = None) -> Benchmark:
    """The data with a fingerprint: a preset, or what `data` names.

    Args:
        fingerprint: of the data.
        data: a folder or Hub id, where they are no preset's.

    Raises:
        ResultError: neither has this fingerprint.
        DatasetError: `data` cannot be opened.
    """
    preset = _preset_with(fingerprint)
    if preset is not None:
        return _opened_preset(preset, fingerprint)
    shown = clean(fingerprint)[:12]
    if data is None:
        raise ResultError(
            f"it is of data with the fingerprint {shown}…, which are those of no preset ({', '.join(PRESETS)}): --data "
            "says where they are"
        )
    benchmark = open_benchmark(data)
    if benchmark.fingerprint != fingerprint:
        raise ResultError(
            f"it is of data with the fingerprint {shown}…, which neither a preset ({', '.join(PRESETS)}) nor {data} "
            f"({benchmark.fingerprint[:12]}…) has"
        )
    return benchmark


def _preset_with(fingerprint: str) -> str | None:
    return next((name for name in PRESETS if preset_config(name).fingerprint == fingerprint), None)


@lru_cache(maxsize=2)
def _opened_preset(name: str, _fingerprint: str) -> Benchmark:
    return open_benchmark(name)


def read_result(content: bytes) -> Result:
    """A result that a stranger wrote: `Result.loads`, and what else it must not hold.

    Raises:
        ResultError: too large, not UTF-8, no result, clips left out, other seeds than a submission's, text that is too
            long or has characters that cannot be seen, or a date that is none or still to come.
    """
    if len(content) > RESULT_LIMIT:
        raise ResultError(f"{RESULT}: it has {len(content):,} bytes; at most {RESULT_LIMIT:,} can be")
    try:
        result = Result.loads(content.decode("utf-8"))
    except (ResultError, UnicodeDecodeError) as error:
        raise ResultError(f"{RESULT}: {clean(error)}") from None
    if result.skipped:
        raise ResultError(f"{RESULT}: it leaves out {len(result.skipped)} clips; a submission has all")
    seeds = result.settings.get("seeds") if result.task == "a_tre" else list(range(SEEDS))
    if _canonical(seeds) != _canonical(list(range(SEEDS))):
        raise ResultError(f"{RESULT}: its seeds are {clean(seeds)}; those of a submission are 0 to {SEEDS - 1}")
    _check_stated(result)
    return result


def is_date(text: str) -> bool:
    """Whether a text is a date and time in UTC as results write it, ``2026-01-31T23:59:59+00:00``."""
    try:
        return datetime.fromisoformat(text).astimezone(UTC).isoformat(timespec="seconds") == text
    except (ValueError, OverflowError):
        return False


def _check_stated(result: Result) -> None:
    # A day for clocks that are wrong.
    if not is_date(result.date) or datetime.fromisoformat(result.date) > datetime.now(UTC) + timedelta(days=1):
        raise ResultError(f"{RESULT}: its date is {clean(ascii(result.date))}, which is none, or is still to come")
    _check_texts(asdict(result))


def _check_texts(value: Any) -> None:
    """Refuse text that is too long for a table, or that shows as something else than it is."""
    if isinstance(value, str) and not (len(value) <= MAX_TEXT and value.isprintable()):
        raise ResultError(
            f"{RESULT}: the text {clean(ascii(value)[:80])} is longer than {MAX_TEXT} characters, or has some that "
            "cannot be seen"
        )
    items = [*value, *value.values()] if isinstance(value, Mapping) else value
    if isinstance(items, (list, tuple)):
        for item in items:
            _check_texts(item)


def read_samples(content: bytes, result: Result, reader: ParquetReader) -> pa.Table:
    """The samples of a result, as a stranger sent them: a table as `load_result` returns it.

    Raises:
        ResultError: too large, damaged, or not those of the result.
    """
    if len(content) > SAMPLES_LIMIT:
        raise ResultError(f"{SAMPLES}: it has {len(content):,} bytes; at most {SAMPLES_LIMIT:,} can be")
    table = reader.samples(content)
    check_samples(table, result)
    return table


def check_samples(table: pa.Table, result: Result) -> None:
    """Refuse samples, a table as `ParquetReader.samples` returns, that are not those of a result, with ResultError."""
    problem = problem_of_samples(table, result) or _problem_of_spread(table, result)
    if problem is not None:
        raise ResultError(f"{SAMPLES}: {clean(problem)}")


def _problem_of_spread(table: pa.Table, result: Result) -> str | None:
    """Why samples cannot have the spread that a result states, or cannot be cosines; None where they can."""
    for name in ("score", "score_centred"):
        if name in table.column_names and np.abs(table[name].to_numpy()).max() > 1 + ROUNDING:
            return f"{name} is not within -1…1"
    scores = table["score"].to_numpy()
    std = float(scores.std(ddof=1)) if len(scores) > 1 else 0.0
    ends, own = result.interval or (), mean_interval(scores) or ()
    same = len(ends) == len(own) and all(abs(a - b) <= ROUNDING for a, b in zip(ends, own, strict=True))
    if abs(std - result.std) > ROUNDING or not same:
        return "the spread or the interval of the samples is not that of the result"
    return None


def parse_submission(files: Mapping[str, bytes], name: str | None, reader: ParquetReader) -> Submission:
    """A submission from the content of its files.

    Args:
        files: content by name.
        name: path of its folder in the repository, which has to be the one of its content; None where it has none.
        reader: of Parquet files.

    Raises:
        ResultError: it is no valid submission, or not that of its path.
    """
    check_names(files, FILES["results"], optional=(EMBEDDINGS,))
    result = read_result(files[RESULT])
    folder = folder_of(result, submission_id(files))
    if name is not None and name != folder:
        raise ResultError(f"its place is {clean(name)}, but its content belongs to {folder}")
    samples = read_samples(files[SAMPLES], result, reader)
    embeddings = None
    if EMBEDDINGS in files:
        if len(files[EMBEDDINGS]) > EMBEDDINGS_LIMIT:
            raise ResultError(
                f"{EMBEDDINGS}: it has {len(files[EMBEDDINGS]):,} bytes; at most {EMBEDDINGS_LIMIT:,} can be"
            )
        embeddings = reader.embeddings(files[EMBEDDINGS])
        if embeddings.values.shape[1] != result.output_dim:
            raise ResultError(
                f"{EMBEDDINGS}: they have {embeddings.values.shape[1]:,} numbers each, the result says "
                f"{result.output_dim:,}"
            )
    return Submission(MappingProxyType(dict(files)), result, samples, embeddings)


def read_submission(folder: Path, name: str | None = None, reader: ParquetReader | None = None) -> Submission:
    """Read a submission that a stranger made.

    Args:
        folder: with its files and nothing else.
        name: see `parse_submission`.
        reader: of Parquet files; default, one for this call.

    Raises:
        ResultError: it is no valid submission, or not that of its path.
    """
    files = read_files(folder, FILES["results"])
    if reader is not None:
        return parse_submission(files, name, reader)
    with ParquetReader() as own:
        return parse_submission(files, name, own)
