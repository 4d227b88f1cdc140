"""Encoder × benchmark → embeddings → scores: the evaluation of one encoder."""

from __future__ import annotations

import importlib.metadata
import json
import math
import platform
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from audio_compositionality.dataset_builder import (
    AUDIO_COLUMNS,
    Benchmark,
    BenchmarkConfig,
    DatasetError,
    check_task,
    open_benchmark,
)
from audio_compositionality.encoders import Encoder, load_encoder
from audio_compositionality.encoders.inference import resolve_device
from audio_compositionality.encoders.store import EmbeddingKey, EmbeddingStore, options_of

from .embedding import Rows, device_of, embedding_root, fill_store, open_store, precision_deviation, refuse_skipped
from .processes import Processes, join_processes
from .result import Result, ResultError, load_result, mean_interval, result_path, save_result

FULL_STEPS, FEW_STEPS, FEW_SCENES = 2_500, 600, 2_000
"""Training steps of A-TRE: 2,500 (20 epochs of the paper's 8,000 scenes in batches of 64, section 4.4); 600 where there
are fewer than 2,000 training scenes, as in the preset mini, whose 512 it passes 75 times."""

_VERSIONS = ("audio-compositionality", "numpy", "torch", "transformers", "librosa", "soxr")

Floats = NDArray[np.floating]


@dataclass(frozen=True)
class _Task:
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

    def only(self, kept: Sequence[int]) -> _Task:
        """The task with some of its rows."""
        gains = None if self.gains is None else [self.gains[index] for index in kept]
        return _Task(self.name, [self.rows[index] for index in kept], gains, self.settings)


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
        ValueError: an unknown encoder, benchmark, task or device, or data that cannot be used (see `open_benchmark`).
    """
    if isinstance(encoder, str):
        processes = join_processes()
        with processes.one_first():
            encoder = load_encoder(encoder, device=processes.device(device))
    return evaluate_encoders(
        [encoder],
        open_benchmark(benchmark) if isinstance(benchmark, (str, Path, BenchmarkConfig)) else benchmark,
        tasks=tasks,
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
    chosen = [_open_task(task, benchmark) for task in (benchmark.tasks if tasks is None else tasks)]
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
                result, ids, scores = _score(store, encoder, task, embedded - started, run)
                if out is not None:
                    save_result(Path(out), result, ids, scores)
            results.append(result)
    return [Result.loads(text) for text in json.loads(processes.tell(json.dumps([r.dumps() for r in results])))]


def _open_task(name: str, benchmark: Benchmark) -> _Task:
    """A task whose rows were found to be good for scoring: embedding them may take hours."""
    rows = benchmark.rows(check_task(name, benchmark))
    settings: dict[str, Any] = {}
    if name == "a_tre":
        training = sum(row["split"] == "train" for row in rows)
        settings = {"seeds": [0], "max_steps": FULL_STEPS if training >= FEW_SCENES else FEW_STEPS}
    task = _Task(name, rows, _source_gains(name, rows, benchmark.amplitude_gains), settings)
    _check_rows(task)
    return task


def _check_rows(task: _Task) -> None:
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


def _find_results(
    encoders: Sequence[Encoder],
    tasks: Sequence[_Task],
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


def _find_result(encoder: Encoder, task: _Task, out: Path, run: _Run) -> Result | None:
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
    store: EmbeddingStore, encoder: Encoder, task: _Task, embed_seconds: float, run: _Run
) -> tuple[Result, list[str], dict[str, NDArray[np.float64]]]:
    """The result of a task whose clips are in the store, the ids of its samples and their scores."""
    task, embeddings, skipped = _valid_rows(store, task, run.skip_invalid)
    deviation = precision_deviation(encoder, run.benchmark, task.name, [clip["id"] for clip in skipped])
    started = time.perf_counter()
    if task.name == "a_coat":
        found = _score_a_coat(embeddings, task.gains)
    else:
        from audio_compositionality.metrics.a_tre.a_tre import a_tre

        scenes, splits = [row["metadata"] for row in task.rows], [row["split"] for row in task.rows]
        fit = {**task.settings, "device": run.fit_device, "progress": run.progress, "return_scores": True}
        found = a_tre(embeddings, scenes, splits, gains=task.gains, **fit)
    seconds = time.perf_counter() - started
    scores = {"score": np.asarray(found.pop("scores"), np.float64)}
    if "scores_centred" in found:
        scores["score_centred"] = np.asarray(found.pop("scores_centred"), np.float64)
    training: dict[str, list[int]] = {name: found.pop(name) for name in ("steps", "steps_centred") if name in found}
    others = run.processes.count - 1
    device = device_of(encoder) + (f" and {others} more" if others else "")
    result = Result(
        task=task.name,
        score=found.pop(task.name),
        std=found.pop("std"),
        n=found.pop("n"),
        interval=mean_interval(scores["score"]),
        controls=found,
        training=training,
        settings=task.settings,
        encoder_id=encoder.id,
        encoder_revision=encoder.revision,
        weights_sha256=store.key.weights_sha256,
        output_dim=encoder.output_dim,
        sample_rate=encoder.sample_rate,
        options=asdict(options_of(encoder)),
        front_end_version=store.key.front_end_version,
        precision_deviation=deviation,
        skipped=skipped,
        dataset=run.benchmark.source,
        fingerprint=run.benchmark.fingerprint,
        versions=_versions(),
        device=device if task.name == "a_coat" else f"{device}, fit on {run.fit_device}",
        seconds={"embed": embed_seconds, "score": seconds},
        date=datetime.now(UTC).isoformat(timespec="seconds"),
    )
    return result, _sample_ids(task), scores


def _valid_rows(store: EmbeddingStore, task: _Task, skip_invalid: bool) -> tuple[_Task, Floats, list[dict[str, str]]]:
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


def _sample_ids(task: _Task) -> list[str]:
    """The rows that have a score: all quadruples, the scenes of the test split."""
    return [row["id"] for row in task.rows if task.name == "a_coat" or row["split"] == "test"]


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


def _score_a_coat(embeddings: Floats, gains: Sequence[Sequence[float]] | None) -> dict[str, Any]:
    # The metrics import `evaluate`, which takes seconds that only the process that scores has to spend.
    from audio_compositionality.metrics.a_coat.a_coat import a_coat

    a, b, c, d = embeddings.reshape(len(embeddings) // 4, 4, -1).transpose(1, 0, 2)
    matching: dict[str, Any] = {}
    if gains is not None:
        # Level of T: the sum of the powers of its sources, each the square of its gain.
        levels = [10 * math.log10(sum(gain**2 for gain in row)) for row in gains]
        matching = {"t_size": [len(row) for row in gains], "t_level": levels}
    return a_coat(a, b, c, d, **matching, return_scores=True)


def _versions() -> dict[str, str]:
    return {"python": platform.python_version(), **{name: importlib.metadata.version(name) for name in _VERSIONS}}
