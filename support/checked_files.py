"""Files that are read back: each states the SHA-256 of its own bytes, so that damage is detected and reported.

The digest stands in the file itself, in place of the `NO_DIGEST` with which the rest was written: in the first bytes of
JSON, or of the header of safetensors. It is of the bytes and not of their meaning, so that the formatting of a
library's release plays no part. A file and its digest cannot be separated, and a file of any size is checked in one
pass.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

from .files import open_file, partial_path, permit_as_new, sha256_of_file
from .text import first_line

NO_DIGEST = "0" * 64
"""Placeholder in the bytes of a file for the SHA-256 of these bytes."""

DIGEST = "digest"
"""The key of the digest."""

_PLACE = re.compile(rb"digest\W{1,8}([0-9a-f]{64})")

_HEAD = 4_096
"""Bytes at the beginning of a file that contain its digest."""

_PART = 2**22


class DamagedError(ValueError):
    """A file that differs from what was written; the text begins with its path."""


class TornError(DamagedError):
    """A line that was not written whole, such as the last one of a killed process."""


def sealed(content: bytes) -> bytes:
    """Bytes with their SHA-256 in its reserved place, after the first ``digest``."""
    start, stop = _place_in(content)
    return content[:start] + hashlib.sha256(content).hexdigest().encode() + content[stop:]


def is_sealed(content: bytes) -> bool:
    """Whether bytes are a result of `sealed`, to the last bit."""
    start, stop = _place_in(content)
    if not stop:
        return False
    # In parts, so that a shard is not copied.
    view = memoryview(content)
    digest = hashlib.sha256(view[:start])
    digest.update(NO_DIGEST.encode())
    digest.update(view[stop:])
    return digest.hexdigest().encode() == content[start:stop]


def write_sealed_file(path: Path, write: Callable[[Path], None], *, before: Path | None = None) -> None:
    """Write a file of any size with a library; it gets its name when all of it, with its digest, is on the disk.

    Args:
        path: of the file, in an existing folder.
        write: writes it to another path, with `NO_DIGEST` after ``digest`` among its first bytes.
        before: path to which an existing file is moved; None replaces it.

    Raises:
        OSError: it cannot be written.
    """
    partial = partial_path(path)
    try:
        write(partial)
        permit_as_new(partial)
        with partial.open("rb+") as stream:
            start, _ = _place_in(stream.read(_HEAD))
            stream.seek(0)
            digest = hashlib.file_digest(stream, "sha256").hexdigest()
            stream.seek(start)
            stream.write(digest.encode())
            stream.flush()
            os.fsync(stream.fileno())
        if before is not None and path.exists():
            path.replace(before)
        partial.replace(path)
    finally:
        partial.unlink(missing_ok=True)


def check_sealed_file(path: Path) -> None:
    """Refuse a file of any size that `write_sealed_file` did not write, in one pass over it.

    Raises:
        DamagedError: the file differs from what was written.
        OSError: it cannot be read.
    """
    with open_file(path) as stream:
        head = stream.read(_HEAD)
        start, stop = _place_in(head)
        digest = hashlib.sha256(head[:start])
        digest.update(NO_DIGEST.encode())
        digest.update(head[stop:])
        while part := stream.read(_PART):
            digest.update(part)
    if not stop or digest.hexdigest().encode() != head[start:stop]:
        raise DamagedError(_damaged(path, head))


def sealed_json(values: Mapping[str, Any]) -> bytes:
    """JSON of an object, in lines, whose first value is its ``digest``."""
    return sealed(json.dumps({DIGEST: NO_DIGEST, **values}, indent=1, ensure_ascii=False).encode() + b"\n")


def parsed_sealed_json(content: bytes, path: Path) -> dict[str, Any]:
    """The values of `sealed_json`, without the digest.

    Args:
        content: of the file.
        path: of the file, for the message.

    Raises:
        DamagedError: the file differs from what was written.
    """
    if not is_sealed(content):
        raise DamagedError(_damaged(path, content))
    values: dict[str, Any] = json.loads(content)
    del values[DIGEST]
    return values


def sealed_line(values: Any, belongs_to: str) -> bytes:
    """A line of JSON, ``[digest, text]``, for files to which lines are appended: the text is JSON of the values.

    Args:
        values: JSON values.
        belongs_to: the context of the line, included in the digest.
    """
    text = json.dumps(values, allow_nan=False)
    return json.dumps([_line_digest(text, belongs_to), text]).encode() + b"\n"


def parsed_line(line: bytes, belongs_to: str) -> Any:
    """The values of a line that `sealed_line` wrote.

    Raises:
        TornError: it is not such a line.
        DamagedError: it was changed, or is from another context.
    """
    try:
        parts = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise TornError(f"it is not a line of this file: {first_line(error)}") from error
    if not isinstance(parts, list) or list(map(type, parts)) != [str, str]:
        raise TornError("it is not a line of this file: it is not a digest and a text")
    digest, text = parts
    if digest != _line_digest(text, belongs_to):
        raise DamagedError("its digest is not that of its text")
    return json.loads(text)


def digests_of(folder: Path, files: Iterable[Path]) -> dict[str, str]:
    """SHA-256 of files by their paths relative to a folder, in the order of these."""
    return {file.relative_to(folder).as_posix(): sha256_of_file(file) for file in sorted(files)}


def _line_digest(text: str, belongs_to: str) -> str:
    return hashlib.sha256(f"{belongs_to} {text}".encode("utf-8", "surrogatepass")).hexdigest()


def _place_in(content: bytes) -> tuple[int, int]:
    """The place of the digest; (0, 0) where there is none."""
    place = _PLACE.search(content)
    return (0, 0) if place is None else place.span(1)


def _damaged(path: Path, content: bytes) -> str:
    states = "its SHA-256 is not the one that it states"
    if _place_in(content) == (0, 0):
        states = "it states no SHA-256, unlike files of this version"
    return f"{path} is damaged: it is not what was written ({states})"
