"""Parquet from strangers, read in a child process: a file that crashes, fills or hangs Arrow is refused, and no more.

The child has a limit on its memory and on its time, nothing open but its two pipes, and of the environment only what it
needs to start: no token. What it answers is checked again. See `parquet_child` for what it refuses.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from pathlib import Path
from types import TracebackType
from typing import Any

import numpy as np
import pyarrow as pa

from . import parquet_child
from .parquet_child import EMBEDDINGS, HEAD, MAX_DIM, MAX_ROWS, READ, READY, REFUSED, SAMPLES
from audio_compositionality.evaluator.results.result import ResultError
from .rounded import RoundedEmbeddings
from audio_compositionality.evaluator.compare.table import plain

TIMEOUT = 60.0
"""Seconds for one file. The largest that there can be takes about one."""

START_TIMEOUT = 120.0
"""Seconds until the child is there: Python, NumPy and Arrow from a disk that has not read them yet."""

MAX_MESSAGE = 300
"""Characters of what is told of a stranger's file."""

_MAX_ANSWER = 200_000_000
_KEPT = ("PATH", "SYSTEMROOT", "PYTHONHOME", "PYTHONPATH", "LD_LIBRARY_PATH", "DYLD_LIBRARY_PATH")
_LIMITED = {
    "ARROW_DEFAULT_MEMORY_POOL": "system",
    "MALLOC_ARENA_MAX": "1",
    "OMP_NUM_THREADS": "1",
    "OPENBLAS_NUM_THREADS": "1",
    "PYTHONDONTWRITEBYTECODE": "1",
}


class _ChildError(Exception):
    """The child did not answer: it took longer than `late` seconds, or crashed."""

    def __init__(self, late: float | None) -> None:
        super().__init__("reading it crashed" if late is None else f"reading it took longer than {late:g} s")
        self.late = late is not None


class ParquetReader:
    """Reads the Parquet files of submissions, one after the other, in one child; a new one where that is gone.

    A context manager: the child ends with it. Threads may share one.
    """

    def __init__(self, timeout: float = TIMEOUT) -> None:
        """The child starts with the first file.

        Args:
            timeout: seconds for one file.
        """
        self._timeout = timeout
        self._child: subprocess.Popen[bytes] | None = None
        self._lock = threading.Lock()

    def __enter__(self) -> ParquetReader:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """End the child."""
        with self._lock:
            self._end()

    def embeddings(self, content: bytes) -> RoundedEmbeddings:
        """The embeddings in a file as `RoundedEmbeddings.dumps` writes it.

        Raises:
            ResultError: it is something else, is damaged, or takes too much memory or time.
        """
        head, numbers = self._ask(EMBEDDINGS, content, "embeddings.parquet")
        dim = head.get("dim")
        if type(dim) is not int or not 1 <= dim <= MAX_DIM:
            raise ResultError("embeddings.parquet: its dim is out of range")
        ids = _ids(head, "embeddings.parquet")
        if len(numbers) != 2 * dim * len(ids):
            raise ResultError("embeddings.parquet: it has another number of ids than of embeddings")
        values = np.frombuffer(numbers, "<f2").astype(np.float16, copy=False).reshape(len(ids), dim)
        try:
            return RoundedEmbeddings.parse(ids, values, str(head.get("offset")), str(head.get("scale")))
        except ValueError as error:
            raise ResultError(f"embeddings.parquet: {clean(error)}") from None

    def samples(self, content: bytes) -> pa.Table:
        """The samples in a file as `save_result` writes it: ``id`` (string) and columns of finite float64.

        Raises:
            ResultError: as `embeddings`.
        """
        head, numbers = self._ask(SAMPLES, content, "samples.parquet")
        ids, names = _ids(head, "samples.parquet"), head.get("columns")
        if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
            raise ResultError("samples.parquet: it has no columns")
        if len(numbers) != 8 * len(ids) * len(names):
            raise ResultError("samples.parquet: its columns are not of one length")
        columns = np.frombuffer(numbers, "<f8").reshape(len(names), len(ids))
        if not np.isfinite(columns).all():
            raise ResultError("samples.parquet: the scores are not finite")
        table = pa.table([pa.array(ids, pa.string()), *map(pa.array, columns)], names=["id", *names])
        return table.replace_schema_metadata({"fingerprint": str(head.get("fingerprint"))})

    def _ask(self, kind: bytes, content: bytes, name: str) -> tuple[dict[str, Any], memoryview]:
        with self._lock:
            while True:
                fresh = self._start()
                try:
                    status, body = self._exchange(kind, content)
                    break
                except _ChildError as error:
                    # What has read other files before may have died of those: asked once more, of a new child.
                    if fresh or error.late:
                        raise ResultError(f"{name}: {error}; it is damaged, or made to do harm") from None
        if status == REFUSED:
            raise ResultError(f"{name}: {clean(body.decode('utf-8', 'replace'))}")
        line, _, _ = body.partition(b"\n")
        try:
            head = json.loads(line)
        except ValueError:
            head = None
        if status != READ or not isinstance(head, dict):
            raise ResultError(f"{name}: it cannot be read")
        return head, memoryview(body)[len(line) + 1 :]

    def _exchange(self, kind: bytes, content: bytes) -> tuple[bytes, bytes]:
        """The child's answer. A child that dies, hangs or does not keep to the protocol is ended."""
        child = self._child
        assert child is not None
        assert child.stdin is not None
        late = threading.Event()

        def stop() -> None:
            late.set()
            child.kill()

        timer = threading.Timer(self._timeout, stop)
        timer.start()
        try:
            child.stdin.write(HEAD.pack(kind, len(content)))
            child.stdin.write(content)
            child.stdin.flush()
            status, size = HEAD.unpack(_exactly(child, HEAD.size))
            if size > _MAX_ANSWER:
                raise EOFError
            return status, _exactly(child, size)
        except (EOFError, OSError):
            self._end()
            raise _ChildError(self._timeout if late.is_set() else None) from None
        except BaseException:
            # Stopped in the middle, by Ctrl-C: the rest of the answer would be taken for the next one.
            self._end()
            raise
        finally:
            timer.cancel()

    def _start(self) -> bool:
        """Start a child unless there is one; whether it was started."""
        if self._child is not None and self._child.poll() is None:
            return False
        self._end()
        child = subprocess.Popen(
            # -P: the folder of the script, which has modules named like Python's own, is not searched.
            [sys.executable, "-P", str(Path(parquet_child.__file__))],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env={name: os.environ[name] for name in _KEPT if name in os.environ} | _LIMITED,
        )
        self._child = child
        timer = threading.Timer(START_TIMEOUT, child.kill)
        timer.start()
        try:
            ready = _exactly(child, 1)
        except EOFError:
            ready = b""
        finally:
            timer.cancel()
        if ready != READY:
            self._end()
            script = parquet_child.__file__
            raise OSError(f"the process that reads Parquet files does not start; try: {sys.executable} -P {script}")
        return True

    def _end(self) -> None:
        child, self._child = self._child, None
        if child is None:
            return
        child.kill()
        for stream in (child.stdin, child.stdout):
            if stream is not None:
                try:
                    stream.close()
                except OSError:
                    # What was still to be written has nobody to read it.
                    continue
        child.wait()


def clean(text: object) -> str:
    """Strangers' text, or an error that may quote it, in one line of bounded length that shows what it is."""
    shown = plain(str(text)[: 4 * MAX_MESSAGE])
    return shown if len(shown) <= MAX_MESSAGE else f"{shown[:MAX_MESSAGE]}…"


def _exactly(child: subprocess.Popen[bytes], size: int) -> bytes:
    assert child.stdout is not None
    content = child.stdout.read(size)
    if len(content) < size:
        raise EOFError
    return content


def _ids(head: dict[str, Any], name: str) -> list[str]:
    ids = head.get("ids")
    if not isinstance(ids, list) or not 1 <= len(ids) <= MAX_ROWS or not all(isinstance(id, str) for id in ids):
        raise ResultError(f"{name}: it has no ids")
    return ids
