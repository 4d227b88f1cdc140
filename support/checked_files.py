"""Files that contain the SHA-256 of their own bytes, so that damage is detected when they are read.

The file is first written with the placeholder `NO_DIGEST`, then the digest replaces it: in the first bytes of JSON, or
in the header of safetensors. The digest covers the bytes rather than their meaning, so that a library's formatting does
not matter. A file and its digest cannot be separated, and a file of any size is checked in one pass.
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
"""Placeholder in a file for the SHA-256 of its bytes."""

DIGEST = "digest"
"""The key of the digest."""

_PLACE = re.compile(rb"digest\W{1,8}([0-9a-f]{64})")

_HEAD = 4_096
"""The first bytes of a file, which contain its digest."""

_PART = 2**22


class DamagedError(ValueError):
    """A file that differs from what was written; the message begins with its path."""


class TornError(DamagedError):
    """A line that was not written completely, e.g. the last line of a killed process."""


def sealed(content: bytes) -> bytes:
    """Return the bytes with their SHA-256 in place of `NO_DIGEST` after the first ``digest``."""
    start, stop = _place_in(content)
    return content[:start] + hashlib.sha256(content).hexdigest().encode() + content[stop:]


def is_sealed(content: bytes) -> bool:
    """Return whether the bytes are an unchanged result of `sealed`."""
    start, stop = _place_in(content)
    if not stop:
        return False
    # Hash in parts, so that a shard is not copied.
    view = memoryview(content)
    digest = hashlib.sha256(view[:start])
    digest.update(NO_DIGEST.encode())
    digest.update(view[stop:])
    return digest.hexdigest().encode() == content[start:stop]


def write_sealed_file(path: Path, write: Callable[[Path], None], *, before: Path | None = None) -> None:
    """Write a file of any size with a library; it gets its name once all of it, digest included, is on the disk.

    Args:
        path: of the file, in an existing folder.
        write: writes it to another path, with `NO_DIGEST` after ``digest`` among its first bytes.
        before: path to which an existing file is moved; None overwrites it.

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
    """Raise an error if a file is not what `write_sealed_file` wrote; reads the file once.

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
    """Return an object as JSON, one value a line, beginning with its ``digest``."""
    return sealed(json.dumps({DIGEST: NO_DIGEST, **values}, indent=1, ensure_ascii=False).encode() + b"\n")


def parsed_sealed_json(content: bytes, path: Path) -> dict[str, Any]:
    """Return the values written by `sealed_json`, without the digest.

    Args:
        content: content of the file.
        path: path of the file, for the message.

    Raises:
        DamagedError: the file differs from what was written.
    """
    if not is_sealed(content):
        raise DamagedError(_damaged(path, content))
    values: dict[str, Any] = json.loads(content)
    del values[DIGEST]
    return values


def sealed_line(values: Any, belongs_to: str) -> bytes:
    """Return a JSON line ``[digest, text]`` for files to which lines are appended; the text is the values as JSON.

    Args:
        values: JSON values.
        belongs_to: the context of the line, included in the digest.
    """
    text = json.dumps(values, allow_nan=False)
    return json.dumps([_line_digest(text, belongs_to), text]).encode() + b"\n"


def parsed_line(line: bytes, belongs_to: str) -> Any:
    """Return the values of a line written by `sealed_line`.

    Raises:
        TornError: the line is not complete.
        DamagedError: the line was changed or belongs to another context.
    """
    try:
        parts = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise TornError(f"this line cannot be read: {first_line(error)}") from error
    if not isinstance(parts, list) or list(map(type, parts)) != [str, str]:
        raise TornError("this line cannot be read: it is not a digest and a text")
    digest, text = parts
    if digest != _line_digest(text, belongs_to):
        raise DamagedError("its digest does not match its text")
    return json.loads(text)


def digests_of(folder: Path, files: Iterable[Path]) -> dict[str, str]:
    """Return the SHA-256 of files by their path relative to a folder, in the order of the paths."""
    return {file.relative_to(folder).as_posix(): sha256_of_file(file) for file in sorted(files)}


def _line_digest(text: str, belongs_to: str) -> str:
    return hashlib.sha256(f"{belongs_to} {text}".encode("utf-8", "surrogatepass")).hexdigest()


def _place_in(content: bytes) -> tuple[int, int]:
    """Return the position of the digest; (0, 0) if there is none."""
    place = _PLACE.search(content)
    return (0, 0) if place is None else place.span(1)


def _damaged(path: Path, content: bytes) -> str:
    states = "its SHA-256 does not match the one that it contains"
    if _place_in(content) == (0, 0):
        states = "it contains no SHA-256, unlike files of this version"
    return f"{path} is damaged: it differs from what was written ({states})"
