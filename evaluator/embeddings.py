"""Embeddings of a benchmark as files: one Parquet file a task, and what they are embeddings of."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from audio_compositionality.dataset_builder import AUDIO_COLUMNS, Benchmark
from audio_compositionality.encoders import Encoder

from .evaluation import embed_task
from .result import ResultError, partial_path

KEY_NAME = "embeddings.json"


def write_embeddings(
    encoder: Encoder,
    benchmark: Benchmark,
    out: str | Path,
    *,
    tasks: Sequence[str] | None = None,
    batch_size: int | None = None,
    force: bool = False,
    progress: bool = True,
) -> list[Path]:
    """Write the embeddings of every clip to ``<out>/<task>.parquet``, columns ``id`` and ``embedding`` (float32).

    ``<out>/embeddings.json`` says of what: encoder, revision, data, fingerprint. A task whose file is there is not
    computed again; a folder with other embeddings is refused.

    Returns:
        the path of each task's file.

    Raises:
        ResultError: ``out`` holds something else, and ``force`` is not given.
    """
    folder = Path(out)
    key = {
        "encoder_id": encoder.id,
        "encoder_revision": encoder.revision,
        "output_dim": encoder.output_dim,
        "fingerprint": benchmark.fingerprint,
    }
    if folder.exists() and not folder.is_dir():
        raise ResultError(f"{folder} is a file; give a folder")
    folder.mkdir(parents=True, exist_ok=True)
    key_path = folder / KEY_NAME
    if any(folder.iterdir()) and not force and _read_key(key_path) != key:
        raise ResultError(
            f"{folder} holds something other than embeddings of {encoder.id} of these data; give another folder, or "
            "--force to replace them"
        )
    if _read_key(key_path) != key:
        for task in benchmark.tasks:
            (folder / f"{task}.parquet").unlink(missing_ok=True)
    key_path.write_text(json.dumps(key, indent=1) + "\n", "utf-8")
    paths = []
    for task in benchmark.tasks if tasks is None else tasks:
        path = folder / f"{task}.parquet"
        paths.append(path)
        if path.exists() and not force:
            continue
        embeddings = embed_task(encoder, benchmark, task, batch_size=batch_size, progress=progress)
        vectors = pa.FixedSizeListArray.from_arrays(pa.array(embeddings.reshape(-1)), encoder.output_dim)
        partial = partial_path(path)
        pq.write_table(pa.table({"id": clip_ids(benchmark, task), "embedding": vectors}), partial)
        partial.replace(path)
    return paths


def clip_ids(benchmark: Benchmark, task: str) -> list[str]:
    """The id of every clip of a task, in the order of the embeddings."""
    return [f"{row['id']}/{column}" for row in benchmark.rows(task) for column in AUDIO_COLUMNS[task]]


def _read_key(path: Path) -> dict[str, object] | None:
    try:
        key = json.loads(path.read_text("utf-8"))
    except (OSError, ValueError):
        return None
    return key if isinstance(key, dict) else None
