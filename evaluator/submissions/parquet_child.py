"""The child process of `parquet_reader`, which reads strangers' Parquet: a script that imports nothing of the project.

It takes requests from its standard input and answers on its standard output, until that input ends. A request is one
letter for the kind of file (`EMBEDDINGS` or `SAMPLES`), the file's size as an unsigned 64-bit number, and the file. The
answer is `READ` or `REFUSED`, the size of what follows, and either the reason or a line of JSON with raw numbers after
it. The footer of a file is checked before any page of data is: what it promises must be what such a file holds.
"""

from __future__ import annotations

import io
import json
import signal
import struct
import sys
from typing import Any, BinaryIO

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

EMBEDDINGS, SAMPLES = b"e", b"s"
READ, REFUSED, READY = b"+", b"-", b"!"
HEAD = struct.Struct("<cQ")

MAX_ROWS = 100_000
"""Ten times the clips of the preset full."""

MAX_DIM = 8_192
"""Longest embedding. The longest that we know of has 6,144 numbers (OpenL3); a fit of A-TRE has 12 dim² weights."""

MAX_ID = 200
"""Bytes of the id of a clip or a sample."""

MEMORY = 1_000_000_000
"""Bytes that reading may take beside what the libraries take: a file of 64 MB needs fewer than half of them."""

LONGEST = 300
"""Seconds after which the child ends itself, should its parent be gone."""

_MAX_FOOTER = 2_000_000
_MAX_ROW_GROUPS = 64
_MAX_SAMPLE_COLUMNS = 16
_MAX_SAMPLE_BYTES = 100_000_000  # uncompressed
_MAX_TEXT = 200_000  # base64 of an offset of MAX_DIM numbers


class RefusedError(ValueError):
    """A file that is not what it should be."""


def main(requests: BinaryIO, answers: BinaryIO) -> None:
    """Answer requests until there are no more."""
    # Arrow would import it with the first file, which takes longer than to read the file, and make no use of it.
    sys.modules["pandas"] = None  # type: ignore[assignment]
    limit_resources()
    answers.write(READY)
    answers.flush()
    while len(head := requests.read(HEAD.size)) == HEAD.size:
        kind, size = HEAD.unpack(head)
        content = requests.read(size)
        if hasattr(signal, "alarm"):
            signal.alarm(LONGEST)
        spent = False
        try:
            status, body = READ, read(kind, content)
        except MemoryError:
            status, body, spent = REFUSED, b"it takes more memory to read than any such file needs", True
        except (RefusedError, ValueError, OSError, KeyError, IndexError, TypeError, NotImplementedError) as error:
            status, body = REFUSED, " ".join(str(error).split())[:1_000].encode("utf-8", "replace")
        answers.write(HEAD.pack(status, len(body)) + body)
        answers.flush()
        if spent:
            return
        if hasattr(signal, "alarm"):
            signal.alarm(0)


def limit_resources() -> None:
    """No more memory than reading needs, no file written, no core dumped, as far as the system has such limits."""
    try:
        import resource
    except ImportError:
        return
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))
    try:
        with open("/proc/self/statm", encoding="ascii") as stream:
            taken = int(stream.read().split()[0]) * resource.getpagesize()
    except OSError:
        return
    resource.setrlimit(resource.RLIMIT_AS, (taken + MEMORY, taken + MEMORY))


def read(kind: bytes, content: bytes) -> bytes:
    """The answer for a file: a line of JSON, and the numbers as raw bytes.

    Raises:
        RefusedError, or one of Arrow's errors: the file is not what it should be.
    """
    if content[:4] != b"PAR1" or content[-4:] != b"PAR1" or len(content) < 12:
        raise RefusedError("it is no Parquet file, or not all of one")
    footer = int.from_bytes(content[-8:-4], "little")
    if footer > min(_MAX_FOOTER, len(content) - 12):
        raise RefusedError(f"its footer has {footer:,} bytes, more than there can be")
    limits = {"thrift_string_size_limit": _MAX_FOOTER, "thrift_container_size_limit": MAX_ROWS}
    # A text that thousands of rows share is not multiplied before its length is known.
    shared = ["id"] if kind == SAMPLES else []
    with pq.ParquetFile(pa.BufferReader(content), read_dictionary=shared, **limits) as file:
        check = {EMBEDDINGS: _check_embeddings, SAMPLES: _check_samples}[kind]
        _check_footer(file, len(content))
        check(file, len(content))
        table = file.read(use_threads=False)
    if table.num_rows != file.metadata.num_rows:
        raise RefusedError(f"it holds {table.num_rows:,} rows where its footer says {file.metadata.num_rows:,}")
    table.validate(full=True)
    return (_embeddings if kind == EMBEDDINGS else _samples)(table)


def _check_footer(file: pq.ParquetFile, size: int) -> None:
    metadata = file.metadata
    if not 1 <= metadata.num_rows <= MAX_ROWS:
        raise RefusedError(f"its footer says {metadata.num_rows:,} rows; 1 to {MAX_ROWS:,} can be")
    if not 1 <= metadata.num_row_groups <= _MAX_ROW_GROUPS:
        raise RefusedError(f"it has {metadata.num_row_groups:,} row groups; 1 to {_MAX_ROW_GROUPS} can be")
    groups = [metadata.row_group(place) for place in range(metadata.num_row_groups)]
    if sum(group.num_rows for group in groups) != metadata.num_rows or min(group.num_rows for group in groups) < 0:
        raise RefusedError("its footer contradicts itself: the row groups do not have the rows of the file")
    for chunk in _chunks(file):
        start = chunk.data_page_offset
        if chunk.has_dictionary_page and chunk.dictionary_page_offset is not None:
            start = min(start, chunk.dictionary_page_offset)
        if not (start >= 0 and 0 <= chunk.total_compressed_size <= size - start):
            raise RefusedError("its footer speaks of pages that are not in the file")


def _chunks(file: pq.ParquetFile, column: int | None = None) -> list[Any]:
    metadata = file.metadata
    columns = range(metadata.num_columns) if column is None else [column]
    return [metadata.row_group(group).column(k) for group in range(metadata.num_row_groups) for k in columns]


def _check_embeddings(file: pq.ParquetFile, size: int) -> None:
    schema = file.schema_arrow
    if schema.names != ["id", "embedding"] or file.metadata.num_columns != 2:
        raise RefusedError(f"its columns are {_listed(schema.names)}; they should be id, embedding")
    kind = schema.field("embedding").type
    good = pa.types.is_fixed_size_list(kind) and kind.value_type == pa.float16()
    if schema.field("id").type != pa.string() or not good:
        raise RefusedError("its columns have other types than string and fixed_size_list<halffloat>")
    if not 1 <= kind.list_size <= MAX_DIM:
        raise RefusedError(f"its embeddings have {kind.list_size:,} numbers each; 1 to {MAX_DIM:,} can be")
    for chunk in _chunks(file):
        if chunk.compression != "UNCOMPRESSED" or chunk.has_dictionary_page:
            raise RefusedError("it is compressed or has dictionaries, which embeddings must not")
        if not 0 <= chunk.total_uncompressed_size <= size or not set(chunk.encodings) <= {"PLAIN", "RLE"}:
            raise RefusedError("its pages claim to be larger than the file, or are encoded in another way than PLAIN")
    values = sum(chunk.num_values for chunk in _chunks(file, 1))
    if values != file.metadata.num_rows * kind.list_size or 2 * values > size:
        raise RefusedError(f"its footer says {values:,} numbers, which do not fit its rows, its dim or its size")


def _check_samples(file: pq.ParquetFile, _size: int) -> None:
    schema = file.schema_arrow
    if not 2 <= len(schema) <= _MAX_SAMPLE_COLUMNS or file.metadata.num_columns != len(schema):
        raise RefusedError(f"it has {len(schema):,} columns, which no samples have")
    if len(set(schema.names)) != len(schema) or schema.names[0] != "id":
        raise RefusedError(f"its columns are {_listed(schema.names)}; the first should be id, and no two the same")
    text = pa.dictionary(pa.int32(), pa.string())
    if schema.field("id").type != text or any(field.type != pa.float64() for field in list(schema)[1:]):
        raise RefusedError("its columns have other types than string (id) and double")
    for chunk in _chunks(file):
        if chunk.compression not in ("UNCOMPRESSED", "SNAPPY"):
            raise RefusedError(f"it is compressed by {str(chunk.compression)[:20]}; SNAPPY or nothing can be read")
        if not 0 <= chunk.num_values <= file.metadata.num_rows:
            raise RefusedError("its footer contradicts itself: a column has more values than rows")
    claimed = [chunk.total_uncompressed_size for chunk in _chunks(file)]
    if min(claimed) < 0 or sum(claimed) > _MAX_SAMPLE_BYTES:
        raise RefusedError(f"it expands to {sum(claimed):,} bytes; at most {_MAX_SAMPLE_BYTES:,} can be")


def _embeddings(table: pa.Table) -> bytes:
    column = table["embedding"].combine_chunks()
    values = column.flatten()
    if column.null_count or values.null_count or len(values) != len(table) * column.type.list_size:
        raise RefusedError("some of its embeddings are null")
    metadata = table.schema.metadata or {}
    if set(metadata) != {b"offset", b"scale"} or max(map(len, metadata.values())) > _MAX_TEXT:
        raise RefusedError("its metadata are not offset and scale")
    head = {"ids": _ids(table), "dim": column.type.list_size} | {
        name: metadata[name.encode()].decode("ascii") for name in ("offset", "scale")
    }
    return _answer(head, values.to_numpy(zero_copy_only=False).astype("<f2", copy=False).tobytes())


def _samples(table: pa.Table) -> bytes:
    names = table.column_names[1:]
    if any(table[name].null_count for name in names):
        raise RefusedError("some of its numbers are null")
    metadata = table.schema.metadata or {}
    fingerprint = metadata.get(b"fingerprint", b"")[:100].decode("ascii")
    values = np.stack([table[name].to_numpy() for name in names]).astype("<f8", copy=False)
    return _answer({"ids": _ids(table), "columns": names, "fingerprint": fingerprint}, values.tobytes())


def _ids(table: pa.Table) -> list[str]:
    ids = table["id"]
    texts = [chunk.dictionary if pa.types.is_dictionary(chunk.type) else chunk for chunk in ids.chunks]
    if ids.null_count or max(pc.max(pc.binary_length(text)).as_py() or 0 for text in texts) > MAX_ID:
        raise RefusedError(f"its ids are not texts of at most {MAX_ID} bytes")
    found: list[str] = ids.to_pylist()
    return found


def _answer(head: dict[str, Any], numbers: bytes) -> bytes:
    stream = io.BytesIO()
    stream.write(json.dumps(head).encode("ascii") + b"\n")
    stream.write(numbers)
    return stream.getvalue()


def _listed(names: list[str]) -> str:
    return ", ".join(ascii(name)[:40] for name in names[:8])


if __name__ == "__main__":
    main(sys.stdin.buffer, sys.stdout.buffer)
