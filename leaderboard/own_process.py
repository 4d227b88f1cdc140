"""A function run in a process of its own, which is ended when its time is up."""

from __future__ import annotations

import multiprocessing
import os
import pickle
import threading
import time
import traceback
from collections.abc import Callable
from multiprocessing.connection import Connection
from typing import Any, TypeVar

Answer = TypeVar("Answer")

NICE = 10
"""How much a process yields to others, where the system knows that: visitors of the board do not wait for checks."""


class OverdueError(Exception):
    """The function had not returned when its time was up."""


class DiedError(Exception):
    """The process ended without an answer: the system had no memory left for it, or a library crashed."""


def in_own_process(function: Callable[..., Answer], *arguments: Any, seconds: float, **options: Any) -> Answer:
    """What a function returns, or the error that it raises.

    Args:
        function: of a module; it, its arguments and what it returns are pickled.
        arguments: its positional arguments.
        seconds: wall-clock time that it may take, with the imports of a fresh Python.
        options: its keyword arguments.

    Raises:
        OverdueError: it took longer; the process is gone.
        DiedError: the process ended without an answer.
    """
    # A fork would copy the locks that threads of this process hold.
    context = multiprocessing.get_context("spawn")
    receiver, sender = context.Pipe(duplex=False)
    process = context.Process(target=_answer, args=(sender, function, arguments, options), daemon=True)
    started = time.monotonic()
    process.start()
    sender.close()
    # Of an answer that has begun to come as well: one that never ends would be waited for.
    overdue = threading.Event()

    def end() -> None:
        overdue.set()
        process.kill()

    alarm = threading.Timer(seconds, end)
    alarm.start()
    try:
        returned, answer = receiver.recv()
    except (EOFError, OSError):
        process.join()
        if overdue.is_set():
            raise OverdueError(f"it was ended after {time.monotonic() - started:.0f} s") from None
        raise DiedError(f"its process ended with the exit code {process.exitcode} and no answer") from None
    finally:
        alarm.cancel()
        process.kill()
        process.join()
        receiver.close()
    if not returned:
        raise answer
    result: Answer = answer
    return result


def _answer(sender: Connection, function: Callable[..., Any], arguments: Any, options: Any) -> None:
    if hasattr(os, "nice"):
        os.nice(NICE)
    try:
        answer = (True, function(*arguments, **options))
    except Exception as error:
        answer = (False, _portable(error))
    sender.send(answer)


def _portable(error: Exception) -> Exception:
    """An error that arrives as it is; of one that cannot be sent, its traceback."""
    try:
        if isinstance(pickle.loads(pickle.dumps(error)), type(error)):
            return error
    except Exception:  # whatever its constructor does with what pickle gives it
        pass
    return RuntimeError("".join(traceback.format_exception(error)))
