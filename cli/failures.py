"""What to say where a command fails, and with which exit status."""

from __future__ import annotations

import errno
import os
import sys
import traceback as tracebacks
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stdout, suppress
from typing import Any

from audio_compositionality.support.errors import AudioCompositionalityError

_KEPT = "what is finished is kept"


@contextmanager
def named_output() -> Iterator[None]:
    """Name the standard output in an error of writing to it: of a full disk the system tells no name."""
    with redirect_stdout(_NamedOutput(sys.stdout)):
        yield
        # What is left is written here, so that it fails as all else does and not when Python ends.
        sys.stdout.flush()


class _NamedOutput:
    """The standard output, whose errors have its name; in all else it is what it was."""

    def __init__(self, stream: Any) -> None:
        self._stream = stream

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)

    def write(self, text: str) -> int:
        """Write as `io.TextIOBase.write` does."""
        with self._naming():
            return int(self._stream.write(text))

    def flush(self) -> None:
        """Write what is left."""
        with self._naming():
            self._stream.flush()

    @contextmanager
    def _naming(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            error.filename = error.filename or "standard output"
            # What is left is not tried again when Python ends.
            with suppress(OSError):
                os.dup2(os.open(os.devnull, os.O_WRONLY), self._stream.fileno())
            raise


def exit_status(error: BaseException, *, resume: str = "", traceback: bool = False, can_skip: bool = False) -> int:
    """Print what went wrong in one line, and return the exit status: 130 for an interrupt, else 2.

    An error that nobody expects is a mistake of the project: it is raised again, so that its traceback is seen.

    Args:
        error: what the command raised.
        resume: how to go on where the command was stopped.
        traceback: print the traceback of any error.
        can_skip: the command was not told to leave out clips that cannot be embedded, and could be.
    """
    message = _explain(error, resume)
    if message is None:
        print("This is a mistake of audio-compositionality, please report it:", file=sys.stderr)
        raise error
    if traceback:
        tracebacks.print_exception(error, file=sys.stderr)
    if not _told_by_another(error):
        hint = "; --skip-invalid leaves such clips out" if can_skip and _is_of_a_clip(error) else ""
        print(f"{_process()}{message}{hint}", file=sys.stderr)
    return 130 if isinstance(error, KeyboardInterrupt) else 2


def _explain(error: BaseException, resume: str) -> str | None:
    """What to say of an error; None of one that nobody expects."""
    if isinstance(error, KeyboardInterrupt):
        return f"\nstopped. {resume}".rstrip()
    if isinstance(error, AudioCompositionalityError):
        return f"error: {error}"
    if isinstance(error, OSError):
        full = error.errno in (errno.ENOSPC, errno.EDQUOT)
        return f"error: {error}{f'; make room: {_KEPT}' if full else ''}"
    # By its name, since torch is not to be imported for it.
    if isinstance(error, MemoryError) or type(error).__name__ == "OutOfMemoryError":
        return f"error: {error or 'out of memory'}; {_KEPT}"
    return None


def _is_of_a_clip(error: BaseException) -> bool:
    from audio_compositionality.encoders.base import ClipError

    return isinstance(error, ClipError) and "--skip-invalid" not in str(error)


def _told_by_another(error: BaseException) -> bool:
    """Whether another of several processes says why the work ended."""
    return _count() > 1 and type(error).__name__ == "ProcessError" and os.environ.get("RANK") != "0"


def _process() -> str:
    rank = os.environ.get("RANK", "")
    return f"process {int(rank) + 1} of {_count()}: " if _count() > 1 and rank.isdigit() else ""


def _count() -> int:
    count = os.environ.get("WORLD_SIZE", "")
    return int(count) if count.isdigit() else 1
