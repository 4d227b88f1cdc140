"""Safe file names, atomic writing, digests, the cache folder and a lock."""

from __future__ import annotations

import contextlib
import errno
import hashlib
import io
import json
import os
import platform
import re
import shutil
import stat
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import cache
from importlib import resources
from pathlib import Path
from typing import Any

import filelock


def open_file(path: Path) -> io.BufferedReader:
    """Return a regular file, opened for reading.

    Anything else is refused: a pipe would wait for ever, and a device may have no end.

    Raises:
        OSError: it cannot be read, or is not a regular file.
    """
    at_once = getattr(os, "O_NONBLOCK", 0)
    stream = open(path, "rb", opener=lambda name, flags: os.open(name, flags | at_once))  # noqa: SIM115
    if not stat.S_ISREG(os.fstat(stream.fileno()).st_mode):
        stream.close()
        raise OSError(errno.EINVAL, "it is not a regular file", str(path))
    return stream


def read_file(path: Path) -> bytes:
    """Return the content of a file; see `open_file`."""
    with open_file(path) as stream:
        return stream.read()


def safe_file_name(text: str) -> str:
    """Return a name for a folder: ``/`` becomes ``__``, and any other unsafe character ``_``."""
    name = re.sub(r"[^\w.+=@-]+", "_", text.replace("/", "__"))
    return name if name.strip(".") else f"_{name}"


def write_whole(path: Path, content: bytes | str) -> None:
    """Write a file, and its folder if needed; the file gets its name once all of it is on the disk.

    Args:
        path: path of the file; an existing file is replaced. A device or a pipe, e.g. ``/dev/stdout``, is written into.
        content: text is written as UTF-8 with its own line ends; half of a surrogate pair as ``\\ud800``.
    """
    write_together({path: content})


def write_together(files: Mapping[Path, bytes | str]) -> None:
    """Write several files: all are on the disk under temporary names before the first is renamed, in the given order.

    Args:
        files: content by path, see `write_whole`.
    """
    contents = {
        path: content.encode("utf-8", "backslashreplace") if isinstance(content, str) else content
        for path, content in files.items()
    }
    partials = {partial_path(path): path for path in files if not _is_no_file(path)}
    try:
        for partial, path in partials.items():
            path.parent.mkdir(parents=True, exist_ok=True)
            with partial.open("wb") as stream:
                stream.write(contents[path])
                stream.flush()
                os.fsync(stream.fileno())
        for path in contents.keys() - set(partials.values()):
            path.write_bytes(contents[path])
        for partial, path in partials.items():
            partial.replace(path)
    except OSError as error:
        # If the disk is full, the system's error has no file name.
        error.filename = error.filename or str(path)
        raise
    finally:
        for partial in partials:
            partial.unlink(missing_ok=True)


def _is_no_file(path: Path) -> bool:
    """Return whether a path is a device or a pipe; as root, writing a file there would replace it for all users."""
    return path.is_char_device() or path.is_block_device() or path.is_fifo()


def partial_path(path: Path) -> Path:
    """Return the path of a file until it is complete: in the same folder, and unique to this process."""
    return path.with_name(f".{path.name}.{platform.node()}.{os.getpid()}.partial")


def permit_as_new(path: Path) -> None:
    """Give a file the permissions of a new file: some libraries make theirs readable for the user alone."""
    # A process's mask cannot be read without changing it for all threads, so it is read from a new file.
    probe = partial_path(path.with_name(f"{path.name}.mode"))
    try:
        probe.touch()
        path.chmod(stat.S_IMODE(probe.stat().st_mode))
    finally:
        probe.unlink(missing_ok=True)


def remove_partial_files(folder: Path) -> None:
    """Remove the partial files (`partial_path`) that this machine's ended processes left in a folder."""
    for partial in folder.glob(f".*.{platform.node()}.*.partial"):
        number = partial.name.split(".")[-2]
        if number.isdigit() and not _is_running(int(number)):
            if partial.is_dir():
                shutil.rmtree(partial, ignore_errors=True)
                continue
            with contextlib.suppress(FileNotFoundError):
                partial.unlink()


def _is_running(process: int) -> bool:
    if sys.platform == "win32":
        # On Windows, signal 0 is Ctrl-C.
        return True
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except OSError:
        # The process belongs to another user.
        return True
    return True


def sha256_of_file(path: Path) -> str:
    """Return the SHA-256 of a file, in hexadecimal."""
    with open_file(path) as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def sha256_of(content: bytes) -> str:
    """Return the SHA-256 of bytes, in hexadecimal."""
    return hashlib.sha256(content).hexdigest()


def sha256_of_json(value: Any) -> str:
    """Return the SHA-256 of a JSON value, in hexadecimal, independent of the order of its keys."""
    return sha256_of(json.dumps(value, sort_keys=True).encode())


@cache
def packaged_yaml(package: str, name: str) -> Any:
    """Return the value of a YAML file in a package; it is cached and must not be changed."""
    import yaml

    return yaml.safe_load(resources.files(package).joinpath(name).read_text("utf-8"))


CACHE_VARIABLE = "AUDIO_COMPOSITIONALITY_CACHE"


def cache_folder() -> Path:
    """Return the folder for files that can be downloaded or computed again.

    It is `AUDIO_COMPOSITIONALITY_CACHE`, or by default `audio-compositionality` in the user's cache: `$XDG_CACHE_HOME`
    or `~/.cache` (XDG Base Directory Specification 0.8).
    """
    named = os.environ.get(CACHE_VARIABLE)
    if named:
        return Path(named).expanduser()
    home = os.environ.get("XDG_CACHE_HOME")
    return (Path(home) if home else Path.home() / ".cache") / "audio-compositionality"


@contextmanager
def locked(path: Path) -> Iterator[bool]:
    """Hold a lock file and yield whether it was free; the lock ends with the process, even if it is killed."""
    lock = filelock.FileLock(path)
    try:
        lock.acquire(timeout=0)
    except filelock.Timeout:
        yield False
        return
    try:
        yield True
    finally:
        lock.release()
