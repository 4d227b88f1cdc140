"""Encoder × benchmark → embeddings → scores: the evaluation of one encoder."""

from __future__ import annotations

import importlib.metadata
import math
import platform
import time
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from audio_compositionality.dataset_builder import Benchmark, BenchmarkConfig, DatasetError, check_task, open_benchmark
from audio_compositionality.encoders import Encoder, embed_dataset, load_encoder
from audio_compositionality.metrics.a_coat.a_coat import a_coat
from audio_compositionality.metrics.a_tre.a_tre import a_tre

from .result import Result, ResultError, load_result, mean_interval, result_path, save_result

CPU_BATCH_SIZE, GPU_BATCH_SIZE = 4, 32
"""Clips embedded at a time. On two cores Whisper tiny.en and base embed a clip fastest in batches of 2 to 4."""

FULL_STEPS, FEW_STEPS, FEW_SCENES = 2_500, 600, 2_000
"""Training steps of A-TRE: 2,500 (20 epochs of the paper's 8,000 scenes in batches of 64, section 4.4); 600 where there
are fewer than 2,000 training scenes, as in the preset mini, whose 512 it passes 75 times."""

_VERSIONS = ("audio-compositionality", "numpy", "torch", "transformers", "librosa", "soxr")

Floats = NDArray[np.floating]


def evaluate_encoder(
    encoder: Encoder | str,
    benchmark: Benchmark | BenchmarkConfig | Path | str = "mini",
    *,
    tasks: Sequence[str] | None = None,
    batch_size: int | None = None,
    device: str | None = None,
    out: str | Path | None = None,
    force: bool = False,
    progress: bool = True,
) -> list[Result]:
    """Embed a benchmark with an encoder and score it.

    Args:
        encoder: an encoder, or anything that `load_encoder` takes.
        benchmark: a benchmark, or anything that `open_benchmark` takes.
        tasks: which of ``a_coat`` and ``a_tre``; default, all that the benchmark holds.
        batch_size: clips embedded at a time; default 4 on a CPU, 32 on a GPU. It does not change the scores beyond
            rounding.
        device: torch device of A-TRE's fits; by default CUDA where there is one, else the CPU.
        out: folder for the result files. A task is written as soon as it is done, and one that is there already for
            the same data and settings is read instead of computed.
        force: compute and replace what is there.
        progress: show progress bars.

    Returns:
        one result a task.

    Raises:
        ResultError: ``out`` holds a result of the same encoder for other data or settings.
        ValueError: an unknown encoder, benchmark or task, or data that cannot be used (see `open_benchmark`).
    """
    encoder = load_encoder(encoder) if isinstance(encoder, str) else encoder
    benchmark = open_benchmark(benchmark) if isinstance(benchmark, (str, Path, BenchmarkConfig)) else benchmark
    chosen = [check_task(task, benchmark) for task in (benchmark.tasks if tasks is None else tasks)]
    known = {} if out is None or force else find_results(encoder, benchmark, chosen, out)
    results = []
    for task in chosen:
        if task in known:
            results.append(known[task])
            continue
        rows = benchmark.rows(task)
        result, scores = _evaluate_task(encoder, benchmark, task, rows, batch_size, device, progress)
        if out is not None:
            save_result(Path(out), result, _sample_ids(task, rows), scores)
        results.append(result)
    return results


def find_results(encoder: Encoder, benchmark: Benchmark, tasks: Sequence[str], out: str | Path) -> dict[str, Result]:
    """The results of an encoder on a benchmark that a folder holds, by task.

    Raises:
        ResultError: the folder holds a result of the encoder for other data or settings, or a damaged one.
    """
    found = {}
    for task in tasks:
        path = result_path(Path(out), encoder.id, encoder.revision, task)
        if not path.exists():
            continue
        result, _ = load_result(path)
        if not result.answers(benchmark.fingerprint, _settings(task, benchmark.rows(task))):
            raise ResultError(
                f"{path} is a result for other data or settings ({result.dataset}, {result.fingerprint[:12]}; now "
                f"{benchmark.source}, {benchmark.fingerprint[:12]}): give another --out, or --force to replace it"
            )
        found[task] = result
    return found


def embed_task(encoder: Encoder, benchmark: Benchmark, task: str, *, batch_size: int | None, progress: bool) -> Floats:
    """Embeddings of all clips of a task in the benchmark's order, float32 [clips, output_dim]."""
    if batch_size is None:
        batch_size = CPU_BATCH_SIZE if _device(encoder) == "cpu" else GPU_BATCH_SIZE
    return embed_dataset(
        encoder,
        benchmark.batches(task, batch_size),
        total=benchmark.num_clips(task),
        description=f"{encoder.id}, {task}",
        progress=progress,
    )


def _evaluate_task(
    encoder: Encoder,
    benchmark: Benchmark,
    task: str,
    rows: list[dict[str, Any]],
    batch_size: int | None,
    device: str | None,
    progress: bool,
) -> tuple[Result, dict[str, NDArray[np.float64]]]:
    settings = _settings(task, rows)
    gains = _source_gains(task, rows, benchmark.amplitude_gains)
    fit_device = device or ("cuda" if torch.cuda.is_available() else "cpu")
    started = time.perf_counter()
    embeddings = embed_task(encoder, benchmark, task, batch_size=batch_size, progress=progress)
    embedded = time.perf_counter()
    if task == "a_coat":
        found = _score_a_coat(embeddings, gains)
    else:
        scenes, splits = [row["metadata"] for row in rows], [row["split"] for row in rows]
        fit: dict[str, Any] = {**settings, "device": fit_device, "progress": progress, "return_scores": True}
        found = a_tre(embeddings, scenes, splits, gains=gains, **fit)
    scored = time.perf_counter()
    scores = {"score": np.asarray(found.pop("scores"), np.float64)}
    if "scores_centred" in found:
        scores["score_centred"] = np.asarray(found.pop("scores_centred"), np.float64)
    training: dict[str, list[int]] = {name: found.pop(name) for name in ("steps", "steps_centred") if name in found}
    result = Result(
        task=task,
        score=found.pop(task),
        std=found.pop("std"),
        n=found.pop("n"),
        interval=mean_interval(scores["score"]),
        controls=found,
        training=training,
        settings=settings,
        encoder_id=encoder.id,
        encoder_revision=encoder.revision,
        output_dim=encoder.output_dim,
        sample_rate=encoder.sample_rate,
        dataset=benchmark.source,
        fingerprint=benchmark.fingerprint,
        versions=_versions(),
        device=_device(encoder) if task == "a_coat" else f"{_device(encoder)}, fit on {fit_device}",
        seconds={"embed": embedded - started, "score": scored - embedded},
        date=datetime.now(UTC).isoformat(timespec="seconds"),
    )
    return result, scores


def _settings(task: str, rows: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    if task == "a_coat":
        return {}
    training = sum(row["split"] == "train" for row in rows)
    return {"seeds": [0], "max_steps": FULL_STEPS if training >= FEW_SCENES else FEW_STEPS}


def _sample_ids(task: str, rows: Sequence[Mapping[str, Any]]) -> list[str]:
    """The rows that have a score: all quadruples, the scenes of the test split."""
    return [row["id"] for row in rows if task == "a_coat" or row["split"] == "test"]


def _source_gains(
    task: str, rows: Sequence[Mapping[str, Any]], gains: Mapping[str, float] | None
) -> list[list[float]] | None:
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
    a, b, c, d = embeddings.reshape(len(embeddings) // 4, 4, -1).transpose(1, 0, 2)
    matching: dict[str, Any] = {}
    if gains is not None:
        # Level of T: the sum of the powers of its sources, each the square of its gain.
        levels = [10 * math.log10(sum(gain**2 for gain in row)) for row in gains]
        matching = {"t_size": [len(row) for row in gains], "t_level": levels}
    return a_coat(a, b, c, d, **matching, return_scores=True)


def _device(encoder: Encoder) -> str:
    """Where an encoder computes; one that does not say so is taken to compute on the CPU."""
    return str(getattr(encoder, "device", "cpu"))


def _versions() -> dict[str, str]:
    return {"python": platform.python_version(), **{name: importlib.metadata.version(name) for name in _VERSIONS}}
