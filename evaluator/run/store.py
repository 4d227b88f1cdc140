"""Embeddings on disk: computed once, in shards, under a key that says what they are embeddings of.

A store is a folder, ``<root>/<encoder id>/<task>-<first 16 hex digits of the key's digest>``, with the key as JSON
and one Parquet file for every 64 clips. Another key is another folder, so that stored embeddings never have to be
thrown away, nor taken for others. A shard appears under its name only when it is whole and on the disk.
"""

from __future__ import annotations

import contextlib
import hashlib
import io
import json
import os
import platform
import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from audio_compositionality.encoders.base import Encoder, FloatArray
from audio_compositionality.encoders.options import DEFAULT_OPTIONS, EncoderOptions

SCHEMA_VERSION = 1
"""Of the layout of a store; it is a part of every key."""

CLIPS_PER_SHARD = 64
"""A shard holds whole rows of either task: 16 quadruples or 64 scenes."""

KEY_NAME = "_key.json"
"""Readers of a folder of Parquet files, such as `pandas.read_parquet`, leave out names that begin so."""

_METADATA_KEY = b"key"


class StoreError(ValueError):
    """Stored embeddings that cannot be used: says which file, what is wrong, and what to do."""


@dataclass(frozen=True)
class EmbeddingKey:
    """What embeddings are embeddings of: equal keys mean equal embeddings, up to rounding.

    Attributes:
        fingerprint: of the data.
        task: of the data, whose clips are embedded.
        encoder_id: see `Encoder`.
        encoder_revision: see `Encoder`.
        weights_sha256: see `StagedEncoder`.
        output_dim: length of an embedding.
        layer: see `EncoderOptions`.
        pooling: see `EncoderOptions`.
        precision: see `EncoderOptions`.
        front_end_version: see `StagedEncoder`.
    """

    fingerprint: str
    task: str
    encoder_id: str
    encoder_revision: str
    weights_sha256: str | None
    output_dim: int
    layer: int | None
    pooling: str | None
    precision: str
    front_end_version: int

    @classmethod
    def of(cls, encoder: Encoder, fingerprint: str, task: str) -> EmbeddingKey:
        """The key of an encoder's embeddings; an attribute that only `StagedEncoder` has may be absent."""
        options = options_of(encoder)
        return cls(
            fingerprint=fingerprint,
            task=task,
            encoder_id=encoder.id,
            encoder_revision=encoder.revision,
            weights_sha256=getattr(encoder, "weights_sha256", None),
            output_dim=int(encoder.output_dim),
            layer=options.layer,
            pooling=options.pooling,
            precision=options.precision,
            front_end_version=getattr(encoder, "front_end_version", 1),
        )

    def dumps(self) -> str:
        """The key as JSON text."""
        return json.dumps({"schema_version": SCHEMA_VERSION, **asdict(self)}, indent=1) + "\n"

    @cached_property
    def digest(self) -> str:
        """SHA-256 of the key as JSON with sorted names and no spaces, in hexadecimal."""
        values = {"schema_version": SCHEMA_VERSION, **asdict(self)}
        return hashlib.sha256(json.dumps(values, sort_keys=True, separators=(",", ":")).encode()).hexdigest()


def options_of(encoder: Encoder) -> EncoderOptions:
    """`StagedEncoder.options`; the default ones where an encoder has none, or calls something else so."""
    options = getattr(encoder, "options", None)
    return options if isinstance(options, EncoderOptions) else DEFAULT_OPTIONS


@dataclass(frozen=True)
class Shard:
    """The embeddings of consecutive clips.

    Attributes:
        embeddings: float32 [clips, output_dim], NaN where a clip has none.
        errors: by place in the shard, why a clip has none.
    """

    embeddings: FloatArray
    errors: Mapping[int, str]


class EmbeddingStore:
    """The embeddings of one encoder for the clips of one task, shard by shard.

    Attributes:
        key: what they are embeddings of.
        ids: of the clips, in their order.
        folder: where the shards are; None for a store in memory.
    """

    def __init__(self, root: str | Path | None, key: EmbeddingKey, ids: Sequence[str]) -> None:
        """Open a store; nothing is written before the first shard is.

        Temporary files that a process of this machine left when it was killed are removed.

        Args:
            root: folder of all stores; None keeps the shards in memory.
            key: what the embeddings are of.
            ids: of all clips, in their order.

        Raises:
            StoreError: if the folder holds another key or a damaged one, or is a file.
        """
        self.key = key
        self.ids = tuple(ids)
        self.folder: Path | None = None
        self._kept: dict[int, Shard] = {}
        if root is None:
            return
        self.folder = Path(root) / safe_file_name(key.encoder_id) / f"{key.task}-{key.digest[:16]}"
        if self.folder.exists():
            if not self.folder.is_dir():
                raise StoreError(f"{self.folder} is a file; give another folder for embeddings")
            _check_key(self.folder / KEY_NAME, key)
            _remove_leftovers(self.folder)

    @property
    def num_shards(self) -> int:
        """Shards of the whole store."""
        return -(-len(self.ids) // CLIPS_PER_SHARD)

    def clips(self, shard: int) -> range:
        """The clips of a shard, numbered from 0."""
        return range(shard * CLIPS_PER_SHARD, min((shard + 1) * CLIPS_PER_SHARD, len(self.ids)))

    def path(self, shard: int) -> Path | None:
        """The file of a shard; None in memory."""
        return None if self.folder is None else self.folder / f"{shard:05d}-of-{self.num_shards:05d}.parquet"

    def has(self, shard: int) -> bool:
        """Whether a shard is finished. Its content is looked at by `read`."""
        path = self.path(shard)
        return shard in self._kept if path is None else path.exists()

    def write(self, shard: int, content: Shard) -> None:
        """Finish a shard: a file gets its name only when all of it is on the disk.

        Its bytes depend on its content alone (and the version of pyarrow).
        """
        path = self.path(shard)
        if path is None:
            self._kept[shard] = content
            return
        key = path.parent / KEY_NAME
        if not key.exists():
            path.parent.mkdir(parents=True, exist_ok=True)
            _write_whole(key, self.key.dumps().encode())
        _write_whole(path, self._serialise(shard, content))

    def discard(self, shard: int) -> None:
        """Forget a shard, so that it is computed anew."""
        path = self.path(shard)
        if path is None:
            self._kept.pop(shard, None)
        else:
            path.unlink(missing_ok=True)

    def read(self, shard: int) -> Shard:
        """A finished shard.

        Raises:
            StoreError: if it is absent, damaged, or of another key, other clips or another shape.
        """
        path = self.path(shard)
        if path is None:
            return self._kept[shard]
        try:
            # A file given by name would be taken for a part of a larger data set.
            table = pq.read_table(io.BytesIO(path.read_bytes()))
        except FileNotFoundError as error:
            raise StoreError(f"{path} is not there") from error
        except (OSError, pa.ArrowException) as error:
            raise StoreError(f"{path} is damaged: {error}; {_REMEDY}") from error
        ids = [self.ids[clip] for clip in self.clips(shard)]
        if (table.schema.metadata or {}).get(_METADATA_KEY) != self.key.digest.encode():
            raise StoreError(f"{path} holds embeddings of another key than {path.parent / KEY_NAME} says; {_REMEDY}")
        if not table.schema.equals(self._schema):
            raise StoreError(f"{path} has the columns {_shown(table.schema)}, not {_shown(self._schema)}; {_REMEDY}")
        if table["id"].to_pylist() != ids:
            raise StoreError(f"{path} holds other clips than '{ids[0]}' to '{ids[-1]}' in this order; {_REMEDY}")
        return self._parse(path, table)

    def load(self) -> Shard:
        """All embeddings, merged in the order of the clips.

        Raises:
            StoreError: as `read`.
        """
        embeddings = np.empty((len(self.ids), self.key.output_dim), np.float32)
        errors: dict[int, str] = {}
        for shard in range(self.num_shards):
            content, clips = self.read(shard), self.clips(shard)
            embeddings[clips.start : clips.stop] = content.embeddings
            errors |= {clips.start + place: error for place, error in content.errors.items()}
        return Shard(embeddings, errors)

    @cached_property
    def _schema(self) -> pa.Schema:
        vector = pa.list_(pa.field("element", pa.float32()), self.key.output_dim)
        return pa.schema({"id": pa.string(), "embedding": vector, "error": pa.string()})

    def _serialise(self, shard: int, content: Shard) -> bytes:
        ids = [self.ids[clip] for clip in self.clips(shard)]
        expected = (len(ids), self.key.output_dim)
        if content.embeddings.shape != expected:
            raise ValueError(f"shard {shard} has shape {content.embeddings.shape}, but must have {expected}")
        errors = [content.errors.get(place) for place in range(len(ids))]
        values = np.ascontiguousarray(content.embeddings, np.float32)
        absent = np.array([error is not None for error in errors])
        values = np.where(absent[:, None], np.float32(0), values)
        vectors = pa.FixedSizeListArray.from_arrays(
            pa.array(values.reshape(-1)), type=self._schema.field("embedding").type, mask=pa.array(absent)
        )
        schema = self._schema.with_metadata({_METADATA_KEY: self.key.digest})
        table = pa.Table.from_arrays([pa.array(ids), vectors, pa.array(errors, pa.string())], schema=schema)
        buffer = io.BytesIO()
        pq.write_table(table, buffer, compression="none", use_dictionary=False, write_statistics=False)
        return buffer.getvalue()

    def _parse(self, path: Path, table: pa.Table) -> Shard:
        column = table["embedding"].combine_chunks()
        embeddings = column.values.to_numpy(zero_copy_only=False).reshape(len(table), -1).copy()
        errors = {place: error for place, error in enumerate(table["error"].to_pylist()) if error is not None}
        absent = np.flatnonzero(column.is_null().to_numpy(zero_copy_only=False)).tolist()
        if absent != list(errors):
            raise StoreError(f"{path} has embeddings and errors that do not belong together; {_REMEDY}")
        embeddings[absent] = np.nan
        present = np.delete(np.arange(len(table)), absent)
        if not np.isfinite(embeddings[present]).all():
            raise StoreError(f"{path} has values that are NaN or infinite; {_REMEDY}")
        return Shard(embeddings, errors)


_REMEDY = "delete it, or compute all shards again with --force"


def _shown(schema: pa.Schema) -> str:
    return ", ".join(f"{field.name} ({field.type})" for field in schema)


def _check_key(path: Path, key: EmbeddingKey) -> None:
    try:
        found: Any = json.loads(path.read_text("utf-8"))
    except FileNotFoundError:
        return
    except (OSError, ValueError) as error:
        raise StoreError(f"{path} is damaged: {error}; delete the folder {path.parent}") from error
    expected = json.loads(key.dumps())
    if found != expected:
        names = sorted(expected) if not isinstance(found, dict) else sorted({*found, *expected})
        other = [name for name in names if not isinstance(found, dict) or found.get(name) != expected.get(name)]
        raise StoreError(
            f"{path.parent} holds embeddings of another key (other are {', '.join(other)}); delete the folder, or give "
            "another one"
        )


def safe_file_name(text: str) -> str:
    """A name for a folder: ``/`` becomes ``__``, whatever else could lead elsewhere or be refused ``_``."""
    name = re.sub(r"[^\w.+=@-]+", "_", text.replace("/", "__"))
    return name if name.strip(".") else f"_{name}"


def _write_whole(path: Path, content: bytes) -> None:
    partial = path.with_name(f".{path.name}.{platform.node()}.{os.getpid()}.partial")
    try:
        with partial.open("wb") as stream:
            stream.write(content)
            stream.flush()
            os.fsync(stream.fileno())
        partial.replace(path)
    finally:
        partial.unlink(missing_ok=True)


def _remove_leftovers(folder: Path) -> None:
    for partial in folder.glob(f".*.{platform.node()}.*.partial"):
        number = partial.name.split(".")[-2]
        if number.isdigit() and not _is_running(int(number)):
            with contextlib.suppress(FileNotFoundError):
                partial.unlink()


def _is_running(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True
