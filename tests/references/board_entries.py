"""Entries of a results repository, made up; their folders are named without the code that is tested."""

from __future__ import annotations

import csv
import io
import json
import re
from collections.abc import Mapping
from hashlib import sha256
from typing import Any

import numpy as np
from submissions import sha256sum, written

from audio_compositionality.evaluator.compare.statistics import mean_intervals
from audio_compositionality.evaluator.results.result import Result, SampleTable
from audio_compositionality.evaluator.submissions.verification import Verification, verification_files
from audio_compositionality.tasks.registry import load_task

FINGERPRINT = "ab" * 32

SECRET = "the secret of a Space, for tests only"


def scores(number: int, n: int) -> np.ndarray:
    """Scores [n] within (-1, 1), alike between numbers; the greater the number, the higher."""
    shared, noise = np.random.default_rng(0).normal(size=n), np.random.default_rng(number + 1).normal(size=n)
    return np.tanh(0.3 * shared + 0.3 * noise + 0.15 * number - 0.2)


def made_up(
    encoder: str,
    number: int = 0,
    task: str = "a_coat",
    ids: list[str] | None = None,
    embeddings: bytes | None = None,
    model: Mapping[str, Any] | None = None,
    measures: Mapping[str, Any] | None = None,
    values: np.ndarray | None = None,
    clusters: np.ndarray | None = None,
    **changes: Any,
) -> dict[str, bytes]:
    """The files of an entry: made-up scores of samples with these ids, and fields of the result changed.

    With `values` [n] all measures by sample are these, with the intervals that samples of these `clusters` [n] have.
    """
    if values is not None:
        ids = ids or [f"q{k}" for k in range(len(values))]
    ids = ids or [f"q{k}" for k in range(12)]
    info = load_task(task).info
    sampled = {measure.name: measure.column for measure in info.sampled}
    columns = {
        measure.column: np.clip(np.tanh(scores(number, len(ids)) - 0.1 * k), *measure.range)
        for k, measure in enumerate(info.sampled)
    }
    if values is not None:
        columns = dict.fromkeys(columns, values)
    stream = io.StringIO()
    writer = csv.writer(stream, lineterminator="\n")
    written_columns = columns if clusters is None else {**columns, "cluster": clusters.astype(float)}
    writer.writerow(["id", *written_columns])
    writer.writerows(zip(ids, *(column.tolist() for column in written_columns.values()), strict=True))
    samples = stream.getvalue().encode()
    means = {name: float(columns[column].mean()) for name, column in sampled.items()}
    intervals = {name: [mean - 0.02, mean + 0.02] for name, mean in means.items()}
    if values is not None:
        (ends,) = mean_intervals(values[:, None], np.arange(len(values)) if clusters is None else clusters)
        intervals = dict.fromkeys(means, ends)
    others = {measure.name: 0.1 for measure in info.measures} | {"n": len(ids), info.ranks_by: 0.1 + 0.05 * number}
    flags = {"collapsed": False} if task == "a_tre" else {"degenerate": 0}
    result = {
        "schema_version": 2,
        "task": task,
        "task_version": info.version,
        "measures": {**others, **flags, **means, **(measures or {})},
        "intervals": intervals,
        "n": len(ids),
        "training": {},
        "settings": {"seeds": [0, 1, 2]} if task == "a_tre" else {},
        "model": {
            "id": encoder,
            "revision": "1",
            "sample_rate": 16_000,
            "output_dim": 8 * (number + 1),
            "weights_sha256": None,
            "parameters": None,
            "paradigm": None,
            "licence": None,
            "trained_on": None,
            "front_end_version": 1,
            "options": {"layer": None, "pooling": None, "precision": "float32", "compile": False},
            **(model or {}),
        },
        "precision_deviation": None,
        "skipped": [],
        "cut_answers": None,
        "cut_clips": 0,
        "recipe": info.recipe,
        "fingerprint": FINGERPRINT,
        "rows_digest": FINGERPRINT,
        "dataset": "mini",
        "versions": {"python": "3.11"},
        "device": "cpu",
        "seconds": {"embed": 1.0},
        "date": "2026-01-01T00:00:00+00:00",
        "samples_sha256": sha256(samples).hexdigest(),
        **changes,
    }
    files = {"result.json": written(result), "samples.csv": samples}
    return files if embeddings is None else {**files, "embeddings.safetensors": embeddings}


def folder(files: Mapping[str, bytes], kind: str = "results") -> str:
    """Path of the folder that belongs to the files of an entry."""
    result = json.loads(files["result.json"])
    model = result["model"]
    id = sha256(sha256sum(files).encode()).hexdigest()[:16]
    encoder = re.sub(r"[^\w.+=@-]+", "_", model["id"].replace("/", "__"))
    return f"{kind}/{encoder}/{model['revision']}/{result['task']}-{id}"


def below(path: str, files: Mapping[str, bytes]) -> dict[str, bytes]:
    """Files in a folder, by their path."""
    return {f"{path}/{name}": content for name, content in files.items()}


def entry(*arguments: Any, **changes: Any) -> dict[str, bytes]:
    """`made_up` files by their paths in the repository."""
    files = made_up(*arguments, **changes)
    return below(folder(files), files)


def verification(
    files: Mapping[str, bytes],
    score: float | None = None,
    submitter: str | None = None,
    secret: str | None = SECRET,
) -> dict[str, bytes]:
    """What a checker that found this score, or the reported one, writes for the files of an entry, by path."""
    result = Result.loads(files["result.json"])
    changed = {} if score is None else {next(iter(result.measures)): score}
    checked = Verification(
        id=sha256(sha256sum(files).encode()).hexdigest()[:16],
        result=result,
        digests={name: sha256(content).hexdigest() for name, content in files.items()},
        recomputed=result.model_copy(update={"measures": {**result.measures, **changed}}),
        samples=SampleTable.loads(files["samples.csv"]),
    )
    return below(folder(files, "verified"), verification_files(checked, secret=secret, submitter=submitter))
