"""Entries of a results repository, made up; their folders are named without the code that is tested."""

from __future__ import annotations

import io
import json
import re
from collections.abc import Mapping
from hashlib import sha256
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from scipy import stats
from submissions import sha256sum

from audio_compositionality.evaluator.submissions.record import verification_files
from audio_compositionality.evaluator.results.result import Result
from audio_compositionality.evaluator.submissions.verification import Difference, Verification

FINGERPRINT = "ab" * 32

_CONTROLS: Mapping[str, Mapping[str, Any]] = {
    "a_coat": {"null": 0.1, "matched_null": 0.12, "adjusted": 0.2, "top1": 0.2, "step_variance_1": 0.4},
    "a_tre": {"seed_std": 0.001, "constant": 0.8, "gain": 0.1, "ridge_r2": 0.3, "ridge_r2_null": 0.01, "top1": 0.25},
}


def scores(number: int, n: int) -> np.ndarray:
    """Scores [n] within (-1, 1), alike between numbers; the greater the number, the higher."""
    shared, own = np.random.default_rng(0).normal(size=n), np.random.default_rng(number + 1).normal(size=n)
    return np.tanh(0.3 * shared + 0.3 * own + 0.15 * number - 0.2)


def made_up(
    encoder: str,
    number: int = 0,
    task: str = "a_coat",
    ids: list[str] | None = None,
    embeddings: bytes | None = None,
    **changes: Any,
) -> dict[str, bytes]:
    """The files of an entry: made-up scores of samples with these ids, and fields of the result changed."""
    ids = ids or [f"q{k}" for k in range(12)]
    values = scores(number, len(ids))
    columns = {"score": values, "score_centred": np.tanh(values - 0.1)}
    if task == "a_coat":
        points = np.random.default_rng(number).normal(size=(4, len(ids)))
        columns |= dict(zip(("ab_1", "ab_2", "cd_1", "cd_2"), points, strict=True))
    centred = {"a_coat": "centred", "a_tre": "a_tre_centred"}[task]
    mean = float(values.mean())
    half = float(stats.t.ppf(0.975, len(ids) - 1) * values.std(ddof=1) / len(ids) ** 0.5)
    result = {
        "schema_version": 4,
        "task": task,
        "score": mean,
        "std": float(values.std(ddof=1)),
        "n": len(ids),
        "interval": [mean - half, mean + half],
        "controls": {**_CONTROLS[task], centred: float(columns["score_centred"].mean())},
        "training": {},
        "settings": {} if task == "a_coat" else {"seeds": [0, 1, 2], "max_steps": 600},
        "encoder_id": encoder,
        "encoder_revision": "1",
        "weights_sha256": None,
        "output_dim": 8 * (number + 1),
        "sample_rate": 16_000,
        "parameters": None,
        "paradigm": None,
        "licence": None,
        "options": {"layer": None, "pooling": None, "precision": "float32", "compile": False},
        "front_end_version": 1,
        "precision_deviation": None,
        "skipped": [],
        "dataset": "mini",
        "fingerprint": FINGERPRINT,
        "versions": {"python": "3.11"},
        "device": "cpu",
        "seconds": {"embed": 1.0},
        "date": "2026-01-01T00:00:00+00:00",
        **changes,
    }
    table = pa.table({"id": ids, **columns}).replace_schema_metadata({"fingerprint": result["fingerprint"]})
    stream = io.BytesIO()
    pq.write_table(table, stream)
    files = {"result.json": json.dumps(result).encode(), "samples.parquet": stream.getvalue()}
    return files if embeddings is None else {**files, "embeddings.parquet": embeddings}


def folder(files: Mapping[str, bytes], kind: str = "results") -> str:
    """Path of the folder that belongs to the files of an entry."""
    result = json.loads(files["result.json"])
    id = sha256(sha256sum(files).encode()).hexdigest()[:16]
    encoder = re.sub(r"[^\w.+=@-]+", "_", result["encoder_id"].replace("/", "__"))
    return f"{kind}/{encoder}/{result['encoder_revision']}/{result['task']}-{id}"


def below(path: str, files: Mapping[str, bytes]) -> dict[str, bytes]:
    """Files in a folder, by their path."""
    return {f"{path}/{name}": content for name, content in files.items()}


def entry(*arguments: Any, **changes: Any) -> dict[str, bytes]:
    """`made_up` files by their paths in the repository."""
    files = made_up(*arguments, **changes)
    return below(folder(files), files)


def verification(
    files: Mapping[str, bytes], score: float | None = None, submitter: str | None = None
) -> dict[str, bytes]:
    """What a checker that found this score, or the reported one, writes for the files of an entry, by path."""
    result = Result.loads(files["result.json"].decode())
    found = result if score is None else Result(**{**vars(result), "score": score})
    table = pq.read_table(io.BytesIO(files["samples.parquet"]))
    checked = Verification(
        id=sha256(sha256sum(files).encode()).hexdigest()[:16],
        result=result,
        digests={name: sha256(content).hexdigest() for name, content in files.items()},
        recomputed=found,
        samples=table,
        differences=(Difference("score", result.score, found.score, 1.0),),
        problems=(),
        interval=(found.score - 0.01, found.score + 0.01),
    )
    return below(folder(files, "verified"), verification_files(checked, submitter=submitter))
