"""Encoder × benchmark → embeddings → scores: the evaluation of one encoder."""

from __future__ import annotations

import importlib.metadata
import json
import platform
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from audio_compositionality.dataset_builder import Benchmark, BenchmarkConfig, open_benchmark
from audio_compositionality.encoders import Encoder, load_encoder
from audio_compositionality.encoders.inference import resolve_device
from .store import EmbeddingKey, EmbeddingStore, options_of

from .embedding import device_of, embedding_root, fill_store, open_store, precision_deviation
from .processes import Processes, join_processes
from audio_compositionality.evaluator.results.result import Result, ResultError, load_result, result_path, save_result
from audio_compositionality.tasks.scoring import Task, open_task, score_result, valid_rows

_T = TypeVar("_T", int, str)

_VERSIONS = ("audio-compositionality", "numpy", "torch", "transformers", "librosa", "soxr")


@dataclass(frozen=True)
class _Run:
    """What all encoders are evaluated with; see `evaluate_encoder`."""

    benchmark: Benchmark
    processes: Processes
    fit_device: str
    skip_invalid: bool
    progress: bool


def evaluate_encoder(
    encoder: Encoder | str,
    benchmark: Benchmark | BenchmarkConfig | Path | str = "mini",
    *,
    tasks: Sequence[str] | None = None,
    seeds: int = 3,
    batch_size: int | None = None,
    device: str | None = None,
    out: str | Path | None = None,
    embeddings: str | Path | None = None,
    skip_invalid: bool = False,
    force: bool = False,
    progress: bool = True,
) -> list[Result]:
    """Embed a benchmark with an encoder and score it.

    Started by torchrun or ``accelerate launch`` in several processes, each embeds its share of the clips, the main
    process scores, and all return the results. They share the embeddings through the folder `embeddings`, by default
    that of `embedding_root`, which must be on a file system that all of them see.

    Args:
        encoder: an encoder, or anything that `load_encoder` takes.
        benchmark: a benchmark, or anything that `open_benchmark` takes.
        tasks: which of ``a_coat`` and ``a_tre``; default, all that the benchmark holds.
        seeds: how many times A-TRE is fitted, from the seeds 0, 1, …: the scores are means over the fits, and with
            two or more the fits' spread is told apart from that of the scenes.
        batch_size: clips embedded at a time, at most 64; default 4 on a CPU, 32 on a GPU; halved whenever memory does
            not suffice. It does not change the scores beyond rounding.
        device: torch device of A-TRE's fits, and of an encoder that is given by its name; by default CUDA where there
            is one, else the CPU. Of several processes each takes the GPU of its local rank.
        out: folder for the result files. A task is written as soon as it is done, and one that is there already for
            the same data and settings is read instead of computed.
        embeddings: folder for embeddings; see `EmbeddingStore`. What is stored is not computed again, and a run that
            was stopped goes on from there. By default they are kept in memory only.
        skip_invalid: leave out clips that cannot be embedded, and with them the quadruple or the scene that they
            belong to, instead of raising an error; `Result.skipped` says which.
        force: compute and replace what is there.
        progress: show progress bars.

    Returns:
        one result a task.

    Raises:
        ResultError: ``out`` holds a result of the same encoder for other data or settings.
        StoreError: stored embeddings are damaged.
        ClipError: a clip cannot be embedded.
        ProcessError: another process has failed.
        ValueError: an unknown encoder, benchmark, task or device, less than one seed, or data that cannot be used (see
            `open_benchmark`).
    """
    if isinstance(encoder, str):
        processes = join_processes()
        with processes.one_first():
            encoder = load_encoder(encoder, device=processes.device(device))
    return evaluate_encoders(
        [encoder],
        open_benchmark(benchmark) if isinstance(benchmark, (str, Path, BenchmarkConfig)) else benchmark,
        tasks=tasks,
        seeds=seeds,
        batch_size=batch_size,
        device=device,
        out=out,
        embeddings=embeddings,
        skip_invalid=skip_invalid,
        force=force,
        progress=progress,
    )


def evaluate_encoders(
    encoders: Sequence[Encoder],
    benchmark: Benchmark,
    *,
    tasks: Sequence[str] | None = None,
    seeds: int = 3,
    batch_size: int | None = None,
    device: str | None = None,
    out: str | Path | None = None,
    embeddings: str | Path | None = None,
    skip_invalid: bool = False,
    force: bool = False,
    progress: bool = True,
) -> list[Result]:
    """`evaluate_encoder` for several encoders; results that are in the way are found before the first is run."""
    processes = join_processes()
    if embeddings is None and processes.count > 1:
        embeddings = embedding_root()
    fit_device = str(resolve_device(processes.device(device)))
    run = _Run(benchmark, processes, fit_device, skip_invalid, progress and processes.is_main)
    chosen = [open_task(task, benchmark, seeds) for task in (benchmark.tasks if tasks is None else tasks)]
    known = _find_results(encoders, chosen, None if force else out, run)
    results: list[Result] = []
    for number, encoder in enumerate(encoders):
        for task in chosen:
            result = known.get((number, task.name))
            if result is None:
                store = open_store(encoder, benchmark, task.name, task.rows, embeddings)
                started = time.perf_counter()
                fill_store(
                    store,
                    encoder,
                    benchmark,
                    batch_size=batch_size,
                    skip_invalid=skip_invalid,
                    force=force,
                    progress=progress,
                    processes=processes,
                )
                if not processes.is_main:
                    continue
                embedded = time.perf_counter()
                result, ids, columns = _score(store, encoder, task, embedded - started, run)
                if out is not None:
                    save_result(Path(out), result, ids, columns)
            results.append(result)
    return [Result.loads(text) for text in json.loads(processes.tell(json.dumps([r.dumps() for r in results])))]


def _find_results(
    encoders: Sequence[Encoder],
    tasks: Sequence[Task],
    out: str | Path | None,
    run: _Run,
) -> dict[tuple[int, str], Result]:
    """The results that a folder holds, by the number of the encoder and the task: the main process looks, all know.

    Raises:
        ResultError: the folder holds a result of an encoder for other data or settings, or a damaged one.
    """
    found: list[tuple[int, str, str]] = []
    if out is not None and run.processes.is_main:
        for number, encoder in enumerate(encoders):
            for task in tasks:
                result = _find_result(encoder, task, Path(out), run)
                if result is not None:
                    found.append((number, task.name, result.dumps()))
    told = json.loads(run.processes.tell(json.dumps(found)))
    return {(number, name): Result.loads(text) for number, name, text in told}


def _find_result(encoder: Encoder, task: Task, out: Path, run: _Run) -> Result | None:
    path = result_path(out, encoder.id, encoder.revision, task.name)
    if not path.exists():
        return None
    result, _ = load_result(path)
    if result.skipped and not run.skip_invalid:
        raise ResultError(
            f"{path} is a result without {len(result.skipped)} clips that could not be embedded, such as "
            f"{result.skipped[0]['id']}: --skip-invalid accepts it, --force computes it again"
        )
    other = result.differences(EmbeddingKey.of(encoder, run.benchmark.fingerprint, task.name), task.settings)
    if other:
        raise ResultError(
            f"{path} is a result for other data, settings or weights (of {result.dataset}, now {run.benchmark.source}; "
            f"other are {', '.join(other)}): give another --out, or --force to replace it"
        )
    return result


def _score(
    store: EmbeddingStore, encoder: Encoder, task: Task, embed_seconds: float, run: _Run
) -> tuple[Result, list[str], Mapping[str, NDArray[np.float64]]]:
    """The result of a task whose clips are in the store, the ids of its samples and their columns, each [n]."""
    task, embeddings, skipped = valid_rows(store, task, run.skip_invalid)
    deviation = precision_deviation(encoder, run.benchmark, task.name, [clip["id"] for clip in skipped])
    started = time.perf_counter()
    found = score_result(task, embeddings, run.fit_device, run.progress)
    seconds = time.perf_counter() - started
    others = run.processes.count - 1
    device = device_of(encoder) + (f" and {others} more" if others else "")
    result = Result(
        task=task.name,
        **found.fields,
        settings=task.settings,
        encoder_id=encoder.id,
        encoder_revision=encoder.revision,
        weights_sha256=store.key.weights_sha256,
        output_dim=encoder.output_dim,
        sample_rate=encoder.sample_rate,
        parameters=_stated(encoder, "num_parameters", int),
        paradigm=_stated(encoder, "paradigm", str),
        licence=_stated(encoder, "licence", str),
        options=asdict(options_of(encoder)),
        front_end_version=store.key.front_end_version,
        precision_deviation=deviation,
        skipped=skipped,
        dataset=run.benchmark.source,
        fingerprint=run.benchmark.fingerprint,
        versions=library_versions(),
        device=device if task.name == "a_coat" else f"{device}, fit on {run.fit_device}",
        seconds={"embed": embed_seconds, "score": seconds},
        date=datetime.now(UTC).isoformat(timespec="seconds"),
    )
    return result, task.sample_ids, found.columns


def _stated(encoder: Encoder, name: str, kind: type[_T]) -> _T | None:
    """An attribute that an encoder need not have; None where it has none, or 0, or an empty or another one."""
    value = getattr(encoder, name, None)
    return value if value and type(value) is kind else None


def library_versions() -> dict[str, str]:
    """Versions of this package, Python and the libraries that compute, as a result states them."""
    return {"python": platform.python_version(), **{name: importlib.metadata.version(name) for name in _VERSIONS}}
