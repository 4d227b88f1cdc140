"""Questions to a server by many threads, so many at a time: each thread goes on by itself."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import CancelledError, Future, ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial
from typing import Any, TypeVar

from .endpoint_calls import Stopped

Answer = TypeVar("Answer")


class Window:
    """A window that moves over questions: so many are under way, and the next one is asked when any is answered.

    A question that takes long keeps one thread from the others, whichever it was put together with.
    """

    def __init__(self, threads: int) -> None:
        """Take how many questions are under way at a time, at most."""
        self._threads = threads
        self._pool = ThreadPoolExecutor(threads, thread_name_prefix="endpoint")
        self._stopped = threading.Event()
        self._telling = threading.Lock()
        self._change = threading.Condition()
        self._put = self._left = 0
        self._errors: dict[int, BaseException] = {}

    def put(
        self,
        questions: Sequence[Callable[[threading.Event], Answer]],
        on_answer: Callable[[int, Answer], object] | None = None,
    ) -> list[Future[Answer]]:
        """Take questions, to be asked in order behind those that are there.

        Args:
            questions: each is given an event that is set when there is nothing more to ask.
            on_answer: called with the place of each question and its answer as soon as that is there, by any thread,
                never by two at a time. What it raises is taken for an error of the question.

        Returns:
            an answer to come of each.
        """
        futures = []
        for place, question in enumerate(questions):
            with self._change:
                number = self._put
                self._put += 1
                self._left += 1
            future = self._pool.submit(self._ask, question, place, on_answer)
            future.add_done_callback(partial(self._note, number))
            futures.append(future)
        return futures

    def wait_for_room(self) -> None:
        """Wait until more questions can be put before a thread has nothing to do.

        Raises:
            Exception: see `wait`.
        """
        self.wait(2 * self._threads)

    def wait(self, most: int = 0) -> None:
        """Wait until no more than so many questions are left, of those under way and those not begun.

        Raises:
            Exception: that of the first question in order that failed. Those that are under way then are waited for,
                and no further one is asked.
        """
        with self._change:
            self._change.wait_for(lambda: bool(self._errors) or self._left <= most)
        if self._errors:
            self.stop(wait=True)
            raise self._errors[min(self._errors)]

    def stop(self, *, wait: bool) -> None:
        """Ask no further question; ``wait`` for those that are under way."""
        self._stopped.set()
        self._pool.shutdown(wait=wait, cancel_futures=True)

    def _ask(
        self,
        question: Callable[[threading.Event], Answer],
        place: int,
        on_answer: Callable[[int, Answer], object] | None,
    ) -> Answer:
        if self._stopped.is_set():
            raise Stopped
        answer = question(self._stopped)
        if on_answer is not None:
            # By this thread: what is answered is kept whatever the one that put the questions is busy with.
            with self._telling:
                on_answer(place, answer)
        return answer

    def _note(self, number: int, future: Future[Any]) -> None:
        error = None if future.cancelled() else future.exception()
        with self._change:
            self._left -= 1
            if error is not None and not isinstance(error, (Stopped, CancelledError)):
                self._errors[number] = error
                self._stopped.set()
            self._change.notify_all()


@contextmanager
def open_window(threads: int) -> Iterator[Window]:
    """A window until the end of the block, where what is left is waited for.

    Raises:
        Exception: see `Window.wait`; what the block raises, after those under way have been answered.
    """
    window = Window(threads)
    try:
        yield window
        window.wait()
    except Exception:
        window.stop(wait=True)
        raise
    except BaseException:
        # The user has interrupted it: what is under way is not waited for.
        window.stop(wait=False)
        raise
    window.stop(wait=True)
