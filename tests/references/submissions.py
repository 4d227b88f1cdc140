"""Submissions for tests, made without the code that is tested where that is what is tested."""

from __future__ import annotations

import hashlib
import io
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

FILES = ("embeddings.parquet", "result.json", "samples.parquet")


class ShortEncoder:
    """Twelve energies of a clip, with a long part in common: what it answers is known and costs nothing."""

    id = "org/short"
    revision = "1"
    sample_rate = 32_000
    output_dim = 12
    paradigm = "made up"
    licence = "apache-2.0"

    def embed(self, waveforms: np.ndarray, sample_rate: int) -> np.ndarray:
        parts = np.array_split(waveforms.astype(np.float64), self.output_dim, axis=1)
        energies = np.stack([np.sqrt((part**2).mean(axis=1)) for part in parts], axis=1)
        return (100 + energies).astype(np.float32)


def sha256sum(files: Mapping[str, bytes]) -> str:
    """What `sha256sum *` prints."""
    return "".join(f"{hashlib.sha256(files[name]).hexdigest()}  {name}\n" for name in sorted(files))


def place(root: Path, files: Mapping[str, bytes], encoder: str = "org__short", task: str = "a_coat") -> Path:
    """Write the files of a submission to the folder that their hashes give."""
    folder = root / "results" / encoder / "1" / f"{task}-{hashlib.sha256(sha256sum(files).encode()).hexdigest()[:16]}"
    folder.mkdir(parents=True)
    for name, content in files.items():
        (folder / name).write_bytes(content)
    return folder


def with_json(files: Mapping[str, bytes], **changes: Any) -> dict[str, bytes]:
    """The same submission with other fields in its result."""
    values = json.loads(files["result.json"]) | changes
    return {**files, "result.json": json.dumps(values).encode()}


def with_table(files: Mapping[str, bytes], name: str, table: pa.Table, **options: Any) -> dict[str, bytes]:
    """The same submission with another table in one of its Parquet files."""
    stream = io.BytesIO()
    pq.write_table(table, stream, **options)
    return {**files, name: stream.getvalue()}


def with_samples(files: Mapping[str, bytes], **columns: Any) -> dict[str, bytes]:
    """The same submission with other samples."""
    table = pq.read_table(io.BytesIO(files["samples.parquet"]))
    for name, values in columns.items():
        table = table.set_column(table.column_names.index(name), name, pa.array(values))
    return with_table(files, "samples.parquet", table)


def embeddings_table(ids: list[str], values: np.ndarray, metadata: Mapping[Any, Any]) -> pa.Table:
    """The table of `embeddings.parquet`, values being float16 [clips, dim]."""
    vectors = pa.FixedSizeListArray.from_arrays(pa.array(np.ascontiguousarray(values).reshape(-1)), values.shape[1])
    return pa.table({"id": ids, "embedding": vectors}).replace_schema_metadata(dict(metadata))


def read_embeddings(files: Mapping[str, bytes]) -> tuple[list[str], np.ndarray, dict[bytes, bytes]]:
    """Ids, float16 [clips, dim] and metadata of `embeddings.parquet`."""
    table = pq.read_table(io.BytesIO(files["embeddings.parquet"]))
    values = np.stack(table["embedding"].to_numpy())
    return table["id"].to_pylist(), values, table.schema.metadata


def with_embeddings(
    files: Mapping[str, bytes],
    ids: list[str] | None = None,
    values: np.ndarray | None = None,
    metadata: Mapping[Any, Any] | None = None,
    **options: Any,
) -> dict[str, bytes]:
    """The same submission with other embeddings."""
    old = read_embeddings(files)
    table = embeddings_table(
        old[0] if ids is None else ids, old[1] if values is None else values, old[2] if metadata is None else metadata
    )
    plain = {"compression": "none", "use_dictionary": False, "write_statistics": False}
    return with_table(files, "embeddings.parquet", table, **plain | options)
